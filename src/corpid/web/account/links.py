"""Pages of links: entering a code, the opened link, a forgotten password.

A link leads to the first page, whose script posts the code from the fragment; without the script, the person types it.
No code is ever part of a requested address, so no log contains one. Opening either page binds nothing and uses nothing
up. A person who forgot their password is sent a link; the page's answer is the same for every user name.
Source: D34, D35, D46, D47
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import msgspec

from corpid.flows import rate_limits
from corpid.flows.account import enrolments, own_email, recovery
from corpid.flows.account.enrolments import EnrolmentStopped, InvitationExpired, NotHere, NotOpened, OpenElsewhere
from corpid.flows.account.links import PATH
from corpid.flows.authentication import browsers, interaction_context, interactions, own_pages
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import MINUTE, PASSWORD_LINK_SECONDS
from corpid.rules.networks import neighbourhood
from corpid.rules.oauth import parameters
from corpid.texts import phrase
from corpid.web.account import cookie_forms, email_pages, enrolment_pages, invitations
from corpid.web.account.enrolment_endpoints import ended, to_enrolment
from corpid.web.account.invitations import OPENED_PATH
from corpid.web.account.page_context import account_path
from corpid.web.context import ENTERED, SIGN_IN, interaction_path, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.layout import Frame, Link, ViewPart
from corpid.web.pages.responses import page_for_browser, page_response, require_own_form, see_other, throttled_page
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.web.context import WebContext

_FORM: Final = "link code"
"""what its form is bound to in addition to the browser (D35)"""
_FIELDS: Final = frozenset({"form_token", "step", "code", "followed"})
_TYPED: Final = "typed"
"""the name of a link's code as it is kept"""
_SENT: Final = "sent"
"""the parameter of the page after asking for a new password"""
_TYPED_CHARACTERS: Final = 500
"""of what was typed, which the page shows again"""
_INCOMPLETE: Final = phrase("Enter all 20 letters and digits of the code.")
_OPENS_NOTHING: Final = phrase(
    "This code does not work. Check each letter and digit. A code works once, for a limited time."
)


async def link(request: Request, web: WebContext) -> Response:
    """The page of every link, and the form that posts its code.

    Source: D34, D35, D47
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.SIGN_IN, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    known = await browsers.recognise(context, cookie(request, web.cookie_name))
    if request.method == "POST":
        return await _open(request, web, context, known)
    kept = cookie_forms.read_form(request, web, context, known, _FORM) if ENTERED in request.query_params else None
    return await page_for_browser(request, web, context, known, partial(_question, web, context, kept=kept))


async def _open(request: Request, web: WebContext, context: RequestContext, browser: Browser | None) -> Response:
    if browser is None:
        return ended(request, web, OpenElsewhere())
    body = await form_bytes(request)
    form, digest = parameters.parse(body, _FIELDS), sha256(body).digest()
    bound_to, typed, here = browser.browser_id, form.get("code", "")[:_TYPED_CHARACTERS], web.base_path + PATH
    require_own_form(context, form, bound_to, _FORM)
    before = cookie_forms.read_form(request, web, context, browser, _FORM)
    if before is not None and before.digest == digest:
        return cookie_forms.to_parameter(here)
    try:
        opened_id = await enrolments.open_link(context, browser, typed, digest=digest)
    except Throttled as slowed:
        kept = StoredForm(fields={_TYPED: typed}, errors=(("code", slowed.sentence),))
        return throttled_page(
            page_response(request, web.renderer, _question(web, context, bound_to, kept=kept)), slowed
        )
    except ValueError:
        sentence = _INCOMPLETE
    except NotHere as gone:
        if form.get("followed") or isinstance(gone, InvitationExpired):
            return ended(request, web, gone)
        sentence = _OPENS_NOTHING
    else:
        return cookie_forms.forget(request, web, see_other(f"{web.base_path}{OPENED_PATH}{opened_id}"))
    # What opens nothing is no secret: it is kept under another name than that of the field.
    kept = StoredForm(fields={_TYPED: typed}, errors=(("code", sentence),), digest=digest)
    return cookie_forms.to_entered(web, context, browser, _FORM, here, kept)


def _question(
    web: WebContext, context: RequestContext, bound_to: str, *, kept: StoredForm | None
) -> enrolment_pages.TypeLinkCode:
    here = web.base_path + PATH
    entered = kept is not None and bool(kept.digest)
    return enrolment_pages.TypeLinkCode(
        frame=Frame(
            form_token=interactions.form_token(context, bound_to, _FORM),
            here=with_parameter(here) if entered else here,
        ),
        action=here,
        typed=kept.fields.get(_TYPED, "") if kept else "",
        errors=kept.errors if kept else (),
    )


async def opened(request: Request, web: WebContext) -> Response:
    """The page of an opened link, with a button to begin.

    Source: D34, D46
    """
    provider = web.provider
    context = await page_request(request, provider)
    opened_id = str(request.path_params["rest"])
    await provider.rate_limits.address(rate_limits.SIGN_IN, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    try:
        if browser is None:
            raise NotOpened
        found = await enrolments.find_opened_link(context, browser, opened_id)
        if found.invited is not None:
            return await invitations.opened(request, web, context, browser, opened_id, found)
        if found.email_change is not None:
            return await email_pages.opened(request, web, context, browser, opened_id, found)
        if request.method == "POST":
            form = parameters.parse(await form_bytes(request), _FIELDS)
            require_own_form(context, form, browser.browser_id, opened_id)
            begun = await enrolments.begin(context, found.link, browser)
            return to_enrolment(web, begun.enrolment_id)
    except NotOpened:
        return see_other(web.base_path + PATH)
    except (NotHere, OpenElsewhere, EnrolmentStopped) as ending:
        here = f"{web.base_path}{OPENED_PATH}{opened_id}"
        if isinstance(ending, NotHere) and await own_email.is_undone(context, browser, opened_id):
            if request.method == "POST":
                return see_other(here)
            return page_response(
                request, web.renderer, email_pages.undone(account_path(web, "password"), provider.policy.name)
            )
        return await invitations.ended_here(request, web, context, browser, opened_id, ending, here=here)
    except StaleStep:
        return see_other(f"{web.base_path}{OPENED_PATH}{opened_id}")
    action = f"{web.base_path}{OPENED_PATH}{opened_id}"
    token = interactions.form_token(context, browser.browser_id, opened_id)
    view = enrolment_pages.begin(web, context, found.link, found.user, action=action, form_token=token)
    return page_response(request, web.renderer, view)


async def link_of_before(request: Request, web: WebContext) -> Response:
    """The page of a link in the former format, which opens nothing.

    It names what to do. Nothing is looked up: every log on the way has seen the secret in the path. Source: D48
    """
    if not request.path_params["rest"]:
        return see_other(web.base_path + PATH)
    return page_response(request, web.renderer, link_of_before_view(web.base_path + PATH), status=410)


def link_of_before_view(page: str) -> Problem:
    """The view that asks for a new link.

    `page` is the path of the page that takes codes (D48).
    """
    return Problem(
        frame=Frame(),
        heading=phrase("Ask for a new link"),
        paragraphs=(
            phrase("Links of this kind no longer work, because others could have read them. Nothing has changed."),
            phrase(
                "Ask the person who sent you this link for a new one. If you were given a code with it, you can enter "
                "that code."
            ),
        ),
        back=Link(url=page, text=phrase("Enter a code")),
    )


_NAME_CHARACTERS: Final = 400
_FORGOTTEN_FORM: Final = "forgotten password"
"""binding of its form, in addition to the browser (D35)"""


async def forgotten_password(request: Request, web: WebContext) -> Response:
    """Ask for the user name.

    An e-mail follows some seconds after the answer, whose request does the same for everybody (D44, D47).
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    known = await browsers.recognise(context, cookie(request, web.cookie_name))
    pending = await _pending(request, web, context, known)
    here = pending.here if pending else web.base_path + own_pages.RECOVERY_PATH
    if not provider.mail.works:
        if request.method == "POST":
            return see_other(here)
        return page_response(request, web.renderer, _without_mail(web, pending))
    if request.method == "POST":
        return await _ask(request, web, context, known, pending, here)
    if _SENT in request.query_params and _kept(request, web, context, known, parameter=_SENT) is not None:
        return page_response(request, web.renderer, _asked(web, pending, with_parameter(here, _SENT)))
    kept = _kept(request, web, context, known) if ENTERED in request.query_params else None
    asked = partial(_forgotten_question, context, here=here, kept=kept, pending=pending)
    return await page_for_browser(request, web, context, known, asked)


def _kept(
    request: Request, web: WebContext, context: RequestContext, known: Browser | None, *, parameter: str = ENTERED
) -> StoredForm | None:
    return cookie_forms.read_form(request, web, context, known, _FORGOTTEN_FORM, parameter=parameter)


async def _ask(
    request: Request,
    web: WebContext,
    context: RequestContext,
    known: Browser | None,
    pending: _Pending | None,
    here: str,
) -> Response:
    """Take the user name; the same bytes once more ask for nothing (D73)."""
    provider, body = web.provider, await form_bytes(request)
    form, digest = parameters.parse(body, {"user_name", "form_token", "step"}), sha256(body).digest()
    require_own_form(context, form, known.browser_id if known else "", _FORGOTTEN_FORM)
    if known is None:
        return see_other(here)
    user_name = form.get("user_name", "").strip()[:_NAME_CHARACTERS]
    to = partial(cookie_forms.to_entered, web, context, known, _FORGOTTEN_FORM, here)
    if not user_name:
        return to(StoredForm(errors=(("user_name", phrase("Enter your user name.")),), digest=digest))
    before = _kept(request, web, context, known, parameter=_SENT)
    if before is not None and before.digest == digest:
        return cookie_forms.to_parameter(here, _SENT)
    try:
        await recovery.ask(context)
    except Throttled as slowed:
        kept = StoredForm(errors=(("user_name", slowed.sentence),))
        view = _forgotten_question(context, known.browser_id, here=here, kept=kept, pending=pending)
        return throttled_page(page_response(request, web.renderer, view), slowed)
    email = partial(recovery.answer, context, user_name, browser_key=known.browser_key, digest=digest)
    provider.background_tasks.later(email, place=neighbourhood(context.address))
    return to(StoredForm(digest=digest), parameter=_SENT)


class _Pending(ViewPart, frozen=True, kw_only=True):
    """The sign-in to which the page leads back."""

    back: Link
    here: str
    ui_locales: tuple[str, ...]

    @property
    def frame(self) -> Frame:
        """The frame of a page, with the languages of the sign-in."""
        return Frame(here=self.here, ui_locales=self.ui_locales)


async def _pending(
    request: Request, web: WebContext, context: RequestContext, known: Browser | None
) -> _Pending | None:
    """The pending sign-in that the query names, of this browser.

    None if there is none any more.
    """
    named = parameters.lone(request.scope["query_string"], SIGN_IN, longest=_NAME_CHARACTERS) or ""
    found = await interaction_context.load_for_return(context, named, known)
    client = await own_pages.requesting_client(context, found.request.client_id) if found else None
    if found is None or client is None:
        return None
    return _Pending(
        back=Link(
            url=interaction_path(web, found.interaction_id),
            text=phrase("Back to signing in to {name}", name=client.name),
        ),
        here=f"{web.base_path}{own_pages.RECOVERY_PATH}?{urlencode({SIGN_IN: found.interaction_id})}",
        ui_locales=found.request.ui_locales,
    )


def _forgotten_question(
    context: RequestContext,
    browser_id: str,
    *,
    here: str,
    kept: StoredForm | None,
    pending: _Pending | None,
) -> enrolment_pages.ForgottenPassword:
    frame = msgspec.structs.replace(
        pending.frame if pending else Frame(),
        form_token=interactions.form_token(context, browser_id, _FORGOTTEN_FORM),
        up=pending.back if pending else None,
    )
    if kept is not None and kept.digest:
        frame = msgspec.structs.replace(frame, here=with_parameter(here))
    return enrolment_pages.ForgottenPassword(frame=frame, action=here, errors=kept.errors if kept else ())


def _asked(web: WebContext, pending: _Pending | None, here: str) -> Problem:
    return Problem(
        frame=msgspec.structs.replace(pending.frame if pending else Frame(), here=here),
        heading=phrase("Check your e-mail"),
        paragraphs=(
            phrase(
                "If the account exists and we know its e-mail address, we have sent an e-mail that says what "
                "to do next. Its link works for {minutes} minutes, on any device.",
                minutes=PASSWORD_LINK_SECONDS // MINUTE,
            ),
            phrase("Leave this page open. When you have your new password, use the button to continue signing in.")
            if pending
            else phrase("When you have your new password, go to the service that you want to use and sign in."),
            phrase(
                "If nothing arrives, check your spam folder, then ask your organisation's {name} administrator.",
                name=web.provider.policy.name,
            ),
        ),
        back=pending.back if pending else None,
    )


def _without_mail(web: WebContext, pending: _Pending | None) -> Problem:
    return Problem(
        frame=pending.frame if pending else Frame(),
        heading=phrase("Ask the operator of {name}", name=web.provider.policy.name),
        paragraphs=(
            phrase("No e-mails are sent, so only the operator can give you a link to choose a new password."),
            phrase(
                "The operator can also unlock your account, if you only have to wait after wrong passwords or codes."
            ),
        ),
        back=pending.back if pending else None,
    )
