"""Authorization requests whose parameters come in the query.

Only a client that is registered for such requests gets here. As in `authorize`, trust is a position.
Source: RFC 6749 §4.1.1, R-10.2, decisions "order"
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from corpid.flows.authentication import browsers
from corpid.flows.oauth import arrival, held_arrivals
from corpid.flows.oauth.arrival import Arrival, Entered
from corpid.flows.oauth.client_authentication import no_key_set
from corpid.flows.oauth.held_arrivals import HeldArrival
from corpid.flows.oauth.token import id_token_key
from corpid.jose.encoding import base64url
from corpid.ports import KeySetUnavailable
from corpid.rules.limits import STATE_CHARACTERS, UI_LOCALES_CHARACTERS
from corpid.rules.oauth import authorization_request, client_registration, parameters
from corpid.rules.oauth.authorization_request import REQUEST_PARAMETERS
from corpid.rules.oauth.authorization_response import ReturnAddress
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.records import RequestingClient

if TYPE_CHECKING:
    from corpid.flows.oauth.arrival import Answered, SsoResult
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import AuthorizationRequest, Client


async def arrive(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    generation: Generation,
    cookie: str | None,
    held: str | None,
    may_complete: bool,
) -> Entered | Answered:
    """Answer a request from the query, in its own response mode.

    `held` is the unstored sign-in in the browser's cookie, if any. Raises InvalidRequest, which becomes a page, until
    the redirect URI is proven. Source: R-10.2, D14, D16
    """
    redirect_uri = authorization_request.registered_redirect_uri(parameters.parse(query, {"redirect_uri"}), client)
    # The redirect URI is proven: from here on errors are the client's to know.
    address = ReturnAddress(
        redirect_uri=redirect_uri,
        mode=authorization_request.mode_of_answer(query, generation),
        state=parameters.lone(query, "state", longest=STATE_CHARACTERS),
        iss=context.provider.policy.iss_of_callback,
    )
    wished = parameters.lone(query, "ui_locales", longest=UI_LOCALES_CHARACTERS) or ""
    requesting_client = RequestingClient(client=client, ui_locales=tuple(wished.split()))
    entering = _enter(context, client, query, generation=generation, cookie=cookie, held=held, visible=may_complete)
    return await arrival.answered(context, requesting_client, address, entering)


async def _enter(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    generation: Generation,
    cookie: str | None,
    held: str | None,
    visible: bool,
) -> Entered | Answered:
    await context.provider.registry_cache.refuse_maintenance(context.now)
    request = _validated(context, client, query, generation)
    await _key_at_hand(context, client, generation)
    browser = await browsers.recognise(context, cookie)
    arriving = Arrival(
        client=client,
        request=request,
        reference=context.provider.new_id(),
        fingerprint=f"query:{base64url(sha256(query).digest())}",
        browser=browser,
        may_complete=visible,
    )
    result = await arrival.sso_result(context, arriving)
    if result.required_prompt is None and visible:
        return await arrival.complete_at_once(context, client, result)
    before = await arrival.before(context, client.client_id, arriving.fingerprint, browser)
    if before is not None and before.outcome is None and context.now < before.expires_at:
        return Entered(interaction_id=before.interaction_id, cookie=None)
    arrival.refuse_silence(request, result.required_prompt)
    return await _open(context, arriving, result, held)


def _validated(context: RequestContext, client: Client, query: bytes, generation: Generation) -> AuthorizationRequest:
    return authorization_request.validate(
        parameters.parse(query, REQUEST_PARAMETERS),
        client,
        generation,
        jkt=None,
        acr_prefix=context.provider.policy.acr_prefix,
        pkce_optional=client_registration.pkce_optional(client, generation, context.today),
    )


async def _key_at_hand(context: RequestContext, client: Client, generation: Generation) -> None:
    """Refuse a request whose ID token could not be encrypted.

    Nobody need sign in for nothing. Source: D27
    """
    try:
        keys = await context.provider.client_keys.current(client, now=context.now)
    except KeySetUnavailable as error:
        raise no_key_set(context, str(error)) from None
    await id_token_key(context, client, generation, keys, refusal=InvalidRequest)


async def _open(context: RequestContext, arriving: Arrival, result: SsoResult, held: str | None) -> Entered:
    """Begin a sign-in, or store the one the browser already holds.

    It holds one if it was given one for the same query. Source: D15
    """
    begun = HeldArrival(interaction=await arrival.named(context, result.interaction), fingerprint=arriving.fingerprint)
    if arriving.browser is None:
        return Entered(
            interaction_id=begun.interaction.interaction_id,
            cookie=result.cookie,
            held=held_arrivals.seal(context, begun),
            requesting_client=RequestingClient(client=arriving.client, ui_locales=arriving.request.ui_locales),
        )
    before = await held_arrivals.waiting(context, arriving.browser, held)
    if before is not None and (before.fingerprint, before.interaction.request) == (
        arriving.fingerprint,
        arriving.request,
    ):
        begun = before
    await held_arrivals.store(context, arriving.browser, begun)
    return Entered(interaction_id=begun.interaction.interaction_id, cookie=None)
