"""The authorization endpoint (Spec 4.2, D15, D16, D30).

A request was pushed before, or its parameters come in the query; the latter only of a client that is registered for
such requests (RFC 6749 §4.1.1, R-10.2). Trust is a position here: what fails before the redirect URI is proven is
raised and becomes a page; after that line errors are returned as answers for the client.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows import namespaces
from corpid.flows.authentication import browsers, interactions
from corpid.flows.oauth import authorization, pending_requests
from corpid.flows.oauth.authorization import AuthorizationAttempt, ImmediateResponse, InteractionRedirect
from corpid.flows.oauth.client_authentication import no_key_set, not_admitted
from corpid.flows.oauth.encryption_keys import id_token_key
from corpid.flows.oauth.par import REQUEST_URI_PREFIX
from corpid.flows.oauth.pending_requests import PendingRequest
from corpid.jose.encoding import base64url
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.limits import (
    HEAD_BYTES,
    INTERACTIONS_PER_REQUEST,
    REQUEST_URI_SECONDS,
    STATE_CHARACTERS,
    UI_LOCALES_CHARACTERS,
)
from corpid.rules.oauth import authorization_request, authorization_response, client_registration, parameters
from corpid.rules.oauth.authorization_request import REQUEST_PARAMETERS
from corpid.rules.oauth.authorization_response import ReturnAddress
from corpid.rules.oauth.discovery import PAR_PATH
from corpid.rules.oauth.errors import InvalidRequest, InvalidRequestURI, OAuthError, RequestOf
from corpid.rules.oauth.explanations import clip_text, list_values, without_query
from corpid.rules.oauth.parameters import require_parameter
from corpid.rules.oauth.records import RequestingClient
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.oauth.authorization import SsoResult
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import AuthorizationRequest, Client

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
) -> InteractionRedirect | ImmediateResponse:
    """Answer an authorization request.

    `may_complete` is false for a prefetch and for HEAD (D30).

    `held` is the unstored sign-in in the browser's cookie, if any (`pending_requests`).

    A request_uri of ours leads to the pushed request, whatever else the query holds. Without one, a client that
    is registered for it is answered on what the query holds. Raises InvalidRequest and InvalidRequestURI, which
    become pages that name the client once it is known, also if another browser has claimed the request.
    Source: Spec 4.2, D15, D16
    """
    sent = parameters.parse(query, AUTHORIZATION_PARAMETERS)
    client_id = require_parameter(sent, "client_id")
    known = await context.provider.registry_cache.known_client(client_id, context.now)
    client = context.provider.registry_cache.admit_client(known)
    if client is None:
        raise _not_admitted(known, client_id, context.provider.policy.issuer_id)
    try:
        return await _of_client(context, client, query, sent=sent, cookie=cookie, held=held, may_complete=may_complete)
    except OAuthError as error:
        raise error.with_client(RequestingClient(client=client))  # noqa: B904 - it is the same


def _not_admitted(known: Client | None, client_id: str, issuer_id: str) -> InvalidRequest:
    reason, explanation = not_admitted(known, client_id, issuer_id)
    error = InvalidRequest(
        Reason.CLIENT_ID_UNKNOWN if known is None else reason,
        "client_id is not known here, or the client is disabled",
        sentence=phrase(
            "The service you came from is not registered here. This is a fault at that service, not yours."
        ),
    )
    error.explanation = explanation
    return error


async def _of_client(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    sent: dict[str, str],
    cookie: str | None,
    held: str | None,
    may_complete: bool,
) -> InteractionRedirect | ImmediateResponse:
    policy = context.provider.policy
    ours = policy.pushed is not None and sent.get("request_uri", "").startswith(REQUEST_URI_PREFIX)
    if policy.query is not None and not ours:
        if client_registration.serves(client, policy.query, context.today):
            return await _with_query(
                context, client, query, generation=policy.query, cookie=cookie, held=held, may_complete=may_complete
            )
        if "request_uri" not in sent:
            way_on = ": push the request" if policy.pushed is not None else ""
            raise InvalidRequest(
                Reason.QUERY_NOT_REGISTERED,
                f"this client is not registered to send its request in the query, or its end date has passed{way_on}",
            ).with_cause(
                expected=policy.query.name,
                registered=f"{client_registration.registered_generations(client)}, legacy_until {client.legacy_until or 'none'}",
            )
    if "request_uri" not in sent:
        raise _not_pushed(query, policy.base_url)
    return await _with_reference(context, client, sent["request_uri"], cookie=cookie, may_complete=may_complete)


def _not_pushed(query: bytes, base_url: str) -> InvalidRequest:
    """The refusal of a request without request_uri.

    Its reason depends on what else the query has.
    """
    found = sorted(
        name
        for name in REQUEST_PARAMETERS - AUTHORIZATION_PARAMETERS
        if parameters.lone(query, name, longest=HEAD_BYTES)
    )
    if not found:
        return InvalidRequest(Reason.PARAMETER_MISSING, "parameter request_uri is missing")
    return InvalidRequest(Reason.REQUEST_NOT_PUSHED, "parameter request_uri is missing").with_cause(
        cause="the request was not pushed: request_uri is missing",
        received=list_values(found),
        expected=f"client_id, and the request_uri of POST {base_url}{PAR_PATH}",
    )


async def _with_reference(
    context: RequestContext, client: Client, request_uri: str, *, cookie: str | None, may_complete: bool
) -> InteractionRedirect | ImmediateResponse:
    if not request_uri.startswith(REQUEST_URI_PREFIX):
        raise InvalidRequestURI(Reason.REQUEST_URI_FOREIGN, _NOT_FOUND).with_cause(
            cause="request_uri is not one that this provider issues",
            received="a URL" if "://" in request_uri else "a text of another form",
            expected=f"{REQUEST_URI_PREFIX}...",
        )
    reference = request_uri.removeprefix(REQUEST_URI_PREFIX)
    issuer = context.provider.policy.base_url
    entry = namespaces.PUSHED_REQUEST.entry(issuer, client.client_id, reference)
    completion_of = namespaces.COMPLETED.entry(issuer, client.client_id, reference)
    claim = namespaces.CLAIM.entry(issuer, client.client_id, reference)
    looked_at = await browsers.recognise_with(context, cookie, entry, completion_of, claim)
    browser, pushed, completed, owner = looked_at
    if pushed is None:
        interaction = await authorization.find_earlier_interaction(context, client.client_id, reference, browser)
        if interaction is None:
            raise _no_request(context, context.provider.issued.client_of_request(reference), client.client_id)
        return InteractionRedirect(interaction_id=interaction.interaction_id, cookie=None)
    if pushed.request.redirect_uri not in client.redirect_uris:
        raise InvalidRequest(
            Reason.REDIRECT_URI_NOT_REGISTERED, "redirect_uri is no longer registered for this client"
        ).with_cause(
            received=without_query(pushed.request.redirect_uri),
            registered=list_values(map(without_query, client.redirect_uris)),
        )
    # The redirect URI is proven: from here on errors are the client's to know.
    arriving = AuthorizationAttempt(
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
    return await authorization.answer_errors(
        context,
        requesting_client,
        address,
        _enter_pushed(context, arriving, in_time=in_time, completed=completed is not None, owner=owner),
    )


def _no_request(context: RequestContext, pushed_by: str | None, client_id: str) -> InvalidRequestURI:
    """The refusal of a request_uri that is not stored for this client.

    `pushed_by` is the client that pushed it, None if this process does not know.
    """
    if pushed_by is not None and pushed_by != client_id:
        return InvalidRequestURI(Reason.REQUEST_URI_OF_ANOTHER_CLIENT, _NOT_FOUND).with_cause(
            cause="request_uri was pushed by another client",
            received=f"client_id {clip_text(client_id)}",
            expected=clip_text(pushed_by),
        )
    known = "was pushed, but is no longer stored" if pushed_by else "is unknown, and this process did not issue it"
    return InvalidRequestURI(
        Reason.REQUEST_URI_UNKNOWN, _NOT_FOUND, sentence=interactions.loss_reason(context)
    ).with_cause(cause=f"request_uri {known}", expected=f"an arrival within {REQUEST_URI_SECONDS} s of the push")


async def _enter_pushed(
    context: RequestContext, arriving: AuthorizationAttempt, *, in_time: bool, completed: bool, owner: str | None
) -> InteractionRedirect | ImmediateResponse:
    """Find or open the interaction of a request that was pushed.

    Its client had authenticated then.
    """
    with RequestOf(arriving.client.client_id):
        client_id, now = arriving.client.client_id, context.now
        await context.provider.registry_cache.refuse_maintenance(now)
        result = await authorization.sso_result(context, arriving)
        if in_time and result.required_prompt is None and arriving.may_complete:
            return await authorization.complete_at_once(context, arriving.client, result, owner=owner)
        if completed:
            raise InvalidRequestURI(
                Reason.REQUEST_ALREADY_COMPLETED, "this request was already completed: push a new one"
            )
        before = await authorization.find_earlier_interaction(
            context, client_id, arriving.fingerprint, arriving.browser
        )
        if before is not None and now < before.expires_at:
            return InteractionRedirect(interaction_id=before.interaction_id, cookie=None)
        if not in_time:
            raise InvalidRequestURI(
                Reason.REQUEST_URI_EXPIRED, f"request_uri has expired: it is valid for {REQUEST_URI_SECONDS} seconds"
            )
        authorization.refuse_silence(arriving.request, result.required_prompt)
        return await _open_pushed(context, arriving, result)


async def _open_pushed(
    context: RequestContext, arriving: AuthorizationAttempt, result: SsoResult
) -> InteractionRedirect:
    client_id, issuer = arriving.client.client_id, context.provider.policy.base_url
    interaction = await authorization.add_user_name(context, result.interaction)
    opened = namespaces.INTERACTION_COUNT.entry(issuer, client_id, arriving.reference)
    here = namespaces.ARRIVAL.entry(issuer, client_id, arriving.fingerprint, interaction.browser_id)
    async with context.provider.transient.batch(context.now) as batch:
        if await context.counts.count(batch, opened) > INTERACTIONS_PER_REQUEST:
            raise InvalidRequestURI(
                Reason.REQUEST_IN_TOO_MANY_BROWSERS, "too many browsers have opened this request: push a new one"
            )
        # It travels with the claim of the request; if that fails, nobody knows its name, and it ends by itself.
        await interactions.save(context, batch, interaction)
        if not await here.add(batch, interaction.interaction_id):
            return InteractionRedirect(interaction_id=await here.get(batch) or "", cookie=None)
    return InteractionRedirect(interaction_id=interaction.interaction_id, cookie=result.cookie)


async def _with_query(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    generation: Generation,
    cookie: str | None,
    held: str | None,
    may_complete: bool,
) -> InteractionRedirect | ImmediateResponse:
    """Answer a request from the query, in its own response mode.

    `held` is the unstored sign-in in the browser's cookie, if any. Raises InvalidRequest, which becomes a page, until
    the redirect URI is proven.
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
    entering = _enter_with_query(
        context, client, query, generation=generation, cookie=cookie, held=held, visible=may_complete
    )
    return await authorization.answer_errors(context, requesting_client, address, entering)


async def _enter_with_query(
    context: RequestContext,
    client: Client,
    query: bytes,
    *,
    generation: Generation,
    cookie: str | None,
    held: str | None,
    visible: bool,
) -> InteractionRedirect | ImmediateResponse:
    await context.provider.registry_cache.refuse_maintenance(context.now)
    request = _validated_query(context, client, query, generation)
    await _key_at_hand(context, client, generation)
    browser = await browsers.recognise(context, cookie)
    arriving = AuthorizationAttempt(
        client=client,
        request=request,
        reference=context.provider.new_id(),
        fingerprint=f"query:{base64url(sha256(query).digest())}",
        browser=browser,
        may_complete=visible,
    )
    result = await authorization.sso_result(context, arriving)
    if result.required_prompt is None and visible:
        return await authorization.complete_at_once(context, client, result)
    before = await authorization.find_earlier_interaction(context, client.client_id, arriving.fingerprint, browser)
    if before is not None and before.outcome is None and context.now < before.expires_at:
        return InteractionRedirect(interaction_id=before.interaction_id, cookie=None)
    authorization.refuse_silence(request, result.required_prompt)
    return await _open_with_query(context, arriving, result, held)


def _validated_query(
    context: RequestContext, client: Client, query: bytes, generation: Generation
) -> AuthorizationRequest:
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

    Nobody need sign in for nothing.
    """
    try:
        keys = await context.provider.client_keys.current(client, now=context.now)
    except KeySetUnavailable as error:
        raise no_key_set(str(error)) from None
    await id_token_key(context, client, generation, keys, refusal=InvalidRequest)


async def _open_with_query(
    context: RequestContext, arriving: AuthorizationAttempt, result: SsoResult, held: str | None
) -> InteractionRedirect:
    """Begin a sign-in, or store the one the browser already holds.

    It holds one if it was given one for the same query.
    """
    begun = PendingRequest(
        interaction=await authorization.add_user_name(context, result.interaction), fingerprint=arriving.fingerprint
    )
    if arriving.browser is None:
        return InteractionRedirect(
            interaction_id=begun.interaction.interaction_id,
            cookie=result.cookie,
            held=pending_requests.encrypt_pending(context, begun),
            requesting_client=RequestingClient(client=arriving.client, ui_locales=arriving.request.ui_locales),
        )
    before = await pending_requests.open_pending(context, arriving.browser, held)
    if before is not None and (before.fingerprint, before.interaction.request) == (
        arriving.fingerprint,
        arriving.request,
    ):
        begun = before
    await pending_requests.store(context, arriving.browser, begun)
    return InteractionRedirect(interaction_id=begun.interaction.interaction_id, cookie=None)
