"""The page of a forgotten password: whoever asks is told the same (D47)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows import rates, recovery
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.texts import phrase
from corpid.web.enrolment import views
from corpid.web.frame import Frame
from corpid.web.requests import caller, form_bytes
from corpid.web.showing import show
from corpid.web.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError

RECOVER_PATH: Final = "/recover"
_NAME_CHARACTERS: Final = 400


async def forgotten_password(request: Request, desk: Desk) -> Response:
    """Ask for the user name; a letter follows some seconds after the answer, whose request does the same for everybody (D44, D47)."""
    provider, who = desk.provider, caller(request, desk.provider)
    await provider.rates.address(rates.SIGN_IN, who.address, who.now)
    await provider.live.refuse_maintenance(who.now)
    if not provider.mail.works:
        return show(request, desk.renderer, _without_mail(desk))
    if request.method != "POST":
        return show(request, desk.renderer, _question(desk))
    typed = parameters.parse(await form_bytes(request), {"user_name", "form_token", "step"}).get("user_name", "")
    user_name = typed.strip()[:_NAME_CHARACTERS]
    if not user_name:
        return show(request, desk.renderer, _question(desk, ("user_name", phrase("Enter your user name."))), status=422)
    try:
        await recovery.ask(provider, who)
    except Throttled as throttled:
        more = {"Retry-After": str(throttled.seconds)}
        view = _question(desk, ("user_name", throttled.sentence))
        return show(request, desk.renderer, view, status=429, more=more)
    provider.errands.later(partial(recovery.answer, provider, who, user_name))
    return show(request, desk.renderer, _asked())


def _question(desk: Desk, *wrong: FieldError) -> views.ForgottenPassword:
    return views.ForgottenPassword(frame=Frame(), action=desk.base_path + RECOVER_PATH, errors=wrong)


def _asked() -> Problem:
    return Problem(
        frame=Frame(),
        heading=phrase("Look at your e-mail"),
        paragraphs=(
            phrase(
                "If there is such an account and its e-mail address is known, a letter is on its way. It says how to go "
                "on; its link works for 30 minutes, also on another device."
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
