"""What tests borrow from the machine that they run on."""

from __future__ import annotations

import base64
import os
import random
import shutil
import socket
from collections import deque
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES: Final = 4 << 30
_CLAIMS_KEPT: Final = 256
_claims: deque[socket.socket] = deque()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that no other test is given.

    The system takes none of these for a connection, so that it is still free when a server starts. The UDP socket of
    the same number is the claim that tests of other processes see: no server under test uses UDP.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", port))
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if len(_claims) > _CLAIMS_KEPT:
            _claims.popleft().close()
        return port


def memory() -> Path | None:
    """Where files lie in memory; None where there is too little room, so that they lie on a disk."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES else None


def key_file(path: Path) -> str:
    """A key-encryption key in a file that its owner alone may read (D43)."""
    path.write_bytes(base64.b64encode(os.urandom(32)))
    path.chmod(0o600)
    return str(path)
