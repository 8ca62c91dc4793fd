"""A browser's unfinished sign-in: its record and its steps.

An interaction is rewritten only by the request that claimed its next step with `add`; any later request gets the page
that is current by then. Source: D15
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from corpid.flows import namespaces
from corpid.rules.authentication.sign_in import Interaction, StaleStep, fingerprint
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Credentials
    from corpid.stores.transient import TransientBatch
    from corpid.texts import Phrase


class HasSerial(Protocol):
    """A record that moves by steps, each of which raises its serial."""

    @property
    def serial(self) -> int: ...


Moving = TypeVar("Moving", bound=HasSerial)


def same_factors(interaction: Interaction, credentials: Credentials, *, owns_passkey: bool) -> bool:
    """Return whether the owner still has the factors that were verified.

    `credentials` are the owner's now; `owns_passkey`: whether they own the passkey that was shown, if any. Source: D50
    """
    return (owns_passkey or not interaction.passkey) and fingerprint(credentials) == interaction.factors


INTERACTION: Final = namespaces.INTERACTION.holding(Interaction)
_LOST: Final = phrase("This site lost the sign-ins that were under way a few minutes ago. This is not your fault.")


async def load(context: RequestContext, interaction_id: str) -> Interaction | None:
    """Load an interaction, also for a while after its end.

    The result is None if there is none. Source: D15
    """
    stored = INTERACTION.entry(context.provider.policy.base_url, interaction_id)
    return await stored.read(context.provider.transient, now=context.now)


def loss_reason(context: RequestContext) -> Phrase | None:
    """The reason of a sign-in that is not found after a loss.

    None if that was not in the last minutes. Source: D67
    """
    return _LOST if context.provider.transient.loss.may_have_ended_sign_in(context.now) else None


async def save(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> None:
    """Store an interaction; it outlives its end.

    A page can then report its outcome. One without a first factor expires soon, however often it is written, since any
    stranger can begin one. Source: D15
    """
    stored = INTERACTION.entry(context.provider.policy.base_url, interaction.interaction_id)
    await stored.put(batch, interaction, seconds=None if interaction.user_id else namespaces.UNTOUCHED_SECONDS)


async def begin(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> bool:
    """Store an interaction unless it exists; return whether it was new.

    It is stored for as long as by `save`. Source: D15
    """
    stored = INTERACTION.entry(context.provider.policy.base_url, interaction.interaction_id)
    return await stored.add(batch, interaction, seconds=None if interaction.user_id else namespaces.UNTOUCHED_SECONDS)


async def claim_step(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> None:
    """Claim the next step of an interaction whose request is unanswered, once.

    Raises StaleStep for every request except the first, and if the sign-in was completed in another page or tab.
    Source: D15
    """
    answered = completion_of(context, interaction)
    await claim_step_of(context, batch, INTERACTION, interaction.interaction_id, interaction, unless=answered)


async def release_step(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> None:
    """Release a claimed step, so that it can be claimed again.

    It also works on an engine that does not roll back its batches. Source: D15
    """
    issuer = context.provider.policy.base_url
    await namespaces.STEP.entry(issuer, interaction.interaction_id, str(interaction.serial)).take(batch)


async def claim_step_of(
    context: RequestContext,
    batch: TransientBatch,
    kind: namespaces.Namespace[Moving],
    name: str,
    looked_at: Moving,
    *,
    unless: Entry[Any] | None = None,
) -> None:
    """Claim the next step of the record `name` in `kind`, once.

    The record must be unchanged since it was loaded, and there must be no entry `unless`. A claim lasts a minute, so
    that a step whose request died can be claimed after that. A record loaded within half of that time, with this
    context, is not loaded again: a request that moved it on since then has a claim that still exists. Raises StaleStep
    for every request except the first. Source: D15
    """
    issuer = context.provider.policy.base_url
    step, met = namespaces.STEP.entry(issuer, name, str(looked_at.serial)), None
    if unless is None:
        is_first = await step.add(batch)
    else:
        is_first, met = await namespaces.pipeline(batch, step.adding(), unless.getting())
    if not is_first or met is not None:
        raise StaleStep
    if 0 <= context.provider.clock() - context.now < namespaces.STEP.seconds / 2:
        return
    stored = await kind.entry(issuer, name).get(batch)
    if stored is None or stored.serial != looked_at.serial:
        raise StaleStep


async def move(context: RequestContext, before: Interaction, after: Interaction) -> None:
    """Claim the next step and store its result.

    Raises StaleStep. Source: D15
    """
    async with context.provider.transient.batch(context.now) as batch:
        await claim_step(context, batch, before)
        await save(context, batch, after)


def claim_of(context: RequestContext, interaction: Interaction) -> Entry[str]:
    """Return the claim of an interaction's request.

    Its value is the browser id of its owner. Source: D15
    """
    issuer = context.provider.policy.base_url
    return namespaces.CLAIM.entry(issuer, interaction.request.client_id, interaction.reference)


def completion_of(context: RequestContext, interaction: Interaction) -> Entry[str]:
    """Return the completion of an interaction's request.

    Its value names the interaction that was completed, and when. Source: D15
    """
    issuer = context.provider.policy.base_url
    return namespaces.COMPLETED.entry(issuer, interaction.request.client_id, interaction.reference)


async def is_claimed(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> bool:
    """Return whether any browser has claimed the request (D15)."""
    return await claim_of(context, interaction).get(batch) is not None


async def claim_request(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> bool:
    """Claim the pushed request; return whether this browser owns it now.

    The first factor has claimed it, for longer than a sign-in can last; single sign-on has not. Source: D15
    """
    if interaction.user_id and not interaction.session_id:
        return True
    claim = claim_of(context, interaction)
    return await claim.add(batch, interaction.browser_id) or await claim.get(batch) == interaction.browser_id


def form_token(context: RequestContext, browser_id: str, form: str) -> str:
    """Return a new form token, `nonce.mac`, for browser and interaction.

    It is different each time. Two pages never hold the same one, so a person who opens one page learns nothing about
    the form of another. Source: D34, D35
    """
    nonce = context.provider.new_id()
    return f"{nonce}.{_form_mac(context, browser_id, form, nonce)}"


def is_form_token(context: RequestContext, token: str, browser_id: str, form: str) -> bool:
    """Return whether a form came from a page shown to this browser (D35)."""
    nonce, _, mac = token.partition(".")
    return hmac.compare_digest(mac.encode(), _form_mac(context, browser_id, form, nonce).encode())


def _form_mac(context: RequestContext, browser_id: str, form: str, nonce: str) -> str:
    return context.keys.mac("form", browser_id, form, nonce)
