"""Enrolment in a browser: the page that a link opens, one page for each step after it, and the QR code (D34, D46).

Opening a link spends nothing, since mail programs open links, too. A POST that claims its step moves on with 303;
who comes too late is sent to the page that is current (D15).
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

import segno
from starlette.responses import Response

from corpid.flows import browsers, interactions, rates
from corpid.flows.browsers import Browser
from corpid.flows.enrolment import enrolments, proving, setting
from corpid.flows.enrolment.enrolments import NotHere, OpenElsewhere, Stopped
from corpid.flows.enrolment.steps import Step
from corpid.flows.interactions import StaleStep
from corpid.flows.links import PATH as LINK_PATH
from corpid.flows.links import link_hash
from corpid.flows.sign_in import Rejected
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.protocol.errors import InvalidRequest
from corpid.texts import phrase
from corpid.web import errors
from corpid.web.endpoints import set_cookie
from corpid.web.enrolment import pages
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, Sitting
    from corpid.flows.provider import Provider
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError

    Submit = Callable[[Provider, Caller, Sitting, Mapping[str, str]], Awaitable[Enrolment]]

FIELDS: Final = frozenset({"form_token", "step", "user_name", "password", "code", "passkey", "kept"})
_PICTURE: Final = "qr.svg"
_FINISH: Final = "finish"
_EXTEND: Final = "extend"
_QUIET_ZONE: Final = 4
"""modules around a QR code (ISO/IEC 18004)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    """What a form submits, and the field that its errors stand beside."""

    submit: Submit
    field: str


async def _new_password(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await setting.submit_password(provider, who, sitting, password=form.get("password", ""))


async def _new_app(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await setting.submit_app(provider, who, sitting, code=form.get("code", ""))


async def _new_passkey(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    name = f"Passkey {provider.policy.today(who.now)}"
    return await setting.submit_passkey(provider, who, sitting, answer=form.get("passkey", ""), name=name)


async def _codes(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await setting.submit_codes(provider, who, sitting, kept=form.get("kept") == "yes")


async def _known_password(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await proving.submit_password(provider, who, sitting, password=form.get("password", ""))


async def _known_code(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await proving.submit_code(provider, who, sitting, code=form.get("code", ""))


async def _known_passkey(provider: Provider, who: Caller, sitting: Sitting, form: Mapping[str, str]) -> Enrolment:
    return await proving.submit_passkey(provider, who, sitting, answer=form.get("passkey", ""))


async def _more_time(provider: Provider, who: Caller, sitting: Sitting, _: Mapping[str, str]) -> Enrolment:
    return await enrolments.extend(provider, who, sitting)


ACTIONS: Final[Mapping[tuple[Step | None, str], _Action]] = {
    (Step.PROVE_PASSWORD, "password"): _Action(submit=_known_password, field="password"),
    (Step.PROVE_SECOND_FACTOR, "code"): _Action(submit=_known_code, field="code"),
    (Step.PROVE_SECOND_FACTOR, "passkey"): _Action(submit=_known_passkey, field="passkey"),
    (Step.FIRST, "password"): _Action(submit=_new_password, field="password"),
    (Step.FIRST, "passkey"): _Action(submit=_new_passkey, field="passkey"),
    (Step.PASSWORD, "password"): _Action(submit=_new_password, field="password"),
    (Step.SECOND_FACTOR, "code"): _Action(submit=_new_app, field="code"),
    (Step.SECOND_FACTOR, "passkey"): _Action(submit=_new_passkey, field="passkey"),
    (Step.RECOVERY_CODES, "codes"): _Action(submit=_codes, field="kept"),
    **{(step, _EXTEND): _Action(submit=_more_time, field="") for step in (*Step, None)},
}
"""what can be submitted at which step"""


async def link(request: Request, desk: Desk) -> Response:
    """The page that a link opens, and its one button (D34, D46)."""
    provider, who = desk.provider, caller(request, desk.provider)
    secret = str(request.path_params["rest"])
    await provider.rates.address(rates.SIGN_IN, who.address, who.now)
    await provider.live.refuse_maintenance(who.now)
    await provider.own_keys.ring(who.now)
    browser = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    try:
        found, user = await enrolments.look(provider, who, secret)
        if request.method == "POST":
            if browser is None:
                raise OpenElsewhere
            form = parameters.parse(await form_bytes(request), FIELDS)
            _own_form(provider, form, browser.browser_id, link_hash(secret))
            begun = await enrolments.begin(provider, who, found, browser.browser_id)
            return _to(desk, begun.enrolment_id)
    except (NotHere, OpenElsewhere, Stopped) as ending:
        return _ended(request, desk, ending)
    known = browser or Browser(browser_id=provider.new_id())
    token = interactions.form_token(provider, known.browser_id, link_hash(secret))
    view = pages.begin(desk, found, user, action=f"{desk.base_path}{LINK_PATH}{secret}", form_token=token)
    answer = show(request, desk.renderer, view)
    if browser is None:
        async with provider.transient.unit(who.now) as unit:
            set_cookie(answer, provider, await browsers.welcome(provider, unit, known))
    return answer


async def enrolment(request: Request, desk: Desk) -> Response:
    """Every address below /enrolment/{enrolment}: the page, its forms, and the QR code (D15, D34)."""
    provider, who = desk.provider, caller(request, desk.provider)
    enrolment_id, _, action = str(request.path_params["rest"]).partition("/")
    await provider.live.refuse_maintenance(who.now)
    browser = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    try:
        sitting = await enrolments.sit(provider, who, enrolment_id, browser.browser_id if browser else "")
        if request.method == "POST":
            return await _post(request, desk, who, sitting, action)
        if action == _PICTURE and sitting.enrolment.step is Step.SECOND_FACTOR:
            return picture(pages.app_link(desk, sitting))
        if action:
            return _to(desk, enrolment_id)
        return show(request, desk.renderer, await pages.of_step(desk, who, sitting))
    except StaleStep:
        return _to(desk, enrolment_id)
    except (NotHere, OpenElsewhere, Stopped) as ending:
        return _ended(request, desk, ending)


def _to(desk: Desk, enrolment_id: str) -> Response:
    return Response(b"", 303, {**errors.NO_STORE, "Location": pages.place(desk, enrolment_id)})


def _ended(request: Request, desk: Desk, ending: Exception) -> Response:
    view, status = {
        NotHere: (pages.gone, 404),
        OpenElsewhere: (pages.other_browser, 403),
        Stopped: (pages.stopped, 403),
    }[type(ending)]
    return show(request, desk.renderer, view(), status=status)


def _own_form(provider: Provider, form: Mapping[str, str], browser_id: str, subject: str) -> None:
    if not interactions.is_form_token(provider, form.get("form_token", ""), browser_id, subject):
        raise InvalidRequest(
            "form_token is missing, or another browser's",
            sentence=phrase("This form is not one that this browser was shown: open the page again."),
        )


def picture(text: str) -> Response:
    """A QR code, drawn here (ISO/IEC 18004)."""
    drawn = BytesIO()
    code = segno.make_qr(text)
    code.save(drawn, kind="svg", border=_QUIET_ZONE, dark="#000", light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), 200, errors.NO_STORE, "image/svg+xml")


async def _post(request: Request, desk: Desk, who: Caller, sitting: Sitting, action: str) -> Response:
    provider, at = desk.provider, sitting.enrolment
    form = parameters.parse(await form_bytes(request), FIELDS)
    _own_form(provider, form, at.browser_id, at.enrolment_id)
    taken = ACTIONS.get((at.step, action))
    if (
        at.finished
        or form.get("step") != pages.step_name(at)
        or (taken is None and (at.step, action) != (None, _FINISH))
    ):
        return _to(desk, at.enrolment_id)
    try:
        moved = await taken.submit(provider, who, sitting, form) if taken else at
    except Throttled as throttled:
        answer = await _again(request, desk, who, sitting, (taken.field if taken else "", throttled.sentence))
        answer.status_code = 429
        answer.headers["Retry-After"] = str(throttled.seconds)
        return answer
    except Rejected as rejected:
        return await _again(request, desk, who, sitting, (taken.field if taken else "", rejected.sentence))
    if moved.step is None and action != _EXTEND:
        after = await enrolments.sit(provider, who, at.enrolment_id, at.browser_id)
        await setting.finish(provider, who, after)
    return _to(desk, at.enrolment_id)


async def _again(request: Request, desk: Desk, who: Caller, sitting: Sitting, error: FieldError) -> Response:
    """The same page with what is wrong, unless another request has moved on meanwhile."""
    before = sitting.enrolment
    after = await enrolments.sit(desk.provider, who, before.enrolment_id, before.browser_id)
    if after.enrolment.serial != before.serial:
        raise StaleStep
    return show(request, desk.renderer, await pages.of_step(desk, who, after, errors=(error,)), status=422)
