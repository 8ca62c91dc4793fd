"""The sign-in, step by step: password, code, entity, consent (Spec 3, D15, D29, D34, D45).

Which page is current follows from what is known (`current`); each `submit_…` claims its step, writes
what it learned and leaves the rest to the next look. Who comes second is shown the current page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from corpid.flows.authentication import (
    account_client,
    browsers,
    completion,
    entity_selection,
    interactions,
    password_checks,
    second_factor_methods,
    sessions,
    throttle,
)
from corpid.flows.authentication.interactions import Interaction, StaleStep
from corpid.flows.authentication.second_factor_methods import AskSecondFactor, PendingSecondFactor
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import single_sign_on
from corpid.rules.directory import names
from corpid.rules.directory.access import person_or_anonymous
from corpid.rules.directory.entity_choice import Choice
from corpid.rules.limits import INTERACTION_EXTENSIONS
from corpid.rules.oauth.scopes import needs_consent
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.ports import AuditEvent
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.directory.records import Acting, User
    from corpid.rules.oauth.records import Client


class Rejected(Exception):
    """What was typed is not accepted; the sentence is for the person."""

    def __init__(self, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.sentence = sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A browser at its own interaction; `cookie` is the value it sent."""

    interaction: Interaction
    browser: Browser
    cookie: str
    client: Client
    standing: PendingSecondFactor | None = None
    """who has shown their password here, and nothing beside it yet"""
    form: bytes = b""
    """SHA-256 of the form that is being submitted"""
    lacks_second_factor: str = ""
    """the id of who typed their password here and has no second factor left; nobody stands here for now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPassword:
    """Nobody is known yet."""

    lacks_second_factor: bool = False
    """whether somebody was known, and had no second factor left"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseEntity:
    """Several entities can be used: the first of those that match, and how many do.

    `preselected` is an entity_id or empty.
    """

    choices: tuple[Choice, ...]
    total: int
    preselected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEntity:
    """None of the person's entities can be used at this client (D17): the first of them, and how many there are."""

    choices: tuple[Choice, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskConsent:
    """The person has to agree to what the client will read (D29)."""

    user: User
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Everything is known from the session; a click completes (D30)."""

    user: User
    choice: Choice


Page = AskPassword | AskSecondFactor | ChooseEntity | NoEntity | AskConsent | Confirm


async def current(context: RequestContext, visit: Visit, *, query: str = "") -> Page:
    """The page that an unfinished interaction is at; `query` is what a choice is narrowed down by (D15)."""
    interaction = visit.interaction
    if visit.standing is not None:
        return second_factor_methods.asked(interaction, visit.standing, now=context.now)
    if not interaction.signed_in:
        return AskPassword(lacks_second_factor=bool(visit.lacks_second_factor))
    acting = await _chosen(context, visit)
    if acting is not None:
        agreeing = AskConsent if _consent_remains(visit) else Confirm
        return agreeing(user=acting.user, choice=Choice(entity=acting.entity))
    user_id, client = interaction.user_id, visit.client
    if not await entity_selection.any_usable(context, user_id, client):
        everything = await entity_selection.offer(context, user_id, client, query="", preselected="")
        return NoEntity(choices=everything.choices, total=everything.total)
    last = await _last_entity(context, visit)
    offer = await entity_selection.offer(context, user_id, client, query=query, preselected=last)
    return ChooseEntity(choices=offer.choices, total=offer.total, preselected=offer.preselected)


async def _chosen(context: RequestContext, visit: Visit) -> Acting | None:
    """The entity that was chosen, None while there is none, or it can no longer be used."""
    user_id, entity_id = visit.interaction.user_id, visit.interaction.entity_id
    if not entity_id:
        return None
    return await entity_selection.usable_here(context, user_id, entity_id, visit.client)


def _consent_remains(visit: Visit) -> bool:
    return asks_consent(visit) and not visit.interaction.consented


async def _last_entity(context: RequestContext, visit: Visit) -> str:
    session = await browsers.session_of(context, visit.browser)
    if session is not None and session.entity_id:
        return session.entity_id
    user_name, browser_key = visit.interaction.user_name, visit.browser.browser_key
    return await throttle.last_entity(context, user_name, browser_key) or ""


def asks_entity(visit: Visit) -> bool:
    """Whether this sign-in is for somebody who acts for an entity (D17)."""
    return account_client.purpose(visit.interaction.request) == "sign_in"


def asks_consent(visit: Visit) -> bool:
    """Whether this sign-in has a page for consent (D29, D40)."""
    request = visit.interaction.request
    return needs_consent(visit.client, request.scopes) or single_sign_on.asks_consent(request)


def event(
    context: RequestContext, visit: Visit, user: User | None, action: AuditAction, outcome: Literal["ok", "refused"]
) -> AuditEvent:
    """What the audit is told of a factor (DESIGN, Security)."""
    actor = person_or_anonymous(user.user_id if user else "")
    return context.event(actor, action, client_id=visit.client.client_id, outcome=outcome)


async def submit_password(context: RequestContext, visit: Visit, *, user_name: str, password: str) -> Visit:
    """The first factor; returns the visit as it is now.

    The cookie stays until the last one: a password check takes long enough for a second click.

    Raises Rejected, Throttled, PasswordsBusy, StaleStep and OtherBrowser. Source: D15, D34, D44, D47
    """
    if visit.interaction.user_id:
        raise StaleStep
    try:
        name = names.user_name(user_name)
    except ValueError:
        name = ""
    attempt = await throttle.attempt(context, name, visit.browser.browser_key)
    # Whoever is named, and whether they exist or not, the same is asked of the database.
    user = await context.provider.registry.directory.user_by_name(name)
    credentials = await context.provider.registry.factors.credentials(user.user_id if user else "")
    stored = credentials.password_hash
    right = await password_checks.fits(context, attempt, name, password_hash=stored, password=password)
    if not right or user is None or not user.enabled:
        await context.provider.registry.audit.write(
            event(context, visit, user, AuditAction.SIGN_IN_PASSWORD, "refused"), now=context.now
        )
        raise Rejected(phrase("The user name or password is not right. Check both and try again."))
    await _refuse_without_second_factor(context, visit, user, credentials)
    credentials = await password_checks.strengthened(context, attempt, name, credentials=credentials, password=password)
    moved = msgspec.structs.replace(
        visit.interaction.anonymous,
        serial=visit.interaction.serial + 1,
        user_id=user.user_id,
        user_name=name,
        factors=interactions.fingerprint(credentials),
    )
    async with context.provider.transient.unit(context.now) as unit:
        await interactions.claim_step(context, unit, visit.interaction)
        if not await interactions.claim_request(context, unit, visit.interaction):
            raise completion.OtherBrowser
        await interactions.save(context, unit, moved)
        await context.provider.registry.audit.write(
            event(context, visit, user, AuditAction.SIGN_IN_PASSWORD, "ok"), now=context.now
        )
    return replace(visit, interaction=moved)


async def _refuse_without_second_factor(
    context: RequestContext, visit: Visit, user: User, credentials: Credentials
) -> None:
    """Only who typed the right password reads what this account lacks."""
    if (await second_factor_methods.pending_second_factor(context, user, credentials)).ways:
        return
    await context.provider.registry.audit.write(without_second_factor(context, visit, user), now=context.now)
    raise Rejected(no_second_factor(context))


def without_second_factor(context: RequestContext, visit: Visit, user: User | None) -> AuditEvent:
    """What the audit is told where the password was right and nothing goes with it (D45)."""
    entry = event(context, visit, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused")
    return msgspec.structs.replace(entry, detail={**entry.detail, "reason": "no second factor is left"})


def no_second_factor(context: RequestContext) -> Phrase:
    """What a person reads then (D45)."""
    return phrase(
        "Your account has no second factor that can be used here. Ask the person who manages {name} in your "
        "organisation for a link to set one up.",
        name=context.provider.policy.name,
    )


async def submit_entity(context: RequestContext, visit: Visit, *, entity_id: str) -> Visit:
    """The choice of an entity; returns the visit as it is now. Raises Rejected and StaleStep (D17)."""
    interaction = visit.interaction
    if not interaction.signed_in or await _chosen(context, visit) is not None:
        raise StaleStep
    if await entity_selection.usable_here(context, interaction.user_id, entity_id, visit.client) is None:
        raise Rejected(phrase("Choose the organisation that you act for."))
    return await _move(context, visit, entity_id=entity_id, consented=False)


async def submit_consent(context: RequestContext, visit: Visit) -> Visit:
    """The person agrees; returns the visit as it is now. Raises StaleStep (D29)."""
    if not visit.interaction.entity_id or visit.interaction.consented:
        raise StaleStep
    return await _move(context, visit, consented=True)


async def start_over(context: RequestContext, visit: Visit) -> Visit:
    """Forget who is signed in in this interaction, so that another account can be used; returns the visit as it is now.

    Raises StaleStep. Source: D30
    """
    forgotten = visit.interaction.anonymous
    moved = await _move(context, replace(visit, interaction=forgotten))
    await sessions.end_with_sign_in(context, visit.interaction.made_session_id)
    return moved


async def extend(context: RequestContext, visit: Visit) -> Visit:
    """Give the person another ten minutes, at most ten times; returns the visit as it is now. Raises Rejected and StaleStep (D15)."""
    if visit.interaction.extensions >= INTERACTION_EXTENSIONS:
        raise Rejected(phrase("This sign-in cannot be extended any more."))
    return await _move(
        context, visit, expires_at=interactions.fresh_expiry(context.now), extensions=visit.interaction.extensions + 1
    )


async def _move(context: RequestContext, visit: Visit, **changes: object) -> Visit:
    moved = await interactions.move(context, visit.interaction, **changes)
    return replace(visit, interaction=moved)


async def ready(context: RequestContext, visit: Visit) -> bool:
    """Whether nothing remains to be asked, so that the POST that was just made may complete (D30)."""
    interaction = visit.interaction
    if interaction.outcome is not None or not interaction.signed_in or _consent_remains(visit):
        return False
    return await _chosen(context, visit) is not None


async def finish(context: RequestContext, visit: Visit) -> Interaction:
    """Complete, and remember the entity for the next time. Raises as `completion.complete` (D15, D17, D30).

    Where single sign-on is off, the session that the factors made ends here; another tab stands on its own.
    """
    finished = await completion.complete(context, visit.interaction)
    session = await browsers.session_of(context, visit.browser)
    async with context.provider.transient.unit(context.now) as unit:
        if session is not None:
            await sessions.use(context, session, entity_id=finished.entity_id)
        if finished.user_name:
            browser_key = visit.browser.browser_key
            await throttle.remember(context, unit, finished.user_name, browser_key, finished.entity_id)
    await sessions.end_with_sign_in(context, finished.made_session_id)
    return finished
