"""The sign-in in a browser: one page to look at, one POST for each step, two addresses to leave by.

A POST that claims its step moves on with 303; who comes too late, or with an old cookie or form, is sent
to the page that is current (D15, D34, D35).
"""

from __future__ import annotations

from asyncio import sleep
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows import browsers, completion, held_arrivals, sign_in, signed_in, visits
from corpid.flows.account import own_client
from corpid.flows.choices import QUERY_CHARACTERS
from corpid.flows.completion import AlreadyCompleted, OtherBrowser
from corpid.flows.interactions import StaleStep
from corpid.flows.second_factor import Stopped
from corpid.flows.sign_in import Rejected
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.protocol.errors import InvalidRequest
from corpid.texts import phrase
from corpid.web import errors
from corpid.web.answers import require_own_form, see_other, throttled
from corpid.web.endpoints import add_cookie, leave, set_cookie
from corpid.web.errors import Met
from corpid.web.frame import Frame, Link
from corpid.web.requests import arrival_cookie, arrival_cookie_name, caller, cookie, form_bytes
from corpid.web.showing import show
from corpid.web.signin import dead_ends, pages
from corpid.web.signin.dead_ends import Ending
from corpid.web.signin.pages import Again
from corpid.web.signin.place import ARRIVE, place
from corpid.web.signin.steps import FIELDS, STEPS
from corpid.web.signin.surroundings import asker, asker_alone, step_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.sign_in import Visit
    from corpid.web.endpoints import Desk
    from corpid.web.frame import FieldError
    from corpid.web.signin.steps import Step
    from corpid.web.views import View


_WAITS: Final = 20
_WAIT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """A form of a page that this browser was shown, for the step that is current."""

    step: Step
    form: Mapping[str, str]
    visit: Visit


def _to(desk: Desk, interaction_id: str, action: str = "") -> Response:
    return see_other(place(desk, interaction_id, action))


def _met(url: str, frame: Frame) -> Met:
    """Something went wrong inside a sign-in, whose page can be looked at again."""
    return Met(frame=frame, back=Link(url=url, text=phrase("Open the page again")), goes_on=True)


async def interaction(request: Request, desk: Desk) -> Response:
    """Every address below /sign-in/{interaction}: the page, its steps, and the ways to leave (D15)."""
    interaction_id, _, action = str(request.path_params["rest"]).partition("/")
    state = request.scope["state"]
    try:
        answer = await _answer(request, desk, interaction_id, action)
    except InvalidRequest as error:
        answer = errors.as_page(request, error, desk.renderer)
    except Exception as error:  # noqa: BLE001 - rendered here, since the cookie goes with it
        # The address of the page itself leads back to the sign-in from each of its actions.
        answer = errors.as_page(request, error, desk.renderer, _met("", Frame(under_way=True)))
    if "landed" in state:
        add_cookie(answer, desk.provider, arrival_cookie_name(desk.provider), "", seconds=0)
    if "cookie" in state:
        # Also where something failed after the sign-in: the old value is dead.
        set_cookie(answer, desk.provider, state["cookie"])
    return answer


async def _answer(request: Request, desk: Desk, interaction_id: str, action: str) -> Response:
    provider, sent = desk.provider, cookie(request, desk.provider)
    who = caller(request, provider)
    await _land(request, desk, who, interaction_id, action)
    if action == ARRIVE and request.method == "POST":
        return _to(desk, interaction_id)
    try:
        visit = await visits.visit(provider, who, interaction_id, sent)
        return await _at(request, desk, who, visit, action)
    except visits.NoInteraction:
        if sent is None:
            return show(request, desk.renderer, dead_ends.without_cookie(), status=403)
        return show(request, desk.renderer, dead_ends.unknown(), status=404)
    except visits.ForeignBrowser as stranger:
        await provider.live.refuse_maintenance(who.now)
        if request.method == "POST":
            return await _old_form(request, desk, who, interaction_id, sent)
        client = await own_client.asker(provider, stranger.interaction.request.client_id, now=who.now)
        return show(request, desk.renderer, dead_ends.other_browser(client, stranger.interaction), status=403)


async def _land(request: Request, desk: Desk, who: Caller, interaction_id: str, action: str) -> None:
    """Store a sign-in that its browser holds, and brings in a cookie, or in a form if it is too long for one (D15, D34)."""
    provider = desk.provider
    held = arrival_cookie(request, provider)
    if action == ARRIVE and request.method == "POST":
        held = parameters.parse(await form_bytes(request), {ARRIVE}).get(ARRIVE)
    if held is None or not held_arrivals.is_of(held, interaction_id):
        return
    await provider.live.refuse_maintenance(who.now)
    await held_arrivals.land(provider, who, interaction_id, cookie=cookie(request, provider), held=held)
    request.scope["state"]["landed"] = True


async def _at(request: Request, desk: Desk, who: Caller, visit: Visit, action: str) -> Response:
    """What a browser gets at its own sign-in; an error is told within it."""
    try:
        await desk.provider.live.refuse_maintenance(who.now)
        if request.method == "POST":
            return await _post(request, desk, who, visit, action)
        return await _get(request, desk, who, visit, action)
    except (visits.NoInteraction, visits.ForeignBrowser):
        raise
    except Exception as error:  # noqa: BLE001 - the one who asks is known here
        around = replace(asker_alone(desk, visit.client, visit.interaction), under_way=True)
        return errors.as_page(request, error, desk.renderer, _met(around.here, around))


async def _old_form(request: Request, desk: Desk, who: Caller, interaction_id: str, sent: str | None) -> Response:
    """A form with an old cookie value gets the current page; a double click gets the new value again (D34)."""
    new_cookie = await _value_after(desk, who, sent, sha256(await form_bytes(request)).digest())
    if new_cookie is not None:
        request.scope["state"]["cookie"] = new_cookie
    return _to(desk, interaction_id)


async def _value_after(desk: Desk, who: Caller, sent: str | None, form: bytes) -> str | None:
    """The cookie value that this very form brought, which another request may still be handling: for a second at most."""
    for _ in range(_WAITS):
        try:
            new_cookie = await browsers.replace_again(desk.provider, who, sent, form)
        except browsers.OtherForm:
            return None
        if new_cookie is not None:
            return new_cookie
        if not sent or not await browsers.is_handled(desk.provider, sent, form, now=who.now):
            return None
        await sleep(_WAIT_SECONDS)
    return None


async def _get(request: Request, desk: Desk, who: Caller, visit: Visit, action: str) -> Response:
    looked_at = visit.interaction
    if action == "leave" and await _may_leave(desk, who, looked_at):
        response = await completion.leave(desk.provider, who, looked_at)
        if "error" in response.parameters:
            request.scope["state"]["log"]["error"] = response.parameters["error"]
        around = await asker(desk, who, visit.client, looked_at) if response.posted else Frame()
        return leave(request, desk, response, around)
    if action == "return" and looked_at.outcome is not None:
        return show(request, desk.renderer, await pages.leaving(desk, who, visit))
    if action:
        return _to(desk, looked_at.interaction_id)
    ending = await _ending(desk, who, visit)
    if ending is not None:
        return show(request, desk.renderer, ending)
    if await completion.claimed_elsewhere(desk.provider, looked_at, now=who.now):
        return await _over(request, desk, who, visit, Ending.CLAIMED_ELSEWHERE, status=409)
    query = request.query_params.get("query", "").strip()[:QUERY_CHARACTERS]
    page = await sign_in.current(desk.provider, who, visit, query=query)
    return show(request, desk.renderer, await pages.of_step(desk, who, visit, page, Again(query=query)))


async def _may_leave(desk: Desk, who: Caller, looked_at: Interaction) -> bool:
    """Whether a sign-in is over, so that its browser goes back with whatever the answer is (D15, D16)."""
    if looked_at.outcome is not None or who.now >= looked_at.expires_at:
        return True
    completed = await completion.completed(desk.provider, looked_at, now=who.now)
    return completed is not None and completed.given_up(who.now)


async def _over(
    request: Request, desk: Desk, who: Caller, visit: Visit, ending: Ending, *, status: int = 200
) -> Response:
    return show(request, desk.renderer, await dead_ends.over(desk, who, visit, ending), status=status)


async def _ending(desk: Desk, who: Caller, visit: Visit) -> View | None:
    """The page of a sign-in that is over, None while it goes on."""
    looked_at = visit.interaction
    if looked_at.outcome is not None:
        return await dead_ends.over(desk, who, visit, Ending.ENDED)
    completed = await completion.completed(desk.provider, looked_at, now=who.now)
    if completed is not None and completed.interaction_id != looked_at.interaction_id:
        return await dead_ends.over(desk, who, visit, Ending.ENDED_ELSEWHERE)
    if completed is not None and completed.given_up(who.now):
        return await dead_ends.over(desk, who, visit, Ending.ENDED)
    if completed is not None:
        return await pages.waiting(desk, who, visit)
    expired = who.now >= looked_at.expires_at
    return await dead_ends.over(desk, who, visit, Ending.EXPIRED) if expired else None


async def _post(request: Request, desk: Desk, who: Caller, visit: Visit, action: str) -> Response:
    interaction_id, body = visit.interaction.interaction_id, await form_bytes(request)
    form = parameters.parse(body, FIELDS)
    step = STEPS.get(action)
    if step is None:
        raise InvalidRequest("there is no such step")
    require_own_form(desk.provider, form, visit.browser.browser_id, interaction_id)
    if await _ending(desk, who, visit) is not None or form.get("step") != step_name(visit.interaction):
        return _to(desk, interaction_id, "return" if visit.interaction.outcome is not None else "")
    submitted = _Submitted(step=step, form=form, visit=replace(visit, form=sha256(body).digest()))
    return await (_prove if step.proves else _take)(request, desk, who, submitted)


async def _prove(request: Request, desk: Desk, who: Caller, submitted: _Submitted) -> Response:
    """A double click makes a browser drop the first answer: the second waits for it, and brings the same (D34)."""
    provider, visit, state = desk.provider, submitted.visit, request.scope["state"]
    if await browsers.handle(provider, visit.cookie, visit.form, now=who.now):
        answer = await _take(request, desk, who, submitted)
        if "cookie" not in state:
            await browsers.handled_in_vain(provider, visit.cookie, visit.form, now=who.now)
        return answer
    new_cookie = await _value_after(desk, who, visit.cookie, visit.form)
    if new_cookie is None:
        return await _take(request, desk, who, submitted)
    state["cookie"] = new_cookie
    return _to(desk, visit.interaction.interaction_id)


async def _take(request: Request, desk: Desk, who: Caller, submitted: _Submitted) -> Response:
    visit, step = submitted.visit, submitted.step
    try:
        after = await step.submit(desk, who, visit, submitted.form)
        if after.cookie != visit.cookie:
            request.scope["state"]["cookie"] = after.cookie
            after = await signed_in.as_the_person_is(desk.provider, who, after)
        return await _onwards(desk, who, after, step)
    except StaleStep:
        return _to(desk, visit.interaction.interaction_id)
    except AlreadyCompleted:
        return await _over(request, desk, who, visit, Ending.ENDED_ELSEWHERE)
    except OtherBrowser:
        return await _over(request, desk, who, visit, Ending.CLAIMED_ELSEWHERE, status=409)
    except Stopped:
        return await _over(request, desk, who, visit, Ending.SHUT)
    except Throttled as slowed:
        return throttled(await _again(request, desk, who, submitted, (step.field, slowed.sentence)), slowed)
    except Rejected as rejected:
        return await _again(request, desk, who, submitted, (step.field, rejected.sentence))


async def _onwards(desk: Desk, who: Caller, visit: Visit, step: Step) -> Response:
    """After a step that was taken: complete if nothing remains to be asked, else show what is next (D30, D37)."""
    interaction_id, ended = visit.interaction.interaction_id, visit.interaction.outcome is not None
    if step.completes and await sign_in.ready(desk.provider, who, visit):
        await sign_in.finish(desk.provider, who, visit)
        ended = True
    return _to(desk, interaction_id, "return" if ended else "")


async def _again(request: Request, desk: Desk, who: Caller, submitted: _Submitted, error: FieldError) -> Response:
    """The same page with what is wrong, unless the sign-in has ended meanwhile."""
    visit, form = submitted.visit, submitted.form
    after = await visits.visit(desk.provider, who, visit.interaction.interaction_id, visit.cookie)
    ending = await _ending(desk, who, after)
    if ending is not None:
        return show(request, desk.renderer, ending)
    query = form.get("query", "").strip()[:QUERY_CHARACTERS]
    page = await sign_in.current(desk.provider, who, after, query=query)
    again = Again(errors=(error,), typed=form.get("user_name", ""), query=query)
    return show(request, desk.renderer, await pages.of_step(desk, who, after, page, again), status=422)
