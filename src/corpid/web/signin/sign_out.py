"""The page that ends single sign-on, and the sign-in to the account (D30)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from corpid.flows import browsers, interactions, sessions
from corpid.flows.account.own_client import PATH as ACCOUNT_PATH
from corpid.flows.interactions import StaleStep
from corpid.protocol import parameters
from corpid.web import views
from corpid.web.answers import require_own_form, see_other
from corpid.web.endpoints import set_cookie
from corpid.web.frame import Frame
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.browsers import Browser
    from corpid.ports import Session
    from corpid.web.endpoints import Desk
    from corpid.web.views import View

SIGN_OUT_PATH: Final = "/sign-out"
_FORM: Final = "sign-out"


async def sign_out(request: Request, desk: Desk) -> Response:
    """Ask, then end the sessions of this browser; its cookie value is replaced (D30, D34)."""
    provider = desk.provider
    who = caller(request, provider)
    await provider.own_keys.ring(who.now)
    sent = cookie(request, provider)
    browser = await browsers.recognise(provider, sent, now=who.now)
    held = await sessions.held(provider, browser, now=who.now)
    if browser is None or sent is None or not held:
        return show(request, desk.renderer, views.SignedOut())
    if request.method != "POST":
        return show(request, desk.renderer, await _question(desk, browser, held))
    form = parameters.parse(await form_bytes(request), {"form_token", "step"})
    require_own_form(provider, form, browser.browser_id, _FORM)
    answer = see_other(desk.base_path + SIGN_OUT_PATH)
    with suppress(StaleStep):  # asked again, or told that it is done
        set_cookie(answer, provider, await sessions.sign_out(provider, who, sent, browser, held))
    return answer


async def _question(desk: Desk, browser: Browser, held: list[Session]) -> View:
    """Who is signed in here, and a way to stay: to their account, if this browser has it open."""
    found = [await desk.provider.registry.directory.user(each.user_id) for each in held]
    open_here = any(each.purpose == "account" for each in held)
    return views.SignOut(
        frame=Frame(form_token=interactions.form_token(desk.provider, browser.browser_id, _FORM)),
        action=desk.base_path + SIGN_OUT_PATH,
        people=tuple(dict.fromkeys(user.name for user in found if user is not None)),
        stay=desk.base_path + (ACCOUNT_PATH if open_here else "/"),
    )
