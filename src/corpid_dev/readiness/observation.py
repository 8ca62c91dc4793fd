"""Records of a relying party's behaviour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from corpid_dev.relying_party import jwt

if TYPE_CHECKING:
    from corpid_dev.flows.exchanges import Endpoint

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_GATEWAY: Final = frozenset({502, 503, 504})
"""statuses of a page about a provider that answers wrongly, late or not at all (RFC 9110 §15.6)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that the relying party sent to the provider."""

    exchange_id: str
    endpoint: str
    method: str
    path: str
    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """of the request, with names in lower case"""
    parameters: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """of the request's form or query"""
    error: str = ""
    orders: tuple[str, ...] = ()
    """names of the orders that the provider obeyed in its answer"""
    signed: tuple[Mapping[str, object], ...] = ()
    """claims of the tokens that the provider signed for the answer"""
    client_id: str = ""
    """empty if no client is known"""

    @classmethod
    def from_exchange(cls, exchange: Mapping[str, Any]) -> Self:
        """A call, from an exchange that the developer API lists."""
        return cls(
            exchange_id=str(exchange["id"]),
            endpoint=str(exchange["endpoint"]),
            method=str(exchange["method"]),
            path=str(exchange["path"]),
            status=int(exchange["status"]),
            headers=_texts(exchange.get("headers")),
            parameters=_texts(exchange.get("parameters")),
            error=str(exchange.get("error") or ""),
            orders=tuple(map(str, exchange.get("orders") or ())),
            signed=tuple(each.get("claims") or {} for each in exchange.get("signed") or ()),
            client_id=str(exchange.get("client_id") or ""),
        )

    def proof_key(self) -> str | None:
        """The key of the request's DPoP proof as text, None without one."""
        try:
            jwk = jwt.peek(self.headers.get("dpop", ""))[0].get("jwk")
        except ValueError:
            return None
        return str(sorted(jwk.items())) if isinstance(jwk, dict) else None

    def assertion_seconds(self) -> float | None:
        """The lifetime of the request's client assertion, None if not seen."""
        try:
            claims = jwt.peek(self.parameters.get("client_assertion", ""))[1] or {}
        except ValueError:
            return None
        issued, expires = claims.get("iat"), claims.get("exp")
        return expires - issued if isinstance(issued, int | float) and isinstance(expires, int | float) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingPartyPage:
    """A page of the relying party, at the end of its redirects."""

    url: str
    status: int
    """0 if there was no answer"""
    heading: str = ""
    text: str = ""
    session: bool = False
    """the page shows that somebody is signed in"""
    problem: str = ""
    """why there was no answer"""

    @property
    def is_error(self) -> bool:
        """True for an error status, and without an answer."""
        return self.status == 0 or self.status >= 400

    @property
    def crashed(self) -> bool:
        """True if no page was made on purpose."""
        return self.status == 0 or (self.status >= 500 and self.status not in _GATEWAY)

    def __str__(self) -> str:
        """Status and heading, for the report."""
        if self.status == 0:
            return f"no answer ({self.problem})"
        return f"status {self.status}{f', “{self.heading[:80]}”' if self.heading else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in, from the login URL to the last page."""

    login: RelyingPartyPage | None = None
    """the page at which the login ended, None if it led to the provider"""
    request: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """the parameters of the authorization request, pushed or not"""
    problem: str = ""
    """why the provider, or this program, could not complete its part"""
    pages: tuple[RelyingPartyPage, ...] = ()
    """one for each time the callback was opened"""
    login_calls: tuple[Call, ...] = ()
    callback_calls: tuple[Call, ...] = ()
    """calls since the callback was first opened"""

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.login_calls + self.callback_calls

    @property
    def page(self) -> RelyingPartyPage | None:
        """The last page, at the login or after the callback."""
        return self.pages[-1] if self.pages else self.login

    @property
    def session(self) -> bool:
        """True if the last page shows that somebody is signed in."""
        return bool(self.pages) and self.pages[-1].session


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The events of one case."""

    sign_ins: tuple[SignIn, ...]
    recovered: bool | None = None
    """whether an ordinary sign-in worked afterwards; None if that was not tried"""
    waited: bool = False
    """the case was tried again after a pause, since the key set was not fetched at once"""

    @property
    def last(self) -> SignIn:
        """The sign-in that is judged."""
        return self.sign_ins[-1]

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for each in self.sign_ins for call in each.calls)

    def calls_of(self, endpoint: Endpoint) -> list[Call]:
        return calls_to(self.calls, endpoint)


def _texts(pairs: object) -> dict[str, str]:
    """Names and values, from an object or a list of pairs."""
    found = pairs.items() if isinstance(pairs, Mapping) else pairs if isinstance(pairs, list) else ()
    return {str(name): str(value) for name, value in found}


def calls_to(calls: Iterable[Call], endpoint: Endpoint) -> list[Call]:
    return [call for call in calls if call.endpoint == endpoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that the ordinary sign-in showed."""

    client_id: str
    issuer: str
    sends_iss: bool
    """callbacks carry `iss` (RFC 9207)"""
    pushes: bool
    resource: str
    """the endpoint that the roles come from"""
    signs_resource: bool = True
    """its answers are signed"""
    roles: frozenset[str] = frozenset()
    """role names that only a signed-in person's page shows"""
    session_url: str = ""
    """a page other than the callback that shows if somebody is signed in; empty if none is known"""


class Verdict(StrEnum):
    """The result of a case."""

    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict and its reason."""

    verdict: Verdict
    seen: str


Expectation: TypeAlias = "Callable[[Observation, Facts], Finding | None]"
"""returns None if an observation is as expected"""
