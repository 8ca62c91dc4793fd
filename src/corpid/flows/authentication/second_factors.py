"""Second factors: codes by app, by e-mail and for recovery (D45)."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import (
    browsers,
    code_guesses,
    completion,
    interactions,
    own_pages,
    second_factor_methods,
    session_start,
    throttle,
)
from corpid.flows.authentication.sign_in import InvalidInput, event, without_second_factor
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import records, totp
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.sign_in import SecondFactorMethod, SignInEvent, StaleStep
from corpid.rules.authentication.throttling import pause_after
from corpid.rules.authentication.totp import DIGITS, WrongCode
from corpid.rules.directory import names
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CODE_MISSES, MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN
from corpid.rules.oauth import acr
from corpid.rules.oauth.errors import AccessDenied
from corpid.rules.oauth.refusals import Reason
from corpid.rules.typed_text import typed_code
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.authentication.second_factor_methods import Mailed, PendingSecondFactor
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.notifications import Notice
    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.records import Account, User
    from corpid.stores.transient import TransientBatch
    from corpid.texts import Phrase


class PerhapsUsed(Exception):
    """A right code that may have been used before data was lost.

    Its refusal is CorpID's own and counts nowhere; `seconds` until the app shows one that works. Source: D45, D67
    """

    def __init__(self, seconds: int) -> None:
        super().__init__("the code may have been used before a loss of data")
        self.seconds = seconds

    @property
    def sentence(self) -> Phrase:
        """The explanation for the person."""
        return counted(
            self.seconds,
            "This site was interrupted, so this code is not accepted any more. Wait {count} second, then enter the next "
            "code from your app.",
            "This site was interrupted, so this code is not accepted any more. Wait {count} seconds, then enter the next "
            "code from your app.",
        )


async def accept_app(context: RequestContext, credentials: Credentials, code: str, entry: AuditEvent) -> None:
    """Use up a code of the person's app.

    `entry` is for the audit log. Raises WrongCode and PerhapsUsed. Source: D45, D67
    """
    if not credentials.totp_secret:
        raise WrongCode("there is no app")
    step = totp.matching_step(credentials.totp_secret, code, context.now)
    registry = context.provider.registry
    if not await registry.factors.raise_totp_step(credentials.user_id, step, entry):
        if seconds := totp.wait_after_loss(step, registry.lost_at(), context.now):
            raise PerhapsUsed(seconds)
        raise WrongCode("this code was used before")


async def accept_recovery(context: RequestContext, user: User, code: str, entry: AuditEvent) -> None:
    """Use up one of the person's recovery codes and notify them.

    `entry` is for the audit log. Raises WrongCode. Source: D45
    """
    code_hash = records.recovery_code_hash(user.user_id, code)
    if not await context.provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await context.provider.registry.factors.recovery_codes_left(user.user_id)
    notifications.notify(context, user, notifications.code_used(left))


async def count_miss(context: RequestContext, batch: TransientBatch, name: str) -> bool:
    """Count a wrong code; return whether it was one too many.

    `name` is an interaction or an enrolment. Source: D45
    """
    misses = namespaces.SECOND_FACTOR_MISSES.entry(context.provider.policy.base_url, name)
    return await context.counts.count(batch, misses) >= CODE_MISSES


async def send_code(context: RequestContext, visit: InteractionContext, user: User) -> Interaction:
    """Send a code, which invalidates the previous one.

    In a browser known for the person the e-mail is in the language that they picked, else in their account's. Returns
    the updated interaction. Raises StaleStep, and InvalidInput if too many codes were sent. Source: D45
    """
    interaction = visit.interaction
    if interaction.mails >= MAILED_CODES_PER_SIGN_IN:
        raise InvalidInput(
            phrase("We cannot send any more codes in this sign-in. Use the latest one, or cancel and start again.")
        )
    await count_email(context, user, visit.browser.browser_key, known=visit.last_entity is not None)
    moved = machine.with_mailed_code(interaction, now=context.now)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, interaction)
        await interactions.save(context, batch, moved)
        await context.provider.registry.audit.write(
            event(context, visit, user, AuditAction.SIGN_IN_MAIL_CODE, "ok"), now=context.now
        )
    # Who knows only the password must not choose the language of what warns the owner.
    language = visit.picked_language if visit.last_entity is not None else ""
    why = notifications.signing_in(visit.client.name, context.provider.policy.name)
    code = code_of(context, interaction.interaction_id, moved, user)
    notifications.mailed_code(context, user, code, why=why, language=language)
    return moved


async def count_email(context: RequestContext, user: User, browser_key: str, *, known: bool) -> None:
    """Count a code that is about to be sent.

    A known browser has an allowance of its own, which a thief of the password alone cannot use up. Raises InvalidInput
    if too many were sent within an hour. Source: D45, D47
    """
    issuer, browser = context.provider.policy.deployment_url, browser_key if known else ""
    async with context.provider.transient.batch(context.now) as batch:
        sent = await context.counts.count(batch, namespaces.MAILED_CODES.entry(issuer, user.user_id, browser))
    if sent > MAILED_CODES_PER_HOUR:
        raise InvalidInput(phrase("We have sent you too many codes. Wait an hour, then try again."))


def code_of(context: RequestContext, name: str, mailed: Mailed, user: User) -> str:
    """Return the six digits that were sent last for `name`.

    `name` is the unguessable id of a sign-in or an enrolment. Source: D45
    """
    return digits_of(context.keys.mac("email-code", name, user.user_id, user.email, str(mailed.mails)))


def digits_of(mac: str) -> str:
    """Return the six digits that a MAC of the server stands for (D45)."""
    number = int.from_bytes(sha256(mac.encode()).digest())
    return f"{number % 10**DIGITS:0{DIGITS}}"


def is_code(typed: str, code: str) -> bool:
    """Return whether a code was typed, compared in constant time. Source: D45, D75"""
    return hmac.compare_digest(typed_code(typed).encode(), code.encode())


def check_emailed_code(context: RequestContext, name: str, mailed: Mailed, user: User, code: str) -> None:
    """Check that this code was sent last, within ten minutes.

    Raises WrongCode. Source: D45
    """
    right = is_code(code, code_of(context, name, mailed, user))
    if not right or not second_factor_methods.under_way(mailed, now=context.now):
        raise WrongCode("this code was not sent, or has ended")


_WRONG: Final[Mapping[SecondFactorMethod, Phrase]] = {
    SecondFactorMethod.APP: phrase("This code is not right. Wait for the next one in your app, then enter it."),
    SecondFactorMethod.EMAIL: phrase(
        "This code is not right. Enter the one from the latest e-mail, or send a new one."
    ),
    SecondFactorMethod.RECOVERY: phrase(
        "This recovery code is not right, or was already used. Check it, or enter another one."
    ),
}


class SignInStopped(Exception):
    """Too many wrong codes have just ended this sign-in (D45)."""


async def submit_code(
    context: RequestContext, visit: InteractionContext, *, code: str, makes_passkeys: bool = False
) -> InteractionContext:
    """Verify the code of the chosen second factor.

    `makes_passkeys` says that the browser can create a passkey. Returns the updated visit, with a new cookie value.
    Five wrong codes, of any methods, end the interaction with access_denied. Raises InvalidInput, SignInStopped,
    Throttled (also as Paused), StaleStep, FormHandled, AlreadyCompleted. Source: D34, D45
    """
    pending = await require_password_given(context, visit, SignInEvent.CODE)
    account, way = pending.account, second_factor_methods.current_method(visit.interaction, pending)
    user = account.user
    if way is SecondFactorMethod.PASSKEY:
        raise StaleStep
    try:
        guesses, right = await _try(context, visit, account, way, code)
    except PerhapsUsed as refused:
        entry = event(
            context, visit, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", way=way.value, reason=str(refused)
        )
        await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(refused.sentence) from None
    if not right:
        await _miss(context, visit, user, way, guesses)
        raise InvalidInput(_WRONG[way])
    shown = session_start.Authentication(
        account=account, amr=acr.PASSWORD_AND_CODE, way=way, makes_passkeys=makes_passkeys
    )
    return await session_start.complete(context, visit, shown)


async def choose_way(context: RequestContext, visit: InteractionContext, *, way: str) -> InteractionContext:
    """Switch to another second-factor method.

    For e-mail, a code is sent unless a valid one is still to be typed. Returns the updated visit. Raises InvalidInput,
    Paused, StaleStep. Source: D45
    """
    interaction = visit.interaction
    pending = await require_password_given(context, visit, SignInEvent.WAY)
    named = next((each for each in pending.ways if each.value == way), None)
    if named is None:
        raise InvalidInput(phrase("Choose one of the options."))
    back = interaction.way is not SecondFactorMethod.EMAIL and second_factor_methods.under_way(
        interaction, now=context.now
    )
    if named is SecondFactorMethod.EMAIL and not back:
        code_guesses.one_more_guess(context, pending.account.guesses, interaction.factors)
        moved = await send_code(context, visit, pending.user)
    else:
        moved = machine.other_way(interaction, named)
        await interactions.move(context, interaction, moved)
    return replace(visit, interaction=moved)


async def require_password_given(
    context: RequestContext, visit: InteractionContext, event: SignInEvent
) -> PendingSecondFactor:
    """Return the person who has typed their password, and nothing else yet.

    Raises InvalidInput for a disabled account. Raises StaleStep if there is no such person, also if no second factor is
    left, which is then audited. Raises Throttled, so that nobody fills the audit log with such entries. Source: D45,
    D47, D50
    """
    if visit.lacks_second_factor is not None:
        user = visit.lacks_second_factor
        async with context.provider.transient.batch(context.now) as batch:
            await _throttle(context, batch, visit, user)
        await context.provider.registry.audit.write(without_second_factor(context, visit, user), now=context.now)
    visit.require(context, event)
    if visit.awaiting_second_factor is None:
        raise StaleStep
    if not visit.awaiting_second_factor.user.enabled:
        raise InvalidInput(
            phrase(
                "This account can no longer sign in. Ask the operator of {name}.",
                name=context.provider.policy.name,
            )
        )
    return visit.awaiting_second_factor


async def _throttle(context: RequestContext, batch: TransientBatch, visit: InteractionContext, user: User) -> Attempt:
    name, known = names.user_name(user.user_name), visit.last_entity is not None
    return await throttle.attempt_second_factor(context, batch, name, visit.browser.browser_key, known=known)


async def _try(
    context: RequestContext, visit: InteractionContext, account: Account, way: SecondFactorMethod, code: str
) -> tuple[CodeGuesses | None, bool]:
    """Count an attempt, then try it.

    Both are written in one transaction where an engine has one for them. Returns the count of guesses, None for a
    recovery code, which cannot be guessed; and whether the code was right. Raises PerhapsUsed after giving both back.
    """
    refused: PerhapsUsed | None = None
    async with context.provider.transient.batch(context.now) as batch:
        if way is not SecondFactorMethod.RECOVERY:
            after = code_guesses.one_more_guess(context, account.guesses, visit.interaction.factors)
            await browsers.note_form(context, batch, visit.cookie, visit.form)
            attempt = await _throttle(context, batch, visit, account.user)
            try:
                guesses = await code_guesses.count(context, account.guesses, after, visit.interaction.factors)
                return guesses, await _accepts(context, visit, account, way, code)
            except PerhapsUsed as perhaps:
                # Raised below: an engine that rolls batches back would keep what another one forgets.
                refused = perhaps
                await throttle.give_back_within(context, batch, attempt)
                await code_guesses.give_back(context, guesses)
            except StoreUnavailable:
                await context.counts.take_back_within(batch)
                raise
        else:
            await browsers.note_form(context, batch, visit.cookie, visit.form)
            await throttle.attempt_unguessable(context, batch)
    if refused is not None:
        raise refused
    # In a transaction of its own: the owner is notified at once, so this must not be rolled back afterwards.
    return None, await _accepts(context, visit, account, way, code)


async def _accepts(
    context: RequestContext, visit: InteractionContext, account: Account, way: SecondFactorMethod, code: str
) -> bool:
    """Use up a code, if it is right."""
    at, user = visit.interaction, account.user
    entry = event(context, visit, user, AuditAction.SIGN_IN_SECOND_FACTOR, "ok", way=way.value)
    try:
        if way is SecondFactorMethod.APP:
            await accept_app(context, account.held.credentials, code, entry)
        elif way is SecondFactorMethod.RECOVERY:
            await accept_recovery(context, user, code, entry)
        else:
            check_emailed_code(context, at.interaction_id, at, user, code)
            await context.provider.registry.audit.write(entry, now=context.now)
    except WrongCode:
        return False
    return True


async def _miss(
    context: RequestContext, visit: InteractionContext, user: User, way: SecondFactorMethod, guesses: CodeGuesses | None
) -> None:
    """Count and audit a wrong code, and notify the owner.

    A person who gets here has the password, so its owner is notified: once a day, however often it happens. Raises
    SignInStopped after too many.
    """
    of_owner = namespaces.MISSES_OF_OWNER.entry(context.provider.policy.deployment_url, user.user_id)
    events = [event(context, visit, user, AuditAction.SIGN_IN_SECOND_FACTOR, "refused", way=way.value)]
    if guesses is not None and guesses.paused_until:
        entry = event(context, visit, user, AuditAction.SIGN_IN_PAUSE_CODES, "refused")
        events.append(code_guesses.pause_event(entry, guesses))
    async with context.provider.transient.batch(context.now) as batch:
        too_many = await count_miss(context, batch, visit.interaction.interaction_id)
        misses = await context.counts.count(batch, of_owner)
        try:
            for each in events:
                await context.provider.registry.audit.write(each, now=context.now)
        except StoreUnavailable:
            await context.counts.take_back_within(batch)
            raise
    if guesses is not None and guesses.paused_until and guesses.told_at == int(context.now):
        notifications.notify(context, user, _paused(context, guesses))
    elif misses == CODE_MISSES:
        notifications.notify(context, user, notifications.WRONG_CODES)
    if too_many:
        refusal = AccessDenied(Reason.SECOND_FACTOR_FAILED, "the second factor was wrong too often")
        await completion.refuse(context, visit.interaction, refusal)
        raise SignInStopped


def _paused(context: RequestContext, guesses: CodeGuesses) -> Notice:
    return notifications.codes_paused(
        guesses.guesses,
        duration=code_guesses.duration(pause_after(guesses.guesses)),
        known=guesses.browser != code_guesses.UNKNOWN,
        recover=context.provider.policy.deployment_url + own_pages.RECOVERY_PATH,
    )
