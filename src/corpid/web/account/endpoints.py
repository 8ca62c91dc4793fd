"""Endpoints of the account: its table of pages, and their forms.

Without a sign-in to the account that is fresh enough for the page, the person is sent to sign in, and back. Source:
D34, D35
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows.account import account_sessions, activity, deletion, own_consents, own_email, own_factors
from corpid.flows.account.account_sessions import TooOld
from corpid.flows.authentication import browsers, interactions
from corpid.flows.authentication.account_client import AGAIN
from corpid.flows.authentication.sign_in import Rejected
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.oauth import rate_limits
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import EMAIL_UNDO_SECONDS, HOUR
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase
from corpid.web.account import app_key, browser_pages, email_pages, own_data, pages
from corpid.web.account.page_context import EXTEND, AccountContext, Gone, account_path
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.plain import not_found, remember_language
from corpid.web.pages.responses import enter, is_from_own_page, page_response, see_other, throttled
from corpid.web.pages.translations import LANGUAGES, Pick, lookup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

FIELDS: Final = frozenset(
    {
        "form_token", "step", "user_name", "name", "password", "code", "passkey", "kept", "browser", "language",
        "decision", "email",
    }
)  # fmt: skip
_PASSKEY: Final = re.compile(r"passkey/[0-9a-f]{16}")
_STOP_SHARING: Final = re.compile(pages.STOP_SHARING + r"/[0-9a-f]{16}")
_BROWSER: Final = re.compile(browser_pages.BROWSER + r"/[0-9a-f]{16}")
_SHARING: Final = re.compile(pages.SHARING + r"/[1-9][0-9]{0,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its view, its form's submission, and the next page."""

    view: Callable[[AccountContext], Awaitable[View | Response]]
    submit: Callable[[AccountContext], Awaitable[str | Response]] | None = None
    """saves the form, and returns what was changed (`_CHANGES`), or the response if nothing was; empty: nothing yet, and the
    page shows what is next"""
    leads_to: str = ""
    field: str = ""
    """the field of its errors; empty: the page as a whole"""
    fresh: bool = False
    """whether a sign-in of these minutes opens it (`account_sessions`)"""
    part_of: str | None = None
    """the page that contains it, which is opened in its place"""


async def _add_passkey(account: AccountContext) -> str:
    await own_factors.add(account.context, account.visit, account.cookie, answer=account.form.get("passkey", ""))
    return "passkey-added"


async def _change_passkey(account: AccountContext) -> str:
    visit = account.visit
    shown = await pages.this_passkey(account)
    if account.form.get("decision") == "remove":
        await own_factors.remove(account.context, visit, shown)
        return "passkey-removed"
    await own_factors.rename(account.context, visit, shown, name=account.form.get("name", ""))
    return "passkey-renamed"


async def _qr_code(account: AccountContext) -> Response:
    return app_key.picture(await pages.app_link(account))


async def _set_up_app(account: AccountContext) -> str:
    await own_factors.set_up_app(account.context, account.visit, code=account.form.get("code", ""))
    return "app"


async def _remove_app(account: AccountContext) -> str:
    await own_factors.remove_app(account.context, account.visit)
    return "app-removed"


async def _change_password(account: AccountContext) -> str:
    password = account.form.get("password", "")
    await own_factors.change_password(account.context, account.visit, password=password)
    return "password"


async def _replace_codes(account: AccountContext) -> str:
    shown, kept = account.form.get("step", ""), account.form.get("kept") == "yes"
    await own_factors.replace_codes(account.context, account.visit, shown=shown, kept=kept)
    return "codes"


async def _remove_codes(account: AccountContext) -> str:
    await own_factors.remove_codes(account.context, account.visit)
    return "codes-removed"


async def _end(account: AccountContext) -> str:
    visit = account.visit
    if account.form.get("decision") == "others":
        await activity.end_others(account.context, visit)
        return "browsers"
    await activity.end(account.context, visit, name=account.form.get("browser", ""))
    return "browser"


async def _name_browser(account: AccountContext) -> str:
    shown = await browser_pages.this_browser(account)
    await activity.rename(account.context, account.visit, shown, typed=account.form.get("name", ""))
    return "browser-named"


async def _stop_sharing(account: AccountContext) -> str:
    await own_consents.withdraw(account.context, account.visit, await pages.this_shared(account))
    return "sharing"


async def _change_email(account: AccountContext) -> str:
    """The forms of the e-mail address (D61)."""
    context, visit, form = account.context, account.visit, account.form
    match form.get("decision", ""):
        case "code":
            await own_email.prove(context, visit, code=form.get("code", ""))
            return "email"
        case "keep":
            await own_email.keep(context, visit)
            return "email-kept"
        case "again":
            await own_email.send_again(context, visit)
        case "other":
            await own_email.forget(context, visit)
        case _:
            await own_email.ask(context, visit, email=form.get("email", ""))
    return ""


async def _choose_language(account: AccountContext) -> str:
    wanted = account.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise Rejected(phrase("Choose a language."))
    await activity.choose_language(account.context, account.visit, language=wanted)
    return "language"


async def _delete_account(account: AccountContext) -> str:
    decide = deletion.withdraw if account.form.get("decision") == "withdraw" else deletion.request
    await decide(account.context, account.visit)
    return "deletion-withdrawn" if decide is deletion.withdraw else "deletion"


_ONE_PASSKEY: Final = Page(view=pages.passkey, submit=_change_passkey, leads_to="passkeys", field="name", fresh=True)
_PAGES: Final[Mapping[str, Page]] = {
    "": Page(view=pages.overview),
    "passkeys": Page(view=pages.passkeys),
    "new-passkey": Page(view=pages.new_passkey, submit=_add_passkey, leads_to="passkeys", field="passkey", fresh=True),
    "app": Page(view=pages.app, submit=_set_up_app, field="code", fresh=True),
    "app/qr.svg": Page(view=_qr_code, fresh=True, part_of="app"),
    "remove-app": Page(view=pages.remove_app, submit=_remove_app, fresh=True),
    "password": Page(view=pages.password, submit=_change_password, field="password", fresh=True),
    "codes": Page(view=pages.codes, submit=_replace_codes, field="kept", fresh=True),
    "email": Page(view=email_pages.email, submit=_change_email, fresh=True),
    "remove-codes": Page(view=pages.remove_codes, submit=_remove_codes, fresh=True),
    "browsers": Page(view=browser_pages.browsers, submit=_end, leads_to="browsers"),
    "sign-ins": Page(view=pages.sign_ins),
    pages.SHARING: Page(view=pages.sharing, leads_to=pages.SHARING),
    own_data.DATA: Page(view=own_data.data, submit=own_data.download, fresh=True),
    own_data.DELETE: Page(view=own_data.delete, submit=_delete_account, fresh=True),
    "language": Page(view=pages.language, submit=_choose_language, field="language"),
}
"""by the path after `/account/`"""
_NAMED_PAGES: Final[Mapping[re.Pattern[str], Page]] = {
    _PASSKEY: _ONE_PASSKEY,
    _BROWSER: Page(view=browser_pages.browser, submit=_name_browser, leads_to="browsers", field="name"),
    _STOP_SHARING: Page(view=pages.stop_sharing, submit=_stop_sharing, leads_to=pages.SHARING),
    _SHARING: _PAGES[pages.SHARING],
}
"""those whose path names one of several"""


def _page_at(path: str) -> Page | None:
    """The page at a path after `/account/`; None if there is none."""
    for pattern, page in _NAMED_PAGES.items():
        if pattern.fullmatch(path):
            return page
    return _PAGES.get(path)


_SAVED: Final = "saved"
"""the parameter that names what was changed"""
_CHANGES: Final[Mapping[str, Phrase]] = {
    "passkey-added": phrase("Your passkey has been added."),
    "passkey-renamed": phrase("Your passkey has a new name."),
    "passkey-removed": phrase("Your passkey has been removed."),
    "app": phrase("Your authenticator app has been set up."),
    "app-removed": phrase("Your authenticator app has been removed."),
    "password": phrase("Your password has been changed."),
    "codes": phrase("Your new recovery codes now work."),
    "codes-removed": phrase("Your recovery codes have been removed."),
    "email": phrase(
        "Your new e-mail address is confirmed. It takes effect in {hours} hours.", hours=EMAIL_UNDO_SECONDS // HOUR
    ),
    "email-kept": phrase("Your e-mail address stays the same. If the change was not yours, choose a new password now."),
    "sharing": phrase("You no longer share your data with that service."),
    "browser": phrase("You have been signed out there."),
    "browser-named": phrase("The name has been saved."),
    "browsers": phrase("You have been signed out everywhere else."),
    "language": phrase("Your language has been changed."),
    "deletion": phrase("Your request to delete your account has been received."),
    "deletion-withdrawn": phrase("You have withdrawn your request. Your account stays as it is."),
}
"""by what a page's `submit` returns"""


def _named(path: str) -> tuple[str, bool]:
    """The account page in a path, and whether time is requested."""
    page, _, last = path.rpartition("/")
    return (page, True) if last == EXTEND else (path, False)


async def account(request: Request, web: WebContext) -> Response:
    """Every address of the account (D30, D34)."""
    provider = web.provider
    path, longer = _named(str(request.path_params.get("rest", "")))
    page = _page_at(path)
    if page is None:
        return await not_found(request, web)
    shown = path if page.part_of is None else page.part_of
    context = await page_request(request, provider)
    await provider.registry_cache.refuse_maintenance(context.now)
    sent = cookie(request, provider)
    browser = await browsers.recognise(context, sent)
    visit = await account_sessions.visit(context, browser)
    posted = request.method == "POST"
    if visit is None:
        return await _enter(request, web, context, browser, shown, fresh=posted and page.fresh)
    query = request.query_params
    account = AccountContext(
        web=web,
        context=context,
        visit=visit,
        cookie=sent or "",
        page=shown,
        saved=_CHANGES.get(query.get(_SAVED, "")) if is_from_own_page(request) else None,
        again=AGAIN in query,
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
    form = parameters.parse(await form_bytes(request), FIELDS)
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
        changed = await page.submit(sent)
    except Throttled as slowed:
        failed = replace(sent, errors=((page.field, slowed.sentence),))
        return throttled(await _shown(request, failed, page), slowed)
    except Rejected as rejected:
        failed = replace(sent, errors=((rejected.field or page.field, rejected.sentence),))
        return await _shown(request, failed, page, status=422)
    if isinstance(changed, Response):
        return changed
    answer = _to(web, page.leads_to, f"?{_SAVED}={changed}") if changed else _to(web, sent.page)
    language = lookup((sent.form.get("language", ""),), LANGUAGES)
    if language is not None:
        remember_language(answer, web, Pick(tag=language.tag))
    return answer
