"""Codes by e-mail: derived for one sign-in, never stored (D45)."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory import names
from corpid.flows import interactions, kinds, throttle, ways
from corpid.flows.sign_in import Rejected, event
from corpid.flows.ways import Way
from corpid.ports import Letter
from corpid.protocol.limits import MAILED_CODE_SECONDS, MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN
from corpid.protocol.totp import DIGITS, WrongCode
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit

_MINUTES: Final = MAILED_CODE_SECONDS // 60


async def send(provider: Provider, caller: Caller, visit: Visit, user: User) -> None:
    """Send a code; the one before ends. Raises Rejected where too many were sent, and StaleStep (D45)."""
    interaction = visit.interaction
    if interaction.mails >= MAILED_CODES_PER_SIGN_IN:
        raise Rejected(
            phrase("No more codes can be sent in this sign-in. Use the newest one, or cancel and start again.")
        )
    await _count(provider, caller, visit, user)
    moved = msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        way=Way.EMAIL.value,
        mails=interaction.mails + 1,
        mailed_at=int(caller.now),
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        await interactions.keep(provider, unit, moved)
        await provider.registry.audit.write(event(caller, visit, user, "sign_in.mail_code", "ok"), now=caller.now)
    provider.mail.post(_letter(provider, visit, user, code_of(provider, moved, user)))


async def _count(provider: Provider, caller: Caller, visit: Visit, user: User) -> None:
    """A known browser has an allowance of its own, which nobody can use up who has only the password (D47)."""
    browser_id = visit.browser.browser_id
    known = await throttle.is_known(provider, caller, names.user_name(user.user_name), browser_id)
    key = kinds.key(kinds.MAILED_CODES, provider.policy.base_url, user.user_id, browser_id if known else "")
    async with provider.transient.unit(caller.now) as unit:
        sent = await unit.count(kinds.MAILED_CODES.name, key, kinds.MAILED_CODES.seconds)
    if sent > MAILED_CODES_PER_HOUR:
        raise Rejected(phrase("Too many codes were sent to you. Wait an hour, then try again."))


def _letter(provider: Provider, visit: Visit, user: User, code: str) -> Letter:
    # Not the code itself: mail servers log subjects, and locked telephones show them.
    subject = phrase("Your code for {name}", name=provider.policy.name)
    text = phrase(
        "Your code is {code}. It works for {minutes} minutes, on the page on which you asked for it.\n\n"
        "You are signing in to {client}. If that is not you, somebody knows your password: do not give them the code, "
        "and tell the person who manages {name} in your organisation.\n\n"
        "Nobody from {name} will ever ask you for this code.\n",
        code=code,
        minutes=_MINUTES,
        client=visit.client.name,
        name=provider.policy.name,
    )
    return Letter(to=user.email, subject=subject, text=text, language=user.language)


def code_of(provider: Provider, interaction: Interaction, user: User) -> str:
    """The six digits that were sent last in this interaction. `own_keys.ring` was awaited before (D45)."""
    mac = provider.own_keys.mac(
        "email-code", interaction.interaction_id, user.user_id, user.email, str(interaction.mails)
    )
    number = int.from_bytes(sha256(mac.encode()).digest())
    return f"{number % 10**DIGITS:0{DIGITS}}"


def check(provider: Provider, caller: Caller, interaction: Interaction, user: User, code: str) -> None:
    """Return for the code that was sent last, within its ten minutes. Raises WrongCode (D45)."""
    typed = "".join(code.split()).encode()
    right = hmac.compare_digest(typed, code_of(provider, interaction, user).encode())
    if not right or not ways.under_way(interaction, now=caller.now):
        raise WrongCode("this code was not sent, or has ended")
