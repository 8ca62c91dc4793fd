"""Exchanges with relying parties, kept in memory for their developers.

Only developer mode keeps them (D66), within bounds. A relying party's own requests are kept as they came, credentials
and all; of a browser neither cookies nor forms are kept, and no page.
"""

from __future__ import annotations

from asyncio import Event
from collections import OrderedDict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec

from corpid.jose.encoding import MalformedToken, from_base64url, json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpid.jose.key_ring import KeyRing
    from corpid.rules.oauth.errors import Explanation

Endpoint: TypeAlias = Literal[
    "discovery", "metadata", "jwks", "par", "authorize", "callback", "token", "userinfo", "authorization-info",
    "entity-info",
]  # fmt: skip
"""`metadata` is RFC 8414's document; `callback` is the answer that ends a sign-in and leads to the redirect URI"""
Pairs: TypeAlias = tuple[tuple[str, str], ...]

EXCHANGES: Final = 1000
BYTES: Final = 32 * 1024 * 1024
EXCHANGES_OF_CLIENT: Final = 250
BYTES_OF_CLIENT: Final = 8 * 1024 * 1024
BODY_BYTES: Final = 256 * 1024
"""of one body; the rest is not kept"""
LINKS: Final = 4000
"""request_uris, sign-ins, codes and access tokens of which it is known to which sign-in they belong"""
SUBSCRIBERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedToken:
    """A JWS that the provider signed, before it was encrypted."""

    typ: str
    token: str

    @property
    def header(self) -> dict[str, Any]:
        """The protected header."""
        return decode_part(self.token, 0)

    @property
    def claims(self) -> dict[str, Any]:
        """The payload."""
        return decode_part(self.token, 1)


def decode_part(token: str, part: int) -> dict[str, Any]:
    """A part of a compact JWS as JSON, unverified.

    Empty if the text is none. Source: RFC 7515 §3.1
    """
    parts = token.split(".")
    try:
        return json_object(from_base64url(parts[part]))
    except (MalformedToken, ValueError, IndexError):
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer in place of the provider's."""

    status: int
    headers: Pairs = ()
    body: bytes = b""


@dataclass(slots=True, kw_only=True)
class SignIn:
    """The sign-in to which several exchanges belong."""

    sign_in_id: str
    client_id: str = ""
    request_uri: str = ""
    """the one that PAR answered; empty for a request in the query"""
    state: str = ""
    """of a request in the query"""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A protocol request at an issuer, and its answer.

    The members of the answer are empty until there is one; a fault injector may change them.
    """

    exchange_id: int = 0
    """rising, in the order in which the answers were complete; 0 while there is none"""
    request_id: str
    """the reference in errors and in the log (D28)"""
    at: float
    """epoch seconds"""
    issuer_id: str
    issuer: str
    """base_url of the issuer"""
    endpoint: Endpoint
    method: str
    path: str
    query: str
    headers: Pairs
    """with lower-case names, without cookies"""
    body: bytes = b""
    parameters: Pairs = ()
    """of the query, then of the form"""
    client_id: str = ""
    """as claimed, until the log names it"""
    authenticated: bool = False
    """whether the client was authenticated, or had pushed the request"""
    interaction: str = ""
    """id of the sign-in's page to which authorize leads, or from which the callback comes"""
    sign_in: SignIn | None = None
    """None for documents that belong to no sign-in"""
    status: int = 0
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    response_body: bytes = b""
    callback: Pairs = ()
    """the parameters that go to the redirect URI, if the answer leads there"""
    error: str = ""
    reason: str = ""
    """code of the reason in the catalogue"""
    detail: str = ""
    explanation: Explanation | None = None
    signed: list[SignedToken] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    """names of the sandbox orders that were obeyed"""
    seconds: float = 0.0
    clipped: bool = False
    """whether a body was longer than what is kept"""

    @property
    def request_uri(self) -> str:
        """The request_uri of the sign-in that it belongs to."""
        return self.sign_in.request_uri if self.sign_in else ""

    @property
    def size(self) -> int:
        """About as many bytes as it takes."""
        pairs = (*self.headers, *self.parameters, *self.response_headers, *self.callback)
        texts = sum(len(name) + len(value) for name, value in pairs)
        tokens = sum(len(each.token) for each in self.signed)
        return 2000 + texts + tokens + len(self.query) + len(self.body) + len(self.response_body)

    def first(self, name: str) -> str:
        """The first value of a parameter, empty if there is none."""
        return next((value for each, value in self.parameters if each == name), "")

    def header(self, name: str) -> str:
        """The first value of a request header, empty if there is none."""
        return next((value for each, value in self.headers if each == name), "")


class FaultInjector(Protocol):
    """The sandbox, whose orders may change answers."""

    async def intercept_request(self, exchange: Exchange) -> Answer | None:
        """Return an answer in place of the provider's, or None."""

    def refusing(self, exchange: Exchange) -> None:
        """Raise the error with which the provider is to answer, if any.

        Every protocol endpoint that knows its client asks before it looks at the request.
        """

    async def change_callback(self, exchange: Exchange) -> Pairs:
        """Return the parameters for the redirect URI, in place of the exchange's."""

    async def alter_answer(self, exchange: Exchange) -> None:
        """Change status, response_headers and response_body before they are sent."""

    def signing(self, exchange: Exchange, ring: KeyRing, payload: bytes, typ: str) -> str | None:
        """Return a token in place of the ring's, or None."""


_current: Final[ContextVar[Exchange | None]] = ContextVar("exchange", default=None)


def current() -> Exchange | None:
    """The exchange in progress in this task. Source: D66"""
    return _current.get()


@contextmanager
def in_progress(exchange: Exchange) -> Iterator[None]:
    """Make an exchange the current one. Source: D66"""
    token = _current.set(exchange)
    try:
        yield
    finally:
        _current.reset(token)


class TooManySubscribers(Exception):
    """No further page can follow the exchanges at the moment."""


class Exchanges:
    """The exchanges of all issuers, the oldest dropped first."""

    def __init__(self) -> None:
        self._kept: Final[OrderedDict[int, tuple[Exchange, int]]] = OrderedDict()
        self._of_client: Final[dict[str, deque[int]]] = {}
        self._bytes_of: Final[dict[str, int]] = {}
        self._links: Final[OrderedDict[str, SignIn]] = OrderedDict()
        self._bytes = 0
        self._last = 0
        self._sign_ins = 0
        self._subscribers: Final[set[Event]] = set()
        self.closed = False

    # writing

    def begin(self, exchange: Exchange) -> None:
        """Name the sign-in to which a request belongs, and its client."""
        if exchange.endpoint in ("discovery", "metadata", "jwks"):
            return
        known = next((self._links[key] for key in _of_request(exchange) if key in self._links), None)
        if known is None:
            self._sign_ins += 1
            known = SignIn(sign_in_id=str(self._sign_ins), client_id=exchange.client_id)
            if exchange.endpoint in ("authorize", "callback"):
                known.request_uri = exchange.first("request_uri")
                known.state = "" if known.request_uri else exchange.first("state")
        exchange.sign_in = known
        exchange.client_id = exchange.client_id or known.client_id
        self._link(_of_request(exchange), known)

    def learn(self, exchange: Exchange) -> None:
        """Note the values of an answer that later requests bring."""
        if exchange.sign_in is None:
            return
        if exchange.endpoint == "par":
            exchange.sign_in.request_uri = str(_members(exchange).get("request_uri", ""))
        if not exchange.sign_in.client_id:
            exchange.sign_in.client_id = exchange.client_id
        self._link(_of_answer(exchange), exchange.sign_in)

    def add(self, exchange: Exchange) -> None:
        """Keep a finished exchange, and notify the subscribers."""
        self._last += 1
        exchange.exchange_id = self._last
        if max(len(exchange.body), len(exchange.response_body)) > BODY_BYTES:
            exchange.body, exchange.response_body = exchange.body[:BODY_BYTES], exchange.response_body[:BODY_BYTES]
            exchange.clipped = True
        size, client_id = exchange.size, exchange.client_id
        self._kept[exchange.exchange_id] = (exchange, size)
        of_client = self._of_client.setdefault(client_id, deque())
        of_client.append(exchange.exchange_id)
        self._bytes += size
        self._bytes_of[client_id] = self._bytes_of.get(client_id, 0) + size
        while len(of_client) > EXCHANGES_OF_CLIENT or (
            self._bytes_of[client_id] > BYTES_OF_CLIENT and len(of_client) > 1
        ):
            self._drop(of_client[0])
        while len(self._kept) > EXCHANGES or self._bytes > BYTES:
            self._drop(next(iter(self._kept)))
        for event in self._subscribers:
            event.set()

    def clear(self) -> None:
        """Forget every exchange."""
        for exchange_id in tuple(self._kept):
            self._drop(exchange_id)

    def close(self) -> None:
        """End every subscription; the server is stopping."""
        self.closed = True
        for event in self._subscribers:
            event.set()

    # reading

    def get(self, exchange_id: int) -> Exchange | None:
        """An exchange by its id, None if it is no longer kept."""
        kept = self._kept.get(exchange_id)
        return kept[0] if kept else None

    def list_exchanges(self, *, client_id: str | None = None, after: int = 0) -> list[Exchange]:
        """Exchanges, oldest first; of one client, and with greater ids."""
        found = (exchange for exchange, _ in self._kept.values() if exchange.exchange_id > after)
        return [exchange for exchange in found if client_id is None or exchange.client_id == client_id]

    def of_sign_in(self, sign_in_id: str) -> list[Exchange]:
        """The exchanges of one sign-in, oldest first."""
        return [each for each in self.list_exchanges() if each.sign_in and each.sign_in.sign_in_id == sign_in_id]

    @property
    def last_id(self) -> int:
        """The id of the newest exchange."""
        return self._last

    def subscribe(self) -> Event:
        """Return an event that each new exchange sets.

        `close` sets it, too. Raises TooManySubscribers.
        """
        if len(self._subscribers) >= SUBSCRIBERS:
            raise TooManySubscribers
        event = Event()
        self._subscribers.add(event)
        return event

    def unsubscribe(self, event: Event) -> None:
        """End a subscription."""
        self._subscribers.discard(event)

    def _drop(self, exchange_id: int) -> None:
        exchange, size = self._kept.pop(exchange_id)
        of_client = self._of_client[exchange.client_id]
        of_client.remove(exchange_id)
        self._bytes -= size
        self._bytes_of[exchange.client_id] -= size
        if not of_client:
            del self._of_client[exchange.client_id], self._bytes_of[exchange.client_id]

    def _link(self, keys: Iterable[str], sign_in: SignIn) -> None:
        for key in keys:
            self._links[key] = sign_in
            self._links.move_to_end(key)
        while len(self._links) > LINKS:
            self._links.popitem(last=False)


def _key(kind: str, value: str) -> str:
    """The key of a value of one sign-in, without the value."""
    return f"{kind} {sha256(value.encode()).hexdigest()}"


def _of_request(exchange: Exchange) -> Iterator[str]:
    """The keys of values that an earlier answer contained."""
    match exchange.endpoint:
        case "authorize" | "callback" if exchange.first("request_uri"):
            yield _key("request_uri", exchange.first("request_uri"))
        case "authorize":
            yield _key("query", exchange.query)
        case "callback" if exchange.interaction:
            yield _key("interaction", exchange.interaction)
        case "token" if exchange.first("code"):
            yield _key("code", exchange.first("code"))
        case "userinfo" | "authorization-info" | "entity-info":
            token = exchange.header("authorization").partition(" ")[2].strip()
            if token:
                yield _key("access_token", token)


def _of_answer(exchange: Exchange) -> Iterator[str]:
    """The keys of values that later requests bring."""
    members = _members(exchange)
    for name in ("request_uri", "access_token"):
        if isinstance(members.get(name), str):
            yield _key(name, members[name])
    for name, value in exchange.callback:
        if name == "code":
            yield _key(name, value)
    if exchange.interaction:
        yield _key("interaction", exchange.interaction)


def _members(exchange: Exchange) -> dict[str, Any]:
    """The members of a JSON answer, empty if it is none."""
    if not exchange.response_body.startswith(b"{"):
        return {}
    try:
        found = msgspec.json.decode(exchange.response_body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
