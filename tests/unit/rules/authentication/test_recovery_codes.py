"""Recovery codes: 80 bits in a form that people can copy (D45)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.records import RECOVERY_CODE_BYTES, recovery_code, recovery_code_hash

RANDOM = st.binary(min_size=RECOVERY_CODE_BYTES, max_size=RECOVERY_CODE_BYTES)


@given(RANDOM)
def test_a_code_is_four_groups_of_four_letters_and_digits(random: bytes) -> None:
    """RFC 4648 §6: no 0, 1, 8 or 9, which are easily mistaken."""
    assert re.fullmatch(r"[a-z2-7]{4}(-[a-z2-7]{4}){3}", recovery_code(random))


@given(RANDOM, RANDOM)
def test_every_bit_counts(one: bytes, other: bytes) -> None:
    assert (recovery_code(one) == recovery_code(other)) == (one == other)
    assert (recovery_code_hash("u", recovery_code(one)) == recovery_code_hash("u", recovery_code(other))) == (
        one == other
    )


@pytest.mark.parametrize(
    "typed",
    [
        "ABCD-EFGO-IJKL-MNOP",
        " abcd efgo ijkl mnop ",
        "abcdefg0ijk1mnop",
        "abcd\u2013efgo\u2014ijkl.mnop",
        "\uff21\uff22CD\u200befgo\uff0dijkl-mnop",
    ],
)
def test_a_code_may_be_typed_in_another_way(typed: str) -> None:
    """D45, D75: case, gaps, full-width letters and the two digits that a code never has."""
    assert recovery_code_hash("u", typed) == recovery_code_hash("u", "abcd-efgo-ijkl-mnop")


@pytest.mark.parametrize(
    "typed", ["\u0662\u0663\u0664\u0665-abcd", "\u06f2\u06f3\u06f4\u06f5abcd", "\uff12\uff13\uff14\uff15 abcd"]
)
def test_the_digits_of_a_code_may_be_of_any_script(typed: str) -> None:
    """D75."""
    assert recovery_code_hash("u", typed) == recovery_code_hash("u", "2345-abcd")


@given(st.text(), st.text())
def test_a_code_belongs_to_its_owner(user_id: str, code: str) -> None:
    """What is kept tells neither, and nothing of one person opens another's account."""
    kept = recovery_code_hash(user_id, code)
    assert re.fullmatch(r"[0-9a-f]{64}", kept)
    assert kept != recovery_code_hash(user_id + "x", code)
