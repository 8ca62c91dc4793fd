"""The exact cause of a refusal, with the values to compare.

The log has it always, a caller in developer mode only. It holds no secret: no code, token, verifier, state or jti, of
a URL neither query nor fragment nor credentials, of a hash the beginning. Source: D28, D48
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.urls import DEFAULT_PORTS
from corpid.rules.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CHARACTERS: Final = 100
_HASH_CHARACTERS: Final = 12
_LISTED: Final = 4
NOTHING: Final = "nothing"
_MISSING: Final = frozenset(
    {
        Reason.BODY_NOT_A_FORM, Reason.PARAMETER_MISSING, Reason.ASSERTION_TYPE, Reason.ASSERTION_MISSING,
        Reason.REQUEST_NOT_PUSHED, Reason.QUERY_EMPTY, Reason.CREDENTIALS_MISSING,
    }
)  # fmt: skip
"""the reasons that the owner of such a request gets"""
_ESCAPED: Final = b"&amp;"


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
    more = len(every) - _LISTED
    return " ".join(every[:_LISTED]) + (f" and {more} more" if more > 0 else "") or NOTHING


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


_PARTS: Final = ("the scheme", "the host", "the port", "the path", "the query", "the fragment")


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
