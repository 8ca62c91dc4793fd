"""The route table: path, methods, endpoint, error rendering.

Only developer mode extends it, by an `Extension` (D66). The developer kit (`corpid-dev`) has two extensions. A demo
passes its own to `app.create`. Without one, `app.create` in developer mode loads the other, which has no test people,
by the entry point `corpid.developer_mode`. Nothing here names a module of the kit.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cache, partial
from itertools import permutations
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from corpid.flows.account.links import PATH as LINK_PATH
from corpid.flows.authentication.own_pages import ACCOUNT_PATH, CONSOLE_PATH, PORTAL_PATH, RECOVERY_PATH, SIGN_OUT_PATH
from corpid.flows.operations.signing_keys import SigningKeys
from corpid.flows.registry_cache import RegistryCache
from corpid.rules.limits import STATE_CHARACTERS
from corpid.rules.networks import lies_in
from corpid.rules.oauth import api_client, discovery, parameters, tokens
from corpid.rules.oauth.errors import ContentTooLarge, InvalidRequest, TemporarilyUnavailable
from corpid.rules.oauth.refusals import ClientRefusal, Reason
from corpid.web import oauth, own_pages
from corpid.web.account import enrolment, links
from corpid.web.account.endpoints import account
from corpid.web.account.page_context import OPENED_PATH
from corpid.web.authentication.endpoints import interaction, sign_out
from corpid.web.context import SCIM_PATH, SIGN_IN_PATH, UPLOAD_PAGES, Access, DeveloperMode, Part, WebContext
from corpid.web.http.connections import OVERLOADED, TOO_LARGE
from corpid.web.http.requests import form_bytes, headers, take_back_counts
from corpid.web.pages import errors, public_pages
from corpid.web.pages.rendering import LANGUAGE_PATH, STATIC_PATH
from corpid.web.pages.responses import refuse_forged
from corpid.web.telemetry.access_log import LogFields, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from corpid.flows.request_context import Policy
    from corpid.stores.sql.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from corpid.flows.request_context import Policy
    from corpid.rules.oauth.generations import Generation

    Endpoint = Callable[[Request, WebContext], Awaitable[Response]]
    Fails = Callable[[Request, Exception, WebContext], Response]


T = TypeVar("T")

_MAKING: Final = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path under base_url.

    `{rest}` at its end stands for whatever follows. HEAD is answered wherever GET is (D32).
    """

    path: str
    methods: tuple[str, ...] = ()
    """without any, the endpoint gets every request and answers 405 itself: what is allowed differs below its path"""
    endpoint: Endpoint
    fails: Fails
    own_forms: bool = False
    """a POST must come from our own page (D35)"""
    scheme: str = ""
    """of the credentials without which nothing else is looked at: no body, nothing that might be busy (Spec 7.4)"""
    suffix: str | None = None
    """the end of `path`, perhaps empty, before which the path of base_url stands (RFC 8414 §3.1); None: before the
    whole"""
    part: Part | None = None
    """the part of the provider that it belongs to, if the operator can switch that off"""
    developer: bool = False
    """whether it is developer mode's: whoever does not see that gets 404 (D66)"""
    at_root: bool = False
    """whether `path` is of the host as a whole, and the path of base_url does not count (RFC 8615 §3)"""

    def at(self, base_path: str) -> str:
        """The path under the path of base_url."""
        if self.at_root:
            return self.path
        if self.suffix is None:
            return base_path + self.path
        return f"{self.path.removesuffix(self.suffix)}{base_path}{self.suffix}"


CORS_PATHS: Final = (discovery.DISCOVERY_PATH, discovery.AUTHORIZATION_SERVER_PATH, discovery.JWKS_PATH)


# --- how errors are rendered


def as_json(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error for a program, as JSON."""
    policy = web.provider.policy
    return errors.as_json(request, error, policy.served[0], catalogue=policy.error_catalogue)


def as_page(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error for a person, as a page."""
    return errors.as_page(request, error, web.renderer)


def _as_json_with_state(request: Request, error: Exception, web: WebContext) -> Response:
    policy = web.provider.policy
    return errors.as_json(request, error, policy.served[0], _state(request), catalogue=policy.error_catalogue)


def _state(request: Request) -> str | None:
    """The `state` that was sent, if it can be returned (D4)."""
    known = request.scope["state"]
    if "parameters" in known:
        return parameters.short(known["parameters"].get("state", ""), longest=STATE_CHARACTERS)
    return parameters.lone(known.get("form", b""), "state", longest=STATE_CHARACTERS)


def _as_json_of_api(request: Request, error: Exception, web: WebContext) -> Response:
    policy = web.provider.policy
    return errors.as_json(request, error, policy.api, catalogue=policy.error_catalogue)


def _as_problem(request: Request, error: Exception, web: WebContext) -> Response:
    from corpid.web.api.calls import response  # noqa: PLC0415 - see `_answering`

    return response(request, error, web)


def _as_scim_error(request: Request, error: Exception, web: WebContext) -> Response:
    from corpid.web.scim import response  # noqa: PLC0415 - see `_answering`

    return response(request, error, web)


def _as_challenge(generation: Generation, request: Request, error: Exception, web: WebContext) -> Response:
    policy = web.provider.policy
    return errors.as_challenge(request, error, generation, policy.base_url, catalogue=policy.error_catalogue)


# --- endpoints that few processes need, loaded at their first request (docs/decisions/0036)


async def _on_first_use(make: _lru_cache_wrapper[T]) -> T:
    """The result of a cached function, which a thread calls first.

    That keeps no other request waiting, but for those that need it, too: made by two at once it may be broken.
    """
    if not make.cache_info().currsize:
        await asyncio.to_thread(_make_alone, make)
    return make()


def _make_alone(make: Callable[[], object]) -> None:
    with _MAKING:
        make()


def _answering(load: _lru_cache_wrapper[Endpoint]) -> Endpoint:
    """An endpoint that is loaded on first use."""

    async def answer(request: Request, web: WebContext) -> Response:
        endpoint = await _on_first_use(load)
        return await endpoint(request, web)

    return answer


@cache
def _admin_api() -> Endpoint:
    from corpid.web.api.application import answer  # noqa: PLC0415

    return answer


@cache
def _scim() -> Endpoint:
    from corpid.web.scim import answer  # noqa: PLC0415

    return answer


@cache
def _portal() -> Endpoint:
    from corpid.web.directory.endpoints import manage  # noqa: PLC0415

    return manage


@cache
def _console() -> Endpoint:
    from corpid.web.operations.endpoints import console as answer  # noqa: PLC0415

    return answer


admin_api: Final = _answering(_admin_api)
scim: Final = _answering(_scim)
portal: Final = _answering(_portal)
console: Final = _answering(_console)


def load_rare_pages() -> None:
    """Load the portal and the console, before a server forks its workers."""
    _portal()
    _console()


# --- the table


PAGES_WITH_FORMS: Final[Mapping[str, Endpoint]] = {
    f"{SIGN_IN_PATH}{{rest}}": interaction,
    LINK_PATH: links.serve_link,
    f"{LINK_PATH}/{{rest}}": links.serve_former_link,
    f"{OPENED_PATH}{{rest}}": links.serve_opened_link,
    f"{enrolment.PATH}{{rest}}": enrolment.serve_enrolment,
    RECOVERY_PATH: links.serve_forgotten_password,
    ACCOUNT_PATH: account,
    f"{links.INVITATION_PATH}{{rest}}": links.serve_invitation,
    f"{links.LONGER_PATH}{{rest}}": links.extend_invitation,
    f"{ACCOUNT_PATH}/{{rest}}": account,
    SIGN_OUT_PATH: sign_out,
    PORTAL_PATH: portal,
    f"{PORTAL_PATH}/{{rest}}": portal,
    CONSOLE_PATH: console,
    f"{CONSOLE_PATH}/{{rest}}": console,
}
_PARTS: Final[Mapping[Endpoint, Part]] = {portal: "manage", console: "console"}
"""the pages that the operator can switch off"""
_FAILS: Final[Mapping[Endpoint, Fails]] = {
    account: partial(own_pages.failed, "account"),
    portal: partial(own_pages.failed, "manage"),
    console: partial(own_pages.failed, "console"),
}
"""the pages whose errors lead back to their first one"""
_AT_ROOT: Final = tuple(
    Route(path=path, methods=("GET",), endpoint=endpoint, fails=as_json, at_root=True)
    for path, endpoint in (
        (public_pages.CHANGE_PASSWORD_PATH, public_pages.change_password),
        (public_pages.PASSKEY_ENDPOINTS_PATH, public_pages.passkey_endpoints),
        (public_pages.SECURITY_PATH, public_pages.security),
    )
)


def at_root() -> frozenset[str]:
    """The paths at the root of the first issuer's host."""
    return frozenset(route.path for route in _AT_ROOT)


def table(served: Sequence[Generation], *, first: bool = True, further: Sequence[Route] = ()) -> tuple[Route, ...]:
    """Every route.

    PAR and resources come from the records of the generations served (Spec 2.1). The account, links and the admin API
    have theirs at the first issuer only (D62). `further` are those of an extension, in developer mode alone (D66).
    """
    get, post, both = ("GET",), ("POST",), ("GET", "POST")
    pushing = tuple(
        Route(
            path=discovery.PAR_PATH,
            methods=post,
            endpoint=partial(oauth.pushed_authorization_request, generation=generation),
            fails=_as_json_with_state,
        )
        for generation in served
        if generation.pushed
    )
    resources = tuple(
        Route(
            path=resource.path,
            methods=both,
            endpoint=partial(oauth.resource_endpoint, generation=generation, which=resource),
            fails=partial(_as_challenge, generation),
            scheme=generation.scheme,
        )
        for generation in served
        for resource in generation.resources
    )
    pages_with_forms = tuple(
        Route(
            path=path,
            methods=both,
            endpoint=endpoint,
            fails=_FAILS.get(endpoint, as_page),
            own_forms=True,
            part=_PARTS.get(endpoint),
        )
        for path, endpoint in PAGES_WITH_FORMS.items()
        if first or endpoint in (interaction, sign_out)
    )
    api = (
        Route(
            path=api_client.METADATA_PATH,
            methods=get,
            endpoint=oauth.api_metadata,
            fails=_as_json_of_api,
            suffix=api_client.ISSUER_PATH,
            part="api",
        ),
        Route(
            path=api_client.TOKEN_PATH,
            methods=post,
            endpoint=oauth.api_token_endpoint,
            fails=_as_json_of_api,
            part="api",
        ),
    )
    return (
        *pushing,
        Route(path=discovery.AUTHORIZATION_PATH, methods=both, endpoint=oauth.authorization, fails=as_page),
        Route(path=discovery.TOKEN_PATH, methods=post, endpoint=oauth.token_endpoint, fails=as_json),
        *resources,
        Route(path=discovery.DISCOVERY_PATH, methods=get, endpoint=oauth.discovery, fails=as_json),
        Route(
            path=discovery.AUTHORIZATION_SERVER_PATH,
            methods=get,
            endpoint=oauth.discovery,
            fails=as_json,
            suffix="",
        ),
        Route(path=discovery.JWKS_PATH, methods=get, endpoint=oauth.jwks, fails=as_json),
        *((*api, *_AT_ROOT) if first else ()),
        *pages_with_forms,
        Route(path="/", methods=get, endpoint=public_pages.home, fails=as_page),
        Route(path=f"{LANGUAGE_PATH}{{rest}}", methods=get, endpoint=public_pages.language, fails=as_page),
        Route(path=f"{STATIC_PATH}{{rest}}", methods=get, endpoint=public_pages.static_file, fails=as_json),
        *(
            (
                Route(path=f"{api_client.API_PATH}/{{rest}}", endpoint=admin_api, fails=_as_problem, part="api"),
                Route(path=SCIM_PATH, endpoint=scim, fails=_as_scim_error, part="scim"),
                Route(path=f"{SCIM_PATH}/{{rest}}", endpoint=scim, fails=_as_scim_error, part="scim"),
            )
            if first
            else ()
        ),
        *further,
    )


def bodiless(served: Sequence[Generation], base_path: str) -> frozenset[str]:
    """The paths of requests whose body is not read (Spec 4.4)."""
    return frozenset(route.at(base_path) for route in table(served) if route.scheme)


def forms(served: Sequence[Generation], base_path: str, further: Sequence[Route] = ()) -> frozenset[str]:
    """The beginnings of the paths of pages with forms."""
    every = table(served, further=further)
    return frozenset(route.at(base_path).removesuffix("{rest}") for route in every if route.own_forms)


def streamed(base_path: str) -> frozenset[str]:
    """The paths of requests whose body may be large.

    The application reads it itself, once it knows the caller. Source: D59, D81
    """
    uploads = (f"{PORTAL_PATH}/{page}" for page in UPLOAD_PAGES)
    return frozenset(f"{base_path}{path}" for path in (f"{api_client.API_PATH}/directory", *uploads))


def hidden_paths(policies: Sequence[Policy], further: Callable[[str], Sequence[Route]]) -> Iterator[str]:
    """Yield a sentence for each issuer that hides another's page.

    That happens if its path lies on a path of the other one. `further` are an extension's routes at a base URL.

    Source: D62
    """
    for outer, inner in permutations(policies, 2):
        here, there = urlsplit(outer.base_url), urlsplit(inner.base_url)
        if here.netloc != there.netloc or not there.path.startswith(f"{here.path}/"):
            continue
        below = there.path.removeprefix(here.path)
        every = table(outer.served, first=outer.is_first, further=further(outer.base_url))
        routes = [route for route in every if not route.at_root]
        if any(_overlap(below, route.path) for route in routes):
            yield (
                f"issuers: base_url of {inner.issuer_id}, {inner.base_url}, lies on a path of {outer.issuer_id}: "
                f"write another path, such as {outer.base_url}/{inner.issuer_id}"
            )


def _overlap(below: str, path: str) -> bool:
    """Return whether a base_url path and a route share an address.

    The home page does not count as a route.
    """
    start = path.removesuffix("{rest}")
    return path != "/" and (f"{start}/".startswith(f"{below}/") or (start != path and below.startswith(start)))


_OPEN: Final = Access()
_OWN_REASONS: Final = frozenset(
    reason.code for reason in (Reason.BUSY, Reason.STORE_UNAVAILABLE, Reason.DATA_LOST, Reason.MAINTENANCE)
)
"""also in a callback, whose status is another one"""


class Router:
    """The ASGI application: finds the route, calls its endpoint, renders exceptions."""

    def __init__(self, web: WebContext, further: Sequence[Route] = ()) -> None:
        self._context, policy = web, web.provider.policy
        routes = table(policy.served, first=policy.is_first, further=further)
        served = [route for route in routes if self._access(route).enabled]
        restricted = ((route.path, self._access(route).networks) for route in served)
        self._networks = {path: networks for path, networks in restricted if networks}
        """the only ones whose addresses see a route, by its path"""
        placed = [(route.at(web.base_path), route) for route in served]
        self._exact = dict(placed)
        self._prefixes = [(path.removesuffix("{rest}"), route) for path, route in placed if path.endswith("{rest}")]
        if web.base_path:
            self._exact[web.base_path] = self._exact[f"{web.base_path}/"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (Spec 2.1, D32)."""
        request = Request(scope, receive)
        # A proxy decides by the path as it was sent, ASGI's `path` is decoded: what a proxy keeps to itself must not be
        # served under another spelling, with %2F for a slash (RFC 3986 §2.2).
        raw_path = scope.get("raw_path", b"")
        hides_a_slash = b"%" in raw_path and b"%2f" in raw_path.lower()
        route = self._exact.get(scope["path"]) or self._longer(scope)
        if hides_a_slash and route is not None and not self._refuses_itself(route, raw_path):
            route = None
        networks = None if route is None else self._networks.get(route.path)
        if route is not None and networks and not lies_in(scope["state"]["client_address"], networks):
            scope["state"]["log"]["detail"] = f"{route.part}_networks: this address is in none of them"
            route = None
        redirect = None
        if route is not None and route.developer:
            route, redirect = (route, self._without_key(request)) if self._opens(request) else (None, None)
        if route is None:
            answer = await public_pages.not_found(request, self._context)
        else:
            scope["route"] = route
            answer = redirect or await self._answer(request, route)
            # Some answers are applications, whose status is not known yet.
            status = getattr(answer, "status_code", 0)
            if status == TemporarilyUnavailable.status or scope["state"]["log"].get("reason") in _OWN_REASONS:
                await take_back_counts(request, self._context.provider)
            # Those of the admin API are in the log alone.
            if "reason" in scope["state"]["log"] and route.endpoint is not admin_api:
                self._note_refusal(scope, route)
        await answer(scope, receive, send)

    def _refuses_itself(self, route: Route, raw_path: bytes) -> bool:
        """Return whether a part itself refuses a path with %2F."""
        return route.part == "scim" and raw_path.startswith(f"{self._context.base_path}{SCIM_PATH}/".encode())

    def _note_refusal(self, scope: Scope, route: Route) -> None:
        """Note the refusal of a client's request, for its operator.

        What a browser sends counts as claimed: whoever starts a sign-in at the client can repeat it. A person who
        cancels has refused, nobody has to act.
        """
        state = scope["state"]
        log: LogFields = state["log"]
        client_id = log.get("client_id") or log.get("claimed_client_id")
        provider, reason = self._context.provider, log["reason"]
        if reason == Reason.CANCELLED.code:
            return
        if route.part is None:
            known = "client_id" in log
            provider.counters.refusal(client_id or "", reason, provider.clock(), authenticated=known)
        if client_id:
            provider.refusals.note(
                ClientRefusal(
                    client_id=client_id,
                    claimed="client_id" not in log or route.own_forms or route.path == discovery.AUTHORIZATION_PATH,
                    at=provider.clock(),
                    request_id=state["request_id"],
                    method=scope["method"],
                    path=route.path,
                    reason=reason,
                    detail=cut(log.get("detail", "")),
                )
            )

    def _opens(self, request: Request) -> bool:
        mode = self._context.developer
        return mode is not None and mode.opens(request)

    def _without_key(self, request: Request) -> Response | None:
        mode = self._context.developer
        return None if mode is None else mode.without_key(request)

    def _access(self, route: Route) -> Access:
        return _OPEN if route.part is None else self._context.access.get(route.part, _OPEN)

    def _longer(self, scope: Scope) -> Route | None:
        for prefix, route in self._prefixes:
            if scope["path"].startswith(prefix):
                scope["path_params"] = {"rest": scope["path"].removeprefix(prefix)}
                return route
        return None

    async def _answer(self, request: Request, route: Route) -> Response:
        method, mode = request.scope["method"], self._context.developer
        if mode is not None:
            request.scope["state"]["inspector"] = mode.inspector(request)
        if method == "OPTIONS" and route.path in CORS_PATHS:
            return Response(b"", 204, {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET"})
        if route.methods and method not in route.methods and not (method == "HEAD" and "GET" in route.methods):
            allowed = ", ".join((*route.methods, "HEAD") if "GET" in route.methods else route.methods)
            catalogue = self._context.provider.policy.error_catalogue
            return errors.machine_error(
                request, 405, Reason.METHOD_NOT_ALLOWED, f"use {allowed}", {"Allow": allowed}, catalogue=catalogue
            )
        try:
            if route.scheme:
                tokens.refuse_absent(headers(request, b"authorization"), route.scheme)
            if OVERLOADED in request.scope["state"]:
                if request.method == "POST" and not route.own_forms:
                    with suppress(InvalidRequest):
                        await form_bytes(request)  # an answer of PAR repeats its state (D4)
                raise TemporarilyUnavailable(
                    Reason.BUSY, "too many requests are being answered at the moment: try again in a moment"
                )
            if TOO_LARGE in request.scope["state"]:
                raise ContentTooLarge(Reason.HTTP_BODY_TOO_LARGE, "the form is larger than it may be here")
            if route.own_forms and method == "POST":
                refuse_forged(request, self._context)
            return await route.endpoint(request, self._context)
        except Exception as error:  # noqa: BLE001 - the one place where whatever a route raises is rendered
            return route.fails(request, error, self._context)


class Extension:
    """An extension of every issuer of a deployment. This one adds nothing."""

    package: ClassVar[str] = ""
    """a package with `web/templates`, `web/static` and `locales` of its own; empty: there is none"""
    catalogue_path: ClassVar[str] = ""
    """of the page that explains every reason of a refusal, under base_url; empty: there is none (D28)"""
    is_demo: ClassVar[bool] = False
    """whether people sign in without their factors; a store is marked for a demo when it is made, or never (D66)"""

    def routes(self, base_url: str) -> tuple[Route, ...]:
        """Routes after an issuer's own."""
        del base_url
        return ()

    def mode(self, base_url: str) -> DeveloperMode | None:
        """Developer mode at an issuer, as its pages ask for it."""
        del base_url
        return None

    def application(self, router: ASGIApp, policy: Policy, clock: Callable[[], float]) -> ASGIApp:
        """An issuer's application, around its router."""
        del policy, clock
        return router

    def registry_cache(self, registry: Registry) -> RegistryCache:
        """The registry cache of the deployment."""
        return RegistryCache(registry)

    def signing_keys(self, registry: Registry, *, certificates: bool, issuer: str) -> SigningKeys:
        """The signing keys of an issuer."""
        return SigningKeys(registry, certificates=certificates, issuer=issuer)
