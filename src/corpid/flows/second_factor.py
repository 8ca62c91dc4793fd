"""The codes beside a password: of an app, by e-mail, or kept for recovery; and who stands before them (D45)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.flows import (
    code_guesses,
    completion,
    email_codes,
    interactions,
    kinds,
    letters,
    second_factor_codes,
    signed_in,
    throttle,
    ways,
)
from corpid.flows.account import own_client
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected, event, without_second_factor
from corpid.flows.ways import Way
from corpid.protocol import assurance
from corpid.protocol.code_guesses import pause_after
from corpid.protocol.errors import AccessDenied
from corpid.protocol.limits import TOTP_MISSES
from corpid.protocol.totp import WrongCode
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Literal

    from corpid.directory.records import Credentials, User
    from corpid.flows.caller import Caller
    from corpid.flows.letters import Notice
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.flows.ways import Standing
    from corpid.ports import AuditEvent
    from corpid.protocol.code_guesses import CodeGuesses
    from corpid.texts import Phrase

    Accept = Callable[[Provider, Caller, Visit, User, Credentials, str], Awaitable[None]]

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
    user, way = standing.user, ways.chosen(visit.interaction, standing)
    if way not in _ACCEPT:
        raise StaleStep
    guesses = await _admit(provider, caller, visit, standing, way)
    try:
        await _ACCEPT[way](provider, caller, visit, user, standing.credentials, code)
    except WrongCode:
        await _miss(provider, caller, visit, user, way, guesses)
        raise Rejected(_WRONG[way]) from None
    shown = signed_in.Shown(user=user, credentials=standing.credentials, amr=assurance.PASSWORD_AND_CODE, way=way)
    return await signed_in.complete(provider, caller, visit, shown)


async def choose_way(provider: Provider, caller: Caller, visit: Visit, *, way: str) -> Visit:
    """Another way to show the second factor; by e-mail a code is sent, unless one is to be typed that was.

    Returns the visit as it is now. Raises Rejected, Paused, StaleStep. Source: D45
    """
    interaction = visit.interaction
    standing = await person(provider, caller, visit)
    named = next((each for each in standing.ways if each.value == way), None)
    if named is None:
        raise Rejected(phrase("Choose one of the ways that are shown."))
    back = interaction.way is not Way.EMAIL and ways.under_way(interaction, now=caller.now)
    if named is Way.EMAIL and not back:
        known_as = visit.browser.known_as
        await code_guesses.refuse_mail(provider, caller, standing.user, standing.credentials, known_as)
        moved = await email_codes.send(provider, caller, visit, standing.user)
    else:
        moved = await interactions.move(provider, interaction, now=caller.now, way=named)
    return replace(visit, interaction=moved)


async def person(provider: Provider, caller: Caller, visit: Visit) -> Standing:
    """Who has shown their password and nothing else yet. Raises Rejected for an account that was switched off.

    Raises StaleStep where nobody stands there: also where no second factor is left, which the audit is told; and
    Throttled, so that nobody fills the audit with that. Source: D45, D47, D50
    """
    if visit.stranded:
        user = await provider.registry.directory.user(visit.stranded)
        if user is not None:
            await throttle.attempt_second_factor(
                provider, caller, names.user_name(user.user_name), visit.browser.known_as
            )
        await provider.registry.audit.write(without_second_factor(caller, visit, user), now=caller.now)
    if visit.standing is None:
        raise StaleStep
    if not visit.standing.user.enabled:
        raise Rejected(phrase("This account can no longer sign in. Ask your administrator."))
    return visit.standing


async def _admit(provider: Provider, caller: Caller, visit: Visit, standing: Standing, way: Way) -> CodeGuesses | None:
    """Count an attempt before it is tried; returns the count of guesses, None for a recovery code, which nobody guesses."""
    if way is Way.RECOVERY:
        await throttle.attempt_unguessable(provider, caller)
        return None
    return await code_guesses.attempt(provider, caller, standing.user, standing.credentials, visit.browser.known_as)


async def _accept_app(
    provider: Provider, caller: Caller, visit: Visit, user: User, credentials: Credentials, code: str
) -> None:
    entry = event_of(caller, visit, user, Way.APP, "ok")
    await second_factor_codes.accept_app(provider, caller, credentials, code, entry)


async def _accept_mailed(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    at = visit.interaction
    email_codes.check(provider, caller, at.interaction_id, at, user, code)
    await provider.registry.audit.write(event_of(caller, visit, user, Way.EMAIL, "ok"), now=caller.now)


async def _accept_recovery(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    entry = event_of(caller, visit, user, Way.RECOVERY, "ok")
    await second_factor_codes.accept_recovery(provider, user, code, entry)


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
    of_owner = kinds.key(kinds.MISSES_OF_OWNER, provider.policy.base_url, user.user_id)
    async with provider.transient.unit(caller.now) as unit:
        too_many = await second_factor_codes.count_miss(provider, unit, visit.interaction.interaction_id)
        misses = await unit.count(kinds.MISSES_OF_OWNER.name, of_owner, kinds.MISSES_OF_OWNER.seconds)
        await provider.registry.audit.write(event_of(caller, visit, user, way, "refused"), now=caller.now)
        if guesses is not None and guesses.paused_until:
            entry = event(caller, visit, user, "sign_in.pause_codes", "refused")
            await provider.registry.audit.write(code_guesses.pause_event(entry, guesses), now=caller.now)
    if guesses is not None and guesses.paused_until and guesses.told_at == int(caller.now):
        letters.tell(provider, user, _paused(provider, guesses))
    elif misses == TOTP_MISSES:
        letters.tell(provider, user, letters.WRONG_CODES)
    if too_many:
        refusal = AccessDenied("the second factor was wrong too often")
        await completion.refuse(provider, caller, visit.interaction, refusal)
        raise Stopped


def _paused(provider: Provider, guesses: CodeGuesses) -> Notice:
    return letters.codes_paused(
        guesses.guesses,
        duration=code_guesses.duration(pause_after(guesses.guesses)),
        known=guesses.browser != code_guesses.UNKNOWN,
        recover=provider.policy.base_url + own_client.RECOVERY_PATH,
    )
