"""Pages of links: a code, an opened link, invitations, forgotten passwords.

A link leads to the first page, whose script posts the code from the fragment; without the script, the person types it.
No code is ever part of a requested address, so no log contains one. Opening either page binds nothing and uses nothing
up. Of an invitation, the page offers two ways: to sign in with an account, and then to accept, or to set one up.
Nothing is accepted without a button, and only declining needs no sign-in. The link that undoes a change of e-mail works
without one, and only by its button, since programs that check e-mail look too. A person who forgot their password is
sent a link; the page's answer is the same for every user name.

Any stranger can send these forms, so nothing of one that is not accepted is stored here (decision 0013): it goes along
in a sealed cookie, which holds one form, of the page that it was sealed for, in the browser that sent it. Without
cookies the page is shown as it was before. Source: D34, D35, D46, D47, D60, D61, D73
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import msgspec

from corpid.flows import encrypted_values, rate_limits
from corpid.flows.account import account_sessions, enrolments, own_email, own_sessions
from corpid.flows.account.enrolments import (
    EnrolmentStopped,
    HelpLapsed,
    InvitationExpired,
    NotHere,
    NotOpened,
    OpenedLink,
    OpenElsewhere,
)
from corpid.flows.account.links import PATH, PURPOSES, chosen_steps
from corpid.flows.authentication import browsers, interaction_context, interactions, own_pages
from corpid.flows.authentication.own_pages import ACCOUNT_PATH
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.directory import acceptance
from corpid.flows.directory.acceptance import AlreadyBelongs
from corpid.flows.encrypted_values import StoredForm
from corpid.flows.namespaces import REJECTED_FORM
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.members import masked_address
from corpid.rules.limits import MINUTE, PASSWORD_LINK_SECONDS
from corpid.rules.networks import neighbourhood
from corpid.rules.oauth import parameters
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.account import enrolment
from corpid.web.account.enrolment import answered_page, show_ending, to_enrolment
from corpid.web.account.page_context import OPENED_PATH, AccountContext, account_path
from corpid.web.context import ENTERED, SIGN_IN, WebContext, interaction_path, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.own_pages import EXTEND
from corpid.web.pages.components import (
    BARE,
    BoldName,
    Cell,
    Disclosure,
    Facts,
    Field,
    Form,
    Frame,
    Link,
    Page,
    Paragraph,
    Part,
    QuietButtons,
    Subsection,
    View,
    ViewPart,
)
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import (
    add_cookie,
    enter,
    page_for_browser,
    page_response,
    require_own_form,
    see_other,
    throttled_page,
)
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import EmailChange
    from corpid.rules.directory.memberships import OpenInvitation
    from corpid.rules.directory.records import Entity

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


_NAME_CHARACTERS: Final = 400
_FORGOTTEN_FORM: Final = "forgotten password"
"""binding of its form, in addition to the browser (D35)"""
INVITATION_PATH: Final = f"{ACCOUNT_PATH}/invitation/"
"""of the page on which a person who is signed in answers"""
LONGER_PATH: Final = f"{ACCOUNT_PATH}/{EXTEND}/invitation/"
"""at which that page is given more time"""
_PAGE: Final = "invitation"
_OPENED_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""a MAC; anything else would come back in an address"""
_INVITATION_FIELDS: Final = frozenset({"form_token", "step", "decision"})


_SIGN_IN, _NEW, _DECLINE, _ACCEPT, _OTHER = "sign_in", "new", "decline", "accept", "other_account"


_COOKIE_CHARACTERS: Final = 3072
"""browsers keep 4096"""


def _opened_path(web: WebContext, opened_id: str) -> str:
    """The address path of an opened link."""
    return f"{web.base_path}{OPENED_PATH}{opened_id}"


async def serve_link(request: Request, web: WebContext) -> Response:
    """The page of every link, and the form that posts its code.

    Source: D34, D35, D47
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.SIGN_IN, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    known = await browsers.recognise(context, cookie(request, web.cookie_name))
    if request.method == "POST":
        return await _open_link(request, web, context, known)
    kept = read_form(request, web, context, known, _FORM) if ENTERED in request.query_params else None
    return await page_for_browser(request, web, context, known, partial(_show_code_form, web, context, kept=kept))


async def _open_link(request: Request, web: WebContext, context: RequestContext, browser: Browser | None) -> Response:
    if browser is None:
        return show_ending(request, web, OpenElsewhere())
    body = await form_bytes(request)
    form, digest = parameters.parse(body, _FIELDS), sha256(body).digest()
    bound_to, typed, here = browser.browser_id, form.get("code", "")[:_TYPED_CHARACTERS], web.base_path + PATH
    require_own_form(context, form, bound_to, _FORM)
    before = read_form(request, web, context, browser, _FORM)
    if before is not None and before.digest == digest:
        return to_parameter(here)
    try:
        opened_id = await enrolments.open_link(context, browser, typed, digest=digest)
    except Throttled as slowed:
        kept = StoredForm(fields={_TYPED: typed}, errors=(("code", slowed.sentence),))
        return throttled_page(
            page_response(request, web.renderer, _show_code_form(web, context, bound_to, kept=kept)), slowed
        )
    except ValueError:
        sentence = _INCOMPLETE
    except NotHere as gone:
        if form.get("followed") or isinstance(gone, InvitationExpired | HelpLapsed):
            return show_ending(request, web, gone)
        sentence = _OPENS_NOTHING
    else:
        return forget_form(request, web, see_other(_opened_path(web, opened_id)))
    # What opens nothing is no secret: it is kept under another name than that of the field.
    kept = StoredForm(fields={_TYPED: typed}, errors=(("code", sentence),), digest=digest)
    return to_entered(web, context, browser, _FORM, here, kept)


def _show_code_form(
    web: WebContext, context: RequestContext, bound_to: str, *, kept: StoredForm | None
) -> enrolment.TypeLinkCode:
    here = web.base_path + PATH
    entered = kept is not None and bool(kept.digest)
    return enrolment.TypeLinkCode(
        frame=Frame(
            form_token=interactions.form_token(context, bound_to, _FORM), here=with_parameter(here) if entered else here
        ),
        action=here,
        typed=kept.fields.get(_TYPED, "") if kept else "",
        errors=kept.errors if kept else (),
    )


async def serve_opened_link(request: Request, web: WebContext) -> Response:
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
            return await _show_invitation(request, web, context, browser, opened_id, found, found.invited.entity)
        if found.email_change is not None:
            return await _show_email_undo(request, web, context, browser, opened_id, found, found.email_change)
        if request.method == "POST":
            form = parameters.parse(await form_bytes(request), _FIELDS)
            require_own_form(context, form, browser.browser_id, opened_id)
            begun = await enrolments.begin(context, found.link, browser)
            return to_enrolment(web, begun.enrolment_id)
    except NotOpened:
        return see_other(web.base_path + PATH)
    except (NotHere, OpenElsewhere, EnrolmentStopped) as ending:
        here = _opened_path(web, opened_id)
        if isinstance(ending, NotHere) and await own_email.is_undone(context, browser, opened_id):
            if request.method == "POST":
                return see_other(here)
            view = undone_page(account_path(web, "password"), provider.policy.name)
            return page_response(request, web.renderer, view)
        return await _show_ending_here(request, web, context, browser, opened_id, ending, here=here)
    except StaleStep:
        return see_other(_opened_path(web, opened_id))
    token = interactions.form_token(context, browser.browser_id, opened_id)
    begin = enrolment.beginning_page(
        web, context, found.link, found.user, action=_opened_path(web, opened_id), form_token=token
    )
    return page_response(request, web.renderer, begin)


# --- what a link opens that is no enrolment: a former one, a change of e-mail to undo, an invitation


async def serve_former_link(request: Request, web: WebContext) -> Response:
    """The page of a link in the former format, which opens nothing.

    It names what to do. Nothing is looked up: every log on the way has seen the secret in the path. Source: D48
    """
    if not request.path_params["rest"]:
        return see_other(web.base_path + PATH)
    return page_response(request, web.renderer, former_link_page(web.base_path + PATH), status=410)


def former_link_page(page: str) -> Problem:
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


async def _show_email_undo(
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser,
    opened_id: str,
    found: OpenedLink,
    change: EmailChange,
) -> Response:
    """The page with its one button, and what the button does. Source: D35, D61"""
    here = _opened_path(web, opened_id)
    if request.method == "POST":
        form = parameters.parse(await form_bytes(request), {"form_token", "step"})
        require_own_form(context, form, browser.browser_id, opened_id)
        await own_email.undo(context, browser, opened_id, found)
        return see_other(here)
    purpose = PURPOSES[found.link.purpose]
    view = Page(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, opened_id), under_way=True),
        action=here,
        heading=purpose.heading,
        parts=(
            purpose.introduction(found.user.name, web.provider.policy.name),
            Facts(
                (
                    (phrase("User name"), found.user.user_name),
                    (phrase("Address now"), masked_address(change.old_email)),
                    (phrase("New address"), masked_address(change.new_email)),
                )
            ),
            phrase(
                "If the change is not yours, stop it. Your account is then signed out in every browser, and you choose a new password."
            ),
            Form(button=phrase("Stop the change")),
            Paragraph(phrase("If the change is yours, close this page. It then takes effect by itself."), look="hint"),
        ),
    )
    return page_response(request, web.renderer, view)


def undone_page(password: str, provider_name: str) -> Problem:
    """The page after it, with what to do next (D61).

    `password` is the address path of the page that changes it.
    """
    return Problem(
        frame=BARE,
        heading=PURPOSES["email"].done,
        paragraphs=(
            phrase("The change was stopped, and your account was signed out in every browser."),
            phrase(
                "Somebody else had access to your account. Choose a new password now, then check your passkeys, your "
                "authenticator app and your recovery codes."
            ),
            phrase(
                "If you cannot sign in any more, tell your organisation's {name} administrator now.", name=provider_name
            ),
        ),
        back=Link(url=password, text=phrase("Choose a new password")),
    )


async def _show_invitation(
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser,
    opened_id: str,
    found: OpenedLink,
    entity: Entity,
) -> Response:
    """The page of an invitation's link, and its forms.

    Raises NotOpened, NotHere, OpenElsewhere, StaleStep. Source: D34, D60
    """
    if request.method == "POST":
        form = parameters.parse(await form_bytes(request), _INVITATION_FIELDS)
        require_own_form(context, form, browser.browser_id, opened_id)
        decision = form.get("decision", "")
        if decision == _NEW:
            begun = await enrolments.begin(context, found.link, browser, user_id=web.new_user_id())
            return to_enrolment(web, begun.enrolment_id)
        if decision == _DECLINE:
            await acceptance.decline_invitation(context, browser, opened_id)
        elif decision == _SIGN_IN:
            return see_other(f"{account_path(web)}/{_PAGE}/{opened_id}")
        return see_other(_opened_path(web, opened_id))
    purpose = PURPOSES[found.link.purpose]
    shorter, number = chosen_steps(purpose.steps, passkey_first=True), len(purpose.steps)
    steps = phrase("This takes {count} steps.", count=number)
    if context.provider.policy.takes_passkeys and shorter != purpose.steps:
        steps = phrase("This takes 2 steps with a passkey, or {count} with a password.", count=number)
    provider_name = web.provider.policy.name
    view = Page(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, opened_id), under_way=True),
        action=_opened_path(web, opened_id),
        heading=phrase("{entity} invites you", entity=entity.name),
        parts=(
            _registration(entity),
            purpose.introduction(found.user.name, provider_name),
            _what_joining_means(entity),
            Subsection(
                heading=phrase("I have an account with {provider_name}", provider_name=provider_name),
                parts=(
                    phrase("Sign in, then accept. How you sign in does not change."),
                    Form(button=phrase("Sign in"), decision=_SIGN_IN),
                ),
            ),
            Subsection(
                heading=phrase("I am new"),
                parts=(
                    Cell(values=(steps, phrase("You accept with the last step."))),
                    Form(button=phrase("Set up your sign-in"), decision=_NEW, secondary=True),
                ),
            ),
            Disclosure(
                summary=phrase("I do not want this"),
                look="help",
                parts=(
                    phrase(
                        "You can close this page. If you decline, the link stops working, and {entity} sees that the "
                        "invitation is gone.",
                        entity=entity.name,
                    ),
                    QuietButtons(buttons=((_DECLINE, phrase("Decline")),)),
                ),
            ),
        ),
    )
    return page_response(request, web.renderer, view)


async def _serve_invitation(request: Request, web: WebContext, *, longer: bool) -> Response:
    """The page to accept or decline; `longer` gives it more time.

    Source: D15, D30, D34, D35, D60, WCAG 2.2.1
    """
    provider = web.provider
    context = await page_request(request, provider)
    opened_id = str(request.path_params["rest"])
    if not _OPENED_ID.fullmatch(opened_id):
        return await not_found(request, web)
    await provider.registry_cache.refuse_maintenance(context.now)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    visit = await account_sessions.load_account_request(context, browser)
    if visit is None:
        return await _enter(request, web, context, browser, opened_id)
    account = AccountContext(web=web, context=context, visit=visit, page=f"{_PAGE}/{opened_id}")
    try:
        if request.method == "POST":
            return await _answer(request, account, opened_id, longer=longer)
        _, invited = await acceptance.find_invitation(context, browser, opened_id)
    except NotOpened:
        return see_other(web.base_path + PATH)
    except NotHere as ending:
        return await _show_ending_here(
            request, web, context, browser, opened_id, ending, here=account_path(web, account.page)
        )
    except (AlreadyBelongs, StaleStep, InvalidInput):
        return see_other(account_path(web, account.page))
    return page_response(request, web.renderer, await _show_acceptance(account, opened_id, invited))


serve_invitation: Final = partial(_serve_invitation, longer=False)
extend_invitation: Final = partial(_serve_invitation, longer=True)


async def _answer(request: Request, account: AccountContext, opened_id: str, *, longer: bool) -> Response:
    """Carry out the decision, and show the page again.

    A form that was shown for another sign-in decides nothing. Raises NotOpened, NotHere, AlreadyBelongs, StaleStep,
    InvalidInput.
    """
    context, visit = account.context, account.visit
    form = parameters.parse(await form_bytes(request), _INVITATION_FIELDS)
    again = see_other(account.path(account.page))
    if not interactions.is_form_token(context, form.get("form_token", ""), visit.browser.browser_id, visit.form):
        return again
    if longer:
        await account_sessions.extend(context, visit)
        return again
    decision = form.get("decision")
    if decision == _OTHER:
        return await _enter(request, account.web, context, visit.browser, opened_id)
    if decision == _ACCEPT:
        await acceptance.accept_invitation(context, visit, opened_id)
    elif decision == _DECLINE:
        await acceptance.decline_invitation(context, visit.browser, opened_id)
    return again


async def _enter(
    request: Request, web: WebContext, context: RequestContext, browser: Browser | None, opened_id: str
) -> Response:
    await web.provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now, context.counts)
    entered = await own_sessions.enter(context, browser, page=f"{_PAGE}/{opened_id}")
    return enter(request, web, entered)


async def _show_acceptance(account: AccountContext, opened_id: str, invited: OpenInvitation) -> View:
    user, entity = account.visit.user, invited.entity
    other, decline = (_OTHER, phrase("Use another account")), (_DECLINE, phrase("Decline"))
    if await acceptance.is_member(account.context, user.user_id, entity.entity_id):
        nothing = phrase("This account already belongs to {entity}, so there is nothing to accept.", entity=entity.name)
        asked: tuple[Part, ...] = (nothing, Form(button=other[1], decision=_OTHER, secondary=True, more=(decline,)))
    else:
        accept = Form(button=phrase("Accept"), decision=_ACCEPT, other=decline, more=(other,))
        asked = _what_joining_means(entity), accept
    return account.build_page(
        phrase("Act for {entity}?", entity=entity.name),
        _registration(entity),
        phrase("You are signed in as {name} ({user_name}).", name=BoldName(user.name), user_name=user.user_name),
        *asked,
        up=Link(url=_opened_path(account.web, opened_id), text=phrase("The invitation")),
        back=None,
        action=account.path(account.page),
    )


def _registration(entity: Entity) -> Paragraph:
    return Paragraph(Cell(values=(NUMBERS[entity.type], entity.registration_number)), look="hint")


def _what_joining_means(entity: Entity) -> Phrase:
    return phrase(
        "If you accept, {entity} decides what you may do for it. It sees your name, user name and e-mail address. Other "
        "organisations for which it lets you act see your name and user name. It cannot change how you sign in.",
        entity=entity.name,
    )


async def _show_ending_here(
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser | None,
    opened_id: str,
    ending: NotHere | OpenElsewhere | EnrolmentStopped,
    *,
    here: str,
) -> Response:
    """The page of an ended link: the given answer, if any.

    `here` is its address, to which a form is redirected for the answer (D73).
    """
    browser_id = browser.browser_id if browser else ""
    done = await acceptance.find_answer(context, browser_id, opened_id) if isinstance(ending, NotHere) else None
    if done is None:
        return show_ending(request, web, ending)
    if request.method == "POST":
        return see_other(here)
    view = answered_page(done, base_path=web.base_path, has_portal=web.access["manage"].enabled)
    return page_response(request, web.renderer, view)


# --- a forgotten password


async def serve_forgotten_password(request: Request, web: WebContext) -> Response:
    """Ask for the user name.

    An e-mail follows some seconds after the answer, whose request does the same for everybody (D44, D47).
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.ACCOUNT, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    known = await browsers.recognise(context, cookie(request, web.cookie_name))
    pending = await _find_pending(request, web, context, known)
    here = pending.here if pending else web.base_path + own_pages.RECOVERY_PATH
    if not provider.mail.works:
        if request.method == "POST":
            return see_other(here)
        return page_response(request, web.renderer, _without_mail(web, pending))
    if request.method == "POST":
        return await _send_link(request, web, context, known, pending, here)
    if _SENT in request.query_params and _read_kept(request, web, context, known, parameter=_SENT) is not None:
        return page_response(request, web.renderer, _show_sent(web, pending, with_parameter(here, _SENT)))
    kept = _read_kept(request, web, context, known) if ENTERED in request.query_params else None
    asked = partial(_forgotten_question, context, here=here, kept=kept, pending=pending)
    return await page_for_browser(request, web, context, known, asked)


def _read_kept(
    request: Request, web: WebContext, context: RequestContext, known: Browser | None, *, parameter: str = ENTERED
) -> StoredForm | None:
    return read_form(request, web, context, known, _FORGOTTEN_FORM, parameter=parameter)


async def _send_link(
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
    to = partial(to_entered, web, context, known, _FORGOTTEN_FORM, here)
    if not user_name:
        return to(StoredForm(errors=(("user_name", phrase("Enter your user name.")),), digest=digest))
    before = _read_kept(request, web, context, known, parameter=_SENT)
    if before is not None and before.digest == digest:
        return to_parameter(here, _SENT)
    try:
        await enrolments.ask(context)
    except Throttled as slowed:
        kept = StoredForm(errors=(("user_name", slowed.sentence),))
        view = _forgotten_question(context, known.browser_id, here=here, kept=kept, pending=pending)
        return throttled_page(page_response(request, web.renderer, view), slowed)
    email = partial(enrolments.answer, context, user_name, browser_key=known.browser_key, digest=digest)
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


async def _find_pending(
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
    context: RequestContext, browser_id: str, *, here: str, kept: StoredForm | None, pending: _Pending | None
) -> Page:
    frame = msgspec.structs.replace(
        pending.frame if pending else Frame(),
        form_token=interactions.form_token(context, browser_id, _FORGOTTEN_FORM),
        up=pending.back if pending else None,
    )
    if kept is not None and kept.digest:
        frame = msgspec.structs.replace(frame, here=with_parameter(here))
    name = context.provider.policy.name
    user_name = Field(name="user_name", label=phrase("User name"), kind="user name")
    return Page(
        frame=frame,
        heading=phrase("Choose a new password"),
        action=here,
        errors=kept.errors if kept else (),
        parts=(
            phrase("We will send a link to your account's e-mail address. You also need a code or your passkey."),
            Form(parts=(user_name,), button=phrase("Send the link")),
            Disclosure(
                summary=phrase("I cannot get a code or use my passkey"),
                look="help",
                parts=(
                    phrase(
                        "Sign in with a recovery code: enter your password, then choose to use a recovery code. If you "
                        "have none left, ask your organisation's {provider_name} administrator for a link.",
                        provider_name=name,
                    ),
                ),
            ),
            Disclosure(
                summary=phrase("I cannot sign in at all"),
                look="help",
                parts=(
                    phrase(
                        "Ask your organisation's {provider_name} administrator. They can unlock your account, or send a "
                        "link to its e-mail address: for a new password if you still have a passkey, an authenticator "
                        "app or a recovery code, for a new second step if you still know your password.",
                        provider_name=name,
                    ),
                    phrase(
                        "If you have lost both, if you are an owner of your organisation, or if nobody there can help, "
                        "ask the operator of {provider_name}.",
                        provider_name=name,
                    ),
                ),
            ),
        ),
    )


def _show_sent(web: WebContext, pending: _Pending | None, here: str) -> Problem:
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


# --- forms in a sealed cookie


def to_entered(
    web: WebContext,
    context: RequestContext,
    browser: Browser,
    page: str,
    where: str,
    kept: StoredForm,
    *,
    parameter: str = ENTERED,
) -> Response:
    """A redirect to a page that shows a form again.

    The form goes along in a cookie; of one that is too long only the errors do. `page` names the page, `where` is its
    address. Source: D73
    """
    answer = to_parameter(where, parameter)
    place = _form_place(browser, page, parameter)
    sealed = encrypted_values.encrypt_form(context, place, kept)
    if len(sealed) > _COOKIE_CHARACTERS:
        sealed = encrypted_values.encrypt_form(context, place, replace(kept, fields={}))
    add_cookie(answer, web, web.form_cookie_name, sealed, seconds=int(REJECTED_FORM.seconds))
    return answer


def to_parameter(where: str, parameter: str = ENTERED) -> Response:
    """A redirect to a page, with a parameter of its own."""
    return see_other(with_parameter(where, parameter))


def read_form(
    request: Request,
    web: WebContext,
    context: RequestContext,
    browser: Browser | None,
    page: str,
    *,
    parameter: str = ENTERED,
) -> StoredForm | None:
    """The form that this browser's cookie holds for a page.

    None without one. Looking spends nothing. Source: D73
    """
    sealed = cookie(request, web.form_cookie_name)
    if browser is None or not sealed:
        return None
    return encrypted_values.decrypt_form(context, _form_place(browser, page, parameter), sealed)


def forget_form(request: Request, web: WebContext, answer: Response) -> Response:
    """The answer to an accepted form, after which the cookie is gone."""
    if cookie(request, web.form_cookie_name):
        add_cookie(answer, web, web.form_cookie_name, "", seconds=0)
    return answer


def _form_place(browser: Browser, page: str, parameter: str) -> tuple[str, ...]:
    return ("cookie", browser.browser_id, page, parameter)
