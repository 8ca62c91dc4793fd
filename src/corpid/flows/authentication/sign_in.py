"""The sign-in, step by step: password, second factor, entity, consent (Spec 3, D15, D29, D34, D45).

`interaction_context` loads the data of a step, once. `rules.authentication.sign_in` decides the result of the step.
Each `submit_…` writes it in one batch, which claims the step; any later request gets the current page. A passkey is
taken by `passkeys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import (
    browsers,
    completion,
    consents,
    entity_selection,
    factors,
    interactions,
    own_pages,
    sessions,
    throttle,
)
from corpid.flows.authentication.factors import PendingSecondFactor, SecondFactorQuestion
from corpid.flows.authentication.interaction_context import InteractionContext, with_consent
from corpid.flows.authentication.throttle import Attempt, Repeated, SentForm
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Credentials, Session
from corpid.rules.authentication.sign_in import (
    Interaction,
    InteractionOutcome,
    SecondFactorMethod,
    SignInEvent,
    SignInState,
    StaleStep,
)
from corpid.rules.authentication.throttling import CodeGuesses, pause_after
from corpid.rules.authentication.totp import WrongCode, refuses_codes
from corpid.rules.directory import names
from corpid.rules.directory.access import ANONYMOUS, Person
from corpid.rules.directory.entity_choice import EntityChoice
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CODE_MISSES, MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN
from corpid.rules.oauth import acr
from corpid.rules.oauth.errors import AccessDenied
from corpid.rules.oauth.refusals import Reason
from corpid.texts import InvalidInput, Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import Account, ActingPerson, User
    from corpid.stores.transient import TransientBatch

_WRONG_CODE: Final[Mapping[SecondFactorMethod, Phrase]] = {
    SecondFactorMethod.APP: phrase("This code is not right. Wait for the next one in your app, then enter it."),
    SecondFactorMethod.EMAIL: phrase(
        "This code is not right. Enter the one from the latest e-mail, or send a new one."
    ),
    SecondFactorMethod.RECOVERY: phrase(
        "This recovery code is not right, or was already used. Check it, or enter another one."
    ),
}
_WRONG: Final = phrase("The user name or password is not right. Check both and try again.")
WRONG_PASSWORD: Final = phrase("The password is not right. Check it and try again.")
_NO_ENTITY: Final = Reason.NO_ENTITY, "none of the organisations that the person acts for can be used here"
_CANCELLED: Final = Reason.CANCELLED, "the person cancelled the sign-in"


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

    choices: tuple[EntityChoice, ...]
    total: int
    preselected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEntity:
    """The person's entities, none of them usable at this client.

    It holds the first of them and their number. Source: D17
    """

    choices: tuple[EntityChoice, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentQuestion:
    """The question for consent to the data that the client will read (D29)."""

    user: User
    choice: EntityChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInConfirmation:
    """The confirmation of a sign-in by single sign-on.

    Everything is known from the session; a click completes it. Source: D30
    """

    user: User
    choice: EntityChoice


InteractionPage = (
    PasswordQuestion
    | SecondFactorQuestion
    | PasskeyOffer
    | EntityQuestion
    | NoEntity
    | ConsentQuestion
    | SignInConfirmation
)


async def current(context: RequestContext, loaded: InteractionContext, *, query: str = "") -> InteractionPage:
    """Return the current page of an unfinished interaction.

    `query` narrows down a choice. Source: D15
    """
    interaction = loaded.interaction
    if loaded.awaiting_second_factor is not None:
        return factors.second_factor_question(interaction, loaded.awaiting_second_factor, now=context.now)
    if not interaction.signed_in:
        return PasswordQuestion(lacks_second_factor=loaded.lacks_second_factor is not None)
    if interaction.offers_passkey:
        account = await context.provider.registry.factors.account(interaction.user_id)
        if account is not None:
            return PasskeyOffer(account=account)
    acting = await find_chosen_entity(context, loaded)
    if acting is not None:
        state = loaded.state_of(context, interaction, usable=True)
        agreeing = ConsentQuestion if state is SignInState.CONSENT else SignInConfirmation
        return agreeing(user=acting.user, choice=EntityChoice(entity=acting.entity))
    user_id, client = interaction.user_id, loaded.client
    if not await entity_selection.any_usable(context, user_id, client):
        everything = await entity_selection.offer(context, user_id, client, query="", preselected="")
        return NoEntity(choices=everything.choices, total=everything.total)
    last = await _last_entity(context, loaded)
    offer = await entity_selection.offer(context, user_id, client, query=query, preselected=last)
    return EntityQuestion(choices=offer.choices, total=offer.total, preselected=offer.preselected)


async def find_chosen_entity(context: RequestContext, loaded: InteractionContext) -> ActingPerson | None:
    """Return the chosen entity, None without one that is usable.

    Source: Spec 3
    """
    user_id, entity_id = loaded.interaction.user_id, loaded.interaction.entity_id
    if not entity_id:
        return None
    return await entity_selection.usable_here(context, user_id, entity_id, loaded.client)


async def _last_entity(context: RequestContext, loaded: InteractionContext) -> str:
    session = await _session_used(context, loaded)
    if session is not None and session.entity_id:
        return session.entity_id
    if not loaded.knows():
        return ""
    interaction, browser_key = loaded.interaction, loaded.browser.browser_key
    return await throttle.last_entity(context, interaction.user_name, browser_key, user_id=interaction.user_id) or ""


def asks_entity(loaded: InteractionContext) -> bool:
    """Return whether the person has to act for an entity (Spec 3)."""
    return own_pages.purpose(loaded.interaction.request) == "sign_in"


def event(
    context: RequestContext,
    loaded: InteractionContext,
    user: User | None,
    action: AuditAction,
    outcome: Literal["ok", "refused"],
    **detail: str,
) -> AuditEvent:
    """Return the audit entry of an attempt at a factor."""
    actor = Person(user_id=user.user_id) if user else ANONYMOUS
    return context.event(actor, action, client_id=loaded.client.client_id, outcome=outcome, **detail)


def form_place(interaction: Interaction) -> tuple[str, ...]:
    """The place of a form of the current step.

    As `encrypted_values` takes it. A step that has moved on has another place. Source: D73
    """
    return ("sign-in", interaction.interaction_id, step_name(interaction))


def step_name(interaction: Interaction) -> str:
    """Return the step that a form names.

    An extension does not change it. Source: D15, WCAG 2.2.1
    """
    return str(interaction.serial - interaction.extensions)


async def submit_password(
    context: RequestContext, loaded: InteractionContext, *, user_name: str, password: str
) -> InteractionContext:
    """Check the first factor and return the updated context.

    The cookie stays until the last factor: a password check takes long enough for a second click. Raises InvalidInput,
    Throttled, PasswordsBusy, StaleStep and OtherBrowser. `user_name` is ignored if one person has to sign in again.
    Source: D15, D34, D44, D47, D54
    """
    loaded.require(context, SignInEvent.PASSWORD)
    renewing = loaded.renewing
    try:
        name = names.user_name(user_name if renewing is None else renewing.user.user_name)
    except ValueError:
        name = ""
    known = loaded.knows() and await throttle.is_known(context, name, loaded.browser.browser_key)
    attempt = await throttle.attempt_password(context, name, loaded.browser.browser_key, known=known)
    sent = SentForm(place=form_place(loaded.interaction), digest=loaded.form.digest, attempt=attempt)
    try:
        await throttle.refuse_repeated(context, sent)
    except Repeated:
        raise InvalidInput(_WRONG if renewing is None else WRONG_PASSWORD) from None
    # The database gets the same query for every name, whether the user exists or not.
    account = await context.provider.registry.factors.account_by_name(name)
    credentials = account.held.credentials if account else Credentials(user_id="")
    stored, user = credentials.password_hash, account.user if account else None
    right = await factors.fits(context, attempt, name, password_hash=stored, password=password)
    if renewing is not None and user is not None and user.user_id != renewing.user.user_id:
        right = False  # renamed meanwhile, and somebody else has the name now
    if not right or account is None or user is None or not user.enabled:
        if await throttle.rejection_counts(context, sent):
            await context.provider.registry.audit.write(
                event(context, loaded, user, AuditAction.SIGN_IN_PASSWORD, "refused"), now=context.now
            )
        raise InvalidInput(_WRONG if renewing is None else WRONG_PASSWORD)
    if not factors.pending_second_factor(context, account).ways:
        # Only a person who typed the correct password reads this reason.
        refused = without_second_factor(context, loaded, user)
        await context.provider.registry.audit.write(refused, now=context.now)
        raise InvalidInput(no_second_factor(context))
    credentials = await factors.rehash_if_outdated(context, attempt, name, credentials=credentials, password=password)
    moved = machine.with_user(
        loaded.interaction, user_id=user.user_id, user_name=name, credentials=credentials, language=user.language
    )
    if refuses_codes(context.provider.registry.lost_at(), context.now):
        # The code that follows may be refused without the person's fault, and then this would stay counted.
        await throttle.give_back(context, attempt)
        moved = replace(moved, uncounted=True)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, loaded.interaction)
        if not await interactions.claim_request(context, batch, loaded.interaction):
            raise completion.OtherBrowser
        await interactions.save(context, batch, moved)
        await context.provider.registry.audit.write(
            event(context, loaded, user, AuditAction.SIGN_IN_PASSWORD, "ok"), now=context.now
        )
    return replace(loaded, interaction=moved)


def without_second_factor(context: RequestContext, loaded: InteractionContext, user: User | None) -> AuditEvent:
    """Return the audit entry of a correct password without a second factor (D45)."""
    why = "no second factor is left"
    return event(context, loaded, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", reason=why)


def no_second_factor(context: RequestContext) -> Phrase:
    """Return the sentence for a person without a second factor (D45, D69)."""
    if not context.provider.mail.works:
        return phrase(
            "After your password we ask for a second step, such as a code, and your account has none that works here. "
            "Ask the operator of {name} for a link to set one up.",
            name=context.provider.policy.name,
        )
    return phrase(
        "After your password we ask for a second step, such as a code, and your account has none that works here. Ask "
        "your organisation's {name} administrator for a link to set one up.",
        name=context.provider.policy.name,
    )


async def count_email(context: RequestContext, user: User, browser_key: str, *, known: bool) -> None:
    """Count a code that is about to be sent.

    A known browser has an allowance of its own, which a thief of the password alone cannot use up. Raises InvalidInput
    if too many were sent within an hour. Source: D45, D47
    """
    issuer, browser = context.provider.policy.deployment_url, browser_key if known else ""
    if await context.count(namespaces.MAILED_CODES.entry(issuer, user.user_id, browser)) > MAILED_CODES_PER_HOUR:
        raise InvalidInput(phrase("We have sent you too many codes. Wait an hour, then try again."))


class SignInStopped(Exception):
    """Too many wrong codes have just ended this sign-in (D45)."""


async def submit_code(
    context: RequestContext, loaded: InteractionContext, *, code: str, makes_passkeys: bool = False
) -> InteractionContext:
    """Verify the code of the chosen second factor.

    `makes_passkeys` says that the browser can create a passkey. Returns the updated context, with a new cookie value.
    Five wrong codes, of any methods, end the interaction with access_denied. Raises InvalidInput, SignInStopped,
    Throttled (also as Paused), StaleStep, FormHandled, AlreadyCompleted. Source: D34, D45
    """
    pending = await require_password_given(context, loaded, SignInEvent.CODE)
    account, way = pending.account, factors.current_method(loaded.interaction, pending)
    user = account.user
    if way is SecondFactorMethod.PASSKEY:
        raise StaleStep
    try:
        guesses, right = await _try(context, loaded, account, way, code)
    except factors.PerhapsUsed as refused:
        entry = event(
            context, loaded, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", way=way.value, reason=str(refused)
        )
        await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(refused.sentence) from None
    if not right:
        await _miss(context, loaded, user, way, guesses)
        raise InvalidInput(_WRONG_CODE[way])
    shown = sessions.Authentication(account=account, amr=acr.PASSWORD_AND_CODE, way=way, makes_passkeys=makes_passkeys)
    return await sessions.start_session(context, loaded, shown)


async def choose_way(context: RequestContext, loaded: InteractionContext, *, way: str) -> InteractionContext:
    """Switch to another second-factor method.

    For e-mail, a code is sent unless a valid one is still to be typed. Returns the updated context. Raises
    InvalidInput, Paused, StaleStep. Source: D45
    """
    interaction = loaded.interaction
    pending = await require_password_given(context, loaded, SignInEvent.WAY)
    named = next((each for each in pending.ways if each.value == way), None)
    if named is None:
        raise InvalidInput(phrase("Choose one of the options."))
    back = interaction.way is not SecondFactorMethod.EMAIL and factors.under_way(interaction, now=context.now)
    if named is SecondFactorMethod.EMAIL and not back:
        throttle.one_more_guess(context, pending.account.guesses, interaction.factors)
        if interaction.mails >= MAILED_CODES_PER_SIGN_IN:
            raise InvalidInput(
                phrase("We cannot send any more codes in this sign-in. Use the latest one, or cancel and start again.")
            )
        await count_email(context, pending.user, loaded.browser.browser_key, known=loaded.last_entity is not None)
        moved = machine.with_mailed_code(interaction, now=context.now)
        async with context.provider.transient.batch(context.now) as batch:
            await interactions.claim_step(context, batch, interaction)
            await interactions.save(context, batch, moved)
            await context.provider.registry.audit.write(
                event(context, loaded, pending.user, AuditAction.SIGN_IN_MAIL_CODE, "ok"), now=context.now
            )
        # Who knows only the password must not choose the language of what warns the owner.
        language = loaded.picked_language if loaded.last_entity is not None else ""
        why = notifications.signing_in(loaded.client.name, context.provider.policy.name)
        code = factors.code_of(context, interaction.interaction_id, moved, pending.user)
        notifications.mailed_code(context, pending.user, code, why=why, language=language)
    else:
        moved = machine.other_way(interaction, named)
        await interactions.move(context, interaction, moved)
    return replace(loaded, interaction=moved)


async def require_password_given(
    context: RequestContext, loaded: InteractionContext, event: SignInEvent
) -> PendingSecondFactor:
    """Return the person who has typed their password, and nothing else yet.

    Raises InvalidInput for a disabled account. Raises StaleStep if there is no such person, also if no second factor is
    left, which is then audited. Raises Throttled, so that nobody fills the audit log with such entries. Source: D45,
    D47, D50
    """
    if loaded.lacks_second_factor is not None:
        user = loaded.lacks_second_factor
        async with context.provider.transient.batch(context.now) as batch:
            await _throttle(context, batch, loaded, user)
        await context.provider.registry.audit.write(without_second_factor(context, loaded, user), now=context.now)
    loaded.require(context, event)
    if loaded.awaiting_second_factor is None:
        raise StaleStep
    if not loaded.awaiting_second_factor.user.enabled:
        raise InvalidInput(
            phrase("This account can no longer sign in. Ask the operator of {name}.", name=context.provider.policy.name)
        )
    return loaded.awaiting_second_factor


async def _throttle(context: RequestContext, batch: TransientBatch, loaded: InteractionContext, user: User) -> Attempt:
    name, known = names.user_name(user.user_name), loaded.last_entity is not None
    return await throttle.attempt_second_factor(context, batch, name, loaded.browser.browser_key, known=known)


async def _try(
    context: RequestContext, loaded: InteractionContext, account: Account, way: SecondFactorMethod, code: str
) -> tuple[CodeGuesses | None, bool]:
    """Count an attempt, then try it.

    Both are written in one transaction where an engine has one for them. Returns the count of guesses, None for a
    recovery code, which cannot be guessed; and whether the code was right. Raises factors.PerhapsUsed after
    giving both back.
    """
    refused: factors.PerhapsUsed | None = None
    async with context.provider.transient.batch(context.now) as batch:
        if way is not SecondFactorMethod.RECOVERY:
            after = throttle.one_more_guess(context, account.guesses, loaded.interaction.factors)
            await browsers.note_form(context, batch, loaded.cookie, loaded.form)
            attempt = await _throttle(context, batch, loaded, account.user)
            try:
                guesses = await throttle.count_guess(context, account.guesses, after, loaded.interaction.factors)
                return guesses, await _accepts(context, loaded, account, way, code)
            except factors.PerhapsUsed as perhaps:
                # Raised below: an engine that rolls batches back would keep what another one forgets.
                refused = perhaps
                await throttle.give_back_within(context, batch, attempt)
                await throttle.give_guess_back(context, guesses)
            except StoreUnavailable:
                await context.counts.take_back_within(batch)
                raise
        else:
            await browsers.note_form(context, batch, loaded.cookie, loaded.form)
            await throttle.attempt_unguessable(context, batch)
    if refused is not None:
        raise refused
    # In a transaction of its own: the owner is notified at once, so this must not be rolled back afterwards.
    return None, await _accepts(context, loaded, account, way, code)


async def _accepts(
    context: RequestContext, loaded: InteractionContext, account: Account, way: SecondFactorMethod, code: str
) -> bool:
    """Use up a code, if it is right."""
    at, user = loaded.interaction, account.user
    entry = event(context, loaded, user, AuditAction.SIGN_IN_SECOND_FACTOR, "ok", way=way.value)
    try:
        if way is SecondFactorMethod.APP:
            await factors.accept_app(context, account.held.credentials, code, entry)
        elif way is SecondFactorMethod.RECOVERY:
            await factors.accept_recovery(context, user, code, entry)
        else:
            factors.check_emailed_code(context, at.interaction_id, at, user, code)
            await context.provider.registry.audit.write(entry, now=context.now)
    except WrongCode:
        return False
    return True


async def _miss(
    context: RequestContext,
    loaded: InteractionContext,
    user: User,
    way: SecondFactorMethod,
    guesses: CodeGuesses | None,
) -> None:
    """Count and audit a wrong code, and notify the owner.

    A person who gets here has the password, so its owner is notified: once a day, however often it happens. Raises
    SignInStopped after too many.
    """
    of_owner = namespaces.MISSES_OF_OWNER.entry(context.provider.policy.deployment_url, user.user_id)
    events = [event(context, loaded, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", way=way.value)]
    if guesses is not None and guesses.paused_until:
        entry = event(context, loaded, user, AuditAction.SIGN_IN_PAUSE_CODES, "refused")
        events.append(throttle.pause_event(entry, guesses))
    async with context.provider.transient.batch(context.now) as batch:
        too_many = await factors.count_miss(context, batch, loaded.interaction.interaction_id)
        misses = await context.counts.count(batch, of_owner)
        try:
            for each in events:
                await context.provider.registry.audit.write(each, now=context.now)
        except StoreUnavailable:
            await context.counts.take_back_within(batch)
            raise
    if guesses is not None and guesses.paused_until and guesses.told_at == int(context.now):
        notice = notifications.codes_paused(
            guesses.guesses,
            duration=throttle.pause_duration(pause_after(guesses.guesses)),
            known=guesses.browser != throttle.UNKNOWN_BROWSERS,
            recover=context.provider.policy.deployment_url + own_pages.RECOVERY_PATH,
        )
        notifications.notify(context, user, notice)
    elif misses == CODE_MISSES:
        notifications.notify(context, user, notifications.WRONG_CODES)
    if too_many:
        refusal = AccessDenied(Reason.SECOND_FACTOR_FAILED, "the second factor was wrong too often")
        await completion.refuse(context, loaded.interaction, refusal)
        raise SignInStopped


async def submit_entity(context: RequestContext, loaded: InteractionContext, *, entity_id: str) -> InteractionContext:
    """Choose an entity and return the updated context.

    Raises InvalidInput and StaleStep, and the errors of `completion.complete_request` if nothing else remains to be
    asked. Source: D17, D30
    """
    interaction = loaded.interaction
    loaded.require(context, SignInEvent.ENTITY, usable=await find_chosen_entity(context, loaded) is not None)
    if await entity_selection.usable_here(context, interaction.user_id, entity_id, loaded.client) is None:
        raise InvalidInput(phrase("Choose the organisation you act for."))
    after = machine.with_entity(interaction, entity_id)
    if loaded.asks_consent:
        loaded = await with_consent(context, loaded, after)
    return await continue_sign_in(context, loaded, after)


async def submit_consent(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Record the person's consent and return the updated context.

    It may have been given in another tab meanwhile. Raises StaleStep, and the same errors as `submit_entity`. Source:
    D29
    """
    if not loaded.asks_consent:
        raise StaleStep
    loaded.require(context, SignInEvent.CONSENT, usable=await find_chosen_entity(context, loaded) is not None)
    return await continue_sign_in(context, loaded, machine.with_consent_given(loaded.interaction))


async def confirm(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Continue with the existing session and return the updated context.

    Raises the same errors as `submit_consent`. Source: D30
    """
    loaded.require(context, SignInEvent.CONFIRM, usable=await find_chosen_entity(context, loaded) is not None)
    return await continue_sign_in(context, loaded, loaded.interaction)


async def continue_sign_in(
    context: RequestContext, loaded: InteractionContext, after: Interaction, *, usable: bool = True
) -> InteractionContext:
    """Store a step, and finish the sign-in if nothing else remains.

    `usable` is as in `rules.authentication.sign_in.state`. The entity is then remembered for the next time. If single
    sign-on is off, the session that the factors began ends; another tab is independent of it. Raises StaleStep if the
    session has ended since it was loaded. Source: D15, D17, D30
    """
    before = loaded.interaction
    if loaded.state_of(context, after, usable=usable) is not SignInState.CONFIRM:
        await interactions.move(context, before, after)
        return replace(loaded, interaction=after)
    finished = await completion.conclude_sign_in(context, loaded.client, before, after)
    used = await _session_used(context, loaded)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, before)
        lives = used is None or await sessions.use(context, used, entity_id=finished.entity_id) is not None
        if not lives or not await sessions.end_with_sign_in(context, _made(loaded)):
            # Somebody has signed out since the sign-in was loaded: the next request finds that.
            await interactions.release_step(context, batch, before)
            raise StaleStep
        await completion.complete_request(context, batch, before)
        await completion.write_outcome(context, batch, finished)
        if finished.consented and finished.outcome is InteractionOutcome.CODE:
            await consents.give(context, loaded.client, finished)
        await interactions.save(context, batch, finished)
        if finished.user_name and finished.outcome is InteractionOutcome.CODE:
            name, browser_key = finished.user_name, loaded.browser.browser_key
            await throttle.remember(context, batch, name, browser_key, finished.entity_id, user_id=finished.user_id)
    return replace(loaded, interaction=finished)


async def _session_used(context: RequestContext, loaded: InteractionContext) -> Session | None:
    """Return the browser's session for single sign-on.

    It was loaded with the interaction, unless it is another one.
    """
    session = loaded.session
    if session is not None and loaded.browser.session_id == session.session_id:
        return browsers.of_browser(context, loaded.browser, session)
    return await browsers.load_session(context, loaded.browser)


def _made(loaded: InteractionContext) -> Session | None:
    """Return the live session that this sign-in began, if any."""
    made = loaded.session
    return made if made is not None and made.session_id == loaded.interaction.made_session_id else None


async def start_over(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Sign the person out of this interaction; return the updated context.

    Another account can then be used. If one person had to sign in again, it becomes a plain sign-in to the same pages.
    Raises StaleStep. Source: D30, D54
    """
    loaded.require(context, SignInEvent.OTHER_ACCOUNT)
    forgotten = machine.without_user(loaded.interaction)
    if loaded.interaction.renewed_session_id:
        forgotten = replace(forgotten, request=own_pages.plain(forgotten.request))
    await interactions.move(context, loaded.interaction, forgotten)
    await sessions.end_with_sign_in(context, _made(loaded))
    return replace(loaded, interaction=forgotten)


async def extend(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Extend the sign-in, as often as `rules.limits` allows.

    Returns the updated context. Raises InvalidInput and StaleStep. Source: D15
    """
    if not machine.extendable(loaded.interaction):
        raise InvalidInput(phrase("You cannot get more time for this sign-in."))
    loaded.require(context, SignInEvent.EXTEND)
    extended = machine.with_more_time(loaded.interaction, now=context.now)
    await interactions.move(context, loaded.interaction, extended)
    return replace(loaded, interaction=extended)


async def cancel(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Finish with access_denied at the person's request; return the updated context.

    Raises StaleStep, OtherBrowser, AlreadyCompleted. Source: D15, D17
    """
    interaction = loaded.interaction
    loaded.require(context, SignInEvent.CANCEL)
    nothing = interaction.signed_in and not await entity_selection.any_usable(
        context, interaction.user_id, loaded.client
    )
    refused = await completion.refuse(context, interaction, AccessDenied(*(_NO_ENTITY if nothing else _CANCELLED)))
    await sessions.end_with_sign_in(context, _made(loaded))
    return replace(loaded, interaction=refused)
