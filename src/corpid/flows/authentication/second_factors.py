"""Second factors: codes by app, by e-mail and for recovery (D45)."""

from __future__ import annotations

import hmac
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import (
    account_client,
    code_guesses,
    completion,
    interactions,
    second_factor_methods,
    session_start,
    throttle,
)
from corpid.flows.authentication.interactions import StaleStep
from corpid.flows.authentication.second_factor_methods import Way
from corpid.flows.authentication.sign_in import Rejected, event, without_second_factor
from corpid.rules.authentication import person_factors, totp
from corpid.rules.authentication.code_guesses import pause_after
from corpid.rules.authentication.totp import DIGITS, WrongCode
from corpid.rules.directory import names
from corpid.rules.limits import MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN, TOTP_MISSES
from corpid.rules.oauth import acr
from corpid.rules.oauth.errors import AccessDenied
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Literal

    from corpid.flows.authentication.interactions import Interaction
    from corpid.flows.authentication.second_factor_methods import Mailed, PendingSecondFactor
    from corpid.flows.authentication.sign_in import Visit
    from corpid.flows.caller import Caller
    from corpid.flows.notifications import Notice
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEvent, TransientUnit
    from corpid.rules.authentication.code_guesses import CodeGuesses
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.directory.records import User
    from corpid.texts import Phrase

    Accept = Callable[[Provider, Caller, Visit, User, Credentials, str], Awaitable[None]]


async def accept_app(
    provider: Provider, caller: Caller, credentials: Credentials, code: str, entry: AuditEvent
) -> None:
    """Spend a code of the person's app; `entry` tells the audit. Raises WrongCode (D45)."""
    if not credentials.totp_secret:
        raise WrongCode("there is no app")
    step = totp.matching_step(credentials.totp_secret, code, caller.now)
    if not await provider.registry.factors.raise_totp_step(credentials.user_id, step, entry):
        raise WrongCode("this code was used before")


async def accept_recovery(provider: Provider, user: User, code: str, entry: AuditEvent) -> None:
    """Spend one of the person's recovery codes, and tell them; `entry` tells the audit. Raises WrongCode (D45)."""
    code_hash = person_factors.hashed(user.user_id, code)
    if not await provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await provider.registry.factors.recovery_codes_left(user.user_id)
    notifications.notify(provider, user, notifications.code_used(left))


async def count_miss(provider: Provider, unit: TransientUnit, name: str) -> bool:
    """Count a wrong code at `name` (an interaction, an enrolment); whether that was one too many (D45)."""
    key = namespaces.key(namespaces.SECOND_FACTOR_MISSES, provider.policy.base_url, name)
    misses = await unit.count(namespaces.SECOND_FACTOR_MISSES.name, key, namespaces.SECOND_FACTOR_MISSES.seconds)
    return misses >= TOTP_MISSES


async def send(provider: Provider, caller: Caller, visit: Visit, user: User) -> Interaction:
    """Send a code; the one before ends. Returns the interaction as it is now.

    Raises Rejected where too many were sent, and StaleStep. Source: D45
    """
    interaction = visit.interaction
    if interaction.mails >= MAILED_CODES_PER_SIGN_IN:
        raise Rejected(
            phrase("No more codes can be sent in this sign-in. Use the newest one, or cancel and start again.")
        )
    await count(provider, caller, user, visit.browser.browser_key)
    moved = msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        way=Way.EMAIL,
        mails=interaction.mails + 1,
        mailed_at=int(caller.now),
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        await interactions.save(provider, unit, moved)
        await provider.registry.audit.write(event(caller, visit, user, "sign_in.mail_code", "ok"), now=caller.now)
    why = phrase(
        "You are signing in to {client}. If that is not you, somebody knows your password: do not give them the code, "
        "and tell the person who manages {name} in your organisation.",
        client=visit.client.name,
        name=provider.policy.name,
    )
    notifications.mailed_code(provider, user, code_of(provider, interaction.interaction_id, moved, user), why=why)
    return moved


async def count(provider: Provider, caller: Caller, user: User, browser_key: str) -> None:
    """Count a code that is to be sent. Raises Rejected where too many were, in an hour.

    A known browser has an allowance of its own, which nobody can use up who has only the password. D45, D47
    """
    known = await throttle.is_known(provider, caller, names.user_name(user.user_name), browser_key)
    key = namespaces.key(namespaces.MAILED_CODES, provider.policy.base_url, user.user_id, browser_key if known else "")
    async with provider.transient.unit(caller.now) as unit:
        sent = await unit.count(namespaces.MAILED_CODES.name, key, namespaces.MAILED_CODES.seconds)
    if sent > MAILED_CODES_PER_HOUR:
        raise Rejected(phrase("Too many codes were sent to you. Wait an hour, then try again."))


def code_of(provider: Provider, name: str, mailed: Mailed, user: User) -> str:
    """The six digits that were sent last for what has the unguessable `name`. `signing_keys.ring` was awaited before (D45)."""
    mac = provider.signing_keys.mac("email-code", name, user.user_id, user.email, str(mailed.mails))
    number = int.from_bytes(sha256(mac.encode()).digest())
    return f"{number % 10**DIGITS:0{DIGITS}}"


def check(provider: Provider, caller: Caller, name: str, mailed: Mailed, user: User, code: str) -> None:
    """Return for the code that was sent last, within its ten minutes. Raises WrongCode (D45)."""
    typed = "".join(code.split()).encode()
    right = hmac.compare_digest(typed, code_of(provider, name, mailed, user).encode())
    if not right or not second_factor_methods.under_way(mailed, now=caller.now):
        raise WrongCode("this code was not sent, or has ended")


_WRONG: Final[Mapping[Way, Phrase]] = {
    Way.APP: phrase("This code is not right. Wait for the next one in your app and type it."),
    Way.EMAIL: phrase("This code is not right. Type the one from the newest e-mail, or send a new one."),
    Way.RECOVERY: phrase("This recovery code is not right, or was used before. Check it, or type another one."),
}


class Stopped(Exception):
    """Too many wrong codes: this sign-in has just been ended (D45)."""


async def submit_code(provider: Provider, caller: Caller, visit: Visit, *, code: str) -> Visit:
    """The second factor, in the way that is asked for; returns the visit as it is now, with a new cookie value.

    Five misses, in whichever ways, end the interaction with access_denied. Raises Rejected, Stopped, Throttled (also
    as Paused), StaleStep. Source: D34, D45
    """
    standing = await person(provider, caller, visit)
    user, way = standing.user, second_factor_methods.chosen(visit.interaction, standing)
    if way not in _ACCEPT:
        raise StaleStep
    guesses = await _admit(provider, caller, visit, standing, way)
    try:
        await _ACCEPT[way](provider, caller, visit, user, standing.credentials, code)
    except WrongCode:
        await _miss(provider, caller, visit, user, way, guesses)
        raise Rejected(_WRONG[way]) from None
    shown = session_start.Authentication(
        user=user, credentials=standing.credentials, amr=acr.PASSWORD_AND_CODE, way=way
    )
    return await session_start.complete(provider, caller, visit, shown)


async def choose_way(provider: Provider, caller: Caller, visit: Visit, *, way: str) -> Visit:
    """Another way to show the second factor; by e-mail a code is sent, unless one is to be typed that was.

    Returns the visit as it is now. Raises Rejected, Paused, StaleStep. Source: D45
    """
    interaction = visit.interaction
    standing = await person(provider, caller, visit)
    named = next((each for each in standing.ways if each.value == way), None)
    if named is None:
        raise Rejected(phrase("Choose one of the ways that are shown."))
    back = interaction.way is not Way.EMAIL and second_factor_methods.under_way(interaction, now=caller.now)
    if named is Way.EMAIL and not back:
        browser_key = visit.browser.browser_key
        await code_guesses.refuse_mail(provider, caller, standing.user, standing.credentials, browser_key)
        moved = await send(provider, caller, visit, standing.user)
    else:
        moved = await interactions.move(provider, interaction, now=caller.now, way=named)
    return replace(visit, interaction=moved)


async def person(provider: Provider, caller: Caller, visit: Visit) -> PendingSecondFactor:
    """Who has shown their password and nothing else yet. Raises Rejected for an account that was switched off.

    Raises StaleStep where nobody stands there: also where no second factor is left, which the audit is told; and
    Throttled, so that nobody fills the audit with that. Source: D45, D47, D50
    """
    if visit.lacks_second_factor:
        user = await provider.registry.directory.user(visit.lacks_second_factor)
        if user is not None:
            await throttle.attempt_second_factor(
                provider, caller, names.user_name(user.user_name), visit.browser.browser_key
            )
        await provider.registry.audit.write(without_second_factor(caller, visit, user), now=caller.now)
    if visit.standing is None:
        raise StaleStep
    if not visit.standing.user.enabled:
        raise Rejected(phrase("This account can no longer sign in. Ask your administrator."))
    return visit.standing


async def _admit(
    provider: Provider, caller: Caller, visit: Visit, standing: PendingSecondFactor, way: Way
) -> CodeGuesses | None:
    """Count an attempt before it is tried; returns the count of guesses, None for a recovery code, which nobody guesses."""
    if way is Way.RECOVERY:
        await throttle.attempt_unguessable(provider, caller)
        return None
    return await code_guesses.attempt(provider, caller, standing.user, standing.credentials, visit.browser.browser_key)


async def _accept_app(
    provider: Provider, caller: Caller, visit: Visit, user: User, credentials: Credentials, code: str
) -> None:
    entry = event_of(caller, visit, user, Way.APP, "ok")
    await accept_app(provider, caller, credentials, code, entry)


async def _accept_mailed(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    at = visit.interaction
    check(provider, caller, at.interaction_id, at, user, code)
    await provider.registry.audit.write(event_of(caller, visit, user, Way.EMAIL, "ok"), now=caller.now)


async def _accept_recovery(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    entry = event_of(caller, visit, user, Way.RECOVERY, "ok")
    await accept_recovery(provider, user, code, entry)


_ACCEPT: Final[Mapping[Way, Accept]] = {
    Way.APP: _accept_app,
    Way.EMAIL: _accept_mailed,
    Way.RECOVERY: _accept_recovery,
}


def event_of(
    caller: Caller, visit: Visit, user: User | None, way: Way, outcome: Literal["ok", "refused"]
) -> AuditEvent:
    """What the audit is told of a second factor that was shown. Source: DESIGN, Security"""
    entry = event(caller, visit, user, "sign_in.second_factor", outcome)
    return msgspec.structs.replace(entry, detail={**entry.detail, "way": way.value})


async def _miss(
    provider: Provider, caller: Caller, visit: Visit, user: User, way: Way, guesses: CodeGuesses | None
) -> None:
    """Whoever comes so far has the password, so its owner is told: once a day, however often it happens."""
    of_owner = namespaces.key(namespaces.MISSES_OF_OWNER, provider.policy.base_url, user.user_id)
    async with provider.transient.unit(caller.now) as unit:
        too_many = await count_miss(provider, unit, visit.interaction.interaction_id)
        misses = await unit.count(namespaces.MISSES_OF_OWNER.name, of_owner, namespaces.MISSES_OF_OWNER.seconds)
        await provider.registry.audit.write(event_of(caller, visit, user, way, "refused"), now=caller.now)
        if guesses is not None and guesses.paused_until:
            entry = event(caller, visit, user, "sign_in.pause_codes", "refused")
            await provider.registry.audit.write(code_guesses.pause_event(entry, guesses), now=caller.now)
    if guesses is not None and guesses.paused_until and guesses.told_at == int(caller.now):
        notifications.notify(provider, user, _paused(provider, guesses))
    elif misses == TOTP_MISSES:
        notifications.notify(provider, user, notifications.WRONG_CODES)
    if too_many:
        refusal = AccessDenied("the second factor was wrong too often")
        await completion.refuse(provider, caller, visit.interaction, refusal)
        raise Stopped


def _paused(provider: Provider, guesses: CodeGuesses) -> Notice:
    return notifications.codes_paused(
        guesses.guesses,
        duration=code_guesses.duration(pause_after(guesses.guesses)),
        known=guesses.browser != code_guesses.UNKNOWN,
        recover=provider.policy.base_url + account_client.RECOVERY_PATH,
    )
