"""The sign-in, step by step: password, code, entity, consent (Spec 3, D15, D29, D34, D45).

`interaction_context` loads the data of a step, once. `rules.authentication.sign_in` decides the result of the step. Each
`submit_…` writes it in one batch, which claims the step; any later request gets the current page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from corpid.flows.authentication import (
    browsers,
    completion,
    consents,
    entity_selection,
    interactions,
    own_pages,
    password_checks,
    second_factor_methods,
    sent_forms,
    sessions,
    throttle,
)
from corpid.flows.authentication.interaction_context import with_consent
from corpid.flows.authentication.second_factor_methods import SecondFactorQuestion
from corpid.flows.authentication.sent_forms import Repeated, SentForm
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication import totp
from corpid.rules.authentication.records import Credentials
from corpid.rules.authentication.sign_in import InteractionOutcome, SignInEvent, SignInState, StaleStep
from corpid.rules.directory import names
from corpid.rules.directory.actors import ANONYMOUS, Person
from corpid.rules.directory.entity_choice import Choice
from corpid.rules.oauth.errors import AccessDenied
from corpid.rules.oauth.refusals import Reason
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.authentication.records import Session
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.directory.records import Account, ActingPerson, User


class InvalidInput(Exception):
    """The error for input that is not accepted.

    The sentence is for the person.
    """

    def __init__(self, sentence: Phrase, *, field: str = "") -> None:
        """`field`: the one that it is about, if the form has several."""
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordQuestion:
    """The question for user name and password, before the person is known."""

    lacks_second_factor: bool = False
    """true if a person was known but had no second factor left"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyOffer:
    """The question whether to create a passkey (D46)."""

    account: Account


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuestion:
    """The first entities that match, and the number of matches.

    There are several usable ones. `preselected` is an entity_id or empty.
    """

    choices: tuple[Choice, ...]
    total: int
    preselected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEntity:
    """The person's entities, none of them usable at this client.

    It holds the first of them and their number. Source: D17
    """

    choices: tuple[Choice, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentQuestion:
    """The question for consent to the data that the client will read (D29)."""

    user: User
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInConfirmation:
    """The confirmation of a sign-in by single sign-on.

    Everything is known from the session; a click completes it. Source: D30
    """

    user: User
    choice: Choice


InteractionPage = (
    PasswordQuestion
    | SecondFactorQuestion
    | PasskeyOffer
    | EntityQuestion
    | NoEntity
    | ConsentQuestion
    | SignInConfirmation
)


async def current(context: RequestContext, visit: InteractionContext, *, query: str = "") -> InteractionPage:
    """Return the current page of an unfinished interaction.

    `query` narrows down a choice. Source: D15
    """
    interaction = visit.interaction
    if visit.awaiting_second_factor is not None:
        return second_factor_methods.second_factor_question(interaction, visit.awaiting_second_factor, now=context.now)
    if not interaction.signed_in:
        return PasswordQuestion(lacks_second_factor=visit.lacks_second_factor is not None)
    if interaction.offers_passkey:
        account = await context.provider.registry.factors.account(interaction.user_id)
        if account is not None:
            return PasskeyOffer(account=account)
    acting = await find_chosen_entity(context, visit)
    if acting is not None:
        state = visit.state_of(context, interaction, usable=True)
        agreeing = ConsentQuestion if state is SignInState.CONSENT else SignInConfirmation
        return agreeing(user=acting.user, choice=Choice(entity=acting.entity))
    user_id, client = interaction.user_id, visit.client
    if not await entity_selection.any_usable(context, user_id, client):
        everything = await entity_selection.offer(context, user_id, client, query="", preselected="")
        return NoEntity(choices=everything.choices, total=everything.total)
    last = await _last_entity(context, visit)
    offer = await entity_selection.offer(context, user_id, client, query=query, preselected=last)
    return EntityQuestion(choices=offer.choices, total=offer.total, preselected=offer.preselected)


async def find_chosen_entity(context: RequestContext, visit: InteractionContext) -> ActingPerson | None:
    """Return the chosen entity, None without one that is usable.

    Source: Spec 3
    """
    user_id, entity_id = visit.interaction.user_id, visit.interaction.entity_id
    if not entity_id:
        return None
    return await entity_selection.usable_here(context, user_id, entity_id, visit.client)


async def _last_entity(context: RequestContext, visit: InteractionContext) -> str:
    session = visit.session
    if session is None or session.session_id != visit.browser.session_id:
        session = await browsers.session_of(context, visit.browser)
    else:
        session = browsers.of_browser(context, visit.browser, session)
    if session is not None and session.entity_id:
        return session.entity_id
    if not visit.knows():
        return ""
    interaction, browser_key = visit.interaction, visit.browser.browser_key
    return await throttle.last_entity(context, interaction.user_name, browser_key, user_id=interaction.user_id) or ""


def asks_entity(visit: InteractionContext) -> bool:
    """Return whether the person has to act for an entity (Spec 3)."""
    return own_pages.purpose(visit.interaction.request) == "sign_in"


def event(
    context: RequestContext,
    visit: InteractionContext,
    user: User | None,
    action: AuditAction,
    outcome: Literal["ok", "refused"],
    **detail: str,
) -> AuditEvent:
    """Return the audit entry of an attempt at a factor."""
    actor = Person(user_id=user.user_id) if user else ANONYMOUS
    return context.event(actor, action, client_id=visit.client.client_id, outcome=outcome, **detail)


def form_place(interaction: Interaction) -> tuple[str, ...]:
    """The place of a form of the current step.

    As `stored_forms` takes it. A step that has moved on has another place. Source: D73
    """
    return ("sign-in", interaction.interaction_id, step_name(interaction))


def step_name(interaction: Interaction) -> str:
    """Return the step that a form names.

    An extension does not change it. Source: D15, WCAG 2.2.1
    """
    return str(interaction.serial - interaction.extensions)


async def submit_password(
    context: RequestContext, visit: InteractionContext, *, user_name: str, password: str
) -> InteractionContext:
    """Check the first factor and return the updated visit.

    The cookie stays until the last factor: a password check takes long enough for a second click. Raises InvalidInput,
    Throttled, PasswordsBusy, StaleStep and OtherBrowser. `user_name` is ignored if one person has to sign in again.
    Source: D15, D34, D44, D47, D54
    """
    visit.require(context, SignInEvent.PASSWORD)
    renewing = visit.renewing
    try:
        name = names.user_name(user_name if renewing is None else renewing.user.user_name)
    except ValueError:
        name = ""
    known = visit.knows() and await throttle.is_known(context, name, visit.browser.browser_key)
    attempt = await throttle.attempt(context, name, visit.browser.browser_key, known=known)
    sent = SentForm(place=form_place(visit.interaction), digest=visit.form.digest, attempt=attempt)
    try:
        await sent_forms.refuse_repeated(context, sent)
    except Repeated:
        raise InvalidInput(_WRONG if renewing is None else WRONG_PASSWORD) from None
    # The database gets the same query for every name, whether the user exists or not.
    account = await context.provider.registry.factors.account_by_name(name)
    credentials = account.held.credentials if account else Credentials(user_id="")
    stored, user = credentials.password_hash, account.user if account else None
    right = await password_checks.fits(context, attempt, name, password_hash=stored, password=password)
    if renewing is not None and user is not None and user.user_id != renewing.user.user_id:
        right = False  # renamed meanwhile, and somebody else has the name now
    if not right or account is None or user is None or not user.enabled:
        if await sent_forms.counts(context, sent):
            await context.provider.registry.audit.write(
                event(context, visit, user, AuditAction.SIGN_IN_PASSWORD, "refused"), now=context.now
            )
        raise InvalidInput(_WRONG if renewing is None else WRONG_PASSWORD)
    await _refuse_without_second_factor(context, visit, account)
    credentials = await password_checks.rehash_if_outdated(
        context, attempt, name, credentials=credentials, password=password
    )
    moved = machine.with_user(
        visit.interaction, user_id=user.user_id, user_name=name, credentials=credentials, language=user.language
    )
    if totp.refuses_codes(context.provider.registry.lost_at(), context.now):
        # The code that follows may be refused without the person's fault, and then this would stay counted.
        await throttle.give_back(context, attempt)
        moved = replace(moved, uncounted=True)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, visit.interaction)
        if not await interactions.claim_request(context, batch, visit.interaction):
            raise completion.OtherBrowser
        await interactions.save(context, batch, moved)
        await context.provider.registry.audit.write(
            event(context, visit, user, AuditAction.SIGN_IN_PASSWORD, "ok"), now=context.now
        )
    return replace(visit, interaction=moved)


_WRONG: Final = phrase("The user name or password is not right. Check both and try again.")
WRONG_PASSWORD: Final = phrase("The password is not right. Check it and try again.")


async def _refuse_without_second_factor(context: RequestContext, visit: InteractionContext, account: Account) -> None:
    """Refuse an account without a second factor.

    Only a person who typed the correct password reads this reason.
    """
    if second_factor_methods.pending_second_factor(context, account).ways:
        return
    refused = without_second_factor(context, visit, account.user)
    await context.provider.registry.audit.write(refused, now=context.now)
    raise InvalidInput(no_second_factor(context))


def without_second_factor(context: RequestContext, visit: InteractionContext, user: User | None) -> AuditEvent:
    """Return the audit entry of a correct password without a second factor (D45)."""
    why = "no second factor is left"
    return event(context, visit, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", reason=why)


def no_second_factor(context: RequestContext) -> Phrase:
    """Return the sentence for a person without a second factor (D45)."""
    return phrase(
        "After your password we ask for a second step, such as a code, and your account has none that works here. Ask "
        "your organisation's {name} administrator for a link to set one up.",
        name=context.provider.policy.name,
    )


async def submit_entity(context: RequestContext, visit: InteractionContext, *, entity_id: str) -> InteractionContext:
    """Choose an entity and return the updated visit.

    Raises InvalidInput and StaleStep, and the errors of `completion.complete_request` if nothing else remains to be
    asked. Source: D17, D30
    """
    interaction = visit.interaction
    visit.require(context, SignInEvent.ENTITY, usable=await find_chosen_entity(context, visit) is not None)
    if await entity_selection.usable_here(context, interaction.user_id, entity_id, visit.client) is None:
        raise InvalidInput(phrase("Choose the organisation you act for."))
    after = machine.with_entity(interaction, entity_id)
    if visit.asks_consent:
        visit = await with_consent(context, visit, after)
    return await continue_sign_in(context, visit, after)


async def submit_consent(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Record the person's consent and return the updated visit.

    It may have been given in another tab meanwhile. Raises StaleStep, and the same errors as `submit_entity`. Source:
    D29
    """
    if not visit.asks_consent:
        raise StaleStep
    visit.require(context, SignInEvent.CONSENT, usable=await find_chosen_entity(context, visit) is not None)
    return await continue_sign_in(context, visit, machine.with_consent_given(visit.interaction))


async def confirm(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Continue with the existing session and return the updated visit.

    Raises the same errors as `submit_consent`. Source: D30
    """
    visit.require(context, SignInEvent.CONFIRM, usable=await find_chosen_entity(context, visit) is not None)
    return await continue_sign_in(context, visit, visit.interaction)


async def continue_sign_in(
    context: RequestContext, visit: InteractionContext, after: Interaction, *, usable: bool = True
) -> InteractionContext:
    """Store a step, and finish the sign-in if nothing else remains.

    `usable` is as in `rules.authentication.sign_in.state`. The entity is then remembered for the next time. If single
    sign-on is off, the session that the factors began ends; another tab is independent of it. Raises StaleStep if the
    session has ended since it was loaded. Source: D15, D17, D30
    """
    before = visit.interaction
    if visit.state_of(context, after, usable=usable) is not SignInState.CONFIRM:
        await interactions.move(context, before, after)
        return replace(visit, interaction=after)
    finished = await completion.conclude_sign_in(context, visit.client, before, after)
    used = await _session_used(context, visit)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, before)
        lives = used is None or await sessions.use(context, used, entity_id=finished.entity_id) is not None
        if not lives or not await sessions.end_with_sign_in(context, _made(visit)):
            # Somebody has signed out since the sign-in was loaded: the next request finds that.
            await interactions.release_step(context, batch, before)
            raise StaleStep
        await completion.complete_request(context, batch, before)
        await completion.write_outcome(context, batch, finished)
        if finished.consented and finished.outcome is InteractionOutcome.CODE:
            await consents.give(context, visit.client, finished)
        await interactions.save(context, batch, finished)
        if finished.user_name and finished.outcome is InteractionOutcome.CODE:
            name, browser_key = finished.user_name, visit.browser.browser_key
            await throttle.remember(context, batch, name, browser_key, finished.entity_id, user_id=finished.user_id)
    return replace(visit, interaction=finished)


async def _session_used(context: RequestContext, visit: InteractionContext) -> Session | None:
    """Return the browser's session for single sign-on.

    It was loaded with the visit, unless it is another one.
    """
    loaded, kept = visit.session, visit.browser.session_id
    if loaded is not None and kept == loaded.session_id:
        return browsers.of_browser(context, visit.browser, loaded)
    return await browsers.session_of(context, visit.browser)


def _made(visit: InteractionContext) -> Session | None:
    """Return the live session that this sign-in began, if any."""
    made = visit.session
    return made if made is not None and made.session_id == visit.interaction.made_session_id else None


async def start_over(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Sign the person out of this interaction; return the updated visit.

    Another account can then be used. If one person had to sign in again, it becomes a plain sign-in to the same pages.
    Raises StaleStep. Source: D30, D54
    """
    visit.require(context, SignInEvent.OTHER_ACCOUNT)
    forgotten = machine.without_user(visit.interaction)
    if visit.interaction.renewed_session_id:
        forgotten = replace(forgotten, request=own_pages.plain(forgotten.request))
    await interactions.move(context, visit.interaction, forgotten)
    await sessions.end_with_sign_in(context, _made(visit))
    return replace(visit, interaction=forgotten)


async def extend(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Extend the sign-in, as often as `rules.limits` allows.

    Returns the updated visit. Raises InvalidInput and StaleStep. Source: D15
    """
    if not machine.extendable(visit.interaction):
        raise InvalidInput(phrase("You cannot get more time for this sign-in."))
    visit.require(context, SignInEvent.EXTEND)
    extended = machine.with_more_time(visit.interaction, now=context.now)
    await interactions.move(context, visit.interaction, extended)
    return replace(visit, interaction=extended)


async def cancel(context: RequestContext, visit: InteractionContext) -> InteractionContext:
    """Finish with access_denied at the person's request; return the updated visit.

    Raises StaleStep, OtherBrowser, AlreadyCompleted. Source: D15, D17
    """
    interaction = visit.interaction
    visit.require(context, SignInEvent.CANCEL)
    nothing = interaction.signed_in and not await entity_selection.any_usable(
        context, interaction.user_id, visit.client
    )
    refused = await completion.refuse(context, interaction, AccessDenied(*(_NO_ENTITY if nothing else _CANCELLED)))
    await sessions.end_with_sign_in(context, _made(visit))
    return replace(visit, interaction=refused)


_NO_ENTITY: Final = Reason.NO_ENTITY, "none of the organisations that the person acts for can be used here"
_CANCELLED: Final = Reason.CANCELLED, "the person cancelled the sign-in"
