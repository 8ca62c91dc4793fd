"""The Authorization header of a resource request (RFC 9110 §11.6.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.protocol.errors import CredentialsRequired, InvalidRequest, InvalidToken

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


def refuse_absent(headers: Sequence[bytes], scheme: str) -> None:
    """Raise CredentialsRequired without a header, or with one of another scheme (Spec 7.4 rule 2, D24)."""
    if not headers:
        raise CredentialsRequired("no Authorization header")
    if len(headers) == 1 and _parts(headers[0])[0] != scheme.lower():
        raise CredentialsRequired("another scheme")


def _parts(header: bytes) -> tuple[str, str]:
    given, _, rest = header.decode("latin-1").strip().partition(" ")
    return given.lower(), rest.strip()


def access_token(headers: Sequence[bytes], scheme: str) -> str:
    """The access token under this scheme, compared without case.

    Raises CredentialsRequired without a header or with another scheme, InvalidRequest with several headers,
    InvalidToken when what follows the scheme is no token. Source: RFC 9449 §7.1, Spec 7.4, D24
    """
    refuse_absent(headers, scheme)
    if len(headers) > 1:
        raise InvalidRequest("the request has more than one Authorization header")
    _, token = _parts(headers[0])
    if not _TOKEN.fullmatch(token):
        raise InvalidToken("the access token is missing or malformed")
    return token
