"""Parameters that a request has where nobody reads them.

Source: RFC 6749 §2.3.1, §3.1, §3.2, RFC 6750 §2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

_MISSING: Final = frozenset(
    {
        Reason.BODY_NOT_A_FORM, Reason.PARAMETER_MISSING, Reason.ASSERTION_TYPE, Reason.ASSERTION_MISSING,
        Reason.REQUEST_NOT_PUSHED, Reason.QUERY_EMPTY, Reason.CREDENTIALS_MISSING,
    }
)  # fmt: skip
"""the reasons that the owner of such a request gets"""
_ESCAPED: Final = b"&amp;"


def hint(reason: Reason, *, posted: bool, query: bytes, body: bytes, types: Sequence[bytes]) -> str:
    """The true cause of a refusal, shown by the request.

    Empty if it does not. `types` are the values of Content-Type. Source: D28
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
