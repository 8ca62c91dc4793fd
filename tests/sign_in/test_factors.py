"""Password and code: what is accepted, and what a refusal gives away (D44, D45, D51)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pyotp
import pytest
from argon2 import PasswordHasher

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import User
from corpid.rules.limits import CODE_MISSES
from tests.sign_in.test_entity_selection import statements
from tests.sign_in.world import (
    PASSWORD,
    SECRET,
    World,
    entity,
    form_of,
    new_world,
    post,
    query_of,
    rejected,
    walk_to,
    way_back,
)

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

STEP = 30
VERIFY = PasswordHasher.verify


def code_at(now: float) -> str:
    return pyotp.TOTP(SECRET).at(int(now))


async def at_password(made: World) -> Browser:
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    return browser


async def at_code(made: World) -> Browser:
    browser = await at_password(made)
    await made.password(browser, made.people["alice"])
    return browser


async def type_code(browser: Browser, code: str) -> str:
    """Sends a code; the heading that is shown then."""
    await browser.fill_and_submit(code=code)
    return browser.page.heading


def without_ids(answer: httpx.Response, user_name: str) -> tuple[int, str, list[tuple[str, str]]]:
    """What is left of an answer when identifiers, tokens and the typed user name are taken out."""
    body = re.sub(r"/sign-in/[\w-]{43}", "/sign-in/ID", answer.text)
    body = re.sub(r'(name="form_token" value=")[\w.-]+', r"\1TOKEN", body)
    body = re.sub(r"(&#34;challenge&#34;: &#34;)[\w-]+", r"\1CHALLENGE", body)
    headers = [(name, value) for name, value in answer.headers.items() if name != "content-length"]
    return answer.status_code, body.replace(f'value="{user_name}"', 'value="NAME"'), headers


def without_moment_and_sign_in(body: str) -> str:
    """A page without the end of its time, and without the sign-in that the link for a forgotten password names."""
    return re.sub(r"<time[^>]*>[^<]*</time>|(?<=recover\?sign_in=)[\w-]{43}", "", body)


async def test_an_unknown_user_gets_the_same_answer_as_a_wrong_password(made: World) -> None:
    """D44, D28: status, headers and body, but for identifiers; also a disabled one and an impossible name."""
    await made.person("gone", enabled=False)
    answers = []
    for user_name, password in (
        ("alice", "wrong horse battery"), ("nobody", PASSWORD), ("gone", PASSWORD), ("not a name", PASSWORD),
        ("nobody", " "), ("alice", " "), ("alice", PASSWORD + "x"), ("alice", PASSWORD.upper()), ("x" * 5000, PASSWORD),
    ):  # fmt: skip
        browser = await at_password(made)
        fields = {**form_of(browser, "password"), "user_name": user_name, "password": password}
        answers.append(without_ids(await rejected(browser, await post(browser, "password", fields)), user_name[:400]))
        made.clock.now += 3600
        made.provider.registry_cache.drop()
    first = without_moment_and_sign_in(answers[0][1])
    assert answers[0][0] == 200
    assert "The user name or password is not right." in first
    for status, body, headers in answers[1:]:
        assert (status, headers) == (answers[0][0], answers[0][2])
        assert without_moment_and_sign_in(body) == first


async def test_whoever_is_named_the_same_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """D44: as many statements, and one password check; so nobody learns from the time it takes who exists."""
    checks: list[str] = []

    def counted(hasher: PasswordHasher, password_hash: str, password: bytes) -> bool:
        checks.append(password_hash)
        return VERIFY(hasher, password_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)

    async with new_world() as made:
        await made.person("gone", enabled=False)
        await made.person("keyed")
        await made.write(Credentials(user_id="id-keyed"))
        await made.write(User(user_id="id-new", user_name="new", name="Nobody Yet"))
        told = {}
        for user_name in ("first", "alice", "nobody", "gone", "keyed", "new"):
            browser = await at_password(made)
            fields = {**form_of(browser, "password"), "user_name": user_name, "password": "wrong horse battery"}
            checks.clear()
            with statements(made) as heard:
                assert (await post(browser, "password", fields)).status_code == 303
            told[user_name] = ([said.split("'")[0] for said in heard], len(checks))
        del told["first"]  # which warms up
        assert told["alice"][1] == 1
        for each in told.values():
            assert each == told["alice"]


async def test_a_disabled_person_cannot_go_on_in_the_middle_of_a_sign_in(made: World) -> None:
    """D50."""
    browser = await at_code(made)
    await made.disable("alice")
    assert await type_code(browser, code_at(made.clock())) == "Enter your 6-digit code"
    assert "can no longer sign in" in browser.page.text


async def test_an_account_without_a_second_factor_cannot_sign_in_with_one(made: World) -> None:
    """D45: two factors, always."""
    password_hash = await made.passwords.hash(PASSWORD)
    await made.write(Credentials(user_id="id-alice", password_hash=password_hash))
    browser = await at_password(made)
    await made.password(browser, made.people["alice"])
    assert browser.page.heading == "Sign in"
    assert "none that works here" in browser.page.text


@pytest.mark.parametrize(
    "typed", ["ALICE", "Alice", "\uff41\uff4c\uff49\uff43\uff45", "\uff21\uff2c\uff29\uff23\uff25", " alice "]
)
async def test_the_user_name_works_in_another_case_or_width(made: World, typed: str) -> None:
    """D51, RFC 8265 §3.3: blanks around it, as a paste brings them, do no harm."""
    browser = await at_password(made)
    await browser.fill_and_submit(user_name=typed, password=PASSWORD)
    assert browser.page.heading == "Enter your 6-digit code"


@pytest.mark.parametrize("aside", [-1, 0, 1])
async def test_a_code_of_this_step_or_one_aside_is_accepted(made: World, aside: int) -> None:
    """D45."""
    browser = await at_code(made)
    assert await type_code(browser, code_at(made.clock() + aside * STEP)) == "Choose who you act for"


@pytest.mark.parametrize("aside", [-2, 2])
async def test_a_code_two_steps_aside_is_not_accepted(made: World, aside: int) -> None:
    """D45."""
    browser = await at_code(made)
    assert await type_code(browser, code_at(made.clock() + aside * STEP)) == "Enter your 6-digit code"
    assert "This code is not right." in browser.page.text


@pytest.mark.parametrize("separator", [" ", "\u00a0", "\u2009", "  ", "-", "\u2011", "\u200b"])
async def test_a_code_with_a_gap_as_apps_show_it_is_accepted(made: World, separator: str) -> None:
    """D45, D75: and with blanks around it."""
    browser, code = await at_code(made), code_at(made.clock())
    assert await type_code(browser, f" {code[:3]}{separator}{code[3:]} ") == "Choose who you act for"


@pytest.mark.parametrize(
    "code",
    ["12345", "1234567", "abcdef", "12345\u00b3", "0" * 5000, "-12345"],
)
async def test_what_is_no_code_is_refused_kindly(made: World, code: str) -> None:
    """D45: 303 with a sentence beside the field."""
    browser = await at_code(made)
    assert await type_code(browser, code) == "Enter your 6-digit code"
    assert browser.response is not None
    assert browser.response.status_code == 200
    assert "This code is not right." in browser.page.text


async def test_a_step_works_once_and_no_earlier_one_after_it(made: World) -> None:
    """D45: in whichever browser and at whichever relying party."""
    now = made.clock()
    assert await type_code(await at_code(made), code_at(now)) == "Choose who you act for"
    browser = await at_code(made)
    for used in (code_at(now), code_at(now - STEP)):
        assert await type_code(browser, used) == "Enter your 6-digit code"
    assert await type_code(browser, code_at(now + STEP)) == "Choose who you act for"


async def test_of_ten_simultaneous_uses_of_one_code_in_ten_browsers_one_is_accepted(made: World) -> None:
    """D45: the step is raised by one conditional statement."""
    browsers = [await at_code(made) for _ in range(4)]
    code = code_at(made.clock())
    await asyncio.gather(*(type_code(browser, code) for browser in browsers))
    headings = [browser.page.heading for browser in browsers]
    assert headings.count("Choose who you act for") == 1
    assert headings.count("Enter your 6-digit code") == 3


async def test_five_misses_end_the_sign_in_and_lead_back(made: World) -> None:
    """D45, D17: the page says so, the right code helps no more, and the relying party is told access_denied."""
    browser = await at_code(made)
    where, page = browser.url, browser.page
    for _ in range(CODE_MISSES - 1):
        assert await type_code(browser, "000000") == "Enter your 6-digit code"
        made.clock.pass_(5)
    assert await type_code(browser, "000000") == "This sign-in was stopped"
    target = way_back(browser)
    browser.url, browser.page = where, page
    await type_code(browser, code_at(made.clock()))
    assert query_of(browser.left)["error"] == "access_denied"
    await browser.open(f"{made.base}{target}", site="same-origin")
    assert query_of(browser.left)["error"] == "access_denied"
    assert await made.audit("sign_in.complete") == []


async def test_five_simultaneous_misses_end_it_too(made: World) -> None:
    """D45: counted, not looked up and written."""
    browser = await at_code(made)
    fields = {**form_of(browser, "code"), "code": "000000"}
    await asyncio.gather(*(post(browser, "code", fields | {"guess": str(each)}) for each in range(CODE_MISSES)))
    made.clock.pass_(600 - 1)
    assert len(await made.audit("sign_in.second_factor")) == CODE_MISSES
    assert len(await made.audit("sign_in.refuse")) == 1


async def test_a_password_is_never_shown_again_and_the_user_name_is_kept(made: World) -> None:
    """D44: after an error."""
    browser = await at_password(made)
    await browser.fill_and_submit(user_name="alice", password="wrong horse battery")
    assert form_of(browser, "password")["user_name"] == "alice"
    assert browser.response is not None
    assert "wrong horse battery" not in browser.response.text


async def test_at_the_second_factor_another_person_can_sign_in_instead(made: World) -> None:
    """D15, D47: back to the user name; what was missed and mailed in this sign-in goes on counting."""
    bob = await made.person("bob", entity("200000003A", "Bobs Bakery"))
    browser = await at_code(made)
    for _ in range(CODE_MISSES - 2):
        await type_code(browser, "000000")
        made.clock.pass_(5)
    assert browser.response is not None
    assert "Not <bdi>alice</bdi>? Use another account" in browser.response.text
    fields = {**form_of(browser, "code"), "decision": "other_account"}
    await browser.fill_and_submit("decision", button="other_account")
    assert browser.page.heading == "Sign in"
    assert "alice" not in browser.page.text
    assert (await post(browser, "way", fields)).status_code == 303, "the same form again changes nothing"
    await made.password(browser, bob)
    for _ in range(2):
        await type_code(browser, "000000")
        made.clock.pass_(5)
    assert browser.page.heading == "This sign-in was stopped"
