"""Listening sockets, connections, TLS and shutdown (D47, D52).

A certificate may be renewed while serving.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import ssl
from calendar import timegm
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from functools import partial
from time import gmtime, monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvloop

from corpid.web.http.addresses import ClientAddresses
from corpid.web.http.connection import CallerConnection
from corpid.web.http.connections import ConnectionRegistry, ConnectionShare, Limits, ServerState
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp

    Stamp = tuple[int, int, int] | None


BACKLOG: Final = 2048
_ACCEPTED_AT_ONCE: Final = 64
"""connections, before the event loop does something else"""
_YIELD_SECONDS: Final = 0.002
"""for workers with fewer connections to accept the next ones"""
_LEFT_BY_OTHERS: Final = 8
"""connections to accept after that time, since no other worker has accepted them"""
_PAUSE_SECONDS: Final = 1.0
"""after the system had no more files to give"""
SWEEP_SECONDS: Final = 0.5
FORCED_SECONDS: Final = 1.0
"""for tasks that were cancelled to end"""
_WILDCARDS: Final[dict[int, str]] = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}  # noqa: S104 - the operator's to choose
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on uvloop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def serve(server: Server, sockets: Sequence[socket.socket], *, on_started: Callable[[], None]) -> None:
    """Run a server until SIGTERM or SIGINT, then stop it gracefully.

    A second signal stops it at once. D47.
    """
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def stop() -> None:
        if asked.is_set():
            server.force()
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await server.start(sockets)
        on_started()
        await asked.wait()
        await server.stop()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class Server:
    """Serves one ASGI application on sockets, inside the running event loop.

    `bodiless` are the paths at which a request's body is not read, `streamed` those at which the application reads a
    large one itself, `forms` the beginnings of those at which a page refuses what is too large. `addresses` knows the proxies in front, for the log's lines of requests that broke a limit.
    `share` is that of this worker, if others accept on the same sockets. `on_draining` is called once, when stopping
    begins: from then on /readyz has to say so.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits | None = None,
        bodiless: Collection[str] = (),
        streamed: Collection[str] = (),
        forms: tuple[str, ...] = (),
        addresses: ClientAddresses | None = None,
        tls: ssl.SSLContext | None = None,
        share: ConnectionShare | None = None,
        drain_seconds: float = 10.0,
        delay_seconds: float = 0.0,
        on_draining: Callable[[], None] = lambda: None,
    ) -> None:
        chosen = limits or Limits()
        self._state: Final = ServerState(
            app=app,
            limits=chosen,
            bodiless=bodiless,
            streamed=streamed,
            forms=forms,
            addresses=addresses or ClientAddresses(),
            open_connections=ConnectionRegistry(chosen.connections, monotonic, share),
        )
        self._tls = tls
        self._drain_seconds = drain_seconds
        self._delay_seconds = delay_seconds
        self._on_draining = on_draining
        self._listeners: list[Listener] = []
        self._expiring: asyncio.Task[None] | None = None
        self._forced = asyncio.Event()
        self._draining = False

    @property
    def open_connections(self) -> ConnectionRegistry:
        """Every connection, also those whose handshake is not over."""
        return self._state.open_connections

    @property
    def in_progress(self) -> int:
        """The number of requests in progress, without those refused as too many."""
        return self._state.in_progress

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        """Serve these bound sockets, which the server owns now.

        Source: D47
        """
        self._refresh_date()
        self._expiring = asyncio.create_task(self._close_expired())
        if self.open_connections.share is not None:
            self.open_connections.share.begin()
        for listening in sockets:
            listener = Listener(
                listening,
                self._newcomer,
                self.open_connections,
                tls=self._tls,
                handshake_seconds=self._state.limits.head_seconds,
            )
            self._listeners.append(listener)

    async def stop(self) -> None:
        """Drain and stop the server.

        During the delay only /readyz answers otherwise, and a load balancer that asks it turns elsewhere. While
        something is in flight, for the first half of that time, newcomers are still answered: so that a load balancer
        sees /readyz say no before its requests are turned away. `force` cuts it short. D47.
        """
        self._on_draining()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._delay_seconds):
                await self._forced.wait()
        self._draining = True
        half = self._drain_seconds / 2
        await self._drained(half)
        if self.open_connections.share is not None:
            self.open_connections.share.end()
        while self._listeners:
            self._listeners.pop().close()
        await self._drained(half)
        for task in tuple(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(tuple(self._state.tasks), timeout=FORCED_SECONDS)
        for connection in self.open_connections.all():
            connection.drop()
        await asyncio.sleep(0)
        if self._expiring is not None:
            self._expiring.cancel()

    def force(self) -> None:
        """Stop without waiting for requests in progress."""
        self._forced.set()

    def _newcomer(self) -> CallerConnection:
        connection = CallerConnection(self._state)
        if self._draining:
            connection.take_one_request()
        return connection

    async def _drained(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        for connection in self.open_connections.all():
            connection.shutdown()
        while self._state.connections and not self._forced.is_set() and loop.time() < end:  # noqa: ASYNC110 - two things end it
            await asyncio.sleep(0.02)

    async def _close_expired(self) -> None:
        loop = asyncio.get_running_loop()
        sweep = min(SWEEP_SECONDS, self._state.limits.head_seconds / 4)
        while True:
            await asyncio.sleep(sweep)
            self._refresh_date()
            now = loop.time()
            for connection in tuple(self._state.connections):
                connection.expire(now)

    def _refresh_date(self) -> None:
        self._state.moment = timegm(gmtime())
        self._state.default_headers = b"date: %b\r\n" % formatdate(self._state.moment, usegmt=True).encode()


class Listener:
    """A server on a bound socket, which it owns.

    `made` makes the connection of a newcomer.
    """

    def __init__(
        self,
        listening: socket.socket,
        made: Callable[[], CallerConnection],
        open_connections: ConnectionRegistry,
        *,
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
    ) -> None:
        self._listening = listening
        self._made = made
        self._open_connections = open_connections
        self._tls = tls
        self._handshake_seconds = handshake_seconds if tls else None
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        listening.listen(BACKLOG)
        self._listen()

    def close(self) -> None:
        """Accept no further connections."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _listen(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _listen_again(self, *, wanted: int) -> None:
        self._listen()
        self._accept(wanted=wanted)

    def _listen_after(self, seconds: float, *, wanted: int = 0) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, partial(self._listen_again, wanted=wanted))

    def _accept(self, *, wanted: int = 0) -> None:
        """Accept connections.

        `wanted` of them are accepted even if this worker has more than its share.
        """
        share = self._open_connections.share
        for number in range(_ACCEPTED_AT_ONCE):
            if number >= wanted and share is not None and share.is_exceeded:
                self._listen_after(_YIELD_SECONDS, wanted=_LEFT_BY_OTHERS)
                return
            try:
                newcomer, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                access_log.log().error("connection_not_accepted", detail=str(error))
                self._listen_after(_PAUSE_SECONDS)
                return
            self._take_in(newcomer)

    def _take_in(self, newcomer: socket.socket) -> None:
        connection = self._made()
        if not self._open_connections.admit(connection):
            newcomer.close()
            return
        newcomer.setblocking(False)
        opening = self._loop.create_task(self._open(newcomer, connection))
        connection.opening = opening
        # and not in the task, which never runs if it is ended before it began
        opening.add_done_callback(partial(self._opened, newcomer, connection))

    async def _open(self, newcomer: socket.socket, connection: CallerConnection) -> None:
        with suppress(OSError):  # the caller left, or failed to shake hands
            await self._loop.connect_accepted_socket(
                lambda: connection, newcomer, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
            )

    def _opened(self, newcomer: socket.socket, connection: CallerConnection, _: asyncio.Task[None]) -> None:
        connection.opening = None
        if not connection.is_made:
            newcomer.close()
            self._open_connections.closed(connection)


class ListenError(Exception):
    """The address cannot be bound; the message says what to change."""


def bind(
    hosts: str | Sequence[str], port: int, *, ipv6_only: bool = False, setting: str = "CORPID_PORT"
) -> list[socket.socket]:
    """Sockets for every address of host names and a port.

    `::` stands for every IPv4 address, too, if the system has IPv4, unless `ipv6_only`. An address that 0.0.0.0 or `::`
    covers is not bound again. Port 0: any free one, chosen for the first address. `setting` names the port in messages.
    Raises ListenError. Source: D76
    """
    named = [hosts] if isinstance(hosts, str) else hosts
    found = _uncovered([each for host in named for each in _resolved(host, port)], ipv6_only=ipv6_only)
    names = [each.host for each in found]
    bound: list[socket.socket] = []
    served: set[str] = set()
    try:
        for family, address, host in found:
            number = port or (bound[0].getsockname()[1] if bound else 0)
            try:
                bound.append(_bind_one(family, (address[0], number, *address[2:])))
            except OSError as error:
                if error.errno in _ABSENT and names.count(host) > 1:
                    continue  # a name may have an IPv6 address although IPv6 is off
                raise ListenError(_why_not(host, address[0], port, setting, error)) from error
            served.add(host)
        for host in names:
            if host not in served:
                raise ListenError(f"host {host!r} has no address that this machine can listen on")
    except ListenError:
        for listening in bound:
            listening.close()
        raise
    return bound


class _Address(NamedTuple):
    """An address to listen on, with its host name."""

    family: int
    address: tuple[Any, ...]
    """as the socket takes it"""
    host: str

    @property
    def is_wildcard(self) -> bool:
        return bool(self.address[0] == _WILDCARDS[self.family])


def _resolved(host: str, port: int) -> list[_Address]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # UnicodeError: no name can be this
        reason = getattr(error, "strerror", None) or error
        raise ListenError(f"host {host!r} is not an address of this machine: {reason}") from error
    return [_Address(family, address, host) for family, _, _, _, address in found]


def _uncovered(found: list[_Address], *, ipv6_only: bool) -> list[_Address]:
    """Each address once; 0.0.0.0 and `::` instead of what they cover."""
    unique: dict[tuple[Any, ...], _Address] = {}
    for each in found:
        unique.setdefault(each.address, each)
        if each.family == socket.AF_INET6 and each.is_wildcard and not ipv6_only:
            ipv4 = (_WILDCARDS[socket.AF_INET], each.address[1])
            unique.setdefault(ipv4, _Address(socket.AF_INET, ipv4, each.host))
    covered = {each.family for each in unique.values() if each.is_wildcard}
    return [each for each in unique.values() if each.is_wildcard or each.family not in covered]


def _bind_one(family: int, address: Any) -> socket.socket:  # noqa: ANN401
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def _why_not(host: str, address: str, port: int, setting: str, error: OSError) -> str:
    where = address if host in {address, ""} else f"{address} ({host})"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {where} is taken by another program: stop it, or set another port ({setting})"
    if error.errno == errno.EACCES:
        return f"port {port} on {where} needs more rights than this user has: choose one above 1023 ({setting})"
    return f"cannot listen on {where} port {port}: {error.strerror}"


LOOK_SECONDS: Final = 60.0
"""how often the files are checked"""


class CertificateUnusable(Exception):
    """The certificate or its key cannot be used.

    The message says which file and what to do.
    """


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A TLS context of a PEM chain and its key.

    TLS 1.3, or 1.2 with ECDHE and AES-GCM only. Raises CertificateUnusable. Source: D52
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE+AESGCM")
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        raise CertificateUnusable(
            f"tls_certificate and tls_key cannot be used together ({error.reason}): give the certificate chain and "
            f"the key that belongs to it, both as PEM, in {certificate} and {key}"
        ) from error
    except (OSError, ValueError) as error:
        raise CertificateUnusable(
            f"tls_certificate or tls_key cannot be read ({error}): check the paths, that this user may read them, and "
            f"that the key has no password; they are {certificate} and {key}"
        ) from error
    return context


class ServerCertificate:
    """A certificate chain and its key in files.

    `context` offers to every new connection what they held last.

    Raises CertificateUnusable when it is made. D52.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files: Final = (certificate, key)
        self._seen = self._stamps()
        self.context: Final = server_context(certificate, key)
        self._newest = self.context
        self.expires_at = _expiry(certificate)
        """the first end of a certificate in the chain, epoch seconds; 0.0 if it cannot be read"""
        # Asked in every handshake, also of a caller that names no server. Changing the listener's own context
        # instead would leave half a pair in it when the files do not fit.
        self.context.sni_callback = self._offer

    def reload_changed(self) -> None:
        """Reload changed files; unusable ones are logged, and the previous pair stays."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._newest = server_context(*self._files)
        except CertificateUnusable as error:
            access_log.log().error("certificate_not_renewed", detail=str(error))
        else:
            self.expires_at = _expiry(self._files[0])
            access_log.log().info("certificate_renewed", detail=str(self._files[0]))

    def _offer(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _stamps(self) -> list[Stamp]:
        return [_stamp(file) for file in self._files]


@asynccontextmanager
async def open_certificate(certificate: Path, key: Path) -> AsyncIterator[ServerCertificate]:
    """A certificate that follows its files.

    They are checked once a minute until the context ends. Raises CertificateUnusable. Source: D52
    """
    found = ServerCertificate(certificate, key)

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found.reload_changed()

    looking = asyncio.create_task(look())
    try:
        yield found
    finally:
        looking.cancel()


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _expiry(certificate: Path) -> float:
    from cryptography import x509  # noqa: PLC0415 - most providers have a proxy in front that ends TLS

    try:
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
    except (OSError, ValueError):  # exchanged again since OpenSSL read it
        return 0.0
    return min(each.not_valid_after_utc for each in chain).timestamp()


def _no_password() -> str:
    """Instead of OpenSSL's own question on the terminal."""
    raise ValueError("the key is protected by a password")
