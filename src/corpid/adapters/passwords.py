"""argon2id in threads of its own, so that neither the loop nor anything else ever waits for a hash (D44)."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import VerificationError, VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from corpid.adapters.blocklist import guessable_passwords
from corpid.directory.password_rules import LONGEST_TYPED, normalised
from corpid.ports import PasswordsBusy

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

    Beyond `waiting` more (16 per thread) PasswordsBusy is raised instead of queueing.
    """

    def __init__(self, *, threads: int, waiting: int | None = None, profile: Parameters = RFC_9106_LOW_MEMORY) -> None:
        self._hasher = PasswordHasher.from_parameters(profile)
        self._nobody = _hash_of_nobody(profile)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="password")
        room = threads + (threads * WAITING_PER_THREAD if waiting is None else waiting)
        self._room = threading.BoundedSemaphore(room)
        self._counting = threading.Lock()
        self._pending = 0

    @property
    def pending(self) -> int:
        """Hashes that are being computed or wait for it."""
        return self._pending

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Whether the password is the one of this hash; with None the same work says False.

        A hash that cannot be read counts as None and is logged. Raises PasswordsBusy. Source: D44
        """
        return await self._in_thread(lambda: self._fits(password_hash, password))

    async def hash(self, password: str) -> str:
        """The hash to store, in argon2's own text form with its parameters. Raises PasswordsBusy (D44)."""
        return await self._in_thread(lambda: self._hasher.hash(_octets(password)))

    def guessable(self) -> AbstractSet[str]:
        """What attackers try first, casefolded; made when it is first asked for (D44)."""
        return _guessable()

    def outdated(self, password_hash: str) -> bool:
        """Whether this hash was made with other parameters than today's; ask it after `verify` (D44)."""
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Take no more work; what has not begun is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if not self._room.acquire(blocking=False):
            raise PasswordsBusy("too many password checks are waiting")
        self._count(1)
        try:
            running = self._threads.submit(work)
        except RuntimeError:
            self._leave()
            raise PasswordsBusy("password checks have stopped") from None
        # Room is given back when the thread is through, not when whoever waited went away.
        running.add_done_callback(lambda _: self._leave())
        return await asyncio.wrap_future(running)

    def _leave(self) -> None:
        self._count(-1)
        self._room.release()

    def _count(self, change: int) -> None:
        with self._counting:
            self._pending += change

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
