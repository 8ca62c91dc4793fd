"""Links whose code is in no request's address; looking at them binds and spends nothing (D34, D35, D47, D48)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pytest
from msgspec.structs import replace

from corpid.flows.directory.write import write_changes
from corpid.rules.authentication import records, totp
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Change
from tests.enrolment import newcomer
from tests.enrolment.newcomer import ELSEWHERE, GONE, NINA, SET_UP
from tests.postbox import Postbox
from tests.sign_in.test_entity_selection import statements
from tests.sign_in.world import FORM, PASSWORD, SECRET, World, cookies_of, form_of, new_world, wear

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from corpid_dev.relying_party.browser import Browser

ASKS: Final = "Enter your code"
FIRST: Final = "Choose how you sign in"
WRONG: Final = "0000-0000-0000-0000-0000"
FREE: Final = 20
"""wrong codes from one address, before it has to wait"""


async def at_the_page(made: World, address: str = "127.0.0.1") -> Browser:
    """A new browser that was shown the page that takes codes."""
    browser = await made.browser(address)
    await browser.open(f"{made.base}/enrol")
    return browser


async def typed(made: World, code: str, address: str = "127.0.0.1") -> Browser:
    """A new browser without script, in which this was typed."""
    browser = await at_the_page(made, address)
    await browser.fill_and_submit(code=code)
    return browser


@contextmanager
def heard(browser: Browser) -> Iterator[list[httpx.Response]]:
    """What a browser asks for meanwhile, and the answers."""
    answers: list[httpx.Response] = []

    async def hear(answer: httpx.Response) -> None:
        answers.append(answer)

    browser.http.event_hooks = {"response": [hear]}
    try:
        yield answers
    finally:
        browser.http.event_hooks = {}


async def test_no_address_that_is_asked_for_or_led_to_holds_the_code_of_a_link(made: World) -> None:
    """D48: from the e-mail to the end of an enrolment, the pictures too."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await made.browser()
    with heard(browser) as answers:
        await newcomer.followed(browser, url)
        await browser.submit(browser.page.forms[0])
        await browser.http.get(f"{browser.url}/qr.svg")
        await newcomer.password(browser)
        await newcomer.app(made, browser)
        assert await newcomer.kept(browser) == SET_UP
    addresses = [unquote(str(answer.request.url) + answer.headers.get("location", "")) for answer in answers]
    assert len(addresses) > 8
    for address in addresses:
        assert records.canonical(url) not in address.upper().replace("-", ""), address
    referrers = [answer.request.headers.get("referer", "") for answer in answers]
    assert not any(urlsplit(url).fragment in referrer for referrer in referrers)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_looking_at_any_address_of_a_link_spends_and_binds_nothing(made: World, method: str) -> None:
    """D34: a scanner that asks for whatever it finds, with the owner's cookie or without."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    owner = await made.browser()
    await newcomer.followed(owner, url)
    scanner = await made.http("192.0.2.77")
    code = urlsplit(url).fragment
    found = (
        url,
        owner.url,
        f"{made.base}/enrol/{code}",
        f"{made.base}/enrol?code={code}",
        f"{owner.url}?code={code}",
    )
    for address in found:
        for http in (scanner, owner.http):
            answer = await http.request(method, address, follow_redirects=True)
            assert answer.status_code in (200, 410), address
    await owner.submit(owner.page.forms[0])
    assert owner.page.heading == FIRST


async def test_a_scanner_that_runs_scripts_binds_nothing(made: World) -> None:
    """D34: the page's script posts the code there, too; whoever presses the button first begins."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    scanner = await made.browser()
    for _ in range(3):
        await newcomer.followed(scanner, url)
        assert scanner.page.heading == "Set up your sign-in"
    owner = await newcomer.opened(made, url)
    assert owner.page.heading == FIRST
    await scanner.submit(scanner.page.forms[0])
    assert scanner.page.heading == ELSEWHERE


async def test_what_names_an_opened_link_in_an_address_works_in_its_browser_alone(made: World) -> None:
    """D34: another one, with a cookie or without, is asked for the code."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    owner = await made.browser()
    await newcomer.followed(owner, url)
    for other in (await made.browser(), await at_the_page(made)):
        await other.open(owner.url)
        assert other.page.heading == ASKS
        fields = form_of(owner, "form_token")
        answer = await other.http.post(
            owner.url, data=fields, headers={"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/enrol")
    second = await made.browser()
    await newcomer.followed(second, url)
    assert second.url != owner.url
    await owner.submit(owner.page.forms[0])
    assert owner.page.heading == FIRST


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_address_with_a_secret_in_its_path_opens_nothing_and_says_what_to_do(made: World, method: str) -> None:
    """D48: links as they were once; nothing is looked up, not even a code that holds, and nothing is spent."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    for secret in ("A" * 43, urlsplit(url).fragment, "%00/x"):
        http = await made.http()
        with statements(made) as said:
            answer = await http.request(
                method,
                f"{made.base}/enrol/{secret}",
                headers={"Accept": "text/html", "Content-Type": FORM, "Sec-Fetch-Site": "same-origin"},
            )
        assert answer.status_code == 410
        assert "Ask for a new link" in answer.text
        assert 'href="/enrol"' in answer.text
        assert "Nina" not in answer.text
        assert (said, "set-cookie" in answer.headers) == ([], False)
    assert (await newcomer.opened(made, url)).page.heading == FIRST


async def test_a_slash_too_many_leads_to_the_page_that_takes_codes(made: World) -> None:
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol/")
    assert (browser.url, browser.page.heading) == (f"{made.base}/enrol", ASKS)


async def test_without_script_the_code_is_typed_in_any_form(made: World) -> None:
    """Small letters, without dashes, with gaps, or the whole link."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    code = records.canonical(url)
    for form in (code.lower(), " ".join(code), url):
        browser = await typed(made, form)
        assert browser.page.heading == "Set up your sign-in", form
        assert "Nina Novak" in browser.page.text
    await browser.submit(browser.page.forms[0])
    assert browser.page.heading == FIRST


async def test_a_forgotten_password_is_replaced_with_a_code_that_was_typed_on_another_device() -> None:
    """D44: from its own line in the e-mail."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        browser = await made.browser()
        await browser.open(f"{made.base}/recover")
        await browser.fill_and_submit(user_name="nina")
        await made.provider.background_tasks.settle()
        lines = postbox.emails[0].text.splitlines()
        code = urlsplit(newcomer.link_in(postbox)).fragment
        assert code in lines
        other = await typed(made, code, "192.0.2.5")
        await other.submit(other.page.forms[0])
        await other.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        assert await newcomer.password(other) == "Your password has been changed"


async def test_a_code_that_opens_nothing_is_refused_beside_its_field_and_kept(made: World) -> None:
    """A typing error is mended, not begun again. A link that was followed has no such error."""
    browser = await typed(made, WRONG)
    assert (newcomer.status(browser), "This code does not work" in browser.page.text) == (200, True)
    form = browser.page.form_with("code")
    assert form is not None
    assert dict(form.fields(None))["code"] == WRONG
    for short in ("", "0000", WRONG + "0"):
        browser = await typed(made, short)
        assert (newcomer.status(browser), "Enter all 20 letters and digits" in browser.page.text) == (200, True)
    await newcomer.followed(browser, f"{made.base}/enrol#{WRONG}")
    assert (newcomer.status(browser), browser.page.heading) == (404, GONE)


async def test_guessing_codes_is_slowed_for_an_address_and_for_nobody_else(made: World) -> None:
    """D47: also the right code has to wait then; typing errors that cannot be a code are not counted."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await at_the_page(made, "192.0.2.1")
    for _ in range(FREE):
        await browser.fill_and_submit(code="too short")
        await browser.fill_and_submit(code=WRONG)
        assert newcomer.status(browser) == 200
    await browser.fill_and_submit(code=WRONG)
    await browser.fill_and_submit(code=urlsplit(url).fragment)
    answer = newcomer.shown(browser)
    assert (answer.status_code, browser.page.heading) == (429, ASKS)
    assert int(answer.headers["retry-after"]) >= 1
    assert "Too many attempts." in browser.page.text
    assert newcomer.status(await typed(made, urlsplit(url).fragment, "192.0.2.1")) == 429
    assert newcomer.status(await typed(made, urlsplit(url).fragment, "192.0.2.2")) == 200
    made.clock.pass_(900)
    assert newcomer.status(await typed(made, urlsplit(url).fragment, "192.0.2.1")) == 200


async def test_many_people_with_one_address_open_their_links(made: World) -> None:
    """D47: a link that opens costs its address nothing, and brings nothing either."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    for _ in range(2 * FREE):
        assert newcomer.status(await typed(made, url)) == 200
    browser = await at_the_page(made)
    for _ in range(FREE):
        await browser.fill_and_submit(code=WRONG)
        assert newcomer.status(browser) == 200
    await browser.fill_and_submit(code=WRONG)
    await browser.fill_and_submit(code=WRONG)
    assert newcomer.status(browser) == 429


async def test_nothing_is_stored_for_a_browser_before_it_has_opened_a_link(made: World) -> None:
    """D34: and its cookie value proves itself, so other tabs keep their forms."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    await at_the_page(made)
    with statements(made) as said:
        browser = await at_the_page(made)
        await browser.fill_and_submit(code="too short")
        await browser.reload()
    assert [each for each in said if not each.lstrip().upper().startswith("SELECT")] == []
    before = cookies_of(browser)
    await browser.open(f"{made.base}/enrol")
    assert cookies_of(browser) == before
    await newcomer.followed(browser, url)
    assert browser.page.heading == "Set up your sign-in"
    assert before.pop("corpid_form"), "D73: what was typed, which is not kept here"
    assert cookies_of(browser) == before


@pytest.mark.parametrize("planted", ["", "x", "A" * 42, "B" * 44, "ä" * 43])
async def test_a_cookie_value_that_is_not_ours_is_replaced(made: World, planted: str) -> None:
    """D34"""
    http = await made.http()
    answer = await http.get(f"{made.base}/enrol", headers=[(b"cookie", f"corpid={planted}".encode())])
    value = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert (len(value), value != planted) == (43, True)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
async def test_a_form_of_another_site_or_another_page_opens_and_begins_nothing(made: World, site: str | None) -> None:
    """D35"""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await at_the_page(made)
    fields = {**form_of(browser, "code"), "code": urlsplit(url).fragment}
    headers = {"Content-Type": FORM, **({"Sec-Fetch-Site": site} if site else {})}
    own = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    page = f"{made.base}/enrol"
    assert (await browser.http.post(page, data=fields, headers=headers)).status_code == 400
    assert (await browser.http.post(page, data={**fields, "form_token": "x"}, headers=own)).status_code == 400
    others = form_of(await at_the_page(made), "code")
    assert (await browser.http.post(page, data={**fields, **others}, headers=own)).status_code == 400
    await newcomer.followed(browser, url)
    token = fields["form_token"]
    assert (await browser.http.post(browser.url, data={"form_token": token}, headers=own)).status_code == 400
    assert (await newcomer.opened(made, url)).page.heading == FIRST


async def test_a_link_that_ended_after_it_was_opened_says_so(made: World) -> None:
    """D50: and a browser that lost its cookie is asked for the code."""
    await newcomer.nina(made)
    browser = await made.browser()
    await newcomer.followed(browser, await newcomer.link(made))
    cookies = cookies_of(browser)
    wear(browser, {})
    await browser.reload()
    assert browser.page.heading == ASKS
    wear(browser, cookies)
    await newcomer.followed(browser, await newcomer.link(made))
    begin = browser.page.forms[0]
    await newcomer.link(made, user_id=NINA)
    await browser.submit(begin)
    assert (newcomer.status(browser), browser.page.heading) == (404, GONE)


@pytest.mark.parametrize("purpose", ["invitation", "password", "second_factor"])
@pytest.mark.parametrize("opened", [False, True])
async def test_a_link_ends_when_the_address_that_it_went_to_is_the_persons_no_more(
    made: World, purpose: Any, opened: bool
) -> None:
    """D50, D69: an operator corrects an address, or writes another one because somebody else reads the mailbox."""
    await newcomer.nina(made)
    if purpose != "invitation":
        held = Credentials(user_id=NINA, password_hash=await made.passwords.hash(PASSWORD), totp_secret=SECRET)
        await made.write(held)
    url = await newcomer.link(made, purpose)
    browser = await made.browser()
    if opened:
        await newcomer.followed(browser, url)
    user = await made.provider.registry.directory.user(NINA)
    assert user is not None
    change = Change(user, replace(user, email="nina.novak@example.org"))
    await write_changes(made.provider.registry, CommandLine(by="lee@node1"), [change])
    if opened:
        await browser.open(browser.url)
    else:
        await newcomer.followed(browser, url)
    assert browser.page.heading == GONE
