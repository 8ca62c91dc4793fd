"""Scopes that a client requests.

Source: Spec 4.9, R-4.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.errors import InvalidScope, shorten_value
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from corpid.rules.oauth.records import Client

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")


def validate_scopes(
    text: str, registered: Collection[str], known: Sequence[str], *, needed: str = "openid"
) -> tuple[str, ...]:
    """The requested scopes, each once, in the order asked.

    `registered` are the client's, `known` those of the interface, `needed` is one that must be among them; empty: none.

    Raises InvalidScope. Source: RFC 6749 §3.3, Spec 4.1
    """
    if not _SCOPE.fullmatch(text):
        raise InvalidScope(Reason.SCOPE_MALFORMED, "scope must be a list of scope names separated by single spaces")
    requested = tuple(dict.fromkeys(text.split(" ")))
    if needed and needed not in requested:
        raise InvalidScope(Reason.SCOPE_WITHOUT_OPENID, f"scope must include {needed}").with_cause(
            received=shorten_value(text)
        )
    for scope in requested:
        if scope not in known:
            raise InvalidScope(Reason.SCOPE_UNKNOWN, f"scope {scope} is not known here; known: {' '.join(known)}")
        if scope not in registered:
            raise InvalidScope(
                Reason.SCOPE_NOT_REGISTERED, f"this client is not registered for scope {scope}"
            ).with_cause(registered=shorten_value(" ".join(registered)))
    return requested


def are_allowed(client: Client, granted: Iterable[str]) -> bool:
    """Return whether a client is still allowed every granted scope.

    Source: D50
    """
    return set(granted).issubset(client.scopes)
