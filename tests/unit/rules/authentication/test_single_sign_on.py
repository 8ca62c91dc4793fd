"""Whether a signed-in browser may skip signing in (D30, D40, OpenID Connect Core §3.1.2.1)."""

from __future__ import annotations

from typing import Any

import pytest

from corpid.rules.authentication import sign_in
from tests.unit.rules.oauth.given import NOW, PREFIX, request


def suffices(age: int = 100, level: int = 2, **asked: Any) -> bool:
    return sign_in.sign_in_suffices(request(**asked), auth_time=int(NOW) - age, level=level, acr_prefix=PREFIX, now=NOW)


def test_a_sign_in_of_the_asked_level_suffices_for_as_long_as_the_session_lives() -> None:
    assert suffices()
    assert suffices(age=10**6)
    assert suffices(prompt=("none",))
    assert suffices(prompt=("consent", "select_account"))


@pytest.mark.parametrize(("max_age", "enough"), [(0, False), (99, False), (100, False), (101, True)])
def test_a_sign_in_must_be_younger_than_max_age(max_age: int, enough: bool) -> None:
    """0 always asks, as prompt=login does."""
    assert suffices(max_age=max_age) is enough
    assert suffices(age=0, max_age=0) is False


@pytest.mark.parametrize(
    ("max_age", "age", "enough"),
    [
        (None, 10**6, True),
        (0, 0, True),
        (0, 599, True),
        (0, 600, False),
        (60, 600, False),
        (900, 899, True),
        (900, 900, False),
    ],
)
def test_a_sign_in_made_for_the_request_answers_it_for_max_age_and_ten_minutes_at_least(
    max_age: int | None, age: int, enough: bool
) -> None:
    """D15, D40: whatever max_age is, there is time for the pages that follow."""
    asked = request(max_age=max_age)
    assert sign_in.still_suffices(asked, auth_time=int(NOW) - age, now=NOW) is enough


def test_login_asks_always() -> None:
    assert not suffices(prompt=("login",))
    assert not suffices(prompt=("consent", "login"))


def test_another_level_does_not_suffice() -> None:
    assert not suffices(level=1)
    assert not suffices(acr="urn:other:2")


def test_prompt_says_which_page_is_wanted() -> None:
    for name, asks in (
        ("select_account", sign_in.requests_entity_choice),
        ("consent", sign_in.requests_consent),
        ("none", sign_in.forbids_pages),
    ):
        assert asks(request(prompt=(name,)))
        assert not asks(request())
