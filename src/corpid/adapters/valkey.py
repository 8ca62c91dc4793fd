"""What lives for minutes, on Redis or Valkey: one node, or a primary with replicas behind one address.

Each verb is one command on one key. The engine's clock decides expiry (D49), so the `now` that comes in
decides nothing here, and there is nothing to sweep. What was written is there for all at once: other
requests see the verbs of a unit before it ends, and after a fault (an error that is no OAuthError) what
was spent stays spent; only a `put` not yet sent is dropped. A flow that broke there leaves a client with a
spent code, proof or assertion, of which it makes new ones; it never leaves something spendable twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from corpid.adapters import milliseconds, valkey_runs
from corpid.adapters.valkey_link import Address
from corpid.adapters.valkey_runs import Runs
from corpid.protocol.errors import OAuthError
from corpid.protocol.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from types import TracebackType

    from corpid.adapters.valkey_link import Answer, Command, Link
    from corpid.ports import Clock


class ValkeyTransientStore:
    """A ports.TransientStore on Redis or Valkey."""

    def __init__(self, runs: Runs, *, deployed_at: float = 0.0) -> None:
        self.runs: Final = runs
        self._deployed_at: Final = deployed_at

    @property
    def forgotten_at(self) -> float:
        """See ports.TransientStore. With a margin, for nodes write their own time into what they issue."""
        since, ahead = self.runs.remembers_since, self.runs.ahead
        if since <= self._deployed_at - ahead:
            return 0.0
        return since + max(ahead, CLOCKS_APART_SECONDS)

    def unit(self, now: float) -> ValkeyTransientUnit:  # noqa: ARG002 - the engine's clock decides (D49)
        """See ports.TransientStore. All its verbs go to one run of the engine; it joins no other unit."""
        return ValkeyTransientUnit(self.runs)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:  # noqa: ARG002 - as in `unit`
        """See ports.TransientStore."""
        link = await self.runs.link()
        [value] = await link.ask(("GET", valkey_runs.key(link, kind, key)))
        return _content(value)

    async def engine_time(self) -> float:
        """See ports.TransientStore."""
        return await valkey_runs.time(await self.runs.link())

    async def sweep(self, *, now: float) -> int:  # noqa: ARG002 - as in `unit`
        """See ports.TransientStore. The engine removes what expired."""
        return 0

    async def close(self) -> None:
        """Let go of the engine. Nothing may be used afterwards."""
        await self.runs.close()


class ValkeyTransientUnit:
    """A ports.TransientUnit. A `put` travels with the next verb, or with the end of the unit."""

    __slots__ = ("_link", "_runs", "_unsent")

    _link: Link

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._unsent: list[Command] = []

    async def __aenter__(self) -> Self:
        self._link = await self._runs.link()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unsent and (error is None or isinstance(error, OAuthError)):
            await self._ask()

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        """See ports.TransientUnit."""
        self._unsent.append(("SET", self._key(kind, key), value, "PX", _lifetime(ttl)))

    async def get(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return _content((await self._ask(("GET", self._key(kind, key))))[-1])

    async def take(self, kind: str, key: bytes) -> bytes | None:
        """See ports.TransientUnit."""
        return _content((await self._ask(("GETDEL", self._key(kind, key))))[-1])

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """See ports.TransientUnit."""
        answers = await self._ask(("SET", self._key(kind, key), value, "PX", _lifetime(ttl), "NX"))
        return answers[-1] is not None

    async def count(self, kind: str, key: bytes, ttl: float) -> int:
        """See ports.TransientUnit. A lifetime that got lost on the way is set by the next raise."""
        place = self._key(kind, key)
        answers = await self._ask(("INCR", place), ("PEXPIRE", place, _lifetime(ttl), "NX"))
        return int(answers[-2])

    def _key(self, kind: str, key: bytes) -> bytes:
        return valkey_runs.key(self._link, kind, key)

    async def _ask(self, *commands: Command) -> list[Answer]:
        together, self._unsent = (*self._unsent, *commands), []
        return await self._link.ask(*together)


def _content(answer: Answer) -> bytes | None:
    return None if answer is None else bytes(answer)


def _lifetime(ttl: float) -> int:
    return max(1, milliseconds(ttl))


async def open_valkey(url: str, *, clock: Clock, deployed_at: float = 0.0) -> ValkeyTransientStore:
    """Connect to redis://, rediss:// (TLS) or unix://, in the event loop that will use it; each process for itself.

    The engine must be a primary of version 7 or later that evicts nothing. `deployed_at` says when this
    deployment began, epoch seconds: an engine that has run since before then has forgotten nothing of it.
    Without it CorpID refuses, until the engine has run for 40 seconds, what may have been issued before.

    Raises StoreUnavailable with a sentence for the operator, without the password.
    DESIGN "What each engine promises", D49.
    """
    runs = Runs(Address(url), clock)
    await runs.start()
    return ValkeyTransientStore(runs, deployed_at=deployed_at)
