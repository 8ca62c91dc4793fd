"""Lost short-lived data, and what may be accepted after it.

A store that lost data no longer knows what was spent. What may have been spent before is refused; what was certainly
made afterwards is accepted at once.

Which assertions were made afterwards is known by the skew of the client's clock, above 0 if that is ahead. Every
assertion that is spent has an iat at most the recorded skew after the engine's time. So one that is dated later than a
loss by more than that skew was not spent before it. Source: D49, D67, docs/decisions/0026
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.jose.encoding import base64url
from corpid.rules.limits import CLOCK_AHEAD_SECONDS, CLOCKS_APART_SECONDS, DAY, INTERACTION_SECONDS, MINUTE

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


_TAG_CHARACTERS: Final = 16
_MARGIN_SECONDS: Final = 1
"""for roundings, and for clocks that do not run alike"""


class DataLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The last loss of a store's data, as its process knows it.

    `name` is empty if nothing was ever lost. It is the same in every process, differs for each loss, and no process
    knows it before the loss. Times are epoch seconds.
    """

    name: str
    reject_issued_before: float
    """what a process issued before may be incomplete; with a margin, since processes issue by their own clocks"""
    complete_from: float = 0.0
    """by this process's clock; until then another process may not have noticed the loss"""
    spent_until: float | None = None
    """by the engine's clock; nothing was spent later that is lost. None if skews of clients' clocks prove nothing"""

    @property
    def tag(self) -> str:
        """The mark of access tokens issued after this loss.

        It is empty if nothing was lost.
        """
        if not self.name:
            return ""
        return base64url(hashlib.sha256(self.name.encode()).digest())[:_TAG_CHARACTERS]

    @property
    def ends_at(self) -> float:
        """The end of the recovery, epoch seconds.

        From then on a credential that was just made is accepted without more.
        """
        return self.reject_issued_before + CLOCK_AHEAD_SECONDS if self.name else 0.0

    def token_tag(self, now: float) -> str:
        """The mark of an access token that is issued now.

        It is empty if its iat is enough.
        """
        return self.tag if now < self.reject_issued_before + 1 else ""

    def refuses_token(self, issued_at: float, tag: str) -> bool:
        """Return whether an access token may be from before the loss."""
        return issued_at < self.reject_issued_before and tag != self.tag

    def may_have_ended_sign_in(self, now: float) -> bool:
        """Return whether a sign-in that is not found may have been lost.

        For as long as one of before the loss could still be used. Source: D15, D67
        """
        return bool(self.name) and now < self.reject_issued_before + INTERACTION_SECONDS

    def may_have_been_spent(self, issued_at: float) -> bool:
        """Return whether a credential may have been spent before the loss.

        A proof or an assertion, by its iat, which may lie ahead of the clock. Source: D49
        """
        return bool(self.name) and issued_at < self.reject_issued_before + CLOCK_AHEAD_SECONDS

    def assertions_from(self, skew: int | None) -> float:
        """The iat from which on an assertion was certainly not spent before.

        `skew` is the largest of its client in seconds, None if it is unknown. Source: docs/decisions/0026
        """
        if skew is None or self.spent_until is None:
            return self.ends_at
        return min(self.ends_at, self.spent_until + max(skew, LEAST_SKEW) + _MARGIN_SECONDS)

    def assertion_wait(self, issued_at: float, skew: int | None = None) -> int:
        """Seconds after which an assertion made in the same way is accepted.

        0: it is accepted now.
        """
        return max(0, math.ceil(self.assertions_from(skew) - issued_at))

    def completion_wait(self, now: float) -> int:
        """Seconds until every process remembers what is spent."""
        return max(0, math.ceil(self.complete_from - now))


NO_LOSS: Final = DataLoss(name="", reject_issued_before=0.0)
