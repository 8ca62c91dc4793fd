"""Session start after authentication, and detection of the first sign-in (D30, D34, D45-D47)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import (
    browsers,
    code_guesses,
    completion,
    entity_selection,
    interactions,
    own_pages,
    sessions,
    throttle,
)
from corpid.flows.authentication.interaction_context import with_consent
from corpid.rules.authentication import passkey_offer
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Session
from corpid.rules.authentication.sign_in import InteractionOutcome, SecondFactorMethod, SignInState, StaleStep
from corpid.rules.directory import names
from corpid.rules.directory.records import Account
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS, OWN_SESSIONS
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import SessionPurpose
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.stores.transient import TransientBatch


async def expect_first_sign_in(context: RequestContext, batch: TransientBatch, user_id: str) -> None:
    """Record that a person has just set up their sign-in (D47)."""
    await namespaces.NEWCOMER.entry(context.provider.policy.deployment_url, user_id).put(batch, b"")


def _new_here(account: Account, *, expected: bool) -> bool:
    """Return whether to notify the person of an unknown browser.

    The first sign-in is not notified. It was expected if the person has set their own factors. For other people, who
    were given their factors, the audit log shows whether they have signed in before.
    """
    set_by_themselves = account.held.credentials.password_set_by == "user" or bool(account.held.passkeys)
    return not expected and (set_by_themselves or account.signed_in_before)


_UNGUESSED: Final = (None, SecondFactorMethod.RECOVERY, SecondFactorMethod.SIMULATED)
"""methods of which no guesses are counted for the account"""
_LONGEST_SIGN_IN_SECONDS: Final = INTERACTION_SECONDS * (1 + INTERACTION_EXTENSIONS)


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


async def complete(context: RequestContext, visit: InteractionContext, shown: Authentication) -> InteractionContext:
    """Start the session after authentication and continue the sign-in.

    The sign-in is finished if nothing remains to be asked; one for the account's own pages ends here. Returns the
    updated visit, with the browser's new cookie value. Another person who was signed in at this browser is signed out.
    The person is checked again when the session is written. If their factors were changed or they were disabled before,
    there was no session to end, so none begins; if that happens later, the session is found and ended.

    Raises StaleStep if no session begins for that reason, or if another tab has signed in or out meanwhile;
    AlreadyCompleted; and OtherBrowser if this is also the first factor and another browser was faster. Source: D15,
    D30, D34, D47, D50
    """
    before, name = visit.interaction, names.user_name(shown.account.user.user_name)
    finished, session = await _decided(context, visit, shown, name)
    others = await sessions.list_live_sessions(context, visit.browser, but_of=finished.user_id)
    browser = sessions.kept_in(
        visit.browser,
        finished.user_id,
        session,
        ended=others,
        with_passkey=bool(shown.passkey),
        language=finished.language,
    )
    known, over = (
        visit.last_entity is not None,
        finished.outcome in (InteractionOutcome.CODE, InteractionOutcome.REFUSED),
    )
    browser_key, guesses = visit.browser.browser_key, shown.account.guesses
    group = (
        guesses.browser
        if visit.awaiting_second_factor
        else code_guesses.group(context, finished.user_id, browser_key, known=known)
    )
    new_here = False
    async with context.provider.transient.batch(context.now) as batch:
        # The request may be answered meanwhile: whatever completes it finds out by itself.
        await interactions.claim_step_of(context, batch, interactions.INTERACTION, before.interaction_id, before)
        if not before.user_id and not await interactions.claim_request(context, batch, before):
            raise completion.OtherBrowser
        # A browser never has two valid values: of two tabs that finish at once, one tries again with the other's value.
        if not await browsers.retire(context, batch, visit.cookie, visit.browser):
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
                new_here = _new_here(shown.account, expected=await expected.take(batch) is not None)
            if not await sessions.begin(context, session, shown.account, passkey=shown.passkey):
                raise StaleStep
            # After `begin`, which locks the person if a session begins: deleting a person locks in this order.
            await code_guesses.forget(context, guesses, group, guessed=shown.way not in _UNGUESSED)
            for other in sorted(others, key=lambda each: each.session_id):
                await sessions.end(context, other)
            if finished.outcome is not None:
                await completion.write_outcome(context, batch, finished)
            await interactions.save(context, batch, finished)
            last = finished.entity_id if finished.outcome is InteractionOutcome.CODE else visit.last_entity
            await throttle.remember(context, batch, name, browser_key, last, user_id=finished.user_id)
            cookie = await browsers.replace_by_form(context, batch, visit.cookie, visit.form, browser)
        except Exception as failure:
            with suppress(Exception):
                await _undo(context, visit, won=over and not isinstance(failure, completion.AlreadyCompleted))
            raise
    if new_here:
        notifications.notify(context, shown.account.user, notifications.new_device(context.device))
    return replace(visit, interaction=finished, browser=browser, cookie=cookie, awaiting_second_factor=None)


async def _decided(
    context: RequestContext, visit: InteractionContext, shown: Authentication, name: str
) -> tuple[Interaction, Session | None]:
    """Return the future interaction and the session that begins with it.

    There is no session if the sign-in ends here and nothing else would use one.
    """
    before, user = visit.interaction, shown.account.user
    entity_id = await entity_selection.find_only_entity(context, user.user_id, visit.client, before.request)
    after = machine.with_factors(
        before,
        user_id=user.user_id,
        user_name=name,
        factors=before.factors or machine.fingerprint(shown.account.held.credentials),
        amr=shown.amr,
        level=acr.TWO_FACTORS,
        passkey=shown.passkey,
        way=shown.way,
        offers_passkey=_offers_passkey(context, visit, shown),
        language=user.language,
        now=context.now,
    )
    after = replace(after, entity_id=entity_id)
    if visit.asks_consent:
        visit = await with_consent(context, visit, after)
    purpose = own_pages.purpose(before.request)
    if purpose != "sign_in":
        after = machine.with_outcome(before, after, InteractionOutcome.ACCOUNT, now=context.now)
    elif visit.state_of(context, after, usable=bool(entity_id)) is SignInState.CONFIRM:
        after = await completion.conclude_sign_in(context, visit.client, before, after)
        if not context.provider.policy.session_seconds:
            return after, None
    session = _new_session(context, visit, shown, purpose)
    if after.outcome is InteractionOutcome.CODE:
        session = replace(session, entity_id=entity_id)
    return replace(after, made_session_id=session.session_id), session


def _offers_passkey(context: RequestContext, visit: InteractionContext, shown: Authentication) -> bool:
    """Return whether to offer a passkey before the sign-in continues.

    Nothing is read for it. The account has a page of its own.
    """
    policy, request = context.provider.policy, visit.interaction.request
    if not (shown.makes_passkeys and policy.takes_passkeys) or own_pages.purpose(request) != "sign_in":
        return False
    return passkey_offer.is_due(
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


async def _undo(context: RequestContext, visit: InteractionContext, *, won: bool) -> None:
    """Undo the claims of a failed sign-in.

    Some engines do not roll back their batches. It is a batch of its own, so that nothing that the failed one was about
    to write travels with it.
    """
    async with context.provider.transient.batch(context.now) as batch:
        if won:
            await completion.reopen(context, batch, visit.interaction)
        await browsers.revive(context, batch, visit.cookie, visit.browser)
        await interactions.release_step(context, batch, visit.interaction)


def _new_session(
    context: RequestContext, visit: InteractionContext, shown: Authentication, purpose: SessionPurpose
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
        browser_id=visit.browser.browser_id,
        auth_time=int(context.now),
        amr=shown.amr,
        level=acr.TWO_FACTORS,
        expires_at=int(context.now) + seconds,
        purpose=purpose,
        device=context.device,
        seen_at=int(context.now),
        browser_key=code_guesses.group(context, shown.account.user.user_id, visit.browser.browser_key, known=True),
    )
