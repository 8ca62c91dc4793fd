"""The code of a link: strong enough to be all that is needed, short enough to type."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.records import ALPHABET, CHARACTERS, canonical, code_from, hash_code

GROUPS = re.compile(rf"[{ALPHABET}]{{4}}(-[{ALPHABET}]{{4}}){{4}}")
SHOWN = "10V0-ABCD-EFGH-JKMN-PQRS"


@given(st.binary(min_size=32, max_size=32))
def test_a_code_is_five_groups_of_four_unmistakable_characters(random: bytes) -> None:
    code = code_from(random.hex())
    assert GROUPS.fullmatch(code)
    assert canonical(code) == code.replace("-", "")


def test_a_code_has_at_least_80_bits_and_each_of_them_comes_from_the_random_value() -> None:
    """Each place takes each of 32 characters; of 3000 values no two share a code."""
    assert (len(set(ALPHABET)), CHARACTERS) == (32, 20)
    codes = [canonical(code_from(str(number))) for number in range(3000)]
    assert len(set(codes)) == len(codes)
    assert all({code[place] for code in codes} == set(ALPHABET) for place in range(CHARACTERS))


@pytest.mark.parametrize(
    "typed",
    [
        "10v0abcdefghjkmnpqrs",
        " 10V0 ABCD EFGH JKMN PQRS \n",
        "IOVO-ABCD-EFGH-JKMN-PQRS",
        "loUo-abcd-efgh-jkmn-pqrs",
        "10V0\u2013ABCD\u2011EFGH\u2212JKMN\u2014PQRS",
        "10V0\u00a0ABCD\u00a0EFGH\u00a0JKMN\u00a0PQRS",
        "\uff11\uff10\uff36\uff10-\uff21\uff22\uff23\uff24-EFGH-JKMN-PQRS",
        "\u0661\u0660V\u06f0-ABCD\u200b-EFGH-JKMN-PQRS",
        "https://login.example.org/enrol#10V0-ABCD-EFGH-JKMN-PQRS",
    ],
)
def test_a_code_may_be_typed_or_pasted_in_another_way(typed: str) -> None:
    """Case, gaps, dashes, full-width forms, and what looks alike: O and 0, I, L and 1, U and V."""
    assert hash_code(typed) == hash_code(SHOWN)


@pytest.mark.parametrize(
    "typed", ["", "10V0", SHOWN[:-1], SHOWN + "A", "#", SHOWN + "#", "Ä" * 20, "\0" * 20, "A" * 501]
)
def test_what_is_no_code_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="code"):
        hash_code(typed)


@given(st.text())
def test_whatever_is_typed_is_a_code_or_refused(typed: str) -> None:
    try:
        found = canonical(typed)
    except ValueError:
        return
    assert len(found) == CHARACTERS
    assert set(found) <= set(ALPHABET)
