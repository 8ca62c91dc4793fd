"""Serving, by one process or by several that a supervisor keeps running.

The command is `cli.serve`. Workers share the bound sockets, and a folder in which each counts its metrics.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from corpid import app, engines, settings
from corpid.flows.authentication.passkeys import load_verification
from corpid.settings.diagnostics import examine_settings
from corpid.settings.issuers import issuers
from corpid.web.http import server
from corpid.web.http.addresses import ClientAddresses, OwnHosts, bracket_host
from corpid.web.http.connections import ConnectionShare, ConnectionShares, Limits, files_for
from corpid.web.routes import load_rare_pages
from corpid.web.telemetry import access_log, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from socket import socket

    from corpid.own_certificates import OwnCertificate
    from corpid.settings import Settings

    Work = Callable[[Callable[[], None], int], int]

REFUSED: Final = 1
"""the exit status of a worker that cannot start"""
BROKEN: Final = 70
"""a worker's exit code after an unforeseen error"""
_COLLECT: Final = (20_000, 50, 50)
"""thresholds of the garbage collector, which runs rarely, since requests leave no cycles"""
_TOGETHER_SECONDS: Final = 30.0
"""in which the first workers have started, or failed for the same reason"""
REFUSALS = (
    settings.SettingsError,
    engines.StartError,
    server.ListenError,
    server.CertificateUnusable,
)
METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""names the folder in which each worker counts its metrics"""
_FOLDER_PREFIX: Final = "corpid-metrics-"
_LOCK: Final = "lock"
_NEW_SECONDS: Final = 60.0
_YOUNG_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 1.0
"""before another worker takes the place of one that died young"""
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_PROCESS: Final = struct.Struct("=q")


def serve(complain: Callable[[str], object], *, workers: int | None = None) -> int:
    """Run the provider until SIGTERM or Ctrl-C; return the exit status.

    `complain` reports why it cannot start. `workers` overrides the setting.
    """
    try:
        chosen = settings.load(**({} if workers is None else {"workers": workers}))
        own = _own_certificate(chosen) if chosen.makes_certificate else None
        if own is not None:
            chosen = chosen.model_copy(update={"tls_certificate": own.chain, "tls_key": own.key})
        if chosen.developer_mode:
            app.extension_of_developer_mode()  # once, for workers to share
        listening = _Listening(
            public=server.bind(chosen.host, chosen.port, ipv6_only=chosen.ipv6_only), metrics=_bind_metrics(chosen)
        )
    except REFUSALS as error:
        complain(str(error))
        return REFUSED
    access_log.configure(clock=time.time, level=chosen.log_level)
    if own is not None:
        access_log.log().info("own_authority", detail=f"{own.authority} is what callers have to trust")
    _warn_of_settings(chosen)
    if chosen.workers == 1:
        return _work(chosen, listening, lambda: None, complain)
    load_rarely_used()
    reporting, shares = _FirstToComplain(), ConnectionShares(chosen.workers)
    with metrics_folder() if listening.metrics else nullcontext(lambda _: None) as forget:

        def ended(process: int, place: int) -> None:
            shares.free(place)
            forget(process)

        return supervise(
            lambda served, place: _work(
                chosen, listening, served, complain, share=shares.share_of(place), may_complain=reporting.is_this
            ),
            chosen.workers,
            on_ended=ended,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    """Bound sockets, shared by all workers."""

    public: Sequence[socket]
    metrics: Sequence[socket]


def _own_certificate(chosen: Settings) -> OwnCertificate:
    """The certificate that developer mode makes for https."""
    from corpid.own_certificates import OWN_MACHINE, keep_certificate  # noqa: PLC0415 - for developers alone

    hosts = [urlsplit(issuer.base_url).hostname or "" for issuer in issuers(chosen).values()]
    return keep_certificate(chosen.data_dir.absolute() / "tls", *hosts, *OWN_MACHINE, now=datetime.now(UTC))


def _bind_metrics(chosen: Settings) -> Sequence[socket]:
    if not chosen.metrics_address:
        return ()
    host, _, port = chosen.metrics_address.rpartition(":")
    return server.bind(host.strip("[]"), int(port), ipv6_only=chosen.ipv6_only, setting="CORPID_METRICS_ADDRESS")


def _warn_of_settings(chosen: Settings) -> None:
    """A line in the log for each setting that is not safe (D43, D52)."""
    for finding in examine_settings(chosen):
        if finding.verdict == "problem":
            access_log.log().warning("settings_problem", detail=f"{finding.seen} {finding.change}")


def load_rarely_used() -> None:
    """Load what few requests need, for workers to share.

    A server of one process loads it when it is first needed (docs/decisions/0036).
    """
    from corpid.outbound import http_client  # noqa: F401, PLC0415

    load_rare_pages()
    load_verification()


class _FirstToComplain:
    """The right to report why no worker can start.

    One of those that start together has it, and each that is started later.
    """

    def __init__(self) -> None:
        self._together_until = time.monotonic() + _TOGETHER_SECONDS
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.write(writing, b"1")

    def is_this(self) -> bool:
        """Return whether this process may report."""
        if time.monotonic() > self._together_until:
            return True
        with suppress(BlockingIOError):
            return bool(os.read(self._reading, 1))
        return False


def _work(
    chosen: Settings,
    listening: _Listening,
    served: Callable[[], None],
    complain: Callable[[str], object],
    *,
    share: ConnectionShare | None = None,
    may_complain: Callable[[], bool] = lambda: True,
) -> int:
    """Serve until a signal to stop.

    The exit status. `served` is called when ready; `may_complain` says whether this process reports why it cannot
    start.
    """
    try:
        server.run(_serve(chosen, listening, served, share))
    except REFUSALS as error:
        if may_complain():
            complain(str(error))
        return REFUSED
    return 0


async def _serve(
    chosen: Settings, listening: _Listening, served: Callable[[], None], share: ConnectionShare | None
) -> None:
    access_log.configure(clock=time.time, level=chosen.log_level, pretty=chosen.developer_mode and sys.stdout.isatty())
    async with AsyncExitStack() as stack:
        own_tls = measured = None
        if chosen.tls_certificate is not None and chosen.tls_key is not None:
            own_tls = await stack.enter_async_context(server.open_certificate(chosen.tls_certificate, chosen.tls_key))
        if listening.metrics:
            from corpid.web.telemetry import metrics  # noqa: PLC0415 - reads the folder's name when it is loaded

            measured = metrics.Metrics(os.environ.get(METRICS_VARIABLE), issuers=bool(chosen.issuers))
            measured.hosts = OwnHosts(chosen.metrics_address, chosen.allowed_hosts)
            if own_tls is not None:
                credentials = own_tls
                measured.certificate_end = lambda: credentials.expires_at
            await stack.enter_async_context(metrics.serve_metrics(measured, listening.metrics))
        spans = await stack.enter_async_context(tracing.open_tracing())
        application = await stack.enter_async_context(app.create(chosen, metrics=measured, spans=spans))

        def draining() -> None:
            access_log.log().warning(
                "draining", detail="/readyz answers 503; this process stops after its last request"
            )
            application.asgi.drain()

        running = server.Server(
            application.asgi,
            limits=_limits(chosen),
            bodiless=application.bodiless,
            streamed=application.streamed,
            forms=application.forms,
            addresses=ClientAddresses(chosen.trusted_proxies, chosen.forwarded_header),
            tls=own_tls.context if own_tls is not None else None,
            share=share,
            drain_seconds=chosen.drain_seconds,
            delay_seconds=chosen.drain_delay_seconds,
            on_draining=draining,
        )
        if measured is not None:
            measured.open_connections = running.open_connections
        _freeze()
        gc.set_threshold(*_COLLECT)

        bound = ", ".join(
            f"{bracket_host(host)}:{port}" for host, port, *_ in (each.getsockname() for each in listening.public)
        )

        def started() -> None:
            urls = " ".join(issuer.base_url for issuer in issuers(chosen).values())
            worker = f", process {os.getpid()}" if chosen.workers > 1 else ""
            access_log.log().info("listening", address=bound, detail=urls + worker)
            served()

        await server.serve(running, listening.public, on_started=started)
        access_log.log().info("stopped")


def _limits(chosen: Settings) -> Limits:
    connections = files_for(chosen.connections, chosen.database_connections)
    if connections < chosen.connections:
        access_log.log().warning(
            "connections_limited",
            detail=f"{connections} instead of {chosen.connections}: the system lets this process open no more files; "
            "raise its limit (ulimit -Hn, LimitNOFILE)",
        )
    return Limits(
        connections=connections,
        idle_seconds=chosen.keepalive_seconds,
        concurrent_requests=chosen.concurrent_requests,
    )


def _freeze() -> None:
    """Keep the garbage collector away from present objects."""
    gc.collect()
    gc.freeze()


@contextmanager
def metrics_folder() -> Iterator[Callable[[int], None]]:
    """A folder for as long as this is entered, named by METRICS_VARIABLE.

    What comes back forgets a worker that has ended.

    Folders that others left behind when they were killed are removed.
    """
    _remove_left_folders(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX) as folder:
        # Held by every worker, too: as long as one of them lives, the folder is in use.
        descriptor = os.open(Path(folder) / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.environ[METRICS_VARIABLE] = folder

        def forget(process: int) -> None:
            from corpid.web.telemetry.metrics import worker_ended  # noqa: PLC0415 - reads the folder's name when it is loaded

            worker_ended(process, folder)

        yield forget


def _remove_left_folders(where: Path) -> None:
    for folder in where.glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):  # another user's, or gone meanwhile
            if _is_left_folder(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left_folder(folder: Path) -> bool:
    found = folder.lstat()
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < _NEW_SECONDS:
        return False  # a new one is not locked yet
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def supervise(work: Work, count: int, *, on_ended: Callable[[int, int], None] = lambda *_: None) -> int:
    """Run `work` in several processes until SIGTERM, SIGINT or SIGHUP.

    Returns the exit status.

    `work` is given what to call once it serves, and its place, a number below `count` that no other living worker has;
    it returns its process's exit status. A worker that dies is replaced; one of the first that ends with REFUSED before
    it has served ends all, since none can start. Signals are handed on, a second one too; when this process is gone its
    workers stop. To be called before any thread or event loop exists. `on_ended` is given process number and place of
    each worker that has ended.
    """
    return _Supervisor(work, on_ended).run(count)


class _Worker(NamedTuple):
    place: int
    started_at: float
    """monotonic seconds"""


class _Supervisor:
    def __init__(self, work: Work, on_ended: Callable[[int, int], None]) -> None:
        self._work = work
        self._on_ended = on_ended
        self._workers: dict[int, _Worker] = {}
        """by process number"""
        self._first: set[int] = set()
        """those of the first that have not served yet"""
        self._alive = os.pipe()
        """nothing is written to it: it ends when this process does"""
        self._served = os.pipe()
        """process numbers of those that serve"""
        os.set_blocking(self._served[0], False)
        self._stopping = False
        self._status = 0

    def run(self, count: int) -> int:
        for number in _SIGNALS:
            signal.signal(number, self._hand_on)
        _freeze()  # a collection writes to each object that it looks at, and so ends the sharing of memory with workers
        for place in range(count):
            self._start(place)
        self._first = set(self._workers)
        while self._workers:
            self._ended(*_wait())
        return self._status

    def _hand_on(self, number: int, _: object) -> None:
        self._stopping = True
        for process in tuple(self._workers):
            # a closing terminal signals every process; workers get the signal from here alone, and once
            _send_signal(process, signal.SIGTERM if number == signal.SIGHUP else number)

    def _start(self, place: int) -> None:
        # A signal between fork and the child's own handlers would be lost, or stop the wrong process.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        if not self._stopping:
            process = os.fork()
            if process == 0:
                self._become(place)
            self._workers[process] = _Worker(place, time.monotonic())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _become(self, place: int) -> None:
        status = BROKEN
        try:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(self._alive[1])
            threading.Thread(target=_stop_without, args=(self._alive[0],), daemon=True).start()
            status = self._work(self._tell_served, place)
        except BaseException:  # noqa: BLE001 - whatever it is: the process ends here, and the log has to say why
            access_log.log().error("worker_broken", exc_info=True)
        finally:
            os._exit(status)

    def _tell_served(self) -> None:
        os.write(self._served[1], _PROCESS.pack(os.getpid()))

    def _forget_served(self) -> None:
        try:
            received = os.read(self._served[0], 1 << 16)
        except BlockingIOError:
            return
        self._first.difference_update(process for (process,) in _PROCESS.iter_unpack(received))

    def _ended(self, process: int, status: int) -> None:
        ended = self._workers.pop(process, None)
        if ended is None:
            return
        self._on_ended(process, ended.place)
        self._forget_served()
        if status == REFUSED and process in self._first and not self._stopping:
            self._status = REFUSED
            self._hand_on(signal.SIGTERM, None)
        if self._stopping:
            self._status = max(self._status, 0, status)
            return
        access_log.log().error("worker_died", detail=f"process {process}, status {status}; another takes its place")
        if time.monotonic() - ended.started_at < _YOUNG_SECONDS:
            time.sleep(_PAUSE_SECONDS)
        self._start(ended.place)


def _stop_without(alive: int) -> None:
    """A worker's thread that ends it with its parent process."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _wait() -> tuple[int, int]:
    process, status = os.wait()
    return process, os.waitstatus_to_exitcode(status)


def _send_signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return  # it has just ended, and is waited for
