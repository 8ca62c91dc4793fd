"""Forms of pages without a session, kept in a sealed cookie (D73).

Any stranger can send such a form, so nothing of it is stored here (decision 0013). The cookie holds one form, of the
page that it was sealed for, in the browser that sent it. Without cookies the page is shown as it was before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.flows import encrypted_values
from corpid.flows.namespaces import REJECTED_FORM
from corpid.web.context import ENTERED, with_parameter
from corpid.web.http.requests import cookie
from corpid.web.pages.responses import add_cookie, see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.encrypted_values import StoredForm
    from corpid.flows.request_context import RequestContext
    from corpid.web.context import WebContext

_COOKIE_CHARACTERS: Final = 3072
"""browsers keep 4096"""


def to_entered(
    web: WebContext,
    context: RequestContext,
    browser: Browser,
    page: str,
    where: str,
    kept: StoredForm,
    *,
    parameter: str = ENTERED,
) -> Response:
    """A redirect to a page that shows a form again.

    The form goes along in a cookie; of one that is too long only the errors do. `page` names the page, `where` is its
    address. Source: D73
    """
    answer = to_parameter(where, parameter)
    place = _place(browser, page, parameter)
    sealed = encrypted_values.encrypt_form(context, place, kept)
    if len(sealed) > _COOKIE_CHARACTERS:
        sealed = encrypted_values.encrypt_form(context, place, replace(kept, fields={}))
    add_cookie(answer, web, web.form_cookie_name, sealed, seconds=int(REJECTED_FORM.seconds))
    return answer


def to_parameter(where: str, parameter: str = ENTERED) -> Response:
    """A redirect to a page, with a parameter of its own."""
    return see_other(with_parameter(where, parameter))


def read_form(
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser | None,
    page: str,
    *,
    parameter: str = ENTERED,
) -> StoredForm | None:
    """The form that this browser's cookie holds for a page.

    None without one. Looking spends nothing. Source: D73
    """
    sealed = cookie(request, web.form_cookie_name)
    if browser is None or not sealed:
        return None
    return encrypted_values.decrypt_form(context, _place(browser, page, parameter), sealed)


def forget(request: Request, web: WebContext, answer: Response) -> Response:
    """The answer to an accepted form, after which the cookie is gone."""
    if cookie(request, web.form_cookie_name):
        add_cookie(answer, web, web.form_cookie_name, "", seconds=0)
    return answer


def _place(browser: Browser, page: str, parameter: str) -> tuple[str, ...]:
    return ("cookie", browser.browser_id, page, parameter)
