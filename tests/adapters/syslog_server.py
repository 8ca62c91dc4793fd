"""A syslog server of tests: TCP or TLS, with octet counting (RFC 6587)."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import ssl


_LITTLE = 10_000


class SyslogServer:
    """Keeps what it read, until the context ends."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        reads: bool = True,
        pause: float = 0.0,
        idle: float | None = None,
    ) -> None:
        """`pause` is between two reads of 10 kB; after `idle` seconds without an entry it ends the connection."""
        self._tls, self._reads, self._pause, self._idle = tls, reads, pause, idle
        self._listening = socket.create_server(("127.0.0.1", port))
        if pause:
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LITTLE)
        self.port: int = self._listening.getsockname()[1]
        self.received = bytearray()
        self.accepted = threading.Event()
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        self.drop()

    def drop(self) -> None:
        """End every connection at once, as the kernel does for a process that was killed."""
        for each in self._connections:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.close()
        self._connections.clear()

    @property
    def messages(self) -> list[bytes]:
        """Every whole message."""
        left, found = bytes(self.received), []
        while left:
            length, separator, rest = left.partition(b" ")
            if not separator or len(rest) < int(length):
                break
            found.append(rest[: int(length)])
            left = rest[int(length) :]
        return found

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(each[each.index(b"{") :]) for each in self.messages]

    @property
    def numbers(self) -> list[int]:
        return [each["number"] for each in self.entries]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=[connection], daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        self._connections.append(connection)
        with suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._connections.append(connection)
            self.accepted.set()
            # a new connection begins with a new message, whatever the last one ended with
            self.received = bytearray(b"".join(b"%d %b" % (len(each), each) for each in self.messages))
            connection.settimeout(self._idle)
            while self._reads and (read := connection.recv(_LITTLE if self._pause else 65536)):
                self.received += read
                time.sleep(self._pause)
        if self._idle is not None:
            connection.close()
