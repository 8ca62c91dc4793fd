"""Errors of the protocol: a class per OAuth error code, exact causes.

Each is raised with a reason of the catalogue. An error knows its code and its usual status, never a redirect, a header
or a body: the web layer renders it (`web.pages.errors`), and a flow that has proven a redirect URI returns an error
response instead of raising. `description` is public (D28), `reason`, `detail` and `explanation` go to the log, and in
developer mode to the caller; an explanation is the exact cause, with the values to compare. It holds no secret: no
code, token, verifier, state or jti, of a URL neither query nor fragment nor credentials, of a hash the beginning (D48).
`sentence` is shown to a person on a page if the code alone would say too little, and
`requesting_client` is the client that the page names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, Self
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from corpid.rules.characters import printable
from corpid.rules.limits import DESCRIPTION_CHARACTERS
from corpid.rules.oauth.refusals import ErrorCode, Reason
from corpid.rules.oauth.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from corpid.rules.oauth.records import RequestingClient
    from corpid.texts import Phrase

_UNFIT: Final = re.compile(r'[^\x20-\x7e]|["\\]')


_CHARACTERS: Final = 100
_HASH_CHARACTERS: Final = 12
_MOST_LISTED: Final = 4
NOTHING: Final = "nothing"
_MISSING: Final = frozenset(
    {
        Reason.BODY_NOT_A_FORM, Reason.PARAMETER_MISSING, Reason.ASSERTION_TYPE, Reason.ASSERTION_MISSING,
        Reason.REQUEST_NOT_PUSHED, Reason.QUERY_EMPTY, Reason.CREDENTIALS_MISSING,
    }
)  # fmt: skip
"""the reasons that the owner of such a request gets"""
_ESCAPED: Final = b"&amp;"
_PARTS: Final = ("the scheme", "the host", "the port", "the path", "the query", "the fragment")


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a refusal in the words of a developer.

    Empty values do not apply.
    """

    cause: str = ""
    """replaces a description that several causes share"""
    received: str = ""
    expected: str = ""
    registered: str = ""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Names and values of what is to be compared."""
        named = (("received", self.received), ("expected", self.expected), ("registered", self.registered))
        return tuple((name, value) for name, value in named if value)

    def text(self, description: str) -> str:
        """The cause and the values in one line.

        `description` replaces a cause that is empty. Source: D28
        """
        compared = ", ".join(f"{name} {value}" for name, value in self.values)
        cause = self.cause or description
        return f"{cause}; {compared}" if compared else cause


class Attributed(Exception):
    """An exception that knows which client had asked, if one had authenticated."""

    client_id: str = ""
    """of the client that had authenticated, or pushed the request; empty for a stranger"""


class OAuthError(Attributed):
    """A refusal with a code of the OAuth or OpenID vocabulary."""

    code: ClassVar[ErrorCode]
    status: ClassVar[int] = 400

    requesting_client: RequestingClient | None = None
    explanation: Explanation | None = None
    """the exact cause: for the log, and for the caller in developer mode"""

    def __init__(self, reason: Reason, description: str, *, detail: str = "", sentence: Phrase | None = None) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description
        self.detail = detail
        self.sentence = sentence

    def with_client(self, requesting_client: RequestingClient) -> Self:
        """This error, with its client unless it has one.

        Source: D16
        """
        self.requesting_client = self.requesting_client or requesting_client
        return self

    def with_cause(self, *, cause: str = "", received: str = "", expected: str = "", registered: str = "") -> Self:
        """This error, with its exact cause and the values to compare. Source: D28"""
        self.explanation = Explanation(cause=cause, received=received, expected=expected, registered=registered)
        return self

    def with_hint(self, hint: str) -> None:
        """Add to the exact cause what the request shows. Source: D28"""
        known = self.explanation or Explanation()
        self.explanation = replace(known, cause=f"{known.cause or self.description}; {hint}")

    @property
    def cause(self) -> str:
        """The cause in the words of a developer. Source: D28"""
        exact = "" if self.explanation is None else self.explanation.cause
        return exact or (f"{self.description}: {self.detail}" if self.detail else self.description)

    @property
    def exact(self) -> str:
        """The exact cause and the values to compare, for the log. Source: D28, D48"""
        return self._compared(self.detail or self.description)

    @property
    def explained_description(self) -> str:
        """The cause and the values to compare, for developer mode. Source: D28"""
        return self._compared(self.cause)

    def _compared(self, cause: str) -> str:
        return cause if self.explanation is None else self.explanation.text(cause)


class InvalidRequest(OAuthError):
    """A parameter is missing, repeated, malformed or has an unsupported value.

    Source: RFC 6749 §5.2
    """

    code: ClassVar[ErrorCode] = "invalid_request"


class UnsupportedContentCoding(InvalidRequest):
    """The body is compressed (RFC 9110 §8.4, §15.5.16)."""

    status = 415


class ContentTooLarge(InvalidRequest):
    """The body is longer than it may be (RFC 9110 §15.5.14)."""

    status = 413


class InvalidClient(OAuthError):
    """Client authentication failed (RFC 6749 §5.2)."""

    code: ClassVar[ErrorCode] = "invalid_client"
    status = 401


class InvalidGrant(OAuthError):
    """The code is unknown, expired, spent or another client's (RFC 6749 §5.2)."""

    code: ClassVar[ErrorCode] = "invalid_grant"


class UnauthorizedClient(OAuthError):
    """The client may not use this generation (RFC 6749 §5.2)."""

    code: ClassVar[ErrorCode] = "unauthorized_client"


class InvalidScope(OAuthError):
    """The scope is unknown, malformed or not allowed for the client.

    Source: RFC 6749 §5.2
    """

    code: ClassVar[ErrorCode] = "invalid_scope"


class UnsupportedGrantType(OAuthError):
    """Only authorization_code exists (RFC 6749 §5.2)."""

    code: ClassVar[ErrorCode] = "unsupported_grant_type"


class InvalidDPoPProof(OAuthError):
    """The DPoP proof is malformed, stale, replayed or failed verification.

    Source: RFC 9449 §5
    """

    code: ClassVar[ErrorCode] = "invalid_dpop_proof"
    status = 401


class UseDPoPNonce(OAuthError):
    """The proof must carry the server's nonce (RFC 9449 §8)."""

    code: ClassVar[ErrorCode] = "use_dpop_nonce"

    def __init__(self, reason: Reason, description: str, *, nonce: str, detail: str = "") -> None:
        super().__init__(reason, description, detail=detail)
        self.nonce = nonce


class InvalidRequestURI(OAuthError):
    """The request_uri is unknown, expired, spent or another client's.

    Source: OpenID Connect Core §3.1.2.6
    """

    code: ClassVar[ErrorCode] = "invalid_request_uri"


class RequestNotSupported(OAuthError):
    """Request objects are not accepted (OpenID Connect Core §3.1.2.6, D14)."""

    code: ClassVar[ErrorCode] = "request_not_supported"


class RequestURINotSupported(OAuthError):
    """Request objects by reference are not accepted (OpenID Connect Core §3.1.2.6, D14)."""

    code: ClassVar[ErrorCode] = "request_uri_not_supported"


class AccessDenied(OAuthError):
    """The person refused, or may not act for an entity (RFC 6749 §4.1.2.1)."""

    code: ClassVar[ErrorCode] = "access_denied"


class LoginRequired(OAuthError):
    """prompt=none without a session that suffices (OpenID Connect Core §3.1.2.6)."""

    code: ClassVar[ErrorCode] = "login_required"


class InteractionRequired(OAuthError):
    """prompt=none, but a page is needed.

    Source: OpenID Connect Core §3.1.2.6
    """

    code: ClassVar[ErrorCode] = "interaction_required"


class ConsentRequired(OAuthError):
    """prompt=none, and consent would have to be asked (OpenID Connect Core §3.1.2.6)."""

    code: ClassVar[ErrorCode] = "consent_required"


class InvalidToken(OAuthError):
    """The access token is expired, revoked, malformed or not properly bound.

    Source: RFC 6750 §3.1
    """

    code: ClassVar[ErrorCode] = "invalid_token"
    status = 401


class InsufficientScope(OAuthError):
    """The access token does not carry a scope that the resource needs.

    Source: RFC 6750 §3.1
    """

    code: ClassVar[ErrorCode] = "insufficient_scope"
    status = 403

    def __init__(self, reason: Reason, description: str, *, scope: str, detail: str = "") -> None:
        super().__init__(reason, description, detail=detail)
        self.scope = scope


class CredentialsRequired(OAuthError):
    """No Authorization header, or a foreign scheme: a bare challenge answers.

    Source: Spec 7.4, D24
    """

    code: ClassVar[ErrorCode] = "credentials_required"
    status = 401


class ServerError(OAuthError):
    """Something unforeseen (RFC 6749 §4.1.2.1)."""

    code: ClassVar[ErrorCode] = "server_error"
    status = 500


class TemporarilyUnavailable(OAuthError):
    """The store is down or busy, or maintenance is on.

    `retry_after` in seconds (RFC 6749 §4.1.2.1).
    """

    code: ClassVar[ErrorCode] = "temporarily_unavailable"
    status = 503

    def __init__(self, reason: Reason, description: str, *, retry_after: int = 5, detail: str = "") -> None:
        super().__init__(reason, description, detail=detail)
        self.retry_after = retry_after


class TooManyRequests(TemporarilyUnavailable):
    """One client or one address has sent more than it may.

    `retry_after` in seconds (RFC 6585 §4, D47).
    """

    status = 429


class RequestOf:
    """A block of code in which the requesting client is known.

    Errors raised in it carry the `client_id`.
    """

    __slots__ = ("_client_id",)

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Name the client in the exception."""
        if isinstance(error, Attributed):
            error.client_id = self._client_id


def public_members(error: OAuthError, reference: str, *, catalogue: str | None) -> dict[str, str]:
    """The members of an error response.

    They are error, error_description and, in developer mode with a catalogue, error_uri.

    The description ends with the reference: printable ASCII without quote and backslash, at most 300 characters. The
    log has more under the reference. Outside developer mode `catalogue` is None. In developer mode the description is
    the exact cause, and `catalogue` the address of the catalogue of reasons, or empty. Source: RFC 6749 §5.2, D28
    """
    ending = f" (reference {reference})"
    text = error.description if catalogue is None else error.explained_description
    members = {
        "error": error.code,
        "error_description": _UNFIT.sub("'", text)[: DESCRIPTION_CHARACTERS - len(ending)] + ending,
    }
    return {**members, "error_uri": f"{catalogue}#{error.reason.code}"} if catalogue else members


def reason_of(code: str) -> Reason:
    """Return the reason with this code, as stored in a record.

    The result is SIGN_IN_REFUSED for a code of another version. Source: D57
    """
    return Reason.__members__.get(code.upper(), Reason.SIGN_IN_REFUSED)


def shorten_value(value: object) -> str:
    """A received value, short; as JSON if it is no text. Source: D28"""
    text = value if isinstance(value, str) else NOTHING if value is None else msgspec.json.encode(value).decode()
    return clip_text(text) or NOTHING


def clip_text(text: str) -> str:
    """At most 100 printable characters of a text. Source: D28"""
    text = printable(text[: _CHARACTERS + 1])
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."


def list_values(values: Iterable[str]) -> str:
    """The first of several values, and the number of others. Source: D28"""
    every = [clip_text(value) for value in values]
    more = len(every) - _MOST_LISTED
    return " ".join(every[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "") or NOTHING


def abbreviate_hash(hashed: str | None) -> str:
    """The beginning of a hash or thumbprint. Source: D48"""
    return f"{clip_text(hashed[:_HASH_CHARACTERS])}..." if hashed else NOTHING


def without_query(url: object) -> str:
    """A URL without credentials, query and fragment, for the log. Source: D48"""
    if not isinstance(url, str):
        return shorten_value(url)
    before = url.partition("#")[0].partition("?")[0]
    scheme, slashes, rest = before.partition("://")
    authority, slash, path = rest.partition("/")
    return clip_text(f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}") or NOTHING


def url_difference(received: str, registered: Iterable[str]) -> str:
    """The difference between a URL and the closest registered one.

    Empty if they differ in more than one part. Source: D38
    """
    found = (_difference(received, each) for each in registered)
    return next((difference for difference in found if difference), "")


def _difference(received: str, registered: str) -> str:
    try:
        here, there = _parts(received), _parts(registered)
    except ValueError:
        return ""
    different = [name for name, one, other in zip(_PARTS, here, there, strict=True) if one != other]
    if received.strip() == registered:
        return "it differs by white space before or after it"
    if not different:
        return "it differs in its spelling alone, such as upper case, a default port or an empty query"
    if len(different) > 1:
        return ""
    if f"{received.rstrip('/')}/" == f"{registered.rstrip('/')}/":
        return "it differs by a slash at the end of the path"
    return f"it differs in {different[0]} alone"


def _parts(url: str) -> tuple[str | int | None, ...]:
    """The parts of a URL, in the order of `_PARTS`."""
    parts = urlsplit(url)
    port = DEFAULT_PORTS.get(parts.scheme) if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port, parts.path, parts.query, parts.fragment


def misplaced_parameters(reason: Reason, *, posted: bool, query: bytes, body: bytes, types: Sequence[bytes]) -> str:
    """The true cause of a refusal: parameters where nobody reads them.

    Empty if there are none. `types` are the values of Content-Type. Source: RFC 6749 §2.3.1, §3.1, §3.2, RFC 6750 §2,
    D28
    """
    if reason not in _MISSING:
        return ""
    if _ESCAPED in query or _ESCAPED in body:
        return "&amp; stands where & belongs: the address was written for HTML, and its entities were not decoded"
    if reason is Reason.CREDENTIALS_MISSING:
        in_query = b"access_token=" in query
        return "an access token in the address is not read: send it in the Authorization header" if in_query else ""
    if posted and b"=" in query:
        return "parameters in the address of a POST are not read: send them in the body, as a form"
    if reason is Reason.BODY_NOT_A_FORM and len(types) > 1:
        return "Content-Type came more than once: send it once"
    return ""
