"""Interactions from authorization requests with a proven redirect URI.

Source: D15, D30
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import namespaces
from corpid.flows.authentication import browsers, completion, consents, entity_selection, interactions, sessions
from corpid.flows.authentication.browsers import Browser
from corpid.rules.authentication import single_sign_on
from corpid.rules.authentication.records import Session
from corpid.rules.authentication.sign_in import Interaction, fresh_expiry
from corpid.rules.directory import names
from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth import authorization_response
from corpid.rules.oauth.authorization_response import AuthorizationResponse
from corpid.rules.oauth.errors import (
    AccessDenied,
    ConsentRequired,
    InteractionRequired,
    InvalidRequest,
    InvalidRequestURI,
    LoginRequired,
    OAuthError,
    ServerError,
    TemporarilyUnavailable,
)
from corpid.rules.oauth.records import AuthorizationRequest, Client, RequestingClient
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.authorization_response import ReturnAddress


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


async def answer_errors(
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
    response = authorization_response.failure(
        address, error, reference=context.request_id, catalogue=context.provider.policy.error_catalogue
    )
    return ImmediateResponse(response=response, requesting_client=requesting_client, failure=cause)


async def find_earlier_interaction(
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


async def sso_result(context: RequestContext, arrival: AuthorizationAttempt) -> SsoResult:
    """The result of single sign-on for a request (D30)."""
    session = await browsers.session_of(context, arrival.browser)
    browser, cookie = (arrival.browser, None) if arrival.browser else await browsers.issue_cookie(context)
    interaction = Interaction(
        interaction_id=context.provider.new_id(),
        browser_id=browser.browser_id,
        reference=arrival.reference,
        request=arrival.request,
        expires_at=fresh_expiry(context.now),
    )
    if session is None or not browsers.suffices(context, session, arrival.request):
        refusal = LoginRequired(
            Reason.LOGIN_REQUIRED,
            "prompt is none, and nobody is signed in or the existing sign-in is not sufficient",
            detail="nobody is signed in in this browser"
            if session is None
            else "the sign-in is older than max_age, or does not reach the acr",
        )
        return SsoResult(interaction=interaction, required_prompt=refusal, cookie=cookie)
    only = await entity_selection.find_only_entity(context, session.user_id, arrival.client, arrival.request)
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
        interaction=known, required_prompt=await _required_prompt(context, arrival, known), session=session
    )


async def _required_prompt(
    context: RequestContext, arrival: AuthorizationAttempt, interaction: Interaction
) -> OAuthError | None:
    """The page that a signed-in person must see, as a prompt=none error."""
    client, request, user_id, entity_id = arrival.client, arrival.request, interaction.user_id, interaction.entity_id
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


def refuse_silence(request: AuthorizationRequest, required_prompt: OAuthError | None) -> None:
    """Refuse a prompt=none request that needs a page.

    Raises the error in `required_prompt`. Source: OpenID Connect Core §3.1.2.6, D40
    """
    if single_sign_on.silent(request):
        raise required_prompt or InteractionRequired(Reason.PAGE_REQUIRED, "prompt is none, and a page has to be shown")


async def complete_at_once(
    context: RequestContext, client: Client, result: SsoResult, *, owner: str | None = None
) -> ImmediateResponse:
    """Answer with a code, without a page.

    `owner` is the browser that had claimed the request, if any. Raises AccessDenied, InvalidRequestURI, OtherBrowser
    (D30, D50).
    """
    interaction = result.interaction
    await completion.still_allowed(context, client, interaction)
    try:
        async with context.provider.transient.batch(context.now) as batch:
            code = await completion.write_code(context, batch, interaction, owner)
            if result.session is not None:
                await sessions.use_seldom(context, result.session)
    except completion.AlreadyCompleted:
        raise InvalidRequestURI(
            Reason.REQUEST_ALREADY_COMPLETED, "this request was already completed: start a new one"
        ) from None
    address = authorization_response.of_request(interaction.request, iss=context.provider.policy.iss_of_callback)
    return ImmediateResponse(
        response=authorization_response.success(address, code=code),
        requesting_client=RequestingClient(client=client, ui_locales=interaction.request.ui_locales),
        interaction=interaction,
    )


async def add_user_name(context: RequestContext, interaction: Interaction) -> Interaction:
    """Add the name of the person signed in by single sign-on.

    The pages of the new interaction show it. Source: D30
    """
    if not interaction.session_id:
        return interaction
    user = await context.provider.registry.directory.user(interaction.user_id)
    return msgspec.structs.replace(interaction, user_name=names.user_name(user.user_name) if user is not None else "")
