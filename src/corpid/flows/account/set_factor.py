"""Setting factors in an enrolment, in one write (D44, D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import notifications
from corpid.flows.account import enrolments, links
from corpid.flows.account.enrolments import NotHere
from corpid.flows.account.links import Step
from corpid.flows.authentication import passkeys, password_checks, session_start, throttle
from corpid.flows.authentication.interactions import StaleStep
from corpid.flows.authentication.sign_in import Rejected
from corpid.ports import FactorChange
from corpid.rules.authentication import person_factors, totp
from corpid.rules.authentication.password_rules import PasswordRefused
from corpid.rules.authentication.records import Passkey
from corpid.rules.directory import names
from corpid.rules.directory.access import Object, Person, authorise
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.account.enrolments import Enrolment, EnrolmentVisit
    from corpid.flows.request_context import RequestContext
    from corpid.ports import AuditEvent
    from corpid.rules.authentication.records import Credentials

_APP_SET_UP: Final = phrase("A new authenticator app was set up for your account.")
_BY_EMAIL: Final = phrase("Codes by e-mail were set up for your account.")
_PASSKEY_SET_UP: Final = phrase("A new passkey was set up for your account.")


async def submit_password(context: RequestContext, visit: EnrolmentVisit, *, password: str) -> Enrolment:
    """Accept a new password, written at the end.

    Raises Rejected, Throttled, PasswordsBusy and StaleStep (D44, D47).
    """
    enrolment, user = visit.enrolment, visit.user
    step = enrolment.step
    if step not in {Step.FIRST, Step.PASSWORD}:
        raise StaleStep
    attempt = await throttle.change(context, enrolment.link_hash)
    try:
        password_hash = await password_checks.chosen(context, attempt, user, password)
    except PasswordRefused as refusal:
        raise Rejected(refusal.sentence) from None
    return await enrolments.move(context, enrolment, step, password_hash=password_hash)


async def submit_app(context: RequestContext, visit: EnrolmentVisit, *, code: str) -> Enrolment:
    """Accept a new app by its first code.

    Raises Rejected and StaleStep. Source: D45
    """
    enrolment = visit.enrolment
    if enrolment.step is not Step.SECOND_FACTOR:
        raise StaleStep
    try:
        step = totp.matching_step(enrolments.app_secret(context, enrolment), code, context.now)
    except totp.WrongCode:
        raise Rejected(
            phrase("This code is not right. Check that the app shows this account, then type its newest code.")
        ) from None
    return await enrolments.move(context, enrolment, Step.SECOND_FACTOR, app_step=step)


async def submit_codes(context: RequestContext, visit: EnrolmentVisit, *, kept: str) -> Enrolment:
    """Accept that the person has saved the recovery codes.

    `kept` is the form's field, not empty. Raises Rejected and StaleStep. Source: D45
    """
    if visit.enrolment.step is not Step.RECOVERY_CODES:
        raise StaleStep
    if not kept:
        raise Rejected(phrase("Keep the codes first, then say that you have done so."))
    return await enrolments.move(context, visit.enrolment, Step.RECOVERY_CODES)


async def passkey_options(context: RequestContext, visit: EnrolmentVisit) -> str:
    """The WebAuthn creation options (JSON) of a new passkey.

    Empty if passkeys do not work (D46).
    """
    return await passkeys.registration_options(context, visit.user, visit.enrolment.enrolment_id)


async def submit_passkey(context: RequestContext, visit: EnrolmentVisit, *, passkey: str) -> Enrolment:
    """Accept a new passkey, the browser's JSON, written at the end.

    Raises Rejected and StaleStep (WebAuthn §7.1, D46).
    """
    enrolment = visit.enrolment
    step = enrolment.step
    if step not in {Step.FIRST, Step.SECOND_FACTOR}:
        raise StaleStep
    made = await passkeys.newly_made(context, enrolment.enrolment_id, answer=passkey)
    name = passkeys.given(context)
    made_now = Passkey(
        user_id=enrolment.user_id, name=name, created_at=int(context.now), **msgspec.structs.asdict(made)
    )
    first = step is Step.FIRST
    return await enrolments.move(context, enrolment, step, passkey=made_now, passkey_first=first)


async def passkeys_from_before(context: RequestContext, visit: EnrolmentVisit) -> list[Passkey]:
    """The person's passkeys from before this enrolment.

    They are listed because a lost device may hold one. Source: D46
    """
    made = visit.enrolment.passkey
    found = await context.provider.registry.factors.passkeys(visit.user.user_id)
    return [each for each in found if made is None or each.credential_id != made.credential_id]


async def finish(context: RequestContext, visit: EnrolmentVisit) -> None:
    """Write everything, spend the link, end every session, and notify the person.

    Raises NotHere and StaleStep.

    Source: D44, D45, D46, D47, DESIGN, Security
    """
    enrolment, user = visit.enrolment, visit.user
    if enrolment.step is not None or enrolment.finished:
        raise StaleStep
    before = await context.provider.registry.factors.credentials(user.user_id)
    link = await context.provider.registry.factors.link(enrolment.link_hash)
    if link is None or not links.opens(link, before, now=context.now):
        raise NotHere
    after, actor = _set(context, enrolment, before), Person(user_id=enrolment.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=enrolment.user_id))
    keeps_codes = Step.RECOVERY_CODES in enrolment.done
    hashes = tuple(person_factors.hashed(enrolment.user_id, code) for code in enrolments.codes(context, enrolment))
    change = FactorChange(
        before=before,
        after=after,
        add_passkey=enrolment.passkey,
        recovery_codes=hashes if keeps_codes else None,
        spend_link=enrolment.link_hash,
        end_sessions_but="",
    )
    if not await context.provider.registry.factors.change(change, _event(context, enrolment, actor)):
        raise NotHere
    notifications.notify(context, user, links.PURPOSES[enrolment.purpose].notice or _made(enrolment))
    finished = msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, finished=True, password_hash="")
    async with context.provider.transient.unit(context.now) as unit:
        await enrolments.save(context, unit, finished)
        if links.PURPOSES[enrolment.purpose].begins:
            await session_start.expect_first_sign_in(context, unit, user.user_id)
        await throttle.unlock(unit, context.provider.policy.deployment_url, names.user_name(user.user_name))
        await context.provider.registry.code_guesses.forget_all(user.user_id)


def _made(enrolment: Enrolment) -> notifications.Notice:
    if enrolment.passkey:
        return notifications.second_factor_set_anew(_PASSKEY_SET_UP)
    return notifications.second_factor_set_anew(_BY_EMAIL if enrolment.by_email else _APP_SET_UP)


def _set(context: RequestContext, enrolment: Enrolment, before: Credentials) -> Credentials:
    after = before
    if enrolment.password_hash:
        after = after.with_password(enrolment.password_hash, "user")
    if enrolment.app_step:
        after = after.with_app(enrolments.app_secret(context, enrolment), "user", step=enrolment.app_step)
    elif links.PURPOSES[enrolment.purpose].drops_app:
        after = after.without_app("user")
    return after


def _event(context: RequestContext, enrolment: Enrolment, actor: Person) -> AuditEvent:
    new = {
        "password": enrolment.password_hash,
        "app": enrolment.app_step,
        "email": enrolment.by_email,
        "passkey": enrolment.passkey,
    }
    done = " ".join(name for name, value in new.items() if value)
    return context.event(actor, links.PURPOSES[enrolment.purpose].used, subject=enrolment.user_id, set=done)
