"""Names of people, entities and clients (D51)."""

from __future__ import annotations

import precis_i18n
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.characters import printable
from corpid.rules.directory.document import parse
from corpid.rules.directory.memberships import InvalidDetails, check_details
from corpid.rules.directory.names import fold_text, mixed_scripts, user_name, without_marks
from corpid.rules.directory.nodes import DirectoryError, json_value
from corpid.rules.directory.records import MemberDetails
from corpid.rules.readers import InvisibleCharacter, display_name


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\u200bb", "U+200B (zero width space)"), ("\ufeffa", "U+FEFF (zero width no-break space)"),
        ("a\tb", "U+0009 (tab)"), ("a\0", "U+0000"), ("a\u200eb", "U+200E (left-to-right mark)"),
    ],
)  # fmt: skip
def test_the_character_that_nobody_sees_is_named(name: str, said: str) -> None:
    """D74."""
    with pytest.raises(InvisibleCharacter) as refused:
        display_name(name)
    assert str(refused.value) == f"the invisible character {said} is not allowed in a name"
    assert str(refused.value.remedy) == f"Remove the invisible character {said}."


@pytest.mark.parametrize(
    "name",
    [
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",  # Persian: between joining letters
        "\u0915\u094d\u200c\u0937", "\u0915\u094d\u200d\u0937",  # Devanagari: after a virama
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
    ],
)  # fmt: skip
def test_joiners_stand_where_letters_need_them(name: str) -> None:
    """RFC 5892 A.1, A.2, D74: in names, and nowhere in user names."""
    assert display_name(name) == name
    assert printable(name) == name
    assert fold_text(name) == fold_text(name.replace("\u200c", "").replace("\u200d", ""))
    with pytest.raises(ValueError, match="is not allowed in a user name"):
        user_name(name)
    with pytest.raises(InvalidDetails, match="user_name: the invisible character"):
        check_details(MemberDetails(user_name=name))


@pytest.mark.parametrize(
    "name",
    ["a\u200cb", "\u200c\u0639", "\u0639\u200c", "\u0627\u200c\u0631", "\u0639\u0644\u06cc\u200d\u0631\u0636\u0627",
     "\u0915\u200d\u0937", "\U0001f469\u200d\U0001f4bb"],
)  # fmt: skip
def test_a_joiner_elsewhere_is_refused_and_shown(name: str) -> None:
    """RFC 5892 A.1, A.2: letters that look alike are no two names."""
    with pytest.raises(InvisibleCharacter):
        display_name(name)
    assert "\\u200" in printable(name)


def test_programs_marks_leave_what_files_and_programs_send() -> None:
    """D74: U+200E, U+200F and U+FEFF are dropped, a tab is a space."""
    assert without_marks("\ufeffRina\t\u200eExample\u200f\u200b") == "Rina Example\u200b"
    assert json_value('{"name": "\u200eRina\\tExample\\uFEFF"}'.encode()) == {"name": "Rina Example"}
    document = parse('users: {rina: {name: "\u200eRina\\tExample"}}'.encode(), "f")
    assert document.entries_of("user")["rina",].fields["name"] == "Rina Example"


def test_a_mark_in_what_a_person_typed_is_refused() -> None:
    """D74."""
    with pytest.raises(DirectoryError, match="U\\+200E \\(left-to-right mark\\)"):
        parse("users: {rina: {name: \u200eRina}}".encode(), "", typed=True)


def test_a_mark_in_a_password_stays() -> None:
    content = 'users: {rina: {name: Rina, password: "horse\\tand\\ufeffbattery"}}'
    document = parse(content.encode(), "f", plain_passwords=True)
    assert document.entries_of("credentials")["rina",].fields["password"] == "horse\tand\ufeffbattery"


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
