"""Unconfirmed sign-ins, held encrypted by the browser until its cookie returns.

Only a client can push a request, so an authorization attempt with one is stored at once. What a query asks for, and the account, any
stranger can ask for without end; so nothing is stored for a browser that may keep no cookies, and little for others.
Source: D15, D34
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import encrypted_values, namespaces
from corpid.flows.authentication import browsers, interactions
from corpid.jose.encoding import MalformedToken
from corpid.rules.authentication.sign_in import Interaction
from corpid.rules.limits import ARRIVALS_PER_BROWSER
from corpid.rules.oauth.errors import TemporarilyUnavailable
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.stores.transient import TransientBatch

_KIND: Final = "held arrival"
"""stays as it is: another word would make what browsers hold unreadable during an upgrade"""


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
        context, msgspec.msgpack.encode(pending), _KIND, interaction_id, bound_to=bound_to
    )
    return f"{interaction_id}.{sealed}"


def is_of(held: str | None, interaction_id: str) -> bool:
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
        opened = encrypted_values.decrypt_value(context, sealed, _KIND, interaction_id, bound_to=(browser.browser_id,))
    except MalformedToken:
        return None
    pending = msgspec.msgpack.decode(opened, type=PendingRequest)
    if context.now >= pending.interaction.expires_at:
        return None
    return pending if await interactions.load(context, interaction_id) is None else None


async def brought(
    context: RequestContext, interaction_id: str, *, cookie: str | None, held: str
) -> tuple[Browser, PendingRequest] | None:
    """The unstored sign-in with this identifier, and its browser.

    None for another browser's, for one that is too late, and if it is stored already. Source: D15, D34
    """
    browser = await browsers.recognise(context, cookie)
    if browser is None or not is_of(held, interaction_id):
        return None
    pending = await open_pending(context, browser, held)
    return None if pending is None else (browser, pending)


async def store(context: RequestContext, browser: Browser, pending: PendingRequest) -> None:
    """Store a pending request once its browser has returned a cookie.

    A second time changes nothing.

    A browser without an earlier sign-in is counted with its network, and with all of them. Raises TooManyRequests,
    TemporarilyUnavailable. Source: D15, D34, D47
    """
    interaction, issuer = pending.interaction, context.provider.policy.base_url
    if not browser.had_sign_in:
        await context.provider.rate_limits.arrival(context.address, context.now, context.counts)
    async with context.provider.transient.batch(context.now) as batch:
        if not await interactions.begin(context, batch, interaction):
            return
        if pending.fingerprint:
            # The same may be asked for again after its sign-in has ended, and begins another one then.
            client_id = interaction.request.client_id
            here = namespaces.ARRIVAL.entry(issuer, client_id, pending.fingerprint, browser.browser_id)
            await here.put(batch, interaction.interaction_id, seconds=namespaces.UNTOUCHED_SECONDS)
        if not await _list(context, batch, interaction):
            await interactions.INTERACTION.entry(issuer, interaction.interaction_id).take(batch)
            raise TemporarilyUnavailable(
                Reason.SIGN_INS_AT_ONCE, "this browser starts too many sign-ins at the same time: try again"
            )


async def _list(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> bool:
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
    ages = {place: await _age(context, batch, await place.get(batch)) for place in places}
    for place in sorted(places, key=lambda each: ages[each]):
        replaced = await place.take(batch)
        if replaced is not None:
            await interactions.INTERACTION.entry(issuer, replaced).take(batch)
        if await place.add(batch, name):
            return True
    return False


async def _age(context: RequestContext, batch: TransientBatch, name: str | None) -> tuple[bool, bool, float]:
    """Sort key of a browser's sign-ins, the first to be replaced first.

    Ended ones first, then those without a person, then those with one, each from the oldest.
    """
    issuer = context.provider.policy.base_url
    found = None if name is None else await interactions.INTERACTION.entry(issuer, name).get(batch)
    if found is None:
        return False, False, 0
    return found.outcome is None, bool(found.user_id), found.expires_at
