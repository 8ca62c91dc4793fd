"""What is printed does nothing to a terminal, and looks like what it is (Unicode TR 36 §3.6)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.characters import IGNORABLE, printable, printable_lines

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f\x00\x07\x08\r\n\t", "\\x7f\\x00\\x07\\x08\\r\\n\\t"),
        ("a\u202eb\u2066c\u200fd\u061c", "a\\u202eb\\u2066c\\u200fd\\u061c"),
        ("a\u200bb\u200d\ufeff\u00ad\u2060", "a\\u200bb\\u200d\\ufeff\\xad\\u2060"),
        ("\u3164\u115f\ufe0f\U000e0041\U000e0100", "\\u3164\\u115f\\ufe0f\\U000e0041\\U000e0100"),
        ("\u2028\u2029\u0085", "\\u2028\\u2029\\x85"),
        ("\udcff.yaml", "\\udcff.yaml"),
        ("a\u00a0b\u3000c", "a\\xa0b\\u3000c"),
    ],
)
def test_a_character_that_is_not_seen_as_what_it_is_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["", 'Rina\'s [bold] \\ "x"', "港口許可", "துறைமுகம்", "Åse, naïve €", "نورة", "👍"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_unseen_is_left_of_any_text(text: str) -> None:
    left = {each for each in printable(text) if unicodedata.category(each) in UNSEEN or each in IGNORABLE}
    assert not left
    assert printable(printable(text)) == printable(text)


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1))
def test_of_several_lines_the_line_ends_stay(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert printable_lines(text).split("\n") == [printable(line) for line in text.split("\n")]
