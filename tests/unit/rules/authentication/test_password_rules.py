"""Which passwords a person may choose (D44)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.password_rules import PasswordRefused, chosen_password

BLOCKED = frozenset({"password1234"})


def choose(password: str, user_name: str = "mei.tan") -> str:
    return chosen_password(password, user_name=user_name, blocklist=BLOCKED)


@pytest.mark.parametrize(
    "password", ["x" * 12, "x" * 128, "a b c d e f g", "1029384756 1", "\U0001f600" * 12, "e\u0301" * 128]
)
def test_twelve_to_128_characters_of_any_kind_are_accepted(password: str) -> None:
    assert choose(password) == unicodedata.normalize("NFC", password)


@pytest.mark.parametrize("password", ["", "x" * 11, "e\u0301" * 11])
def test_fewer_than_twelve_characters_after_nfc_are_refused(password: str) -> None:
    with pytest.raises(PasswordRefused, match="at least 12"):
        choose(password)


@pytest.mark.parametrize("password", ["x" * 129, "e\u0301" * 129, "x" * 65536, "a" + "\u0315\u0300" * 30000])
def test_more_than_128_characters_after_nfc_are_refused(password: str) -> None:
    with pytest.raises(PasswordRefused, match="at most 128"):
        choose(password)


@pytest.mark.parametrize("password", ["password1234", "PassWord1234"])
def test_a_password_of_the_blocklist_is_refused_in_any_case(password: str) -> None:
    with pytest.raises(PasswordRefused, match="try first"):
        choose(password)


@pytest.mark.parametrize("password", ["mei.tan@corp.example", "Mei.Tan@Corp.Example!2026", "mei.tan@corp.example" * 3])
def test_the_user_name_with_a_little_beside_it_is_refused(password: str) -> None:
    with pytest.raises(PasswordRefused, match="user name"):
        choose(password, "mei.tan@corp.example")


def test_a_password_that_only_mentions_the_user_name_is_accepted() -> None:
    assert choose("annabella and tom", "anna") == "annabella and tom"
    assert choose("a long one, really", "") == "a long one, really"


@given(st.text(max_size=600))
def test_any_text_is_either_accepted_in_nfc_or_refused(password: str) -> None:
    try:
        chosen = choose(password)
    except PasswordRefused:
        return
    assert unicodedata.is_normalized("NFC", chosen)
    assert 12 <= len(chosen) <= 128
