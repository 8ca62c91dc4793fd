"""The sign-out page, for single sign-on and the account (D30)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication import browsers, interactions, sessions
from corpid.flows.authentication.own_pages import PATHS, SIGN_OUT_PATH
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.oauth import parameters
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages import views
from corpid.web.pages.layout import Frame
from corpid.web.pages.responses import page_response, require_own_form, see_other, set_cookie

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

_FORM: Final = "sign-out"


async def sign_out(request: Request, web: WebContext) -> Response:
    """Ask, then end the sessions of this browser.

    The cookie value is replaced. Source: D30, D34
    """
    provider = web.provider
    context = await page_request(request, provider)
    sent = cookie(request, web.cookie_name)
    browser = await browsers.recognise(context, sent)
    held = await sessions.list_live_sessions(context, browser)
    if browser is None or sent is None or not held:
        if request.method == "POST":
            return see_other(web.base_path + SIGN_OUT_PATH)
        return page_response(request, web.renderer, views.SignedOut())
    if request.method != "POST":
        return page_response(request, web.renderer, await _question(web, context, browser, held))
    form = parameters.parse(await form_bytes(request), {"form_token", "step"})
    require_own_form(context, form, browser.browser_id, _FORM)
    answer = see_other(web.base_path + SIGN_OUT_PATH)
    with suppress(StaleStep):  # the page asks again, or reports that it is done
        set_cookie(answer, web, await sessions.sign_out(context, sent, browser, held))
    return answer


async def _question(web: WebContext, context: RequestContext, browser: Browser, held: list[Session]) -> View:
    """Return the question before signing out.

    It has a link back to the provider's own pages that are open.
    """
    found = [await web.provider.registry.directory.user(each.user_id) for each in held]
    opened = next((PATHS[each.purpose] for each in held if each.purpose in PATHS), "/")
    return views.SignOut(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, _FORM)),
        action=web.base_path + SIGN_OUT_PATH,
        people=tuple(dict.fromkeys(user.name for user in found if user is not None)),
        stay=web.base_path + opened,
    )
