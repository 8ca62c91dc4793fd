"""Cancel before the first factor ends the visitor's own sign-in; the request stays open for other browsers (D15, D17)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.authentication import completion, interaction_context, sign_in
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import INTERACTIONS_PER_REQUEST
from corpid.rules.oauth.errors import AccessDenied
from corpid.rules.oauth.refusals import Reason
from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.people import cancel
from tests import engines
from tests.contexts import context
from tests.sign_in.factors import change
from tests.sign_in.world import BASE, SECRET, World, cookies_of, form_of, new_world, post, query_of, walk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

FINISHED = "This sign-in is finished"
ELSEWHERE = "This sign-in continues in another browser"
ALL = ("legacy", "intermediate", "current", "fapi2")
PUSHED = tuple(name for name in ALL if INTERFACES[name].pushed)


async def two_at(made: World, url: str) -> tuple[Browser, Browser]:
    """The person's browser and a stranger's, at one request."""
    browsers = await made.browser(), await made.browser("198.51.100.7")
    for browser in browsers:
        await browser.open(url)
        assert browser.page.heading == "Sign in"
    return browsers


async def finish(made: World, browser: Browser, rp: RelyingParty) -> None:
    """Sign in from the first page on, and redeem the code."""
    await made.factors(browser, made.people["alice"])
    await browser.fill_and_submit(entity="200000001A")
    await rp.redeem(browser.left or "")


def cancelling(browser: Browser) -> dict[str, str]:
    """The fields of the form of Cancel."""
    form = next(form for form in browser.page.forms if form.id == "cancel")
    return {control.name: control.value for control in form.controls if control.name in {"form_token", "step"}}


@pytest.mark.parametrize("iss", [True, False], ids=["iss", "no iss"])
@pytest.mark.generations(*ALL)
async def test_a_stranger_who_cancels_leaves_and_the_person_still_signs_in(speaking: str, iss: bool) -> None:
    """D17: the callback has access_denied, state, and iss where it is on; the person's callback still comes."""
    async with new_world(generations=(speaking,), return_iss=iss) as made:
        rp = await made.relying_party()
        person, stranger = await two_at(made, await rp.begin())
        answer = query_of(await cancel(stranger))
        assert (answer["error"], answer["state"]) == ("access_denied", rp.sign_in.state)
        assert answer.get("iss") == (BASE if iss else None)
        assert [(each.actor, each.outcome) for each in await made.audit("sign_in.refuse")] == [("anonymous", "refused")]
        await finish(made, person, rp)
        assert len(await made.audit("sign_in.complete")) == 1


@pytest.mark.generations(*ALL)
async def test_a_stranger_may_come_and_cancel_before_the_person_arrives(speaking: str) -> None:
    """D15, D17: within the sixty seconds the request is as it was; for each of those who opened it."""
    async with new_world(generations=(speaking,)) as made:
        rp = await made.relying_party()
        url = await rp.begin()
        for _ in range(INTERACTIONS_PER_REQUEST - 1):
            stranger = await made.browser()
            await stranger.open(url)
            assert query_of(await cancel(stranger))["error"] == "access_denied"
        person = await made.browser()
        await person.open(url)
        await finish(made, person, rp)


@pytest.mark.generations("legacy", "current", differ=True)
async def test_cancelling_again_and_again_repeats_the_strangers_own_answer_and_nothing_else(speaking: str) -> None:
    """D15, D16, D17: ten clicks at once, the page, its way back, and the request's own address again."""
    async with new_world(generations=(speaking,)) as made:
        rp = await made.relying_party()
        url = await rp.begin()
        person, stranger = await two_at(made, url)
        where, fields = stranger.url, cancelling(stranger)
        answers = await asyncio.gather(*(post(stranger, "cancel", fields) for _ in range(10)))
        assert {answer.status_code for answer in answers} == {303}
        assert len(await made.audit("sign_in.refuse")) == 1
        for _ in range(2):
            assert (await post(stranger, "cancel", fields)).headers["location"].endswith("/return")
            await stranger.open(f"{where}/leave")
            assert query_of(stranger.left)["error"] == "access_denied"
        await stranger.open(where)
        assert stranger.page.heading == FINISHED
        answer = await post(stranger, "password", fields | {"user_name": "alice", "password": "x"})
        assert answer.headers["location"].endswith("/return")
        await stranger.open(url)
        assert stranger.page.heading == ("Sign in" if speaking == "legacy" else FINISHED)
        made.clock.pass_(60)
        await stranger.open(f"{where}/leave")
        late = "access_denied" if speaking == "legacy" else "invalid_request_uri"
        assert query_of(stranger.left)["error"] == late
        await finish(made, person, rp)
        assert len(await made.audit("sign_in.refuse")) == 1


@pytest.mark.generations("legacy", "current")
async def test_a_stranger_who_cancels_at_any_moment_of_the_persons_sign_in_stops_nothing(speaking: str) -> None:
    """D15, D17: several clicks at the same moment as each of the person's steps."""
    async with new_world(generations=(speaking,)) as made:
        for step in ("password", "code", "entity"):
            made.clock.pass_(60)
            rp = await made.relying_party()
            person, stranger = await two_at(made, await rp.begin())
            given = {
                "password": {"user_name": "alice", "password": made.people["alice"].password},
                "code": {"code": made.people["alice"].fresh_code(made.clock())},
                "entity": {"entity": "200000001A"},
            }
            fields = cancelling(stranger)
            for each, values in given.items():
                sent = form_of(person, *values) | values
                clicks = [post(stranger, "cancel", fields) for _ in range(3 if each == step else 0)]
                answers = await asyncio.gather(*clicks[:2], post(person, each, sent), *clicks[2:])
                assert {answer.status_code for answer in answers} <= {303, 409}
                location = answers[-1 if not clicks else 2].headers["location"]
                await person.open(f"{made.base}{location}", site="same-origin")
            await rp.redeem(person.left or "")


async def visit(made: World, browser: Browser) -> InteractionContext:
    """What a request of this browser starts from."""
    interaction_id, sent = browser.url.rsplit("/", 1)[1], cookies_of(browser)["corpid"]
    return await interaction_context.load_interaction(await context(made.provider), interaction_id, sent)


@engines.STORES
@pytest.mark.parametrize("quicker", ["cancel", "completion"])
async def test_of_a_strangers_cancel_and_the_persons_completion_both_come_true(
    quicker: str, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D15, D17: both have looked at the request before either writes."""
    with nullcontext() if memory is None else memory() as at:
        async with new_world(**{"transient_url": at} if at else {}) as made:
            made.clock.pass_(60)
            rp = await made.relying_party()
            url = await rp.begin()
            person, stranger = await two_at(made, url)
            leaving = await visit(made, stranger)
            await made.factors(person, made.people["alice"])
            chosen = await visit(made, person)
            entity = {"entity_id": "200000001A"}

            async def give_up() -> None:
                with pytest.raises(completion.OtherBrowser if quicker == "cancel" else StaleStep):
                    await completion.refuse(
                        await context(made.provider), leaving.interaction, AccessDenied(Reason.CANCELLED, "cancelled")
                    )

            async def complete() -> None:
                await sign_in.submit_entity(await context(made.provider), chosen, **entity)

            for each in (give_up, complete) if quicker == "cancel" else (complete, give_up):
                await each()
            await person.open(f"{person.url}/leave")
            await rp.redeem(person.left or "")


@engines.STORES
@pytest.mark.parametrize("quicker", ["cancel", "password"])
async def test_of_cancel_and_password_at_once_in_one_browser_one_is_taken(
    quicker: str, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D15, D17: they claim the same step; the request is open only if Cancel was quicker."""

    async def story(made: World) -> None:
        made.clock.pass_(60)
        rp = await made.relying_party()
        browser, other = await two_at(made, await rp.begin())
        at, alice = await visit(made, browser), made.people["alice"]

        async def give_up() -> None:
            await completion.refuse(
                await context(made.provider), at.interaction, AccessDenied(Reason.CANCELLED, "cancelled")
            )

        async def type_password() -> None:
            await sign_in.submit_password(
                await context(made.provider), at, user_name=alice.user_name, password=alice.password
            )

        first, second = (give_up, type_password) if quicker == "cancel" else (type_password, give_up)
        await first()
        with pytest.raises(StaleStep):
            await second()
        await browser.reload()
        await other.reload()
        if quicker == "cancel":
            assert browser.page.heading == FINISHED
            await finish(made, other, rp)
            return
        assert other.page.heading == ELSEWHERE
        await made.code(browser, alice)
        await browser.fill_and_submit(entity="200000001A")
        await rp.redeem(browser.left or "")

    with nullcontext() if memory is None else memory() as url:
        async with new_world(**{"transient_url": url} if url else {}) as made:
            await story(made)


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("steps", [("password",), ("password", "code")], ids=["password", "code"])
async def test_cancel_after_the_first_factor_completes_the_request_for_everybody(
    speaking: str, steps: tuple[str, ...]
) -> None:
    """D15, D16, D17."""
    async with new_world(generations=(speaking,)) as made:
        rp = await made.relying_party()
        url = await rp.begin()
        person, stranger = await two_at(made, url)
        for step in steps:
            await (made.password if step == "password" else made.code)(person, made.people["alice"])
        assert query_of(await cancel(person))["error"] == "access_denied"
        await stranger.reload()
        assert stranger.page.heading == FINISHED
        await stranger.open(url)
        assert query_of(stranger.left)["error"] == "invalid_request_uri"


async def test_cancel_of_somebody_whose_factors_changed_after_the_password_completes_the_request(made: World) -> None:
    """D17, D50: they read Sign in again, and the request has long been theirs."""
    rp = await made.relying_party()
    url = await rp.begin()
    person, stranger = await two_at(made, url)
    await made.password(person, made.people["alice"])
    stored = await made.provider.registry.factors.credentials("id-alice")
    assert stored.totp_secret == SECRET
    await change(made, after=replace(stored, totp_secret=SECRET[::-1]))
    await person.reload()
    assert person.page.heading == "Sign in"
    assert query_of(await cancel(person))["error"] == "access_denied"
    await stranger.reload()
    assert stranger.page.heading == FINISHED


async def test_cancel_of_somebody_who_is_signed_in_already_completes_the_request() -> None:
    """D17, D30: their factors were shown before; going back does not undo what they refused."""
    async with new_world(session_seconds=3600) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        made.clock.pass_(60)
        url = await (await made.relying_party()).begin()
        await browser.open(url)
        assert browser.page.heading == "Choose who you act for"
        assert query_of(await cancel(browser))["error"] == "access_denied"
        await browser.open(url)
        assert query_of(browser.left)["error"] == "invalid_request_uri"


@pytest.mark.generations("legacy", "current")
async def test_a_stranger_at_a_request_without_pages_is_answered_and_changes_nothing(speaking: str) -> None:
    """D17, D40: prompt=none has no Cancel; its login_required neither claims nor completes."""
    async with new_world(generations=(speaking,), entities=1, session_seconds=3600) as made:
        browser, stranger = await made.browser(), await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        made.clock.pass_(60)
        rp = await made.relying_party(prompt="none")
        url = await rp.begin()
        for _ in range(3):
            await stranger.open(url)
            assert query_of(stranger.left)["error"] == "login_required"
        await browser.open(url)
        await rp.redeem(browser.left or "")


@pytest.mark.generations("legacy", "current", differ=True)
async def test_a_strangers_sign_in_that_expires_leaves_the_request_open(speaking: str) -> None:
    """D15, D16, D17: the same holds for who does nothing; the person asked for more time meanwhile."""
    async with new_world(generations=(speaking,)) as made:
        rp = await made.relying_party()
        person, stranger = await two_at(made, await rp.begin())
        made.clock.pass_(599)
        await post(person, "extend", form_of(person, "password"))
        made.clock.pass_(1)
        await stranger.open(f"{stranger.url}/leave")
        late = "access_denied" if speaking == "legacy" else "invalid_request_uri"
        assert query_of(stranger.left)["error"] == late
        await person.reload()
        await finish(made, person, rp)


async def test_cancelled_sign_ins_are_no_refusals_that_are_kept_of_the_client(made: World) -> None:
    """D28: anybody can cancel at a public relying party, and open the way back again, as often as they like."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    await cancel(browser)
    await made.provider.refusals.flush(made.provider.registry)
    assert await made.provider.registry.client_refusals.list_for_client("rp1") == []
