"""One connection to one run of a Redis or Valkey engine, which all requests of a process share.

Commands of many requests are written as they come, and answers come back in the same order. So nothing
waits for a free connection, a request that is given up leaves no answer behind for another, and when the
engine hangs one question that stays without an answer shows it for all.

A link never connects again. When it ends, every command without an answer fails, and nobody knows
whether it was executed: it is never sent a second time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from redis.asyncio.connection import Connection, parse_url
from redis.exceptions import AuthenticationError, NoPermissionError, ReadOnlyError, RedisError, ResponseError

from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redis.asyncio.connection import AbstractConnection

Command: TypeAlias = "tuple[str | bytes | int, ...]"
Answer: TypeAlias = Any  # bytes, a number, a list of them, or None

ANSWER_SECONDS: Final = 2.0
"""how long anything may take: to connect, or to answer"""
_WAITING_MOST: Final = 10_000
"""commands without an answer; more are refused at once"""
_OLDEST: Final = 7
"""the version that brought PEXPIRE NX and SET NX GET"""
_NO_EVICTION: Final = "noeviction"
_NEVER: Final = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What an engine says of itself when it is connected to. Times are epoch seconds by its own clock."""

    run_id: str
    started_at: float
    """up to two seconds late, never early: the engine tells it in whole seconds"""
    remembers_all: bool
    """False if it took its memory over from another engine, or from a file, which may have missed something"""
    now: float


class Address:
    """Where the engine is. Nothing that this class says contains the password."""

    def __init__(self, url: str) -> None:
        try:
            options: dict[str, Any] = {**parse_url(url)}
            self._kind: Final[type[AbstractConnection]] = options.pop("connection_class", Connection)
            # one attempt: whoever connects decides when to try again
            limits = {"socket_connect_timeout": ANSWER_SECONDS, "socket_timeout": None, "protocol": 2}
            self._options: Final = {**options, **limits}
            self.connection()
        except (ValueError, TypeError):
            raise StoreUnavailable(
                "transient_url is not an address of Redis or Valkey: write redis://HOST:PORT/0, or rediss:// for TLS, "
                "with USER:PASSWORD@ before HOST where needed (special characters percent-encoded)"
            ) from None
        host = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        self.place: Final = f"Redis at {options.get('path', host)}"

    def connection(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._kind(**self._options)


class Link:
    """An open connection, and the engine at its other end."""

    def __init__(self, connection: AbstractConnection, place: str, engine: Engine) -> None:
        self.engine: Final = engine
        self.ended: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._connection: Final = connection
        self._place: Final = place
        self._reason = ""
        self._waiting: Final[deque[asyncio.Future[Answer]]] = deque()
        self._reader: Final = asyncio.create_task(self._read())

    async def ask(self, *commands: Command) -> list[Answer]:
        """Send commands together and wait for all answers; what the engine refuses raises StoreUnavailable."""
        self._check()
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Answer]] = [loop.create_future() for _ in commands]
        self._waiting.extend(answers)
        try:
            # up to its first wait, which comes after writing, nobody else runs: the order is that of `_waiting`
            await self._connection.send_packed_command(self._connection.pack_commands(commands), check_health=False)
        except (RedisError, OSError) as error:
            self.end(str(error))
        return [await answer for answer in answers]

    def end(self, reason: str) -> None:
        """Fail whatever waits for an answer, and everything from now on."""
        if self.ended.done():
            return
        self._reason = reason
        self.ended.set_result(None)
        for answer in self._waiting:
            self._settle(answer, ConnectionError(reason))
        self._waiting.clear()

    async def close(self) -> None:
        """Let go of the connection."""
        self.end("closed")
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._connection.disconnect(nowait=True)

    def _check(self) -> None:
        if self.ended.done():
            raise StoreUnavailable(f"{self._place}: {self._reason}")
        if len(self._waiting) > _WAITING_MOST:
            raise StoreUnavailable(f"{self._place}: {len(self._waiting)} commands wait for their answers already")

    async def _read(self) -> None:
        try:
            while True:
                answer = await self._next()
                self._settle(self._waiting.popleft(), answer)
                if isinstance(answer, ReadOnlyError):
                    self.end("it has become a replica of another")
        except (RedisError, OSError) as error:
            self.end(str(error))
        finally:
            self.end("the connection was closed")

    async def _next(self) -> Answer:
        try:
            return await self._connection.read_response()
        except ResponseError as error:
            return error

    def _settle(self, waiting: asyncio.Future[Answer], answer: Answer) -> None:
        if waiting.done():
            return
        if not isinstance(answer, Exception):
            waiting.set_result(answer)
            return
        waiting.set_exception(StoreUnavailable(f"{self._place}: {answer}"))
        waiting.exception()  # whoever waits may have been given up


async def connect(address: Address) -> Link:
    """Open a link and look who is there. Raises StoreUnavailable with a sentence for the operator."""
    connection = address.connection()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            engine = await _greet(connection)
    except (StoreUnavailable, RedisError, OSError, LookupError, ValueError) as error:
        sentence = next(sentence for kind, sentence in _SENTENCES if isinstance(error, kind))
        raise StoreUnavailable(f"{address.place} {sentence.format(error=error)}") from None
    return Link(connection, address.place, engine)


async def _greet(connection: AbstractConnection) -> Engine:
    try:
        await connection.connect()  # type: ignore[no-untyped-call]
        said = await _first(connection, "INFO")
        seconds, microseconds = await _first(connection, "TIME")
        return _examined(_lines(said), int(seconds) + int(microseconds) / 1_000_000)
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


async def _first(connection: AbstractConnection, command: str) -> Answer:
    await connection.send_command(command, check_health=False)
    return await connection.read_response()


_SENTENCES: Final[Sequence[tuple[type[BaseException], str]]] = (
    (StoreUnavailable, "{error}"),
    (AuthenticationError, "refuses the user or password of transient_url: {error}"),
    (NoPermissionError, "does not let this user do what CorpID needs (+@read +@write +info +time): {error}"),
    (TimeoutError, f"did not answer within {ANSWER_SECONDS:g} seconds"),
    (RedisError, "cannot be reached; is it running, and does transient_url name it? {error}"),
    (OSError, "cannot be reached; is it running, and does transient_url name it? {error}"),
    (Exception, "gives answers that are not those of Redis or Valkey: {error}"),
)


def _lines(answer: bytes) -> dict[str, str]:
    lines = answer.decode("utf-8", errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _examined(said: Mapping[str, str], now: float) -> Engine:
    version = said.get("redis_version", "0")
    if int(version.partition(".")[0]) < _OLDEST:
        raise StoreUnavailable(f"is version {version}, and CorpID needs {_OLDEST}.0 or later")
    if said.get("cluster_enabled") == "1":
        raise StoreUnavailable(
            "is part of a Redis Cluster, which CorpID cannot use yet: what was spent could be spent again after its "
            "slot has moved to another node. Use a single node, with replicas if one may fail"
        )
    if said.get("role") != "master":
        raise StoreUnavailable("is a replica: transient_url must name the primary")
    policy = said.get("maxmemory_policy", _NO_EVICTION)
    if policy != _NO_EVICTION:
        raise StoreUnavailable(
            f"may forget what was spent before its time: set maxmemory-policy to {_NO_EVICTION} (it is {policy})"
        )
    return Engine(
        run_id=said["run_id"],
        started_at=min(now, now - int(said["uptime_in_seconds"]) + 1),
        remembers_all=said.get("master_replid2", _NEVER) == _NEVER,
        now=now,
    )
