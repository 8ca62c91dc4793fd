"""People in the console: search, what is shown, help with sign-in, and who may do what (D53, D54, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Administrator, Assignment, Operator, OperatorLevel, User
from corpid.stores.sql import lists
from tests.console.scene import ACME, REASON, WITHOUT_PASSKEY, demoted, go, in_console, send
from tests.postbox import Postbox
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ALICE = "people/id-alice"
ADDRESS = "alice@acme.example"


async def reachable(made: World) -> None:
    """Give Alice an address."""
    alice = await made.provider.registry.directory.user("id-alice")
    assert alice is not None
    await made.write(replace(alice, email=ADDRESS))


@pytest.mark.parametrize(("sort", "search"), [("user_name", "ALI"), ("name", "alice t"), ("email", "Alice@")])
async def test_people_are_found_by_the_beginning_of_user_name_name_or_address(sort: str, search: str) -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        await reachable(made)
        await made.write(User(user_id="id-zed", user_name="zed", name="Zed Lim", email="zed@acme.example"))
        browser = await in_console(made, "auditor")
        await go(made, browser, f"people?sort={sort}&search={search.replace(' ', '+')}")
        assert "Alice Tan" in browser.page.text
        assert "Zed Lim" not in browser.page.text


async def test_a_search_that_finds_too_many_to_sort_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """D83: the chosen order is not that of the list then."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor")
        await go(made, browser, "people?sort=name&search=alice")
        assert "too broad to be sorted" not in browser.page.text
        monkeypatch.setattr(lists, "_FEW", 0)
        await go(made, browser, "people?sort=name&search=alice")
        assert "Alice Tan" in browser.page.text
        assert "This search is too broad to be sorted. Add a word." in browser.page.text


async def test_people_are_listed_fifty_a_page() -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(*(User(user_id=f"id-{n:03}", user_name=f"p{n:03}", name=f"P {n:03}") for n in range(60)))
        browser = await in_console(made, "operator")
        await go(made, browser, "people?search=p0")
        assert "p049" in browser.page.text
        assert "p050" not in browser.page.text
        following = next(url for url, text in browser.page.links if text == "Next page")
        await browser.open(f"{made.base}{following}", site="same-origin")
        assert "p050" in browser.page.text
        assert "p049" not in browser.page.text


async def test_a_list_says_how_many_there_are_and_leads_back() -> None:
    """D83: who has not accepted an invitation is no person yet, and is not counted."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(*(User(user_id=f"id-{n:03}", user_name=f"p{n:03}", name=f"P {n:03}") for n in range(120)))
        await made.write(User(user_id="id-x", user_name="p1-invited", name="X", placeholder=True))
        browser = await in_console(made, "operator")

        async def follow(text: str) -> None:
            target = next(url for url, name in browser.page.links if name == text)
            await browser.open(f"{made.base}{target}", site="same-origin")

        await go(made, browser, "people?search=p&sort=name")
        assert "1–50 of 120" in browser.page.text  # noqa: RUF001 - a dash
        assert "Previous page" not in browser.page.text
        await follow("Next page")
        assert "p050" in browser.page.text
        await follow("Next page")
        assert "101–120 of 120" in browser.page.text  # noqa: RUF001
        assert "p119" in browser.page.text
        assert "Next page" not in browser.page.text
        await follow("Previous page")
        assert "p050" in browser.page.text
        assert "p100" not in browser.page.text
        await follow("Previous page")
        assert "p000" in browser.page.text
        assert "Previous page" not in browser.page.text
        await go(made, browser, "people?after=zzz")
        assert "First page" in browser.page.text


async def test_a_person_is_shown_with_organisations_roles_and_sessions_and_no_secret() -> None:
    """Factors by kind only."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await reachable(made)
        await made.write(
            Administrator(user_id="id-alice", entity_id=ACME, level="owner"),
            Assignment(user_id="id-alice", entity_id=ACME, service_id="PERMITS", role="Maker"),
        )
        theirs = await made.browser()
        await theirs.open(f"{made.base}/account", site="none")
        await made.factors(theirs, made.people["alice"])
        browser = await in_console(made, "support", ALICE)
        await go(made, browser, ALICE)
        for shown in ("Alice Tan", ADDRESS, "Acme Pte. Ltd.", "Owner", "Permits", "Maker", "Authenticator app"):
            assert shown in browser.page.text, shown
        assert "not signed in anywhere" not in browser.page.text
        assert browser.response is not None
        assert made.people["alice"].totp_secret not in browser.response.text


async def test_support_sees_nothing_of_operators() -> None:
    """D53: nothing on operators."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Operator(user_id="id-alice", level="auditor"))
        browser = await in_console(made, "support")
        await go(made, browser, "people")
        assert "alice" not in browser.page.text
        await go(made, browser, "people?search=alice")
        assert "Nobody found" in browser.page.text
        assert await go(made, browser, ALICE) == 404
        assert await go(made, browser, "people/id-nobody") == 404


async def test_support_unlocks_and_signs_out_with_a_reason_that_the_audit_keeps() -> None:
    """D53, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "support", ALICE)
        await go(made, browser, f"{ALICE}/unlock")
        await browser.fill_and_submit(reason="")
        assert "Say why" in browser.page.text
        await browser.fill_and_submit(reason=REASON)
        assert "The account has been unlocked" in browser.page.text
        await go(made, browser, f"{ALICE}/sign-out")
        await browser.fill_and_submit(reason=REASON)
        assert "signed out everywhere" in browser.page.text
        for action in ("user.unlock", "session.end_all"):
            (entry,) = await made.audit(action)
            assert (entry.actor, entry.object) == ("operator:id-the-support", "id-alice")
            assert entry.detail["reason_given"] == REASON


async def test_support_sends_a_link_to_the_address_on_record_and_never_sees_it() -> None:
    """D44, D45, D53."""
    postbox = Postbox()

    async with new_world(postbox=postbox, **WITHOUT_PASSKEY) as made:
        await reachable(made)
        browser = await in_console(made, "support", ALICE)
        await go(made, browser, f"{ALICE}/link")
        await browser.fill_and_submit(reason=REASON)
        assert "Choose what the link is for" in browser.page.text
        await browser.fill_and_submit(choice="second_factor", reason=REASON)
        assert "The link is on its way" in browser.page.text
        assert "/link#" not in browser.page.text
        (entry,) = await made.audit("link.second_factor")
        assert entry.detail["reason_given"] == REASON


@pytest.mark.parametrize("action", ["link", "renew", "sign-out", "disable"])
async def test_an_action_is_asked_about_again_if_the_person_has_another_name_or_address_meanwhile(action: str) -> None:
    """D68: nothing is done for somebody whom the page did not show."""
    postbox = Postbox()

    async with new_world(postbox=postbox, **WITHOUT_PASSKEY) as made:
        await reachable(made)
        browser = await in_console(made, "operator", ALICE)
        await go(made, browser, f"{ALICE}/{action}")
        alice = await made.provider.registry.directory.user("id-alice")
        assert alice is not None
        await made.write(replace(alice, user_name="bobby", name="Bob Lim", email="bob@acme.example"))
        typed = {"choice": "password", "reason": REASON} if action == "link" else {"reason": REASON}
        await browser.fill_and_submit(**typed)
        assert "Names have changed since you looked." in browser.page.text
        assert not postbox.emails
        await browser.fill_and_submit(**typed)
        assert browser.page.heading == "bobby (Bob Lim)"


async def test_without_an_address_no_link_is_made() -> None:
    """D44: the page says why, and an earlier link stays."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", ALICE)
        await go(made, browser, f"{ALICE}/link")
        assert "sends no e-mails" in browser.page.text
        await browser.fill_and_submit(choice="password", reason=REASON)
        assert "sends no e-mails" in browser.page.text
        assert await made.provider.registry.factors.links_of("id-alice") == []


async def test_an_operator_starts_sign_in_over_and_disables_and_enables() -> None:
    """D46, D50."""
    postbox = Postbox()

    async with new_world(postbox=postbox, **WITHOUT_PASSKEY) as made:
        await reachable(made)
        browser = await in_console(made, "operator", ALICE)
        for action in ("renew", "disable", "enable"):
            await go(made, browser, f"{ALICE}/{action}")
            await browser.fill_and_submit(reason=REASON)
            assert browser.page.heading == "alice (Alice Tan)", browser.page.text
        held = await made.provider.registry.factors.credentials("id-alice")
        assert held.password_hash is None
        for action in ("user.remove_factors", "user.disable", "user.enable"):
            (entry,) = await made.audit(action)
            assert entry.detail["reason_given"] == REASON


@pytest.mark.parametrize(
    ("level", "refused"),
    [
        ("support", ("renew", "disable", "enable")),
        ("auditor", ("unlock", "link", "renew", "sign-out", "disable", "enable")),
    ],
)
async def test_what_a_level_may_not_do_is_neither_shown_nor_done(
    level: OperatorLevel, refused: tuple[str, ...]
) -> None:
    """D53: hostile forms with a right token of their own."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await demoted(made, level, f"{ALICE}/unlock")
        before = len(await made.provider.registry.audit.entries(limit=1000))
        for action in refused:
            answer = await send(made, browser, f"{ALICE}/{action}", reason=REASON, choice="password")
            assert answer.status_code == 403, action
        assert len(await made.provider.registry.audit.entries(limit=1000)) == before
        for action in refused:
            assert await go(made, browser, f"{ALICE}/{action}") == 403, action
        await go(made, browser, ALICE)
        assert {url.rpartition("/")[2] for url, _ in browser.page.links if "/id-alice/" in url}.isdisjoint(refused)


async def test_support_does_nothing_to_an_operator() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Operator(user_id="id-alice", level="operator"))
        await made.person("bob", name="Bob Lee")
        browser = await in_console(made, "support", "people/id-bob/unlock")
        for action in ("unlock", "link", "sign-out"):
            assert (await send(made, browser, f"{ALICE}/{action}", reason=REASON, choice="password")).status_code == 404
        assert (await send(made, browser, f"{ALICE}/disable", reason=REASON)).status_code == 403
        assert not await made.audit("user.unlock")


def session_page(browser: Browser) -> str:
    """The page that ends the one session that is listed."""
    target = next(target for target, _ in browser.page.links if "/session/" in target)
    return target.partition("/console/")[2]


async def signed_in_person(made: World) -> Browser:
    theirs = await made.browser()
    await theirs.open(f"{made.base}/account", site="none")
    await made.factors(theirs, made.people["alice"])
    return theirs


@pytest.mark.parametrize("level", ["operator", "support"])
async def test_a_single_session_is_ended_with_a_reason_and_the_others_go_on(level: OperatorLevel) -> None:
    """D30, D53, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await signed_in_person(made)
        made.clock.pass_(60)
        other = await signed_in_person(made)
        browser = await in_console(made, level, ALICE)
        assert "Password and code" in browser.page.text
        page = session_page(browser)
        await go(made, browser, page)
        assert "End this session of alice (Alice Tan)?" in browser.page.heading
        await browser.fill_and_submit(reason="")
        assert "Say why" in browser.page.text
        await browser.fill_and_submit(reason=REASON)
        assert "The session has ended." in browser.page.text
        registry = made.provider.registry
        left = await registry.sessions.list_for_user("id-alice", now=made.clock())
        assert len(left) == 1
        [entry] = await made.audit("session.end")
        assert (entry.actor, entry.object, entry.detail["reason_given"]) == (
            f"operator:id-the-{level}",
            "id-alice",
            REASON,
        )
        assert await go(made, browser, page) == 404
        assert other.response is not None


async def test_an_auditor_sees_sessions_and_ends_none() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await signed_in_person(made)
        auditor = await in_console(made, "auditor", ALICE)
        assert not [target for target, _ in auditor.page.links if "/session/" in target]
        assert "Actions" not in auditor.page.text
        operator = await in_console(made, "operator", ALICE)
        assert "Actions" in operator.page.text
        page = session_page(operator)
        await go(made, operator, page)
        await made.write(Operator(user_id="id-the-operator", level="auditor"))
        assert (await send(made, operator, page, reason=REASON)).status_code == 403
        assert len(await made.provider.registry.sessions.list_for_user("id-alice", now=made.clock())) == 1


async def test_another_persons_session_is_not_found_under_somebody_else() -> None:
    """D30."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await signed_in_person(made)
        browser = await in_console(made, "operator", ALICE)
        page = session_page(browser)
        assert await go(made, browser, page.replace("id-alice", "id-the-operator")) == 404
