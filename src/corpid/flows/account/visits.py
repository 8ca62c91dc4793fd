"""A person at their own account: signed in for it, in one browser, for a short time (D30, D34).

This session is none of single sign-on's: no client is answered with it, and single sign-on does not open the account.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from corpid.directory.access import Person
from corpid.flows import browsers, held_arrivals, interactions, sessions
from corpid.flows.account import own_client
from corpid.flows.arrival import Entered
from corpid.flows.held_arrivals import HeldArrival
from corpid.flows.interactions import Interaction
from corpid.protocol.limits import ACCOUNT_FRESH_SECONDS

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.flows.account.openings import Opening
    from corpid.flows.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEvent, Session


class TooOld(Exception):
    """The sign-in is too old for a change of factors: it has to be made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountVisit:
    """A person, the browser they sit at, and the session that they signed in for."""

    user: User
    browser: Browser
    session: Session
    opening: Opening | None = None
    """the page they are at, where it is one on which factors are changed (`account.openings`)"""

    @property
    def form(self) -> str:
        """What a form of these pages is bound to beside the browser (D35)."""
        return f"account {self.session.session_id}"


async def visit(provider: Provider, caller: Caller, browser: Browser | None) -> AccountVisit | None:
    """Who sits at this browser, None where nobody is signed in to the account, or was idle for too long.

    Notes the use of the session, at most every two minutes. Source: D30, D34
    """
    if browser is None or not browser.account_id:
        return None
    session = await provider.registry.sessions.get(browser.account_id, now=caller.now)
    if session is None or session.purpose != "account" or session.browser_id != browser.browser_id:
        return None
    if caller.now >= browsers.ends_at(provider, session):
        return None
    user = await provider.registry.directory.user(session.user_id)
    if user is None or not user.enabled:
        return None
    return AccountVisit(
        user=user, browser=browser, session=await sessions.use_seldom(provider, session, now=caller.now)
    )


async def use(provider: Provider, caller: Caller, visit: AccountVisit) -> AccountVisit:
    """Note that the account is used; the same person, who has as long again (D30, WCAG 2.2.1)."""
    return replace(visit, session=await sessions.use(provider, visit.session, now=caller.now))


def require_fresh(visit: AccountVisit, *, now: float) -> None:
    """Raises TooOld unless the person signed in a few minutes ago (DESIGN, Security)."""
    if now >= visit.session.auth_time + ACCOUNT_FRESH_SECONDS:
        raise TooOld


def event(caller: Caller, visit: AccountVisit, action: str) -> AuditEvent:
    """What the audit is told of something that a person did in their account. Source: DESIGN, Security"""
    user_id = visit.user.user_id
    return caller.event(Person(user_id=user_id), action, subject=user_id)


async def enter(
    provider: Provider, caller: Caller, browser: Browser | None, *, page: str, anew: bool = False
) -> Entered:
    """Begin a sign-in that leads to a page of the account; a browser that is new gets a cookie, and holds the sign-in.

    `anew`: the person is signed in, but not lately enough for that page. Raises TooManyRequests. Source: D15, D34
    """
    at, cookie = (browser, None) if browser else await browsers.welcome(provider, now=caller.now)
    begun = HeldArrival(
        interaction=Interaction(
            interaction_id=provider.new_id(),
            browser_id=at.browser_id,
            reference=provider.new_id(),
            request=own_client.request(provider, page, anew=anew),
            expires_at=interactions.fresh_expiry(caller.now),
        )
    )
    held = ""
    if browser is None:
        held = held_arrivals.seal(provider, begun)
    else:
        await held_arrivals.store(provider, caller, browser, begun)
    return Entered(interaction_id=begun.interaction.interaction_id, cookie=cookie, held=held)
