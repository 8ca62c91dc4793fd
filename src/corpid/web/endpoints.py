"""Machine endpoints, and the browser's arrival: request → flow → response, a few lines each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from corpid.flows import authorize, push, rates, resource, token
from corpid.flows.arrival import Answered
from corpid.flows.authorize import AUTHORIZATION_PARAMETERS
from corpid.protocol import metadata, parameters
from corpid.protocol.authorization_request import PUSHED_PARAMETERS, REQUEST_PARAMETERS
from corpid.protocol.errors import InvalidRequest
from corpid.protocol.grant import TOKEN_PARAMETERS
from corpid.protocol.limits import HEAD_BYTES, INTERACTION_SECONDS, METADATA_CACHE_SECONDS
from corpid.web import errors
from corpid.web.answers import see_other
from corpid.web.frame import BARE, Frame
from corpid.web.languages import LANGUAGES
from corpid.web.middleware import FORM_POST_POLICY
from corpid.web.requests import (
    arrival_cookie,
    arrival_cookie_name,
    caller,
    cookie,
    cookie_name,
    form_bytes,
    headers,
    may_complete,
)
from corpid.web.showing import show
from corpid.web.signin.place import ARRIVE, place
from corpid.web.signin.surroundings import asker
from corpid.web.views import Arrive, FormPost

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.arrival import Entered
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.protocol.authorization_response import AuthorizationResponse
    from corpid.protocol.generations import Generation, Resource
    from corpid.web.rendering import Renderer

_PUBLIC: Final = {
    "Cache-Control": f"public, max-age={METADATA_CACHE_SECONDS}",
    "Access-Control-Allow-Origin": "*",
}
_COOKIE_SECONDS: Final = 90 * 86400
_HELD_CHARACTERS: Final = 2048
"""of a sign-in that a browser holds in a cookie: browsers keep 4096, but proxies take as much for all headers of an answer"""
_NO_STORE: Final = (b"cache-control", b"no-store")
_JSON: Final = (_NO_STORE, (b"pragma", b"no-cache"), (b"content-type", b"application/json"))
_JWT: Final = (_NO_STORE, (b"pragma", b"no-cache"), (b"content-type", b"application/jwt"))


class _Plain(Response):
    """A response of headers that are bytes already: those of the flow's answers are the same each time."""

    def __init__(self, content: bytes, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self.status_code = status
        self.body = content
        self.background = None
        self.raw_headers = [*headers, (b"content-length", b"%d" % len(content))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What an endpoint has at hand."""

    provider: Provider
    renderer: Renderer
    base_path: str
    """the path of base_url, without a trailing slash"""


async def discovery(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The discovery document (Spec 4.6)."""
    policy = desk.provider.policy
    document = metadata.discovery(
        policy.served,
        base_url=policy.base_url,
        name=policy.name,
        acr_prefix=policy.acr_prefix,
        returns_iss=policy.returns_iss,
        languages=[language.tag for language in LANGUAGES],
    )
    return Response(msgspec.json.encode(document), 200, _PUBLIC, "application/json; charset=utf-8")


async def jwks(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The public signing keys (Spec 4.7)."""
    ring = await desk.provider.own_keys.ring(desk.provider.clock())
    return Response(ring.public_key_set, 200, _PUBLIC, "application/jwk-set+json; charset=utf-8")


async def pushed_authorization_request(request: Request, desk: Desk, generation: Generation) -> Response:
    """PAR (Spec 4.1)."""
    provider = desk.provider
    now = provider.clock()
    body = await form_bytes(request)
    await provider.live.refuse_maintenance(now)
    # Kept, since an error repeats the state (D4).
    sent = request.scope["state"]["parameters"] = parameters.parse(body, PUSHED_PARAMETERS)
    pushed = await push.push(
        provider,
        sent,
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
        generation=generation,
        now=now,
        request_id=request.scope["state"]["request_id"],
        address=request.scope["state"]["client_address"],
    )
    request.scope["state"]["log"]["client_id"] = pushed.client_id
    content = {"request_uri": pushed.request_uri, "expires_in": pushed.expires_in}
    return _Plain(msgspec.json.encode(content), 201, _JSON)


async def token_endpoint(request: Request, desk: Desk) -> Response:
    """The token endpoint (Spec 4.3)."""
    provider = desk.provider
    now = provider.clock()
    await provider.live.refuse_maintenance(now)
    issued = await token.exchange(
        provider,
        parameters.parse(await form_bytes(request), TOKEN_PARAMETERS),
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
        now=now,
        request_id=request.scope["state"]["request_id"],
        address=request.scope["state"]["client_address"],
    )
    request.scope["state"]["log"]["client_id"] = issued.client_id
    content = {
        "access_token": issued.access_token,
        "id_token": issued.id_token,
        "token_type": issued.token_type,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
    }
    return _Plain(msgspec.json.encode(content), 200, _JSON)


async def resource_endpoint(request: Request, desk: Desk, generation: Generation, which: Resource) -> Response:
    """A protected resource (Spec 4.4)."""
    provider = desk.provider
    now = provider.clock()
    await provider.live.refuse_maintenance(now)
    answer = await resource.read(
        provider,
        generation,
        which,
        method=request.method,
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
        now=now,
        request_id=request.scope["state"]["request_id"],
    )
    request.scope["state"]["log"]["client_id"] = answer.client_id
    return _Plain(answer.content, 200, _JWT if answer.signed else _JSON)


async def authorization(request: Request, desk: Desk) -> Response:
    """A browser arrives (Spec 4.2); a POST is sent on to the GET (D40)."""
    provider = desk.provider
    who = caller(request, provider)
    await provider.rates.address(rates.SIGN_IN, who.address, who.now)
    if request.method == "POST":
        await provider.live.refuse_maintenance(who.now)
        return await _to_get(request, desk)
    arrived = await authorize.arrive(
        provider,
        who,
        request.scope["query_string"],
        cookie=cookie(request, provider),
        held=arrival_cookie(request, provider),
        may_complete=may_complete(request),
    )
    if isinstance(arrived, Answered):
        if arrived.failure is not None:
            errors.record(request, errors.as_oauth_error(arrived.failure))
        around = await _around(desk, who, arrived) if arrived.response.posted else BARE
        return leave(request, desk, arrived.response, around)
    return enter(request, desk, arrived)


def enter(request: Request, desk: Desk, entered: Entered) -> Response:
    """On to the page of a sign-in. What is not stored goes with the browser: in a cookie, else in a form (D15, D34)."""
    provider, held = desk.provider, entered.held
    where = place(desk, entered.interaction_id)
    if len(held) <= _HELD_CHARACTERS:
        answer = see_other(where)
    else:
        who = entered.asker
        frame = Frame(client_name=who.client.name, ui_locales=who.ui_locales, under_way=True) if who else BARE
        view = Arrive(frame=frame, action=f"{where}/{ARRIVE}", fields=((ARRIVE, held),))
        answer = show(request, desk.renderer, view)
        held = ""
    if entered.cookie is not None:
        set_cookie(answer, provider, entered.cookie)
    if held:
        add_cookie(answer, provider, arrival_cookie_name(provider), held, seconds=INTERACTION_SECONDS)
    return answer


async def _to_get(request: Request, desk: Desk) -> Response:
    known = REQUEST_PARAMETERS if desk.provider.policy.query is not None else AUTHORIZATION_PARAMETERS
    query = parameters.requoted(await form_bytes(request), known)
    if len(query) > HEAD_BYTES // 2:
        raise InvalidRequest("the request is too long for a query string")
    if not query:
        raise InvalidRequest("the parameters of the authorization request are missing")
    return see_other(f"{desk.base_path}{metadata.AUTHORIZATION_PATH}?{query}")


async def _around(desk: Desk, who: Caller, arrived: Answered) -> Frame:
    client = arrived.asker.client
    if arrived.interaction is not None:
        return await asker(desk, who, client, arrived.interaction)
    return Frame(client_name=client.name, ui_locales=arrived.asker.ui_locales)


def leave(request: Request, desk: Desk, response: AuthorizationResponse, around: Frame) -> Response:
    """The hop to the relying party: a redirect, or a page whose form carries the answer (D37, D38)."""
    if not response.posted:
        return _Plain(b"", 302, (_NO_STORE, (b"location", response.url.encode("latin-1"))))
    view = FormPost(
        frame=replace(around, under_way=True, here=""),
        action=response.redirect_uri,
        fields=tuple(response.parameters.items()),
    )
    return show(request, desk.renderer, view, more={"Content-Security-Policy": FORM_POST_POLICY})


def set_cookie(answer: Response, provider: Provider, value: str) -> None:
    """Our cookie, with the attributes of D34."""
    add_cookie(answer, provider, cookie_name(provider), value, seconds=_COOKIE_SECONDS)


def add_cookie(answer: Response, provider: Provider, name: str, value: str, *, seconds: int) -> None:
    """A cookie with the attributes of D34; 0 seconds: the browser forgets it."""
    secure = "; Secure" if provider.policy.base_url.startswith("https:") else ""
    answer.headers.append("Set-Cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
