"""The second factor of a sign-in: the code of an app, one by e-mail, or one kept for recovery (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.flows import completion, email_codes, factors, interactions, kinds, notices, throttle, ways
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected, event
from corpid.flows.ways import Way
from corpid.protocol import assurance, recovery_codes, totp
from corpid.protocol.errors import AccessDenied
from corpid.protocol.limits import TOTP_MISSES
from corpid.protocol.totp import WrongCode
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Literal

    from corpid.directory.records import Credentials, User
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.ports import AuditEvent
    from corpid.texts import Phrase

    Accept = Callable[[Provider, Caller, Visit, User, Credentials, str], Awaitable[None]]

_WRONG: Final[Mapping[Way, Phrase]] = {
    Way.APP: phrase("This code is not right. Wait for the next one in your app and type it."),
    Way.EMAIL: phrase("This code is not right. Type the one from the newest e-mail, or send a new one."),
    Way.RECOVERY: phrase("This recovery code is not right, or was used before. Check it, or type another one."),
}


class Stopped(Exception):
    """Too many wrong codes: this sign-in has just been ended (D45)."""


async def submit_code(provider: Provider, caller: Caller, visit: Visit, *, code: str) -> str:
    """The second factor, in the way that is asked for; returns the browser's new cookie value.

    Five misses, in whichever ways, end the interaction with access_denied. Raises Rejected, Stopped, Throttled,
    StaleStep. Source: D34, D45
    """
    user, credentials = await _person(provider, visit)
    way = ways.chosen(visit.interaction, await ways.of(provider, user, credentials))
    await throttle.attempt_second_factor(provider, caller, names.user_name(user.user_name), visit.browser.browser_id)
    try:
        await _ACCEPT[way](provider, caller, visit, user, credentials, code)
    except WrongCode:
        await _miss(provider, caller, visit, user, way)
        raise Rejected(_WRONG[way]) from None
    shown = factors.Shown(user=user, amr=assurance.PASSWORD_AND_CODE)
    return await factors.complete(provider, caller, visit, shown)


async def choose_way(provider: Provider, caller: Caller, visit: Visit, *, way: str) -> None:
    """Another way to show the second factor; by e-mail a code is sent, unless one is to be typed that was.

    Raises Rejected, StaleStep. Source: D45
    """
    interaction = visit.interaction
    user, credentials = await _person(provider, visit)
    named = next((each for each in await ways.of(provider, user, credentials) if each.value == way), None)
    if named is None:
        raise Rejected(phrase("Choose one of the ways that are shown."))
    back = interaction.way != Way.EMAIL.value and ways.under_way(interaction, now=caller.now)
    if named is Way.EMAIL and not back:
        await email_codes.send(provider, caller, visit, user)
    else:
        await interactions.move(provider, interaction, now=caller.now, way=named.value)


async def _person(provider: Provider, visit: Visit) -> tuple[User, Credentials]:
    interaction = visit.interaction
    if not interaction.user_id or interaction.signed_in:
        raise StaleStep
    user = await provider.registry.directory.user(interaction.user_id)
    credentials = await provider.registry.directory.credentials(interaction.user_id)
    if user is None or not user.enabled or credentials is None:
        raise Rejected(phrase("This account can no longer sign in. Ask your administrator."))
    return user, credentials


async def _accept_app(
    provider: Provider, caller: Caller, visit: Visit, user: User, credentials: Credentials, code: str
) -> None:
    step = totp.matching_step(credentials.totp_secret or "", code, caller.now)
    entry = _event(caller, visit, user, Way.APP, "ok")
    if not await provider.registry.directory.raise_totp_step(user.user_id, step, entry):
        raise WrongCode("this code was used before")


async def _accept_mailed(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    email_codes.check(provider, caller, visit.interaction, user, code)
    await provider.registry.audit.write(_event(caller, visit, user, Way.EMAIL, "ok"), now=caller.now)


async def _accept_recovery(
    provider: Provider, caller: Caller, visit: Visit, user: User, _: Credentials, code: str
) -> None:
    code_hash = recovery_codes.hashed(user.user_id, code)
    entry = _event(caller, visit, user, Way.RECOVERY, "ok")
    if not await provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await provider.registry.factors.recovery_codes_left(user.user_id)
    notices.recovery_code_used(provider, user, left=left)


_ACCEPT: Final[Mapping[Way, Accept]] = {
    Way.APP: _accept_app,
    Way.EMAIL: _accept_mailed,
    Way.RECOVERY: _accept_recovery,
}


def _event(caller: Caller, visit: Visit, user: User, way: Way, outcome: Literal["ok", "refused"]) -> AuditEvent:
    entry = event(caller, visit, user, "sign_in.second_factor", outcome)
    return msgspec.structs.replace(entry, detail={**entry.detail, "way": way.value})


async def _miss(provider: Provider, caller: Caller, visit: Visit, user: User, way: Way) -> None:
    key = kinds.key(kinds.SECOND_FACTOR_MISSES, provider.policy.base_url, visit.interaction.interaction_id)
    async with provider.transient.unit(caller.now) as unit:
        misses = await unit.count(kinds.SECOND_FACTOR_MISSES.name, key, kinds.SECOND_FACTOR_MISSES.seconds)
        await provider.registry.audit.write(_event(caller, visit, user, way, "refused"), now=caller.now)
    if misses >= TOTP_MISSES:
        refusal = AccessDenied("the second factor was wrong too often")
        await completion.refuse(provider, caller, visit.interaction, refusal)
        raise Stopped
