"""Signing in with a passkey: both factors at once, and no user name (D46)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.directory.records import Credentials
from corpid.flows import factors, interactions, passkey_challenges, throttle
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected, event
from corpid.protocol import assurance, passkeys
from corpid.protocol.passkeys import CounterWentBack, PasskeyRefused
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.ports import AuditEvent, Passkey
    from corpid.protocol.passkeys import RelyingParty

_PURPOSE: Final = "sign-in"
_REASON_CHARACTERS: Final = 200
"""it may repeat what the browser sent"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an answer says of itself, of which nothing is proved yet."""

    answer: dict[str, Any]
    challenge: bytes
    passkey: Passkey | None
    user: User | None


def party(provider: Provider) -> RelyingParty:
    """Whom the passkeys of this deployment are made for (D46)."""
    return passkeys.relying_party(provider.policy.base_url, provider.policy.name)


def offered(provider: Provider) -> bool:
    """Whether passkeys work here: they belong to a host name, never to an address. Source: WebAuthn §5.1.3, D34, D46"""
    try:
        ip_address(party(provider).rp_id)
    except ValueError:
        return True
    return False


def options(provider: Provider, visit: Visit) -> str:
    """The JSON that the sign-in page gives the browser, empty where passkeys do not work. Looking spends nothing (D46)."""
    if not offered(provider):
        return ""
    challenge = passkey_challenges.make(provider, _PURPOSE, visit.interaction.interaction_id)
    return passkeys.authentication_options(party(provider), challenge=challenge)


async def submit_passkey(provider: Provider, caller: Caller, visit: Visit, *, answer: str) -> str:
    """A browser's answer, as JSON; returns the browser's new cookie value.

    Whatever is wrong, the person reads one sentence. Raises Rejected, Throttled, StaleStep, OtherBrowser.
    Source: WebAuthn §7.2, D15, D46
    """
    if visit.interaction.user_id:
        raise StaleStep
    user = None
    try:
        claim = await claimed(provider, answer)
        user = claim.user
        await throttle.attempt_passkey(provider, caller)
        owner, used = await proved(
            provider,
            caller,
            claim,
            purpose=_PURPOSE,
            subject=visit.interaction.interaction_id,
            entry_of=lambda owner: event(caller, visit, owner, "sign_in.passkey", "ok"),
        )
    except PasskeyRefused as refusal:
        await _refused(provider, caller, visit, user, refusal)
        sentence = "This passkey was not accepted. Use another one, or your user name and password."
        raise Rejected(phrase(sentence)) from None
    credentials = await provider.registry.directory.credentials(owner.user_id) or Credentials(user_id=owner.user_id)
    shown = factors.Shown(
        user=owner,
        amr=assurance.PASSKEY,
        factors=interactions.fingerprint(credentials),
        passkey=used.credential_id,
    )
    return await factors.complete(provider, caller, visit, shown)


async def claimed(provider: Provider, answer: str) -> Claim:
    """What a browser's answer, as JSON, says of itself. Raises PasskeyRefused. Source: WebAuthn §7.2, D46"""
    parsed = passkeys.parse_answer(answer)
    passkey = await provider.registry.factors.passkey(passkeys.credential_id(parsed))
    user = await provider.registry.directory.user(passkey.user_id) if passkey else None
    return Claim(
        answer=parsed,
        challenge=passkeys.challenge_of(parsed),
        passkey=passkey,
        user=user,
    )


async def proved(
    provider: Provider,
    caller: Caller,
    claim: Claim,
    *,
    purpose: str,
    subject: str,
    entry_of: Callable[[User], AuditEvent],
) -> tuple[User, Passkey]:
    """The owner of a passkey that was shown, and the passkey as it is now; `entry_of` makes the entry of its use.

    The challenge, which was made for `purpose` and `subject`, is spent first, whatever comes after it.
    Raises PasskeyRefused and StaleStep. Source: WebAuthn §7.2, D46
    """
    if not passkey_challenges.is_own(provider, claim.challenge, purpose, subject):
        raise PasskeyRefused("the challenge was not made for this page")
    async with provider.transient.unit(caller.now) as unit:
        first = await passkey_challenges.spend(provider, unit, claim.challenge)
    if not first:
        raise StaleStep
    passkey, user = claim.passkey, claim.user
    if passkey is None:
        raise PasskeyRefused("no such passkey is known here")
    proven = passkeys.verify_authentication(
        party(provider),
        claim.answer,
        challenge=claim.challenge,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        user_handle=passkey.user_id.encode(),
    )
    if user is None or not user.enabled:
        raise PasskeyRefused("its owner can no longer sign in")
    used = msgspec.structs.replace(passkey, sign_count=proven.sign_count, synced=proven.synced, used_at=int(caller.now))
    if not await provider.registry.factors.use_passkey(used, passkey, entry_of(user)):
        raise CounterWentBack("the counter was raised meanwhile, or the passkey was removed")
    return user, used


async def _refused(
    provider: Provider, caller: Caller, visit: Visit, user: User | None, refusal: PasskeyRefused
) -> None:
    entry = event(caller, visit, user, "sign_in.passkey", "refused")
    detail = {**entry.detail, "reason": repr(str(refusal)[:_REASON_CHARACTERS])}
    await provider.registry.audit.write(msgspec.structs.replace(entry, detail=detail), now=caller.now)
