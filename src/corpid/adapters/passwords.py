"""argon2id in threads of its own, so that neither the loop nor anything else ever waits for a hash (D44)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import VerificationError, VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from corpid.adapters.blocklist import guessable_passwords
from corpid.adapters.hashing_threads import HashingThreads
from corpid.directory.password_rules import LONGEST_TYPED, normalised
from corpid.ports import COMMAND_LINE, HashingSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from argon2 import Parameters

WAITING_PER_THREAD: Final = 16

T = TypeVar("T")


def _hash_of_nobody(profile: Parameters) -> str:
    """A hash of the profile's cost that no password is known for."""
    salt, digest = (b64encode(bytes(size)).decode().rstrip("=") for size in (profile.salt_len, profile.hash_len))
    cost = f"m={profile.memory_cost},t={profile.time_cost},p={profile.parallelism}"
    return f"$argon2id$v={profile.version}${cost}${salt}${digest}"


class Argon2Passwords:
    """The port Passwords: argon2id of `profile` (RFC 9106's second one), `threads` hashes at a time (D44).

    `waiting` more (16 per thread) wait in turn, by where they come from; beyond them PasswordsBusy is raised (D47).
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
        """Whether the password is the one of this hash; with None the same work says False.

        A hash that cannot be read counts as None and is logged. Raises PasswordsBusy. Source: D44, D47
        """
        return await self._in_thread(lambda: self._fits(password_hash, password), source)

    async def hash(self, password: str, *, source: HashingSource = COMMAND_LINE) -> str:
        """The hash to store, in argon2's own text form with its parameters. Raises PasswordsBusy (D44, D47)."""
        return await self._in_thread(lambda: self._hasher.hash(_octets(password)), source)

    def guessable(self) -> AbstractSet[str]:
        """What attackers try first, casefolded; made when it is first asked for (D44)."""
        return _guessable()

    def outdated(self, password_hash: str) -> bool:
        """Whether this hash was made with other parameters than today's; ask it after `verify` (D44)."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Take no more work; what has not begun is refused."""
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
    """What is hashed; empty for a text that is too long to be anybody's password."""
    if len(password) > LONGEST_TYPED:
        return b""
    return normalised(password).encode("utf-8", "surrogatepass")
