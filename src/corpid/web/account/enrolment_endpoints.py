"""Endpoints of enrolment: a page for each step, and the QR code.

A POST that claims its step moves on with 303; a later one is redirected to the current page (D15), and one that is not
accepted to the same page, which shows it again (D73). Source: D34, D46
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows import encrypted_values
from corpid.flows.account import enrolment_steps, enrolments
from corpid.flows.account.enrolments import EnrolmentStopped, InvitationExpired, NotHere, OpenElsewhere
from corpid.flows.account.links import EnrolmentStep
from corpid.flows.authentication import browsers
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.authentication.throttle import Repeated, SentForm, Throttled
from corpid.flows.directory import acceptance
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.oauth import parameters
from corpid.web.account import app_key, enrolment_pages
from corpid.web.context import ENTERED, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.layout import ViewPart
from corpid.web.pages.responses import (
    COOKIE_SECONDS,
    add_cookie,
    page_response,
    reader_language,
    require_own_form,
    see_other,
    throttled_page,
)
from corpid.web.pages.views import in_frame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.enrolments import Enrolment, EnrolmentContext
    from corpid.flows.request_context import RequestContext
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError

    Submit = Callable[..., Awaitable[Enrolment]]

FIELDS: Final = frozenset(
    {"form_token", "step", ENTERED, "user_name", "name", "password", "code", "passkey", "kept", "decision"}
)
_PICTURE: Final = "qr.svg"
_FINISH: Final = "finish"
_EXTEND: Final = "extend"
_TYPED: Final = ("name", "user_name")
"""what a page shows again"""
_TYPED_CHARACTERS: Final = 400


class _Action(ViewPart, frozen=True, kw_only=True):
    """A form's submission, and the field of its errors."""

    submit: Submit | None
    """None: every step is done, and only the result has to be written"""
    takes: str = ""
    """the form's field, and the keyword for its value; empty: there is nothing to fill in"""
    also: str = ""
    """a second field"""
    beside: str | None = None
    """the field of its errors, empty for the page as a whole; None: the one that it takes"""

    async def submitted(self, context: RequestContext, visit: EnrolmentContext, form: Mapping[str, str]) -> Enrolment:
        if self.submit is None:
            return visit.enrolment
        given = {field: form.get(field, "") for field in (self.takes, self.also) if field}
        return await self.submit(context, visit, **given)

    def wrong(self, sentence: Phrase, *, field: str = "") -> FieldError:
        return field or (self.takes if self.beside is None else self.beside), sentence


ACTIONS: Final[Mapping[tuple[EnrolmentStep | None, str], _Action]] = {
    (EnrolmentStep.PROFILE, "profile"): _Action(submit=enrolment_steps.submit_profile, takes="name", also="user_name"),
    (EnrolmentStep.PROVE_PASSWORD, "password"): _Action(submit=enrolment_steps.prove_password, takes="password"),
    (EnrolmentStep.PROVE_SECOND_FACTOR, "code"): _Action(submit=enrolment_steps.prove_code, takes="code"),
    (EnrolmentStep.PROVE_SECOND_FACTOR, "passkey"): _Action(submit=enrolment_steps.prove_passkey, takes="passkey"),
    (EnrolmentStep.FIRST, "password"): _Action(submit=enrolment_steps.submit_password, takes="password"),
    (EnrolmentStep.FIRST, "passkey"): _Action(submit=enrolment_steps.submit_passkey, takes="passkey"),
    (EnrolmentStep.PASSWORD, "password"): _Action(submit=enrolment_steps.submit_password, takes="password"),
    (EnrolmentStep.SECOND_FACTOR, "code"): _Action(submit=enrolment_steps.submit_app, takes="code"),
    (EnrolmentStep.SECOND_FACTOR, "passkey"): _Action(submit=enrolment_steps.submit_passkey, takes="passkey"),
    (EnrolmentStep.SECOND_FACTOR, "way"): _Action(submit=enrolment_steps.choose_way, takes="decision", beside=""),
    (EnrolmentStep.MAILED_CODE, "code"): _Action(submit=enrolment_steps.submit_mailed_code, takes="code"),
    (EnrolmentStep.MAILED_CODE, "way"): _Action(submit=enrolment_steps.choose_way, takes="decision", beside=""),
    (EnrolmentStep.RECOVERY_CODES, "codes"): _Action(
        submit=enrolment_steps.submit_codes, takes="kept", also="decision"
    ),
    **{(step, _EXTEND): _Action(submit=enrolments.extend) for step in (*EnrolmentStep, None)},
    (None, _FINISH): _Action(submit=None),
}
"""what can be submitted at which step"""


async def enrolment(request: Request, web: WebContext) -> Response:
    """Every address below /enrolment/{enrolment}: page, forms, QR code.

    Source: D15, D34
    """
    provider = web.provider
    context = await page_request(request, provider)
    enrolment_id, _, action = str(request.path_params["rest"]).partition("/")
    await provider.registry_cache.refuse_maintenance(context.now)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    try:
        visit = await enrolments.load_own_enrolment(context, enrolment_id, browser.browser_id if browser else "")
        if request.method == "POST":
            return await _post(request, web, context, visit, action)
        if action == _PICTURE and visit.enrolment.step is EnrolmentStep.SECOND_FACTOR:
            return app_key.picture(enrolment_pages.app_link(web, context, visit))
        if action:
            return to_enrolment(web, enrolment_id)
        kept = None
        if request.scope["query_string"] and ENTERED in request.query_params:
            kept = await encrypted_values.read_form(context, enrolments.form_place(visit.enrolment))
        return await _page(request, web, context, visit, kept)
    except StaleStep:
        return to_enrolment(web, enrolment_id)
    except (NotHere, OpenElsewhere, EnrolmentStopped) as ending:
        return ended(request, web, ending)


async def _page(
    request: Request, web: WebContext, context: RequestContext, visit: EnrolmentContext, kept: StoredForm | None
) -> Response:
    """The page of the step, which may mark the browser.

    It shows what was kept of a form that was not accepted. Nobody has signed in here, so that the browser itself is not
    stored yet.
    """
    view = await enrolment_pages.of_step(
        web, context, replace(visit, typed=kept.fields) if kept else visit, errors=kept.errors if kept else ()
    )
    if kept is not None and view.frame.here:
        view = in_frame(view, here=with_parameter(view.frame.here), entered="1")
    answer = page_response(request, web.renderer, view)
    if visit.enrolment.finished and visit.enrolment.passkey is not None:
        add_cookie(answer, web, web.passkey_cookie_name, "created", seconds=COOKIE_SECONDS)
    return answer


def to_enrolment(web: WebContext, enrolment_id: str) -> Response:
    """Redirect to the page of an enrolment (D15)."""
    return see_other(enrolment_pages.enrolment_path(web, enrolment_id))


def _to_entered(web: WebContext, enrolment_id: str) -> Response:
    return see_other(with_parameter(enrolment_pages.enrolment_path(web, enrolment_id)))


def ended(request: Request, web: WebContext, ending: NotHere | OpenElsewhere | EnrolmentStopped) -> Response:
    """The page of a link or enrolment that cannot continue.

    Source: D34, D45
    """
    if isinstance(ending, InvitationExpired):
        return page_response(request, web.renderer, enrolment_pages.expired(ending.entity.name), status=410)
    view, status = {
        NotHere: (enrolment_pages.gone, 404),
        OpenElsewhere: (enrolment_pages.other_browser, 403),
        EnrolmentStopped: (enrolment_pages.stopped, 403),
    }[type(ending)]
    return page_response(request, web.renderer, view(), status=status)


async def _post(
    request: Request, web: WebContext, context: RequestContext, visit: EnrolmentContext, action: str
) -> Response:
    at = visit.enrolment
    body = await form_bytes(request)
    form = parameters.parse(body, FIELDS)
    require_own_form(context, form, at.browser_id, at.enrolment_id)
    taken = ACTIONS.get((at.step, action))
    if at.finished or taken is None or form.get("step") != enrolments.step_name(at):
        return to_enrolment(web, at.enrolment_id)
    sent = SentForm(place=enrolments.form_place(at), digest=sha256(body).digest())
    try:
        moved = await taken.submitted(context, replace(visit, sent=sent), form)
    except Throttled as slowed:
        return throttled_page(await _again(request, web, context, visit, taken.wrong(slowed.sentence), form), slowed)
    except InvalidInput as rejected:
        wrong = taken.wrong(rejected.sentence, field=rejected.field)
        if action == _EXTEND:
            await encrypted_values.add_error(context, sent.place, wrong)
        else:
            typed: dict[str, str] = {name: form[name][:_TYPED_CHARACTERS] for name in _TYPED if name in form}
            await encrypted_values.save_form(
                context, sent.place, StoredForm(fields=typed, errors=(wrong,), digest=sent.digest)
            )
        return _to_entered(web, at.enrolment_id)
    except Repeated:
        return _to_entered(web, at.enrolment_id)
    if action == _EXTEND and form.get(ENTERED):
        return _to_entered(web, at.enrolment_id)
    if moved.step is None and action != _EXTEND:
        after = await enrolments.load_own_enrolment(context, at.enrolment_id, at.browser_id)
        if after.invited is None:
            await enrolment_steps.finish(context, after)
        else:
            await acceptance.finish_enrolment(context, after, language=reader_language(request, web.renderer).tag)
    return to_enrolment(web, at.enrolment_id)


async def _again(
    request: Request,
    web: WebContext,
    context: RequestContext,
    visit: EnrolmentContext,
    error: FieldError,
    typed: Mapping[str, str],
) -> Response:
    """The page of an attempt that came too early.

    Raises StaleStep if another request moved on.
    """
    before = visit.enrolment
    after = replace(await enrolments.load_own_enrolment(context, before.enrolment_id, before.browser_id), typed=typed)
    if after.enrolment.serial != before.serial:
        raise StaleStep
    return page_response(request, web.renderer, await enrolment_pages.of_step(web, context, after, errors=(error,)))
