"""The page that ends single sign-on, and the sign-in to the account (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows import browsers, interactions, sessions
from corpid.protocol import parameters
from corpid.web import errors, views
from corpid.web.endpoints import set_cookie
from corpid.web.frame import Frame
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.endpoints import Desk

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
        frame = Frame(form_token=interactions.form_token(provider, browser.browser_id, _FORM))
        view = views.SignOut(frame=frame, action=desk.base_path + SIGN_OUT_PATH)
        return show(request, desk.renderer, view)
    answer = Response(b"", 303, {**errors.NO_STORE, "Location": desk.base_path + SIGN_OUT_PATH})
    token = parameters.parse(await form_bytes(request), {"form_token"}).get("form_token", "")
    if interactions.is_form_token(provider, token, browser.browser_id, _FORM):
        set_cookie(answer, provider, await sessions.sign_out(provider, who, sent, held))
    return answer
