"""Session start after authentication, and whether it is the first sign-in (D30, D34, D45-D47)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import (
    account_client,
    browsers,
    code_guesses,
    completion,
    entity_selection,
    interactions,
    sessions,
    throttle,
)
from corpid.flows.authentication.interactions import Outcome, StaleStep
from corpid.ports import Session
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory import names
from corpid.rules.limits import ACCOUNT_SESSION_SECONDS, INTERACTION_EXTENSIONS, INTERACTION_SECONDS
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.flows.authentication.interactions import Interaction
    from corpid.flows.authentication.sign_in import Visit
    from corpid.flows.request_context import RequestContext
    from corpid.ports import TransientUnit
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.authentication.sign_in import Way
    from corpid.rules.directory.records import User


async def expect_first_sign_in(context: RequestContext, unit: TransientUnit, user_id: str) -> None:
    """Somebody has just set up their sign-in (D47)."""
    await unit.put(namespaces.NEWCOMER.name, _key(context, user_id), b"", namespaces.NEWCOMER.seconds)


async def clear_first_sign_in(context: RequestContext, unit: TransientUnit, user_id: str) -> None:
    """They have signed in, and are expected no more (D47)."""
    await unit.take(namespaces.NEWCOMER.name, _key(context, user_id))


async def is_first_sign_in(context: RequestContext, credentials: Credentials) -> bool:
    """Whether nobody has signed in yet as the person whose credentials these are.

    Who has set their own factors was expected; of others, who were given theirs, the audit says it. Source: D47
    """
    user_id = credentials.user_id
    if (
        await context.provider.transient.get(namespaces.NEWCOMER.name, _key(context, user_id), now=context.now)
        is not None
    ):
        return True
    if credentials.password_set_by == "user" or await context.provider.registry.factors.passkeys(user_id):
        return False
    return not await context.provider.registry.audit.sign_ins_of(user_id, limit=1)


def _key(context: RequestContext, user_id: str) -> bytes:
    return namespaces.key(namespaces.NEWCOMER, context.provider.policy.base_url, user_id)


_LONGEST_SIGN_IN_SECONDS: Final = INTERACTION_SECONDS * (1 + INTERACTION_EXTENSIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authentication:
    """The person who has shown every factor, and with what (RFC 8176)."""

    user: User
    credentials: Credentials
    """those that they were checked against"""
    amr: tuple[str, ...]
    passkey: str = ""
    """the credential id of the passkey that was shown"""
    way: Way | None = None
    """of the second factor, where a code was shown"""


async def complete(context: RequestContext, visit: Visit, shown: Authentication) -> Visit:
    """Move a sign-in on after its last factor; returns the visit as it is now, with the browser's new cookie value.

    Whatever happens next, the browser has to get that value, since its old one is dead; `as_the_person_is` comes then.
    One for the account's own pages ends here. Who was signed in at this browser before, if it was somebody else,
    is signed out. Raises StaleStep, also where another tab has signed in or out meanwhile, and OtherBrowser where this
    is the first factor too and another browser was quicker. Source: D15, D30, D34, D47
    """
    interaction, browser_key = visit.interaction, visit.browser.browser_key
    user_id, name = shown.user.user_id, names.user_name(shown.user.user_name)
    last = await throttle.last_entity(context, name, browser_key)
    new_here = last is None and not await is_first_sign_in(context, shown.credentials)
    session = _new_session(context, visit, shown)
    moved = await _moved(context, visit, shown, session)
    others = await sessions.held(context, visit.browser, but_of=user_id)
    browser = sessions.kept_in(sessions.gone_from(visit.browser, others), session)
    async with context.provider.transient.unit(context.now) as unit:
        await interactions.claim_step(context, unit, interaction)
        if not interaction.user_id:
            await _claim_request(context, unit, interaction)
        await _retire_cookie(context, unit, visit)
        await interactions.save(context, unit, moved)
        if moved.outcome is Outcome.ACCOUNT:
            entry = completion.event(context, moved, AuditAction.SIGN_IN_COMPLETE)
            await context.provider.registry.audit.write(entry, now=context.now)
        await throttle.succeeded(context, unit, name, browser_key)
        await throttle.remember(context, unit, name, browser_key, last)
        if last is None:
            await clear_first_sign_in(context, unit, user_id)
        guessed_in = code_guesses.UNKNOWN if last is None else code_guesses.known_browser(context, user_id, browser_key)
        await context.provider.registry.code_guesses.forget(user_id, guessed_in)
        await sessions.begin(context, session)
        for other in others:
            await sessions.end(context, other)
        cookie = await browsers.replace_by_form(context, unit, visit.cookie, visit.form, browser)
    if new_here:
        notifications.notify(context, shown.user, notifications.new_device(context.device))
    return replace(visit, interaction=moved, browser=browser, cookie=cookie, standing=None)


async def as_the_person_is(context: RequestContext, visit: Visit) -> Visit:
    """A sign-in right after its last factor, with nobody signed in where the person has changed meanwhile.

    Whoever changes factors or disables their owner ends every session they see; one they did not see yet ends here.
    Source: D50
    """
    moved = visit.interaction
    user = await context.provider.registry.directory.user(moved.user_id)
    credentials = await context.provider.registry.factors.credentials(moved.user_id)
    enabled = user is not None and user.enabled
    if enabled and await interactions.same_factors(context, moved, credentials):
        return visit
    made = await context.provider.registry.sessions.get(moved.made_session_id, now=context.now)
    if made is not None:
        await sessions.end(context, made)
    return replace(visit, interaction=moved.anonymous)


async def _retire_cookie(context: RequestContext, unit: TransientUnit, visit: Visit) -> None:
    """A browser never has two values that live: of two tabs that end at once, one tries again with the other's."""
    if not await browsers.retire(context, unit, visit.cookie):
        await interactions.release_step(context, unit, visit.interaction)
        raise StaleStep


async def _claim_request(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> None:
    if not await interactions.claim_request(context, unit, interaction):
        raise completion.OtherBrowser


async def _moved(context: RequestContext, visit: Visit, shown: Authentication, session: Session) -> Interaction:
    interaction, user = visit.interaction, shown.user
    ended = session.purpose == "account"
    return msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        user_id=user.user_id,
        user_name=interaction.user_name or names.user_name(user.user_name),
        factors=interactions.fingerprint(shown.credentials),
        passkey=shown.passkey,
        amr=shown.amr,
        way=shown.way,
        auth_time=session.auth_time,
        level=session.level,
        made_session_id=session.session_id,
        entity_id=await entity_selection.unasked(context, user.user_id, visit.client, interaction.request),
        outcome=Outcome.ACCOUNT if ended else None,
        finished_at=context.now if ended else 0,
    )


def _new_session(context: RequestContext, visit: Visit, shown: Authentication) -> Session:
    """Without single sign-on, one for this sign-in alone: whoever is signed out everywhere is signed out of it too (D30)."""
    purpose = account_client.purpose(visit.interaction.request)
    single_sign_on = context.provider.policy.session_seconds or _LONGEST_SIGN_IN_SECONDS
    seconds = {"sign_in": single_sign_on, "account": ACCOUNT_SESSION_SECONDS}[purpose]
    return Session(
        session_id=context.provider.new_id(),
        user_id=shown.user.user_id,
        browser_id=visit.browser.browser_id,
        auth_time=int(context.now),
        amr=shown.amr,
        level=acr.TWO_FACTORS,
        expires_at=int(context.now) + seconds,
        purpose=purpose,
        device=context.device,
        seen_at=int(context.now),
    )
