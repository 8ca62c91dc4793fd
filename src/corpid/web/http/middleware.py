"""The outermost layer, the choice of the issuer, and probes.

A request id, the host check (D35), the caller's address (D47), security headers (D36), an answer where an
exception was left over, and one line in the log (D48). Of several issuers, Host and path choose one (D62). Requests of
`corpid doctor` are answered here (D49). Plain ASGI: it runs for every request.
"""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from corpid.flows.operations.readiness import NotReady
from corpid.rules import probes
from corpid.rules.failures import SecretUnreadable
from corpid.rules.oauth.discovery import AUTHORIZATION_SERVER_PATH
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.urls import DEFAULT_PORTS
from corpid.web.http.addresses import HEALTH_PATHS, ClientAddresses, ForwardingHeader, Hosts
from corpid.web.http.requests import header_values, new_request_id, trace_id
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.rules.networks import Network
    from corpid.rules.probes import Probe
    from corpid.web.telemetry.access_log import LogFields

    Header = tuple[bytes, bytes]
    Headers = tuple[Header, ...]
    Observe = Callable[[str, int, str, float, str, str, str], None]
    RawHeaders = list[Header]

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
_PROBE: Final = probes.HEADER.lower().encode()
_RETURNED: Final = tuple((name.lower().encode(), value.encode()) for name, value in probes.RETURNED)
"""to every probe"""
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
        clock: Callable[[], float],
    ) -> None:
        """`keeps_https` asks browsers to stay on https.

        A developer's other servers on the same host may speak http. `probes` answers those of `corpid doctor`.
        `clock` gives epoch seconds, for references.
        """
        self._clock = clock
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
        """Answer one request. Source: D28, D35, D36, D47, D48"""
        started = perf_counter()
        exchange = _Exchange(send, self._security)
        state = scope.setdefault("state", {})
        request_id = state["request_id"] = new_request_id(self._clock())
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
        return _PROBE not in fields and scope["path"] not in self._apart and self._names_our_host(fields)

    def _names_our_host(self, fields: Mapping[bytes, list[bytes]]) -> bool:
        hosts = fields.get(b"host")
        return hosts is not None and len(hosts) == 1 and self._hosts.allows(hosts[0])

    async def _answer(self, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        """Answer probes, questions about health, and requests for other hosts.

        What only looks like a probe goes to the application.
        """
        state = scope["state"]
        fields = state["headers"]
        asked = self._probes if _PROBE in fields else None
        if asked is not None and await asked.answer(scope, exchange.send, self._addresses):
            return
        if (health := self._health.get(scope["path"])) is not None:
            await health(scope, exchange)
        elif self._names_our_host(fields):
            if scope["path"] != _SERVER:
                await self._app(scope, receive, exchange.send)
                return
            await exchange.send({"type": "http.response.start", "status": 204, "headers": []})
            await exchange.send({"type": "http.response.body", "body": b""})
        elif len(named_hosts(fields)) == 1:
            detail = "Host is neither base_url's nor in allowed_hosts"
            state["log"].update(error="misdirected_request", reason=Reason.HOST_UNKNOWN.code, detail=detail)
            sentence = "This host name is not served here: use the one in the issuer"
            await exchange.refuse(421, "invalid_request", sentence, state["request_id"])
        else:
            state["log"].update(error="invalid_request", reason=Reason.HOST_NOT_EXACTLY_ONE.code)
            sentence = "A request must have exactly one Host header"
            await exchange.refuse(400, "invalid_request", sentence, state["request_id"])

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


class Issuers:
    """The ASGI application of a deployment with several issuers.

    It is below the Middleware and passes each request on. Of the issuers of a host, the one with the longest path that
    is a prefix of the request's path answers. A host that is no issuer's own, but only in allowed_hosts, belongs to the
    first issuer. So does a path under none of its host's issuers, unless the host belongs only to another issuer, and
    so do the metadata of the admin API and the paths at the root of the host, which only the first one has. The
    metadata of an authorization server stand before the path of its issuer.

    Each issuer has a Provider and a Router; they share stores, people, caches, limits, signing keys and the counters
    against guessing. What keeps them apart: the issuer in the key of short-lived data (`flows.namespaces`), a secret of
    each for authenticated data (`flows.operations.signing_keys`), and `RegistryCache.of_issuer` for clients.
    Source: D35, D62, RFC 8414 §3.1
    """

    def __init__(self, applications: Mapping[tuple[str, str], ASGIApp], *, of_first: frozenset[str]) -> None:
        """Take the application of each issuer, the first one's first.

        The keys of `applications` are id and base_url of each issuer; `of_first` are paths at the root of its host that
        only the first one has.
        """
        self._paths_of_first: Final = of_first
        self._of_host: Final[dict[str, list[tuple[str, str, ASGIApp]]]] = {}
        for (issuer_id, base_url), application in applications.items():
            parts = urlsplit(base_url)
            self._port = f":{DEFAULT_PORTS.get(parts.scheme, '')}"
            self._of_host.setdefault(parts.netloc, []).append((parts.path, issuer_id, application))
        self._of_first_host: Final = next(iter(self._of_host.values()))
        self._first: Final = self._of_first_host[0]
        self._metadata_of_first: Final = f"{AUTHORIZATION_SERVER_PATH}{self._first[0]}/"
        for issuers in self._of_host.values():
            issuers.sort(key=lambda each: -len(each[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on to its issuer, which the log line names."""
        _, issuer_id, application = self._of(scope)
        log: LogFields = scope["state"]["log"]
        log["issuer"] = issuer_id
        await application(scope, receive, send)

    def _of(self, scope: Scope) -> tuple[str, str, ASGIApp]:
        [host] = named_hosts(scope["state"]["headers"])
        issuers = self._of_host.get(host.decode("latin-1").lower().removesuffix(self._port), self._of_first_host)
        path = scope["path"]
        if path.startswith(AUTHORIZATION_SERVER_PATH):
            of_issuer = path.removeprefix(AUTHORIZATION_SERVER_PATH)
            for issuer in issuers:
                if of_issuer == issuer[0]:
                    return issuer
        if issuers is self._of_first_host and (
            path in self._paths_of_first or path.startswith(self._metadata_of_first)
        ):
            return self._first
        for issuer in issuers:
            if path == issuer[0] or path.startswith(f"{issuer[0]}/"):
                return issuer
        return self._first if issuers is self._of_first_host else issuers[-1]


class Probes:
    """Answers requests that carry a valid token."""

    def __init__(self, open_token: Callable[[str], str], *, clock: Callable[[], float]) -> None:
        """`open_token` returns what a token seals. Raises SecretUnreadable."""
        self._open = open_token
        self._clock = clock

    async def answer(self, scope: Scope, send: Send, addresses: ClientAddresses) -> bool:
        """Answer a probe; False, and nothing sent, for any other request."""
        probe = self._probe(scope)
        if probe is None:
            return False
        scope["state"]["log"]["detail"] = "a probe of corpid doctor"
        if probe.wait:
            await asyncio.sleep(probe.wait)
        padding = [(probes.PADDING.lower().encode(), b"x" * probe.padding)] if probe.padding else []
        await _send_json(send, 200, _received(probe, scope, addresses), *_RETURNED, *padding)
        return True

    def _probe(self, scope: Scope) -> Probe | None:
        tokens = scope["state"]["headers"][_PROBE]
        if scope["method"] != "GET" or len(tokens) != 1 or len(tokens[0]) > probes.TOKEN_CHARACTERS:
            return None
        try:
            opened = self._open(tokens[0].decode("latin-1"))
        except SecretUnreadable:
            return None
        return probes.read(opened, self._clock())


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

    async def refuse(self, status: int, code: str, description: str, request_id: str) -> None:
        content = {"error": code, "error_description": f"{description} (reference {request_id})"}
        await _send_json(self.send, status, content)

    async def last_resort(self, request_id: str) -> None:
        """Handle an error that nothing below has handled.

        A response begun stays unfinished, and the connection below closes: the caller must not take it for whole.
        """
        if not self.status:
            await self.refuse(500, "server_error", "Something went wrong here, not with the request", request_id)


async def _send_json(send: Send, status: int, content: object, *more: Header, head: bool = False) -> None:
    body = msgspec.json.encode(content)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})


async def _say(scope: Scope, exchange: _Exchange, status: int, word: str, **more: str) -> None:
    if scope["method"] in {"GET", "HEAD"}:
        await _send_json(exchange.send, status, {"status": word, **more}, head=scope["method"] == "HEAD")
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


def _received(probe: Probe, scope: Scope, addresses: ClientAddresses) -> probes.RequestReport:
    fields: dict[bytes, list[bytes]] = scope["state"]["headers"]
    peer = scope["client"][0] if scope.get("client") else ""
    return probes.RequestReport(
        probe=probe.id,
        path=(scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        query_bytes=len(scope["query_string"]),
        http_version=scope["http_version"],
        peer=peer,
        is_trusted=addresses.trusts(peer),
        address=scope["state"]["client_address"],
        headers={
            name: [value.decode("latin-1") for value in fields[name.encode()]]
            for name in probes.REPORTED
            if name.encode() in fields
        },
    )
