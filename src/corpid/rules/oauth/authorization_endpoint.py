"""Authorization responses: address, code, refusal.

Source: Spec 4.2, RFC 6749 §4.1.2, RFC 9207, D38
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.oauth.errors import public_members
from corpid.rules.oauth.parameters import encode_pairs, lone

if TYPE_CHECKING:
    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.rules.oauth.errors import OAuthError
    from corpid.rules.oauth.generations import Generation

_MODE_CHARACTERS: Final = 32


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to a proven redirect URI, with its parameters."""

    redirect_uri: str
    mode: str
    """query, fragment or form_post"""
    parameters: Mapping[str, str]
    reason: str = ""
    """the code of a refusal's reason, for the log"""
    detail: str = ""
    """the exact cause of a refusal, for the log"""

    @property
    def posted(self) -> bool:
        """True if a form carries the parameters in its body.

        Source: OAuth 2.0 Form Post Response Mode §2
        """
        return self.mode == "form_post"

    @property
    def url(self) -> str:
        """The redirect URI with the response in its query or fragment.

        After its own query. Source: RFC 6749 §3.1.2, D38
        """
        if not self.parameters:
            return self.redirect_uri
        separator = "#" if self.mode == "fragment" else "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{separator}{encode_pairs(self.parameters)}"


class ReturnAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A proven redirect URI with response mode, state and issuer."""

    redirect_uri: str
    mode: str
    state: str | None
    iss: str | None


def choose_error_mode(raw: bytes, generation: Generation) -> str:
    """The response mode of a query request's error.

    The requested one, if it was requested once and is served. Source: OAuth 2.0 Multiple Response Type Encoding
    Practices §2.1, Spec "Generations"
    """
    asked = lone(raw, "response_mode", longest=_MODE_CHARACTERS)
    return asked if asked in generation.response_modes else generation.response_modes[0]


def address_response(request: AuthorizationRequest, *, iss: str | None) -> ReturnAddress:
    """The return address of a validated request.

    Source: RFC 6749 §4.1.2, RFC 9207 §2
    """
    return ReturnAddress(redirect_uri=request.redirect_uri, mode=request.response_mode, state=request.state, iss=iss)


def create_code_response(address: ReturnAddress, *, code: str) -> AuthorizationResponse:
    """A code for the client (RFC 6749 §4.1.2)."""
    return _create_response(address, {"code": code})


def create_error_response(
    address: ReturnAddress, error: OAuthError, *, reference: str, catalogue: str | None = None
) -> AuthorizationResponse:
    """A refusal for the client.

    `reference` is the request id, `catalogue` that of `public_members`. Source: RFC 6749 §4.1.2.1, D28
    """
    parameters = public_members(error, reference, catalogue=catalogue)
    return msgspec.structs.replace(_create_response(address, parameters), reason=error.reason.code, detail=error.exact)


def _create_response(address: ReturnAddress, parameters: dict[str, str]) -> AuthorizationResponse:
    if address.state is not None:
        parameters["state"] = address.state
    if address.iss is not None:
        parameters["iss"] = address.iss
    return AuthorizationResponse(redirect_uri=address.redirect_uri, mode=address.mode, parameters=parameters)
