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

Incarnations of an engine, and orderly stops.

An incarnation is a period. What was written in one is not found in another.

Its name says since when, epoch seconds by the engine's clock, everything that was written in it is remembered, and has
a random part. Names are put in order by that time. Incarnations that follow each other while processes look on share a
store identity, and carry its name; a process that finds no incarnation at all begins one with a store identity of its
own. A marker in each part names the incarnation of the part, and the run of the engine that had it then.
`stores.data_loss` has the theory for all engines.

An orderly stop of an engine is a restart without a loss.

Whatever an engine loads after a restart is what it was at some moment: everything up to there, and nothing of what came
later. So a marker that is found again proves everything that was written before it. An orderly stop makes sure that
nothing was acknowledged after it:

- A *closing marker* takes the place of the incarnation's marker. Every command travels with a look at the marker
  (StoreIncarnation.ask), so an answer that comes after it is refused, in every process. It has a random
  name.
- The name is noted outside the engine (stores.sql.orderly_stops) before the marker is written (`begin`), and confirmed
  afterwards if the marker took the place of that of the same incarnation, in the same run. What is not confirmed proves
  nothing.
- A process that finds the closing marker in another run ends the confirmed stop in the notes, which one process can,
  once. Then it marks the engine with the incarnation from before. Everything of it is there, so nothing was lost.
- A process that begins another incarnation ends every stop first. So while one is confirmed there is no later
  incarnation, whose entries would not be found in this one.
- A process that dies between these steps, notes that do not answer, a marker that is not found, or is found a second
  time: all of these end as a loss.

A cluster is refused: its nodes do not stop at one moment, and slots may have moved before they are found again.
Source: D67, docs/decisions/0027
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from zlib import crc32

import hiredis
import msgspec
from redis.asyncio.connection import Connection, parse_url
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from corpid.event_log import log
from corpid.rules.failures import OrderlyStopRefused, StoreUnavailable
from corpid.stores import milliseconds

if TYPE_CHECKING:
    from asyncio import StreamWriter
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from redis.asyncio.connection import AbstractConnection

    from corpid.stores.transient import OrderlyStops

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


NONE: Final = b""
"""before every other"""
_SET_BACK: Final = b"back"
"""in the name of an incarnation whose engine has a clock far behind the previous one's"""


PART: Final = 0
"""a node alone has one"""
CLOSED: Final = b"closed"
"""in the place of the run, so that no version takes a closing marker for an incarnation"""
_MEMBERS: Final = 5
_NOTES_SECONDS: Final = 1.0
"""how long the notes may take, within the time of an examination"""
_ANOTHER_SECONDS: Final = ANSWER_SECONDS + 0.5
"""how long another process that ended the stop may take to mark the engine, which is part of an examination"""
_CLOSED_SENTENCE: Final = "it is closed for a restart (`corpid maintenance open-store` undoes that)"


class StoreIncarnation:
    """An incarnation as one process sees it: the nodes of its parts."""

    __slots__ = ("_expected", "_marker_gets", "_markers", "_prefixes", "name", "serving")

    def __init__(self, name: bytes, serving: Sequence[EngineLink | StoreUnavailable]) -> None:
        self.name: Final = name
        self.serving: Final = tuple(serving)
        self._markers: Final = [name_marker(part) for part in range(len(serving))]
        self._prefixes: Final = [b"%b:%b:" % (marker, name) for marker in self._markers]
        self._marker_gets: Final = [packed(("GET", marker)) for marker in self._markers]
        self._expected: Final = [
            b"" if isinstance(link, StoreUnavailable) else encode_marker(link, name) for link in serving
        ]

    def entry(self, kind: str, key: bytes) -> tuple[int, bytes]:
        """The part of an entry, and its name in the engine."""
        part = crc32(key) % len(self.serving)
        return part, b"%b%b:%b" % (self._prefixes[part], kind.encode(), key)

    def links(self) -> set[EngineLink]:
        """Those of all parts. Raises StoreUnavailable if one cannot be asked."""
        return {self._link(part) for part in range(len(self.serving))}

    async def ask(self, part: int, commands: Sequence[bytes]) -> list[Answer]:
        """The answers to packed commands, valid in this incarnation.

        The last command in the same pipeline asks for the part's incarnation. Names of incarnations never come back,
        but of an engine that was closed and lost nothing (ClosingMarker), so that it is still this one means that it
        was this one all along.
        """
        answers = await self._link(part).send([*commands, self._marker_gets[part]])
        if answers.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        return answers

    async def read(self, part: int, names: Sequence[bytes]) -> list[bytes | None]:
        """The values of entries of a part, valid in this incarnation.

        The part's incarnation is in the same answer.
        """
        [values] = await self._link(part).send([packed(("MGET", *names, self._markers[part]))])
        if values.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        found: list[bytes | None] = values
        return found

    def _incarnation_changed(self, part: int) -> StoreUnavailable:
        place = self._link(part).address.name
        return StoreUnavailable(
            f"{place} was closed for a restart, or has forgotten something, or somebody found that another has"
        )

    def _link(self, part: int) -> EngineLink:
        link = self.serving[part]
        if isinstance(link, StoreUnavailable):
            raise StoreUnavailable(str(link))
        return link


def name_marker(part: int) -> bytes:
    """The engine's key of a part's marker.

    The braces keep all keys of a part in one slot.
    """
    return b"corpid:{p%d}" % part


def name_claim(part: int) -> bytes:
    """The engine's key of the right to begin a new incarnation."""
    return b"%b:claim" % name_marker(part)


def encode_marker(link: EngineLink, name: bytes) -> bytes:
    """The value of a marker: incarnation, and run of the engine."""
    return b"%b:%b" % (link.engine.run_id.encode(), name)


def read_incarnation(link: EngineLink, mark: bytes | None) -> bytes:
    """The incarnation's name in a marker.

    NONE if it was not made in this run of the engine.
    """
    run, _, name = (mark or NONE).partition(b":")
    return name if run == link.engine.run_id.encode() else NONE


def make_next_name(since: float, *, after: bytes, set_back: bool = False) -> bytes:
    """The name of a new incarnation after another, in its store identity.

    `since`: from when on it remembers everything, epoch seconds. After NONE it has a store identity of its own.
    `set_back`: what was spent before may be dated later than that.
    """
    first = max(milliseconds(since), round(remembers_since(after) * 1000) + 1)
    names = [
        secrets.token_hex(6).encode(),
        *([_SET_BACK] if set_back else []),
        *([store_identity(after)] if after else []),
    ]
    return b"-".join([b"%013d" % first, *names])


def store_identity(name: bytes) -> bytes:
    """The store identity that an incarnation is in.

    Its first one has no other name in it.
    """
    return name.rpartition(b"-")[2]


def begins_store(name: bytes) -> bool:
    """Return whether it is the first incarnation of its store identity."""
    return name.count(b"-") == 1


def is_set_back(name: bytes) -> bool:
    """Return whether what was spent before may be dated later."""
    return _SET_BACK in name.split(b"-")


def remembers_since(name: bytes) -> float:
    """Epoch seconds by the engine's clock; 0 for NONE."""
    return int(name.partition(b"-")[0] or 0) / 1000


# --- an orderly stop


class ClosingMarker(msgspec.Struct, frozen=True, kw_only=True):
    """The marker of an engine that is closed."""

    run: bytes
    """of the engine, when it was closed"""
    name: bytes
    until: float
    """epoch seconds by the engine's clock, after which it opens without a restart"""
    incarnation: bytes

    @property
    def mark(self) -> bytes:
        """Its value in the engine."""
        return b":".join([CLOSED, self.run, self.name, b"%d" % milliseconds(self.until), self.incarnation])

    @property
    def store_identity(self) -> str:
        return store_identity(self.incarnation).decode()

    def is_of(self, link: EngineLink) -> bool:
        """Return whether the engine was not restarted since."""
        return self.run == link.engine.run_id.encode()


def read_closing_marker(mark: bytes | None) -> ClosingMarker | None:
    """The closing marker in a value; None for another one."""
    members = (mark or b"").split(b":")
    if len(members) != _MEMBERS or members[0] != CLOSED:
        return None
    _, run, name, until, incarnation = members
    return ClosingMarker(run=run, name=name, until=int(until) / 1000, incarnation=incarnation)


class NoOrderlyStops:
    """An OrderlyStops of a process without notes: nothing is proven."""

    async def begin(self, name: str, *, store_identity: str) -> None:
        """Nothing: `confirm` says so."""

    async def confirm(self, name: str, *, store_identity: str) -> bool:  # noqa: ARG002 - nothing is kept
        return False

    async def end(self, name: str, *, store_identity: str) -> bool:  # noqa: ARG002 - nothing is kept
        return False

    async def void(self) -> None:
        """Nothing to end."""


class Closing:
    """A process's knowledge of the orderly stop of its engine."""

    def __init__(self, stops: OrderlyStops) -> None:
        self._stops: Final = stops
        self._reported: ClosingMarker | None = None
        self._is_open = True
        """as far as was reported"""
        self._not_ours: ClosingMarker | None = None
        """the one whose stop this process could not end"""
        self._not_ours_since = 0.0

    async def settle(self, link: EngineLink, marker: ClosingMarker, now: float) -> EngineLink | StoreUnavailable | None:
        """Open the engine if it is time, and if that loses nothing.

        Returns the link once it is open, the reason while it is not, and None if this is a loss. `now` is the engine's
        time. Raises StoreUnavailable.
        """
        if self._reported != marker:
            self._reported, self._is_open = marker, False
            log().warning("store_closed", detail=f"{link.address.name}: {_CLOSED_SENTENCE}")
        is_over = now > marker.until
        if marker.is_of(link) and not is_over:
            return StoreUnavailable(f"{link.address.name}: {_CLOSED_SENTENCE}")
        if is_over and not marker.is_of(link):
            return None
        try:
            async with asyncio.timeout(_NOTES_SECONDS):
                ended = await self._stops.end(marker.name.decode(), store_identity=marker.store_identity)
        except (StoreUnavailable, TimeoutError) as error:
            return StoreUnavailable(f"{link.address.name} cannot be opened again without the database: {error}")
        if ended:
            return link if await _marked_again(link, marker) else None
        return self._another(link, marker)

    def examine(self, *, intact: bool) -> None:
        """Report how the stop ended; `intact`: the incarnation goes on."""
        if self._is_open:
            return
        self._is_open = True
        if intact:
            log().info("store_opened", detail="everything that was written before it was closed is there")
            return
        log().warning(
            "store_not_proven",
            detail="it came back without the marker of its orderly stop, too late, or a second time: this counts as a loss. "
            "Was it stopped with SHUTDOWN SAVE, or with an appendonly file?",
        )

    async def before_another_incarnation(self) -> None:
        """End every stop. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(_NOTES_SECONDS):
                await self._stops.void()
        except TimeoutError:
            raise StoreUnavailable("the database did not answer in time") from None

    def _another(self, link: EngineLink, marker: ClosingMarker) -> StoreUnavailable | None:
        now = asyncio.get_running_loop().time()
        if self._not_ours != marker:
            self._not_ours, self._not_ours_since = marker, now
        if now - self._not_ours_since > _ANOTHER_SECONDS:
            return None
        return StoreUnavailable(f"{link.address.name}: another process opens it again")


async def _marked_again(link: EngineLink, marker: ClosingMarker) -> bool:
    """Mark the engine with the incarnation from before.

    Returns False, with no marker left, if it is not as it was closed.
    """
    again = encode_marker(link, marker.incarnation)
    [before] = await link.ask(("SET", name_marker(PART), again, "XX", "GET"))
    if before == marker.mark:
        return True
    await link.ask(("DEL", name_marker(PART)))
    return False


async def close_engine(url: str, stops: OrderlyStops, *, name: str, seconds: int) -> None:
    """Close the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", name_marker(PART)))
        if read_closing_marker(mark) is not None:
            raise OrderlyStopRefused(f"{link.address.name}: {_CLOSED_SENTENCE}")
        incarnation = read_incarnation(link, mark)
        if incarnation == NONE:
            raise OrderlyStopRefused(
                f"{link.address.name} has nothing of a server that runs: no server has used it since it was started"
            )
        until = await link.time() + seconds
        marker = ClosingMarker(
            run=link.engine.run_id.encode(), name=name.encode(), until=until, incarnation=incarnation
        )
        await stops.begin(name, store_identity=marker.store_identity)
        [before] = await link.ask(("SET", name_marker(PART), marker.mark, "XX", "GET"))
        if before != mark:
            await _give_up(link, stops)
        if before != mark or not await stops.confirm(name, store_identity=marker.store_identity):
            raise OrderlyStopRefused(
                f"{link.address.name} has just lost data, or is being closed by somebody else: try again"
            )


async def open_engine_again(url: str, stops: OrderlyStops) -> bool:
    """Open the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", name_marker(PART)))
        marker = read_closing_marker(mark)
        if marker is None:
            raise OrderlyStopRefused(f"{link.address.name} is not closed")
        if not marker.is_of(link):
            raise OrderlyStopRefused(f"{link.address.name} was restarted: servers that run open it by themselves")
        # A process that finds the stop ended waits for the marker no longer than _ANOTHER_SECONDS.
        async with asyncio.timeout(ANSWER_SECONDS):
            if await stops.end(marker.name.decode(), store_identity=marker.store_identity):
                return await _marked_again(link, marker)
        await _give_up(link, stops)
        return False


async def _give_up(link: EngineLink, stops: OrderlyStops) -> None:
    """Let a process that serves begin another incarnation."""
    await stops.void()
    await link.ask(("DEL", name_marker(PART)))


@asynccontextmanager
async def _alone(url: str) -> AsyncIterator[EngineLink]:
    """A link to a node that is no part of a cluster."""
    link = await connect(parse_addresses(url)[0])
    try:
        if link.engine.clustered:
            raise OrderlyStopRefused(
                f"{link.address.name} belongs to a cluster, whose nodes do not stop at one moment: no marker proves that "
                "nothing was lost. Restart its nodes when traffic is low; callers wait as after a loss of data"
            )
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            yield link
    except TimeoutError:
        raise StoreUnavailable(f"{link.address.name} or the database did not answer in time") from None
    finally:
        await link.close()
