"""The skew of a client's clock, and its use after a loss.

It is the clock skew that assertions show: above 0 if the client's clock is ahead. Every assertion that is spent
has an iat at most the recorded skew after the engine's time. So one that is dated later than a loss by more than that
skew was not spent before it. Source: D67, docs/decisions/0026
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.limits import CLOCK_AHEAD_SECONDS, CLOCKS_APART_SECONDS, DAY, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.rules.server_processes import ServerProcess

PERIOD_SECONDS: Final = 30 * DAY
"""the largest skew of this period and of the one before counts, so that of the last 30 days always does"""
LARGEST_SKEW: Final = CLOCK_AHEAD_SECONDS + 1
"""seconds, of a client without a record; who accepts a larger one notes that first. The engine's time is known a little
too early, never too late"""
LARGEST_RECORDED: Final = LARGEST_SKEW + CLOCKS_APART_SECONDS
"""of a client at a node whose clock is ahead; who accepts a larger one says first that the records are incomplete"""
LEAST_SKEW: Final = -MINUTE
"""as which one counts that lies further behind; with KNOWN_AFTER_SECONDS it keeps away what was spent unrecorded"""
KNOWN_AFTER_SECONDS: Final = 3 * MINUTE
"""how long skews must have been recorded before a loss: longer than CHECKED_SECONDS, LARGEST_RECORDED, the distance of
clocks and LEAST_SKEW together"""
CHECKED_SECONDS: Final = 45
"""how long a process relies on what it read, so that records which were lost are written again"""


class ClientClock(msgspec.Struct, frozen=True, kw_only=True):
    """The skews recorded of a client, in whole seconds, rounded up."""

    since: float
    """epoch seconds of the first record"""
    period: int
    lead: int
    """the largest skew of this period"""
    lead_before: int
    """the largest of the period before, or `lead` if there is none"""

    def largest(self, period: int) -> int | None:
        """The largest skew of a period and of the one before.

        None if nothing was recorded in them.
        """
        if period > self.period + 1:
            return None
        return self.lead if period > self.period else max(self.lead, self.lead_before)


def period_at(moment: float) -> int:
    """The period of a moment, epoch seconds. Source: docs/decisions/0026"""
    return int(moment // PERIOD_SECONDS)


def skew_of(issued_at: float, moment: float) -> int:
    """The skew of an assertion that is received at a moment.

    `moment` is at most the engine's time. Source: docs/decisions/0026
    """
    return math.ceil(issued_at - moment)


def are_known(since: float | None, *, lost_at: float) -> bool:
    """Return whether recording began long enough before a loss. Source: docs/decisions/0026"""
    return since is not None and since + KNOWN_AFTER_SECONDS <= lost_at


def may_not_record(processes: Iterable[ServerProcess], version: str, *, now: float) -> bool:
    """Return whether a process of another version served lately.

    It may not record skews. Source: docs/decisions/0026
    """
    return any(each.version != version and now - each.seen_at <= _LATELY_SECONDS for each in processes)


_LATELY_SECONDS: Final = 2 * KNOWN_AFTER_SECONDS
