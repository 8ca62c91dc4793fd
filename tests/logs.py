"""The log of the program where a test runs the program in its own process."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from corpid import event_log
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def log_left_alone() -> Iterator[None]:
    """Whatever was configured meanwhile, afterwards the log is as it was."""
    root, write, events = logging.getLogger(), access_log._request_lines.write, event_log.log().write
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    access_log._request_lines.write = write
    event_log.log().write = events
    structlog.reset_defaults()


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """The events that are logged meanwhile, instead of the log."""
    written, write = [], event_log.log().write
    event_log.log().write = lambda level, event, fields: written.append({**fields, "event": event, "log_level": level})
    try:
        yield written
    finally:
        event_log.log().write = write
