"""What having shown every factor brings: a session, and the next page (D30, D34, D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.flows import browsers, choices, completion, interactions, notices, throttle
from corpid.flows.account import own_client
from corpid.flows.interactions import Outcome
from corpid.ports import AuditEvent, Session
from corpid.protocol import assurance, single_sign_on
from corpid.protocol.limits import ACCOUNT_SESSION_SECONDS

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.flows.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.ports import SessionPurpose, TransientUnit

_PLACES: Final[dict[SessionPurpose, str]] = {"sign_in": "session_id", "account": "account_id"}
"""where a browser keeps its session of each purpose"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The person who has shown every factor, and with what (RFC 8176)."""

    user: User
    amr: tuple[str, ...]
    factors: bytes = b""
    """where nothing was shown before: the fingerprint of the factors (`interactions.fingerprint`)"""
    passkey: str = ""
    """the credential id of the passkey that was shown"""


async def complete(provider: Provider, caller: Caller, visit: Visit, shown: Shown) -> str:
    """Move a sign-in on after its last factor; returns the browser's new cookie value.

    One for the account's own pages ends here. Who was signed in at this browser before, if it was somebody else,
    is signed out. Raises StaleStep, and OtherBrowser where this is the first factor too and another browser was
    quicker. Source: D15, D30, D34, D47
    """
    interaction, browser_id = visit.interaction, visit.browser.browser_id
    name = names.user_name(shown.user.user_name)
    last = await throttle.last_entity(provider, name, browser_id, now=caller.now)
    new_here = last is None and bool(await provider.registry.audit.sign_ins_of(shown.user.user_id, limit=1))
    session = _new_session(provider, caller, visit, shown)
    moved = await _signed_in(provider, caller, visit, shown)
    others = await _of_others(provider, caller, visit.browser, shown.user)
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        if not interaction.user_id:
            await _claim_request(provider, unit, interaction)
        await interactions.keep(provider, unit, moved)
        if moved.outcome is Outcome.ACCOUNT:
            entry = completion.event(caller, moved, "sign_in.complete")
            await provider.registry.audit.write(entry, now=caller.now)
        await throttle.succeeded(provider, unit, caller, name, browser_id)
        await throttle.remember(provider, unit, name, browser_id, last)
        browser = await _settled(provider, caller, visit.browser, session, others)
        cookie = await browsers.replace_by_form(provider, unit, visit.cookie, visit.form, browser)
    await _unless_changed(provider, caller, moved, session)
    if new_here:
        notices.tell(provider, shown.user, notices.new_device(caller.device))
    return cookie


async def _unless_changed(provider: Provider, caller: Caller, moved: Interaction, session: Session | None) -> None:
    """A change of factors ends every session it sees. What it did not see yet is ended here. Raises StaleStep (D50)."""
    if session is None or await interactions.same_factors(provider, moved):
        return
    event = AuditEvent(actor=f"user:{moved.user_id}", action="session.end", request_id=caller.request_id)
    await provider.registry.sessions.end(session.session_id, event)
    raise interactions.StaleStep


async def _claim_request(provider: Provider, unit: TransientUnit, interaction: Interaction) -> None:
    if not await interactions.claim_request(provider, unit, interaction):
        raise completion.OtherBrowser


async def _of_others(provider: Provider, caller: Caller, browser: Browser, user: User) -> list[Session]:
    held = [getattr(browser, place) for place in _PLACES.values()]
    found = [await provider.registry.sessions.get(each, now=caller.now) for each in held if each]
    return [session for session in found if session is not None and session.user_id != user.user_id]


async def _settled(
    provider: Provider, caller: Caller, browser: Browser, session: Session | None, others: list[Session]
) -> Browser:
    """The browser with its new session, and without those of other people."""
    for other in others:
        event = AuditEvent(actor=f"user:{other.user_id}", action="session.end", request_id=caller.request_id)
        await provider.registry.sessions.end(other.session_id, event)
        browser = msgspec.structs.replace(browser, **{_PLACES[other.purpose]: ""})
    if session is None:
        return browser
    await provider.registry.sessions.put(session)
    return msgspec.structs.replace(browser, **{_PLACES[session.purpose]: session.session_id})


async def _signed_in(provider: Provider, caller: Caller, visit: Visit, shown: Shown) -> Interaction:
    interaction, user = visit.interaction, shown.user
    ended = own_client.purpose(interaction.request) == "account"
    return msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        user_id=user.user_id,
        user_name=interaction.user_name or names.user_name(user.user_name),
        factors=shown.factors or interaction.factors,
        passkey=shown.passkey,
        amr=shown.amr,
        auth_time=int(caller.now),
        level=assurance.TWO_FACTORS,
        entity_id=await _only_entity(provider, caller, visit, user.user_id),
        outcome=Outcome.ACCOUNT if ended else None,
        finished_at=caller.now if ended else 0,
    )


def _new_session(provider: Provider, caller: Caller, visit: Visit, shown: Shown) -> Session | None:
    purpose = own_client.purpose(visit.interaction.request)
    seconds = {"sign_in": provider.policy.session_seconds, "account": ACCOUNT_SESSION_SECONDS}[purpose]
    if not seconds:
        return None
    return Session(
        session_id=provider.new_id(),
        user_id=shown.user.user_id,
        browser_id=visit.browser.browser_id,
        auth_time=int(caller.now),
        amr=shown.amr,
        level=assurance.TWO_FACTORS,
        expires_at=int(caller.now) + seconds,
        purpose=purpose,
        device=caller.device,
        seen_at=int(caller.now),
    )


async def _only_entity(provider: Provider, caller: Caller, visit: Visit, user_id: str) -> str:
    if single_sign_on.asks_choice(visit.interaction.request):
        return ""
    return await choices.only_usable(provider, user_id, visit.client, now=caller.now)
