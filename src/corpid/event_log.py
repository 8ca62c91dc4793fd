"""The log of events, which a server directs to its output (`web.telemetry.access_log`).

Elsewhere, and where a person reads along, structlog writes it. It brings rich and Pygments, so it is loaded then only.
"""

from __future__ import annotations

from typing import Any, Final, Protocol


class Write(Protocol):
    """A writer of events.

    It is given the level (debug, info, warning or error), the name and the fields.
    """

    def __call__(self, level: str, event: str, fields: dict[str, Any], /) -> None: ...


def through_structlog(level: str, event: str, fields: dict[str, Any]) -> None:
    """Write an event as structlog is configured (D48)."""
    import structlog  # noqa: PLC0415 - see above

    getattr(structlog.get_logger(), level)(event, **fields)


class EventLog:
    """A log of events with fields: `log().info("event", address=…)`.

    `write` is replaced by whoever serves.
    """

    def __init__(self) -> None:
        self.write: Write = through_structlog

    def debug(self, event: str, **fields: Any) -> None:  # noqa: ANN401
        """Log what helps to find a fault."""
        self.write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:  # noqa: ANN401
        """Log what happened."""
        self.write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:  # noqa: ANN401
        """Log what somebody should look at."""
        self.write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:  # noqa: ANN401
        """Log what failed."""
        self.write("error", event, fields)


_LOG: Final = EventLog()


def log() -> EventLog:
    """The log of this process (D48)."""
    return _LOG
