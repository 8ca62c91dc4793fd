"""Showing the factor that one still has, before the other one is set anew (D44, D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.directory.records import Credentials
from corpid.flows import kinds, notices, passkey_challenges, passkey_sign_in, throttle
from corpid.flows.enrolment import enrolments
from corpid.flows.enrolment.steps import Step
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.ports import AuditEvent
from corpid.protocol import passkeys, recovery_codes, totp
from corpid.protocol.limits import TOTP_MISSES
from corpid.protocol.passkeys import PasskeyRefused
from corpid.protocol.totp import WrongCode
from corpid.texts import phrase

if TYPE_CHECKING:
    from typing import Literal

    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, Sitting
    from corpid.flows.provider import Provider

_PURPOSE: Final = "enrolment-proof"


async def submit_password(provider: Provider, caller: Caller, sitting: Sitting, *, password: str) -> Enrolment:
    """The password that the person has. Raises Rejected, Throttled, PasswordsBusy and StaleStep (D44, D47)."""
    enrolment, user = _at(sitting, Step.PROVE_PASSWORD), sitting.user
    await throttle.attempt_with_link(provider, caller, enrolment.link_hash)
    known = await provider.registry.directory.credentials(user.user_id)
    if not await provider.passwords.verify(known.password_hash if known else None, password):
        await provider.registry.audit.write(_event(caller, user, "password", "refused"), now=caller.now)
        raise Rejected(phrase("The password is not right. Check it and try again."))
    return await enrolments.move(provider, caller, enrolment, Step.PROVE_PASSWORD)


async def submit_code(provider: Provider, caller: Caller, sitting: Sitting, *, code: str) -> Enrolment:
    """A code of the person's app, or one of their recovery codes, which is spent.

    Five misses end the enrolment. Raises Rejected, Stopped, Throttled and StaleStep. Source: D45, D47
    """
    enrolment, user = _at(sitting, Step.PROVE_SECOND_FACTOR), sitting.user
    await throttle.attempt_with_link(provider, caller, enrolment.link_hash)
    known = await provider.registry.directory.credentials(user.user_id) or Credentials(user_id=user.user_id)
    try:
        await _accept(provider, caller, user, known, code)
    except WrongCode:
        await _miss(provider, caller, sitting)
        raise Rejected(
            phrase("This code is not right, or was used before. Type the newest one of your app, or a recovery code.")
        ) from None
    return await enrolments.move(provider, caller, enrolment, Step.PROVE_SECOND_FACTOR)


async def _accept(provider: Provider, caller: Caller, user: User, known: Credentials, code: str) -> None:
    entry = _event(caller, user, "second_factor", "ok")
    if known.totp_secret and "".join(code.split()).isdecimal():
        step = totp.matching_step(known.totp_secret, code, caller.now)
        if not await provider.registry.directory.raise_totp_step(user.user_id, step, entry):
            raise WrongCode("this code was used before")
        return
    code_hash = recovery_codes.hashed(user.user_id, code)
    if not await provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await provider.registry.factors.recovery_codes_left(user.user_id)
    notices.recovery_code_used(provider, user, left=left)


async def _miss(provider: Provider, caller: Caller, sitting: Sitting) -> None:
    enrolment = sitting.enrolment
    key = kinds.key(kinds.SECOND_FACTOR_MISSES, provider.policy.base_url, enrolment.enrolment_id)
    async with provider.transient.unit(caller.now) as unit:
        misses = await unit.count(kinds.SECOND_FACTOR_MISSES.name, key, kinds.SECOND_FACTOR_MISSES.seconds)
        if misses >= TOTP_MISSES:
            await enrolments.stop(provider, unit, enrolment)
        await provider.registry.audit.write(_event(caller, sitting.user, "second_factor", "refused"), now=caller.now)
    if misses >= TOTP_MISSES:
        raise enrolments.Stopped


async def has_codes(provider: Provider, user: User) -> bool:
    """Whether this person has an app or recovery codes, so that a code can be asked for (D45)."""
    known = await provider.registry.directory.credentials(user.user_id)
    if known is not None and known.totp_secret:
        return True
    return await provider.registry.factors.recovery_codes_left(user.user_id) > 0


async def passkey_options(provider: Provider, sitting: Sitting) -> str:
    """The JSON that a page gives the browser to show a passkey; empty where the person has none that works here (D46)."""
    if not passkey_sign_in.offered(provider) or not await provider.registry.factors.passkeys(sitting.user.user_id):
        return ""
    challenge = passkey_challenges.make(provider, _PURPOSE, sitting.enrolment.enrolment_id)
    return passkeys.authentication_options(passkey_sign_in.party(provider), challenge=challenge)


async def submit_passkey(provider: Provider, caller: Caller, sitting: Sitting, *, answer: str) -> Enrolment:
    """One of the person's own passkeys. Raises Rejected, Throttled and StaleStep (WebAuthn §7.2, D46)."""
    enrolment, user = _at(sitting, Step.PROVE_SECOND_FACTOR), sitting.user
    await throttle.attempt_passkey(provider, caller)
    try:
        claim = await passkey_sign_in.claimed(provider, answer)
        if claim.user is None or claim.user.user_id != user.user_id:
            raise PasskeyRefused("this passkey is not one of this person's")
        await passkey_sign_in.proved(
            provider,
            caller,
            claim,
            purpose=_PURPOSE,
            subject=enrolment.enrolment_id,
            entry_of=lambda owner: _event(caller, owner, "passkey", "ok"),
        )
    except PasskeyRefused:
        await provider.registry.audit.write(_event(caller, user, "passkey", "refused"), now=caller.now)
        raise Rejected(phrase("This passkey was not accepted. Use another one, or a code.")) from None
    return await enrolments.move(provider, caller, enrolment, Step.PROVE_SECOND_FACTOR)


def _at(sitting: Sitting, step: Step) -> Enrolment:
    if sitting.enrolment.step is not step:
        raise StaleStep
    return sitting.enrolment


def _event(caller: Caller, user: User, factor: str, outcome: Literal["ok", "refused"]) -> AuditEvent:
    return AuditEvent(
        actor=f"user:{user.user_id}",
        action=f"enrolment.{factor}",
        object=user.user_id,
        outcome=outcome,
        request_id=caller.request_id,
        detail={"address": caller.address},
    )
