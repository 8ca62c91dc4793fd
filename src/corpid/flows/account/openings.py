"""A page of the account on which a factor is changed: a fresh sign-in opens it, and then it stays open for a while (D45).

So nobody who sets something up there is cut short by a limit that their page does not show. How long it stands open
is kept beside the session, and ends with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from corpid.flows import browsers, kinds, throttle
from corpid.flows.account import visits
from corpid.flows.account.visits import TooOld
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.protocol.limits import ACCOUNT_PAGE_EXTENSIONS, ACCOUNT_PAGE_SECONDS
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.account.visits import AccountVisit
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.flows.throttle import Attempt
    from corpid.ports import TransientUnit


class Opening(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A page that stands open; `ends_at` in epoch seconds."""

    opening_id: str
    page: str
    ends_at: float
    extensions: int = 0


async def opened(provider: Provider, caller: Caller, visit: AccountVisit, page: str) -> AccountVisit:
    """The person at a page that stands open, or is opened now. Raises TooOld where it takes a new sign-in (D45)."""
    found = await _standing(provider, caller, visit, page)
    if found is None or await _is_closed(provider, caller, found):
        visits.require_fresh(visit, now=caller.now)
        found = Opening(opening_id=provider.new_id(), page=page, ends_at=_from(caller, visit))
        async with provider.transient.unit(caller.now) as unit:
            await _keep(provider, unit, visit, found)
    return replace(visit, opening=found)


async def still_open(provider: Provider, caller: Caller, visit: AccountVisit, page: str) -> AccountVisit:
    """The person at a page that they opened before.

    Raises TooOld where its time is over, StaleStep where it was made use of already. Source: D45
    """
    found = await _standing(provider, caller, visit, page)
    if found is None:
        raise TooOld
    if await _is_closed(provider, caller, found):
        raise StaleStep
    return replace(visit, opening=found)


def require(visit: AccountVisit, *, now: float) -> None:
    """Raises TooOld unless the person is at a page that stands open: no factor is changed without one (D45)."""
    if visit.opening is None or now >= visit.opening.ends_at:
        raise TooOld


async def admit(provider: Provider, caller: Caller, visit: AccountVisit) -> Attempt:
    """Begin a change of factors, before anything is hashed or written. Raises TooOld as `require`, and Throttled (D45, D47)."""
    require(visit, now=caller.now)
    attempt = await throttle.change(provider, caller, visit.user.user_id)
    # Its person has just signed in in this browser.
    return replace(attempt, known=True)


def ends_at(provider: Provider, visit: AccountVisit) -> float:
    """When the page closes that the person is at, in epoch seconds; one that needs no opening does so with the session (D30)."""
    if visit.opening is not None:
        return visit.opening.ends_at
    return browsers.ends_at(provider, visit.session)


def extendable(provider: Provider, visit: AccountVisit) -> bool:
    """Whether there is more time for the page: a few times, and never past the end of the session (D15)."""
    extensions = visit.opening.extensions if visit.opening is not None else 0
    return extensions < ACCOUNT_PAGE_EXTENSIONS and ends_at(provider, visit) < visit.session.expires_at


async def extend(provider: Provider, caller: Caller, visit: AccountVisit) -> None:
    """Keep the page open for as long again. Raises Rejected, and StaleStep where that was done already, or the page was closed.

    Source: D15, WCAG 2.2.1
    """
    if not extendable(provider, visit):
        raise Rejected(phrase("This page cannot be given more time."))
    await visits.use(provider, caller, visit)
    before = visit.opening
    if before is None:
        return
    longer = msgspec.structs.replace(before, ends_at=_from(caller, visit), extensions=before.extensions + 1)
    step = kinds.key(kinds.STEP, provider.policy.base_url, before.opening_id, str(before.extensions))
    async with provider.transient.unit(caller.now) as unit:
        if await unit.get(*_closed(provider, before)) is not None:
            raise StaleStep
        if not await unit.add(kinds.STEP.name, step, kinds.STEP.seconds):
            raise StaleStep
        await _keep(provider, unit, visit, longer)


async def close(provider: Provider, caller: Caller, visit: AccountVisit) -> None:
    """Close the page, since what it was opened for was done: the next change takes a fresh sign-in again (D45).

    It stays closed, also where another request gives it more time at this moment.
    """
    if visit.opening is not None:
        # An entry of its own, since whoever writes the opening may have read it before it was closed.
        async with provider.transient.unit(caller.now) as unit:
            await unit.add(*_closed(provider, visit.opening), kinds.CLOSED_ACCOUNT_PAGE.seconds)


def _from(caller: Caller, visit: AccountVisit) -> float:
    return min(caller.now + ACCOUNT_PAGE_SECONDS, float(visit.session.expires_at))


async def _standing(provider: Provider, caller: Caller, visit: AccountVisit, page: str) -> Opening | None:
    value = await provider.transient.get(kinds.ACCOUNT_PAGE.name, _key(provider, visit, page), now=caller.now)
    found = None if value is None else msgspec.msgpack.decode(value, type=Opening)
    return found if found is not None and caller.now < found.ends_at else None


async def _is_closed(provider: Provider, caller: Caller, opening: Opening) -> bool:
    return await provider.transient.get(*_closed(provider, opening), now=caller.now) is not None


async def _keep(provider: Provider, unit: TransientUnit, visit: AccountVisit, opening: Opening) -> None:
    key, value = _key(provider, visit, opening.page), msgspec.msgpack.encode(opening)
    await unit.put(kinds.ACCOUNT_PAGE.name, key, value, kinds.ACCOUNT_PAGE.seconds)


def _key(provider: Provider, visit: AccountVisit, page: str) -> bytes:
    return kinds.key(kinds.ACCOUNT_PAGE, provider.policy.base_url, visit.session.session_id, page)


def _closed(provider: Provider, opening: Opening) -> tuple[str, bytes]:
    """Where it stands that what a page was opened for was done."""
    kind = kinds.CLOSED_ACCOUNT_PAGE
    return kind.name, kinds.key(kind, provider.policy.base_url, opening.opening_id)
