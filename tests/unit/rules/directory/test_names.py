"""Names of people, entities and clients (D51)."""

from __future__ import annotations

import precis_i18n
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.directory.names import display_name, mixed_scripts, user_name


@pytest.mark.parametrize(
    ("typed", "mapped"),
    [("Rina.Tan", "rina.tan"), ("\uff32\uff29\uff2e\uff21", "rina"), ("e\u0301", "\xe9"), ("straße", "straße")],
)
def test_a_user_name_has_one_form_however_it_is_typed(typed: str, mapped: str) -> None:
    """RFC 8265 §3.3: width, case and composition are mapped."""
    assert user_name(typed) == mapped


@pytest.mark.parametrize("typed", ["", "a b", "ri\u200bna", "\u202erina", "ﬁona", "a\0", "x" * 129, "\ud800"])
def test_a_text_that_is_no_user_name_is_refused_with_a_reason(typed: str) -> None:
    with pytest.raises(ValueError, match="user name"):
        user_name(typed)


@given(st.text())
def test_mapping_a_user_name_twice_changes_nothing(text: str) -> None:
    """D51: unique after the mapping, so the mapping must be stable."""
    try:
        mapped = user_name(text)
    except ValueError:
        return
    assert user_name(mapped) == mapped


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=128))
def test_an_ascii_user_name_is_what_the_profile_makes_of_it(text: str) -> None:
    """RFC 8265 §3.3: for most names CorpID does not ask the library, and must agree with it."""
    try:
        mapped = precis_i18n.get_profile("UsernameCaseMapped").enforce(text)
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="user name"):
            user_name(text)
        return
    assert user_name(text) == mapped


@pytest.mark.parametrize(
    "name", ["", "  ", "a\u200bb", "a\u202eb", "a\nb", "a\0", "a\u00adb", "\u3164", "a\ufe0f", "\ud800"]
)
def test_invisible_characters_never_enter_a_name(name: str) -> None:
    """D51: no control, bidi or zero-width characters."""
    with pytest.raises(ValueError):
        display_name(name)


def test_a_name_is_composed_and_its_spaces_are_single() -> None:
    assert display_name("  Ame\u0301lie \u00a0 Example ") == "Amélie Example"


@pytest.mark.parametrize(
    "name", ["Example Pte. Ltd.", "見本商事 KK", "はるか カナ 見本 Ltd", "Пример 42", "한국 Ltd 見本"]
)
def test_names_in_one_writing_system_are_not_flagged(name: str) -> None:
    assert mixed_scripts(name) == frozenset()


def test_a_name_that_mixes_scripts_is_flagged_with_the_scripts() -> None:
    """D51: a Cyrillic letter among Latin ones looks like another name."""
    assert mixed_scripts("\u0415xample") == {"CYRILLIC", "LATIN"}
