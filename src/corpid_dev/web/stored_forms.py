"""Rejected forms of developer mode, kept by browser and page (D73).

Only those who see developer mode can send one, so they are stored for ten minutes, one for each page of a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpid.flows import encrypted_values
from corpid.web.context import ENTERED, with_parameter
from corpid.web.pages.responses import see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.encrypted_values import StoredForm
    from corpid.flows.request_context import RequestContext


async def to_entered(context: RequestContext, browser_id: str, here: str, kept: StoredForm) -> Response:
    """Keep a form, and redirect to its page, which shows it again.

    `here` is the address of the page. Source: D73
    """
    await encrypted_values.save_form(context, _place(browser_id, here), kept)
    return see_other(with_parameter(here))


async def read_form(request: Request, context: RequestContext, browser: Browser | None, here: str) -> StoredForm | None:
    """The form that this browser sent to a page.

    None unless the address asks for it. Looking spends nothing. Source: D73
    """
    if browser is None or ENTERED not in request.query_params:
        return None
    return await encrypted_values.read_form(context, _place(browser.browser_id, here))


def _place(browser_id: str, here: str) -> tuple[str, ...]:
    return ("developer", browser_id, urlsplit(here).path)
