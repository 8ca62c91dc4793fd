"""What the browser carries back to the client's redirect URI (RFC 6749 §4.1.2, RFC 9207)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from corpid.protocol.errors import public_description

if TYPE_CHECKING:
    from corpid.protocol.errors import OAuthError


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send the browser, and with what; only a proven redirect URI gets into one."""

    redirect_uri: str
    parameters: Mapping[str, str]

    @property
    def url(self) -> str:
        """The redirect URI with our parameters after its own query (RFC 6749 §3.1.2, D38)."""
        separator = "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{separator}{urlencode(self.parameters)}"


def success(redirect_uri: str, *, code: str, state: str | None, iss: str | None) -> AuthorizationResponse:
    """A code for the client (RFC 6749 §4.1.2)."""
    return _response(redirect_uri, {"code": code}, state, iss)


def failure(
    redirect_uri: str, error: OAuthError, *, reference: str, state: str | None, iss: str | None
) -> AuthorizationResponse:
    """A refusal for the client; `reference` is the request id (RFC 6749 §4.1.2.1, D28)."""
    parameters = {"error": error.code, "error_description": public_description(error, reference)}
    return _response(redirect_uri, parameters, state, iss)


def _response(
    redirect_uri: str, parameters: dict[str, str], state: str | None, iss: str | None
) -> AuthorizationResponse:
    if state is not None:
        parameters["state"] = state
    if iss is not None:
        parameters["iss"] = iss
    return AuthorizationResponse(redirect_uri=redirect_uri, parameters=parameters)
