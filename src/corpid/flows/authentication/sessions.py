"""Sessions: started after authentication, used and ended (D30, D34, D45-D47).

`start_session` starts one after the last factor, and detects a first sign-in and a new browser.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import browsers, completion, entity_selection, interactions, own_pages, throttle
from corpid.flows.authentication.interaction_context import InteractionContext, with_consent
from corpid.rules.audit import AuditAction
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Session, SessionPurpose
from corpid.rules.authentication.sign_in import (
    Interaction,
    InteractionOutcome,
    SecondFactorMethod,
    SignInState,
    StaleStep,
)
from corpid.rules.directory import names
from corpid.rules.directory.access import Action, Object, Person, authorise
from corpid.rules.directory.records import Account
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS, OWN_SESSIONS
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.stores.transient import TransientBatch

NOTED_SECONDS: Final = 120
"""the greatest delay in recording a session's use, so that it is rarely written"""
_PLACES: Final[dict[SessionPurpose, str]] = {
    "sign_in": "session_id", "account": "account_id", "manage": "manage_id", "console": "console_id",
}  # fmt: skip
"""the member of a browser that holds its session of each purpose"""
_UNGUESSED: Final = (None, SecondFactorMethod.RECOVERY, SecondFactorMethod.SIMULATED)
"""methods of which no guesses are counted for the account"""
_LONGEST_SIGN_IN_SECONDS: Final = INTERACTION_SECONDS * (1 + INTERACTION_EXTENSIONS)


def find_session_id(browser: Browser, purpose: SessionPurpose) -> str:
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


def update_browser(
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


async def expect_first_sign_in(context: RequestContext, batch: TransientBatch, user_id: str) -> None:
    """Record that a person has just set up their sign-in (D47)."""
    await namespaces.NEWCOMER.entry(context.provider.policy.deployment_url, user_id).put(batch, b"")


class Authentication(msgspec.Struct, frozen=True, kw_only=True):
    """A fully authenticated person and the factors used (RFC 8176)."""

    account: Account
    """as it was when the factors were checked"""
    amr: tuple[str, ...]
    passkey: str = ""
    """the credential id of the passkey that was shown"""
    way: SecondFactorMethod | None = None
    """method of the second factor, if a code was typed"""
    makes_passkeys: bool = False
    """true if the page said that this browser can create a passkey"""


async def start_session(
    context: RequestContext, loaded: InteractionContext, shown: Authentication
) -> InteractionContext:
    """Start the session after authentication and continue the sign-in.

    The sign-in is finished if nothing remains to be asked; one for the account's own pages ends here. Returns the
    updated context, with the browser's new cookie value. Another person who was signed in at this browser is signed
    out. The person is checked again when the session is written. If their factors were changed or they were disabled
    before, there was no session to end, so none begins; if that happens later, the session is found and ended.

    Raises StaleStep if no session begins for that reason, or if another tab has signed in or out meanwhile;
    AlreadyCompleted; and OtherBrowser if this is also the first factor and another browser was faster. Source: D15,
    D30, D34, D47, D50
    """
    before, name = loaded.interaction, names.user_name(shown.account.user.user_name)
    finished, session = await _decided(context, loaded, shown, name)
    others = await list_live_sessions(context, loaded.browser, but_of=finished.user_id)
    browser = update_browser(
        loaded.browser,
        finished.user_id,
        session,
        ended=others,
        with_passkey=bool(shown.passkey),
        language=finished.language,
    )
    known, over = (
        loaded.last_entity is not None,
        finished.outcome in (InteractionOutcome.CODE, InteractionOutcome.REFUSED),
    )
    browser_key, guesses = loaded.browser.browser_key, shown.account.guesses
    group = (
        guesses.browser
        if loaded.awaiting_second_factor
        else throttle.guess_group(context, finished.user_id, browser_key, known=known)
    )
    new_here = False
    async with context.provider.transient.batch(context.now) as batch:
        # The request may be answered meanwhile: whatever completes it finds out by itself.
        await interactions.claim_step_of(context, batch, interactions.INTERACTION, before.interaction_id, before)
        if not before.user_id and not await interactions.claim_request(context, batch, before):
            raise completion.OtherBrowser
        # A browser never has two valid values: of two tabs that finish at once, one tries again with the other's value.
        if not await browsers.retire(context, batch, loaded.cookie, loaded.browser):
            await interactions.release_step(context, batch, before)
            raise StaleStep
        try:
            if over:
                await completion.complete_request(context, batch, finished)
            await throttle.forget_attempts(
                context, batch, name, browser_key, known=known, of_address=_cost(before, shown, known=known)
            )
            if not known and shown.account.user.email:
                expected = namespaces.NEWCOMER.entry(context.provider.policy.deployment_url, finished.user_id)
                first = await expected.take(batch) is not None
                # The first sign-in is not notified. It was expected if the person has set their own factors. For other
                # people, who were given theirs, the audit log shows whether they have signed in before.
                held = shown.account.held
                set_by_themselves = held.credentials.password_set_by == "user" or bool(held.passkeys)
                new_here = not first and (set_by_themselves or shown.account.signed_in_before)
            if not await begin(context, session, shown.account, passkey=shown.passkey):
                raise StaleStep
            # After `begin`, which locks the person if a session begins: deleting a person locks in this order.
            await throttle.forget_guesses(context, guesses, group, guessed=shown.way not in _UNGUESSED)
            for other in sorted(others, key=lambda each: each.session_id):
                await end(context, other)
            if finished.outcome is not None:
                await completion.write_outcome(context, batch, finished)
            await interactions.save(context, batch, finished)
            last = finished.entity_id if finished.outcome is InteractionOutcome.CODE else loaded.last_entity
            await throttle.remember(context, batch, name, browser_key, last, user_id=finished.user_id)
            cookie = await browsers.replace_by_form(context, batch, loaded.cookie, loaded.form, browser)
        except Exception as failure:
            with suppress(Exception):
                await _undo(context, loaded, won=over and not isinstance(failure, completion.AlreadyCompleted))
            raise
    if new_here:
        notifications.notify(context, shown.account.user, notifications.new_device(context.device))
    return replace(loaded, interaction=finished, browser=browser, cookie=cookie, awaiting_second_factor=None)


async def _decided(
    context: RequestContext, loaded: InteractionContext, shown: Authentication, name: str
) -> tuple[Interaction, Session | None]:
    """Return the future interaction and the session that begins with it.

    There is no session if the sign-in ends here and nothing else would use one.
    """
    before, user = loaded.interaction, shown.account.user
    entity_id = await entity_selection.find_only_entity(context, user.user_id, loaded.client, before.request)
    after = machine.with_factors(
        before,
        user_id=user.user_id,
        user_name=name,
        factors=before.factors or machine.fingerprint(shown.account.held.credentials),
        amr=shown.amr,
        level=acr.TWO_FACTORS,
        passkey=shown.passkey,
        way=shown.way,
        offers_passkey=_offers_passkey(context, loaded, shown),
        language=user.language,
        now=context.now,
    )
    after = replace(after, entity_id=entity_id)
    if loaded.asks_consent:
        loaded = await with_consent(context, loaded, after)
    purpose = own_pages.purpose(before.request)
    if purpose != "sign_in":
        after = machine.with_outcome(before, after, InteractionOutcome.ACCOUNT, now=context.now)
    elif loaded.state_of(context, after, usable=bool(entity_id)) is SignInState.CONFIRM:
        after = await completion.conclude_sign_in(context, loaded.client, before, after)
        if not context.provider.policy.session_seconds:
            return after, None
    session = _new_session(context, loaded, shown, purpose)
    if after.outcome is InteractionOutcome.CODE:
        session = replace(session, entity_id=entity_id)
    return replace(after, made_session_id=session.session_id), session


def _offers_passkey(context: RequestContext, loaded: InteractionContext, shown: Authentication) -> bool:
    """Return whether to offer a passkey before the sign-in continues.

    Nothing is read for it. The account has a page of its own.
    """
    policy, request = context.provider.policy, loaded.interaction.request
    if not (shown.makes_passkeys and policy.takes_passkeys) or own_pages.purpose(request) != "sign_in":
        return False
    return machine.is_passkey_offer_due(
        request,
        shown.account.held,
        declined_at=shown.account.passkey_declined_at,
        acr_prefix=policy.acr_prefix,
        level=acr.TWO_FACTORS,
        now=context.now,
    )


def _cost(before: Interaction, shown: Authentication, *, known: bool) -> int:
    """Return the number of attempts that this sign-in cost its address.

    In a known browser, guessable factors are counted there instead.
    """
    if shown.way is SecondFactorMethod.SIMULATED:
        return 0
    guessed = (shown.amr != acr.PASSKEY and not before.uncounted) + (
        shown.way not in (None, SecondFactorMethod.RECOVERY)
    )
    unguessable = shown.way in (None, SecondFactorMethod.RECOVERY)
    return unguessable + (0 if known else guessed)


async def _undo(context: RequestContext, loaded: InteractionContext, *, won: bool) -> None:
    """Undo the claims of a failed sign-in.

    Some engines do not roll back their batches. It is a batch of its own, so that nothing that the failed one was about
    to write travels with it.
    """
    async with context.provider.transient.batch(context.now) as batch:
        if won:
            await completion.reopen(context, batch, loaded.interaction)
        await browsers.revive(context, batch, loaded.cookie, loaded.browser)
        await interactions.release_step(context, batch, loaded.interaction)


def _new_session(
    context: RequestContext, loaded: InteractionContext, shown: Authentication, purpose: SessionPurpose
) -> Session:
    """Return the session of this sign-in.

    If single sign-on is off, it serves this sign-in alone, so that signing out everywhere ends the sign-in too.
    """
    seconds = context.provider.policy.session_seconds or _LONGEST_SIGN_IN_SECONDS
    if purpose != "sign_in":
        seconds = OWN_SESSIONS[purpose].seconds
    return Session(
        session_id=context.provider.new_id(),
        user_id=shown.account.user.user_id,
        browser_id=loaded.browser.browser_id,
        auth_time=int(context.now),
        amr=shown.amr,
        level=acr.TWO_FACTORS,
        expires_at=int(context.now) + seconds,
        purpose=purpose,
        device=context.device,
        seen_at=int(context.now),
        browser_key=throttle.guess_group(context, shown.account.user.user_id, loaded.browser.browser_key, known=True),
    )
