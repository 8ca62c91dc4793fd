"""Which passwords a person may choose (D44, D75)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.passwords import PasswordRefused, require_allowed_password

BLOCKED = frozenset({"password1234"})


def choose(password: str, user_name: str = "mei.tan", name: str = "") -> str:
    return require_allowed_password(password, user_name=user_name, name=name, blocklist=BLOCKED)


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


@pytest.mark.parametrize("password", ["annabella and tom", "meeting ANNA at nine"])
def test_a_password_that_contains_the_user_name_is_refused(password: str) -> None:
    """D75: a user name of four characters or more."""
    with pytest.raises(PasswordRefused, match="contains your user name"):
        choose(password, "anna")


@pytest.mark.parametrize(
    ("password", "name"),
    [
        ("harbour contoh lights", "Siti Contoh"),
        ("HARBOURSITILIGHTS", "Siti Contoh"),
        ("a caf\u00e9 for Rene\u0301e", "Ren\u00e9e O'Hara"),
        ("the hara bridge at dusk", "Ren\u00e9e O'Hara"),
    ],
)
def test_a_password_that_contains_a_name_of_the_person_is_refused(password: str, name: str) -> None:
    """D75: a name of four letters or more."""
    with pytest.raises(PasswordRefused, match="contains your name"):
        choose(password, name=name)


def test_a_password_with_a_shorter_name_is_accepted() -> None:
    assert choose("annual reports in may", "ann", "Ann Lim") == "annual reports in may"
    assert choose("a long one, really", "") == "a long one, really"


@pytest.mark.parametrize("space", ["\u00a0", "\u2007", "\u202f", "\u3000"])
def test_every_space_is_the_same_space(space: str) -> None:
    """RFC 8265 §4.2.2, D75: length and blocklist are of the mapped text."""
    assert choose(f"horse{space}battery{space}staple") == "horse battery staple"
    with pytest.raises(PasswordRefused, match="try first"):
        require_allowed_password(
            f"correct{space}horse", user_name="mei.tan", name="", blocklist=frozenset({"correct horse"})
        )


def test_nothing_else_is_mapped_or_prohibited() -> None:
    """D75: none of the prohibitions of RFC 8265 §4.2.1."""
    assert choose("a\tb\u200bc\uff21d\u2028e\x85 f g h") == "a\tb\u200bc\uff21d\u2028e\x85 f g h"


@given(st.text(max_size=600))
def test_any_text_is_either_accepted_in_nfc_or_refused(password: str) -> None:
    try:
        chosen = choose(password)
    except PasswordRefused:
        return
    assert unicodedata.is_normalized("NFC", chosen)
    assert 12 <= len(chosen) <= 128
