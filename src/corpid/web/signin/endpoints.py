"""The sign-in in a browser: one page to look at, one POST for each step, two addresses to leave by.

A POST that claims its step moves on with 303; who comes too late, or with an old cookie or form, is sent
to the page that is current (D15, D34, D35).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.flows import browsers, choices, completion, interactions, passkey_sign_in, second_factor, sign_in, visits
from corpid.flows.account import own_client
from corpid.flows.completion import AlreadyCompleted, OtherBrowser
from corpid.flows.interactions import StaleStep
from corpid.flows.second_factor import Stopped
from corpid.flows.sign_in import Rejected, Visit
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.protocol.errors import AccessDenied, InvalidRequest
from corpid.texts import phrase
from corpid.web import errors
from corpid.web.endpoints import leave, set_cookie
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show
from corpid.web.signin import dead_ends, pages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from corpid.flows.caller import Caller
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View

FIELDS: Final = frozenset({"form_token", "step", "user_name", "password", "code", "passkey", "entity", "decision"})
_NO_ENTITY: Final = "none of the organisations that the person acts for can be used here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A POST of the sign-in: what it submits, and the field that its errors stand beside."""

    submit: Callable[[Desk, Caller, Visit, Mapping[str, str]], Awaitable[str | None]]
    """returns the browser's new cookie value, if it gets one"""
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """A form of a page that this browser was shown, for the step that is current."""

    action: str
    form: Mapping[str, str]
    visit: Visit


async def _password(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    user_name, password = form.get("user_name", "").strip(), form.get("password", "")
    await sign_in.submit_password(desk.provider, who, visit, user_name=user_name, password=password)
    return None


async def _passkey(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    return await passkey_sign_in.submit_passkey(desk.provider, who, visit, answer=form.get("passkey", ""))


async def _way(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    await second_factor.choose_way(desk.provider, who, visit, way=form.get("decision", ""))
    return None


async def _code(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    return await second_factor.submit_code(desk.provider, who, visit, code=form.get("code", ""))


async def _entity(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    if form.get("decision") == "other_account":
        await sign_in.start_over(desk.provider, who, visit)
    else:
        await sign_in.submit_entity(desk.provider, who, visit, entity_id=form.get("entity", ""))
    return None


async def _consent(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    if form.get("decision") != "agree":
        raise Rejected(phrase("Choose whether you agree."))
    await sign_in.submit_consent(desk.provider, who, visit)
    return None


async def _confirm(desk: Desk, who: Caller, visit: Visit, form: Mapping[str, str]) -> str | None:
    if form.get("decision") == "other_account":
        await sign_in.start_over(desk.provider, who, visit)
    elif form.get("decision") != "continue":
        raise Rejected(phrase("Choose whether you continue."))
    return None


async def _extend(desk: Desk, who: Caller, visit: Visit, _: Mapping[str, str]) -> str | None:
    await sign_in.extend(desk.provider, who, visit)
    return None


async def _cancel(desk: Desk, who: Caller, visit: Visit, _: Mapping[str, str]) -> str | None:
    user_id, provider = visit.interaction.user_id, desk.provider
    chooses = visit.interaction.signed_in
    nothing = chooses and not await choices.any_usable(provider, user_id, visit.client, now=who.now)
    refusal = AccessDenied(_NO_ENTITY if nothing else "the person cancelled the sign-in")
    await completion.refuse(desk.provider, who, visit.interaction, refusal)
    return None


STEPS: Final[Mapping[str, Step]] = {
    "password": Step(submit=_password, field="password"),
    "passkey": Step(submit=_passkey, field="passkey"),
    "way": Step(submit=_way, field=""),
    "code": Step(submit=_code, field="code"),
    "entity": Step(submit=_entity, field="entity"),
    "consent": Step(submit=_consent, field=""),
    "confirm": Step(submit=_confirm, field=""),
    "extend": Step(submit=_extend, field=""),
    "cancel": Step(submit=_cancel, field=""),
}
_COMPLETING: Final = frozenset({"passkey", "code", "entity", "consent", "confirm"})


def _to(desk: Desk, interaction_id: str, action: str = "") -> Response:
    where = pages.place(desk, interaction_id, action)
    return Response(b"", 303, {**errors.NO_STORE, "Location": where})


async def interaction(request: Request, desk: Desk) -> Response:
    """Every address below /sign-in/{interaction}: the page, its steps, and the ways to leave (D15)."""
    interaction_id, _, action = str(request.path_params["rest"]).partition("/")
    state = request.scope["state"]
    try:
        answer = await _answer(request, desk, interaction_id, action)
    except Exception as error:  # noqa: BLE001 - rendered here, since the cookie goes with it
        answer = errors.as_page(request, error, desk.renderer)
    if "cookie" in state:
        # Also where something failed after the sign-in: the old value is dead.
        set_cookie(answer, desk.provider, state["cookie"])
    return answer


async def _answer(request: Request, desk: Desk, interaction_id: str, action: str) -> Response:
    provider, sent = desk.provider, cookie(request, desk.provider)
    who = caller(request, provider)
    try:
        await provider.live.refuse_maintenance(who.now)
        visit = await visits.visit(provider, who, interaction_id, sent)
        if request.method == "POST":
            return await _post(request, desk, who, visit, action)
        return await _get(request, desk, who, visit, action)
    except visits.NoInteraction:
        return show(request, desk.renderer, dead_ends.unknown(), status=404)
    except visits.ForeignBrowser as stranger:
        if request.method == "POST":
            return await _old_form(request, desk, who, interaction_id, sent)
        client = await own_client.asker(provider, stranger.interaction.request.client_id, now=who.now)
        return show(request, desk.renderer, dead_ends.other_browser(client, stranger.interaction), status=403)


async def _old_form(request: Request, desk: Desk, who: Caller, interaction_id: str, sent: str | None) -> Response:
    """A form with an old cookie value gets the current page; a double click gets the new value again (D34)."""
    digest = sha256(await form_bytes(request)).digest()
    new_cookie = await browsers.replace_again(desk.provider, sent, digest, now=who.now)
    if new_cookie is not None:
        request.scope["state"]["cookie"] = new_cookie
    return _to(desk, interaction_id)


async def _get(request: Request, desk: Desk, who: Caller, visit: Visit, action: str) -> Response:
    looked_at = visit.interaction
    if action == "leave" and (looked_at.outcome is not None or who.now >= looked_at.expires_at):
        response = await completion.leave(desk.provider, who, looked_at)
        if "error" in response.parameters:
            request.scope["state"]["log"]["error"] = response.parameters["error"]
        return leave(request, desk, response)
    if action == "return" and looked_at.outcome is not None:
        return show(request, desk.renderer, await pages.leaving(desk, who, visit))
    if action:
        return _to(desk, looked_at.interaction_id)
    ending = await _ending(desk, who, visit)
    if ending is not None:
        return show(request, desk.renderer, ending)
    if await completion.claimed_elsewhere(desk.provider, looked_at, now=who.now):
        return show(request, desk.renderer, dead_ends.claimed_elsewhere(visit), status=409)
    query = request.query_params.get("query", "").strip()[:200]
    page = await sign_in.current(desk.provider, who, visit, query=query)
    return show(request, desk.renderer, pages.of_step(desk, who, visit, page, query=query))


async def _ending(desk: Desk, who: Caller, visit: Visit) -> View | None:
    """The page of a sign-in that is over, None while it goes on."""
    looked_at = visit.interaction
    if looked_at.outcome is not None:
        return dead_ends.ended(desk, visit)
    winner = await visits.completed_elsewhere(desk.provider, who, looked_at)
    if winner == looked_at.interaction_id:
        return pages.waiting(desk, visit)
    if winner:
        return dead_ends.ended(desk, visit)
    return dead_ends.expired(desk, visit) if who.now >= looked_at.expires_at else None


async def _post(request: Request, desk: Desk, who: Caller, visit: Visit, action: str) -> Response:
    interaction_id, body = visit.interaction.interaction_id, await form_bytes(request)
    form = parameters.parse(body, FIELDS)
    step = STEPS.get(action)
    if step is None:
        raise InvalidRequest("there is no such step")
    if not interactions.is_form_token(
        desk.provider, form.get("form_token", ""), visit.browser.browser_id, interaction_id
    ):
        raise InvalidRequest(
            "form_token is missing, or another browser's",
            sentence=phrase("This form is not one that this browser was shown: open the page again."),
        )
    if await _ending(desk, who, visit) is not None or form.get("step") != pages.step_name(visit.interaction):
        return _to(desk, interaction_id, "return" if visit.interaction.outcome is not None else "")
    submitted = _Submitted(action=action, form=form, visit=replace(visit, form=sha256(body).digest()))
    return await _take(request, desk, who, step, submitted)


async def _take(request: Request, desk: Desk, who: Caller, step: Step, submitted: _Submitted) -> Response:
    visit, form = submitted.visit, submitted.form
    try:
        new_cookie = await step.submit(desk, who, visit, form)
        if new_cookie is not None:
            request.scope["state"]["cookie"] = new_cookie
        return await _onwards(desk, who, visit, submitted.action, new_cookie)
    except StaleStep:
        return _to(desk, visit.interaction.interaction_id)
    except AlreadyCompleted:
        return show(request, desk.renderer, dead_ends.ended(desk, visit))
    except OtherBrowser:
        return show(request, desk.renderer, dead_ends.claimed_elsewhere(visit), status=409)
    except Stopped:
        return show(request, desk.renderer, dead_ends.shut(desk, visit))
    except Throttled as throttled:
        answer = await _again(request, desk, who, submitted, (step.field, throttled.sentence))
        answer.status_code = 429
        answer.headers["Retry-After"] = str(throttled.seconds)
        return answer
    except Rejected as rejected:
        return await _again(request, desk, who, submitted, (step.field, rejected.sentence))


async def _onwards(desk: Desk, who: Caller, visit: Visit, action: str, new_cookie: str | None) -> Response:
    """After a step that was taken: complete if nothing remains to be asked, else show what is next (D30, D37)."""
    interaction_id = visit.interaction.interaction_id
    after = await visits.visit(desk.provider, who, interaction_id, new_cookie or visit.cookie)
    if action in _COMPLETING and await sign_in.ready(desk.provider, who, after):
        await sign_in.finish(desk.provider, who, after)
        return _to(desk, interaction_id, "return")
    return _to(desk, interaction_id, "return" if after.interaction.outcome is not None else "")


async def _again(request: Request, desk: Desk, who: Caller, submitted: _Submitted, error: FieldError) -> Response:
    """The same page with what is wrong, unless the sign-in has ended meanwhile."""
    visit = submitted.visit
    after = await visits.visit(desk.provider, who, visit.interaction.interaction_id, visit.cookie)
    ending = await _ending(desk, who, after)
    if ending is not None:
        return show(request, desk.renderer, ending)
    page = await sign_in.current(desk.provider, who, after)
    view = pages.of_step(desk, who, after, page, errors=(error,), typed=submitted.form.get("user_name", ""))
    return show(request, desk.renderer, view, status=422)
