"""Passwords of twelve and more characters that attackers try first, made from the patterns behind them (D44)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from corpid.directory.password_rules import SHORTEST

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS: Final = (
    "1234567890", "0123456789", "qwertyuiop", "asdfghjkl", "zxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn",
    "qwertzuiop", "yxcvbnm", "abcdefghijklmnopqrstuvwxyz", "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv5tgb6yhn",
    "qazwsxedcrfvtgbyhnujm", "q1w2e3r4t5y6u7i8o9p0", "zaq12wsxcde34rfvbgt56yhn", "!@#$%^&*()", "qweasdzxc",
)  # fmt: skip
_WORDS: Final = (
    "password", "passwort", "passphrase", "secret", "welcome", "letmein", "admin", "administrator", "root",
    "login", "master", "access", "user", "guest", "default", "changeme", "temp", "temporary", "test", "testing",
    "demo", "company", "business", "corporate", "corpid", "singapore", "office", "finance", "account", "manager",
    "service", "server", "system", "security", "iloveyou", "sunshine", "princess", "dragon", "monkey",
    "football", "baseball", "superman", "batman", "michael", "jordan", "summer", "winter", "spring", "autumn",
    "monday", "friday", "january", "december", "computer", "internet", "hello", "qwerty", "abc123", "asdf",
    "freedom", "liverpool", "arsenal", "chelsea", "starwars", "pokemon", "hunter", "shadow", "flower", "cheese",
    "chocolate", "coffee", "family", "forever", "whatever", "trustno1", "blink182", "lovely", "friends",
)  # fmt: skip
_PASSPHRASES: Final = (
    "correcthorsebatterystaple", "correct horse battery staple", "tobeornottobe", "maytheforcebewithyou",
    "iloveyouforever", "letmeinplease", "openthedoor!", "thisismypassword", "thisisapassword", "mypasswordis",
    "passwordpassword", "nopasswordforyou", "ihatepasswords", "donotforgetme", "whatismypassword",
    "thequickbrownfox", "the quick brown fox", "winteriscoming", "passwordadmin", "adminpassword",
)  # fmt: skip
_FRONTS: Final = ("", "my", "the")
_NUMBERS: Final = (
    "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890", "007", "111",
    "321", "666", "777", "888", "999", "000", "001", *map(str, range(1990, 2031)),
)  # fmt: skip
_MARKS: Final = ("", "!", "@")
_SPELLINGS: Final = tuple(str.maketrans(*pair) for pair in (("o", "0"), ("ao", "@0"), ("aeios", "43105")))
_LONGEST: Final = 32


def guessable_passwords() -> frozenset[str]:
    """What people come up with when twelve characters are asked for: casefolded, as `chosen_password` wants it (D44)."""
    patterns = (_walks(), _repetitions(), _decorated(), _pairs(), iter(_PASSPHRASES))
    return frozenset(text for pattern in patterns for text in pattern if SHORTEST <= len(text) <= _LONGEST)


def _walks() -> Iterator[str]:
    for row in _ROWS:
        there, endless = row + row[::-1], row * 4
        yield from (endless[:length] for length in range(SHORTEST, len(endless)))
        yield from (endless[::-1][:length] for length in range(SHORTEST, len(endless)))
        yield from (there[:length] for length in range(SHORTEST, len(there) + 1))
    for first, second in product(_ROWS, repeat=2):
        yield from (first[:length] + second[:length] for length in (6, 7, 8))
        yield from (first[:10] + second[:length] for length in (2, 3, 4))


def _repetitions() -> Iterator[str]:
    characters = "abcdefghijklmnopqrstuvwxyz0123456789!*.- "
    pieces = (*characters, "12", "123", "1234", "123456", "ab", "abc", "abcd", "qwe", "asd", "xyz", "hahaha", *_WORDS)
    for piece in pieces:
        yield from ((piece * length)[:length] for length in range(SHORTEST, _LONGEST + 1))


def _decorated() -> Iterator[str]:
    for front, word, number in product(_FRONTS, _WORDS, ("", *_NUMBERS)):
        yield front + word + number
        yield front + word + number + "!"
    for word, number, mark in product(_WORDS, _NUMBERS, _MARKS):
        yield word + mark + number
        yield number + word + mark
    for word, number, spelling in product(_WORDS, _NUMBERS, _SPELLINGS):
        yield word.translate(spelling) + number


def _pairs() -> Iterator[str]:
    for first, second in product(_WORDS, repeat=2):
        yield first + second
    for word, joint in product(_WORDS, (" ", "-", "_", ".")):
        yield word + joint + word
