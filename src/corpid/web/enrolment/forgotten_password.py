"""The page of a forgotten password: whoever asks is told the same (D47)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows import browsers, interactions, rates, recovery
from corpid.flows.account import own_client
from corpid.flows.browsers import Browser
from corpid.flows.networks import neighbourhood
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.texts import phrase
from corpid.web.answers import require_own_form, throttled
from corpid.web.endpoints import set_cookie
from corpid.web.enrolment import views
from corpid.web.frame import Frame
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show
from corpid.web.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.web.endpoints import Desk
    from corpid.web.frame import FieldError

_NAME_CHARACTERS: Final = 400
_FORM: Final = "forgotten password"
"""what its form is bound to beside the browser (D35)"""


async def forgotten_password(request: Request, desk: Desk) -> Response:
    """Ask for the user name; an e-mail follows some seconds after the answer, whose request does the same for everybody (D44, D47)."""
    provider, who = desk.provider, caller(request, desk.provider)
    await provider.rates.address(rates.ACCOUNT, who.address, who.now)
    await provider.live.refuse_maintenance(who.now)
    if not provider.mail.works:
        return show(request, desk.renderer, _without_mail(desk))
    await provider.own_keys.ring(who.now)
    known = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    if request.method != "POST":
        return await _asks(request, desk, who, known)
    browser_id = known.browser_id if known else ""
    form = parameters.parse(await form_bytes(request), {"user_name", "form_token", "step"})
    require_own_form(provider, form, browser_id, _FORM)
    user_name = form.get("user_name", "").strip()[:_NAME_CHARACTERS]
    if not user_name:
        view = _question(desk, browser_id, ("user_name", phrase("Enter your user name.")))
        return show(request, desk.renderer, view, status=422)
    try:
        await recovery.ask(provider, who)
    except Throttled as slowed:
        view = _question(desk, browser_id, ("user_name", slowed.sentence))
        return throttled(show(request, desk.renderer, view), slowed)
    letter = partial(recovery.answer, provider, who, user_name, known_as=known.known_as if known else "")
    provider.errands.later(letter, place=neighbourhood(who.address))
    return show(request, desk.renderer, _asked())


async def _asks(request: Request, desk: Desk, who: Caller, known: Browser | None) -> Response:
    """The question; a browser that is new gets a cookie, which its form is bound to (D34, D35)."""
    provider = desk.provider
    browser, value = (known, None) if known else await browsers.welcome(provider, now=who.now)
    answer = show(request, desk.renderer, _question(desk, browser.browser_id))
    if value is not None:
        set_cookie(answer, provider, value)
    return answer


def _question(desk: Desk, browser_id: str, *wrong: FieldError) -> views.ForgottenPassword:
    return views.ForgottenPassword(
        frame=Frame(form_token=interactions.form_token(desk.provider, browser_id, _FORM)),
        action=desk.base_path + own_client.RECOVERY_PATH,
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


def _without_mail(desk: Desk) -> Problem:
    return Problem(
        frame=Frame(),
        heading=phrase("Ask your administrator"),
        paragraphs=(
            phrase(
                "The person who manages {name} in your organisation can send you a link to choose a new password.",
                name=desk.provider.policy.name,
            ),
        ),
    )
