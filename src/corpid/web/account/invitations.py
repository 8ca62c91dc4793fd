"""Pages of an entity's invitation: who invites, and accepting or declining.

The page of the opened link offers two ways: to sign in with an account, and then to accept, or to set one up. Nothing
is accepted without a button, and only declining needs no sign-in. Source: D34, D35, D60
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows import rate_limits
from corpid.flows.account import account_sessions, enrolments, own_sessions
from corpid.flows.account.enrolments import NotHere, NotOpened, OpenElsewhere
from corpid.flows.account.links import PATH as LINK_PATH
from corpid.flows.account.links import PURPOSES, chosen_steps
from corpid.flows.authentication import browsers, interactions
from corpid.flows.authentication.own_pages import ACCOUNT_PATH
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import acceptance
from corpid.flows.directory.acceptance import AlreadyBelongs
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.oauth import parameters
from corpid.texts import phrase
from corpid.web.account.enrolment_endpoints import ended, to_enrolment
from corpid.web.account.enrolment_pages import answered_page
from corpid.web.account.page_context import AccountContext, account_path, frame
from corpid.web.account.views import Accept, Invitation
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.own_pages import EXTEND
from corpid.web.pages.layout import Frame, Link
from corpid.web.pages.plain import not_found
from corpid.web.pages.responses import enter, page_response, require_own_form, see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.enrolments import EnrolmentStopped, OpenedLink
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.invitations import OpenInvitation
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

OPENED_PATH: Final = "/link/"
PATH: Final = f"{ACCOUNT_PATH}/invitation/"
"""of the page on which a person who is signed in answers"""
LONGER_PATH: Final = f"{ACCOUNT_PATH}/{EXTEND}/invitation/"
"""at which that page is given more time"""
_PAGE: Final = "invitation"
_OPENED_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""a MAC; anything else would come back in an address"""
_FIELDS: Final = frozenset({"form_token", "step", "decision"})
_SIGN_IN, _NEW, _DECLINE, _ACCEPT, _OTHER = "sign_in", "new", "decline", "accept", "other_account"


async def opened(
    request: Request, web: WebContext, context: RequestContext, browser: Browser, opened_id: str, found: OpenedLink
) -> Response:
    """The page of an invitation's link, and its forms.

    Raises NotOpened, NotHere, OpenElsewhere, StaleStep. Source: D34, D60
    """
    invited, account = _invited(found), f"{account_path(web)}/{_PAGE}/{opened_id}"
    if request.method == "POST":
        form = parameters.parse(await form_bytes(request), _FIELDS)
        require_own_form(context, form, browser.browser_id, opened_id)
        decision = form.get("decision", "")
        if decision == _NEW:
            begun = await enrolments.begin(context, found.link, browser, user_id=web.new_user_id())
            return to_enrolment(web, begun.enrolment_id)
        if decision == _DECLINE:
            await acceptance.decline_invitation(context, browser, opened_id)
        elif decision == _SIGN_IN:
            return see_other(account)
        return see_other(_link_path(web, opened_id))
    purpose, entity = PURPOSES[found.link.purpose], invited.entity
    shorter = chosen_steps(purpose.steps, passkey_first=True)
    view = Invitation(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, opened_id), under_way=True),
        action=_link_path(web, opened_id),
        heading=phrase("{entity} invites you", entity=entity.name),
        introduction=purpose.introduction(found.user.name, web.provider.policy.name),
        entity=entity.name,
        number_name=NUMBERS[entity.type],
        number=entity.registration_number,
        steps=len(purpose.steps),
        fewer=context.provider.policy.takes_passkeys and shorter != purpose.steps,
    )
    return page_response(request, web.renderer, view)


def _invited(found: OpenedLink) -> OpenInvitation:
    if found.invited is None:
        raise NotHere
    return found.invited


async def account_invitation(request: Request, web: WebContext) -> Response:
    """The page to accept or decline, for a signed-in person.

    Source: D30, D34, D35, D60
    """
    return await _invitation(request, web, longer=False)


async def longer_invitation(request: Request, web: WebContext) -> Response:
    """More time for that page. Source: D15, WCAG 2.2.1"""
    return await _invitation(request, web, longer=True)


async def _invitation(request: Request, web: WebContext, *, longer: bool) -> Response:
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
        return see_other(web.base_path + LINK_PATH)
    except NotHere as ending:
        return await ended_here(request, web, context, browser, opened_id, ending, here=account_path(web, account.page))
    except (AlreadyBelongs, StaleStep, InvalidInput):
        return see_other(account_path(web, account.page))
    return page_response(request, web.renderer, await _question(account, opened_id, invited))


async def _answer(request: Request, account: AccountContext, opened_id: str, *, longer: bool) -> Response:
    """Carry out the decision, and show the page again.

    A form that was shown for another sign-in decides nothing. Raises NotOpened, NotHere, AlreadyBelongs, StaleStep,
    InvalidInput.
    """
    context, visit = account.context, account.visit
    form = parameters.parse(await form_bytes(request), _FIELDS)
    again = see_other(account_path(account.web, account.page))
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


async def _question(account: AccountContext, opened_id: str, invited: OpenInvitation) -> View:
    user, entity = account.visit.user, invited.entity
    return Accept(
        frame=frame(account, up=Link(url=_link_path(account.web, opened_id), text=phrase("The invitation"))),
        action=account_path(account.web, account.page),
        heading=phrase("Act for {entity}?", entity=entity.name),
        entity=entity.name,
        number_name=NUMBERS[entity.type],
        number=entity.registration_number,
        name=user.name,
        user_name=user.user_name,
        belongs=await acceptance.is_member(account.context, user.user_id, entity.entity_id),
    )


def _link_path(web: WebContext, opened_id: str) -> str:
    return f"{web.base_path}{OPENED_PATH}{opened_id}"


async def ended_here(
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
        return ended(request, web, ending)
    if request.method == "POST":
        return see_other(here)
    view = answered_page(done, base_path=web.base_path, has_portal=web.access["manage"].enabled)
    return page_response(request, web.renderer, view)
