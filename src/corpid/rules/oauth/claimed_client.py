"""The client that a request says it is of, before anything is verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.jose import compact
from corpid.jose.errors import JoseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def claimed_client_id(parameters: Mapping[str, str], authorization: Sequence[bytes] = ()) -> str:
    """The client_id of the parameters, of the client assertion or of the access token; empty if none says one.

    Whoever sent it may have made it up: it is for the log, which bounds and escapes it. Source: D48, D57
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
