"""The log of the program where a test runs the program in its own process."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def log_left_alone() -> Iterator[None]:
    """Whatever was configured meanwhile, afterwards the log is as it was."""
    root, write = logging.getLogger(), access_log._request_lines.write
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    access_log._request_lines.write = write
    structlog.reset_defaults()
