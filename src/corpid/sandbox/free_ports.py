"""Free ports for two servers on one machine."""

from __future__ import annotations

import socket
from typing import Final

from corpid.sandbox.demo_directory import DemoError
from corpid.web.server import ListenError, bind

FIRST_PORT: Final = 8400
TRIED: Final = 100


def next_free(host: str, first: int = FIRST_PORT) -> tuple[int, list[socket.socket]]:
    """The first free port from `first` on and the sockets that listen on it; with 0 any free port.

    Raises DemoError if a hundred in a row are taken.
    """
    for port in range(first, first + TRIED) if first else (_any_free() for _ in range(TRIED)):
        try:
            return port, _listening(host, port)
        except (ListenError, OSError):
            continue
    raise DemoError(f"no free port on {host} among {TRIED} from {first}; stop what uses them")


def _listening(host: str, port: int) -> list[socket.socket]:
    """Two demos that start at once may both be bound to a port; only one gets to listen."""
    sockets = bind(host, port)
    try:
        for one in sockets:
            one.listen()
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _any_free() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
