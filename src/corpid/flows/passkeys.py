"""Passkeys, wherever one is made or shown: what a page asks the browser, and what its answer proved (D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows import challenges
from corpid.flows.challenges import ForeignChallenge
from corpid.flows.sign_in import Rejected
from corpid.protocol import passkeys as law
from corpid.protocol.passkeys import CounterWentBack, PasskeyRefused
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpid.directory.records import Passkey, User
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEvent
    from corpid.protocol.passkeys import NewPasskey, RelyingParty

_REGISTRATION: Final = "registration"
_REASON_CHARACTERS: Final = 200
"""it may repeat what the browser sent"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an answer says of itself, of which nothing is proved yet."""

    answer: dict[str, Any]
    challenge: bytes
    passkey: Passkey | None
    user: User | None


def _party(provider: Provider) -> RelyingParty:
    return law.relying_party(provider.policy.base_url, provider.policy.name)


def offered(provider: Provider) -> bool:
    """Whether passkeys work here: they belong to a host name, never to an address. Source: WebAuthn §5.1.3, D34, D46"""
    return law.works_at(provider.policy.base_url)


def authentication_options(provider: Provider, purpose: str, subject: str, *, allowed: Iterable[Passkey] = ()) -> str:
    """The JSON that a page gives the browser to show a passkey, empty where they do not work. Looking spends nothing.

    With `allowed` one of these has to be shown. `own_keys.ring` was awaited before. Source: WebAuthn §5.5, D46
    """
    if not offered(provider):
        return ""
    return law.authentication_options(
        _party(provider),
        challenge=challenges.make(provider, purpose, subject),
        allowed={each.credential_id: each.transports for each in allowed},
    )


async def claimed(provider: Provider, answer: str) -> Claim:
    """What a browser's answer, as JSON, says of itself. Raises PasskeyRefused. Source: WebAuthn §7.2, D46"""
    parsed = law.parse_answer(answer)
    passkey = await provider.registry.factors.passkey(law.credential_id(parsed))
    user = await provider.registry.directory.user(passkey.user_id) if passkey else None
    return Claim(answer=parsed, challenge=law.challenge_of(parsed), passkey=passkey, user=user)


async def proved(
    provider: Provider,
    caller: Caller,
    claim: Claim,
    *,
    purpose: str,
    subject: str,
    entry_of: Callable[[User], AuditEvent],
    only: str = "",
) -> tuple[User, Passkey]:
    """The owner of a passkey that was shown, and the passkey as it is now; `entry_of` makes the entry of its use.

    The challenge, which was made for `purpose` and `subject`, is spent first, whatever comes after it. `only` is the
    id of the one person whose passkeys will do; empty: anybody's. Raises PasskeyRefused and StaleStep.
    Source: WebAuthn §7.2, D46
    """
    await _redeem(provider, caller, claim.challenge, purpose, subject)
    passkey, user = claim.passkey, claim.user
    if passkey is None:
        raise PasskeyRefused("no such passkey is known here")
    if only and passkey.user_id != only:
        raise PasskeyRefused("this passkey is not one of this person's")
    proven = law.verify_authentication(
        _party(provider),
        claim.answer,
        challenge=claim.challenge,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        synced=passkey.synced,
        user_handle=passkey.user_id.encode(),
        identified=bool(only),
    )
    if user is None or not user.enabled:
        raise PasskeyRefused("its owner can no longer sign in")
    used = msgspec.structs.replace(passkey, sign_count=proven.sign_count, used_at=int(caller.now))
    if not await provider.registry.factors.use_passkey(used, passkey, entry_of(user)):
        raise CounterWentBack("the counter was raised meanwhile, or the passkey was removed")
    return user, used


def reason(refusal: PasskeyRefused) -> str:
    """Why a passkey was refused, as the audit is told it. Source: DESIGN, Security"""
    return repr(str(refusal)[:_REASON_CHARACTERS])


async def registration_options(provider: Provider, user: User, subject: str) -> str:
    """The JSON that a page gives the browser to make a passkey of this person, empty where they do not work.

    `subject` is what the page belongs to: an enrolment, a session. `own_keys.ring` was awaited before.
    Source: WebAuthn §5.4, D46
    """
    if not offered(provider):
        return ""
    known = await provider.registry.factors.passkeys(user.user_id)
    return law.registration_options(
        _party(provider),
        challenge=challenges.make(provider, _REGISTRATION, subject),
        user_handle=user.user_id.encode(),
        user_name=user.user_name,
        display_name=user.name,
        known=[each.credential_id for each in known],
    )


async def newly_made(provider: Provider, caller: Caller, subject: str, *, answer: str) -> NewPasskey:
    """What a browser has made for a challenge of this subject, which is spent.

    Raises Rejected and StaleStep. Source: WebAuthn §7.1, D46
    """
    try:
        parsed = law.parse_answer(answer)
        challenge = law.challenge_of(parsed)
        await _redeem(provider, caller, challenge, _REGISTRATION, subject)
        made = law.verify_registration(_party(provider), parsed, challenge=challenge)
        if await provider.registry.factors.passkey(made.credential_id) is not None:
            raise PasskeyRefused("this passkey is known already")
    except PasskeyRefused:
        raise Rejected(phrase("The passkey could not be set up. Try again, or choose another way.")) from None
    return made


async def _redeem(provider: Provider, caller: Caller, challenge: bytes, purpose: str, subject: str) -> None:
    try:
        await challenges.redeem(provider, challenge, purpose, subject, now=caller.now)
    except ForeignChallenge as error:
        raise PasskeyRefused("the challenge was not made for this page") from error
