"""Targets of the audit's stream: a file, or a syslog server (docs/decisions/0030).

Both block, so each call runs in a thread, one at a time: a task that is cancelled leaves its thread running, and its
descriptor must not be closed meanwhile. What `confirm` waits for:

- a file: it is on the disk, and is still the file of that name;
- syslog: the kernel of the receiver has acknowledged every byte (for a Unix socket: the receiver has read it), and a
  moment later the connection still stands. Syslog knows no acknowledgment by the receiver itself (RFC 6587 §3.1).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import ssl
import stat
import struct
import termios
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from corpid.rules.audit_stream import StreamTarget, json_line, octet_counted, syslog_message
from corpid.rules.failures import StreamFailed, StreamInterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from corpid.rules.audit import AuditEntry


_SECONDS: Final = 5.0
"""for one step: to connect, to send, to be acknowledged; far below the time after which another process takes over"""
_SETTLING_SECONDS: Final = 0.2
"""after the last acknowledgment, in which the end of a receiver that did not read is noticed"""
_LOOK_SECONDS: Final = 0.01
_CLOSED, _RESET = "closed", "reset"
_FILE_MODE: Final = 0o640
_WAITING_BYTES: Final = 64 * 1024
"""in this kernel, so that a slow receiver can acknowledge them in time"""
_READS: Final = 16
"""of what a receiver sends, each time that its connection is checked"""


class UnusableAuthorities(Exception):
    """The file with certificate authorities cannot be used."""


def audit_target(target: StreamTarget, *, host: str, authorities: Path | None) -> AuditTarget:
    """The target that a setting names; nothing is opened yet.

    `host` is the name of this machine. Raises UnusableAuthorities.
    """
    if target.kind == "file":
        return FileTarget(target.path)
    tls = None
    if target.kind == "tls":
        try:
            tls = ssl.create_default_context(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            raise UnusableAuthorities(f"audit_stream_ca: {authorities} cannot be used: {_reason(error)}") from error
    return SyslogTarget(target, host=host, tls=tls)


class AuditTarget(ABC):
    """A file or server that the audit is streamed to (docs/decisions/0030).

    Its work blocks, and runs in threads in turn.
    """

    is_lasting: ClassVar[bool]
    """True if confirmed entries outlive the receiver"""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the target, for the log."""

    async def send(self, entries: Sequence[AuditEntry]) -> None:
        """Pass entries on, in order.

        Raises StreamFailed, and StreamInterrupted before anything was sent.
        """
        await asyncio.to_thread(self._locked, lambda: self._send(entries))

    async def confirm(self) -> None:
        """Return when what was sent has been handed over. Raises StreamFailed."""
        await asyncio.to_thread(self._locked, self._confirm)

    async def close(self) -> None:
        """Let go of file or connection."""
        await asyncio.to_thread(self._locked, self._close)

    def _locked(self, work: Callable[[], None]) -> None:
        with self._lock:
            work()

    @abstractmethod
    def _send(self, entries: Sequence[AuditEntry]) -> None: ...
    @abstractmethod
    def _confirm(self) -> None: ...
    @abstractmethod
    def _close(self) -> None: ...


@dataclass(slots=True)
class _OpenFile:
    descriptor: int
    identity: tuple[int, int]
    """device and number of the file"""


class FileTarget(AuditTarget):
    """A file of JSON lines; a renamed one is opened again."""

    is_lasting = True

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path: Final = path
        self._file: _OpenFile | None = None

    @property
    def name(self) -> str:
        return self._path

    def _send(self, entries: Sequence[AuditEntry]) -> None:
        lines = b"".join(json_line(msgspec.structs.asdict(entry)) + b"\n" for entry in entries)
        try:
            if self._file is None or self._identity() != self._file.identity:
                self._close()
                self._file = self._opened()
            left = memoryview(lines)
            while left:
                left = left[os.write(self._file.descriptor, left) :]
        except (OSError, ValueError) as error:
            raise StreamFailed(f"{self._path}: {_reason(error)}") from error

    def _confirm(self) -> None:
        if self._file is None:
            return
        try:
            os.fsync(self._file.descriptor)
            if self._identity() != self._file.identity:
                # It was renamed meanwhile, and may be compressed already, without the last lines.
                raise StreamFailed(f"{self._path}: it was renamed while it was written")
        except (OSError, ValueError) as error:
            raise StreamFailed(f"{self._path}: {_reason(error)}") from error

    def _opened(self) -> _OpenFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, _FILE_MODE)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise StreamFailed(f"{self._path}: it is not a regular file")
            if found.st_size and os.pread(descriptor, 1, found.st_size - 1) != b"\n":
                # A process died while it wrote, or the disk was full: the entry follows, whole.
                os.write(descriptor, b"\n")
            folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY | os.O_CLOEXEC)  # noqa: PTH120
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except BaseException:
            os.close(descriptor)
            raise
        return _OpenFile(descriptor, (found.st_dev, found.st_ino))

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None


class SyslogTarget(AuditTarget):
    """A syslog server, over TCP, TLS or a Unix socket (RFC 5424, 5425, 6587)."""

    is_lasting = False

    def __init__(self, target: StreamTarget, *, host: str, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._target: Final = target
        self._host: Final = host
        self._tls: Final = tls
        self._connection: socket.socket | None = None

    @property
    def name(self) -> str:
        of = self._target
        return of.path if of.kind == "unix" else f"{of.host}:{of.port}"

    def _send(self, entries: Sequence[AuditEntry]) -> None:
        messages = [syslog_message(msgspec.structs.asdict(entry), host=self._host) for entry in entries]
        end = "" if self._connection is None else self._end_of(self._connection)
        if end:
            self._close()
            raise StreamInterrupted(is_reset=end == _RESET)
        try:
            if self._connection is None:
                self._connection = self._connected()
            if self._connection.type == socket.SOCK_DGRAM:
                for message in messages:
                    self._connection.send(message)
            else:
                self._connection.sendall(b"".join(map(octet_counted, messages)))
        except (OSError, ValueError) as error:  # ValueError: a name that no server can have
            self._close()
            raise StreamFailed(f"{self.name}: {_reason(error)}") from error

    def _confirm(self) -> None:
        if self._connection is None:
            return
        end = time.monotonic() + _SECONDS
        try:
            while _unacknowledged(self._connection):
                if time.monotonic() > end:
                    raise TimeoutError
                time.sleep(_LOOK_SECONDS)
            time.sleep(_SETTLING_SECONDS)
            if self._end_of(self._connection):
                raise ConnectionResetError("the connection ended")
        except (OSError, ValueError) as error:  # ValueError: a name that no server can have
            self._close()
            raise StreamFailed(f"{self.name}: {_reason(error)}") from error

    def _connected(self) -> socket.socket:
        if self._target.kind == "unix":
            return self._connected_unix()
        found = socket.create_connection((self._target.host, self._target.port), timeout=_SECONDS)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _WAITING_BYTES)
            return found if self._tls is None else self._tls.wrap_socket(found, server_hostname=self._target.host)
        except BaseException:
            found.close()
            raise

    def _connected_unix(self) -> socket.socket:
        """A socket of datagrams, as /dev/log, or of a stream."""
        wrong: OSError | None = None
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            found = socket.socket(socket.AF_UNIX, kind)
            found.settimeout(_SECONDS)
            try:
                found.connect(self._target.path)
            except OSError as error:
                found.close()
                wrong = error
            else:
                return found
        raise wrong or OSError("no socket")

    def _end_of(self, connection: socket.socket) -> str:
        """The end of a connection by its receiver; empty: it stands.

        What it sends is dropped. A kernel resets what is closed with unread bytes in it (RFC 1122 §4.2.2.13).
        """
        connection.settimeout(0)
        try:
            if connection.type == socket.SOCK_DGRAM:
                return _RESET if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) else ""
            return "" if all(connection.recv(4096) for _ in range(_READS)) else _CLOSED
        except (BlockingIOError, ssl.SSLWantReadError):
            return ""
        except OSError:
            return _RESET
        finally:
            connection.settimeout(_SECONDS)

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None


def _unacknowledged(connection: socket.socket) -> int:
    """The bytes without acknowledgment by the receiver's kernel.

    0 if this system does not tell.
    """
    try:
        found: int = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
    except OSError:
        return 0
    return found


def _reason(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {_SECONDS:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    return error.strerror or str(error) or type(error).__name__
