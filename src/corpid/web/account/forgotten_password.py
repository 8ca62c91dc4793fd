"""The page of a forgotten password, with one answer for every name (D47)."""

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
from corpid.web.http.requests import caller, cookie, form_bytes
from corpid.web.pages.layout import Frame
from corpid.web.pages.responses import page_response, require_own_form, set_cookie, throttled
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError

_NAME_CHARACTERS: Final = 400
_FORM: Final = "forgotten password"
"""binding of its form, in addition to the browser (D35)"""


async def forgotten_password(request: Request, context: WebContext) -> Response:
    """Ask for the user name; an e-mail follows some seconds after the answer, whose request does the same for everybody (D44, D47)."""
    provider, who = context.provider, caller(request, context.provider)
    await provider.rate_limits.address(rate_limits.ACCOUNT, who.address, who.now)
    await provider.registry_cache.refuse_maintenance(who.now)
    if not provider.mail.works:
        return page_response(request, context.renderer, _without_mail(context))
    await provider.signing_keys.ring(who.now)
    known = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    if request.method != "POST":
        return await _asks(request, context, who, known)
    browser_id = known.browser_id if known else ""
    form = parameters.parse(await form_bytes(request), {"user_name", "form_token", "step"})
    require_own_form(provider, form, browser_id, _FORM)
    user_name = form.get("user_name", "").strip()[:_NAME_CHARACTERS]
    if not user_name:
        view = _question(context, browser_id, ("user_name", phrase("Enter your user name.")))
        return page_response(request, context.renderer, view, status=422)
    try:
        await recovery.ask(provider, who)
    except Throttled as slowed:
        view = _question(context, browser_id, ("user_name", slowed.sentence))
        return throttled(page_response(request, context.renderer, view), slowed)
    letter = partial(recovery.answer, provider, who, user_name, browser_key=known.browser_key if known else "")
    provider.background_tasks.later(letter, place=neighbourhood(who.address))
    return page_response(request, context.renderer, _asked())


async def _asks(request: Request, context: WebContext, who: Caller, known: Browser | None) -> Response:
    """The question; a browser that is new gets a cookie, which its form is bound to (D34, D35)."""
    provider = context.provider
    browser, value = (known, None) if known else await browsers.issue_cookie(provider, now=who.now)
    answer = page_response(request, context.renderer, _question(context, browser.browser_id))
    if value is not None:
        set_cookie(answer, provider, value)
    return answer


def _question(context: WebContext, browser_id: str, *wrong: FieldError) -> enrolment_pages.ForgottenPassword:
    return enrolment_pages.ForgottenPassword(
        frame=Frame(form_token=interactions.form_token(context.provider, browser_id, _FORM)),
        action=context.base_path + account_client.RECOVERY_PATH,
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


def _without_mail(context: WebContext) -> Problem:
    return Problem(
        frame=Frame(),
        heading=phrase("Ask your administrator"),
        paragraphs=(
            phrase(
                "The person who manages {name} in your organisation can send you a link to choose a new password.",
                name=context.provider.policy.name,
            ),
        ),
    )
