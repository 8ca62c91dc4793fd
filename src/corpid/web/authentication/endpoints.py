"""Endpoints of the sign-in: a page, a POST for each step, two ways out.

A POST that claims its step moves on with 303; who comes too late, or with an old cookie or form, is sent
to the page that is current (D15, D34, D35).
"""

from __future__ import annotations

from asyncio import sleep
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication import account_client, browsers, completion, session_start, sign_in, visits
from corpid.flows.authentication.completion import AlreadyCompleted, OtherBrowser
from corpid.flows.authentication.entity_selection import QUERY_CHARACTERS
from corpid.flows.authentication.interactions import StaleStep
from corpid.flows.authentication.second_factors import Stopped
from corpid.flows.authentication.sign_in import Rejected
from corpid.flows.authentication.throttle import Throttled
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.web.authentication import landing, pages, terminal_pages
from corpid.web.authentication.page_context import final_frame, step_name
from corpid.web.authentication.pages import Again
from corpid.web.authentication.steps import FIELDS, STEPS
from corpid.web.authentication.terminal_pages import Ending
from corpid.web.context import ARRIVE, interaction_path
from corpid.web.http.requests import arrival_cookie_name, caller, cookie, form_bytes
from corpid.web.pages import errors
from corpid.web.pages.layout import Frame
from corpid.web.pages.responses import (
    add_cookie,
    leave,
    page_response,
    require_own_form,
    see_other,
    set_cookie,
    throttled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.interactions import Interaction
    from corpid.flows.authentication.sign_in import Visit
    from corpid.flows.caller import Caller
    from corpid.web.authentication.steps import Step
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View


_WAITS: Final = 20
_WAIT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """A form of a page that this browser was shown, for the step that is current."""

    step: Step
    form: Mapping[str, str]
    visit: Visit


def _to(context: WebContext, interaction_id: str, action: str = "") -> Response:
    return see_other(interaction_path(context, interaction_id, action))


async def interaction(request: Request, context: WebContext) -> Response:
    """Every address below /sign-in/{interaction}: the page, its steps, and the ways to leave (D15)."""
    interaction_id, _, action = str(request.path_params["rest"]).partition("/")
    state = request.scope["state"]
    try:
        answer = await _answer(request, context, interaction_id, action)
    except InvalidRequest as error:
        answer = errors.as_page(request, error, context.renderer)
    except Exception as error:  # noqa: BLE001 - rendered here, since the cookie goes with it
        # The address of the page itself leads back to the sign-in from each of its actions.
        answer = errors.as_page(request, error, context.renderer, landing.met("", Frame(under_way=True)))
    if "landed" in state:
        add_cookie(answer, context.provider, arrival_cookie_name(context.provider), "", seconds=0)
    if "cookie" in state:
        # Also where something failed after the sign-in: the old value is dead.
        set_cookie(answer, context.provider, state["cookie"])
    return answer


async def _answer(request: Request, context: WebContext, interaction_id: str, action: str) -> Response:
    provider, sent = context.provider, cookie(request, context.provider)
    who = caller(request, provider)
    refused = await landing.land(request, context, who, interaction_id, action)
    if refused is not None:
        return refused
    if action == ARRIVE and request.method == "POST":
        return _to(context, interaction_id)
    try:
        visit = await visits.visit(provider, who, interaction_id, sent)
        return await _at(request, context, who, visit, action)
    except visits.NoInteraction:
        if sent is None:
            return page_response(request, context.renderer, terminal_pages.without_cookie(), status=403)
        return page_response(request, context.renderer, terminal_pages.unknown(), status=404)
    except visits.ForeignBrowser as stranger:
        await provider.registry_cache.refuse_maintenance(who.now)
        if request.method == "POST":
            return await _old_form(request, context, who, interaction_id, sent)
        client = await account_client.requesting_client(provider, stranger.interaction.request.client_id, now=who.now)
        return page_response(
            request, context.renderer, terminal_pages.other_browser(client, stranger.interaction), status=403
        )


async def _at(request: Request, context: WebContext, who: Caller, visit: Visit, action: str) -> Response:
    """Answer a browser at its own sign-in; errors are shown within it."""
    try:
        await context.provider.registry_cache.refuse_maintenance(who.now)
        if request.method == "POST":
            return await _post(request, context, who, visit, action)
        return await _get(request, context, who, visit, action)
    except (visits.NoInteraction, visits.ForeignBrowser):
        raise
    except Exception as error:  # noqa: BLE001 - the one who asks is known here
        return landing.failed(request, context, visit.client, visit.interaction, error)


async def _old_form(
    request: Request, context: WebContext, who: Caller, interaction_id: str, sent: str | None
) -> Response:
    """A form with an old cookie value gets the current page; a double click gets the new value again (D34)."""
    new_cookie = await _value_after(context, who, sent, sha256(await form_bytes(request)).digest())
    if new_cookie is not None:
        request.scope["state"]["cookie"] = new_cookie
    return _to(context, interaction_id)


async def _value_after(context: WebContext, who: Caller, sent: str | None, form: bytes) -> str | None:
    """The cookie value that this very form brought, which another request may still be handling: for a second at most."""
    for _ in range(_WAITS):
        try:
            new_cookie = await browsers.replace_again(context.provider, who, sent, form)
        except browsers.OtherForm:
            return None
        if new_cookie is not None:
            return new_cookie
        if not sent or not await browsers.is_handled(context.provider, sent, form, now=who.now):
            return None
        await sleep(_WAIT_SECONDS)
    return None


async def _get(request: Request, context: WebContext, who: Caller, visit: Visit, action: str) -> Response:
    looked_at = visit.interaction
    if action == "leave" and await _may_leave(context, who, looked_at):
        response = await completion.leave(context.provider, who, looked_at)
        if "error" in response.parameters:
            request.scope["state"]["log"]["error"] = response.parameters["error"]
        around = await final_frame(context, who, visit.client, looked_at) if response.posted else Frame()
        return leave(request, context, response, around)
    if action == "return" and looked_at.outcome is not None:
        return page_response(request, context.renderer, await pages.leaving(context, who, visit))
    if action:
        return _to(context, looked_at.interaction_id)
    ending = await _ending(context, who, visit)
    if ending is not None:
        return page_response(request, context.renderer, ending)
    if await completion.claimed_elsewhere(context.provider, looked_at, now=who.now):
        return await _over(request, context, who, visit, Ending.CLAIMED_ELSEWHERE, status=409)
    query = request.query_params.get("query", "").strip()[:QUERY_CHARACTERS]
    page = await sign_in.current(context.provider, who, visit, query=query)
    return page_response(request, context.renderer, await pages.of_step(context, who, visit, page, Again(query=query)))


async def _may_leave(context: WebContext, who: Caller, looked_at: Interaction) -> bool:
    """Return whether a sign-in is over, so that its browser goes back with whatever the answer is (D15, D16)."""
    if looked_at.outcome is not None or who.now >= looked_at.expires_at:
        return True
    completed = await completion.completed(context.provider, looked_at, now=who.now)
    return completed is not None and completed.given_up(who.now)


async def _over(
    request: Request, context: WebContext, who: Caller, visit: Visit, ending: Ending, *, status: int = 200
) -> Response:
    return page_response(
        request, context.renderer, await terminal_pages.over(context, who, visit, ending), status=status
    )


async def _ending(context: WebContext, who: Caller, visit: Visit) -> View | None:
    """The page of a sign-in that is over, None while it goes on."""
    looked_at = visit.interaction
    if looked_at.outcome is not None:
        return await terminal_pages.over(context, who, visit, Ending.ENDED)
    completed = await completion.completed(context.provider, looked_at, now=who.now)
    if completed is not None and completed.interaction_id != looked_at.interaction_id:
        return await terminal_pages.over(context, who, visit, Ending.ENDED_ELSEWHERE)
    if completed is not None and completed.given_up(who.now):
        return await terminal_pages.over(context, who, visit, Ending.ENDED)
    if completed is not None:
        return await pages.waiting(context, who, visit)
    expired = who.now >= looked_at.expires_at
    return await terminal_pages.over(context, who, visit, Ending.EXPIRED) if expired else None


async def _post(request: Request, context: WebContext, who: Caller, visit: Visit, action: str) -> Response:
    interaction_id, body = visit.interaction.interaction_id, await form_bytes(request)
    form = parameters.parse(body, FIELDS)
    step = STEPS.get(action)
    if step is None:
        raise InvalidRequest("there is no such step")
    require_own_form(context.provider, form, visit.browser.browser_id, interaction_id)
    if await _ending(context, who, visit) is not None or form.get("step") != step_name(visit.interaction):
        return _to(context, interaction_id, "return" if visit.interaction.outcome is not None else "")
    submitted = _Submitted(step=step, form=form, visit=replace(visit, form=sha256(body).digest()))
    return await (_prove if step.proves else _take)(request, context, who, submitted)


async def _prove(request: Request, context: WebContext, who: Caller, submitted: _Submitted) -> Response:
    """A double click makes a browser drop the first answer: the second waits for it, and brings the same (D34)."""
    provider, visit, state = context.provider, submitted.visit, request.scope["state"]
    if await browsers.handle(provider, visit.cookie, visit.form, now=who.now):
        answer = await _take(request, context, who, submitted)
        if "cookie" not in state:
            await browsers.handled_in_vain(provider, visit.cookie, visit.form, now=who.now)
        return answer
    new_cookie = await _value_after(context, who, visit.cookie, visit.form)
    if new_cookie is None:
        return await _take(request, context, who, submitted)
    state["cookie"] = new_cookie
    return _to(context, visit.interaction.interaction_id)


async def _take(request: Request, context: WebContext, who: Caller, submitted: _Submitted) -> Response:
    visit, step = submitted.visit, submitted.step
    try:
        after = await step.submit(context, who, visit, submitted.form)
        if after.cookie != visit.cookie:
            request.scope["state"]["cookie"] = after.cookie
            after = await session_start.as_the_person_is(context.provider, who, after)
        return await _onwards(context, who, after, step)
    except StaleStep:
        return _to(context, visit.interaction.interaction_id)
    except AlreadyCompleted:
        return await _over(request, context, who, visit, Ending.ENDED_ELSEWHERE)
    except OtherBrowser:
        return await _over(request, context, who, visit, Ending.CLAIMED_ELSEWHERE, status=409)
    except Stopped:
        return await _over(request, context, who, visit, Ending.SHUT)
    except Throttled as slowed:
        return throttled(await _again(request, context, who, submitted, (step.field, slowed.sentence)), slowed)
    except Rejected as rejected:
        return await _again(request, context, who, submitted, (step.field, rejected.sentence))


async def _onwards(context: WebContext, who: Caller, visit: Visit, step: Step) -> Response:
    """After a step that was taken: complete if nothing remains to be asked, else show what is next (D30, D37)."""
    interaction_id, ended = visit.interaction.interaction_id, visit.interaction.outcome is not None
    if step.completes and await sign_in.ready(context.provider, who, visit):
        await sign_in.finish(context.provider, who, visit)
        ended = True
    return _to(context, interaction_id, "return" if ended else "")


async def _again(
    request: Request, context: WebContext, who: Caller, submitted: _Submitted, error: FieldError
) -> Response:
    """The same page with what is wrong, unless the sign-in has ended meanwhile."""
    visit, form = submitted.visit, submitted.form
    after = await visits.visit(context.provider, who, visit.interaction.interaction_id, visit.cookie)
    ending = await _ending(context, who, after)
    if ending is not None:
        return page_response(request, context.renderer, ending)
    query = form.get("query", "").strip()[:QUERY_CHARACTERS]
    page = await sign_in.current(context.provider, who, after, query=query)
    again = Again(errors=(error,), typed=form.get("user_name", ""), query=query)
    return page_response(request, context.renderer, await pages.of_step(context, who, after, page, again), status=422)
