"""Codes, numbers and dates as people type them (D75)."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from corpid.rules.characters import typed_code, typed_number, with_ascii_digits


def test_every_decimal_digit_of_unicode_is_a_digit_of_ascii() -> None:
    digits = [chr(each) for each in range(sys.maxunicode + 1) if unicodedata.category(chr(each)) == "Nd"]
    assert len(digits) > 600
    assert {with_ascii_digits(each) for each in digits} == set("0123456789")
    assert all(with_ascii_digits(each) == str(unicodedata.decimal(each)) for each in digits)


def test_other_numerals_are_no_digits() -> None:
    assert with_ascii_digits("\u00b2\u2461\u4e09\u2168\u00bd") == "\u00b2\u2461\u4e09\u2168\u00bd"


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("\uff12\uff10\uff12\uff16\uff0d\uff11\uff12\uff0d\uff13\uff11", "2026-12-31"),
        ("\u0662\u0660\u0662\u0666", "2026"),
        (" \u200e-1\u00a0234.5\ufeff", "-1234.5"),
        ("\u22121", "-1"),
        ("1.5e3", "1.5e3"),
    ],
)
def test_a_number_keeps_its_sign_and_point(typed: str, number: str) -> None:
    assert typed_number(typed) == number


@pytest.mark.parametrize("typed", ["123-456", "123 456", "\u06f1\u06f2\u06f3\u06f4\u06f5\u06f6", "\u00ad1\u2060234\ufe0f56", "\uff11\uff12\uff13\u2013456"])  # fmt: skip
def test_a_code_has_no_separators(typed: str) -> None:
    assert typed_code(typed) == "123456"
