"""The second factor of a sign-in, and what having both brings (D30, D34, D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.flows import browsers, choices, completion, interactions, kinds, throttle
from corpid.flows.browsers import Browser
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected, event
from corpid.ports import Session
from corpid.protocol import assurance, single_sign_on, totp
from corpid.protocol.errors import AccessDenied
from corpid.protocol.limits import TOTP_MISSES

if TYPE_CHECKING:
    from corpid.directory.records import Credentials, User
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit

_AMR: Final = ("pwd", "otp", "mfa")


class Stopped(Exception):
    """Too many wrong codes: this sign-in has just been ended (D45)."""


async def submit_code(provider: Provider, caller: Caller, visit: Visit, *, code: str) -> str:
    """The second factor; returns the browser's new cookie value.

    Five misses end the interaction with access_denied. Raises Rejected, Stopped, Throttled, StaleStep.
    Source: D34, D45
    """
    interaction = visit.interaction
    if not interaction.user_id or interaction.signed_in:
        raise StaleStep
    user = await provider.registry.directory.user(interaction.user_id)
    credentials = await provider.registry.directory.credentials(interaction.user_id)
    if user is None or not user.enabled or credentials is None:
        raise Rejected("This account can no longer sign in. Ask your administrator.")
    await throttle.attempt_second_factor(provider, caller, names.user_name(user.user_name), visit.browser.browser_id)
    try:
        await _accept_code(provider, caller, visit, credentials, user, code)
    except totp.WrongCode:
        await _miss(provider, caller, visit, user)
        raise Rejected("This code is not right. Wait for the next one in your app and type it.") from None
    session = _new_session(provider, caller, visit, user)
    moved = msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        amr=_AMR,
        auth_time=int(caller.now),
        level=assurance.TWO_FACTORS,
        entity_id=await _only_entity(provider, caller, visit, user.user_id),
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        await interactions.keep(provider, unit, moved)
        await throttle.succeeded(provider, unit, caller, names.user_name(user.user_name), visit.browser.browser_id)
        browser = visit.browser
        if session is not None:
            await provider.registry.sessions.put(session)
            browser = Browser(browser_id=browser.browser_id, session_id=session.session_id)
        return await browsers.replace_by_form(provider, unit, visit.cookie, visit.form, browser)


async def _accept_code(
    provider: Provider, caller: Caller, visit: Visit, credentials: Credentials, user: User, code: str
) -> None:
    step = totp.matching_step(credentials.totp_secret or "", code, caller.now)
    entry = event(caller, visit, user, "sign_in.second_factor", "ok")
    if not await provider.registry.directory.raise_totp_step(user.user_id, step, entry):
        raise totp.WrongCode("this code was used before")


async def _miss(provider: Provider, caller: Caller, visit: Visit, user: User) -> None:
    key = kinds.key(kinds.SECOND_FACTOR_MISSES, provider.policy.base_url, visit.interaction.interaction_id)
    async with provider.transient.unit(caller.now) as unit:
        misses = await unit.count(kinds.SECOND_FACTOR_MISSES.name, key, kinds.SECOND_FACTOR_MISSES.seconds)
        entry = event(caller, visit, user, "sign_in.second_factor", "refused")
        await provider.registry.audit.write(entry, now=caller.now)
    if misses >= TOTP_MISSES:
        refusal = AccessDenied("the second factor was wrong too often")
        await completion.refuse(provider, caller, visit.interaction, refusal)
        raise Stopped


def _new_session(provider: Provider, caller: Caller, visit: Visit, user: User) -> Session | None:
    if not provider.policy.session_seconds:
        return None
    return Session(
        session_id=provider.new_id(),
        user_id=user.user_id,
        browser_id=visit.browser.browser_id,
        auth_time=int(caller.now),
        amr=_AMR,
        level=assurance.TWO_FACTORS,
        expires_at=int(caller.now) + provider.policy.session_seconds,
    )


async def _only_entity(provider: Provider, caller: Caller, visit: Visit, user_id: str) -> str:
    if single_sign_on.asks_choice(visit.interaction.request):
        return ""
    return await choices.only_usable(provider, user_id, visit.client, now=caller.now)
