"""The errors of the protocol: one class per OAuth error code.

An error knows its code and its usual status, never a redirect, a header or a body: the web
floor renders it (`web.pages.errors`), and a flow that has proven a redirect URI returns an
error response instead of raising. `description` is public (D28), `detail` goes to the log only;
`sentence` is what a page says to a person where the code alone would say too little, `asker` whom it names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, Self

from corpid.rules.limits import DESCRIPTION_CHARACTERS

if TYPE_CHECKING:
    from corpid.rules.oauth.records import RequestingClient
    from corpid.texts import Phrase

_UNFIT: Final = re.compile(r'[^\x20-\x7e]|["\\]')


class OAuthError(Exception):
    """A refusal with a code of the OAuth or OpenID vocabulary."""

    code: ClassVar[str]
    status: ClassVar[int] = 400

    asker: RequestingClient | None = None

    def __init__(self, description: str, *, detail: str = "", sentence: Phrase | None = None) -> None:
        super().__init__(description)
        self.description = description
        self.detail = detail
        self.sentence = sentence

    def of(self, asker: RequestingClient) -> Self:
        """The same, of a request by this client, unless it knows whose it is. Source: D16"""
        self.asker = self.asker or asker
        return self


class InvalidRequest(OAuthError):
    """A parameter is missing, repeated, malformed or has an unsupported value (RFC 6749 §5.2)."""

    code = "invalid_request"


class InvalidClient(OAuthError):
    """Client authentication failed (RFC 6749 §5.2)."""

    code = "invalid_client"
    status = 401


class InvalidGrant(OAuthError):
    """The code is unknown, expired, spent or another client's (RFC 6749 §5.2)."""

    code = "invalid_grant"


class UnauthorizedClient(OAuthError):
    """The client may not use this generation (RFC 6749 §5.2)."""

    code = "unauthorized_client"


class InvalidScope(OAuthError):
    """The scope is unknown, malformed or beyond what the client may ask (RFC 6749 §5.2)."""

    code = "invalid_scope"


class UnsupportedGrantType(OAuthError):
    """Only authorization_code exists (RFC 6749 §5.2)."""

    code = "unsupported_grant_type"


class InvalidDPoPProof(OAuthError):
    """The DPoP proof is malformed, stale, replayed or failed verification (RFC 9449 §5)."""

    code = "invalid_dpop_proof"
    status = 401


class UseDPoPNonce(OAuthError):
    """The proof must carry the server's nonce (RFC 9449 §8)."""

    code = "use_dpop_nonce"

    def __init__(self, description: str, *, nonce: str, detail: str = "") -> None:
        super().__init__(description, detail=detail)
        self.nonce = nonce


class InvalidRequestURI(OAuthError):
    """The request_uri is unknown, expired, spent or another client's (OpenID Connect Core §3.1.2.6)."""

    code = "invalid_request_uri"


class RequestNotSupported(OAuthError):
    """Request objects are not accepted (OpenID Connect Core §3.1.2.6, D14)."""

    code = "request_not_supported"


class RequestURINotSupported(OAuthError):
    """Request objects by reference are not accepted (OpenID Connect Core §3.1.2.6, D14)."""

    code = "request_uri_not_supported"


class AccessDenied(OAuthError):
    """The person, or the law of the directory, refused (RFC 6749 §4.1.2.1)."""

    code = "access_denied"


class LoginRequired(OAuthError):
    """prompt=none without a session that suffices (OpenID Connect Core §3.1.2.6)."""

    code = "login_required"


class InteractionRequired(OAuthError):
    """prompt=none, and a page would have to be shown (OpenID Connect Core §3.1.2.6)."""

    code = "interaction_required"


class ConsentRequired(OAuthError):
    """prompt=none, and consent would have to be asked (OpenID Connect Core §3.1.2.6)."""

    code = "consent_required"


class InvalidToken(OAuthError):
    """The access token is expired, revoked, malformed or not properly bound (RFC 6750 §3.1)."""

    code = "invalid_token"
    status = 401


class InsufficientScope(OAuthError):
    """The access token does not carry a scope that the resource needs (RFC 6750 §3.1)."""

    code = "insufficient_scope"
    status = 403

    def __init__(self, description: str, *, scope: str, detail: str = "") -> None:
        super().__init__(description, detail=detail)
        self.scope = scope


class CredentialsRequired(OAuthError):
    """No Authorization header, or a foreign scheme: a bare challenge answers (Spec 7.4, D24)."""

    code = "credentials_required"
    status = 401


class ServerError(OAuthError):
    """Something unforeseen (RFC 6749 §4.1.2.1)."""

    code = "server_error"
    status = 500


class TemporarilyUnavailable(OAuthError):
    """The store is down or busy, or maintenance is on; `retry_after` in seconds (RFC 6749 §4.1.2.1)."""

    code = "temporarily_unavailable"
    status = 503

    def __init__(self, description: str, *, retry_after: int = 5, detail: str = "") -> None:
        super().__init__(description, detail=detail)
        self.retry_after = retry_after


class TooManyRequests(TemporarilyUnavailable):
    """One client or one address has sent more than it may; `retry_after` in seconds (RFC 6585 §4, D47)."""

    status = 429


def public_description(error: OAuthError, reference: str) -> str:
    """The `error_description` of an error: printable ASCII without quote and backslash, at most 300 characters.

    It ends with the reference under which the log tells more. Source: RFC 6749 §5.2, D28
    """
    ending = f" (reference {reference})"
    return _UNFIT.sub("'", error.description)[: DESCRIPTION_CHARACTERS - len(ending)] + ending
