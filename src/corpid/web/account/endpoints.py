"""The account in a browser: each page one path, its forms posted to the same (D34, D35).

Who is not signed in for the account, or not lately enough to open a page on which factors are changed, is led to a
sign-in and back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows import browsers, interactions, rates
from corpid.flows.account import openings, visits
from corpid.flows.account.own_client import AGAIN
from corpid.flows.account.visits import TooOld
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.protocol.errors import InvalidRequest
from corpid.web.account import table
from corpid.web.account.turns import EXTEND, Gone, Turn, place
from corpid.web.answers import see_other, throttled
from corpid.web.endpoints import enter
from corpid.web.languages import LANGUAGES, Pick, lookup
from corpid.web.pages import not_found, remember_language
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.browsers import Browser
    from corpid.flows.caller import Caller
    from corpid.web.account.table import Page
    from corpid.web.endpoints import Desk

_SAVED: Final = "saved"


def _named(path: str) -> tuple[str, bool]:
    """The page that a path after `/account/` names, and whether more time is asked for."""
    page, _, last = path.rpartition("/")
    return (page, True) if last == EXTEND else (path, False)


async def account(request: Request, desk: Desk) -> Response:
    """Every address of the account (D30, D34)."""
    provider = desk.provider
    path, longer = _named(str(request.path_params.get("rest", "")))
    page = table.page(path)
    if page is None:
        return await not_found(request, desk)
    shown = path if page.part_of is None else page.part_of
    who = caller(request, provider)
    await provider.live.refuse_maintenance(who.now)
    await provider.own_keys.ring(who.now)
    browser = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    visit = await visits.visit(provider, who, browser)
    posted = request.method == "POST"
    if visit is None:
        return await _enter(request, desk, who, browser, shown, anew=posted and page.fresh)
    said = request.query_params
    turn = Turn(desk=desk, who=who, visit=visit, page=shown, saved=_SAVED in said, again=AGAIN in said)
    try:
        if longer:
            return await _extend(request, turn, page)
        return await (_post if posted else _get)(request, turn, page)
    except TooOld:
        return await _enter(request, desk, who, browser, shown, anew=True)
    except StaleStep:
        return _to(desk, page.leads_to)
    except Gone:
        return await not_found(request, desk)


async def _enter(
    request: Request, desk: Desk, who: Caller, browser: Browser | None, page: str, *, anew: bool
) -> Response:
    await desk.provider.rates.address(rates.ACCOUNT, who.address, who.now)
    entered = await visits.enter(desk.provider, who, browser, page=page, anew=anew)
    return enter(request, desk, entered)


def _to(desk: Desk, page: str, query: str = "") -> Response:
    return see_other(place(desk, page) + query)


async def _shown(request: Request, turn: Turn, page: Page, *, status: int = 200) -> Response:
    view = await page.view(turn)
    return view if isinstance(view, Response) else show(request, turn.desk.renderer, view, status=status)


async def _get(request: Request, turn: Turn, page: Page) -> Response:
    if page.fresh:
        visit = await openings.opened(turn.desk.provider, turn.who, turn.visit, turn.page)
        turn = replace(turn, visit=visit)
    return await _shown(request, turn, page)


async def _sent(request: Request, turn: Turn, page: Page) -> Turn | None:
    """The person with the form that they sent, at a page that still stands open; None for another session's form (D35)."""
    provider, visit = turn.desk.provider, turn.visit
    form = parameters.parse(await form_bytes(request), table.FIELDS)
    token = form.get("form_token", "")
    if not interactions.is_form_token(provider, token, visit.browser.browser_id, visit.form):
        return None
    if page.fresh:
        visit = await openings.still_open(provider, turn.who, visit, turn.page)
    return replace(turn, visit=visit, form=form)


async def _extend(request: Request, turn: Turn, page: Page) -> Response:
    """More time for a page, which is then shown as it was (D15, WCAG 2.2.1)."""
    sent = await _sent(request, turn, page) if request.method == "POST" else None
    if sent is None:
        return _to(turn.desk, turn.page)
    try:
        await openings.extend(turn.desk.provider, turn.who, sent.visit)
    except StaleStep:
        pass
    except Rejected as rejected:
        failed = replace(sent, form={}, errors=(("", rejected.sentence),))
        return await _shown(request, failed, page, status=422)
    return _to(turn.desk, turn.page)


async def _post(request: Request, turn: Turn, page: Page) -> Response:
    desk = turn.desk
    if page.submit is None:
        raise InvalidRequest("this page has no form")
    sent = await _sent(request, turn, page)
    if sent is None:
        return _to(desk, turn.page)
    try:
        await page.submit(sent)
    except Throttled as slowed:
        failed = replace(sent, errors=((page.says, slowed.sentence),))
        return throttled(await _shown(request, failed, page), slowed)
    except Rejected as rejected:
        failed = replace(sent, errors=((page.says, rejected.sentence),))
        return await _shown(request, failed, page, status=422)
    answer = _to(desk, page.leads_to, f"?{_SAVED}")
    language = lookup((sent.form.get("language", ""),), LANGUAGES)
    if language is not None:
        remember_language(answer, desk, Pick(tag=language.tag))
    return answer
