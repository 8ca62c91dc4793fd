"""The outermost layer, around every request.

A request id, the host check (D35), the caller's address (D47), security headers (D36), an answer where an
exception was left over, and one line in the log (D48). Plain ASGI: it runs for every request.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.operations.readiness import NotReady
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.addresses import HEALTH_PATHS, ClientAddresses, ForwardingHeader, Hosts
from corpid.web.http.probes import HEADER as PROBE
from corpid.web.http.requests import header_values, new_request_id, trace_id
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.rules.networks import Network
    from corpid.web.http.probes import Probes
    from corpid.web.telemetry.access_log import LogFields

    Headers = tuple[tuple[bytes, bytes], ...]
    Observe = Callable[[str, int, str, float, str, str, str], None]
    RawHeaders = list[tuple[bytes, bytes]]

CONTENT_SECURITY_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FORM_POST_POLICY: Final = CONTENT_SECURITY_POLICY.replace(b"form-action 'self'; ", b"").decode()
"""of the one page whose form goes to a relying party: browsers apply form-action to its redirects, too (D37)"""
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
PAGE_HEADERS: Final = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    NOSNIFF,
)
HSTS: Final = (b"strict-transport-security", b"max-age=31536000")
SECURITY_HEADERS: Final = frozenset(name for name, _ in (*PAGE_HEADERS, HSTS))
_UNAVAILABLE: Final = 503
_SERVER: Final = "*"
"""the target of OPTIONS that means the server as a whole (RFC 9110 §9.3.7)"""
NO_ENDPOINT: Final = "other"
"""the name of a request without a route"""
CANCELLED: Final = 499
"""logged if no response was sent: the process stopped, or the caller was gone"""


def named_hosts(fields: Mapping[bytes, list[bytes]]) -> list[bytes]:
    """Every Host header of a request.

    A request must have exactly one (RFC 9112 §3.2, D35).
    """
    return fields.get(b"host", [])


class Middleware:
    """Admits each request to the application, and finishes its response.

    It gives the request its id, determines the caller's address, refuses a foreign `Host`, answers probes, and adds
    security headers, the log line and measurements. `ready` raises NotReady while the deployment cannot answer, and
    returns until when it recovers from a loss of data, epoch seconds; 0.0 if it does not (D67). `suspect` is called
    after an answer to a request that met a store which failed.

    For an endpoint, `scope["state"]` holds `headers` (see `header_values`), `request_id`, `client_address` and
    `log`, a LogFields it may add to. A
    `trace_id` found there afterwards is the line's, else the one that the caller named.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        base_url: str,
        ready: Callable[[], Awaitable[float]],
        suspect: Callable[[], None] = lambda: None,
        further_urls: Sequence[str] = (),
        allowed_hosts: Sequence[str] = (),
        trusted_proxies: Sequence[Network] = (),
        forwarded_header: str = ForwardingHeader.X_FORWARDED_FOR,
        keeps_https: bool = True,
        probes: Probes | None = None,
    ) -> None:
        """`keeps_https` asks browsers to stay on https.

        A developer's other servers on the same host may speak http. `probes` answers those of `corpid doctor`.
        """
        self._app = app
        self._hosts = Hosts(base_url, allowed_hosts, further_urls=further_urls)
        self._addresses = ClientAddresses(trusted_proxies, forwarded_header)
        always = (HSTS,) if keeps_https and base_url.startswith("https:") else ()
        self._security = ((NOSNIFF, *always), (*PAGE_HEADERS, *always))
        self._health = dict(zip(HEALTH_PATHS, (self._healthz, self._readyz), strict=True))
        self._apart = frozenset({*HEALTH_PATHS, _SERVER})
        self._ready = ready
        self._suspect = suspect
        self._probes = probes
        self._draining = False
        self._observe: Observe | None = None

    def drain(self) -> None:
        """Report on /readyz that this process is stopping."""
        self._draining = True

    def observe(self, observe: Observe) -> None:
        """Report every answer to this function.

        It receives the endpoint, status, error code, duration in seconds, reason, whether the client is known, and the
        issuer.
        """
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass a lifespan on.

        Source: D28, D35, D36, D47, D48
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        exchange = _Exchange(send, self._security)
        state = scope.setdefault("state", {})
        request_id = state["request_id"] = new_request_id()
        fields = state["headers"] = header_values(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        address = state["client_address"] = self._addresses.caller_address(peer, scope["headers"])
        added: LogFields = {}
        state["log"] = added
        try:
            if self._goes_to_application(scope, fields):
                await self._app(scope, receive, exchange.send)
            else:
                await self._answer(scope, receive, exchange)
        except Exception as error:  # noqa: BLE001 - the last resort
            added["error"], added["reason"] = "server_error", Reason.UNFORESEEN.code
            access_log.log().error("unforeseen exception", request_id=request_id, exc_info=error)
            await exchange.last_resort(request_id)
        finally:
            seconds = perf_counter() - started
            status = exchange.status or CANCELLED
            route: Any = scope.get("route")
            line = {
                "request_id": request_id,
                "method": scope["method"],
                "path": _unrouted(scope["path"]) if route is None else route.path,
                "status": status,
                "duration_ms": int(seconds * 100_000 + 0.5) / 100,
                "address": address,
            }
            trace = state.get("trace_id")
            if not trace and b"traceparent" in fields:
                trace = trace_id(fields[b"traceparent"])
            if trace is not None:
                line["trace_id"] = trace
            access_log.request(line, added)
            if status == _UNAVAILABLE and added.get("reason") == Reason.STORE_UNAVAILABLE.code:
                self._suspect()
            if self._observe is not None:
                code, reason = added.get("error", ""), added.get("reason", "")
                client = "authenticated" if "client_id" in added else "stranger"
                # A name of ours, whatever path was asked for.
                unrouted = scope["path"] if scope["path"] in self._health else NO_ENDPOINT
                endpoint = unrouted if route is None else route.path
                self._observe(endpoint, status, code, seconds, reason, client, added.get("issuer", ""))

    def _goes_to_application(self, scope: Scope, fields: Mapping[bytes, list[bytes]]) -> bool:
        """Return whether the application answers.

        It does unless it is a probe, about health or the whole server, or for another host.
        """
        return PROBE not in fields and scope["path"] not in self._apart and self._names_our_host(fields)

    def _names_our_host(self, fields: Mapping[bytes, list[bytes]]) -> bool:
        hosts = fields.get(b"host")
        return hosts is not None and len(hosts) == 1 and self._hosts.allows(hosts[0])

    async def _answer(self, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        """Answer probes, questions about health, and requests for other hosts.

        What only looks like a probe goes to the application.
        """
        if (
            self._probes is not None
            and PROBE in scope["state"]["headers"]
            and await self._probes.answer(scope, exchange.send, self._addresses)
        ):
            return
        health = self._health.get(scope["path"])
        if health is not None:
            await health(scope, exchange)
            return
        fields = scope["state"]["headers"]
        if self._names_our_host(fields) and scope["path"] == _SERVER:
            await exchange.send({"type": "http.response.start", "status": 204, "headers": []})
            await exchange.send({"type": "http.response.body", "body": b""})
        elif self._names_our_host(fields):
            await self._app(scope, receive, exchange.send)
        elif len(named_hosts(fields)) == 1:
            await _misdirected(scope, exchange)
        else:
            scope["state"]["log"].update(error="invalid_request", reason=Reason.HOST_NOT_EXACTLY_ONE.code)
            await exchange.refuse(
                400, "invalid_request", "A request must have exactly one Host header", scope["state"]["request_id"]
            )

    async def _healthz(self, scope: Scope, exchange: _Exchange) -> None:
        await _say(scope, exchange, 200, "alive")

    async def _readyz(self, scope: Scope, exchange: _Exchange) -> None:
        if self._draining:
            await _say(scope, exchange, 503, "stopping")
            return
        try:
            recovering = await self._ready()
        except NotReady as error:
            scope["state"]["log"]["detail"] = f"not ready: {error}"
            await _say(scope, exchange, 503, "not ready", part=error.part)
        else:
            more = {"recovering": "short-lived state", "until": _moment(recovering)} if recovering else {}
            await _say(scope, exchange, 200, "ready", **more)


class _Exchange:
    """The answer of one request, on its way out."""

    __slots__ = ("_security", "_send", "status")

    def __init__(self, send: Send, security: tuple[Headers, Headers]) -> None:
        """`security` are the headers of answers for programs, and of pages."""
        self._send = send
        self._security = security
        self.status = 0

    def send(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._secured(message.get("headers", ()))
        return self._send(message)

    def _secured(self, headers: Any) -> RawHeaders:  # noqa: ANN401
        """Add security headers, except those that the endpoint set itself (D37)."""
        secured: RawHeaders = list(headers)
        (wanted, page), own = self._security, []
        for name, value in secured:
            if name in SECURITY_HEADERS:
                own.append(name)
            elif name == b"content-type" and value.startswith(b"text/html"):
                wanted = page
        secured += [field for field in wanted if field[0] not in own] if own else wanted
        return secured

    async def json(self, status: int, content: object, *, head: bool = False) -> None:
        body = msgspec.json.encode(content)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"" if head else body})

    async def refuse(self, status: int, code: str, description: str, request_id: str) -> None:
        await self.json(status, {"error": code, "error_description": f"{description} (reference {request_id})"})

    async def last_resort(self, request_id: str) -> None:
        """Handle an error that nothing below has handled.

        A response begun stays unfinished, and the connection below closes: the caller must not take it for whole.
        """
        if not self.status:
            await self.refuse(500, "server_error", "Something went wrong here, not with the request", request_id)


async def _misdirected(scope: Scope, exchange: _Exchange) -> None:
    state = scope["state"]
    detail = "Host is neither base_url's nor in allowed_hosts"
    state["log"].update(error="misdirected_request", reason=Reason.HOST_UNKNOWN.code, detail=detail)
    await exchange.refuse(
        421, "invalid_request", "This host name is not served here: use the one in the issuer", state["request_id"]
    )


async def _say(scope: Scope, exchange: _Exchange, status: int, word: str, **more: str) -> None:
    if scope["method"] in {"GET", "HEAD"}:
        await exchange.json(status, {"status": word, **more}, head=scope["method"] == "HEAD")
        return
    scope["state"]["log"].update(error="invalid_request", reason=Reason.METHOD_NOT_ALLOWED.code)
    body = msgspec.json.encode({"error": "invalid_request", "error_description": "Use GET"})
    headers = [(b"content-type", b"application/json"), (b"allow", b"GET, HEAD"), (b"content-length", b"%d" % len(body))]
    await exchange.send({"type": "http.response.start", "status": 405, "headers": headers})
    await exchange.send({"type": "http.response.body", "body": body})


def _moment(seconds: float) -> str:
    """A moment in UTC, rounded up to a second (RFC 3339)."""
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unrouted(path: str) -> str:
    """The first segment of a path without a route, for the log."""
    start = path.find("/", 1)
    return access_log.cut(path if start < 0 else f"{path[: start + 1]}...")
