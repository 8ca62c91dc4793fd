"""What tests borrow from the machine that they run on."""

from __future__ import annotations

import base64
import os
import random
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on.

    The system takes none of these for a connection, so that it is still free when a server starts.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def key_file(path: Path) -> str:
    """A key-encryption key in a file that its owner alone may read (D43)."""
    path.write_bytes(base64.b64encode(os.urandom(32)))
    path.chmod(0o600)
    return str(path)
