"""A listening socket: takes newcomers in while there is room, also those that have to shake hands first (D47)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.web import access_log

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from corpid.web.connection import Connection
    from corpid.web.crowd import Crowd

BACKLOG: Final = 2048
_AT_ONCE: Final = 64
"""newcomers, before the event loop does something else; those of other processes get some, too"""
_PAUSE_SECONDS: Final = 1.0
"""after the system had no more files to give"""


class Listener:
    """Answers on a bound socket, which belongs to it. `made` makes the connection of a newcomer."""

    def __init__(
        self,
        listening: socket.socket,
        made: Callable[[], Connection],
        crowd: Crowd,
        *,
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
    ) -> None:
        self._listening = listening
        self._made = made
        self._crowd = crowd
        self._tls = tls
        self._handshake_seconds = handshake_seconds if tls else None
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        listening.listen(BACKLOG)
        self._listen()

    def close(self) -> None:
        """Take in nobody else."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _listen(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                newcomer, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                access_log.log().error("connection_not_accepted", detail=str(error))
                self._loop.remove_reader(self._listening)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._listen)
                return
            self._take_in(newcomer)

    def _take_in(self, newcomer: socket.socket) -> None:
        connection = self._made()
        if not self._crowd.admit(connection):
            newcomer.close()
            return
        newcomer.setblocking(False)
        opening = self._loop.create_task(self._open(newcomer, connection))
        connection.opening = opening
        # and not in the task, which never runs if it is ended before it began
        opening.add_done_callback(partial(self._opened, newcomer, connection))

    async def _open(self, newcomer: socket.socket, connection: Connection) -> None:
        with suppress(OSError):  # the caller left, or failed to shake hands
            await self._loop.connect_accepted_socket(
                lambda: connection, newcomer, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
            )

    def _opened(self, newcomer: socket.socket, connection: Connection, _: asyncio.Task[None]) -> None:
        connection.opening = None
        if not connection.is_made:
            newcomer.close()
            self._crowd.leaves(connection)
