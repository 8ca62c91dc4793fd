"""A browser's unfinished sign-in: its record, its steps, and how it begins.

An interaction is rewritten only by the request that claimed its next step with `add`; any later request gets the page
that is current by then.

Only a client can push a request, so an authorization attempt with one is stored at once. What a query asks for, and the
account, any stranger can ask for without end; so nothing is stored for a browser that may keep no cookies, and little
for others: such a sign-in is a pending request, held encrypted by the browser until its cookie returns.
Source: D15, D34
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from corpid.flows import encrypted_values, namespaces
from corpid.flows.authentication import browsers
from corpid.jose.encoding import MalformedToken
from corpid.rules.authentication.sign_in import Interaction, StaleStep, fingerprint
from corpid.rules.limits import ARRIVALS_PER_BROWSER
from corpid.rules.oauth.errors import TemporarilyUnavailable
from corpid.rules.oauth.refusals import Reason
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Credentials
    from corpid.stores.transient import TransientBatch

INTERACTION: Final = namespaces.INTERACTION.with_record(Interaction)
_LOST: Final = phrase("This site lost the sign-ins that were in progress a few minutes ago. This is not your fault.")
_PENDING_KIND: Final = "held arrival"
"""stays as it is: another word would make what browsers hold unreadable during an upgrade"""


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


async def load(context: RequestContext, interaction_id: str) -> Interaction | None:
    """Load an interaction, also for a while after its end.

    The result is None if there is none. Source: D15
    """
    stored = INTERACTION.entry(context.provider.policy.base_url, interaction_id)
    return await stored.read(context.provider.transient, now=context.now)


def explain_loss(context: RequestContext) -> Phrase | None:
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


class PendingRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A sign-in that was begun and is not stored yet."""

    interaction: Interaction
    fingerprint: str = ""
    """what its browser asked with: with the same again it comes to the same sign-in; empty: to another one"""


def encrypt_pending(context: RequestContext, pending: PendingRequest) -> str:
    """Encrypt a pending request for its browser to hold.

    Returns URL-safe text. The key serves this one alone, and opens it only together with the browser's identifier.
    Source: D34
    """
    interaction = pending.interaction
    interaction_id, bound_to = interaction.interaction_id, (interaction.browser_id,)
    sealed = encrypted_values.encrypt_value(
        context, msgspec.msgpack.encode(pending), _PENDING_KIND, interaction_id, bound_to=bound_to
    )
    return f"{interaction_id}.{sealed}"


def names_pending(held: str | None, interaction_id: str) -> bool:
    """Return whether the value a browser holds names this sign-in.

    It proves nothing. Source: D34
    """
    return bool(held) and str(held).partition(".")[0] == interaction_id


async def open_pending(context: RequestContext, browser: Browser, held: str | None) -> PendingRequest | None:
    """Read the browser's unstored sign-in, if its ten minutes have not passed.

    None for anything else. Source: D15, D34
    """
    if not held:
        return None
    interaction_id, _, sealed = held.partition(".")
    try:
        opened = encrypted_values.decrypt_value(
            context, sealed, _PENDING_KIND, interaction_id, bound_to=(browser.browser_id,)
        )
    except MalformedToken:
        return None
    pending = msgspec.msgpack.decode(opened, type=PendingRequest)
    if context.now >= pending.interaction.expires_at:
        return None
    return pending if await load(context, interaction_id) is None else None


async def find_pending(
    context: RequestContext, interaction_id: str, *, cookie: str | None, held: str
) -> tuple[Browser, PendingRequest] | None:
    """The unstored sign-in with this identifier, and its browser.

    None for another browser's, for one that is too late, and if it is stored already. Source: D15, D34
    """
    browser = await browsers.recognise(context, cookie)
    if browser is None or not names_pending(held, interaction_id):
        return None
    pending = await open_pending(context, browser, held)
    return None if pending is None else (browser, pending)


async def store_pending(context: RequestContext, browser: Browser, pending: PendingRequest) -> None:
    """Store a pending request once its browser has returned a cookie.

    A second time changes nothing.

    A browser without an earlier sign-in is counted with its network, and with all of them. Raises TooManyRequests,
    TemporarilyUnavailable. Source: D15, D34, D47
    """
    interaction, issuer = pending.interaction, context.provider.policy.base_url
    if not browser.had_sign_in:
        await context.provider.rate_limits.arrival(context.address, context.now, context.counts)
    async with context.provider.transient.batch(context.now) as batch:
        if not await begin(context, batch, interaction):
            return
        if pending.fingerprint:
            # The same may be asked for again after its sign-in has ended, and begins another one then.
            client_id = interaction.request.client_id
            here = namespaces.ARRIVAL.entry(issuer, client_id, pending.fingerprint, browser.browser_id)
            await here.put(batch, interaction.interaction_id, seconds=namespaces.UNTOUCHED_SECONDS)
        if not await _give_slot(context, batch, interaction):
            await INTERACTION.entry(issuer, interaction.interaction_id).take(batch)
            raise TemporarilyUnavailable(
                Reason.SIGN_INS_AT_ONCE, "this browser starts too many sign-ins at the same time: try again"
            )


async def _give_slot(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> bool:
    """Give a sign-in one of its browser's ten slots.

    False if others took them all at this moment.

    If every place is taken, the sign-in in one of them ends: one that is over, else the one that would end first.
    """
    issuer, name = context.provider.policy.base_url, interaction.interaction_id
    places = [
        namespaces.UNFINISHED.entry(issuer, interaction.browser_id, str(number))
        for number in range(ARRIVALS_PER_BROWSER)
    ]
    for place in places:
        if await place.add(batch, name):
            return True
    ages = {place: await _replacement_order(context, batch, await place.get(batch)) for place in places}
    for place in sorted(places, key=lambda each: ages[each]):
        replaced = await place.take(batch)
        if replaced is not None:
            await INTERACTION.entry(issuer, replaced).take(batch)
        if await place.add(batch, name):
            return True
    return False


async def _replacement_order(
    context: RequestContext, batch: TransientBatch, name: str | None
) -> tuple[bool, bool, float]:
    """Sort key of a browser's sign-ins, the first to be replaced first.

    Ended ones first, then those without a person, then those with one, each from the oldest.
    """
    issuer = context.provider.policy.base_url
    found = None if name is None else await INTERACTION.entry(issuer, name).get(batch)
    if found is None:
        return False, False, 0
    return found.outcome is None, bool(found.user_id), found.expires_at
