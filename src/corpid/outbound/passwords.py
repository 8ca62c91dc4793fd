"""argon2id in threads with a fair queue, and a blocklist of passwords.

`Argon2Passwords` hashes and verifies in `HashingThreads`, for which callers wait in a `FairQueue` by their source;
`guessable_passwords` makes the blocklist. Source: D44, D47
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import count, product
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from argon2 import Parameters, PasswordHasher
from argon2.exceptions import VerificationError, VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from corpid.event_log import log
from corpid.rules.authentication.passwords import (
    COMMAND_LINE,
    LONGEST_TYPED,
    SHORTEST_PASSWORD,
    HashCost,
    HashingSource,
    list_typed_forms,
    normalise_password,
    read_hash_cost,
)
from corpid.rules.failures import PasswordsBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet


WAITING_PER_THREAD: Final = 16

T = TypeVar("T")


def parameters(cost: HashCost) -> Parameters:
    """The parameters of argon2's library for a cost."""
    return replace(RFC_9106_LOW_MEMORY, memory_cost=cost.memory, time_cost=cost.passes, parallelism=cost.lanes)


class Passwords(Protocol):
    """argon2id in separate threads (D44)."""

    async def verify(self, password_hash: str | None, password: str, *, source: HashingSource) -> bool:
        """With None the same work is done, and the answer is False.

        Raises PasswordsBusy.
        """

    async def hash(self, password: str, *, source: HashingSource) -> str:
        """The hash to store. Raises PasswordsBusy."""

    def guessable(self) -> AbstractSet[str]:
        """Predictable passwords, casefolded: for `require_allowed_password`."""

    def is_outdated(self, password_hash: str) -> bool: ...


class Argon2Passwords:
    """Passwords by argon2id with the parameters of `profile`.

    `profile` is RFC 9106's second one. `threads` hashes run at a time; `waiting` more (16 per thread) wait in turn, by
    their source. Beyond them PasswordsBusy is raised. Source: D44, D47
    """

    def __init__(self, *, threads: int, waiting: int | None = None, profile: Parameters = RFC_9106_LOW_MEMORY) -> None:
        self._hasher = PasswordHasher.from_parameters(profile)
        self._cost = HashCost(profile.memory_cost, profile.time_cost, profile.parallelism)
        # A hash of the profile's cost that no password is known for.
        salt, digest = (b64encode(bytes(size)).decode().rstrip("=") for size in (profile.salt_len, profile.hash_len))
        cost = f"m={profile.memory_cost},t={profile.time_cost},p={profile.parallelism}"
        self._nobody = f"$argon2id$v={profile.version}${cost}${salt}${digest}"
        self._threads = HashingThreads(threads, threads * WAITING_PER_THREAD if waiting is None else waiting)

    @property
    def pending(self) -> int:
        """Hashes that are being computed or wait for it."""
        return self._threads.pending

    async def verify(self, password_hash: str | None, password: str, *, source: HashingSource = COMMAND_LINE) -> bool:
        """Return whether a password matches this hash.

        With None the same work says False. Both forms of a text with other spaces are tried, as one attempt.

        A hash that cannot be read counts as None and is logged. Raises PasswordsBusy. Source: D44, D47, D75
        """
        return await self._in_thread(lambda: self._fits_typed(password_hash, password), source)

    async def hash(self, password: str, *, source: HashingSource = COMMAND_LINE) -> str:
        """The hash to store, in argon2's own text form with its parameters.

        Raises PasswordsBusy (D44, D47).
        """
        return await self._in_thread(lambda: self._hasher.hash(_octets(password)), source)

    def guessable(self) -> AbstractSet[str]:
        """Predictable passwords, casefolded; made when it is first asked for (D44)."""
        return guessable_passwords()

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether a hash costs less than today's parameters.

        One that costs more in memory or work is not lowered. Ask it after `verify` (D44).
        """
        stored = read_hash_cost(password_hash)
        return stored is None or self._cost.exceeds(stored)

    def close(self) -> None:
        """Accept no more jobs, and refuse waiting ones."""
        self._threads.close()

    async def _in_thread(self, work: Callable[[], T], source: HashingSource) -> T:
        return await asyncio.wrap_future(self._threads.submit(work, source))

    def _fits_typed(self, password_hash: str | None, password: str) -> bool:
        forms = list_typed_forms(password) if len(password) <= LONGEST_TYPED else ("",)
        return any(self._fits(password_hash, _encoded(each)) for each in forms)

    def _fits(self, password_hash: str | None, octets: bytes) -> bool:
        if password_hash is not None and octets:
            try:
                return self._hasher.verify(password_hash, octets)
            except VerifyMismatchError:
                return False
            except (VerificationError, ValueError) as error:
                log().error("password_hash_unusable", detail=str(error))
        with suppress(VerificationError):  # the same work for nobody's hash
            self._hasher.verify(self._nobody, octets)
        return False


def _octets(password: str) -> bytes:
    """The bytes to hash.

    Empty if the text is too long for a password.
    """
    if len(password) > LONGEST_TYPED:
        return b""
    return _encoded(normalise_password(password))


def _encoded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


KNOWN_SHARE: Final = 4
"""one place in so many is kept for known browsers"""

E = TypeVar("E")


class FairQueue(Generic[E]):
    """Entries that wait, at most `places` of them.

    Entries are hashable, and none waits twice. Not thread-safe.
    """

    def __init__(self, places: int) -> None:
        self._places: Final = places
        self._numbers: Final = count()
        self._networks: Final[OrderedDict[str, OrderedDict[str, dict[E, int]]]] = OrderedDict()
        """network to account to entries and their numbers, the oldest first; the next one to be served comes first"""
        self._sizes: Final[Counter[str]] = Counter()
        self._sources: Final[dict[E, HashingSource]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def full(self) -> bool:
        """True if one more entry would displace another."""
        return len(self) >= self._places

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry.

        Returns the one that has to go for it, perhaps itself, or None if there was room.

        That is the newest of the busiest account of the busiest network, and among equals the newest of all, so that a
        network that fills the queue displaces no other one's. Source: D47
        """
        self._sources[entry] = source
        self._sizes[source.network] += 1
        accounts = self._networks.setdefault(source.network, OrderedDict())
        accounts.setdefault(source.account, {})[entry] = next(self._numbers)
        if len(self) <= self._places:
            return None
        gone = self._newest_of_the_busiest()
        self.remove(gone)
        return gone

    def take(self) -> E | None:
        """The next entry, or None.

        Its network and account go to the end of their queues (D47).
        """
        if not self._networks:
            return None
        network, accounts = next(iter(self._networks.items()))
        account, entries = next(iter(accounts.items()))
        entry = next(iter(entries))
        self._networks.move_to_end(network)
        accounts.move_to_end(account)
        self.remove(entry)
        return entry

    def remove(self, entry: E) -> None:
        """Take an entry out of its row.

        Nothing happens if it is not there.
        """
        source = self._sources.pop(entry, None)
        if source is None:
            return
        self._sizes[source.network] -= 1
        accounts = self._networks[source.network]
        del accounts[source.account][entry]
        if not accounts[source.account]:
            del accounts[source.account]
        if not accounts:
            del self._networks[source.network], self._sizes[source.network]

    def _newest_of_the_busiest(self) -> E:
        most = max(self._sizes.values())
        newest: dict[E, int] = {}
        for network in (each for each, size in self._sizes.items() if size == most):
            accounts = self._networks[network].values()
            longest = max(map(len, accounts))
            newest |= dict(next(reversed(each.items())) for each in accounts if len(each) == longest)
        return max(newest, key=newest.__getitem__)


class HashingQueue(Generic[E]):
    """Two fair queues that are served in turn.

    One is kept for known browsers, a quarter of the places (D47).
    """

    def __init__(self, places: int) -> None:
        reserved = places // KNOWN_SHARE
        self._reserved: Final[FairQueue[E]] = FairQueue(reserved)
        self._common: Final[FairQueue[E]] = FairQueue(places - reserved)
        self._reserves: Final = reserved > 0
        self._reserved_is_next = True

    def __len__(self) -> int:
        return len(self._reserved) + len(self._common)

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry.

        Returns the one that has to go for it, as `FairQueue.put`.

        A known browser waits in the common part only if its own is full and there is room. Source: D47
        """
        own = source.known and self._reserves and (not self._reserved.full or self._common.full)
        return (self._reserved if own else self._common).put(entry, source)

    def take(self) -> E | None:
        """The next entry, or None."""
        order = (self._reserved, self._common) if self._reserved_is_next else (self._common, self._reserved)
        self._reserved_is_next = not self._reserved_is_next
        entry = order[0].take()
        return order[1].take() if entry is None else entry

    def remove(self, entry: E) -> None:
        """Take an entry out; nothing happens if it is not there."""
        self._reserved.remove(entry)
        self._common.remove(entry)


_FULL: Final = "too many password checks are waiting"
_STOPPED: Final = "password checks have stopped"


class _Job:
    """Work, and the future of its result.

    Two of them are never equal.
    """

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()

    def refuse(self, reason: str) -> None:
        """Fail with PasswordsBusy, unless the work was cancelled."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(PasswordsBusy(reason))


class HashingThreads:
    """A pool of `threads` threads with `waiting` places in the queue.

    Safe to use from any thread.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._executor: Final = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._threads: Final = threads
        self._lock: Final = threading.Lock()
        self._queue: Final[HashingQueue[_Job]] = HashingQueue(waiting)
        self._running = 0
        self._closed = False

    @property
    def pending(self) -> int:
        """Jobs that run or wait."""
        with self._lock:
            return self._running + len(self._queue)

    def submit(self, work: Callable[[], T], source: HashingSource) -> Future[T]:
        """Do this as soon as it is its turn.

        The future fails with PasswordsBusy if it has to give way to others.

        A job that waits and is cancelled frees its place at once, one that runs when its thread is through. Raises
        PasswordsBusy if there is no room, and after `close`. Source: D44, D47
        """
        job = _Job(work)
        with self._lock:
            gone = self._admit(job, source)
        if gone is job:
            raise PasswordsBusy(_FULL)
        if gone is not None:
            gone.refuse(_FULL)
        job.future.add_done_callback(lambda _: self._forget(job))
        return job.future

    def close(self) -> None:
        """Accept no more jobs; refuse waiting ones, finish running ones."""
        with self._lock:
            self._closed = True
            dropped = list(iter(self._queue.take, None))
        for job in dropped:
            job.refuse(_STOPPED)
        self._executor.shutdown(wait=False)

    def _admit(self, job: _Job, source: HashingSource) -> _Job | None:
        if self._closed:
            raise PasswordsBusy(_STOPPED)
        if self._running == self._threads:
            return self._queue.put(job, source)
        try:
            self._executor.submit(self._run, job)
        except RuntimeError:
            raise PasswordsBusy(_STOPPED) from None
        self._running += 1
        return None

    def _run(self, first: _Job) -> None:
        job: _Job | None = first
        while job is not None:
            job = self._finish(job)

    def _finish(self, job: _Job) -> _Job | None:
        """Do one job.

        Returns the next one of this thread, which is found before anybody learns the result.
        """
        if not job.future.set_running_or_notify_cancel():
            return self._next()
        try:
            result = job.work()
        except BaseException as error:  # noqa: BLE001 - the future carries it to its awaiter
            following = self._next()
            job.future.set_exception(error)
        else:
            following = self._next()
            job.future.set_result(result)
        return following

    def _next(self) -> _Job | None:
        with self._lock:
            job = self._queue.take()
            if job is None:
                self._running -= 1
            return job

    def _forget(self, job: _Job) -> None:
        with self._lock:
            self._queue.remove(job)


_KEYBOARD_ROWS: Final = (
    "1234567890", "0123456789", "qwertyuiop", "asdfghjkl", "zxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn",
    "qwertzuiop", "yxcvbnm", "abcdefghijklmnopqrstuvwxyz", "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv5tgb6yhn",
    "qazwsxedcrfvtgbyhnujm", "q1w2e3r4t5y6u7i8o9p0", "zaq12wsxcde34rfvbgt56yhn", "!@#$%^&*()", "qweasdzxc",
)  # fmt: skip
_COMMON_WORDS: Final = (
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
_PREFIXES: Final = ("", "my", "the")
_NUMBERS: Final = (
    "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890", "007", "111",
    "321", "666", "777", "888", "999", "000", "001", *map(str, range(1990, 2031)),
)  # fmt: skip
_MARKS: Final = ("", "!", "@")
_SPELLINGS: Final = tuple(str.maketrans(*pair) for pair in (("o", "0"), ("ao", "@0"), ("aeios", "43105")))
_LONGEST_GUESSABLE: Final = 32


@cache
def guessable_passwords() -> frozenset[str]:
    """Predictable passwords of twelve characters and more, for `require_allowed_password`: casefolded.

    Source: D44
    """
    patterns = (_keyboard_walks(), _repetitions(), _decorated_words(), _word_pairs(), iter(_PASSPHRASES))
    return frozenset(
        text for pattern in patterns for text in pattern if SHORTEST_PASSWORD <= len(text) <= _LONGEST_GUESSABLE
    )


def _keyboard_walks() -> Iterator[str]:
    for row in _KEYBOARD_ROWS:
        there, endless = row + row[::-1], row * 4
        yield from (endless[:length] for length in range(SHORTEST_PASSWORD, len(endless)))
        yield from (endless[::-1][:length] for length in range(SHORTEST_PASSWORD, len(endless)))
        yield from (there[:length] for length in range(SHORTEST_PASSWORD, len(there) + 1))
    for first, second in product(_KEYBOARD_ROWS, repeat=2):
        yield from (first[:length] + second[:length] for length in (6, 7, 8))
        yield from (first[:10] + second[:length] for length in (2, 3, 4))


def _repetitions() -> Iterator[str]:
    characters = "abcdefghijklmnopqrstuvwxyz0123456789!*.- "
    pieces = (
        *characters,
        "12",
        "123",
        "1234",
        "123456",
        "ab",
        "abc",
        "abcd",
        "qwe",
        "asd",
        "xyz",
        "hahaha",
        *_COMMON_WORDS,
    )
    for piece in pieces:
        yield from ((piece * length)[:length] for length in range(SHORTEST_PASSWORD, _LONGEST_GUESSABLE + 1))


def _decorated_words() -> Iterator[str]:
    for front, word, number in product(_PREFIXES, _COMMON_WORDS, ("", *_NUMBERS)):
        yield front + word + number
        yield front + word + number + "!"
    for word, number, mark in product(_COMMON_WORDS, _NUMBERS, _MARKS):
        yield word + mark + number
        yield number + word + mark
    for word, number, spelling in product(_COMMON_WORDS, _NUMBERS, _SPELLINGS):
        yield word.translate(spelling) + number


def _word_pairs() -> Iterator[str]:
    for first, second in product(_COMMON_WORDS, repeat=2):
        yield first + second
    for word, joint in product(_COMMON_WORDS, (" ", "-", "_", ".")):
        yield word + joint + word
