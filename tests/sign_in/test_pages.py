"""The way through the pages: what each says, and how each is left (Spec 3, Spec 4.2, D12, D17, D36, D37)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.records import Service
from corpid_dev.relying_party.people import cancel, sign_in
from tests.sign_in.world import (
    BASE,
    EVERY_SCOPE,
    MESSAGE,
    World,
    entity,
    form_of,
    new_world,
    post,
    query_of,
    rejected,
    walk_to,
)
from tests.world.clients import CALLBACK

TO_STEP = {
    "Sign in": (),
    "Enter your 6-digit code": ("password",),
    "Choose who you act for": ("password", "code"),
    "Do you agree to share this?": ("password", "code", "entity"),
}
"""heading of a page → what leads to it"""


@pytest.mark.generations("legacy", "intermediate", "current", "fapi2")
async def test_a_person_signs_in_with_two_factors_chooses_an_entity_and_returns_with_a_code(speaking: str) -> None:
    """Spec 3, Spec 4.2: and the relying party can believe and redeem what it gets."""
    async with new_world(generations=(speaking,)) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(**made.decided)
        await browser.open(await rp.begin())
        alice, seen = made.people["alice"], [browser.page.heading]
        await made.password(browser, alice)
        seen.append(browser.page.heading)
        await made.code(browser, alice)
        seen.append(browser.page.heading)
        await browser.fill_and_submit(entity="200000002A")
        seen.append(browser.page.heading)
        await browser.fill_and_submit("decision", button="agree")
        assert seen == list(TO_STEP)
        assert set(query_of(browser.left)) - {"iss"} == {"code", "state"}
        tokens = await rp.redeem(browser.left or "")
        assert tokens.access_token_claims["entity"]["sub"] == "200000002A"
        assert tokens.id_token["amr"] == ["pwd", "otp", "mfa"]


@pytest.mark.generations("legacy", "intermediate", "current", "fapi2")
async def test_with_one_usable_entity_nothing_is_asked(speaking: str) -> None:
    """Spec 3: the choice is skipped when there is one."""
    async with new_world(generations=(speaking,), entities=1) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        assert "code" in query_of(browser.left)


@pytest.mark.generations("legacy", "current", differ=True)
@pytest.mark.parametrize(("heading", "steps"), TO_STEP.items())
async def test_every_page_names_the_relying_party_and_shows_its_message(
    speaking: str, heading: str, steps: tuple[str, ...]
) -> None:
    """D12: also beside an error; a request in the query has no message."""
    async with new_world(generations=(speaking,)) as made:
        await made.client(sector="private", name="Harbour Board")
        browser, rp = await made.browser(), await made.relying_party(**made.decided)
        await walk_to(made, browser, rp, steps)
        for _ in ("as it opens", "with an error"):
            assert browser.page.heading == heading
            assert "Harbour Board" in browser.page.text
            assert (MESSAGE in browser.page.text) == (speaking == "current")
            forms = [form for form in browser.page.forms if form.method == "post" and form.id == ""]
            forms[0].buttons.clear()  # pressed with Enter, with nothing filled in
            await browser.submit(forms[0])


@pytest.mark.generations("legacy", "intermediate", "current", "fapi2")
@pytest.mark.parametrize("steps", TO_STEP.values(), ids=TO_STEP)
async def test_cancel_on_every_page_answers_access_denied_with_the_state(speaking: str, steps: tuple[str, ...]) -> None:
    """D17: and no code exists afterwards."""
    async with new_world(generations=(speaking,)) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(**made.decided)
        await walk_to(made, browser, rp, steps)
        answer = query_of(await cancel(browser))
        assert (answer["error"], answer["state"]) == ("access_denied", rp.sign_in.state)
        assert "code" not in answer
        assert await made.audit("sign_in.complete") == []
        assert len(await made.audit("sign_in.refuse")) == 1


async def test_a_dead_end_after_the_choice_says_who_was_acted_for(made: World) -> None:
    """The entity once chosen, on every page; also after the answer was given."""
    await made.client(sector="private")
    browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    made.clock.pass_(600)
    await browser.reload()
    assert browser.page.heading == "This sign-in has expired"
    assert "You act for Acme Pte. Ltd." in browser.page.text
    await walk_to(made, browser, await made.relying_party(scope=EVERY_SCOPE), ("password", "code", "entity"))
    where = browser.url
    await browser.fill_and_submit("decision", button="agree")
    await browser.open(where, site="same-origin")
    assert browser.page.heading == "This sign-in is finished"
    assert "You act for Acme Pte. Ltd." in browser.page.text


@pytest.mark.parametrize(
    ("entities", "said"),
    [
        (1, ["", "", "3 of 3"]),
        (2, ["", "", "", "4 of 4"]),
    ],
)
async def test_the_steps_are_counted_over_those_that_come(entities: int, said: list[str]) -> None:
    """docs/wording.md: a number is shown once the total is known, and none is skipped.

    A person with one organisation is not asked for it.

    Whether there is one is told to nobody who has only the password.
    """
    async with new_world(entities=entities) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
        read = []

        def count() -> None:
            read.append(browser.page.text.partition("Step ")[2].partition(browser.page.heading)[0].strip())

        await walk_to(made, browser, rp)
        count()
        await made.password(browser, made.people["alice"])
        count()
        await made.code(browser, made.people["alice"])
        count()
        if entities > 1:
            await browser.fill_and_submit(entity="200000001A")
            count()
        assert browser.page.heading == "Do you agree to share this?"
        assert read == said


@pytest.mark.generations("legacy", "intermediate", "current", "fapi2")
async def test_a_callback_carries_iss_where_the_deployment_returns_it(speaking: str) -> None:
    """D17, RFC 9207 §2: with a code and with an error."""
    async with new_world(generations=(speaking,), entities=1, return_iss=True) as made:
        browser, rp = await made.browser(), await made.relying_party()
        callback = await sign_in(browser, await rp.begin(), made.people["alice"], now=made.clock)
        assert query_of(callback)["iss"] == BASE
        rp.restart()
        await browser.open(await rp.begin())
        assert query_of(await cancel(browser))["iss"] == BASE


@pytest.mark.generations("legacy", "current")
async def test_a_person_without_a_usable_entity_is_told_why_and_then_sent_back(speaking: str) -> None:
    """D17, R-20: one line for each entity, and access_denied after the click."""
    async with new_world(generations=(speaking,)) as made:
        await made.write(Service(service_id="PERMITS", name="Permits", entity_types=("GSTN",)))
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        assert browser.left is None
        assert browser.page.heading == "You cannot use this service yet"
        assert "Acme Pte. Ltd." in browser.page.text
        assert "Banyan Trading" in browser.page.text
        assert "does not accept organisations of this type" in browser.page.text
        await browser.submit(next(form for form in browser.page.forms if form.id == ""))
        answer = query_of(browser.left)
        assert (answer["error"], answer["state"]) == ("access_denied", rp.sign_in.state)


async def test_a_person_who_acts_for_nobody_is_told_so_and_sent_back(made: World) -> None:
    """D17."""
    await made.person("bob")
    browser, rp = await made.browser(), await made.relying_party()
    await browser.open(await rp.begin())
    await made.factors(browser, made.people["bob"])
    assert "no organisation has named you" in browser.page.text
    await browser.submit(next(form for form in browser.page.forms if form.id == ""))
    assert query_of(browser.left)["error"] == "access_denied"


async def test_an_entity_that_is_not_the_persons_or_not_usable_here_cannot_be_chosen(made: World) -> None:
    """D17, R-20: whatever a form says."""
    await made.person("bob", entity("200000009A", "Someone else"))
    await made.person("alice", entity("200000003A", "Struck off", status="Deregistered"))
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code"))
    for wanted in ("200000009A", "200000003A", "", "%00", "200000001a"):
        fields = {**form_of(browser, "entity"), "entity": wanted}
        answer = await rejected(browser, await post(browser, "entity", fields))
        assert "Choose the organisation you act for." in answer.text
    assert await made.audit("sign_in.complete") == []


async def test_the_last_form_leads_to_the_relying_party_over_an_own_page(made: World) -> None:
    """D37, D38: POST → 303 → 200 with a refresh and a link → 302, and the code stands nowhere but in the last hop."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code"))
    posted = await post(browser, "entity", {**form_of(browser, "entity"), "entity": "200000001A"})
    assert posted.status_code == 303
    own = await browser.http.get(posted.headers["location"])
    assert own.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=' in own.text
    assert "form-action 'self'" in own.headers["content-security-policy"]
    leave = own.text.partition('content="0; url=')[2].partition('"')[0]
    assert f'href="{leave}"' in own.text
    assert CALLBACK not in own.text
    left = await browser.http.get(leave)
    assert left.status_code == 302
    assert left.headers["cache-control"] == "no-store"
    code = query_of(left.headers["location"])["code"]
    assert code not in own.text + posted.headers["location"]


async def test_a_registered_query_of_the_redirect_uri_is_kept(made: World) -> None:
    """D38."""
    await made.client(redirect_uris=(f"{CALLBACK}?tenant=7",))
    browser, rp = await made.browser(), await made.relying_party()
    rp.redirect_uri = f"{CALLBACK}?tenant=7"
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    answer = query_of(browser.left)
    assert answer["tenant"] == "7"
    assert "code" in answer


async def test_a_client_that_is_switched_off_meanwhile_ends_on_a_page_and_gets_nothing(made: World) -> None:
    """D50: client or redirect URI gone is an error page, not a callback."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code"))
    await made.client(enabled=False)
    await browser.fill_and_submit(entity="200000001A")
    assert browser.left is None
    assert browser.response is not None
    assert browser.response.status_code == 400
    assert await made.audit("sign_in.complete") == []


async def test_a_person_whose_entity_is_switched_off_meanwhile_chooses_anew_and_nothing_is_completed(
    made: World,
) -> None:
    """D50, D17."""
    await made.client(sector="private")
    browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    await made.write(entity("200000001A", "Acme Pte. Ltd.", enabled=False))
    await browser.fill_and_submit("decision", button="agree")
    assert browser.left is None
    assert browser.page.heading == "Choose who you act for"
    assert "This organisation is disabled." in browser.page.text
    assert await made.audit("sign_in.complete") == []
