"""The outgoing HTTP client, bounded in time and bytes (D27).

HTTP clients bound the body at best. Here everything counts that arrives: interim answers, status lines, headers,
chunk framing and trailers, and below them, the records of TLS.

The person who registers a URL chooses the target of this process's connections. So a name is looked up once, every
address of it is judged, and the connection goes to an address that was judged. Nothing of the
environment (proxies), of earlier answers (cookies, open connections) or of the answer itself
(redirects, compression) has a say.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from contextlib import asynccontextmanager, suppress
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import h11
import httpx
from anyio.abc import ByteStream, SocketStream
from anyio.streams.tls import TLSStream

from corpid import __version__
from corpid.outbound.destinations import INTERNET, EgressRules, HttpClientError
from corpid.rules.characters import printable
from corpid.rules.oauth.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    Address: TypeAlias = IPv4Address | IPv6Address
    Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

ANSWER_BYTES: Final = 65536
"""of HTTP: everything from the first status line to the end of the body"""
WIRE_BYTES: Final = 2 * ANSWER_BYTES
"""with TLS: allows a handshake and record frames in addition to a full answer"""
INTERIM_ANSWERS: Final = 3
READ_BYTES: Final = 16384


class NotConnected(Exception):
    """No connection to this address, or no TLS on it.

    Another address of the same host may do better.
    """


class AnswerRefused(Exception):
    """The server answered, but with something that is not taken.

    The text says what.
    """


async def get(
    address: str,
    port: int,
    *,
    server_name: str,
    target: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    connect_seconds: float,
) -> bytes:
    """The body of the 200 response to a GET at an address.

    `tls` None: plain HTTP.

    TLS is checked for `server_name`; `connect_seconds` is the time for TCP and TLS, the caller bounds the rest.
    Raises NotConnected, AnswerRefused. Source: RFC 9112, D27
    """
    async with _connected(address, port, server_name, tls, connect_seconds) as stream:
        try:
            return await _exchange(stream, target, headers)
        except h11.RemoteProtocolError as error:
            raise AnswerRefused(f"this is not an HTTP/1.1 answer (RemoteProtocolError: {error})") from error
        except (OSError, anyio.BrokenResourceError) as error:
            raise AnswerRefused(f"the connection broke ({_reason(error)})") from error


@asynccontextmanager
async def _connected(
    address: str, port: int, server_name: str, tls: ssl.SSLContext | None, seconds: float
) -> AsyncIterator[ByteStream]:
    tcp: SocketStream | None = None
    try:
        try:
            async with asyncio.timeout(seconds):
                tcp = await anyio.connect_tcp(address, port)
                stream: ByteStream = _Counted(tcp)
                if tls is not None:
                    # Only its framing shows whether a body is whole: many servers end without a close_notify.
                    stream = await TLSStream.wrap(
                        stream, hostname=server_name, ssl_context=tls, standard_compatible=False
                    )
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:  # a TimeoutError is an OSError
            raise NotConnected(_reason(error)) from error
        yield stream
    finally:
        if tcp is not None:
            await tcp.aclose()


class _Counted(ByteStream):
    """A TCP connection that ends when too much has arrived.

    Also if TLS makes no bytes of a response of it.
    """

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._received = 0

    async def receive(self, max_bytes: int = READ_BYTES) -> bytes:
        received = await self._stream.receive(min(max_bytes, READ_BYTES))
        self._received += len(received)
        if self._received > WIRE_BYTES:
            raise AnswerRefused(f"more than {WIRE_BYTES} bytes arrived, TLS included")
        return received

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _exchange(stream: ByteStream, target: bytes, headers: Mapping[str, str]) -> bytes:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_BYTES)
    request = h11.Request(method=b"GET", target=target, headers=list(headers.items()))
    await stream.send((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    body, received, interim = bytearray(), 0, 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            octets = await _received(stream)
            received += len(octets)
            if received > ANSWER_BYTES:
                raise AnswerRefused(f"the answer is larger than {ANSWER_BYTES} bytes")
            connection.receive_data(octets)
        elif isinstance(event, h11.InformationalResponse):
            interim += 1
            if interim > INTERIM_ANSWERS:
                raise AnswerRefused(f"more than {INTERIM_ANSWERS} interim answers came (status {event.status_code})")
        elif isinstance(event, h11.Response):
            _judge(event)
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)
        else:
            raise AnswerRefused("the connection was closed without an answer")


async def _received(stream: ByteStream) -> bytes:
    try:
        return await stream.receive(READ_BYTES)
    except anyio.EndOfStream:
        return b""


def _judge(answer: h11.Response) -> None:
    if answer.status_code != 200:
        raise AnswerRefused(f"the answer has status {answer.status_code}, expected 200 (redirects are not followed)")
    fields = b",".join([value for name, value in answer.headers if name == b"content-encoding"])
    codings = {coding.strip().lower() for coding in fields.split(b",")} - {b"", b"identity"}
    if codings:
        named = printable(b" ".join(sorted(codings)).decode("latin-1")[:40])
        raise AnswerRefused(f"the answer is compressed or encoded ({named}), though the request asked for identity")


def _reason(error: BaseException) -> str:
    """The underlying error: libraries wrap the system's error in their own."""
    cause = error.__cause__
    if isinstance(cause, OSError):
        return _reason(cause)
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or "no answer"


FETCH_SECONDS: Final = 3.0
FETCHES: Final = 16
LOOK_UPS: Final = 32
ADDRESSES_TRIED: Final = 3

_HEADERS: Final = {
    "User-Agent": f"CorpID/{__version__}",
    "Accept": "application/jwk-set+json, application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
}
_HOST_NAME: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9-]{1,63}")
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


def system_addresses(name: str, port: int) -> list[str]:
    """Look a name up with the operating system.

    Blocks for as long as that does. Raises OSError (D27).
    """
    return [str(found[4][0]) for found in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]


class _LookUps:
    """Name look-ups, each in a daemon thread that may hang.

    A name that is being looked up is not looked up a second time: a name server that hangs holds one
    thread per name of its. When all threads are held, further names fail at once.
    """

    def __init__(self, resolve: Resolve, threads: int) -> None:
        self._resolve = resolve
        self._threads = threads
        self._under_way: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}

    async def addresses(self, name: str, port: int) -> Sequence[str]:
        under_way = self._under_way.get((name, port)) or self._started(name, port)
        return await asyncio.shield(under_way)

    def _started(self, name: str, port: int) -> asyncio.Future[Sequence[str]]:
        if len(self._under_way) >= self._threads:
            raise HttpClientError(f"{name} was not looked up: {self._threads} other name look-ups hang")
        answer: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
        thread = threading.Thread(target=self._look_up, args=(name, port, answer), name="look-up", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise HttpClientError(f"{name} was not looked up: {error}") from None
        self._under_way[name, port] = answer
        answer.add_done_callback(lambda _: self._under_way.pop((name, port)))
        return answer

    def _look_up(self, name: str, port: int, answer: asyncio.Future[Sequence[str]]) -> None:
        found: Sequence[str] = ()
        failure: HttpClientError | None = None
        try:
            found = self._resolve(name, port)
        except (OSError, ValueError) as error:
            failure = HttpClientError(f"{name} was not found: {error}")

        def settle() -> None:
            if failure is None:
                answer.set_result(found)
            else:
                answer.set_exception(failure)
                answer.exception()  # there may be no waiter any more

        with suppress(RuntimeError):  # the loop was closed while the look-up hung
            answer.get_loop().call_soon_threadsafe(settle)


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Load the trusted certificate authorities once per process.

    They are those of the open internet. Reading them takes long.
    """
    return httpx.create_ssl_context()


def trusting(authorities: Path) -> ssl.SSLContext:
    """A TLS context that trusts the authorities in a PEM file, too.

    Raises HttpClientError.
    """
    context = httpx.create_ssl_context()
    try:
        context.load_verify_locations(authorities)
    except OSError as error:  # ssl.SSLError is one
        raise HttpClientError(f"the authorities in {authorities} cannot be read: {error}") from None
    return context


class HttpClient:
    """Fetches over the open internet within the bounds of D27."""

    def __init__(
        self,
        *,
        own_url: str,
        further_urls: Sequence[str] = (),
        rules: EgressRules = INTERNET,
        resolve: Resolve = system_addresses,
        ssl_context: ssl.SSLContext | None = None,
        seconds: float = FETCH_SECONDS,
        fetches: int = FETCHES,
        look_ups: int = LOOK_UPS,
    ) -> None:
        own = [httpx.URL(url) for url in (own_url, *further_urls)]
        self.rules = rules
        self._own = frozenset(
            (url.raw_host.decode("ascii"), url.port or DEFAULT_PORTS.get(url.scheme, 0)) for url in own
        )
        self._own_names = frozenset(name for name, _ in self._own)
        self._ssl_context = ssl_context or _trusted_authorities()
        self._ssl_context.set_alpn_protocols(["http/1.1"])
        self._seconds = seconds
        self._fetches = fetches
        self._slots = asyncio.Semaphore(fetches)
        self._look_ups = _LookUps(resolve, look_ups)

    async def fetch(self, url: str) -> bytes:
        """The body of the 200 response at `url`.

        At most 64 KiB with all that surrounds it, within 3 seconds in all. Raises HttpClientError for everything else:
        a URL or address that is not allowed, an unknown name, no connection, a certificate that does not fit, another
        status, a compressed, oversized or slow answer, more than three interim answers. When 16 fetches are under way
        it first waits, at most as long again, for one to end. Source: D27
        """
        target = self._allowed(url)
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise HttpClientError(f"{self._fetches} other fetches are under way and hang") from None
        try:
            async with asyncio.timeout(self._seconds):
                return await self._fetched(target)
        except TimeoutError:
            raise HttpClientError(f"{target.host} gave no complete answer within {self._seconds:g} s") from None
        except AnswerRefused as error:
            raise HttpClientError(f"{target.host}: {error}") from error
        finally:
            self._slots.release()

    def _allowed(self, url: str) -> httpx.URL:
        try:
            target = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise HttpClientError(f"the URL is malformed: {error}") from None
        name, port, rules = target.raw_host.decode("ascii"), _port(target), self.rules
        is_name = _HOST_NAME.fullmatch(name) and not _NUMBER.fullmatch(name)
        own = (name, port) in self._own if rules.own_ports else name in self._own_names
        _demand(target.scheme in rules.schemes, f"the URL starts with {' or '.join(rules.schemes)}://")
        _demand(not rules.ports or port in rules.ports, f"the port is {', '.join(map(str, rules.ports))}")
        _demand(bool(is_name or (name and not rules.names_only)), "the host is a name, not an address")
        _demand(not own, "the URL is not one of this provider")
        _demand(not target.userinfo, "the URL has no user name or password")
        return target

    async def _fetched(self, target: httpx.URL) -> bytes:
        name = target.raw_host.decode("ascii")
        found = await self._look_ups.addresses(name, _port(target))
        addresses = tuple(dict.fromkeys(map(ip_address, found)))
        refused = [str(address) for address in addresses if not self.rules.permits(address)]
        if refused or not addresses:
            raise HttpClientError(f"{name} has addresses that are not public: {', '.join(refused) or 'none at all'}")
        tried = addresses[:ADDRESSES_TRIED]
        failures: list[str] = []
        for address in tried:
            try:
                return await get(
                    str(address),
                    _port(target),
                    server_name=name,
                    target=target.raw_path,
                    headers={"Host": target.netloc.decode("ascii"), **_HEADERS},
                    tls=self._ssl_context if target.scheme == "https" else None,
                    connect_seconds=self._seconds / len(tried),
                )
            except NotConnected as error:
                failures.append(f"{address}: {error}")
        raise HttpClientError(f"no connection to {name}: {'; '.join(failures)}")


def _port(url: httpx.URL) -> int:
    return url.port or DEFAULT_PORTS.get(url.scheme, 0)


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise HttpClientError(f"not fetched, because of the rule: {rule}")
