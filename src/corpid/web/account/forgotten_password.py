"""The page of a forgotten password, with one answer for every name.

Source: D47
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows.account import recovery
from corpid.flows.authentication import account_client, browsers, interactions
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.oauth import rate_limits
from corpid.rules.networks import neighbourhood
from corpid.rules.oauth import parameters
from corpid.texts import phrase
from corpid.web.account import enrolment_pages
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.layout import Frame
from corpid.web.pages.responses import page_response, require_own_form, set_cookie, throttled
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError

_NAME_CHARACTERS: Final = 400
_FORM: Final = "forgotten password"
"""binding of its form, in addition to the browser (D35)"""


async def forgotten_password(request: Request, web: WebContext) -> Response:
    """Ask for the user name.

    An e-mail follows some seconds after the answer, whose request does the same for everybody (D44, D47).
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now)
    await provider.registry_cache.refuse_maintenance(context.now)
    if not provider.mail.works:
        return page_response(request, web.renderer, _without_mail(web))
    known = await browsers.recognise(context, cookie(request, provider))
    if request.method != "POST":
        return await _asks(request, web, context, known)
    browser_id = known.browser_id if known else ""
    form = parameters.parse(await form_bytes(request), {"user_name", "form_token", "step"})
    require_own_form(context, form, browser_id, _FORM)
    user_name = form.get("user_name", "").strip()[:_NAME_CHARACTERS]
    if not user_name:
        view = _question(web, context, browser_id, ("user_name", phrase("Enter your user name.")))
        return page_response(request, web.renderer, view, status=422)
    try:
        await recovery.ask(context)
    except Throttled as slowed:
        view = _question(web, context, browser_id, ("user_name", slowed.sentence))
        return throttled(page_response(request, web.renderer, view), slowed)
    letter = partial(recovery.answer, context, user_name, browser_key=known.browser_key if known else "")
    provider.background_tasks.later(letter, place=neighbourhood(context.address))
    return page_response(request, web.renderer, _asked())


async def _asks(request: Request, web: WebContext, context: RequestContext, known: Browser | None) -> Response:
    """The form that asks for the user name.

    A new browser gets a cookie, which its form is bound to (D34, D35).
    """
    provider = web.provider
    browser, value = (known, None) if known else await browsers.issue_cookie(context)
    answer = page_response(request, web.renderer, _question(web, context, browser.browser_id))
    if value is not None:
        set_cookie(answer, provider, value)
    return answer


def _question(
    web: WebContext, context: RequestContext, browser_id: str, *wrong: FieldError
) -> enrolment_pages.ForgottenPassword:
    return enrolment_pages.ForgottenPassword(
        frame=Frame(form_token=interactions.form_token(context, browser_id, _FORM)),
        action=web.base_path + account_client.RECOVERY_PATH,
        errors=wrong,
    )


def _asked() -> Problem:
    return Problem(
        frame=Frame(),
        heading=phrase("Look at your e-mail"),
        paragraphs=(
            phrase(
                "If there is such an account and its e-mail address is known, an e-mail is on its way. It says how to "
                "go on; its link works for 30 minutes, also on another device."
            ),
            phrase("If you were signing in, leave that page open and go back to it with your new password."),
            phrase("If nothing comes, look among the unwanted e-mails, then ask your administrator."),
        ),
    )


def _without_mail(web: WebContext) -> Problem:
    return Problem(
        frame=Frame(),
        heading=phrase("Ask your administrator"),
        paragraphs=(
            phrase(
                "The person who manages {name} in your organisation can send you a link to choose a new password.",
                name=web.provider.policy.name,
            ),
        ),
    )
