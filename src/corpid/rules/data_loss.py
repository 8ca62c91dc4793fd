"""Lost short-lived data, and what may be accepted after it.

A store that lost data no longer knows what was spent. What may have been spent before is refused; what was certainly
made afterwards is accepted at once. Source: D49, D67
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

import msgspec

from corpid.jose.encoding import base64url
from corpid.rules.client_clocks import LEAST_SKEW
from corpid.rules.limits import CLOCK_AHEAD_SECONDS, INTERACTION_SECONDS

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
