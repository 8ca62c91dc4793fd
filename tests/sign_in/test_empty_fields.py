"""A form that was sent with an empty field says which, and is no attempt (D47, WCAG 3.3.1)."""

from __future__ import annotations

import pytest

from corpid.rules.authentication.records import Credentials
from tests.sign_in.world import PASSWORD, SECRET, World, form_of, post, rejected, walk_to

NAME, WORD = "Enter your user name.", "Enter your password."


@pytest.mark.parametrize(
    ("typed", "said", "unsaid"),
    [
        ({"user_name": "alice", "password": ""}, [WORD], [NAME]),
        ({"user_name": "", "password": PASSWORD}, [NAME], [WORD]),
        ({"user_name": "", "password": ""}, [NAME, WORD], []),
        ({}, [NAME, WORD], []),
    ],
    ids=["no password", "no user name", "neither", "no fields"],
)
async def test_the_page_names_each_empty_field_and_keeps_the_other(
    made: World, typed: dict[str, str], said: list[str], unsaid: list[str]
) -> None:
    """WCAG 3.3.1, docs/accessibility.md: in the summary and beside the field; nothing is audited, the step stays."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    answer = await rejected(browser, await post(browser, "password", {**form_of(browser, "password"), **typed}))
    for sentence in said:
        assert answer.text.count(sentence) == 2
    for sentence in unsaid:
        assert sentence not in answer.text
    assert ('value="alice"' in answer.text) == (typed.get("user_name") == "alice")
    assert PASSWORD not in answer.text
    assert await made.audit("sign_in.password") == []
    await made.factors(browser, made.people["alice"])


async def test_empty_fields_are_no_attempts(made: World) -> None:
    """D47: more of them than would slow guessing leave the right password and code to be taken at once."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    for _ in range(20):
        fields = {**form_of(browser, "password"), "user_name": "alice", "password": ""}
        assert (await post(browser, "password", fields)).status_code == 303
    await made.password(browser, made.people["alice"])
    for number in range(20):
        typed = ["", " ", "-", "\u200b\u00a0"][number % 4]
        answer = await rejected(browser, await post(browser, "code", {**form_of(browser, "code"), "code": typed}))
        assert answer.text.count("Enter the code.") == 2
    await made.code(browser, made.people["alice"])
    assert [entry.outcome for entry in await made.audit("sign_in.password")] == ["ok"]


async def test_an_empty_field_of_a_page_that_is_no_longer_current_leads_to_the_current_page(made: World) -> None:
    """D15, WCAG 3.3.1: if the sign-in has lapsed or moved on, no error names a field that its page does not have."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ["password"])
    late = form_of(browser, "code")
    assert (await post(browser, "password", late)).status_code == 303
    password_hash = await made.passwords.hash("another horse battery")
    await made.write(Credentials(user_id="id-alice", password_hash=password_hash, totp_secret=SECRET))
    for code in ("", "123456"):
        assert (await post(browser, "code", {**late, "code": code})).status_code == 303
