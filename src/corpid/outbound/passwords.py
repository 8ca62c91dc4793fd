"""argon2id in separate threads, and the blocklist of common passwords.

Source: D44
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import VerificationError, VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from corpid.outbound.hashing_queue import HashingThreads
from corpid.ports import COMMAND_LINE, HashingSource
from corpid.rules.authentication.password_rules import LONGEST_TYPED, SHORTEST, normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from argon2 import Parameters

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
    """Predictable passwords of twelve characters and more, casefolded, as `chosen_password` wants it.

    Source: D44
    """
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


WAITING_PER_THREAD: Final = 16

T = TypeVar("T")


def _hash_of_nobody(profile: Parameters) -> str:
    """A hash of the profile's cost that no password is known for."""
    salt, digest = (b64encode(bytes(size)).decode().rstrip("=") for size in (profile.salt_len, profile.hash_len))
    cost = f"m={profile.memory_cost},t={profile.time_cost},p={profile.parallelism}"
    return f"$argon2id$v={profile.version}${cost}${salt}${digest}"


class Argon2Passwords:
    """The port Passwords: argon2id with the parameters of `profile`.

    `profile` is RFC 9106's second one. `threads` hashes run at a time; `waiting` more (16 per thread) wait in turn, by
    their source. Beyond them PasswordsBusy is raised. Source: D44, D47
    """

    def __init__(self, *, threads: int, waiting: int | None = None, profile: Parameters = RFC_9106_LOW_MEMORY) -> None:
        self._hasher = PasswordHasher.from_parameters(profile)
        self._nobody = _hash_of_nobody(profile)
        self._threads = HashingThreads(threads, threads * WAITING_PER_THREAD if waiting is None else waiting)

    @property
    def pending(self) -> int:
        """Hashes that are being computed or wait for it."""
        return self._threads.pending

    async def verify(self, password_hash: str | None, password: str, *, source: HashingSource = COMMAND_LINE) -> bool:
        """Return whether a password matches this hash.

        With None the same work says False.

        A hash that cannot be read counts as None and is logged. Raises PasswordsBusy. Source: D44, D47
        """
        return await self._in_thread(lambda: self._fits(password_hash, password), source)

    async def hash(self, password: str, *, source: HashingSource = COMMAND_LINE) -> str:
        """The hash to store, in argon2's own text form with its parameters.

        Raises PasswordsBusy (D44, D47).
        """
        return await self._in_thread(lambda: self._hasher.hash(_octets(password)), source)

    def guessable(self) -> AbstractSet[str]:
        """Predictable passwords, casefolded; made when it is first asked for (D44)."""
        return _guessable()

    def outdated(self, password_hash: str) -> bool:
        """Return whether a hash needs today's parameters.

        Ask it after `verify` (D44).
        """
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Accept no more jobs, and refuse waiting ones."""
        self._threads.close()

    async def _in_thread(self, work: Callable[[], T], source: HashingSource) -> T:
        return await asyncio.wrap_future(self._threads.submit(work, source))

    def _fits(self, password_hash: str | None, password: str) -> bool:
        octets = _octets(password)
        if password_hash is not None and octets:
            try:
                return self._hasher.verify(password_hash, octets)
            except VerifyMismatchError:
                return False
            except (VerificationError, ValueError) as error:
                structlog.get_logger().error("password_hash_unusable", detail=str(error))
        self._same_work(octets)
        return False

    def _same_work(self, octets: bytes) -> None:
        try:
            self._hasher.verify(self._nobody, octets)
        except VerificationError:
            return


@cache
def _guessable() -> frozenset[str]:
    return guessable_passwords()


def _octets(password: str) -> bytes:
    """The bytes to hash.

    Empty if the text is too long for a password.
    """
    if len(password) > LONGEST_TYPED:
        return b""
    return normalised(password).encode("utf-8", "surrogatepass")
