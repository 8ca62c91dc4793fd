"""Signing in with a passkey: both factors at once and no user name, or the second one beside a password (D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import passkeys, second_factor, signed_in, throttle
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected, event
from corpid.flows.ways import Way
from corpid.protocol import assurance
from corpid.protocol.passkeys import PasskeyRefused
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from corpid.directory.records import Passkey, User
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider
    from corpid.flows.sign_in import Visit
    from corpid.ports import AuditEvent
    from corpid.texts import Phrase

_ALONE: Final = "sign-in"
_BESIDE_A_PASSWORD: Final = "second-factor"


def _purpose(interaction: Interaction) -> str:
    return _BESIDE_A_PASSWORD if interaction.user_id else _ALONE


def options(provider: Provider, visit: Visit, *, allowed: Iterable[Passkey] = ()) -> str:
    """The JSON that a page of the sign-in gives the browser, empty where passkeys do not work; spends nothing.

    After the password `allowed` are those of the person (D45, D46).
    """
    interaction = visit.interaction
    return passkeys.authentication_options(provider, _purpose(interaction), interaction.interaction_id, allowed=allowed)


async def submit_passkey(provider: Provider, caller: Caller, visit: Visit, *, answer: str) -> Visit:
    """A browser's answer, as JSON; returns the visit as it is now, with a new cookie value.

    After the password it has to be a passkey of the same person. Whatever is wrong, they read one sentence.
    Raises Rejected, Throttled, StaleStep, OtherBrowser. Source: WebAuthn §7.2, D15, D45, D46
    """
    interaction = visit.interaction
    if interaction.signed_in:
        raise StaleStep
    await throttle.attempt_unguessable(provider, caller)
    known = (await second_factor.person(provider, caller, visit)).user if interaction.user_id else None
    user = known
    try:
        claim = await passkeys.claimed(provider, answer)
        user = known or claim.user
        owner, used = await passkeys.proved(
            provider,
            caller,
            claim,
            purpose=_purpose(interaction),
            subject=interaction.interaction_id,
            entry_of=lambda owner: _event(caller, visit, owner, "ok"),
            only=interaction.user_id,
        )
    except PasskeyRefused as refusal:
        await _refused(provider, caller, visit, user, refusal)
        raise Rejected(_sentence(interaction)) from None
    shown = await _shown(provider, visit, owner, used)
    return await signed_in.complete(provider, caller, visit, shown)


async def _shown(provider: Provider, visit: Visit, owner: User, used: Passkey) -> signed_in.Shown:
    if visit.standing is not None:
        credentials, amr = visit.standing.credentials, assurance.PASSWORD_AND_PASSKEY
        return signed_in.Shown(user=owner, credentials=credentials, amr=amr, passkey=used.credential_id)
    credentials = await provider.registry.factors.credentials(owner.user_id)
    return signed_in.Shown(user=owner, credentials=credentials, amr=assurance.PASSKEY, passkey=used.credential_id)


def _sentence(interaction: Interaction) -> Phrase:
    if interaction.user_id:
        return phrase("This passkey was not accepted. Use another one of this account, or another way.")
    return phrase("This passkey was not accepted. Use another one, or your user name and password.")


def _event(caller: Caller, visit: Visit, user: User | None, outcome: Literal["ok", "refused"]) -> AuditEvent:
    if visit.interaction.user_id:
        return second_factor.event_of(caller, visit, user, Way.PASSKEY, outcome)
    return event(caller, visit, user, "sign_in.passkey", outcome)


async def _refused(
    provider: Provider, caller: Caller, visit: Visit, user: User | None, refusal: PasskeyRefused
) -> None:
    entry = _event(caller, visit, user, "refused")
    detail = {**entry.detail, "reason": passkeys.reason(refusal)}
    await provider.registry.audit.write(msgspec.structs.replace(entry, detail=detail), now=caller.now)
