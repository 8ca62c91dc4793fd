"""Endpoints of the account: one path per page and its forms.

Without a sign-in to the account that is fresh enough for the page, the person is sent to sign in, and back. Source:
D34, D35
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows.account import account_sessions
from corpid.flows.account.account_sessions import TooOld
from corpid.flows.authentication import browsers, interactions
from corpid.flows.authentication.account_client import AGAIN
from corpid.flows.authentication.interactions import StaleStep
from corpid.flows.authentication.sign_in import Rejected
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.oauth import rate_limits
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.web.account import table
from corpid.web.account.page_context import EXTEND, AccountContext, Gone, account_path
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.plain import not_found, remember_language
from corpid.web.pages.responses import enter, page_response, see_other, throttled
from corpid.web.pages.translations import LANGUAGES, Pick, lookup

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.web.account.table import Page
    from corpid.web.context import WebContext

_SAVED: Final = "saved"


def _named(path: str) -> tuple[str, bool]:
    """The account page in a path, and whether time is requested."""
    page, _, last = path.rpartition("/")
    return (page, True) if last == EXTEND else (path, False)


async def account(request: Request, web: WebContext) -> Response:
    """Every address of the account (D30, D34)."""
    provider = web.provider
    path, longer = _named(str(request.path_params.get("rest", "")))
    page = table.page(path)
    if page is None:
        return await not_found(request, web)
    shown = path if page.part_of is None else page.part_of
    context = await page_request(request, provider)
    await provider.registry_cache.refuse_maintenance(context.now)
    browser = await browsers.recognise(context, cookie(request, provider))
    visit = await account_sessions.visit(context, browser)
    posted = request.method == "POST"
    if visit is None:
        return await _enter(request, web, context, browser, shown, fresh=posted and page.fresh)
    query = request.query_params
    account = AccountContext(
        web=web, context=context, visit=visit, page=shown, saved=_SAVED in query, again=AGAIN in query
    )
    try:
        if longer:
            return await _extend(request, account, page)
        return await (_post if posted else _get)(request, account, page)
    except TooOld:
        return await _enter(request, web, context, browser, shown, fresh=True)
    except StaleStep:
        return _to(web, page.leads_to)
    except Gone:
        return await not_found(request, web)


async def _enter(
    request: Request, web: WebContext, context: RequestContext, browser: Browser | None, page: str, *, fresh: bool
) -> Response:
    await web.provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now)
    entered = await account_sessions.enter(context, browser, page=page, fresh=fresh)
    return enter(request, web, entered)


def _to(web: WebContext, page: str, query: str = "") -> Response:
    return see_other(account_path(web, page) + query)


async def _shown(request: Request, account: AccountContext, page: Page, *, status: int = 200) -> Response:
    view = await page.view(account)
    return view if isinstance(view, Response) else page_response(request, account.web.renderer, view, status=status)


async def _get(request: Request, account: AccountContext, page: Page) -> Response:
    if page.fresh:
        visit = await account_sessions.opened(account.context, account.visit, account.page)
        account = replace(account, visit=visit)
    return await _shown(request, account, page)


async def _sent(request: Request, account: AccountContext, page: Page) -> AccountContext | None:
    """The person and their form, at a page that is still open.

    None for another session's form (D35).
    """
    visit = account.visit
    form = parameters.parse(await form_bytes(request), table.FIELDS)
    token = form.get("form_token", "")
    if not interactions.is_form_token(account.context, token, visit.browser.browser_id, visit.form):
        return None
    if page.fresh:
        visit = await account_sessions.still_open(account.context, visit, account.page)
    return replace(account, visit=visit, form=form)


async def _extend(request: Request, account: AccountContext, page: Page) -> Response:
    """Extend a page's time, and show the page again.

    Source: D15, WCAG 2.2.1
    """
    sent = await _sent(request, account, page) if request.method == "POST" else None
    if sent is None:
        return _to(account.web, account.page)
    try:
        await account_sessions.extend(account.context, sent.visit)
    except StaleStep:
        pass
    except Rejected as rejected:
        failed = replace(sent, form={}, errors=(("", rejected.sentence),))
        return await _shown(request, failed, page, status=422)
    return _to(account.web, account.page)


async def _post(request: Request, account: AccountContext, page: Page) -> Response:
    web = account.web
    if page.submit is None:
        raise InvalidRequest(Reason.STEP_UNKNOWN, "this page has no form")
    sent = await _sent(request, account, page)
    if sent is None:
        return _to(web, account.page)
    try:
        await page.submit(sent)
    except Throttled as slowed:
        failed = replace(sent, errors=((page.says, slowed.sentence),))
        return throttled(await _shown(request, failed, page), slowed)
    except Rejected as rejected:
        failed = replace(sent, errors=((page.says, rejected.sentence),))
        return await _shown(request, failed, page, status=422)
    answer = _to(web, page.leads_to, f"?{_SAVED}")
    language = lookup((sent.form.get("language", ""),), LANGUAGES)
    if language is not None:
        remember_language(answer, web, Pick(tag=language.tag))
    return answer
