"""Raw HTTP requests to a deployment, and its discovery document.

Requests have exact paths, repeated headers and any size; CorpID's answers are recognised. Nothing but the origin that
was named is connected to, one request a connection, and no redirect is followed.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from corpid.rules.diagnostics import Finding, ok, problem, sentence
from corpid.rules.oauth import discovery
from corpid.rules.oauth.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Fields = Sequence[tuple[str, str]]

ANSWER_SECONDS: Final = 10.0
MOST_BYTES: Final = 1 << 20
"""of a response; the rest is not read"""
_RECEIVED_BYTES: Final = 2 * MOST_BYTES
"""of everything that comes with it"""
FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")
_REFERENCE: Final = re.compile(r"\(reference ([0-9a-f]{16})\)")
_SERVERS: Final = ("Server", "Via")
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""OpenSSL's error for a response that is not TLS"""


_PAR: Final = "pushed_authorization_request_endpoint"
_GATEWAY_ERRORS: Final = frozenset({502, 503, 504})
_MISDIRECTED: Final = 421


class NoResponse(Exception):
    """The origin cannot be reached, or closed the connection.

    The text gives the reason.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    """A response, from CorpID or a proxy."""

    status: int
    """0: the connection was closed without one"""
    headers: Fields
    body: bytes
    local: str = ""
    """this machine's address in the connection"""

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for given, value in self.headers if given.lower() == name.lower()]

    def header(self, name: str) -> str:
        """The values of a header as one; empty if there is none."""
        return ", ".join(self.all(name))

    @property
    def json(self) -> dict[str, Any]:
        """The members of the JSON object in its body; empty without one."""
        try:
            content = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def description(self) -> str:
        """CorpID's error_description; empty without one."""
        description = self.json.get("error_description", "")
        return description if isinstance(description, str) else ""

    @property
    def reference(self) -> str:
        """CorpID's request id, which leads to its log line; otherwise empty (D28)."""
        found = _REFERENCE.search(self.description)
        return found[1] if found else ""

    @property
    def is_corpid(self) -> bool:
        """True for an error from CorpID, not from a proxy."""
        return bool(self.reference)

    def summary(self) -> str:
        """The answer in a few words, for a finding."""
        if not self.status:
            return "the connection was closed without an answer"
        sender = (
            "CorpID" if self.is_corpid else next(filter(None, map(self.header, _SERVERS)), "something before CorpID")
        )
        more = f": {self.description}" if self.description else ""
        return f"{self.status} by {sender}{more}"


class Origin:
    """The target of requests: scheme, host and port of one URL.

    `trusting` None: http, or TLS unchecked.
    """

    def __init__(self, url: str, trusting: ssl.SSLContext | None = None) -> None:
        """Raise ValueError unless it is an http or https URL."""
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.username is not None:
            raise ValueError(f"{url} is not a URL: write, for example, https://login.example.org")
        self.secure: Final = parts.scheme == "https"
        self.host: Final = parts.hostname
        self.port: Final = parts.port or DEFAULT_PORTS[parts.scheme]
        self.path: Final = parts.path.rstrip("/")
        self.netloc: Final = parts.netloc
        self.url: Final = f"{parts.scheme}://{parts.netloc}{self.path}"
        self.trusting: Final = trusting

    def connection(self, trusting: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
        """A connection that is not yet open."""
        made: http.client.HTTPConnection
        if self.secure:
            context = trusting or self.trusting
            made = http.client.HTTPSConnection(self.host, self.port, timeout=ANSWER_SECONDS, context=context)
        else:
            made = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_SECONDS)
        made.response_class = _BoundedResponse
        return made

    def offer(self, path: str, fields: Fields, body: bytes = b"x=y") -> RawResponse:
        """As `ask`, for a POST that may be refused while sending."""
        try:
            return self.ask("POST", path, (FORM, *fields), body)
        except NoResponse:
            return RawResponse(status=0, headers=(), body=b"")

    def ask(
        self,
        method: str,
        path: str,
        fields: Fields = (),
        body: bytes = b"",
        *,
        host: str = "",
        server_closes: bool = True,
    ) -> RawResponse:
        """One request, exactly so.

        `path` follows the URL's own, `host` replaces its Host. If the server is not asked to close the connection, none
        stays in its system's table. Raises NoResponse.
        """
        connection = self.connection()
        try:
            connection.connect()
            local = str(connection.sock.getsockname()[0])
            connection.putrequest(method, self.path + path, skip_host=True, skip_accept_encoding=True)
            sent = (("Host", host or self.netloc), *fields, ("Connection", "close" if server_closes else "keep-alive"))
            length = (("Content-Length", str(len(body))),) if body or method == "POST" else ()
            for name, value in (*sent, *length):
                connection.putheader(name, value)
            with _in_time(connection.sock):
                _send(connection, body)
                answer = connection.getresponse()
                body = answer.read(MOST_BYTES)
                return RawResponse(status=answer.status, headers=answer.getheaders(), body=body, local=local)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoResponse(_why(error)) from error
        finally:
            connection.close()


def create_tls_context(authority: Path | None) -> ssl.SSLContext:
    """A TLS context with the machine's, or given, certificate authorities.

    Raises OSError, ssl.SSLError.
    """
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    context.set_alpn_protocols(["http/1.1"])
    return context


def create_unchecked_context() -> ssl.SSLContext:
    """A TLS context that trusts everyone, to continue after a wrong certificate.

    No secret is sent.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedDeployment:
    """A deployment that returned its discovery document."""

    origin: Origin
    answer: RawResponse
    document: Mapping[str, Any]

    @property
    def issuer(self) -> str:
        """The base_url of the deployment that responded."""
        return str(self.document["issuer"])

    def path(self, member: str) -> str | None:
        """The path of an endpoint, under base_url.

        None if the document does not name it.
        """
        url = self.document.get(member)
        return url.removeprefix(self.issuer) if isinstance(url, str) and url.startswith(self.issuer + "/") else None

    @property
    def pushing(self) -> str | None:
        """The path of PAR; None if requests are not pushed."""
        return self.path(_PAR)

    @property
    def token(self) -> str:
        """The path of the token endpoint."""
        return self.path("token_endpoint") or discovery.TOKEN_PATH


def reach_deployment(origin: Origin) -> tuple[Finding, ExaminedDeployment | None]:
    """Fetch the discovery document.

    None without one, which ends the checks (Spec 4.6).
    """
    try:
        answer = origin.ask("GET", discovery.DISCOVERY_PATH, [("Accept", "application/json")])
    except NoResponse as error:
        return problem(
            sentence(f"{origin.url} does not answer: {error}"),
            "start the proxy, and check its address, its certificate and the firewall",
        ), None
    document = answer.json
    if answer.status == 200 and isinstance(document.get("issuer"), str):
        return ok("The discovery document was found."), ExaminedDeployment(
            origin=origin, answer=answer, document=document
        )
    return problem(
        f"There is no discovery document at {discovery.DISCOVERY_PATH}: {answer.summary()}.", _remedy(answer)
    ), None


def _remedy(answer: RawResponse) -> str:
    if answer.status == _MISDIRECTED:
        return (
            "let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host), or set base_url to "
            "the host that callers use; the Host that reaches CorpID is not that of base_url"
        )
    if answer.is_corpid:
        return (
            "let the proxy pass on paths unchanged, without adding or removing a prefix; if all paths are to have a "
            "prefix, include it in base_url"
        )
    if answer.status in _GATEWAY_ERRORS:
        return "start CorpID, and let the proxy send requests to the host and port it listens on; /readyz says more"
    return "let the proxy send every path of this host to CorpID"


class _BoundedResponse(http.client.HTTPResponse):
    """A response of bounded length.

    http.client reads any number of interim responses before it.
    """

    def __init__(self, connected: socket.socket, *rest: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(connected, *rest, **named)
        received: Any = self.fp
        self.fp = io.BufferedReader(_Bounded(received.detach()))


class _Bounded(io.RawIOBase):
    """A socket's input. Reading raises HTTPException beyond the limit."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:  # noqa: ANN401
        count: int | None = self._raw.readinto(buffer)
        self._received += count or 0
        if self._received > _RECEIVED_BYTES:
            raise http.client.HTTPException(f"more than {_RECEIVED_BYTES >> 20} MiB came without an end")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextmanager
def _in_time(connected: socket.socket) -> Iterator[None]:
    """Close the connection after ANSWER_SECONDS in all.

    A socket's own timeout restarts with each byte. Raises TimeoutError.
    """
    late = threading.Event()

    def hang_up() -> None:
        late.set()
        with suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # of the TCP connection below TLS

    timer = threading.Timer(ANSWER_SECONDS, hang_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise TimeoutError


def _send(connection: http.client.HTTPConnection, body: bytes) -> None:
    """Send a request.

    A server that refuses early may not read it all.
    """
    try:
        connection.endheaders(body or None)
    except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
        return


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_SECONDS:g} seconds"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate cannot be checked: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return "it does not speak TLS here: is it http?"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
