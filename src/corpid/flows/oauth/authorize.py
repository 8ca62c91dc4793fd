"""The authorization endpoint (Spec 4.2, D15, D16, D30).

A request was pushed before, or its parameters come in the query; the latter only of a client that is registered for
such requests (RFC 6749 §4.1.1, R-10.2). Trust is a position here: what fails before the redirect URI is proven is
raised and becomes a page; after that line errors are returned as answers for the client.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.authentication import browsers, completion, consents, entity_selection, interactions, sessions
from corpid.flows.authentication.browsers import Browser
from corpid.flows.authentication.interactions import PendingRequest
from corpid.flows.oauth.client_authentication import not_admitted
from corpid.flows.oauth.client_keys import current_keys, id_token_key
from corpid.flows.oauth.par import REQUEST_URI_PREFIX
from corpid.jose.encoding import base64url
from corpid.rules.authentication.records import Session
from corpid.rules.authentication.sign_in import Interaction, forbids_pages, fresh_expiry
from corpid.rules.directory import names
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import (
    HEAD_BYTES,
    INTERACTIONS_PER_REQUEST,
    REQUEST_URI_SECONDS,
    STATE_CHARACTERS,
    UI_LOCALES_CHARACTERS,
)
from corpid.rules.oauth import authorization_request, client_registration, parameters
from corpid.rules.oauth.authorization_request import (
    REQUEST_PARAMETERS,
    AuthorizationRequest,
    AuthorizationResponse,
    ReturnAddress,
)
from corpid.rules.oauth.discovery import PAR_PATH
from corpid.rules.oauth.errors import (
    AccessDenied,
    ConsentRequired,
    InteractionRequired,
    InvalidRequest,
    InvalidRequestURI,
    LoginRequired,
    OAuthError,
    RequestOf,
    ServerError,
    TemporarilyUnavailable,
    clip_text,
    list_values,
    without_query,
)
from corpid.rules.oauth.parameters import require_parameter
from corpid.rules.oauth.records import Client, RequestingClient
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.generations import Generation

AUTHORIZATION_PARAMETERS: Final = frozenset({"client_id", "request_uri"})
_NOT_FOUND: Final = (
    "this link to sign in is not known here or has expired: go back to where you came from and start again"
)


class InteractionRedirect(msgspec.Struct, frozen=True, kw_only=True):
    """Redirection to the interaction's page.

    `cookie` is a new value for it, if it needs one.
    """

    interaction_id: str
    cookie: str | None
    held: str = ""
    """the interaction, encrypted: nothing is stored of it until its browser has shown the cookie, together with this"""
    requesting_client: RequestingClient | None = None
    """None: the provider's own pages"""


class ImmediateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An immediate authorization response to the client.

    `failure` is what the log reports, if it is an error.
    """

    response: AuthorizationResponse
    requesting_client: RequestingClient
    failure: Exception | None = None
    interaction: Interaction | None = None
    """the sign-in that was completed, if one was"""


class AuthorizationAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A browser with an authorization request whose redirect URI is proven."""

    client: Client
    request: AuthorizationRequest
    reference: str
    """names the request among those of its client"""
    fingerprint: str
    """what this browser asked with: with the same again it comes to the same interaction"""
    browser: Browser | None
    may_complete: bool


class SsoResult(msgspec.Struct, frozen=True, kw_only=True):
    """The interaction a request would begin, and the prompt it requires."""

    interaction: Interaction
    required_prompt: OAuthError | None
    session: Session | None = None
    """of single sign-on, if it signs the interaction in"""
    cookie: str | None = None
    """a new value for a browser that is new"""


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
    `held` is the unstored sign-in in the browser's cookie, if any (`interactions`).
    A request_uri of ours leads to the pushed request, whatever else the query holds. Without one, a client that
    is registered for it is answered on what the query holds. Raises InvalidRequest and InvalidRequestURI, which
    become pages that name the client once it is known, also if another browser has claimed the request.
    Source: Spec 4.2, D15, D16
    """
    policy = context.provider.policy
    sent = parameters.parse(query, AUTHORIZATION_PARAMETERS)
    client_id = require_parameter(sent, "client_id")
    known = await context.provider.registry_cache.known_client(client_id, context.now)
    client = context.provider.registry_cache.admit_client(known)
    if client is None:
        reason, explanation = not_admitted(known, client_id, policy.issuer_id)
        error = InvalidRequest(
            Reason.CLIENT_ID_UNKNOWN if known is None else reason,
            "client_id is not known here, or the client is disabled",
            sentence=phrase(
                "The service you came from is not registered here. This is a fault at that service, not yours."
            ),
        )
        error.explanation = explanation
        raise error
    try:
        ours = policy.pushed is not None and sent.get("request_uri", "").startswith(REQUEST_URI_PREFIX)
        if policy.query is not None and not ours:
            if client_registration.serves(client, policy.query, context.today):
                return await _answer_query(
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
        return await _answer_pushed(context, client, sent["request_uri"], cookie=cookie, may_complete=may_complete)
    except OAuthError as error:
        raise error.with_client(RequestingClient(client=client))  # noqa: B904 - it is the same


def _not_pushed(query: bytes, base_url: str) -> InvalidRequest:
    """The refusal of a request without request_uri.

    Its reason depends on what else the query has.
    """
    found = {name for name in REQUEST_PARAMETERS if parameters.lone(query, name, longest=HEAD_BYTES)}
    if found <= AUTHORIZATION_PARAMETERS:
        return InvalidRequest(Reason.PARAMETER_MISSING, "parameter request_uri is missing")
    return InvalidRequest(Reason.REQUEST_NOT_PUSHED, "parameter request_uri is missing").with_cause(
        cause="the request was not pushed: request_uri is missing",
        received=list_values(sorted(found)),
        expected=f"client_id, and the request_uri of POST {base_url}{PAR_PATH}",
    )


async def _answer_pushed(
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
    found = await browsers.recognise_with(context, cookie, entry, completion_of, claim)
    browser, pushed, completed, owner = found
    if pushed is None:
        interaction = await _find_earlier_interaction(context, client.client_id, reference, browser)
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
    attempt = AuthorizationAttempt(
        client=client,
        request=pushed.request,
        reference=reference,
        fingerprint=reference,
        browser=browser,
        may_complete=may_complete,
    )
    requesting_client = RequestingClient(client=client, ui_locales=pushed.request.ui_locales)
    address = authorization_request.address_response(pushed.request, iss=context.provider.policy.iss_of_callback)
    in_time = context.now < pushed.pushed_at + REQUEST_URI_SECONDS
    return await _answer_errors(
        context,
        requesting_client,
        address,
        _enter_pushed(context, attempt, in_time=in_time, completed=completed is not None, owner=owner),
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
        Reason.REQUEST_URI_UNKNOWN, _NOT_FOUND, sentence=interactions.explain_loss(context)
    ).with_cause(cause=f"request_uri {known}", expected=f"an arrival within {REQUEST_URI_SECONDS} s of the push")


async def _enter_pushed(
    context: RequestContext, attempt: AuthorizationAttempt, *, in_time: bool, completed: bool, owner: str | None
) -> InteractionRedirect | ImmediateResponse:
    """Find or open the interaction of a request that was pushed.

    Its client had authenticated then.
    """
    with RequestOf(attempt.client.client_id):
        client_id, issuer, now = attempt.client.client_id, context.provider.policy.base_url, context.now
        await context.provider.registry_cache.refuse_maintenance(now)
        result = await _sso_result(context, attempt)
        if in_time and result.required_prompt is None and attempt.may_complete:
            return await _complete_at_once(context, attempt.client, result, owner=owner)
        if completed:
            raise InvalidRequestURI(
                Reason.REQUEST_ALREADY_COMPLETED, "this request was already completed: push a new one"
            )
        before = await _find_earlier_interaction(context, client_id, attempt.fingerprint, attempt.browser)
        if before is not None and now < before.expires_at:
            return InteractionRedirect(interaction_id=before.interaction_id, cookie=None)
        if not in_time:
            raise InvalidRequestURI(
                Reason.REQUEST_URI_EXPIRED, f"request_uri has expired: it is valid for {REQUEST_URI_SECONDS} seconds"
            )
        _refuse_silence(attempt.request, result.required_prompt)
        interaction = await _add_user_name(context, result.interaction)
        opened = namespaces.INTERACTION_COUNT.entry(issuer, client_id, attempt.reference)
        here = namespaces.ARRIVAL.entry(issuer, client_id, attempt.fingerprint, interaction.browser_id)
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


async def _answer_query(
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
    redirect_uri = authorization_request.require_registered_redirect_uri(
        parameters.parse(query, {"redirect_uri"}), client
    )
    # The redirect URI is proven: from here on errors are the client's to know.
    address = ReturnAddress(
        redirect_uri=redirect_uri,
        mode=authorization_request.choose_error_mode(query, generation),
        state=parameters.lone(query, "state", longest=STATE_CHARACTERS),
        iss=context.provider.policy.iss_of_callback,
    )
    wished = parameters.lone(query, "ui_locales", longest=UI_LOCALES_CHARACTERS) or ""
    requesting_client = RequestingClient(client=client, ui_locales=tuple(wished.split()))
    entering = _enter_query(
        context, client, query, generation=generation, cookie=cookie, held=held, visible=may_complete
    )
    return await _answer_errors(context, requesting_client, address, entering)


async def _enter_query(
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
    request = authorization_request.validate_request(
        parameters.parse(query, REQUEST_PARAMETERS),
        client,
        generation,
        jkt=None,
        acr_prefix=context.provider.policy.acr_prefix,
        pkce_optional=client_registration.pkce_optional(client, generation, context.today),
    )
    # Nobody need sign in for an ID token that could not be encrypted.
    await id_token_key(context, client, generation, await current_keys(context, client), refusal=InvalidRequest)
    browser = await browsers.recognise(context, cookie)
    attempt = AuthorizationAttempt(
        client=client,
        request=request,
        reference=context.provider.new_id(),
        fingerprint=f"query:{base64url(sha256(query).digest())}",
        browser=browser,
        may_complete=visible,
    )
    result = await _sso_result(context, attempt)
    if result.required_prompt is None and visible:
        return await _complete_at_once(context, client, result)
    before = await _find_earlier_interaction(context, client.client_id, attempt.fingerprint, browser)
    if before is not None and before.outcome is None and context.now < before.expires_at:
        return InteractionRedirect(interaction_id=before.interaction_id, cookie=None)
    _refuse_silence(request, result.required_prompt)
    begun = PendingRequest(
        interaction=await _add_user_name(context, result.interaction), fingerprint=attempt.fingerprint
    )
    if browser is None:
        return InteractionRedirect(
            interaction_id=begun.interaction.interaction_id,
            cookie=result.cookie,
            held=interactions.encrypt_pending(context, begun),
            requesting_client=RequestingClient(client=client, ui_locales=request.ui_locales),
        )
    held_by_browser = await interactions.open_pending(context, browser, held)
    if held_by_browser is not None and (held_by_browser.fingerprint, held_by_browser.interaction.request) == (
        attempt.fingerprint,
        request,
    ):
        begun = held_by_browser
    await interactions.store_pending(context, browser, begun)
    return InteractionRedirect(interaction_id=begun.interaction.interaction_id, cookie=None)


async def _answer_errors(
    context: RequestContext,
    requesting_client: RequestingClient,
    address: ReturnAddress,
    entering: Awaitable[InteractionRedirect | ImmediateResponse],
) -> InteractionRedirect | ImmediateResponse:
    """Await `entering`, and turn its errors into responses for the client.

    Raises InvalidRequest, which becomes a page, if another browser has claimed the request. Source: Spec 4.2, D15, D16
    """
    error: OAuthError
    cause: Exception
    try:
        return await entering
    except completion.OtherBrowser:
        raise InvalidRequest(
            Reason.SIGN_IN_IN_ANOTHER_BROWSER,
            "this sign-in was started in another browser and continues there",
            sentence=phrase("This sign-in was started in another browser and continues there."),
        ).with_client(requesting_client) from None
    except OAuthError as raised:
        error, cause = raised, raised
    except StoreUnavailable as raised:
        error, cause = TemporarilyUnavailable(Reason.STORE_UNAVAILABLE, "please try again in a moment"), raised
    except Exception as raised:  # noqa: BLE001 - the client is told server_error, the log the cause
        error, cause = ServerError(Reason.UNFORESEEN, "an unexpected error occurred"), raised
    response = authorization_request.create_error_response(
        address, error, reference=context.request_id, catalogue=context.provider.policy.error_catalogue
    )
    return ImmediateResponse(response=response, requesting_client=requesting_client, failure=cause)


async def _find_earlier_interaction(
    context: RequestContext, client_id: str, fingerprint: str, browser: Browser | None
) -> Interaction | None:
    """The interaction that this browser began with the same request.

    None if there is none. Source: D15
    """
    if browser is None:
        return None
    arrived = namespaces.ARRIVAL.entry(context.provider.policy.base_url, client_id, fingerprint, browser.browser_id)
    interaction_id = await arrived.read(context.provider.transient, now=context.now)
    return None if interaction_id is None else await interactions.load(context, interaction_id)


async def _sso_result(context: RequestContext, attempt: AuthorizationAttempt) -> SsoResult:
    """The result of single sign-on for a request (D30)."""
    session = await browsers.load_session(context, attempt.browser)
    browser, cookie = (attempt.browser, None) if attempt.browser else await browsers.issue_cookie(context)
    interaction = Interaction(
        interaction_id=context.provider.new_id(),
        browser_id=browser.browser_id,
        reference=attempt.reference,
        request=attempt.request,
        expires_at=fresh_expiry(context.now),
    )
    if session is None or not browsers.suffices(context, session, attempt.request):
        refusal = LoginRequired(
            Reason.LOGIN_REQUIRED,
            "prompt is none, and nobody is signed in or the existing sign-in is not sufficient",
            detail="nobody is signed in in this browser"
            if session is None
            else "the sign-in is older than max_age, or does not reach the acr",
        )
        return SsoResult(interaction=interaction, required_prompt=refusal, cookie=cookie)
    only = await entity_selection.find_only_entity(context, session.user_id, attempt.client, attempt.request)
    known = msgspec.structs.replace(
        interaction,
        user_id=session.user_id,
        amr=session.amr,
        auth_time=session.auth_time,
        level=session.level,
        session_id=session.session_id,
        entity_id=only,
    )
    return SsoResult(
        interaction=known, required_prompt=await _required_prompt(context, attempt, known), session=session
    )


async def _required_prompt(
    context: RequestContext, attempt: AuthorizationAttempt, interaction: Interaction
) -> OAuthError | None:
    """The page that a signed-in person must see, as a prompt=none error."""
    client, request, user_id, entity_id = attempt.client, attempt.request, interaction.user_id, interaction.entity_id
    if not entity_id:
        # Consent is given for one entity: which one decides whether it has to be asked for.
        return InteractionRequired(
            Reason.ENTITY_CHOICE_REQUIRED, "prompt is none, and the person has to choose an entity"
        )
    if consents.is_asked(client, request) and not await consents.is_given(
        context, client, request, user_id=user_id, entity_id=entity_id
    ):
        return ConsentRequired(Reason.CONSENT_REQUIRED, "prompt is none, and the person has to be asked for consent")
    if await context.provider.registry_cache.acting(interaction.user_id, interaction.entity_id, context.now) is None:
        cause = await context.provider.registry_cache.find_obstacle(
            interaction.user_id, interaction.entity_id, context.now
        )
        return AccessDenied(Reason.PERSON_MAY_NOT_ACT, "this person may not act for this entity", detail=cause)
    return None


def _refuse_silence(request: AuthorizationRequest, required_prompt: OAuthError | None) -> None:
    """Refuse a prompt=none request that needs a page.

    Raises the error in `required_prompt`. Source: OpenID Connect Core §3.1.2.6, D40
    """
    if forbids_pages(request):
        raise required_prompt or InteractionRequired(Reason.PAGE_REQUIRED, "prompt is none, and a page has to be shown")


async def _complete_at_once(
    context: RequestContext, client: Client, result: SsoResult, *, owner: str | None = None
) -> ImmediateResponse:
    """Answer with a code, without a page.

    `owner` is the browser that had claimed the request, if any. Raises AccessDenied, InvalidRequestURI, OtherBrowser
    (D30, D50).
    """
    interaction = result.interaction
    await completion.require_allowed(context, client, interaction)
    try:
        async with context.provider.transient.batch(context.now) as batch:
            code = await completion.write_code(context, batch, interaction, owner)
            if result.session is not None:
                await sessions.use_seldom(context, result.session)
    except completion.AlreadyCompleted:
        raise InvalidRequestURI(
            Reason.REQUEST_ALREADY_COMPLETED, "this request was already completed: start a new one"
        ) from None
    address = authorization_request.address_response(interaction.request, iss=context.provider.policy.iss_of_callback)
    return ImmediateResponse(
        response=authorization_request.create_code_response(address, code=code),
        requesting_client=RequestingClient(client=client, ui_locales=interaction.request.ui_locales),
        interaction=interaction,
    )


async def _add_user_name(context: RequestContext, interaction: Interaction) -> Interaction:
    """Add the name of the person signed in by single sign-on.

    The pages of the new interaction show it. Source: D30
    """
    if not interaction.session_id:
        return interaction
    user = await context.provider.registry.directory.user(interaction.user_id)
    return msgspec.structs.replace(interaction, user_name=names.user_name(user.user_name) if user is not None else "")
