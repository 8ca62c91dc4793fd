"""Addresses of an engine, and the link to one run of it.

A link is a connection that all requests share.

Of a cluster each node has such a link. What a node refuses, because it does not hold the key (any more), it has
not executed; it is refused here too, and never sent on to another node.

Commands of many requests are written in the order in which they come, those of one iteration of the loop at once
(a write to a socket costs more than what is written), and answers come back in the same order. So nothing
waits for a free connection, a request that is given up leaves no answer behind for another, and when the
engine hangs one question that stays without an answer shows it for all. The driver connects and greets; then
the link takes its transport over, since the driver's streams cost more than everything else about a command.

A link never connects again. When it ends, every command without an answer fails, and it is unknown
whether it was executed: it is never sent a second time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import hiredis
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from corpid.rules.failures import StoreUnavailable

if TYPE_CHECKING:
    from asyncio import StreamWriter
    from collections.abc import Callable, Iterable, Mapping, Sequence


ANSWER_SECONDS: Final = 2.0
"""how long anything may take: to connect, or to answer"""
_SAME_AS: Final = {"valkey": "redis", "valkeys": "rediss"}
"""Valkey speaks as Redis does, and the driver knows the schemes of Redis only"""


class EngineAddress:
    """The address of an engine; its text never contains the password."""

    def __init__(self, kind: type[AbstractConnection], options: Mapping[str, Any], *, engine: str) -> None:
        self._kind: Final = kind
        self._engine: Final = engine
        # one attempt: the caller decides when to try again
        self._options: Final = {
            **options,
            "socket_connect_timeout": ANSWER_SECONDS,
            "socket_timeout": None,
            "protocol": 2,
            "decode_responses": False,
        }
        self.host: Final[str] = options.get("host", "localhost")
        self.place: Final[str] = options.get("path", f"{self.host}:{options.get('port', 6379)}")
        self.name: Final = f"{engine} at {self.place}"

    def connection(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._kind(**self._options)

    def with_host(self, host: str, port: int) -> EngineAddress:
        """Another node of the same cluster: same user, password and TLS."""
        return EngineAddress(self._kind, {**self._options, "host": host, "port": port}, engine=self._engine)


def parse_addresses(url: str) -> list[EngineAddress]:
    """Each HOST:PORT of a `transient_url`, separated by commas.

    Raises StoreUnavailable.
    """
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    login, at, hosts = authority.rpartition("@")
    return [_parse_address(f"{scheme}{mark}{login}{at}{host}{slash}{path}") for host in hosts.split(",")]


def _parse_address(url: str) -> EngineAddress:
    scheme, mark, rest = url.partition("://")
    try:
        options: dict[str, Any] = {**parse_url(f"{_SAME_AS.get(scheme, scheme)}{mark}{rest}")}
        engine = "Valkey" if scheme in _SAME_AS else "Redis"
        address = EngineAddress(options.pop("connection_class", Connection), options, engine=engine)
        address.connection()
    except (ValueError, TypeError):
        raise StoreUnavailable(
            "transient_url is not an address of Redis or Valkey: write redis://HOST:PORT/0 or valkey://HOST:PORT/0, "
            "or rediss:// or valkeys:// for TLS, with USER:PASSWORD@ before HOST where needed (special characters "
            "percent-encoded)"
        ) from None
    return address


_OLDEST: Final = 7
"""the version of Redis that brought PEXPIRE NX and SET NX GET; Valkey says 7.2.4 here, whatever its own"""
_NO_EVICTION: Final = "noeviction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One run of an engine, which CorpID can use."""

    run_id: str
    """differs after every start, and after a replica was promoted"""
    clustered: bool
    """it is a node of a cluster, and holds the slots that the cluster gave it"""
    info: Mapping[str, str]
    """everything in its answer to INFO"""


def check_engine(answer: bytes) -> Engine:
    """The engine of an answer to INFO.

    Raises StoreUnavailable with what to change, LookupError and ValueError.
    """
    lines = answer.decode("utf-8", errors="replace").splitlines()
    info = dict(line.split(":", 1) for line in lines if ":" in line)
    version = info.get("redis_version", "0")
    if int(version.partition(".")[0]) < _OLDEST:
        raise StoreUnavailable(f"is version {version}, and CorpID needs {_OLDEST}.0 or later")
    clustered = info.get("cluster_enabled") == "1"
    if info.get("role") != "master" and not clustered:
        raise StoreUnavailable("is a replica: transient_url must name the primary")
    policy = info.get("maxmemory_policy", _NO_EVICTION)
    if policy != _NO_EVICTION:
        raise StoreUnavailable(
            f"may forget what was spent before its time: set maxmemory-policy to {_NO_EVICTION} (it is {policy})"
        )
    return Engine(run_id=info["run_id"], clustered=clustered, info=info)


Command: TypeAlias = "tuple[str | bytes | int, ...]"
Answer: TypeAlias = Any  # bytes, a number, a list of them, or None

_WAITING_MOST: Final = 10_000
"""commands without an answer; more are refused at once"""
_PERMISSIONS: Final = "+@read +@write -@dangerous +info +time, and +cluster|slots on a cluster"


_READ_ONLY: Final = "READONLY"
"""how a replica's refusal of a write begins"""


_UNASKED: Final = "it has answered what was not asked"
_CLOSED: Final = "the connection was closed"
_UNFINISHED: Final = object()
"""what the reader has until an answer is complete; its own word for it, False, is an answer of later protocols"""


class _Answers(asyncio.Protocol):
    """The receiver for a transport that a driver opened.

    The driver still learns of its end.
    """

    def __init__(
        self, driver: asyncio.Protocol, received: Callable[[bytes], None], ended: Callable[[str], None]
    ) -> None:
        self._driver: Final = driver
        self._received: Final = received
        self._ended: Final = ended

    def data_received(self, data: bytes) -> None:
        self._received(data)

    def eof_received(self) -> None:
        # the transport closes itself now, but may wait until the rest is sent before it says that it is lost
        self._ended(_CLOSED)

    def connection_lost(self, error: Exception | None) -> None:
        self._ended(str(error) if error else _CLOSED)
        self._driver.connection_lost(error)


packed: Final = cast("Callable[[Command], bytes]", hiredis.pack_command)
"""a command as it is sent"""


class _Pipeline:
    """Commands that were sent together, and their answers so far."""

    __slots__ = ("answers", "outcome", "unanswered")

    def __init__(self, commands: int, outcome: asyncio.Future[list[Answer]]) -> None:
        self.unanswered = commands
        """the number of answers to come"""
        self.outcome: Final = outcome
        self.answers: Final[list[Answer]] = []


class EngineLink:
    """An open connection, and the engine at its other end."""

    def __init__(self, connection: AbstractConnection, address: EngineAddress, engine: Engine) -> None:
        self.engine: Final = engine
        self.address: Final = address
        self.ended: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._connection: Final = connection
        self._name: Final = address.name
        self._reason = ""
        self._waiting: Final[deque[_Pipeline]] = deque()
        self._unanswered = 0
        """commands"""
        self._unsent: Final[list[bytes]] = []
        self._loop: Final = asyncio.get_running_loop()
        # The driver has no public name for the transport of a connection that is open.
        self._transport: Final = cast("StreamWriter", connection._writer).transport  # noqa: SLF001
        driver = cast("asyncio.Protocol", self._transport.get_protocol())
        self._reader: Final = hiredis.Reader(notEnoughData=_UNFINISHED)
        self._transport.set_protocol(_Answers(driver, self._read, self.end))

    async def ask(self, *commands: Command) -> list[Answer]:
        """Send commands together and wait for all answers.

        What the engine refuses raises StoreUnavailable.
        """
        return await self.send([*map(packed, commands)])

    def send(self, commands: Sequence[bytes]) -> asyncio.Future[list[Answer]]:
        """As `ask`, for commands that are packed."""
        if self.ended.done() or self._transport.is_closing() or self._unanswered > _WAITING_MOST:
            if self._transport.is_closing():
                self.end(_CLOSED)
            if self.ended.done():
                raise StoreUnavailable(f"{self._name}: {self._reason}")
            raise StoreUnavailable(f"{self._name}: {self._unanswered} commands wait for their answers already")
        asked = _Pipeline(len(commands), self._loop.create_future())
        self._waiting.append(asked)
        self._unanswered += len(commands)
        if not self._unsent:
            self._loop.call_soon(self._write)
        self._unsent.extend(commands)
        return asked.outcome

    async def ask_each(self, commands: Iterable[Command]) -> list[Answer | StoreUnavailable]:
        """Send commands one by one.

        For what the engine refuses there is the error in the place of its answer.
        """
        return [
            _get_content(answer) for answer in await asyncio.gather(*map(self.ask, commands), return_exceptions=True)
        ]

    async def time(self) -> float:
        """Epoch seconds by the engine's clock (D49). Raises StoreUnavailable."""
        [(seconds, microseconds)] = await self.ask(("TIME",))
        return int(seconds) + int(microseconds) / 1_000_000

    def end(self, reason: str) -> None:
        """Fail whatever waits for an answer, and everything from now on."""
        if self.ended.done():
            return
        self._reason = reason
        self._unsent.clear()
        self.ended.set_result(None)
        for asked in self._waiting:
            self._refuse(asked, reason)
        self._waiting.clear()
        self._unanswered = 0

    async def close(self) -> None:
        """Close the connection.

        In order, if it still works and every command has its answer.
        """
        works = not self.ended.done() and not self._waiting
        self.end("closed")
        try:
            with suppress(RedisError):
                await self._connection.disconnect(nowait=not works)
        finally:
            # Else an engine that hangs keeps it open until it takes what is still to be sent. In early versions of
            # Python 3.11 asyncio's TLS raises this after the end of a connection.
            with suppress(AttributeError):
                self._transport.abort()

    def _write(self) -> None:
        if self._unsent:  # not if the link has ended meanwhile
            self._transport.write(b"".join(self._unsent))
            self._unsent.clear()

    def _read(self, data: bytes) -> None:
        if not self._waiting:
            self.end(_UNASKED)
            return
        try:
            self._reader.feed(data)
            # Every answer comes here, so that a call for each would cost as much as the rest.
            answered = self._reader.gets
            while (answer := answered()) is not _UNFINISHED:
                if not self._waiting:
                    self.end(_UNASKED)
                    return
                asked = self._waiting[0]
                asked.answers.append(answer)
                asked.unanswered -= 1
                if isinstance(answer, Exception):
                    self._refuse(asked, answer)
                    if str(answer).startswith(_READ_ONLY):
                        self.end("it has become a replica of another")
                        return
                if not asked.unanswered:
                    self._waiting.popleft()
                    self._unanswered -= len(asked.answers)
                    if not asked.outcome.done():
                        asked.outcome.set_result(asked.answers)
        except hiredis.ProtocolError as error:
            self.end(str(error))

    def _refuse(self, asked: _Pipeline, reason: object) -> None:
        if not asked.outcome.done():  # the caller may have given up, and another command may have been refused
            asked.outcome.set_exception(StoreUnavailable(f"{self._name}: {reason}"))
            asked.outcome.exception()  # the caller may give up before it looks


def _get_content(answers: list[Answer] | BaseException) -> Answer | StoreUnavailable:
    if isinstance(answers, StoreUnavailable):
        return answers
    if isinstance(answers, BaseException):
        raise answers
    return answers[0]


async def connect(address: EngineAddress) -> EngineLink:
    """Open a link and identify the engine.

    Raises StoreUnavailable with a sentence for the operator.
    """
    connection = address.connection()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await _greet(connection)
    except (StoreUnavailable, RedisError, OSError, LookupError, ValueError) as error:
        sentence = next(sentence for kind, sentence in _SENTENCES if isinstance(error, kind))
        raise StoreUnavailable(f"{address.name} {sentence.format(error=error)}") from None
    return EngineLink(connection, address, found)


async def _greet(connection: AbstractConnection) -> Engine:
    try:
        await connection.connect()  # type: ignore[no-untyped-call]
        await connection.send_command("INFO", check_health=False)
        engine = check_engine(await connection.read_response())
        if await connection.can_read():
            raise StoreUnavailable("has closed the connection, or answered more than it was asked")
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return engine


_SENTENCES: Final[Sequence[tuple[type[BaseException], str]]] = (
    (StoreUnavailable, "{error}"),
    (AuthenticationError, "refuses the user or password of transient_url: {error}"),
    (NoPermissionError, f"does not let this user do what CorpID needs ({_PERMISSIONS}): {{error}}"),
    (TimeoutError, f"did not answer within {ANSWER_SECONDS:g} seconds"),
    (RedisError, "cannot be reached; is it running, and does transient_url name it? {error}"),
    (OSError, "cannot be reached; is it running, and does transient_url name it? {error}"),
    (Exception, "gives answers that are not those of Redis or Valkey: {error}"),
)
