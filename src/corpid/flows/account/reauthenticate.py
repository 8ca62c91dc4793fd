"""Re-authentication with the remaining factor, before another is set (D44-D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account import enrolments
from corpid.flows.account.links import EnrolmentStep
from corpid.flows.authentication import (
    code_guesses,
    passkeys,
    password_checks,
    second_factor_methods,
    second_factors,
    sent_forms,
    throttle,
)
from corpid.flows.authentication.sign_in import WRONG_PASSWORD, InvalidInput
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.passkeys import PasskeyRefused
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.authentication.totp import WrongCode
from corpid.rules.directory import names
from corpid.rules.directory.actors import Person
from corpid.rules.typed_text import typed_code
from corpid.texts import phrase

if TYPE_CHECKING:
    from typing import Literal

    from corpid.flows.account.enrolments import Enrolment, EnrolmentContext
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.records import User

_PURPOSE: Final = "enrolment-proof"


async def submit_password(context: RequestContext, visit: EnrolmentContext, *, password: str) -> Enrolment:
    """Verify the person's password.

    Raises InvalidInput, Repeated, Throttled, PasswordsBusy and StaleStep (D44, D47, D73).
    """
    enrolment, user = _at(visit, EnrolmentStep.PROVE_PASSWORD), visit.user
    counted = await attempt(context, visit)
    await sent_forms.refuse_repeated(context, visit.sent)
    known = await context.provider.registry.factors.credentials(user.user_id)
    name, stored = names.user_name(user.user_name), known.password_hash
    if not await password_checks.fits(context, counted, name, password_hash=stored, password=password):
        if await sent_forms.counts(context, visit.sent):
            await context.provider.registry.audit.write(
                event(context, user, AuditAction.ENROLMENT_PASSWORD, "refused"), now=context.now
            )
        raise InvalidInput(WRONG_PASSWORD)
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_PASSWORD)


async def attempt(context: RequestContext, visit: EnrolmentContext) -> Attempt:
    """Count an attempt with the link, and note it with the form.

    Raises Throttled. Source: D47, D73
    """
    counted = await throttle.attempt_with_link(context, visit.enrolment.link_hash)
    if visit.sent is not None:
        visit.sent.attempt = counted
    return counted


async def submit_code(context: RequestContext, visit: EnrolmentContext, *, code: str) -> Enrolment:
    """Verify an app code, or spend a recovery code.

    Five misses end the enrolment. Raises InvalidInput, Repeated, EnrolmentStopped, Throttled (also as Paused) and
    StaleStep. Source: D45, D47, D73
    """
    enrolment, user = _at(visit, EnrolmentStep.PROVE_SECOND_FACTOR), visit.user
    known = await context.provider.registry.factors.credentials(user.user_id)
    by_app, guesses = bool(known.totp_secret) and typed_code(code).isdecimal(), None
    if by_app:
        seen = await code_guesses.of_links(context, user.user_id)
        if seen.guesses:
            # Tried again it would be another guess, since the app's code changes.
            await sent_forms.refuse_repeated(context, visit.sent)
        counted, guesses = await code_guesses.attempt_with_link(context, seen, known, enrolment.link_hash)
        if visit.sent is not None:
            visit.sent.attempt = counted
    else:
        await attempt(context, visit)
    entry = event(context, user, AuditAction.ENROLMENT_SECOND_FACTOR, "ok")
    try:
        if by_app:
            await second_factors.accept_app(context, known, code, entry)
        else:
            await second_factors.accept_recovery(context, user, code, entry)
    except second_factors.PerhapsUsed as refused:
        entry = event(context, user, AuditAction.ENROLMENT_SECOND_FACTOR, "refused", reason=str(refused))
        await context.counts.take_back(context.provider.transient, now=context.now)
        await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(refused.sentence) from None
    except WrongCode:
        await miss(context, visit, guesses)
        raise InvalidInput(
            phrase(
                "This code is not right, or was already used. Enter the latest code from your app, or a recovery code."
            )
        ) from None
    await context.provider.registry.code_guesses.forget(user.user_id, code_guesses.LINK)
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_SECOND_FACTOR)


async def miss(context: RequestContext, visit: EnrolmentContext, guesses: CodeGuesses | None = None) -> None:
    """Count a wrong code, unless it came in the same bytes before.

    Raises EnrolmentStopped at the fifth, which ends the enrolment. Source: D45, D73
    """
    enrolment = visit.enrolment
    if not await sent_forms.counts(context, visit.sent):
        if guesses is not None:
            await code_guesses.give_back(context, guesses)
        return
    async with context.provider.transient.batch(context.now) as batch:
        last = await second_factors.count_miss(context, batch, enrolment.enrolment_id)
        if last:
            await enrolments.stop(context, batch, enrolment)
        await context.provider.registry.audit.write(
            event(context, visit.user, AuditAction.ENROLMENT_SECOND_FACTOR, "refused"), now=context.now
        )
        if guesses is not None and guesses.paused_until:
            entry = code_guesses.pause_event(
                event(context, visit.user, AuditAction.ENROLMENT_PAUSE_CODES, "refused"), guesses
            )
            await context.provider.registry.audit.write(entry, now=context.now)
    if last:
        raise enrolments.EnrolmentStopped


async def has_codes(context: RequestContext, user: User) -> bool:
    """Return whether this person has an app or recovery codes.

    Then a code can be asked for. Source: D45
    """
    return (await second_factor_methods.held_factors(context.provider.registry, user.user_id)).typed_code


async def passkey_options(context: RequestContext, visit: EnrolmentContext) -> str:
    """The WebAuthn request options (JSON) of the person's passkeys.

    Empty if none of them works here (D46).
    """
    own = await context.provider.registry.factors.passkeys(visit.user.user_id)
    if not own:
        return ""
    subject = visit.enrolment.enrolment_id
    return passkeys.authentication_options(context, _PURPOSE, subject, allowed=own)


async def submit_passkey(context: RequestContext, visit: EnrolmentContext, *, passkey: str) -> Enrolment:
    """Verify one of the person's own passkeys.

    Raises InvalidInput, Throttled and StaleStep (WebAuthn §7.2, D46).
    """
    enrolment, user = _at(visit, EnrolmentStep.PROVE_SECOND_FACTOR), visit.user
    async with context.provider.transient.batch(context.now) as batch:
        await throttle.attempt_unguessable(context, batch)
    try:
        await passkeys.verify_claim(
            context,
            await passkeys.read_claim(context, passkey),
            purpose=_PURPOSE,
            subject=enrolment.enrolment_id,
            entry_of=lambda owner: event(context, owner, AuditAction.ENROLMENT_PASSKEY, "ok"),
            only=user.user_id,
        )
    except PasskeyRefused as refusal:
        entry = event(context, user, AuditAction.ENROLMENT_PASSKEY, "refused", reason=passkeys.reason(refusal))
        if await sent_forms.counts(context, visit.sent):
            await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(phrase("This passkey was not accepted. Use another passkey or a code.")) from None
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_SECOND_FACTOR)


def _at(visit: EnrolmentContext, step: EnrolmentStep) -> Enrolment:
    if visit.enrolment.step is not step:
        raise StaleStep
    return visit.enrolment


def event(
    context: RequestContext, user: User, action: AuditAction, outcome: Literal["ok", "refused"], *, reason: str = ""
) -> AuditEvent:
    """The audit event of a factor verified in an enrolment."""
    actor = Person(user_id=user.user_id)
    return context.event(actor, action, subject=user.user_id, outcome=outcome, reason=reason)
