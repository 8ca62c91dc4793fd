"""An invitation, and an account that is called like its address: told apart wherever one of them is named (D68)."""

from __future__ import annotations

import csv
import re
from unicodedata import category

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.names import label_invited
from corpid.rules.directory.records import Change, ChangeRequest
from corpid.web.pages.translations import LANGUAGES, translator
from tests.manage.scene import ACME, in_portal, portal
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_who_is_meant import INVITED, owner
from tests.sign_in.world import World, entity, form_of

LABEL = f"{INVITED.email} (Gina Teo)"
"""what both are called"""
MARKED = f"(invited) {LABEL}"
JOINED = f"id-{INVITED.email}"
PAGES = ("requests", "access", "access/new?find=gina", "access-review?begin=yes", "history", "history?kind=access")


async def both(made: World) -> dict[str, ChangeRequest]:
    """Gina is invited; later somebody joins whose account is called like her address. A role waits for each."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    await made.person(INVITED.email, entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Gina Teo")
    found = {}
    for who in (INVITED.user_id, JOINED):
        made.clock.pass_(1)
        found[who] = await requested(made, Change(None, replace(ROLE, user_id=who)))
    return found


@pytest.mark.parametrize("page", PAGES)
async def test_pages_with_both_say_which_one_is_invited(made: World, page: str) -> None:
    """D68: in the lists of requests, roles and changes, in a review, and where a person is chosen."""
    for found in (await both(made)).values():
        if page not in {"requests", "access/new?find=gina"}:
            await approvals.approve_request(
                made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
            )
    text = (await in_portal(made, page)).page.text
    marked = text.count(MARKED)
    assert marked
    assert text.count(LABEL) > marked


@pytest.mark.parametrize("who", [INVITED.user_id, JOINED])
@pytest.mark.parametrize("then", ["pending", "approved"])
async def test_a_request_says_which_one_it_is_for(made: World, who: str, then: str) -> None:
    """D68: for who decides, and afterwards."""
    found = (await both(made))[who]
    if then == "approved":
        await approvals.approve_request(
            made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
        )
    text = (await in_portal(made, f"requests/{found.request_id}")).page.text
    assert f"{LABEL} may act as Maker" in text
    assert (MARKED in text) is (who == INVITED.user_id)


@pytest.mark.parametrize("page", ["people", "administrators/appoint"])
async def test_a_list_has_the_state_next_to_the_address(made: World, page: str) -> None:
    """D68: a column of its own."""
    await both(made)
    browser = await in_portal(made, page)
    assert f"{INVITED.email} Invited" in browser.page.text
    assert re.search(rf"{INVITED.email} (\u2013 )?Active", browser.page.text)
    if page == "administrators/appoint":  # links are heard alone, too
        links = [text for _, text in browser.page.links if text.startswith("Gina Teo")]
        assert sorted(links) == [f"Gina Teo (invited) {INVITED.email}", f"Gina Teo {INVITED.email}"]


async def test_a_file_of_roles_says_which_one_is_invited(made: World) -> None:
    """D68: exports, too."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    await made.person(INVITED.email, entity(ACME, "Acme Pte. Ltd."), name="Gina Teo")
    await made.write(*(replace(ROLE, user_id=who) for who in (INVITED.user_id, JOINED)))
    browser = await in_portal(made, "access")
    file = await browser.http.get(portal(made, "access/csv"))
    rows = csv.DictReader(file.text.removeprefix("\ufeff").splitlines())
    assert {each["User name"] for each in rows} == {INVITED.email, f"(invited) {INVITED.email}"}


@pytest.mark.parametrize("page", [*PAGES, "people", "access/csv", "history/export"])
async def test_the_word_is_in_the_language_of_the_reader(made: World, page: str) -> None:
    """D68: also inside sentences, lists of names and files."""
    requests = await both(made)
    found = requests[INVITED.user_id]
    await approvals.approve_request(
        made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
    )
    alice = await made.provider.registry.directory.user("id-alice")
    assert alice is not None
    await made.write(replace(alice, language="ms"))
    browser = await in_portal(made, "people")
    browser.http.headers["Accept-Language"] = "ms"
    answer = await browser.http.get(portal(made, "requests?state=ended" if page == "requests" else page))
    assert "(dijemput) gina@acme.example" in answer.text
    assert "(invited)" not in answer.text


def test_the_word_is_in_every_language() -> None:
    """D68: in brackets, as no user name has one, before the address, as the organisation writes nothing there."""
    marked = [translator(each).say(label_invited(LABEL)) for each in LANGUAGES]
    assert len(set(marked)) == len(LANGUAGES)
    assert all(category(each[0]) == "Ps" and each.endswith(LABEL) for each in marked)


async def test_what_is_offered_to_type_finds_both(made: World) -> None:
    """D68: nobody types the word; who is meant is asked."""
    await both(made)
    browser = await in_portal(made, f"access/new?find={LABEL}")
    text = browser.page.text
    assert "2 people match." in text
    assert form_of(browser, "person", "find")["find"] == LABEL, "the search can be narrowed"
