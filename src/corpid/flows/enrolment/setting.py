"""What a person sets in an enrolment, and writing it at once (D44, D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.directory.access import Object, Person, authorise
from corpid.directory.password_rules import PasswordRefused, chosen_password
from corpid.directory.records import Credentials
from corpid.flows import links, notices, passkey_challenges, passkey_sign_in, throttle
from corpid.flows.enrolment import enrolments
from corpid.flows.enrolment.enrolments import NotHere
from corpid.flows.enrolment.steps import Step
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.ports import AuditEvent, FactorChange, Passkey
from corpid.protocol import passkeys, recovery_codes, totp
from corpid.protocol.passkeys import PasskeyRefused
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, Sitting
    from corpid.flows.provider import Provider

PASSKEY_PURPOSE: Final = "enrolment"


async def submit_password(provider: Provider, caller: Caller, sitting: Sitting, *, password: str) -> Enrolment:
    """A new password, which is written at the end. Raises Rejected, PasswordsBusy and StaleStep (D44)."""
    enrolment, user = sitting.enrolment, sitting.user
    step = enrolment.step
    if step not in {Step.FIRST, Step.PASSWORD}:
        raise StaleStep
    try:
        chosen = chosen_password(password, user_name=user.user_name, blocklist=provider.passwords.guessable())
    except PasswordRefused as refusal:
        raise Rejected(refusal.sentence) from None
    password_hash = await provider.passwords.hash(chosen)
    return await enrolments.move(provider, caller, enrolment, step, password_hash=password_hash)


async def submit_app(provider: Provider, caller: Caller, sitting: Sitting, *, code: str) -> Enrolment:
    """The first code of a new app, which shows that it has the secret. Raises Rejected and StaleStep (D45)."""
    enrolment = sitting.enrolment
    if enrolment.step is not Step.SECOND_FACTOR:
        raise StaleStep
    try:
        step = totp.matching_step(enrolments.app_secret(provider, enrolment), code, caller.now)
    except totp.WrongCode:
        raise Rejected(
            phrase("This code is not right. Check that the app shows this account, then type its newest code.")
        ) from None
    return await enrolments.move(provider, caller, enrolment, Step.SECOND_FACTOR, app_step=step)


async def submit_codes(provider: Provider, caller: Caller, sitting: Sitting, *, kept: bool) -> Enrolment:
    """The person has kept the recovery codes. Raises Rejected and StaleStep (D45)."""
    if sitting.enrolment.step is not Step.RECOVERY_CODES:
        raise StaleStep
    if not kept:
        raise Rejected(phrase("Keep the codes first, then say that you have done so."))
    return await enrolments.move(provider, caller, sitting.enrolment, Step.RECOVERY_CODES)


async def passkey_options(provider: Provider, sitting: Sitting) -> str:
    """The JSON that a page gives the browser to make a passkey; empty where passkeys do not work (D46)."""
    return await registration_options(provider, sitting.user, sitting.enrolment.enrolment_id)


async def registration_options(provider: Provider, user: User, subject: str) -> str:
    """The same, for a challenge of this subject (D46)."""
    if not passkey_sign_in.offered(provider):
        return ""
    known = await provider.registry.factors.passkeys(user.user_id)
    return passkeys.registration_options(
        passkey_sign_in.party(provider),
        challenge=passkey_challenges.make(provider, PASSKEY_PURPOSE, subject),
        user_handle=user.user_id.encode(),
        user_name=user.user_name,
        display_name=user.name,
        known=[each.credential_id for each in known],
    )


async def submit_passkey(provider: Provider, caller: Caller, sitting: Sitting, *, answer: str, name: str) -> Enrolment:
    """A new passkey, which is written at the end. Raises Rejected and StaleStep (WebAuthn §7.1, D46)."""
    enrolment = sitting.enrolment
    step = enrolment.step
    if step not in {Step.FIRST, Step.SECOND_FACTOR}:
        raise StaleStep
    made = await proved_passkey(provider, caller, enrolment.enrolment_id, answer=answer)
    passkey = Passkey(user_id=enrolment.user_id, name=name, created_at=int(caller.now), **msgspec.structs.asdict(made))
    first = step is Step.FIRST
    return await enrolments.move(provider, caller, enrolment, step, passkey=passkey, passkey_first=first)


async def proved_passkey(provider: Provider, caller: Caller, subject: str, *, answer: str) -> passkeys.NewPasskey:
    """What a browser has made for a challenge of this subject, which is spent. Raises Rejected and StaleStep (D46)."""
    try:
        parsed = passkeys.parse_answer(answer)
        challenge = passkeys.challenge_of(parsed)
        if not passkey_challenges.is_own(provider, challenge, PASSKEY_PURPOSE, subject):
            raise PasskeyRefused("the challenge was not made for this page")
        async with provider.transient.unit(caller.now) as unit:
            first = await passkey_challenges.spend(provider, unit, challenge)
        if not first:
            raise StaleStep
        made = passkeys.verify_registration(passkey_sign_in.party(provider), parsed, challenge=challenge)
        if await provider.registry.factors.passkey(made.credential_id) is not None:
            raise PasskeyRefused("this passkey is known already")
    except PasskeyRefused:
        raise Rejected(phrase("The passkey could not be set up. Try again, or choose another way.")) from None
    return made


async def passkeys_from_before(provider: Provider, sitting: Sitting) -> list[Passkey]:
    """The passkeys of the person but the one that this enrolment has made: a lost device may hold one (D46)."""
    made = sitting.enrolment.passkey
    found = await provider.registry.factors.passkeys(sitting.user.user_id)
    return [each for each in found if made is None or each.credential_id != made.credential_id]


async def finish(provider: Provider, caller: Caller, sitting: Sitting) -> None:
    """Write everything, spend the link, end every session, and tell the person. Raises NotHere and StaleStep.

    Source: D44, D45, D46, D47, DESIGN, Security
    """
    enrolment, user = sitting.enrolment, sitting.user
    if enrolment.step is not None or enrolment.finished:
        raise StaleStep
    before = await provider.registry.directory.credentials(user.user_id) or Credentials(user_id=user.user_id)
    link = await provider.registry.factors.link(enrolment.link_hash)
    if link is None or not links.opens(link, before, now=caller.now):
        raise NotHere
    after, actor = _set(provider, enrolment, before), Person(user_id=enrolment.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=enrolment.user_id))
    keeps_codes = Step.RECOVERY_CODES in enrolment.done
    hashes = tuple(recovery_codes.hashed(enrolment.user_id, code) for code in enrolments.codes(provider, enrolment))
    change = FactorChange(
        before=before,
        after=after,
        add_passkey=enrolment.passkey,
        recovery_codes=hashes if keeps_codes else None,
        spend_link=enrolment.link_hash,
        end_sessions_but="",
    )
    if not await provider.registry.factors.change(change, _event(caller, enrolment, actor)):
        raise NotHere
    notices.tell(provider, user, _notice(enrolment))
    finished = msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, finished=True, password_hash="")
    async with provider.transient.unit(caller.now) as unit:
        await enrolments.keep(provider, unit, finished)
        await throttle.unlock(unit, provider.policy.base_url, names.user_name(user.user_name))


def _notice(enrolment: Enrolment) -> notices.Notice:
    if enrolment.purpose == "invitation":
        return notices.SET_UP
    if enrolment.password_hash:
        return notices.PASSWORD_CHANGED
    return notices.PASSKEY_ADDED if enrolment.passkey else notices.SECOND_FACTOR_CHANGED


def _set(provider: Provider, enrolment: Enrolment, before: Credentials) -> Credentials:
    after = before
    if enrolment.password_hash:
        after = msgspec.structs.replace(
            after, password_hash=enrolment.password_hash, password_set_by="user", password_source=""
        )
    if enrolment.app_step:
        after = msgspec.structs.replace(
            after,
            totp_secret=enrolments.app_secret(provider, enrolment),
            totp_set_by="user",
            totp_last_step=enrolment.app_step,
        )
    elif enrolment.purpose == "second_factor":
        # whoever has the lost phone has its app
        after = msgspec.structs.replace(after, totp_secret=None, totp_set_by="user")
    return after


def _event(caller: Caller, enrolment: Enrolment, actor: Person) -> AuditEvent:
    new = {"password": enrolment.password_hash, "app": enrolment.app_step, "passkey": enrolment.passkey}
    return AuditEvent(
        actor=actor.name,
        action=f"factors.{enrolment.purpose}",
        object=enrolment.user_id,
        request_id=caller.request_id,
        detail={"address": caller.address, "set": " ".join(name for name, value in new.items() if value)},
    )
