"""A browser arrives with a pushed request (Spec 4.2, D15, D16, D30).

Trust is a position here: what fails before the redirect URI is proven is raised and becomes a page;
after that line errors are returned as answers for the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import browsers, choices, completion, interactions, kinds
from corpid.flows.browsers import Browser
from corpid.flows.interactions import Interaction
from corpid.flows.push import REQUEST_URI_PREFIX
from corpid.ports import StoreUnavailable
from corpid.protocol import authorization_response, single_sign_on
from corpid.protocol.authorization_response import AuthorizationResponse
from corpid.protocol.errors import (
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
from corpid.protocol.limits import INTERACTIONS_PER_REQUEST, REQUEST_URI_SECONDS
from corpid.protocol.parameters import required
from corpid.protocol.records import Client, PushedRequest
from corpid.protocol.scopes import needs_consent

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import Session
    from corpid.protocol.records import AuthorizationRequest

AUTHORIZATION_PARAMETERS: Final = frozenset({"client_id", "request_uri"})
_NOT_FOUND: Final = (
    "this link to sign in is not known here or has expired: go back to where you came from and start again"
)


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """The browser goes to the interaction's page; `cookie` is a new value for it, if it needs one."""

    interaction_id: str
    cookie: str | None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The browser goes straight back to the client; `failure` tells the log why, if it is one."""

    response: AuthorizationResponse
    failure: Exception | None = None


class _Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A browser at a request whose redirect URI is proven."""

    client: Client
    reference: str
    pushed: PushedRequest
    cookie: str | None
    browser: Browser | None
    may_complete: bool

    @property
    def request(self) -> AuthorizationRequest:
        return self.pushed.request


async def arrive(
    provider: Provider, caller: Caller, parameters: dict[str, str], *, cookie: str | None, may_complete: bool
) -> Entered | Answered:
    """Answer an authorization request; `may_complete` is false for a prefetch and for HEAD (D30).

    Raises InvalidRequest and InvalidRequestURI, which become pages: also where another browser has claimed the
    request. Source: Spec 4.2, D15, D16
    """
    client_id, request_uri = required(parameters, "client_id"), required(parameters, "request_uri")
    client = await provider.live.client(client_id, caller.now)
    if client is None:
        raise InvalidRequest(
            "client_id is not known here, or the client is disabled",
            sentence="The service that you came from is not known here.",
        )
    if not request_uri.startswith(REQUEST_URI_PREFIX):
        raise InvalidRequestURI(_NOT_FOUND)
    reference = request_uri.removeprefix(REQUEST_URI_PREFIX)
    browser = await browsers.recognise(provider, cookie, now=caller.now)
    key = interactions.request_key(provider, kinds.PUSHED_REQUEST, client_id, reference)
    value = await provider.transient.get(kinds.PUSHED_REQUEST.name, key, now=caller.now)
    if value is None:
        return await _resume(provider, caller, client_id, reference, browser)
    pushed = msgspec.msgpack.decode(value, type=PushedRequest)
    if pushed.request.redirect_uri not in client.redirect_uris:
        raise InvalidRequest("redirect_uri is no longer registered for this client")
    # The redirect URI is proven: from here on errors are the client's to know.
    arrival = _Arrival(
        client=client, reference=reference, pushed=pushed, cookie=cookie, browser=browser, may_complete=may_complete
    )
    try:
        return await _enter(provider, caller, arrival)
    except completion.OtherBrowser:
        raise InvalidRequest(
            "this sign-in goes on in another browser, where it was begun",
            sentence="This sign-in goes on in another browser, where it was begun.",
        ) from None
    except OAuthError as error:
        return _failure(provider, caller, arrival, error, error)
    except StoreUnavailable as cause:
        return _failure(provider, caller, arrival, TemporarilyUnavailable("please try again in a moment"), cause)
    except Exception as cause:  # noqa: BLE001 - the client is told server_error, the log the cause
        return _failure(provider, caller, arrival, ServerError("something unforeseen went wrong"), cause)


def _failure(provider: Provider, caller: Caller, arrival: _Arrival, error: OAuthError, cause: Exception) -> Answered:
    response = authorization_response.failure(
        arrival.request.redirect_uri,
        error,
        reference=caller.request_id,
        state=arrival.request.state,
        iss=provider.policy.iss_of_callback,
    )
    return Answered(response=response, failure=cause)


async def _arrived_before(
    provider: Provider, client_id: str, reference: str, browser: Browser | None, now: float
) -> Interaction | None:
    if browser is None:
        return None
    key = interactions.request_key(provider, kinds.ARRIVAL, client_id, reference, browser.browser_id)
    value = await provider.transient.get(kinds.ARRIVAL.name, key, now=now)
    return None if value is None else await interactions.load(provider, value.decode(), now=now)


async def _resume(
    provider: Provider, caller: Caller, client_id: str, reference: str, browser: Browser | None
) -> Entered:
    interaction = await _arrived_before(provider, client_id, reference, browser, caller.now)
    if interaction is None:
        raise InvalidRequestURI(_NOT_FOUND)
    return Entered(interaction_id=interaction.interaction_id, cookie=None)


async def _enter(provider: Provider, caller: Caller, arrival: _Arrival) -> Entered | Answered:
    client_id, reference, now = arrival.client.client_id, arrival.reference, caller.now
    if await provider.live.maintenance(now):
        raise TemporarilyUnavailable("the provider is under maintenance: try again later")
    in_time = now < arrival.pushed.pushed_at + REQUEST_URI_SECONDS
    session = await _sufficient_session(provider, arrival, now)
    interaction = await _new_interaction(provider, arrival, session, now)
    needs_page = await _needs_page(provider, arrival, session, interaction, now)
    if in_time and needs_page is None and session is not None and arrival.may_complete:
        return await _complete_at_once(provider, caller, arrival.client, interaction)
    completed = interactions.request_key(provider, kinds.COMPLETED, client_id, reference)
    if await provider.transient.get(kinds.COMPLETED.name, completed, now=now) is not None:
        raise InvalidRequestURI("this request was already completed: push a new one")
    before = await _arrived_before(provider, client_id, reference, arrival.browser, now)
    if before is not None and now < before.expires_at:
        return Entered(interaction_id=before.interaction_id, cookie=None)
    if not in_time:
        raise InvalidRequestURI(f"request_uri has expired: it is valid for {REQUEST_URI_SECONDS} seconds")
    if single_sign_on.silent(arrival.request):
        raise needs_page or InteractionRequired("a page has to be shown, and prompt is none")
    return await _open(provider, caller, arrival, interaction)


async def _sufficient_session(provider: Provider, arrival: _Arrival, now: float) -> Session | None:
    session = await browsers.session_of(provider, arrival.browser, now=now)
    return session if browsers.suffices(provider, session, arrival.request, now=now) else None


async def _new_interaction(provider: Provider, arrival: _Arrival, session: Session | None, now: float) -> Interaction:
    interaction = Interaction(
        interaction_id=provider.new_id(),
        browser_id=arrival.browser.browser_id if arrival.browser else provider.new_id(),
        reference=arrival.reference,
        request=arrival.request,
        expires_at=interactions.fresh_expiry(now),
    )
    if session is None:
        return interaction
    only = ""
    if not single_sign_on.asks_choice(arrival.request):
        only = await choices.only_usable(provider, session.user_id, arrival.client, now=now)
    return msgspec.structs.replace(
        interaction,
        user_id=session.user_id,
        amr=session.amr,
        auth_time=session.auth_time,
        level=session.level,
        session_id=session.session_id,
        entity_id=only,
    )


async def _needs_page(
    provider: Provider, arrival: _Arrival, session: Session | None, interaction: Interaction, now: float
) -> OAuthError | None:
    """Which page keeps this request from being answered at once, as the error of prompt=none; None: no page."""
    request = arrival.request
    if session is None:
        return LoginRequired("nobody is signed in, or the sign-in does not suffice, and prompt is none")
    if single_sign_on.asks_consent(request) or needs_consent(arrival.client, request.scopes):
        return ConsentRequired("consent has to be asked, and prompt is none")
    if not interaction.entity_id:
        return InteractionRequired("the entity has to be chosen, and prompt is none")
    if await provider.live.acting(interaction.user_id, interaction.entity_id, now) is None:
        return AccessDenied("this person may not act for this entity")
    return None


async def _complete_at_once(provider: Provider, caller: Caller, client: Client, interaction: Interaction) -> Answered:
    await completion.still_allowed(provider, client, interaction, caller.now)
    await provider.own_keys.ring(caller.now)
    try:
        async with provider.transient.unit(caller.now) as unit:
            code = await completion.write_code(provider, unit, caller, interaction)
    except completion.AlreadyCompleted:
        raise InvalidRequestURI("this request was already completed: push a new one") from None
    request = interaction.request
    response = authorization_response.success(
        request.redirect_uri, code=code, state=request.state, iss=provider.policy.iss_of_callback
    )
    return Answered(response=response)


async def _open(provider: Provider, caller: Caller, arrival: _Arrival, interaction: Interaction) -> Entered:
    client_id, browser_id = arrival.client.client_id, interaction.browser_id
    count = interactions.request_key(provider, kinds.INTERACTION_COUNT, client_id, arrival.reference)
    here = interactions.request_key(provider, kinds.ARRIVAL, client_id, arrival.reference, browser_id)
    cookie = None
    async with provider.transient.unit(caller.now) as unit:
        opened = await unit.count(kinds.INTERACTION_COUNT.name, count, kinds.INTERACTION_COUNT.seconds)
        if opened > INTERACTIONS_PER_REQUEST:
            raise InvalidRequestURI("too many browsers have opened this request: push a new one")
        if not await unit.add(kinds.ARRIVAL.name, here, kinds.ARRIVAL.seconds, interaction.interaction_id.encode()):
            first = await unit.get(kinds.ARRIVAL.name, here)
            return Entered(interaction_id=(first or b"").decode(), cookie=None)
        if arrival.browser is None:
            cookie = await browsers.welcome(provider, unit, Browser(browser_id=browser_id))
        await interactions.keep(provider, unit, interaction)
    return Entered(interaction_id=interaction.interaction_id, cookie=cookie)
