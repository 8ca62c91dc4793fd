"""Answers that several pages give alike: on to another page, slowed down, and no to a form that is not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows import interactions
from corpid.protocol.errors import InvalidRequest
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.provider import Provider
    from corpid.flows.throttle import Throttled

NO_STORE: Final = {"Cache-Control": "no-store"}


def see_other(where: str) -> Response:
    """On to another page of ours, which is a GET (RFC 9110 §15.4.4)."""
    return Response(b"", 303, {**NO_STORE, "Location": where})


def throttled(page: Response, slowed: Throttled) -> Response:
    """A page that says that somebody has to wait, with the seconds for machines (RFC 6585 §4, D47)."""
    page.status_code = 429
    page.headers["Retry-After"] = str(slowed.seconds)
    return page


def require_own_form(provider: Provider, form: Mapping[str, str], browser_id: str, subject: str) -> None:
    """Return for a form of a page that this browser was shown for this subject; raises InvalidRequest (D35)."""
    if not interactions.is_form_token(provider, form.get("form_token", ""), browser_id, subject):
        raise InvalidRequest(
            "form_token is missing, or another browser's",
            sentence=phrase("This form is not one that this browser was shown: open the page again."),
        )
