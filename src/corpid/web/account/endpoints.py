"""The account in a browser: each page one path, its forms posted to the same (D34, D35).

Who is not signed in for the account, or not lately enough for what they want to change, is led to a sign-in and back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows import browsers, interactions, rates
from corpid.flows.account import activity, own_factors, seats
from corpid.flows.account.seats import TooOld
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.protocol import parameters
from corpid.protocol.errors import InvalidRequest
from corpid.texts import phrase
from corpid.web import errors
from corpid.web.account import pages
from corpid.web.account.pages import place
from corpid.web.endpoints import set_cookie
from corpid.web.enrolment.endpoints import picture
from corpid.web.languages import LANGUAGES, Pick, lookup
from corpid.web.pages import not_found, remember_language
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show
from corpid.web.signin import pages as signing_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from corpid.flows.account.seats import Seat
    from corpid.flows.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.ports import Passkey
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View

FIELDS: Final = frozenset(
    {
        "form_token", "step", "user_name", "name", "password", "code", "passkey", "kept", "browser", "language",
        "decision",
    }
)  # fmt: skip
_PICTURE: Final = "app/qr.svg"
_PASSKEY: Final = re.compile(r"passkey/[0-9a-f]{16}")
_SAVED: Final = "saved"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A person at a page of their account, with the form that they sent, if they did."""

    desk: Desk
    who: Caller
    sitting: Seat
    page: str
    form: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[FieldError, ...] = ()
    saved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """What a page shows, what its form submits, and where that leads; `fresh`: after a sign-in of these minutes only."""

    view: Callable[[_Turn], Awaitable[View]]
    submit: Callable[[_Turn], Awaitable[None]] | None = None
    leads_to: str = ""
    says: str = ""
    """the field that its errors stand beside"""
    fresh: bool = False


class _Gone(Exception):
    """What the page was about is not there, or not this person's."""


async def _overview(turn: _Turn) -> View:
    return await pages.overview(turn.desk, turn.who, turn.sitting, saved=turn.saved)


async def _passkeys(turn: _Turn) -> View:
    return await pages.passkeys(turn.desk, turn.sitting, saved=turn.saved)


async def _new_passkey(turn: _Turn) -> View:
    if not own_factors.makes_passkeys(turn.desk.provider):
        raise _Gone
    return await pages.new_passkey(turn.desk, turn.sitting, turn.errors)


async def _add_passkey(turn: _Turn) -> None:
    provider, answer = turn.desk.provider, turn.form.get("passkey", "")
    name = f"{turn.who.device or 'Passkey'}, {provider.policy.today(turn.who.now)}"
    await own_factors.add_passkey(provider, turn.who, turn.sitting, answer=answer, name=name)


async def _this_passkey(turn: _Turn) -> Passkey:
    factors = await own_factors.of(turn.desk.provider, turn.sitting)
    named = turn.page.partition("/")[2]
    found = next((each for each in factors.passkeys if pages.reference(each) == named), None)
    if found is None:
        raise _Gone
    return found


async def _passkey(turn: _Turn) -> View:
    return pages.passkey(turn.desk, turn.sitting, await _this_passkey(turn), turn.form, turn.errors)


async def _change_passkey(turn: _Turn) -> None:
    provider, who, sitting = turn.desk.provider, turn.who, turn.sitting
    shown = await _this_passkey(turn)
    if turn.form.get("decision") == "remove":
        await own_factors.remove_passkey(provider, who, sitting, shown)
    else:
        await own_factors.rename_passkey(provider, who, sitting, shown, name=turn.form.get("name", ""))


async def _app(turn: _Turn) -> View:
    return await pages.app(turn.desk, turn.sitting, turn.errors)


async def _set_up_app(turn: _Turn) -> None:
    await own_factors.set_up_app(turn.desk.provider, turn.who, turn.sitting, code=turn.form.get("code", ""))


async def _password(turn: _Turn) -> View:
    return pages.password(turn.desk, turn.sitting, turn.errors)


async def _change_password(turn: _Turn) -> None:
    password = turn.form.get("password", "")
    await own_factors.change_password(turn.desk.provider, turn.who, turn.sitting, password=password)


async def _codes(turn: _Turn) -> View:
    return await pages.codes(turn.desk, turn.sitting, turn.form, turn.errors)


async def _replace_codes(turn: _Turn) -> None:
    offer, kept = turn.form.get("step", ""), turn.form.get("kept") == "yes"
    await own_factors.replace_codes(turn.desk.provider, turn.who, turn.sitting, offer=offer, kept=kept)


async def _browsers(turn: _Turn) -> View:
    return await pages.browsers(turn.desk, turn.who, turn.sitting, saved=turn.saved)


async def _end(turn: _Turn) -> None:
    provider, who, sitting = turn.desk.provider, turn.who, turn.sitting
    if turn.form.get("decision") == "others":
        await activity.end_others(provider, who, sitting)
    else:
        await activity.end(provider, who, sitting, name=turn.form.get("browser", ""))


async def _sign_ins(turn: _Turn) -> View:
    return await pages.sign_ins(turn.desk, turn.who, turn.sitting)


async def _language(turn: _Turn) -> View:
    return pages.language(turn.desk, turn.sitting, turn.errors)


async def _choose_language(turn: _Turn) -> None:
    wanted = turn.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise Rejected(phrase("Choose a language."))
    await activity.choose_language(turn.desk.provider, turn.who, turn.sitting, language=wanted)


PAGES: Final[Mapping[str, _Page]] = {
    "": _Page(view=_overview),
    "passkeys": _Page(view=_passkeys),
    "new-passkey": _Page(view=_new_passkey, submit=_add_passkey, leads_to="passkeys", says="passkey", fresh=True),
    "passkey": _Page(view=_passkey, submit=_change_passkey, leads_to="passkeys", says="name", fresh=True),
    "app": _Page(view=_app, submit=_set_up_app, says="code", fresh=True),
    "password": _Page(view=_password, submit=_change_password, says="password", fresh=True),
    "codes": _Page(view=_codes, submit=_replace_codes, says="kept", fresh=True),
    "browsers": _Page(view=_browsers, submit=_end, leads_to="browsers"),
    "sign-ins": _Page(view=_sign_ins),
    "language": _Page(view=_language, submit=_choose_language, says="language"),
}
"""by the first part of the path after `/account/`"""


async def account(request: Request, desk: Desk) -> Response:
    """Every address of the account (D30, D34)."""
    provider, page = desk.provider, str(request.path_params.get("rest", ""))
    known = PAGES.get(page) if "/" not in page else PAGES["passkey"] if _PASSKEY.fullmatch(page) else None
    if page == _PICTURE:
        known = PAGES["app"]
    if known is None or page == "passkey":
        return await not_found(request, desk)
    who = caller(request, provider)
    await provider.live.refuse_maintenance(who.now)
    await provider.own_keys.ring(who.now)
    browser = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    sitting = await seats.seat(provider, who, browser)
    if sitting is None:
        return await _enter(desk, who, browser, page)
    turn = _Turn(desk=desk, who=who, sitting=sitting, page=page, saved=_SAVED in request.query_params)
    try:
        return await _answer(request, turn, known)
    except TooOld:
        return await _enter(desk, who, browser, page, anew=True)
    except StaleStep:
        return _to(desk, page)
    except _Gone:
        return await not_found(request, desk)


async def _enter(desk: Desk, who: Caller, browser: Browser | None, page: str, *, anew: bool = False) -> Response:
    await desk.provider.rates.address(rates.SIGN_IN, who.address, who.now)
    wanted = "" if page == _PICTURE else page
    entered = await seats.enter(desk.provider, who, browser, page=wanted, anew=anew)
    where = signing_in.place(desk, entered.interaction_id)
    answer = Response(b"", 303, {**errors.NO_STORE, "Location": where})
    if entered.cookie is not None:
        set_cookie(answer, desk.provider, entered.cookie)
    return answer


def _to(desk: Desk, page: str, query: str = "") -> Response:
    return Response(b"", 303, {**errors.NO_STORE, "Location": place(desk, page) + query})


async def _answer(request: Request, turn: _Turn, page: _Page) -> Response:
    if request.method == "POST":
        return await _post(request, turn, page)
    if page.fresh:
        seats.require_fresh(turn.sitting, now=turn.who.now)
    if turn.page == _PICTURE:
        return picture(await pages.app_link(turn.desk, turn.sitting))
    return show(request, turn.desk.renderer, await page.view(turn))


async def _post(request: Request, turn: _Turn, page: _Page) -> Response:
    desk, sitting = turn.desk, turn.sitting
    form = parameters.parse(await form_bytes(request), FIELDS)
    token, browser_id = form.get("form_token", ""), sitting.browser.browser_id
    if page.submit is None or turn.page == _PICTURE:
        raise InvalidRequest("this page has no form")
    if not interactions.is_form_token(desk.provider, token, browser_id, sitting.form):
        return _to(desk, turn.page)
    if page.fresh:
        seats.require_fresh(sitting, now=turn.who.now)
    sent = replace(turn, form=form)
    try:
        await page.submit(sent)
    except Rejected as rejected:
        failed = replace(sent, errors=((page.says, rejected.sentence),))
        return show(request, desk.renderer, await page.view(failed), status=422)
    answer = _to(desk, page.leads_to, f"?{_SAVED}")
    language = lookup((form.get("language", ""),), LANGUAGES)
    if language is not None:
        remember_language(answer, desk, Pick(tag=language.tag))
    return answer
