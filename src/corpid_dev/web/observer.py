"""The layer around a demo's provider that keeps its exchanges (D66).

Nothing loads it outside developer mode. It holds a request and its answer until both are whole, so that an order of the
sandbox can answer instead, or change the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from starlette.requests import Request

from corpid.jose.encoding import MalformedToken, json_object
from corpid.rules.oauth import discovery
from corpid.rules.oauth.client_assertion import claimed_client_id
from corpid.rules.oauth.refusals import Reason
from corpid.web.context import SIGN_IN_PATH
from corpid_dev.flows import exchanges
from corpid_dev.flows.exchanges import Answer, Endpoint, Exchange, Pairs
from corpid_dev.web.mode import Mode
from corpid_dev.web.paths import SIGN_INS_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.flows.request_context import Policy
    from corpid_dev.flows.people import Developer

HIDDEN: Final = "[hidden]"
"""in place of the key of this start"""
MARK: Final = "corpid-sandbox"
"""the header of an answer that an order changed"""
_LEAVE: Final = "/leave"
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_KEPT_OUT: Final = frozenset({"cookie", "set-cookie"})


@dataclass(frozen=True, slots=True)
class RecordedEndpoint:
    """A watched endpoint. `path` names it in the log."""

    endpoint: Endpoint
    path: str


class Observer:
    """Keeps the exchanges of one issuer."""

    def __init__(self, app: ASGIApp, developer: Developer, policy: Policy, clock: Callable[[], float]) -> None:
        self._app: Final = app
        self._developer: Final = developer
        self._mode: Final = Mode(developer, base_url=policy.base_url)
        self._issuer_id: Final = policy.issuer_id
        self._issuer: Final = policy.base_url
        self._clock: Final = clock
        base = urlsplit(policy.base_url).path
        paths: dict[str, str] = {
            "discovery": discovery.DISCOVERY_PATH,
            "jwks": discovery.JWKS_PATH,
            "authorize": discovery.AUTHORIZATION_PATH,
            "token": discovery.TOKEN_PATH,
        }
        if policy.pushed is not None:
            paths["par"] = discovery.PAR_PATH
        for generation in policy.served:
            paths |= {each.name: each.path for each in generation.resources}
        self._exact: Final = {
            base + path: RecordedEndpoint(cast("Endpoint", name), path) for name, path in paths.items()
        }
        metadata = discovery.AUTHORIZATION_SERVER_PATH
        self._exact[metadata + base] = RecordedEndpoint("metadata", metadata)
        self._exact[base + SIGN_INS_PATH] = RecordedEndpoint("callback", SIGN_INS_PATH)
        self._sign_in: Final = base + SIGN_IN_PATH

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; keep the exchange of a protocol request."""
        watched = self._watched(scope) if scope["type"] == "http" else None
        if watched is None:
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        sent = await body.read() if _has_form(scope, watched) else b""
        exchange = self._exchange(scope, watched, sent)
        self._developer.exchanges.begin(exchange)
        started = perf_counter()
        answer = _BufferedResponse()
        with exchanges.in_progress(exchange):
            await self._carry_out(scope, body, answer, exchange, watched)
        exchange.seconds = perf_counter() - started
        if exchange.orders:
            _mark(scope, exchange)
        if watched.endpoint == "callback" and not exchange.callback:
            await answer.send(exchange, scope, send)
            return
        self._developer.exchanges.learn(exchange)
        await answer.send(exchange, scope, send)
        self._keep(exchange)

    def _keep(self, exchange: Exchange) -> None:
        if self._developer.key:
            _hide(exchange, self._developer.key)
        self._developer.exchanges.add(_redacted(exchange))

    async def _carry_out(
        self, scope: Scope, body: _Body, answer: _BufferedResponse, exchange: Exchange, watched: RecordedEndpoint
    ) -> None:
        """Let an order or the provider answer."""
        fault_injector = self._developer.fault_injector
        ordered = await fault_injector.intercept_request(exchange) if fault_injector is not None else None
        if ordered is not None:
            scope.setdefault("route", watched)
            _take(exchange, ordered)
        else:
            try:
                await self._app(scope, body.again, answer)
            except Exception:
                exchange.status, exchange.error, exchange.reason = 500, "server_error", Reason.UNFORESEEN.code
                self._keep(exchange)
                raise
            _take(exchange, answer.whole)
        _read_log(scope, exchange)
        if watched.endpoint == "authorize" and not exchange.callback:
            exchange.interaction = _interaction(exchange, self._sign_in)
        if fault_injector is not None and (watched.endpoint != "callback" or exchange.callback):
            await fault_injector.alter_answer(exchange)

    def _watched(self, scope: Scope) -> RecordedEndpoint | None:
        path: str = scope["path"]
        found = self._exact.get(path)
        if found is not None:
            return found if found.path != SIGN_INS_PATH or self._is_open_sign_in(scope) else None
        if path.startswith(self._sign_in) and path.endswith(_LEAVE) and scope["method"] == "GET":
            return RecordedEndpoint("callback", f"{SIGN_IN_PATH}{{rest}}")
        return None

    def _is_open_sign_in(self, scope: Scope) -> bool:
        """Return whether an order to sign in sees developer mode.

        Any other uses up no order of the sandbox.
        """
        return scope["method"] == "POST" and self._mode.opens(Request(scope))

    def _exchange(self, scope: Scope, watched: RecordedEndpoint, body: bytes) -> Exchange:
        query = scope["query_string"].decode("latin-1")
        headers = _pairs(scope["headers"])
        interaction, path = "", scope["path"]
        if path.startswith(self._sign_in):
            interaction = path.removeprefix(self._sign_in).removesuffix(_LEAVE)
            path = f"{self._sign_in}...{_LEAVE}"
        if watched.path == SIGN_INS_PATH:
            parameters = _of_order(body)
        else:
            parameters = (*_form(query), *_form(body.decode("latin-1")))
        authorization = [value.encode("latin-1") for name, value in headers if name == "authorization"]
        return Exchange(
            request_id=scope["state"]["request_id"],
            at=self._clock(),
            issuer_id=self._issuer_id,
            issuer=self._issuer,
            endpoint=watched.endpoint,
            method=scope["method"],
            path=path,
            query=query,
            headers=headers,
            body=body,
            parameters=parameters,
            client_id=claimed_client_id(dict(parameters), authorization),
            interaction=interaction,
        )


class _Body:
    """A request's body, which is read once and handed on again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []

    async def read(self) -> bytes:
        """All of it; less if the caller left."""
        body, more = b"", True
        while more:
            message = await self._receive()
            self._messages.append(message)
            body += message.get("body", b"")
            more = message["type"] == "http.request" and message.get("more_body", False)
        return body

    async def again(self) -> Message:
        """The messages that were read, then those that follow."""
        return self._messages.pop(0) if self._messages else await self._receive()


class _BufferedResponse:
    """An answer that is held until it is whole."""

    def __init__(self) -> None:
        self._start: Message = {}
        self._body: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body.append(message.get("body", b""))

    @property
    def whole(self) -> Answer:
        """The answer as the provider gave it."""
        return Answer(
            status=self._start["status"],
            headers=_pairs(self._start.get("headers", ()), every=True),
            body=b"".join(self._body),
        )

    async def send(self, exchange: Exchange, scope: Scope, send: Send) -> None:
        """Send the answer as it is now."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in exchange.response_headers]
        if exchange.response_body != b"".join(self._body) and scope["method"] != "HEAD":
            headers = [field for field in headers if field[0] != b"content-length"]
            headers.append((b"content-length", b"%d" % len(exchange.response_body)))
        await send({"type": "http.response.start", "status": exchange.status, "headers": headers})
        await send({"type": "http.response.body", "body": exchange.response_body})


def _has_form(scope: Scope, watched: RecordedEndpoint) -> bool:
    """Return whether the body is read.

    That of a form at a sign-in never is: it holds passwords and codes.
    """
    return scope["method"] == "POST" and (
        watched.endpoint in ("par", "token", "authorize") or watched.path == SIGN_INS_PATH
    )


def _pairs(headers: Any, *, every: bool = False) -> Pairs:  # noqa: ANN401 - ASGI's
    named = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
    return tuple((name, value) for name, value in named if every or name not in _KEPT_OUT)


def _form(text: str) -> Pairs:
    return tuple(parse_qsl(text, keep_blank_values=True, errors="replace"))


def _of_order(body: bytes) -> Pairs:
    """The authorization request in an order to sign in."""
    try:
        address = json_object(body).get("authorize_url")
    except MalformedToken:
        return ()
    return _form(str(address).partition("?")[2].partition("#")[0])


def _take(exchange: Exchange, answer: Answer) -> None:
    exchange.status, exchange.response_body = answer.status, answer.body
    exchange.response_headers = list(answer.headers)


def _read_log(scope: Scope, exchange: Exchange) -> None:
    """Take over the log fields of the request."""
    log, state = scope["state"]["log"], scope["state"]
    exchange.error, exchange.reason = log.get("error", ""), log.get("reason", "")
    exchange.detail, exchange.explanation = log.get("detail", ""), state.get("explanation")
    exchange.authenticated = "client_id" in log
    exchange.client_id = log.get("client_id") or log.get("claimed_client_id") or exchange.client_id


def _interaction(exchange: Exchange, sign_in: str) -> str:
    """The id of the sign-in to whose page an answer leads."""
    location = dict(exchange.response_headers).get("location", "")
    rest = location.partition(sign_in)[2] if exchange.status in _REDIRECTS else ""
    return rest.partition("/")[0].partition("?")[0]


def _mark(scope: Scope, exchange: Exchange) -> None:
    """Name the obeyed orders in the answer and in the log."""
    names = ", ".join(exchange.orders)
    exchange.response_headers.append((MARK, names))
    log = scope["state"]["log"]
    log["detail"] = "; ".join(filter(None, (f"sandbox {names}", log.get("detail", ""))))


def _hide(exchange: Exchange, key: str) -> None:
    """Take the key of this start out of an exchange.

    It may be in an address, as of a sign-in without a browser, or in a Referer.
    """

    def without(text: str) -> str:
        shown = text.replace(key, HIDDEN)
        return HIDDEN if key in unquote_plus(shown) else shown

    def every(pairs: Iterable[tuple[str, str]]) -> Pairs:
        return tuple((without(name), without(value)) for name, value in pairs)

    exchange.query = without(exchange.query)
    exchange.headers, exchange.parameters = every(exchange.headers), every(exchange.parameters)
    exchange.response_headers, exchange.callback = list(every(exchange.response_headers)), every(exchange.callback)
    octets, hidden = key.encode(), HIDDEN.encode()
    exchange.body = exchange.body.replace(octets, hidden)
    exchange.response_body = exchange.response_body.replace(octets, hidden)


def _redacted(exchange: Exchange) -> Exchange:
    """The exchange as it is kept: no cookies, no pages."""
    kept = [(name, value) for name, value in exchange.response_headers if name not in _KEPT_OUT]
    media_type = dict(kept).get("content-type", "")
    exchange.response_headers = kept
    if media_type.startswith("text/html"):
        exchange.response_body = b""
    return exchange
