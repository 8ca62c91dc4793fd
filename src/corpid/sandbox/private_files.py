"""Files that their owner alone may read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def create(path: Path, content: bytes) -> None:
    """Write a new file (mode 0600). Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def replace(path: Path, content: bytes) -> None:
    """Write a file (mode 0600) in place of any other."""
    path.unlink(missing_ok=True)
    create(path, content)
