"""Skews of clients' clocks, recorded before use and read after a loss.

Source: D67, docs/decisions/0026
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from corpid.rules import data_loss
from corpid.rules.data_loss import (
    CHECKED_SECONDS,
    LARGEST_RECORDED,
    LARGEST_SKEW,
    DataLoss,
    are_known,
    period_at,
    skew_of,
)

if TYPE_CHECKING:
    from corpid.rules.oauth.client_assertion import Assertion
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore

_ENTRIES: Final = 4096


class ClockSkew(NamedTuple):
    """The skew of an assertion's client, for `dpop.spend_proof_and_assertion`."""

    loss: str = ""
    """the name of the loss that it was looked up after; empty if there was none"""
    seconds: int | None = None
    """its largest skew; None: unknown"""
    wait: int = 0
    """seconds until no process can record a larger one that counts"""


UNKNOWN: Final = ClockSkew()
"""nothing was lost lately, or no record helps: after a loss the longest wait holds"""


class _CheckedClock(NamedTuple):
    period: int
    skew: int
    """at least this is recorded for the period"""
    at: float


class ClockSkews:
    """The records of skews, as far as this process knows them.

    All issuers of a deployment share it.
    """

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry: Final = registry
        self._version: Final = version
        self._checked: Final[OrderedDict[str, _CheckedClock]] = OrderedDict()
        self._incomplete_at = float("-inf")
        self._larger_noted_at = float("-inf")
        self._loss = ""
        self._known: dict[str, int | None] = {}
        """skews from before the loss of that name"""

    async def record_skew(self, assertion: Assertion, store: TransientStore) -> ClockSkew:
        """Record the skew of an assertion that is about to be spent.

        It is called before the batch that spends it. Returns what `dpop.spend_proof_and_assertion` needs if data was
        lost. Raises StoreUnavailable. Source: D67, docs/decisions/0026
        """
        moment = store.engine_time_at_least()
        if moment is None or not assertion.has_iat:
            return UNKNOWN
        await self.record(assertion.client_id, skew_of(assertion.issued_at, moment), moment)
        loss = store.loss
        lost_at = loss.spent_until
        if lost_at is None or not loss.may_have_been_spent(assertion.issued_at):
            return UNKNOWN
        seconds = await self._largest(assertion.client_id, loss, lost_at, moment)
        # Until then a process that has not noticed the loss may record a larger skew, and spend in what was lost.
        wait = max(0, math.floor(lost_at - moment) + 1)
        return ClockSkew(loss=loss.name, seconds=seconds, wait=wait)

    async def record(self, client_id: str, skew: int, moment: float) -> None:
        """Record a skew unless as large a one is recorded already.

        It is on disk when this returns. A node whose clock is ahead of the engine's may accept a skew that is larger
        than that of a client without a record: this is noted for all of these, since this one's record may end with the
        client. If its clock is ahead by more than it may be, the records are incomplete. Raises StoreUnavailable.
        Source: docs/decisions/0026
        """
        if skew > LARGEST_RECORDED:
            # Begin the records, since a skew may be missing; once a minute.
            if not 0 <= moment - self._incomplete_at < CHECKED_SECONDS:
                await self._registry.client_clocks.begin(now=moment)
                self._incomplete_at = moment
            return
        if skew > LARGEST_SKEW:
            await self._note_larger(moment)
        period, checked = period_at(moment), self._checked.get(client_id)
        if (
            checked is not None
            and checked.period == period
            and checked.skew >= skew
            and 0 <= moment - checked.at < CHECKED_SECONDS
        ):
            return
        stored = await self._registry.client_clocks.find(client_id)
        recorded = stored.lead if stored is not None and stored.period >= period else None
        if recorded is None or recorded < skew:
            await self._registry.client_clocks.note(client_id, skew=skew, period=period, now=moment)
            recorded = skew
        if len(self._checked) >= _ENTRIES:
            self._checked.popitem(last=False)
        self._checked.pop(client_id, None)
        self._checked[client_id] = _CheckedClock(period, recorded, moment)

    async def _note_larger(self, moment: float) -> None:
        if not 0 <= moment - self._larger_noted_at < CHECKED_SECONDS:
            await self._registry.client_clocks.note_larger(now=moment)
            self._larger_noted_at = moment

    async def _largest(self, client_id: str, loss: DataLoss, lost_at: float, moment: float) -> int | None:
        """The largest skew before a loss; None if it may be any."""
        if self._loss != loss.name:
            self._loss, self._known = loss.name, {}
        if client_id in self._known:
            return self._known[client_id]
        found = await self._looked_up(client_id, lost_at, moment)
        if moment > lost_at and self._loss == loss.name and len(self._known) < _ENTRIES:
            self._known[client_id] = found
        return found

    async def _looked_up(self, client_id: str, lost_at: float, moment: float) -> int | None:
        recorded = self._registry.client_clocks
        if not are_known(await recorded.recorded_since(), lost_at=lost_at):
            return None
        if data_loss.may_not_record(await self._registry.server_processes.list_all(), self._version, now=moment):
            return None
        clock = await recorded.find(client_id)
        largest = clock.largest(period_at(moment)) if clock is not None else None
        if largest is not None and clock is not None and are_known(clock.since, lost_at=lost_at):
            return largest
        larger_at = await recorded.larger_at()
        return LARGEST_SKEW if larger_at is None or are_known(larger_at, lost_at=lost_at) else None
