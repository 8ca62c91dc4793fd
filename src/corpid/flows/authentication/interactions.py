"""A browser's unfinished sign-in: what is known so far, and how it moves on (D15).

An interaction is rewritten only by whoever claimed its next step with `add`; who comes second is shown
the page that is current now.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Protocol

import msgspec

from corpid.flows import namespaces
from corpid.rules.authentication.sign_in import Interaction, Outcome, StaleStep, fingerprint, fresh_expiry

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import TransientUnit
    from corpid.rules.authentication.person_factors import HeldFactors

__all__ = ["Interaction", "Outcome", "StaleStep", "fingerprint", "fresh_expiry"]


class HasSerial(Protocol):
    """What moves by steps; each raises its serial."""

    @property
    def serial(self) -> int: ...


def same_factors(interaction: Interaction, held: HeldFactors) -> bool:
    """Whether the factors that a sign-in was checked against are still its owner's, who holds these (D50)."""
    if interaction.passkey and all(each.credential_id != interaction.passkey for each in held.passkeys):
        return False
    return fingerprint(held.credentials) == interaction.factors


def key(context: RequestContext, interaction_id: str) -> bytes:
    """Where an interaction lives (D15)."""
    return namespaces.key(namespaces.INTERACTION, context.provider.policy.base_url, interaction_id)


def request_key(
    context: RequestContext, kind: namespaces.Namespace[bytes], client_id: str, reference: str, *more: str
) -> bytes:
    """Where something about a pushed request lives: its claim, its completion, an arrival (D15)."""
    return namespaces.key(kind, context.provider.policy.base_url, client_id, reference, *more)


async def load(context: RequestContext, interaction_id: str) -> Interaction | None:
    """An interaction, also for a while after its end; None where there was none (D15)."""
    value = await context.provider.transient.get(
        namespaces.INTERACTION.name, key(context, interaction_id), now=context.now
    )
    return None if value is None else msgspec.msgpack.decode(value, type=Interaction)


async def save(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> None:
    """Write an interaction; it outlives its end, so that a page can say what happened (D15).

    One in which nobody has shown a first factor ends soon, as often as it is written, since any stranger can begin one.
    """
    await unit.put(namespaces.INTERACTION.name, *_entry(context, interaction))


async def begin(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> bool:
    """Write an interaction unless it is there, as `keep` does; whether this was the first time (D15)."""
    where, value, seconds = _entry(context, interaction)
    return await unit.add(namespaces.INTERACTION.name, where, seconds, value)


def _entry(context: RequestContext, interaction: Interaction) -> tuple[bytes, bytes, float]:
    """Where an interaction is stored, what is, and for how many seconds."""
    seconds = namespaces.INTERACTION.seconds if interaction.user_id else namespaces.UNTOUCHED_SECONDS
    return key(context, interaction.interaction_id), msgspec.msgpack.encode(interaction), seconds


async def claim_step(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> None:
    """Claim the interaction's next step, once. Raises StaleStep for everybody but the first (D15)."""
    await claim_step_of(context, unit, namespaces.INTERACTION, interaction.interaction_id, interaction)


async def release_step(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> None:
    """Let the step be claimed anew that this unit has claimed in vain, also where a unit is not undone (D15)."""
    await unit.take(namespaces.STEP.name, _step_key(context, interaction.interaction_id, interaction))


def _step_key(context: RequestContext, name: str, looked_at: HasSerial) -> bytes:
    return namespaces.key(namespaces.STEP, context.provider.policy.base_url, name, str(looked_at.serial))


async def claim_step_of(
    context: RequestContext, unit: TransientUnit, kind: namespaces.Namespace[bytes], name: str, looked_at: HasSerial
) -> None:
    """Claim the next step of what is kept as `kind` under `name`, once: it must still be as it was looked at.

    A claim lasts a minute, so that a step whose request died can be taken then. Who has looked within half of that
    time, with this context, need not look again: whoever moved it on since has a claim that is still there.
    Raises StaleStep for everybody but the first (D15).
    """
    if not await unit.add(namespaces.STEP.name, _step_key(context, name, looked_at), namespaces.STEP.seconds):
        raise StaleStep
    if 0 <= context.provider.clock() - context.now < namespaces.STEP.seconds / 2:
        return
    stored = await unit.get(kind.name, namespaces.key(kind, context.provider.policy.base_url, name))
    if stored is None or msgspec.msgpack.decode(stored, type=type(looked_at)).serial != looked_at.serial:
        raise StaleStep


async def move(context: RequestContext, before: Interaction, after: Interaction) -> None:
    """Claim the next step and write where it leads. Raises StaleStep (D15)."""
    async with context.provider.transient.unit(context.now) as unit:
        await claim_step(context, unit, before)
        await save(context, unit, after)


def claim_key(context: RequestContext, interaction: Interaction) -> bytes:
    """Where the claim of an interaction's request lives (D15)."""
    return request_key(context, namespaces.CLAIM, interaction.request.client_id, interaction.reference)


async def is_claimed(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> bool:
    """Whether this browser or another one has claimed the request (D15)."""
    return await unit.get(namespaces.CLAIM.name, claim_key(context, interaction)) is not None


async def claim_request(context: RequestContext, unit: TransientUnit, interaction: Interaction) -> bool:
    """Claim the pushed request for this browser; whether it is this browser's now (D15).

    The first factor has claimed it, for longer than a sign-in can last; single sign-on has not.
    """
    if interaction.user_id and not interaction.session_id:
        return True
    claim = claim_key(context, interaction)
    owner = interaction.browser_id.encode()
    if await unit.add(namespaces.CLAIM.name, claim, namespaces.CLAIM.seconds, owner):
        return True
    return await unit.get(namespaces.CLAIM.name, claim) == owner


def form_token(context: RequestContext, browser_id: str, form: str) -> str:
    """A new token of a form, `nonce.mac`: bound to browser and interaction, and another one each time (D34, D35).

    Two pages never hold the same, so whoever opens a page knows nothing of the form that another one shows.
    """
    nonce = context.provider.new_id()
    return f"{nonce}.{_form_mac(context, browser_id, form, nonce)}"


def is_form_token(context: RequestContext, token: str, browser_id: str, form: str) -> bool:
    """Whether a form came from a page that this browser was shown (D35)."""
    nonce, _, mac = token.partition(".")
    return hmac.compare_digest(mac.encode(), _form_mac(context, browser_id, form, nonce).encode())


def _form_mac(context: RequestContext, browser_id: str, form: str, nonce: str) -> str:
    return context.keys.mac("form", browser_id, form, nonce)
