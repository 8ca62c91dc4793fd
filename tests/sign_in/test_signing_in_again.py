"""The sign-in that account, portal and console ask for again: of the same person, with a way back (D30, D54)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import Administrator, ListedTestPerson, Membership, Operator
from corpid.rules.limits import INTERACTION_SECONDS, OWN_SESSIONS
from tests.console.scene import WITHOUT_PASSKEY
from tests.developer.scene import developer
from tests.sign_in.factors import ALICE, REFUSED, change, options_of, passkey, use
from tests.sign_in.world import PASSWORD, SECRET, World, form_of, new_world, post, rejected

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ACME: Final = "200000001A"
HIS: Final = "seven grey herons wading"
CONFIRM: Final = "Confirm it is you, Alice Tan"
WRONG: Final = "The password is not right. Check it and try again."
SITES: Final = [("account", "password", 301), ("manage", "invite", 601), ("console", "new-client", 601)]
"""of each site a page that needs a recent sign-in, and the age of one that no longer opens it"""
NOTHING_CHANGED: Final = "You did not sign in again, so nothing has changed. What you entered is still here."
each_site = pytest.mark.parametrize(("site", "page", "late"), SITES, ids=[site for site, *_ in SITES])


async def rights(made: World, who: str = ALICE) -> None:
    await made.write(Administrator(user_id=who, entity_id=ACME, level="owner"), Operator(user_id=who, level="operator"))


async def bob(made: World) -> None:
    """Somebody else, with a password of his own, who administers and operates as Alice does."""
    await made.person("bob", name="Bob Lee")
    await made.write(
        Credentials(user_id="id-bob", password_hash=await made.passwords.hash(HIS), totp_secret=SECRET),
        Membership(user_id="id-bob", entity_id=ACME, membership_id="m-bob"),
    )
    await rights(made, "id-bob")


async def inside(made: World, site: str, page: str = "") -> Browser:
    """A new browser in which Alice is signed in to a site, at one of its pages."""
    browser = await made.browser()
    made.clock.pass_(60)
    await browser.open(f"{made.base}/{site}" + (f"/{page}" if page else ""), site="none")
    await made.factors(browser, made.people["alice"])
    return browser


async def asked_again(made: World, site: str, page: str, late: int, *, at: str = "") -> Browser:
    """A browser in which Alice has followed a link from one page to another, for which her sign-in is too old."""
    await rights(made)
    browser = await inside(made, site, at)
    made.clock.pass_(late)
    await browser.open(f"{made.base}/{site}/{page}", site="same-origin")
    assert browser.page.heading == CONFIRM
    return browser


async def cancel(browser: Browser) -> str:
    """Press Cancel; the address to which that leads."""
    form = next(form for form in browser.page.forms if form.id == "cancel")
    await browser.submit(form)
    return browser.url


def status(browser: Browser) -> int:
    assert browser.response is not None
    return browser.response.status_code


def text_of(browser: Browser) -> str:
    assert browser.response is not None
    return browser.response.text


@each_site
async def test_the_person_is_named_and_their_user_name_is_not_typed(site: str, page: str, late: int) -> None:
    """D54: the person's own name, and the account's user name beside it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await asked_again(made, site, page, late)
        form = browser.page.form_with("user_name", "password")
        assert form is not None
        assert next(each.value for each in form.controls if each.name == "user_name") == "alice"
        assert 'autocomplete="username" readonly="readonly"' in text_of(browser)
        assert browser.page.title.startswith(CONFIRM)
        made.clock.pass_(60)
        await browser.fill_and_submit(password=made.people["alice"].password)
        await made.code(browser, made.people["alice"])
        assert browser.url == f"{made.base}/{site}/{page}?" + (
            "entity=200000001A&again" if site == "manage" else "again"
        )


@each_site
async def test_another_persons_password_is_a_wrong_one(site: str, page: str, late: int) -> None:
    """D47, D54: also if the form names that person; it is counted and written down as any guess at Alice's."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await bob(made)
        browser = await asked_again(made, site, page, late)
        for _ in range(5):
            await browser.fill_and_submit(user_name="bob", password=HIS)
            assert (status(browser), browser.page.heading) == (200, CONFIRM)
            assert WRONG in browser.page.text
            assert "bob" not in text_of(browser)
        found = [each for each in await made.audit("sign_in.password") if each.outcome == "refused"]
        assert [each.actor for each in found] == [f"user:{ALICE}"] * 5
        await made.password(browser, made.people["alice"])  # begins a delay, which ends the free attempts
        await post(browser, "way", {})
        assert (await cancel(browser)).startswith(f"{made.base}/{site}")


async def test_guesses_at_the_password_are_slowed_and_cancel_still_leads_back(made: World) -> None:
    """D47, D54: a locked account."""
    browser = await asked_again(made, *SITES[1])
    for _ in range(7):
        await browser.fill_and_submit(password=HIS)
    assert (status(browser), browser.page.heading) == (429, CONFIRM)
    assert await cancel(browser) == f"{made.base}/manage"


@each_site
async def test_a_passkey_comes_first_and_only_the_persons_own_counts(site: str, page: str, late: int) -> None:
    """D46, D54: the browser is told which ones; another person's is refused as a wrong one."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await bob(made)
        his, hers = await passkey(made, "id-bob"), await passkey(made)
        browser = await asked_again(made, site, page, late)
        text = text_of(browser)
        assert text.index('data-passkey="get"') < text.index('name="password"')
        assert hers.record(ALICE).credential_id in options_of(browser)
        assert his.record("id-bob").credential_id not in options_of(browser)
        assert await use(made, browser, his) == CONFIRM
        assert REFUSED in browser.page.text
        (refused,) = await made.audit("sign_in.passkey")
        assert refused.outcome == "refused"
        assert "is not one of this person's" in refused.detail["reason"]
        await use(made, browser, hers)
        assert browser.url.startswith(f"{made.base}/{site}/{page}?")


async def test_a_person_without_a_passkey_is_offered_none(made: World) -> None:
    """D46, D54: nobody else's could count."""
    browser = await asked_again(made, *SITES[1])
    assert "data-passkey" not in text_of(browser)
    assert "passkey.js" not in text_of(browser)


@pytest.mark.parametrize(
    ("site", "at", "page", "late", "back"),
    [
        ("account", "sign-ins", "password", 301, "sign-ins"),
        ("account", "", "password", 301, ""),
        ("manage", "people?search=al%20b&service=PERMITS", "invite", 601, "people?search=al%20b&service=PERMITS"),
        ("manage", "", "person/m-bob/details", 601, ""),
        ("console", "clients", "new-client", 601, "clients"),
    ],
)
async def test_cancel_leads_back_to_the_page_from_which_the_form_was_opened(
    site: str, at: str, page: str, late: int, back: str
) -> None:
    """D54: as it was, with what was searched for there; the person stays signed in."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await asked_again(made, site, page, late, at=at)
        assert await cancel(browser) == f"{made.base}/{site}" + (f"/{back}" if back else "")
        assert status(browser) == 200
        assert "Alice Tan" in text_of(browser) or site == "account"


@pytest.mark.parametrize(
    "referer",
    [
        None,
        "https://evil.example/manage/history",
        "http://localhost:8080.evil.example/manage/history",
        "http://localhost:8080/managed/history",
        "http://localhost:8080/manage//evil.example",
        "http://localhost:8080/manage/no-such-page",
        "http://localhost:8080/manage/history%0d%0aSet-Cookie:%20a=b",
        "http://localhost:8080/manage/../console",
        "http://localhost:8080/manage/invite",
        "http://localhost:8080/manage/invite/several",
        "http://localhost:8080/account/sign-ins",
    ],
)
async def test_without_such_a_page_cancel_leads_to_the_one_above(made: World, referer: str | None) -> None:
    """D54: never to an address of another site, nor to a form, which would ask for the sign-in again."""
    await rights(made)
    browser = await inside(made, "manage")
    made.clock.pass_(601)
    headers = {"Sec-Fetch-Site": "none"} | ({"Referer": referer} if referer else {})
    answer = await browser.http.get(f"{made.base}/manage/invite/several", headers=headers)
    await browser.open(f"{made.base}{answer.headers['Location']}", site="same-origin")
    assert browser.page.heading == CONFIRM
    assert await cancel(browser) == f"{made.base}/manage"
    assert browser.page.heading == "Home"


@pytest.mark.parametrize(
    ("site", "page", "typed", "heading"),
    [
        ("manage", "invite", {"email": "grace@example.com", "name": "Grace Ho"}, "Invite a person"),
        ("manage", "invite/several", {"people": "grace@example.com"}, "Invite several people"),
        ("manage", "person/m-bob/details", {"name": "Robert Lee"}, "Change details"),
        ("console", "new-client", {"name": "Grace's shop"}, "Register a client"),
        ("console", "switch-maintenance", {"reason": "Back at noon"}, "Turn maintenance on?"),
    ],
)
async def test_cancel_shows_the_form_that_came_too_late_with_what_was_typed(
    site: str, page: str, typed: dict[str, str], heading: str
) -> None:
    """D54: nothing was sent; to send it the person has to sign in all the same, and then finds it again."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await rights(made)
        await bob(made)
        browser = await inside(made, site, page)
        opened, shown = browser.page.heading, browser.url.partition("?")[0]
        made.clock.pass_(901)
        await browser.fill_and_submit(**typed)
        assert browser.page.heading == CONFIRM
        assert opened == heading
        for _ in range(2):
            assert await cancel(browser) == f"{shown}?cancelled"
            await browser.reload()
            assert (status(browser), browser.page.heading) == (200, opened)
            assert site == "console" or NOTHING_CHANGED in browser.page.text
            form = browser.page.form_with(*typed)
            assert form is not None
            assert {name: value.strip() for name, value in form.fields(None)}.items() >= typed.items()
            await browser.fill_and_submit(*typed)
            assert browser.page.heading == CONFIRM
        made.clock.pass_(60)
        await made.factors(browser, made.people["alice"])
        assert browser.url.startswith(f"{shown}?")
        form = browser.page.form_with(*typed)
        assert form is not None
        assert {name: value.strip() for name, value in form.fields(None)}.items() >= typed.items()


@pytest.mark.parametrize("asked", [False, True], ids=["from the list", "from the question"])
@pytest.mark.parametrize("everybody", [False, True])
async def test_a_selection_that_came_too_late_goes_on_at_its_question(asked: bool, everybody: bool) -> None:
    """D54, D81: Cancel leads back to the list as it was narrowed, with the same people selected."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await rights(made)
        await bob(made)
        await made.person("bobby", name="Bobby Lee")
        await made.write(Membership(user_id="id-bobby", entity_id=ACME, membership_id="m-bobby"))
        browser = await inside(made, "manage", "people?q=lee")
        chosen = {"all": "yes"} if everybody else {"select-m-bob": "yes"}
        question = "Suspend 2 people?" if everybody else "Suspend 1 person?"
        if asked:
            await browser.fill_and_submit(**chosen, button="Suspend")
            assert browser.page.heading == question
        made.clock.pass_(901)
        await browser.fill_and_submit(**({} if asked else chosen), button="Suspend")
        assert browser.page.heading == CONFIRM
        await cancel(browser)
        assert browser.page.heading == "People"
        assert NOTHING_CHANGED in browser.page.text
        assert "Select alice" not in browser.page.text
        await browser.fill_and_submit(button="Suspend")
        assert browser.page.heading == CONFIRM
        made.clock.pass_(60)
        await made.factors(browser, made.people["alice"])
        assert browser.page.heading == question
        assert "You have signed in again. Nothing has changed yet" in browser.page.text
        await browser.fill_and_submit("confirmed", button="Suspend")
        assert browser.url.startswith(f"{made.base}/manage/people?q=lee")
        assert "suspended" in browser.page.text


async def test_a_decision_of_the_access_review_that_came_too_late_finds_its_list_again(made: World) -> None:
    """D54: narrowed as it was, with the same people selected."""
    await rights(made)
    await bob(made)
    browser = await inside(made, "manage", "access-review?begin=yes&q=lee")
    made.clock.pass_(901)
    await browser.fill_and_submit(all="yes", button="Keep access")
    assert browser.page.heading == CONFIRM
    made.clock.pass_(60)
    await made.factors(browser, made.people["alice"])
    assert browser.url.startswith(f"{made.base}/manage/access-review?begin=yes&q=lee")
    assert "Select alice" not in browser.page.text
    form = browser.page.form_with("all")
    assert form is not None
    assert [name for name, _ in form.fields(None) if name.startswith("select-")]


async def test_a_form_that_was_not_kept_is_not_opened_by_an_address(made: World) -> None:
    """D54: nor once it is kept no longer."""
    await rights(made)
    browser = await inside(made, "manage", "invite")
    made.clock.pass_(901)
    await browser.open(f"{made.base}/manage/invite?cancelled", site="same-origin")
    assert browser.url == f"{made.base}/manage"
    await browser.open(f"{made.base}/manage/invite", site="same-origin")
    assert browser.page.heading == CONFIRM


async def test_a_late_form_of_the_account_leads_back_to_the_account(made: World) -> None:
    """D45, D54: it is not kept, and a page on which a factor is changed opens only after a sign-in."""
    browser = await inside(made, "account", "password")
    made.clock.pass_(601)
    await browser.fill_and_submit(password=HIS)
    assert browser.page.heading == CONFIRM
    assert await cancel(browser) == f"{made.base}/account"
    assert HIS not in text_of(browser)


@each_site
@pytest.mark.parametrize("step", ["password", "code"])
async def test_another_account_needs_a_plain_sign_in_and_finds_nothing_of_the_person(
    site: str, page: str, late: int, step: str
) -> None:
    """D30, D54: by the link alone; it leads to the first page, and ends the session of the person before."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await bob(made)
        browser = await asked_again(made, site, page, late)
        made.clock.pass_(60)
        if step == "code":
            await made.password(browser, made.people["alice"])
        button = "Not alice ? Use another account"
        assert [
            each.label for form in browser.page.forms for each in form.buttons if each.value == "other_account"
        ] == [button]
        await browser.fill_and_submit("decision", button="other_account")
        assert browser.page.heading == "Sign in"
        assert form_of(browser, "user_name")["user_name"] == ""
        assert "alice" not in text_of(browser).lower()
        await browser.fill_and_submit(user_name="bob", password=HIS)
        await made.code(browser, made.people["bob"])
        assert browser.url == f"{made.base}/{site}"
        assert "You have signed in again" not in browser.page.text
        assert await made.provider.registry.sessions.list_for_user(ALICE, now=made.clock()) == []


async def test_cancel_leads_back_to_the_person_before_also_after_the_link(made: World) -> None:
    """D30, D54: who they are has not changed, since nobody signed in."""
    browser = await asked_again(made, *SITES[1], at="history")
    await browser.fill_and_submit("decision", button="other_account")
    assert await cancel(browser) == f"{made.base}/manage/history"
    assert "Alice Tan" in browser.page.text


@each_site
async def test_once_the_session_has_ended_anybody_may_sign_in(site: str, page: str, late: int) -> None:
    """D30: the page that was open asks for a user name, and Cancel leads to the home page."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await rights(made)
        browser = await inside(made, site)
        (session,) = await made.provider.registry.sessions.list_for_user(ALICE, now=made.clock())
        ends = session.auth_time + OWN_SESSIONS[site].seconds
        while made.clock() < ends - 300:
            made.clock.pass_(min(600, ends - 300 - made.clock()))
            await browser.open(f"{made.base}/{site}", site="same-origin")
        await browser.open(f"{made.base}/{site}/{page}", site="same-origin")
        assert browser.page.heading == CONFIRM
        shown = form_of(browser, "user_name")
        made.clock.pass_(300)
        answer = await rejected(
            browser, await post(browser, "password", {**shown, "user_name": "", "password": PASSWORD})
        )
        assert "Enter your user name." in answer.text
        await browser.reload()
        assert browser.page.heading == "Sign in"
        assert form_of(browser, "user_name")["user_name"] == ""
        assert await cancel(browser) == f"{made.base}/"
        await browser.open(f"{made.base}/{site}/{page}", site="same-origin")
        assert browser.page.heading == "Sign in"


async def test_a_person_who_signed_in_in_another_tab_can_still_confirm_in_this_one(made: World) -> None:
    """D15, D54: each tab has a sign-in of its own."""
    browser = await asked_again(made, *SITES[1])
    first = browser.url
    await browser.open(f"{made.base}/manage/invite/several", site="same-origin")
    made.clock.pass_(60)
    await made.factors(browser, made.people["alice"])
    await browser.open(first, site="same-origin")
    assert browser.page.heading == CONFIRM
    made.clock.pass_(60)
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Invite a person"


async def test_another_tab_with_another_account_leaves_nobody_to_confirm(made: World) -> None:
    """D30, D54: the session of the person before has ended with that sign-in."""
    await bob(made)
    browser = await asked_again(made, *SITES[1])
    first = browser.url
    await browser.open(f"{made.base}/manage?other-account", site="same-origin")
    assert browser.page.heading == "Sign in"
    made.clock.pass_(60)
    await browser.fill_and_submit(user_name="bob", password=HIS)
    await made.code(browser, made.people["bob"])
    await browser.open(first, site="same-origin")
    assert browser.page.heading == "Sign in"


async def test_after_cancel_the_browsers_back_button_finds_a_finished_sign_in_that_leads_on(made: World) -> None:
    """D15, D54."""
    browser = await asked_again(made, *SITES[1], at="history")
    sign_in = browser.url
    await cancel(browser)
    await browser.open(sign_in, site="same-origin")
    assert browser.page.heading == "This sign-in is finished"
    back = next(target for target, _ in browser.page.links if target.endswith("/leave"))
    await browser.open(f"{made.base}{back}", site="same-origin")
    assert browser.url == f"{made.base}/manage/history"


async def test_a_sign_in_that_was_begun_in_vain_for_long_leads_to_the_page_all_the_same(made: World) -> None:
    """D15: it expires as any other."""
    browser = await asked_again(made, *SITES[1])
    made.clock.pass_(INTERACTION_SECONDS)
    await browser.reload()
    assert browser.page.heading == "This sign-in has expired"


async def test_a_person_who_got_another_user_name_meanwhile_confirms_with_that(made: World) -> None:
    """D51, D54: whoever has the old one now does not."""
    browser = await asked_again(made, *SITES[1])
    alice = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(alice, user_name="alice.tan"))
    await bob(made)
    him = await made.provider.registry.directory.user("id-bob")
    await made.write(replace(him, user_name="alice"))
    await browser.reload()
    assert form_of(browser, "user_name")["user_name"] == "alice.tan"
    await browser.fill_and_submit(password=HIS)
    assert status(browser) == 200
    made.clock.pass_(60)
    await browser.fill_and_submit(password=PASSWORD)
    assert browser.page.heading == "Enter your 6-digit code"


async def test_the_second_step_takes_no_other_persons_passkey(made: World) -> None:
    """D45, D54."""
    await bob(made)
    his, _ = await passkey(made, "id-bob"), await passkey(made)
    browser = await asked_again(made, *SITES[1])
    await made.password(browser, made.people["alice"])
    await browser.fill_and_submit("decision", button="passkey")
    await use(made, browser, his)
    assert (status(browser), REFUSED in browser.page.text) == (200, True)


async def test_a_factor_that_changes_after_the_password_asks_the_same_person_again(made: World) -> None:
    """D50, D54."""
    browser = await asked_again(made, *SITES[1])
    await made.password(browser, made.people["alice"])
    stored = await made.provider.registry.factors.credentials(ALICE)
    await change(made, after=replace(stored, password_hash=await made.passwords.hash(HIS)))
    await browser.reload()
    assert browser.page.heading == CONFIRM


async def test_in_developer_mode_one_click_confirms_the_same_person_alone() -> None:
    """D54, D66."""
    both = developer()
    both.add([ListedTestPerson(user_name="bob", name="Bob Lee")])
    async with new_world(developer=both) as made:
        await rights(made)
        await bob(made)
        browser = await inside(made, "manage")
        made.clock.pass_(601)
        await browser.open(f"{made.base}/manage/invite", site="same-origin")
        form = browser.page.form_with("person")
        assert form is not None
        assert [each.value for each in form.buttons if each.name == "person"] == ["alice"]
        forged = {**form_of(browser, "person"), "person": "bob"}
        answer = await rejected(browser, await post(browser, "at-once", forged))
        assert "Choose one of the test people." in answer.text
        await browser.fill_and_submit("person", button="alice")
        assert browser.page.heading == "Invite a person"


@pytest.mark.parametrize(("site", "code"), [("manage", 200), ("console", 403)])
async def test_who_may_do_nothing_here_has_three_ways_out(site: str, code: int) -> None:
    """D53, D54: their account, another account, signing out."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await bob(made)
        browser = await inside(made, site)
        assert status(browser) == code
        ways = {text: target for target, text in browser.page.links}
        assert ways["Your account"] == "/account"
        assert ways["Sign out"] == "/sign-out"
        other = f"{made.base}{ways['Use another account']}"
        await browser.open(other, site="cross-site")
        assert browser.page.heading != "Sign in"
        await browser.open(other, site="same-origin")
        assert browser.page.heading == "Sign in"
        sign_in = browser.url
        assert (await cancel(browser)).startswith(f"{made.base}/{site}")
        assert browser.page.heading.startswith(("You cannot", "You do not"))
        await browser.open(other, site="same-origin")
        assert browser.url != sign_in
        made.clock.pass_(60)
        await browser.fill_and_submit(user_name="bob", password=HIS)
        await made.code(browser, made.people["bob"])
        assert browser.url == f"{made.base}/{site}"
        assert "Bob Lee" in browser.page.text


async def test_an_operator_who_came_without_a_passkey_has_the_same_ways_out(made: World) -> None:
    """D53."""
    await rights(made)
    browser = await inside(made, "console")
    assert browser.page.heading == "Sign in with a passkey"
    assert {"Your account", "Use another account", "Sign out"} <= {text for _, text in browser.page.links}


async def test_a_relying_partys_sign_in_asks_for_the_user_name_as_before() -> None:
    """D40, D54: with prompt=login or max_age too, also while the person is signed in to the portal."""
    async with new_world(session_seconds=3600) as made:
        await rights(made)
        browser = await inside(made, "manage")
        for asked in ({"prompt": "login"}, {"max_age": "1"}):
            rp = await made.relying_party(**asked)
            await browser.open(await rp.begin())
            assert browser.page.heading == "Sign in"
            assert form_of(browser, "user_name")["user_name"] == ""
