"""Pauses of a background task while the mail server takes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SEVERAL_DOMAINS: Final = 3
"""domains for which nothing is taken in a round: then the fault is CorpID's"""
_FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 900.0
_FIRST_STOP_SECONDS: Final = 3600.0
_LONGEST_STOP_SECONDS: Final = 86400.0
"""while the server refuses CorpID itself: an operator has to change something, and then starts it again"""


class MailPauses:
    """The pauses of one task.

    Each is longer than the one before, until an e-mail is sent. `log` writes an event and its detail to the log;
    `delayed` and `stopped` are the names of the events.
    """

    def __init__(
        self, clock: Callable[[], float], log: Callable[[str, str], None], *, delayed: str, stopped: str
    ) -> None:
        self._clock: Final = clock
        self._log: Final = log
        self._delayed: Final = delayed
        self._stopped: Final = stopped
        self._pause = 0.0
        self._wait_until = 0.0
        self._stopped_by = ""
        """the refusal that was logged last"""

    @property
    def waits(self) -> bool:
        """True if nothing is to be sent now."""
        return self._clock() < self._wait_until

    @property
    def seconds(self) -> float:
        """The pause between two attempts; 0.0 if the last e-mail was sent."""
        return self._pause

    def delay(self, reason: str) -> None:
        """Wait up to 15 minutes: the server takes nothing."""
        self._pause = min(max(_FIRST_PAUSE_SECONDS, 2 * self._pause), _LONGEST_PAUSE_SECONDS)
        self._wait_until = self._clock() + self._pause
        self._log(self._delayed, f"{reason}; the next attempt follows in {self._pause:g} seconds")

    def stop(self, reason: str) -> None:
        """Log a refusal of CorpID itself once, and try rarely."""
        self._pause = min(max(_FIRST_STOP_SECONDS, 2 * self._pause), _LONGEST_STOP_SECONDS)
        self._wait_until = self._clock() + self._pause
        if reason != self._stopped_by:
            self._stopped_by = reason
            self._log(
                self._stopped,
                f"{reason}: the mail server refuses this deployment. Look at mail_url and mail_from, then restart",
            )

    def end(self) -> None:
        """Begin with short pauses again: an e-mail was sent."""
        self._pause, self._stopped_by = 0.0, ""
