"""Codes by e-mail: derived for one sign-in or enrolment, never stored (D45)."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from corpid.directory import names
from corpid.flows import interactions, kinds, letters, throttle, ways
from corpid.flows.sign_in import Rejected, event
from corpid.flows.ways import Way
from corpid.protocol.limits import MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN
from corpid.protocol.totp import DIGITS, WrongCode
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.flows.ways import Mailed


async def send(provider: Provider, caller: Caller, visit: Visit, user: User) -> Interaction:
    """Send a code; the one before ends. Returns the interaction as it is now.

    Raises Rejected where too many were sent, and StaleStep. Source: D45
    """
    interaction = visit.interaction
    if interaction.mails >= MAILED_CODES_PER_SIGN_IN:
        raise Rejected(
            phrase("No more codes can be sent in this sign-in. Use the newest one, or cancel and start again.")
        )
    await count(provider, caller, user, visit.browser.known_as)
    moved = msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        way=Way.EMAIL,
        mails=interaction.mails + 1,
        mailed_at=int(caller.now),
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        await interactions.keep(provider, unit, moved)
        await provider.registry.audit.write(event(caller, visit, user, "sign_in.mail_code", "ok"), now=caller.now)
    why = phrase(
        "You are signing in to {client}. If that is not you, somebody knows your password: do not give them the code, "
        "and tell the person who manages {name} in your organisation.",
        client=visit.client.name,
        name=provider.policy.name,
    )
    letters.mailed_code(provider, user, code_of(provider, interaction.interaction_id, moved, user), why=why)
    return moved


async def count(provider: Provider, caller: Caller, user: User, known_as: str) -> None:
    """Count a code that is to be sent. Raises Rejected where too many were, in an hour.

    A known browser has an allowance of its own, which nobody can use up who has only the password. D45, D47
    """
    known = await throttle.is_known(provider, caller, names.user_name(user.user_name), known_as)
    key = kinds.key(kinds.MAILED_CODES, provider.policy.base_url, user.user_id, known_as if known else "")
    async with provider.transient.unit(caller.now) as unit:
        sent = await unit.count(kinds.MAILED_CODES.name, key, kinds.MAILED_CODES.seconds)
    if sent > MAILED_CODES_PER_HOUR:
        raise Rejected(phrase("Too many codes were sent to you. Wait an hour, then try again."))


def code_of(provider: Provider, name: str, mailed: Mailed, user: User) -> str:
    """The six digits that were sent last for what has the unguessable `name`. `own_keys.ring` was awaited before (D45)."""
    mac = provider.own_keys.mac("email-code", name, user.user_id, user.email, str(mailed.mails))
    number = int.from_bytes(sha256(mac.encode()).digest())
    return f"{number % 10**DIGITS:0{DIGITS}}"


def check(provider: Provider, caller: Caller, name: str, mailed: Mailed, user: User, code: str) -> None:
    """Return for the code that was sent last, within its ten minutes. Raises WrongCode (D45)."""
    typed = "".join(code.split()).encode()
    right = hmac.compare_digest(typed, code_of(provider, name, mailed, user).encode())
    if not right or not ways.under_way(mailed, now=caller.now):
        raise WrongCode("this code was not sent, or has ended")
