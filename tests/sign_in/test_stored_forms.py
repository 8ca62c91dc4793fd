"""Forms of the sign-in survive Back and Reload: what is not accepted is a redirect away (D73)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from corpid.flows import encrypted_values
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.limits import INTERACTION_EXTENSIONS
from corpid.texts import Phrase, counted, phrase
from tests.contexts import context
from tests.sign_in.world import PASSWORD, World, cookies_of, form_of, post, rejected, walk_to, wear

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

WRONG = {"user_name": "alice", "password": "wrong horse battery"}
NOT_RIGHT = "The user name or password is not right."
TEN_MINUTES = 600


async def at_password(made: World) -> Browser:
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    return browser


async def test_a_reload_counts_nothing_and_shows_the_error_and_what_was_typed(made: World) -> None:
    """D73, D47: one attempt, however often the page is loaded again; the right password is then taken at once."""
    browser = await at_password(made)
    await browser.fill_and_submit(**WRONG)
    for _ in range(8):
        assert browser.response is not None
        assert (browser.response.request.method, browser.response.status_code) == ("GET", 200)
        assert NOT_RIGHT in browser.page.text
        assert form_of(browser, "password")["user_name"] == "alice"
        assert "wrong horse" not in browser.response.text
        await browser.reload()
    assert len(await made.audit("sign_in.password")) == 1
    await made.password(browser, made.people["alice"])
    assert browser.page.heading == "Enter your 6-digit code"


async def test_more_time_keeps_the_error_and_what_was_typed(made: World) -> None:
    """D73, WCAG 2.2.1: without JavaScript, and also once no more time is given."""
    browser = await at_password(made)
    await browser.fill_and_submit(**WRONG)
    fields = form_of(browser, "password")
    for _ in range(INTERACTION_EXTENSIONS):
        await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
        assert NOT_RIGHT in browser.page.text
        assert form_of(browser, "password")["user_name"] == "alice"
    answer = await post(browser, "extend", {name: fields[name] for name in ("form_token", "step", "entered")})
    page = (await rejected(browser, answer)).text
    assert "You cannot get more time for this sign-in." in page
    assert NOT_RIGHT in page
    assert 'value="alice"' in page
    assert len(await made.audit("sign_in.password")) == 1


async def test_back_shows_the_page_before_without_the_error(made: World) -> None:
    """D73."""
    browser = await at_password(made)
    before = browser.url
    await browser.fill_and_submit(**WRONG)
    await browser.open(before, site="same-origin")
    assert NOT_RIGHT not in browser.page.text
    await made.password(browser, made.people["alice"])
    assert browser.page.heading == "Enter your 6-digit code"


async def test_what_was_kept_for_a_step_is_not_shown_at_the_next(made: World) -> None:
    """D73: until the next submission of that form."""
    browser = await at_password(made)
    await browser.fill_and_submit(**WRONG)
    kept = browser.url
    await made.password(browser, made.people["alice"])
    await browser.open(kept, site="same-origin")
    assert browser.page.heading == "Enter your 6-digit code"
    assert NOT_RIGHT not in browser.page.text
    await browser.fill_and_submit(code="000000")
    await browser.reload()
    assert "is not right" in browser.page.text


async def test_another_language_keeps_the_error_and_what_was_typed(made: World) -> None:
    """D73: the sentence is said in the language that was picked."""
    browser = await at_password(made)
    await browser.fill_and_submit(**WRONG)
    malay = next(url for url, _ in browser.page.links if "/language/ms" in url)
    await browser.open(urljoin(browser.url, malay), site="same-origin")
    assert browser.response is not None
    assert 'lang="ms"' in browser.response.text
    assert NOT_RIGHT not in browser.page.text
    assert form_of(browser, "password")["user_name"] == "alice"
    assert 'aria-invalid="true"' in browser.response.text
    assert len(await made.audit("sign_in.password")) == 1


@pytest.mark.parametrize("action", ["password", "code"])
async def test_identical_bytes_of_one_page_count_once(made: World, action: str) -> None:
    """D73: one after the other, and at the same moment; both lead to the same page."""
    browser = await at_password(made)
    fields = {**form_of(browser, "password"), **WRONG}
    if action == "code":
        await made.password(browser, made.people["alice"])
        fields = {**form_of(browser, "code"), "code": "000000"}
    answers = await asyncio.gather(*(post(browser, action, fields) for _ in range(2)))
    answers += [await post(browser, action, fields) for _ in range(6)]
    for answer in answers:
        assert "is not right" in (await rejected(browser, answer)).text
    audited = "sign_in.password" if action == "password" else "sign_in.second_factor"
    assert [each.outcome for each in await made.audit(audited)].count("refused") == 1
    await browser.open(browser.url, site="same-origin")
    if action == "password":
        await made.password(browser, made.people["alice"])
    await made.code(browser, made.people["alice"])
    assert browser.page.heading == "Choose who you act for"


async def test_the_same_typed_again_on_the_page_with_the_error_is_another_attempt(made: World) -> None:
    """D73: the page is a new one."""
    browser = await at_password(made)
    for _ in range(3):
        await browser.fill_and_submit(**WRONG)
    assert len(await made.audit("sign_in.password")) == 3


async def test_repeated_bytes_cost_no_password_check(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """D44, D73: hashing is shared by everybody, so what is no further attempt is not tried either."""
    browser, checked = await at_password(made), []
    verify = made.passwords.verify

    async def counting(*given: object, **named: object) -> bool:
        checked.append(given)
        return await verify(*given, **named)  # type: ignore[arg-type]

    fields = {**form_of(browser, "password"), **WRONG}
    cookies = cookies_of(browser)
    monkeypatch.setattr(type(made.provider.passwords), "verify", lambda _, *given, **named: counting(*given, **named))
    for _ in range(5):
        await rejected(browser, await post(browser, "password", fields))
    assert len(checked) == 1
    elsewhere = await made.browser("203.0.113.9")
    elsewhere.url = browser.url
    wear(elsewhere, cookies)
    for _ in range(10):
        await rejected(elsewhere, await post(elsewhere, "password", fields))
    assert len(checked) == 2
    made.clock.pass_(890 - made.clock() % 900)
    for _ in range(10):
        await post(browser, "password", fields)
    made.clock.pass_(20)
    checked.clear()
    for _ in range(10):
        await post(browser, "password", fields)
    assert len(checked) <= 2
    assert len(await made.audit("sign_in.password")) <= 2


async def test_another_browser_sees_nothing_of_a_kept_form(made: World) -> None:
    """D73, D34: who knows the address has no page of it."""
    browser, stranger = await at_password(made), await made.browser("203.0.113.9")
    await walk_to(made, stranger, await made.relying_party())
    await browser.fill_and_submit(**WRONG)
    await stranger.open(browser.url)
    assert stranger.response is not None
    assert stranger.response.status_code == 403
    assert "alice" not in stranger.response.text
    wear(stranger, cookies_of(browser))
    await stranger.open(browser.url)
    assert "alice" in stranger.response.text


async def test_after_ten_minutes_nothing_is_kept(made: World) -> None:
    """D73."""
    browser = await at_password(made)
    await browser.fill_and_submit(**WRONG)
    shown = browser.url
    made.clock.pass_(TEN_MINUTES - 1)
    await browser.reload()
    assert NOT_RIGHT in browser.page.text
    await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
    made.clock.pass_(1)
    await browser.open(shown, site="same-origin")
    assert browser.page.heading == "Sign in"
    assert NOT_RIGHT not in browser.page.text


async def test_a_kept_form_holds_no_secret_and_opens_only_at_its_place(made: World) -> None:
    """D73: encrypted, for ten minutes, without secrets; texts are translated when they are shown."""
    at = await context(made.provider)
    said = (
        ("code", phrase("Return to {name}", name=phrase("Your account"))),
        ("", counted(3, "{count} minute left", "{count} minutes left")),
    )
    kept = StoredForm(fields={"user_name": "alice", "password": PASSWORD, "form_token": "x"}, errors=said)
    sealed = encrypted_values.encrypt_form(at, ("sign-in", "one", "1"), kept)
    assert "alice" not in sealed
    opened = encrypted_values.decrypt_form(at, ("sign-in", "one", "1"), sealed)
    assert opened is not None
    assert opened.fields == {"user_name": "alice"}
    assert opened.errors == said
    assert all(isinstance(text, Phrase) for _, text in opened.errors)
    assert opened.errors[0][1].values == said[0][1].values
    for place in (("sign-in", "two", "1"), ("sign-in", "one", "2"), ("sign-in", "one")):
        assert encrypted_values.decrypt_form(at, place, sealed) is None
    assert encrypted_values.decrypt_form(at, ("sign-in", "one", "1"), f"A{sealed[1:]}") is None
