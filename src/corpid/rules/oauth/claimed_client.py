"""The client that a request claims to come from, before verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.jose import compact
from corpid.jose.encoding import JoseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def claimed_client_id(parameters: Mapping[str, str], authorization: Sequence[bytes] = ()) -> str:
    """Return the client_id that a request claims, empty if none.

    It is taken from the parameters, the client assertion or the access token. It may be invented: it is for the log,
    which bounds and escapes it. Source: D48, D57
    """
    if parameters.get("client_id"):
        return parameters["client_id"]
    assertion = _claim(parameters.get("client_assertion", ""), "sub")
    if assertion or not authorization:
        return assertion
    return _claim(authorization[0].decode("latin-1").strip().partition(" ")[2].strip(), "client_id")


def _claim(text: str, name: str) -> str:
    try:
        value = compact.parse(text).claims.get(name)
    except JoseError:
        return ""
    return value if isinstance(value, str) else ""
