"""The authorization endpoint (Spec 4.2, D15, D16, D30).

Trust is a position here: what fails before the redirect URI is proven is raised and becomes a page;
after that line errors are returned as answers for the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows import namespaces
from corpid.flows.authentication import browsers, interactions
from corpid.flows.oauth import arrival, query_request
from corpid.flows.oauth.arrival import Answered, Arrival, Entered
from corpid.flows.oauth.par import REQUEST_URI_PREFIX
from corpid.rules.limits import INTERACTIONS_PER_REQUEST, REQUEST_URI_SECONDS
from corpid.rules.oauth import authorization_response, client_registration, parameters
from corpid.rules.oauth.errors import InvalidRequest, InvalidRequestURI, OAuthError, RequestOf
from corpid.rules.oauth.parameters import required
from corpid.rules.oauth.records import RequestingClient
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.oauth.arrival import SsoResult
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.records import Client

AUTHORIZATION_PARAMETERS: Final = frozenset({"client_id", "request_uri"})
_NOT_FOUND: Final = (
    "this link to sign in is not known here or has expired: go back to where you came from and start again"
)


async def arrive(
    context: RequestContext,
    query: bytes,
    *,
    cookie: str | None,
    held: str | None = None,
    may_complete: bool,
) -> Entered | Answered:
    """Answer an authorization request.

    `may_complete` is false for a prefetch and for HEAD (D30).

    `held` is the unstored sign-in in the browser's cookie, if any (`held_arrivals`).

    A request_uri of ours leads to the pushed request, whatever else the query holds. Without one, a client that
    is registered for it is answered on what the query holds. Raises InvalidRequest and InvalidRequestURI, which
    become pages that name the client once it is known, also if another browser has claimed the request.
    Source: Spec 4.2, D15, D16
    """
    sent = parameters.parse(query, AUTHORIZATION_PARAMETERS)
    client = await context.provider.registry_cache.client(required(sent, "client_id"), context.now)
    if client is None:
        raise InvalidRequest(
            Reason.CLIENT_ID_UNKNOWN,
            "client_id is not known here, or the client is disabled",
            sentence=phrase("The service that you came from is not known here."),
        )
    try:
        return await _of_client(context, client, query, sent=sent, cookie=cookie, held=held, may_complete=may_complete)
    except OAuthError as error:
        raise error.of(RequestingClient(client=client))  # noqa: B904 - it is the same


async def _of_client(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    sent: dict[str, str],
    cookie: str | None,
    held: str | None,
    may_complete: bool,
) -> Entered | Answered:
    policy = context.provider.policy
    ours = policy.pushed is not None and sent.get("request_uri", "").startswith(REQUEST_URI_PREFIX)
    if policy.query is not None and not ours:
        if client_registration.serves(client, policy.query, context.today):
            return await query_request.arrive(
                context, client, query, generation=policy.query, cookie=cookie, held=held, may_complete=may_complete
            )
        if "request_uri" not in sent:
            way_on = ": push the request" if policy.pushed is not None else ""
            raise InvalidRequest(
                Reason.QUERY_NOT_REGISTERED,
                f"this client is not registered to send its request in the query, or its end date has passed{way_on}",
            )
    return await _with_reference(
        context, client, required(sent, "request_uri"), cookie=cookie, may_complete=may_complete
    )


async def _with_reference(
    context: RequestContext, client: Client, request_uri: str, *, cookie: str | None, may_complete: bool
) -> Entered | Answered:
    if not request_uri.startswith(REQUEST_URI_PREFIX):
        raise InvalidRequestURI(Reason.REQUEST_URI_UNKNOWN, _NOT_FOUND)
    reference = request_uri.removeprefix(REQUEST_URI_PREFIX)
    browser = await browsers.recognise(context, cookie)
    entry = namespaces.PUSHED_REQUEST.entry(context.provider.policy.base_url, client.client_id, reference)
    pushed = await entry.look(context.provider.transient, now=context.now)
    if pushed is None:
        interaction = await arrival.before(context, client.client_id, reference, browser)
        if interaction is None:
            raise InvalidRequestURI(Reason.REQUEST_URI_UNKNOWN, _NOT_FOUND)
        return Entered(interaction_id=interaction.interaction_id, cookie=None)
    if pushed.request.redirect_uri not in client.redirect_uris:
        raise InvalidRequest(Reason.REDIRECT_URI_NOT_REGISTERED, "redirect_uri is no longer registered for this client")
    # The redirect URI is proven: from here on errors are the client's to know.
    arriving = Arrival(
        client=client,
        request=pushed.request,
        reference=reference,
        fingerprint=reference,
        browser=browser,
        may_complete=may_complete,
    )
    requesting_client = RequestingClient(client=client, ui_locales=pushed.request.ui_locales)
    address = authorization_response.of_request(pushed.request, iss=context.provider.policy.iss_of_callback)
    in_time = context.now < pushed.pushed_at + REQUEST_URI_SECONDS
    return await arrival.answered(
        context, requesting_client, address, _enter_pushed(context, arriving, in_time=in_time)
    )


async def _enter_pushed(context: RequestContext, arriving: Arrival, *, in_time: bool) -> Entered | Answered:
    """As `_enter`; the client had authenticated when it pushed the request."""
    with RequestOf(arriving.client.client_id):
        return await _enter(context, arriving, in_time=in_time)


async def _enter(context: RequestContext, arriving: Arrival, *, in_time: bool) -> Entered | Answered:
    client_id, now = arriving.client.client_id, context.now
    await context.provider.registry_cache.refuse_maintenance(now)
    result = await arrival.sso_result(context, arriving)
    if in_time and result.required_prompt is None and arriving.may_complete:
        return await arrival.complete_at_once(context, arriving.client, result)
    completed = namespaces.COMPLETED.entry(context.provider.policy.base_url, client_id, arriving.reference)
    if await completed.look(context.provider.transient, now=now) is not None:
        raise InvalidRequestURI(Reason.REQUEST_ALREADY_COMPLETED, "this request was already completed: push a new one")
    before = await arrival.before(context, client_id, arriving.fingerprint, arriving.browser)
    if before is not None and now < before.expires_at:
        return Entered(interaction_id=before.interaction_id, cookie=None)
    if not in_time:
        raise InvalidRequestURI(
            Reason.REQUEST_URI_EXPIRED, f"request_uri has expired: it is valid for {REQUEST_URI_SECONDS} seconds"
        )
    arrival.refuse_silence(arriving.request, result.required_prompt)
    return await _open(context, arriving, result)


async def _open(context: RequestContext, arriving: Arrival, result: SsoResult) -> Entered:
    client_id, issuer = arriving.client.client_id, context.provider.policy.base_url
    interaction = await arrival.named(context, result.interaction)
    opened = namespaces.INTERACTION_COUNT.entry(issuer, client_id, arriving.reference)
    here = namespaces.ARRIVAL.entry(issuer, client_id, arriving.fingerprint, interaction.browser_id)
    async with context.provider.transient.unit(context.now) as unit:
        if await opened.count(unit) > INTERACTIONS_PER_REQUEST:
            raise InvalidRequestURI(
                Reason.REQUEST_IN_TOO_MANY_BROWSERS, "too many browsers have opened this request: push a new one"
            )
        if not await here.add(unit, interaction.interaction_id):
            return Entered(interaction_id=await here.get(unit) or "", cookie=None)
        await interactions.save(context, unit, interaction)
    return Entered(interaction_id=interaction.interaction_id, cookie=result.cookie)
