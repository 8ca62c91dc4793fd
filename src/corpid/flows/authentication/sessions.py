"""Sessions: started after authentication, used and ended (D30, D34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.authentication import browsers
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session, SessionPurpose
    from corpid.rules.directory.access import Action
    from corpid.rules.directory.records import Account

NOTED_SECONDS: Final = 120
"""the greatest delay in recording a session's use, so that it is rarely written"""
_PLACES: Final[dict[SessionPurpose, str]] = {
    "sign_in": "session_id", "account": "account_id", "manage": "manage_id", "console": "console_id",
}  # fmt: skip
"""the member of a browser that holds its session of each purpose"""


def held_for(browser: Browser, purpose: SessionPurpose) -> str:
    """Return the identifier of a browser's session; empty without one.

    Source: D30
    """
    session_id: str = getattr(browser, _PLACES[purpose])
    return session_id


async def list_live_sessions(context: RequestContext, browser: Browser | None, *, but_of: str = "") -> list[Session]:
    """Return the live sessions of the persons signed in at a browser.

    The person with the user_id `but_of` is left out. Sessions that the browser no longer refers to, since the same
    person has signed in there again, are included. Source: D30
    """
    if browser is None or not (browser.user_id or browser.session_id or browser.account_id):
        return []
    owners = {browser.user_id} - {"", but_of}
    if not browser.user_id:
        # Written by a version that did not yet store the person.
        ids = [getattr(browser, place) for place in _PLACES.values()]
        kept = [await context.provider.registry.sessions.get(each, now=context.now) for each in ids if each]
        mine = {each.user_id for each in kept if each is not None and each.browser_id == browser.browser_id}
        owners = mine - {but_of}
    found = []
    for owner in sorted(owners):
        theirs = await context.provider.registry.sessions.list_for_user(owner, now=context.now)
        found += [each for each in theirs if each.browser_id == browser.browser_id]
    return found


def kept_in(
    browser: Browser,
    user_id: str,
    session: Session | None,
    *,
    ended: Iterable[Session],
    with_passkey: bool,
    language: str,
) -> Browser:
    """Return the browser after this person has signed in.

    `language` is that of their account. The browser refers to the new session, if one begins, and to none of those that
    ended with the sign-in. Source: D30
    """
    places = {}
    for each in ended:
        place = _PLACES[each.purpose]
        if each.session_id == getattr(browser, place):
            places[place] = ""
    if session is not None:
        places[_PLACES[session.purpose]] = session.session_id
    used_passkey = browser.used_passkey or with_passkey
    return msgspec.structs.replace(browser, user_id=user_id, used_passkey=used_passkey, language=language, **places)


async def begin(context: RequestContext, session: Session | None, account: Account, *, passkey: str) -> bool:
    """Store the session of a new sign-in, unless the person has changed.

    Returns False if they have changed since `account` was loaded, whose factors were verified; `passkey` is the id of a
    passkey, or empty. The session is None for a sign-in that needs none; the person is checked in that case too.
    Source: D30, D50
    """
    sessions, seen = context.provider.registry.sessions, account.held.credentials
    if session is None:
        return await sessions.is_unchanged(seen, passkey=passkey)
    _authorise(Person(user_id=session.user_id), "write", session)
    return await sessions.put_if_unchanged(session, seen, passkey=passkey, stored_secret=account.stored_secret)


async def use(context: RequestContext, session: Session, *, entity_id: str | None = None) -> Session | None:
    """Record the use of a session and the entity chosen, if any.

    Returns the updated session, None if it has ended since it was loaded. Source: D30
    """
    _authorise(Person(user_id=session.user_id), "write", session)
    at = int(context.now)
    if not await context.provider.registry.sessions.use(session.session_id, at=at, entity_id=entity_id):
        return None
    return msgspec.structs.replace(session, seen_at=at)


async def use_seldom(context: RequestContext, session: Session) -> Session:
    """Record the use of a session at most every two minutes.

    Within that time, or if it has ended since it was loaded, the session is returned unchanged. Source: D30
    """
    if context.now < session.seen_at + NOTED_SECONDS:
        return session
    return await use(context, session) or session


async def end(context: RequestContext, session: Session) -> bool:
    """End a session in the name of its owner.

    Returns False if it had ended since it was loaded. Source: D30
    """
    owner = Person(user_id=session.user_id)
    _authorise(owner, "delete", session)
    event = context.event(owner, AuditAction.SESSION_END, subject=session.user_id)
    return await context.provider.registry.sessions.end(session.session_id, event)


async def end_with_sign_in(context: RequestContext, made: Session | None) -> bool:
    """End the session of a finished sign-in if single sign-on is off.

    Such a session served only this sign-in. `made` is None for a sign-in without a session. Returns False if the
    session had ended since it was loaded. Source: D30
    """
    if made is not None and not context.provider.policy.session_seconds:
        return await end(context, made)
    return True


async def sign_out(context: RequestContext, cookie: str, browser: Browser, ending: Iterable[Session]) -> str:
    """End the sessions of a browser and return its new cookie value.

    From then on it is a new browser, except that it is still known for its people. The next user cannot continue what
    other tabs had begun. Raises StaleStep if another tab has signed in or out meanwhile. Source: D30, D34, D47
    """
    async with context.provider.transient.batch(context.now) as batch:
        successor = await browsers.sign_out(context, batch, cookie, browser)
        # In one order, or two that end the same sessions would wait for each other on PostgreSQL.
        for session in sorted(ending, key=lambda each: each.session_id):
            await end(context, session)
    return successor


def _authorise(actor: Person, action: Action, session: Session) -> None:
    authorise(actor, action, Object(kind="session", user_id=session.user_id))
