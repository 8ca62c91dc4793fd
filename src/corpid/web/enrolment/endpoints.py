"""Enrolment in a browser: one page for each step after the link, and the QR code (D34, D46).

A POST that claims its step moves on with 303; who comes too late is sent to the page that is current (D15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows import browsers
from corpid.flows.enrolment import enrolments, mailbox, proving, setting
from corpid.flows.enrolment.enrolments import NotHere, OpenElsewhere, Stopped
from corpid.flows.enrolment.steps import Step
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.flows.throttle import Throttled
from corpid.protocol import parameters
from corpid.web.answers import require_own_form, see_other, throttled
from corpid.web.enrolment import pages
from corpid.web.factors import app_key
from corpid.web.requests import caller, cookie, form_bytes
from corpid.web.showing import show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, EnrolmentVisit
    from corpid.flows.provider import Provider
    from corpid.texts import Phrase
    from corpid.web.endpoints import Desk
    from corpid.web.frame import FieldError

    Submit = Callable[..., Awaitable[Enrolment]]

FIELDS: Final = frozenset({"form_token", "step", "user_name", "password", "code", "passkey", "kept", "decision"})
_PICTURE: Final = "qr.svg"
_FINISH: Final = "finish"
_EXTEND: Final = "extend"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    """What a form submits."""

    submit: Submit | None
    """None: every step is done, and what they brought is to be written"""
    takes: str = ""
    """the form's field, and the keyword for its value; empty: there is nothing to fill in"""
    beside: str | None = None
    """the field that errors stand beside, empty for the page as a whole; None: the one that it takes"""

    async def submitted(
        self, provider: Provider, who: Caller, visit: EnrolmentVisit, form: Mapping[str, str]
    ) -> Enrolment:
        if self.submit is None:
            return visit.enrolment
        given = {self.takes: form.get(self.takes, "")} if self.takes else {}
        return await self.submit(provider, who, visit, **given)

    def wrong(self, sentence: Phrase) -> FieldError:
        return self.takes if self.beside is None else self.beside, sentence


ACTIONS: Final[Mapping[tuple[Step | None, str], _Action]] = {
    (Step.PROVE_PASSWORD, "password"): _Action(submit=proving.submit_password, takes="password"),
    (Step.PROVE_SECOND_FACTOR, "code"): _Action(submit=proving.submit_code, takes="code"),
    (Step.PROVE_SECOND_FACTOR, "passkey"): _Action(submit=proving.submit_passkey, takes="passkey"),
    (Step.FIRST, "password"): _Action(submit=setting.submit_password, takes="password"),
    (Step.FIRST, "passkey"): _Action(submit=setting.submit_passkey, takes="passkey"),
    (Step.PASSWORD, "password"): _Action(submit=setting.submit_password, takes="password"),
    (Step.SECOND_FACTOR, "code"): _Action(submit=setting.submit_app, takes="code"),
    (Step.SECOND_FACTOR, "passkey"): _Action(submit=setting.submit_passkey, takes="passkey"),
    (Step.SECOND_FACTOR, "way"): _Action(submit=mailbox.choose_way, takes="decision", beside=""),
    (Step.MAILED_CODE, "code"): _Action(submit=mailbox.submit_code, takes="code"),
    (Step.MAILED_CODE, "way"): _Action(submit=mailbox.choose_way, takes="decision", beside=""),
    (Step.RECOVERY_CODES, "codes"): _Action(submit=setting.submit_codes, takes="kept"),
    **{(step, _EXTEND): _Action(submit=enrolments.extend) for step in (*Step, None)},
    (None, _FINISH): _Action(submit=None),
}
"""what can be submitted at which step"""


async def enrolment(request: Request, desk: Desk) -> Response:
    """Every address below /enrolment/{enrolment}: the page, its forms, and the QR code (D15, D34)."""
    provider, who = desk.provider, caller(request, desk.provider)
    enrolment_id, _, action = str(request.path_params["rest"]).partition("/")
    await provider.live.refuse_maintenance(who.now)
    browser = await browsers.recognise(provider, cookie(request, provider), now=who.now)
    try:
        visit = await enrolments.sit(provider, who, enrolment_id, browser.browser_id if browser else "")
        if request.method == "POST":
            return await _post(request, desk, who, visit, action)
        if action == _PICTURE and visit.enrolment.step is Step.SECOND_FACTOR:
            return app_key.picture(pages.app_link(desk, visit))
        if action:
            return to_enrolment(desk, enrolment_id)
        return show(request, desk.renderer, await pages.of_step(desk, who, visit))
    except StaleStep:
        return to_enrolment(desk, enrolment_id)
    except (NotHere, OpenElsewhere, Stopped) as ending:
        return ended(request, desk, ending)


def to_enrolment(desk: Desk, enrolment_id: str) -> Response:
    """On to the page of an enrolment (D15)."""
    return see_other(pages.place(desk, enrolment_id))


def ended(request: Request, desk: Desk, ending: NotHere | OpenElsewhere | Stopped) -> Response:
    """The page that says why a link or an enrolment does not go on (D34, D45)."""
    view, status = {
        NotHere: (pages.gone, 404),
        OpenElsewhere: (pages.other_browser, 403),
        Stopped: (pages.stopped, 403),
    }[type(ending)]
    return show(request, desk.renderer, view(), status=status)


async def _post(request: Request, desk: Desk, who: Caller, visit: EnrolmentVisit, action: str) -> Response:
    provider, at = desk.provider, visit.enrolment
    form = parameters.parse(await form_bytes(request), FIELDS)
    require_own_form(provider, form, at.browser_id, at.enrolment_id)
    taken = ACTIONS.get((at.step, action))
    if at.finished or taken is None or form.get("step") != pages.step_name(at):
        return to_enrolment(desk, at.enrolment_id)
    try:
        moved = await taken.submitted(provider, who, visit, form)
    except Throttled as slowed:
        return throttled(await _again(request, desk, who, visit, taken.wrong(slowed.sentence)), slowed)
    except Rejected as rejected:
        return await _again(request, desk, who, visit, taken.wrong(rejected.sentence))
    if moved.step is None and action != _EXTEND:
        after = await enrolments.sit(provider, who, at.enrolment_id, at.browser_id)
        await setting.finish(provider, who, after)
    return to_enrolment(desk, at.enrolment_id)


async def _again(request: Request, desk: Desk, who: Caller, visit: EnrolmentVisit, error: FieldError) -> Response:
    """The same page with what is wrong, unless another request has moved on meanwhile."""
    before = visit.enrolment
    after = await enrolments.sit(desk.provider, who, before.enrolment_id, before.browser_id)
    if after.enrolment.serial != before.serial:
        raise StaleStep
    return show(request, desk.renderer, await pages.of_step(desk, who, after, errors=(error,)), status=422)
