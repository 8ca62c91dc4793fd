"""A person with thousands of entities costs the provider little (Spec 3, docs/costs.md).

What the database does is counted in its own steps, which are the same on every machine.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.directory.records import Membership
from tests.sign_in.world import EVERY_SCOPE, World, entity, new_world, query_of, rejected, walk_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.rules.fields import KeyedRecord

pytestmark = pytest.mark.full

MANY = 3000
HOUR = 3600
STEPS = 100


def held(count: int, **more: str) -> list[KeyedRecord]:
    many = [entity(f"T{n:05}K", f"Harbour Holdings {n:04}", **more) for n in range(count)]
    return [*many, *(Membership(user_id="id-alice", entity_id=one.entity_id) for one in many)]


@contextmanager
def work(made: World) -> Iterator[list[int]]:
    """One entry for each hundred steps of the database's machine meanwhile."""
    done: list[int] = []
    connection = made.provider.registry.directory._database._connection
    connection.set_progress_handler(lambda: done.append(STEPS), STEPS)
    try:
        yield done
    finally:
        connection.set_progress_handler(None, 0)


async def test_to_arrive_and_to_choose_is_as_much_work_with_thousands_as_with_three() -> None:
    """D30: whether there is one entity or several, and whether this one may be used, needs no list of all."""
    async with new_world(entities=3, session_seconds=HOUR) as made:
        spent: list[tuple[int, int]] = []
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        for more in (0, MANY):
            made.clock.pass_(60)
            await made.write(*held(more))
            rp = await made.relying_party()
            where = await rp.begin()
            with work(made) as arriving:
                await browser.http.get(where)
            await browser.open(where)
            form = browser.page.form_with("entity")
            assert form is not None
            fields = {"entity": "200000003A"} | {c.name: c.value for c in form.controls if not c.choice}
            with work(made) as choosing:
                await browser.http.post(
                    form.action, data=fields, headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=False
                )
            await browser.reload()
            assert browser.page.heading == "This sign-in is finished"
            spent.append((len(arriving), len(choosing)))
        few, many = spent
        assert many[0] <= few[0] + 5
        assert many[1] <= few[1] + 5


async def test_where_none_of_thousands_can_be_used_the_page_shows_the_first_and_how_many() -> None:
    """Spec 3: with the reason of each."""
    async with new_world(entities=0) as made:
        await made.write(*held(120, status="Deregistered"))
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        assert browser.page.heading == "You cannot use this service yet"
        assert "Showing 50 of 120" in browser.page.text
        assert browser.page.text.count("with the status Deregistered") == 50


async def test_the_one_usable_among_very_many_is_not_asked_for() -> None:
    """D30: exactly one usable entity needs no choice, whatever else the person holds."""
    async with new_world(entities=1) as made:
        await made.write(*held(120, status="Deregistered"))
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        assert (await rp.redeem(browser.left or "")).id_token["entity"]["sub"] == "200000001A"


async def test_an_entity_that_this_person_does_not_hold_cannot_be_chosen(made: World) -> None:
    """Spec 3: known to the provider or not, or not usable here."""
    await made.write(entity("S0000000S", "Someone else's"), *held(1, status="Deregistered"))
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code"))
    for refused in ("S0000000S", "T00000K", "X0000000X", ""):
        form = browser.page.form_with("entity")
        assert form is not None
        fields = {"entity": refused} | {c.name: c.value for c in form.controls if not c.choice}
        sent = await browser.http.post(form.action, data=fields, headers={"Sec-Fetch-Site": "same-origin"})
        answer = await rejected(browser, sent)
        assert "Choose the organisation you act for." in answer.text
    assert browser.left is None


async def test_whose_chosen_entity_was_taken_away_chooses_again() -> None:
    """D15, D50: never stranded at a page that leads nowhere."""
    async with new_world(entities=3) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
        await walk_to(made, browser, rp, ("password", "code", "entity"))
        assert browser.page.heading == "Do you agree to share this?"
        gone = Membership(user_id="id-alice", entity_id="200000001A")
        await made.write(msgspec.structs.replace(gone, enabled=False))
        await browser.reload()
        assert browser.page.heading == "Choose who you act for"
        await browser.fill_and_submit(entity="200000002A")
        assert browser.page.heading == "Do you agree to share this?"
        await browser.fill_and_submit("decision", button="agree")
        assert "code" in query_of(browser.left)
        assert (await rp.redeem(browser.left or "")).id_token["entity"]["sub"] == "200000002A"
