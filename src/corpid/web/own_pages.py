"""Pages for signed-in people: their tables, forms and fresh sign-ins.

The account, the portal and the console are sites of such pages. Without a sign-in that is fresh enough for a page, the
person is sent to sign in, and back.

A repeated form, as by a double click, leads to the result of the first one until its session accepts another form,
since that result may then no longer be true. A form that was not accepted has changed nothing, so it is tried again.
Source: D15, D30, D34, D35, D54, D73
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec
from starlette.responses import Response

from corpid.flows import encrypted_values, rate_limits
from corpid.flows.account import own_sessions
from corpid.flows.account.own_sessions import FormClaim, SelfServiceRequest, TooOld
from corpid.flows.authentication import browsers, interactions
from corpid.flows.authentication.own_pages import AGAIN, CANCELLED, PATHS
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.directory.write import Refused
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import NO_RIGHT, Forbidden
from corpid.rules.directory.records import Conflict
from corpid.rules.directory.tables import MOST_TYPED, decode_table
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.context import ENTERED, WebContext
from corpid.web.http.requests import (
    UPLOAD,
    cookie,
    form_bytes,
    headers,
    may_complete,
    page_request,
    read_upload,
    upload_boundary,
)
from corpid.web.pages.components import BARE, ButtonForm, FieldError, FormView, Link, PageView, in_frame
from corpid.web.pages.errors import ErrorContext, as_page, refusal_of
from corpid.web.pages.public_pages import not_found, remember_language
from corpid.web.pages.responses import enter, is_from_own_page, page_response, see_other, throttled_page
from corpid.web.pages.translations import LANGUAGES, Pick, lookup
from corpid.web.pages.views import Problem
from corpid.web.sites import (
    CHANGED_MEANWHILE,
    OTHER_ACCOUNT,
    SAVED,
    UNDO_PAGE,
    UNDONE,
    At,
    ConfirmationRequired,
    EditConflict,
    EntryRefused,
    FieldNames,
    FormResult,
    InvalidForm,
    NotFound,
    PageContext,
    SeeOther,
    Site,
    SitePage,
    SiteUndo,
    first_page,
    ways_out,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from starlette.requests import Request

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session, SessionPurpose

EXTEND: Final = "extend"
"""the first part of the address at which a page is given more time: no page, and so no identifier, stands there"""
_PATH: Final = re.compile(r"[A-Za-z0-9/._~:@+,;=-]*")
"""what the path of a page can be, decoded: every identifier is made of it. It is written into addresses as it is, so
that a line break, a question mark or a percent sign in it would lead elsewhere"""

_QUERY: Final = re.compile(r"[A-Za-z0-9!$%&'()*+,./:;=?@_~-]{0,500}")
"""what the query of a page can be that a person returns to"""
_NAME_CHARACTERS: Final = 16
"""of what names a stored form"""
_ADDED: Final = frozenset({AGAIN, CANCELLED, OTHER_ACCOUNT, SAVED})
"""parameters that redirects and links add, each for one request"""
_MOST_BYTES: Final = 4 * MOST_TYPED + 4
"""of a table in any encoding, with its byte order mark"""
_LOOKS: Final = 15
"""how often a repeated form looks for the result of the first"""
_LOOK_SECONDS: Final = 0.2


def failed(purpose: SessionPurpose, request: Request, error: Exception, web: WebContext) -> Response:
    """The page of an error at any address of a site.

    In words of its own: no sign-in at a service has failed. Source: D16, D28
    """
    return as_page(request, error, web.renderer, ErrorContext(back=first_page(web, purpose), own_page=True))


def _named(path: str) -> tuple[str, bool]:
    """The page in a path, and whether time is requested."""
    first, _, page = path.partition("/")
    return (page, True) if first == EXTEND else (path, False)


async def serve(site: Site[At], request: Request, web: WebContext) -> Response:
    """Answer at any address of a site (D30, D34)."""
    path, longer = _named(str(request.path_params.get("rest", "")))
    page = site.page_at(path) if _PATH.fullmatch(path) else None
    if page is None:
        return await not_found(request, web, first_page(web, site.purpose))
    provider = web.provider
    shown = path if page.part_of is None else page.part_of
    context = await page_request(request, provider)
    if not site.in_maintenance:
        await provider.registry_cache.refuse_maintenance(context.now)
    sent = cookie(request, web.cookie_name)
    browser = await browsers.recognise(context, sent)
    visit = await own_sessions.load_request(context, browser, site.purpose)
    posted = request.method == "POST"
    query = request.query_params
    section = site.section_at(shown)
    known = FieldNames(names=section.filters, prefixes=section.prefixes)
    kept = _kept_query(request.url.query) if site.keeps else ""
    way = f"{shown}?{kept}" if kept else shown
    if visit is None:
        return await _enter(site, request, web, context, browser, way, fresh=posted and page.fresh)
    if OTHER_ACCOUNT in query and not posted and is_from_own_page(request):
        return await _enter(site, request, web, context, browser, "", back="")
    at = PageContext(
        web=web,
        context=context,
        visit=visit,
        page=shown,
        section=section.name,
        cookie=sent or "",
        page_at=site.page_at,
        query=dict(query),
        filters={name: value for name, value in query.items() if value and name in known},
        saved=site.changes.get(query.get(SAVED, "")) if is_from_own_page(request) else None,
        entered="" if posted else query.get(ENTERED, ""),
        again=AGAIN in query and is_from_own_page(request),
        cancelled=CANCELLED in query and not posted and site.keeps and page.fresh,
    )
    try:
        return await _answer(site, request, at, page, longer=longer)
    except TooOld:
        if remembered := site.remembered(visit):
            way += f"{'&' if '?' in way else '?'}{remembered}"
        back = _page_before(site, request, web, shown, form_kept=posted and site.keeps and page.fresh)
        return await _enter(site, request, web, context, browser, way, fresh=True, renewed=visit.session, back=back)


async def _answer(
    site: Site[At], request: Request, came: PageContext[SelfServiceRequest], page: SitePage[At], *, longer: bool
) -> Response:
    """The answer to a person who is signed in."""
    web, is_in = came.web, False
    if came.cancelled:
        form = await own_sessions.late_form(came.context, came.visit, came.page, take=False)
        if not form:
            return _to(site, web, site.above(came.page))
        came = replace(came, form=form, visit=own_sessions.as_if_recent(came.context, came.visit))
    try:
        at = site.context(**{**vars(came), "visit": await site.arrive(came)})
        is_in = True
        site.admit(at, page)
        if longer:
            return await _extend(site, request, at, page)
        return await (_post if request.method == "POST" else _get)(site, request, at, page)
    except EntryRefused as closed:
        return page_response(request, web.renderer, closed.view, status=403)
    except SeeOther as elsewhere:
        return _to(site, web, elsewhere.page)
    except StaleStep:
        return _to(site, web, page.leads_to)
    except NotFound:
        return await not_found(request, web, first_page(web, site.purpose))
    except Forbidden as forbidden:
        # The first page of a site that does not let the person in would say the same again.
        back = first_page(web, site.purpose if is_in else "account")
        shown = forbidden_page(site.purpose, forbidden, back, () if is_in else ways_out(web, site.purpose))
        return page_response(request, web.renderer, shown, status=403)


def _kept_query(query: str) -> str:
    """The query to return to after a sign-in.

    Without what a redirect has added.
    """
    pairs = query.split("&")
    return "&".join(pair for pair in pairs if pair and pair.partition("=")[0] not in _ADDED)


def _page_before(site: Site[At], request: Request, web: WebContext, page: str, *, form_kept: bool) -> str:
    """The page to return to without a new sign-in for `page`.

    It is the one that led here; with a form that was kept `page` itself, unless all that `page` does is to ask. If that
    one needs a recent sign-in, it is the one above `page`.
    """
    came, query = _came_from(site, request, web)
    asked = site.page_at(page)
    if form_kept and (came in (page, None) or (asked is not None and asked.check is not asked.view)):
        return f"{page}?{CANCELLED}"
    found = None if came in (page, None) else site.page_at(str(came))
    if found is None or found.fresh:
        return site.above(page)
    return f"{came}?{query}" if query else str(came)


def _came_from(site: Site[At], request: Request, web: WebContext) -> tuple[str | None, str]:
    """The page of this site that led here, and its query.

    None if it was another site, or the browser does not say.
    """
    root = web.provider.policy.base_url + PATHS[site.purpose]
    for sent in headers(request, b"referer"):
        address, _, query = sent.decode("latin-1").partition("?")
        path, kept = unquote(address.removeprefix(root)), _kept_query(query)
        if address.startswith(root) and path[:1] in ("", "/") and _PATH.fullmatch(path):
            return path.removeprefix("/"), kept if _QUERY.fullmatch(kept) else ""
    return None, ""


def forbidden_page(purpose: str, forbidden: Forbidden, back: Link, others: tuple[Link, ...]) -> Problem:
    """The page that says why another one cannot be opened."""
    if forbidden.reason == NO_RIGHT:
        why = (
            phrase("You do not have permission. Ask an owner.")
            if purpose == "manage"
            else phrase("You do not have permission. Ask an operator.")
        )
    else:
        why = phrase("You cannot do this: {reason}.", reason=forbidden.reason)
    return Problem(
        frame=BARE,
        heading=phrase("You cannot open this page"),
        paragraphs=(why,),
        back=back,
        others=others,
    )


async def _enter(
    site: Site[At],
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser | None,
    page: str,
    *,
    fresh: bool = False,
    renewed: Session | None = None,
    back: str | None = None,
) -> Response:
    await web.provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now, context.counts)
    entered = await own_sessions.enter(
        context, browser, page=page, fresh=fresh, purpose=site.purpose, renewed=renewed, back=back
    )
    return enter(request, web, entered)


def _to(site: Site[At], web: WebContext, page: str, change: str = "") -> Response:
    query = f"{'&' if '?' in page else '?'}{SAVED}={change}" if change else ""
    return see_other(site.path(web, page) + query)


async def _shown(site: Site[At], request: Request, at: At, page: SitePage[At], *, checked: bool = False) -> Response:
    view = await (page.check if checked and page.check is not None else page.view)(at)
    if isinstance(view, Response):
        return view
    if isinstance(view, PageView):
        if site.undo is not None and (at.saved or page.offers_undo):
            saved, undo = await _offer_undo(site, site.undo, at)
            view = msgspec.structs.replace(view, saved=saved or view.saved, undo=undo)
        news = tuple(each for each in at.errors if each[1] != getattr(view, "refused", None))
        view = msgspec.structs.replace(
            view, errors=view.errors or news, notes=view.notes or at.notes, saved=view.saved or at.saved
        )
    if isinstance(view, FormView):
        typed = at.form.get("reason", "") if view.reason == "" else view.reason
        back = view.frame.up.url if view.back == "" and view.frame.up else view.back
        view = msgspec.structs.replace(view, action=view.action or site.path(at.web, at.page), reason=typed, back=back)
    if at.entered:
        view = in_frame(view, entered=at.entered)
    return page_response(request, at.web.renderer, view)


async def _offer_undo(site: Site[At], undo: SiteUndo[At], at: At) -> tuple[Phrase | None, ButtonForm | None]:
    """The last change with its button, or what was undone."""
    if at.saved and at.query.get(SAVED) == UNDONE:
        return await undo.describe_undone(at), None
    if (offered := await undo.offered(at)) is None:
        return None, None
    name, change = offered
    return change, ButtonForm(action=site.path(at.web, undo.page), fields=((UNDONE, name), (UNDO_PAGE, at.here)))


async def _get(site: Site[At], request: Request, at: At, page: SitePage[At]) -> Response:
    place = own_sessions.form_place(at.visit, at.page, at.entered)
    kept = await encrypted_values.read_form(at.context, place) if at.entered else None
    if page.fresh:
        try:
            # A form that was in time is shown for as long as it can be sent.
            at = await (site.still_open if kept is not None and site.keeps else site.open)(at)
        except TooOld:
            if kept is not None and site.keeps and may_complete(request):
                await own_sessions.keep_late_form(at.context, at.visit, at.page, dict(kept.fields))
            raise
    if kept is None:
        at = replace(at, entered="")
        if site.keeps and at.again:
            form = await own_sessions.late_form(at.context, at.visit, at.page, take=may_complete(request))
            # It goes on at the page that it was sent for.
            kept = StoredForm(fields=form, checked=bool(form))
    if kept is None:
        return await _shown(site, request, at, page)
    try:
        return await _shown(
            site, request, replace(at, form=kept.fields, errors=kept.errors), page, checked=kept.checked
        )
    except (InvalidInput, InvalidForm, Refused, Conflict) as refused:
        # What is to be confirmed is no longer what was entered.
        failed = replace(at, form=kept.fields, errors=_errors(refused, page.field))
        return await _shown(site, request, failed, page)


def _name(at: PageContext[SelfServiceRequest]) -> str:
    """The name of a stored form, the same for the same bytes."""
    return own_sessions.digest_of(at.form)[:_NAME_CHARACTERS]


async def _not_accepted(
    site: Site[At],
    at: At,
    page: SitePage[At],
    *errors: FieldError,
    form: Mapping[str, str] | None = None,
    checked: bool = False,
) -> Response:
    """Keep a form, and redirect to the page that shows it again (D73)."""
    name = _name(at)
    fields = page.kept(dict(at.form)) if form is None else form
    typed = {field: value for field, value in fields.items() if field != ENTERED}
    kept = StoredForm(fields=typed, errors=errors, checked=checked)
    await encrypted_values.save_form(at.context, own_sessions.form_place(at.visit, at.page, name), kept)
    return _to(site, at.web, replace(at, entered=name).here)


async def _sent(site: Site[At], request: Request, at: At, page: SitePage[At]) -> At | None:
    """The person and their form, at a page that is still open.

    An uploaded table is in its field, or why it cannot be is an error. None for another session's form (D35).
    """
    known: Collection[str] = site.fields  # type: ignore[assignment]  # asked only for `in`
    errors: tuple[FieldError, ...] = ()

    def is_own(form: Mapping[str, str]) -> bool:
        token = form.get("form_token", "")
        return interactions.is_form_token(at.context, token, at.visit.browser.browser_id, at.visit.form)

    if page.upload and upload_boundary(request):
        form, file = await read_upload(request, known, is_own)
        try:
            form |= {page.upload: _read_table(file)} if file else {}
        except InvalidInput as rejected:
            errors = ((rejected.field, rejected.sentence),)
    else:
        form = parameters.parse(await form_bytes(request), known)
    if not is_own(form):
        return None
    if page.fresh:
        try:
            at = await site.still_open(at)
        except TooOld:
            if site.keeps:
                await own_sessions.keep_late_form(at.context, at.visit, at.page, page.kept(form))
            raise
    return replace(at, form=form, errors=errors)


def _read_table(file: bytes) -> str:
    """The text of an uploaded table. Raises InvalidInput. Source: D81"""
    text = ""
    with suppress(UnicodeDecodeError):
        text = decode_table(file[: _MOST_BYTES + 1])
    if len(text) > MOST_TYPED or len(file) > _MOST_BYTES:
        raise InvalidInput(
            phrase("This file is too long. A table can have at most {limit} characters.", limit=MOST_TYPED),
            field=UPLOAD,
        )
    if not text.strip():
        raise InvalidInput(
            phrase(
                "This file cannot be read. In your spreadsheet, save the table as “CSV UTF-8”, and choose that file."
            ),
            field=UPLOAD,
        )
    return text


async def _extend(site: Site[At], request: Request, at: At, page: SitePage[At]) -> Response:
    """Extend a page's time, and show the page again."""
    sent = await _sent(site, request, at, page) if request.method == "POST" else None
    if sent is None:
        return _to(site, at.web, at.page)
    sent = replace(sent, entered=sent.form.get(ENTERED, "")[:_NAME_CHARACTERS])
    try:
        await site.extend(sent)
    except StaleStep:
        pass
    except InvalidInput as rejected:
        sent = replace(sent, entered=sent.entered or _name(sent))
        place = own_sessions.form_place(sent.visit, sent.page, sent.entered)
        await encrypted_values.add_error(sent.context, place, ("", rejected.sentence))
    return _to(site, at.web, sent.here)


async def _post(site: Site[At], request: Request, at: At, page: SitePage[At]) -> Response:
    if page.submit is None:
        raise InvalidRequest(Reason.STEP_UNKNOWN, "this page has no form")
    sent = await _sent(site, request, at, page)
    if sent is None:
        return _to(site, at.web, at.page)
    if sent.errors:
        return await _not_accepted(site, sent, page, *sent.errors)
    if site.keeps:
        return await submit_once(request, sent, lambda: _submitted(site, request, sent, page), start=site.path(at.web))
    return (await _submitted(site, request, sent, page))[0]


async def _submitted(site: Site[At], request: Request, at: At, page: SitePage[At]) -> tuple[Response, bool]:
    """The answer to a form, and whether it was accepted."""
    assert page.submit is not None  # noqa: S101 - asked by `_post`
    try:
        changed = await page.submit(at)
    except Throttled as slowed:
        failed = replace(at, errors=((page.field, slowed.sentence),))
        return throttled_page(await _shown(site, request, failed, page), slowed), False
    except ConfirmationRequired as unconfirmed:
        return await _not_accepted(site, at, page, *unconfirmed.errors, checked=True), False
    except EditConflict as outdated:
        return await _not_accepted(site, at, page, ("", outdated.sentence), form={}), False
    except (InvalidInput, InvalidForm, Refused, Conflict) as refused:
        return await _not_accepted(site, at, page, *_errors(refused, page.field)), False
    if site.undo is not None:
        await site.undo.keep(at)
    if site.keeps:  # the others change no records that this process keeps
        at.provider.registry_cache.drop()
    if at.form.get(ENTERED):
        await own_sessions.forget_form(at.context, at.visit, at.page, at.form[ENTERED])
    if isinstance(changed, Response):
        return changed, True
    saved = changed if isinstance(changed, FormResult) else FormResult(changed, page.leads_to if changed else at.page)
    answer = _to(site, at.web, saved.page, saved.change)
    language = lookup((at.form.get("language", ""),), LANGUAGES)
    if language is not None:
        remember_language(answer, at.web, Pick(tag=language.tag))
    return answer, True


def _errors(refused: InvalidInput | InvalidForm | Refused | Conflict, field: str) -> tuple[FieldError, ...]:
    """The errors of a rejected form, with `field` as the page's."""
    if isinstance(refused, InvalidForm):
        return refused.errors
    if isinstance(refused, InvalidInput):
        return ((refused.field or field, refused.sentence),)
    if isinstance(refused, Conflict):
        return (("", CHANGED_MEANWHILE),)
    return (("", refusal_of(refused)),)


# --- repeated forms


async def submit_once(
    request: Request,
    at: PageContext[SelfServiceRequest],
    use: Callable[[], Awaitable[tuple[Response, bool]]],
    *,
    start: str,
) -> Response:
    """Use a form unless it was accepted before.

    `use` returns the answer, and whether the form was accepted. A repeated one waits for the first for up to three
    seconds, then redirects to the page to which that led; if the first takes longer, it gets a page that links to
    `start`. Raises what `use` raises, StoreUnavailable. Source: D15, D73
    """
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_LOOK_SECONDS)
        claim = await own_sessions.claim_form(at.context, at.visit, at.page, at.form)
        if isinstance(claim, FormClaim):
            return await _claimed(at, claim, use)
        if claim:
            return see_other(claim)
    return page_response(request, at.web.renderer, _still_running(start), status=409)


async def _claimed(
    at: PageContext[SelfServiceRequest], claim: FormClaim, use: Callable[[], Awaitable[tuple[Response, bool]]]
) -> Response:
    try:
        answer, accepted = await use()
    except Exception:  # a cancelled one may have changed something
        await own_sessions.release_form(at.context, claim)
        raise
    led_to = answer.headers.get("Location")
    if accepted and led_to:
        await own_sessions.save_form(at.context, at.visit, claim, led_to)
    else:
        await own_sessions.release_form(at.context, claim)
    return answer


def _still_running(start: str) -> Problem:
    return Problem(
        frame=BARE,
        heading=phrase("Your form is still being processed"),
        paragraphs=(
            phrase("It was sent twice, and the first one is not finished yet."),
            phrase("Wait a moment, then check whether it is done before you send it again."),
        ),
        back=Link(url=start, text=phrase("Go to the start page")),
    )
