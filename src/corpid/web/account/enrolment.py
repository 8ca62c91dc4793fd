"""Enrolment: a page for each step, its forms, and the QR code.

A POST that claims its step moves on with 303; a later one is redirected to the current page (D15), and one that is not
accepted to the same page, which shows it again (D73). Source: D34, D46
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

from corpid.flows import encrypted_values
from corpid.flows.account import enrolment_steps, enrolments
from corpid.flows.account.enrolments import (
    Enrolment,
    EnrolmentContext,
    EnrolmentStopped,
    HelpLapsed,
    InvitationExpired,
    NotHere,
    OpenElsewhere,
)
from corpid.flows.account.links import PURPOSES, EnrolmentStep, Purpose, chosen_steps
from corpid.flows.authentication import browsers, interactions
from corpid.flows.authentication.own_pages import ACCOUNT_PATH, PORTAL_PATH
from corpid.flows.authentication.throttle import Repeated, SentForm, Throttled
from corpid.flows.directory.acceptance import InvitationAnswer, find_answer_of, finish_enrolment
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.authentication.sign_in import SecondFactorMethod, StaleStep
from corpid.rules.oauth import parameters
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.account import factors
from corpid.web.context import ENTERED, WebContext, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages.components import (
    BARE,
    BoldName,
    ButtonForm,
    Disclosure,
    Field,
    FieldError,
    Form,
    FormView,
    Frame,
    Link,
    Page,
    Paragraph,
    Part,
    PasskeyForm,
    QuietButtons,
    View,
    ViewPart,
    in_frame,
    time_limit,
)
from corpid.web.pages.responses import (
    COOKIE_SECONDS,
    add_cookie,
    page_response,
    reader_language,
    require_own_form,
    see_other,
    throttled_page,
)
from corpid.web.pages.views import Problem, second_factor_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import FactorLink
    from corpid.rules.directory.records import User

    Submit = Callable[..., Awaitable[Enrolment]]


class TypeLinkCode(FormView, frozen=True, kw_only=True):
    """The code of a link, from the fragment or typed.

    Fields: code. Followed, which the script sets.
    """

    template: ClassVar[str] = "enrolment/type_link_code.html"
    heading: ClassVar[Phrase] = phrase("Enter your code")

    typed: str = ""
    """kept after an error"""


PATH: Final = "/enrolment/"
_CONTINUE: Final = phrase("Continue")
_USER_NAME: Final = phrase("User name")
_SET_UP_PASSKEY: Final = phrase("Set up a passkey")
_NO_MORE_CODES: Final = phrase(
    "We cannot send any more codes here. Set up an authenticator app, or ask for a new link."
)
_APP_INSTEAD: Final = (SecondFactorMethod.APP.value, phrase("Set up an authenticator app"))
_SECOND_STEP: Final = phrase(
    "After your password we ask for a second step, so that nobody can sign in with your password alone."
)
_NO_MORE_TIME: Final = phrase("You cannot get more time. If you run out, ask for a new link.")
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

    async def submitted(self, context: RequestContext, loaded: EnrolmentContext, form: Mapping[str, str]) -> Enrolment:
        if self.submit is None:
            return loaded.enrolment
        given = {field: form.get(field, "") for field in (self.takes, self.also) if field}
        return await self.submit(context, loaded, **given)

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


def enrolment_path(web: WebContext, enrolment_id: str, action: str = "") -> str:
    """The address path of an enrolment's page, or of an action."""
    return f"{web.base_path}{PATH}{enrolment_id}" + (f"/{action}" if action else "")


async def serve_enrolment(request: Request, web: WebContext) -> Response:
    """Every address below /enrolment/{enrolment}: page, forms, QR code.

    Source: D15, D34
    """
    provider = web.provider
    context = await page_request(request, provider)
    enrolment_id, _, action = str(request.path_params["rest"]).partition("/")
    await provider.registry_cache.refuse_maintenance(context.now)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    try:
        loaded = await enrolments.load_own_enrolment(context, enrolment_id, browser.browser_id if browser else "")
        if request.method == "POST":
            return await _post(request, web, context, loaded, action)
        if action == _PICTURE and loaded.enrolment.step is EnrolmentStep.SECOND_FACTOR:
            return factors.draw_qr_code(app_link(web, context, loaded))
        if action:
            return to_enrolment(web, enrolment_id)
        kept = None
        if request.scope["query_string"] and ENTERED in request.query_params:
            kept = await encrypted_values.read_form(context, enrolments.form_place(loaded.enrolment))
        return await _show_step(request, web, context, loaded, kept)
    except StaleStep:
        return to_enrolment(web, enrolment_id)
    except (NotHere, OpenElsewhere, EnrolmentStopped) as ending:
        return show_ending(request, web, ending)


async def _post(
    request: Request, web: WebContext, context: RequestContext, loaded: EnrolmentContext, action: str
) -> Response:
    at = loaded.enrolment
    body = await form_bytes(request)
    form = parameters.parse(body, FIELDS)
    require_own_form(context, form, at.browser_id, at.enrolment_id)
    taken = ACTIONS.get((at.step, action))
    if at.finished or taken is None or form.get("step") != enrolments.step_name(at):
        return to_enrolment(web, at.enrolment_id)
    sent = SentForm(place=enrolments.form_place(at), digest=sha256(body).digest())
    try:
        moved = await taken.submitted(context, replace(loaded, sent=sent), form)
    except Throttled as slowed:
        return throttled_page(
            await _show_again(request, web, context, loaded, taken.wrong(slowed.sentence), form), slowed
        )
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
            await finish_enrolment(context, after, language=reader_language(request, web.renderer).tag)
    return to_enrolment(web, at.enrolment_id)


async def _show_step(
    request: Request, web: WebContext, context: RequestContext, loaded: EnrolmentContext, kept: StoredForm | None
) -> Response:
    """The page of the step, which may mark the browser.

    It shows what was kept of a form that was not accepted. Nobody has signed in here, so that the browser itself is not
    stored yet.
    """
    view = await build_page(
        web, context, replace(loaded, typed=kept.fields) if kept else loaded, errors=kept.errors if kept else ()
    )
    if kept is not None and view.frame.here:
        view = in_frame(view, here=with_parameter(view.frame.here), entered="1")
    answer = page_response(request, web.renderer, view)
    if loaded.enrolment.finished and loaded.enrolment.passkey is not None:
        add_cookie(answer, web, web.passkey_cookie_name, "created", seconds=COOKIE_SECONDS)
    return answer


async def _show_again(
    request: Request,
    web: WebContext,
    context: RequestContext,
    loaded: EnrolmentContext,
    error: FieldError,
    typed: Mapping[str, str],
) -> Response:
    """The page of an attempt that came too early.

    Raises StaleStep if another request moved on.
    """
    before = loaded.enrolment
    after = replace(await enrolments.load_own_enrolment(context, before.enrolment_id, before.browser_id), typed=typed)
    if after.enrolment.serial != before.serial:
        raise StaleStep
    return page_response(request, web.renderer, await build_page(web, context, after, errors=(error,)))


def to_enrolment(web: WebContext, enrolment_id: str) -> Response:
    """Redirect to the page of an enrolment (D15)."""
    return see_other(enrolment_path(web, enrolment_id))


def _to_entered(web: WebContext, enrolment_id: str) -> Response:
    return see_other(with_parameter(enrolment_path(web, enrolment_id)))


def show_ending(request: Request, web: WebContext, ending: NotHere | OpenElsewhere | EnrolmentStopped) -> Response:
    """The page of a link or enrolment that cannot continue.

    Source: D34, D45
    """
    if isinstance(ending, InvitationExpired):
        return page_response(request, web.renderer, expired_page(ending.entity.name), status=410)
    status, view = ENDINGS[type(ending)]
    return page_response(request, web.renderer, view, status=status)


# --- pages of steps


def beginning_page(
    web: WebContext, context: RequestContext, link: FactorLink, user: User, *, action: str, form_token: str
) -> View:
    """The page of an opened link (D46)."""
    purpose, number = PURPOSES[link.purpose], len(PURPOSES[link.purpose].steps)
    steps = counted(
        number,
        "This takes {count} step. Nothing changes until you finish.",
        "This takes {count} steps. Nothing changes until you finish.",
    )
    if _ends_early(context, purpose):
        steps = phrase(
            "This takes 1 step with a passkey, or {count} with a password. Nothing changes until you finish.",
            count=number,
        )
    not_yours = phrase("If this is not your user name, close this page. The link was meant for somebody else.")
    return Page(
        frame=Frame(form_token=form_token, under_way=True),
        action=action,
        heading=purpose.heading,
        parts=(
            purpose.introduction(user.name, web.provider.policy.name),
            phrase("Your user name is {user_name}.", user_name=BoldName(user.user_name)),
            Paragraph(steps, look="hint"),
            Form(button=_CONTINUE),
            Paragraph(not_yours, look="hint"),
        ),
    )


def _ends_early(context: RequestContext, purpose: Purpose) -> bool:
    """Return whether a passkey, which replaces both factors, can come first."""
    return context.provider.policy.takes_passkeys and chosen_steps(purpose.steps, passkey_first=True) != purpose.steps


def _frame(web: WebContext, context: RequestContext, loaded: EnrolmentContext) -> Frame:
    enrolment, provider = loaded.enrolment, web.provider
    steps, more = enrolment.steps, ButtonForm(action=enrolment_path(web, enrolment.enrolment_id, "extend"))
    shortens = enrolment.step in (EnrolmentStep.PROFILE, EnrolmentStep.FIRST) and _ends_early(
        context, PURPOSES[enrolment.purpose]
    )
    return Frame(
        step=(steps.index(enrolment.step) + 1, len(steps)) if enrolment.step and not shortens else None,
        step_name=enrolments.step_name(enrolment),
        form_token=interactions.form_token(context, enrolment.browser_id, enrolment.enrolment_id),
        limit=time_limit(
            enrolment.expires_at,
            now=context.now,
            zone=provider.policy.timezone,
            more=more if loaded.extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        here=enrolment_path(web, enrolment.enrolment_id),
        under_way=True,
    )


class _StepContext(NamedTuple):
    """A step of an enrolment, with frame and errors of its page."""

    web: WebContext
    context: RequestContext
    loaded: EnrolmentContext
    frame: Frame
    errors: tuple[FieldError, ...]

    def path(self, action: str) -> str:
        """The address path of an action of this enrolment."""
        return enrolment_path(self.web, self.loaded.enrolment.enrolment_id, action)

    def build_page(self, heading: Phrase, action: str, *parts: Part) -> Page:
        """The page, whose main form sends `action`."""
        return Page(frame=self.frame, action=self.path(action), heading=heading, parts=parts, errors=self.errors)


async def build_page(
    web: WebContext, context: RequestContext, loaded: EnrolmentContext, *, errors: tuple[FieldError, ...] = ()
) -> View:
    """The page of an enrolment's step, and the one after its end."""
    if loaded.enrolment.finished:
        return await _finished(web, context, loaded)
    return await _PAGES[loaded.enrolment.step](_StepContext(web, context, loaded, _frame(web, context, loaded), errors))


def _passkey(
    at: _StepContext, options: str, label: Phrase, text: Phrase, *, kind: Literal["create", "get"] = "create",
    alone: bool = False,
) -> PasskeyForm | None:  # fmt: skip
    """The form of a passkey; None without `options` for one."""
    if not options:
        return None
    return PasskeyForm(
        action=at.path("passkey"),
        options=options,
        kind=kind,
        label=label,
        text=text,
        other="" if alone else "after",
    )


def app_link(web: WebContext, context: RequestContext, loaded: EnrolmentContext) -> str:
    """The content of the QR code (D45)."""
    secret = enrolments.app_secret(context, loaded.enrolment)
    return factors.otpauth_link(web, loaded.user, secret)


async def _profile(at: _StepContext) -> View:
    """The names that were typed, else those that the entity wrote."""
    enrolment, given = at.loaded.enrolment, at.loaded.invited.membership if at.loaded.invited else None
    called = {"name": given.name, "user_name": given.user_name} if given else {}
    chosen = {"name": enrolment.name, "user_name": enrolment.user_name} if enrolment.user_name else called
    taken = () if at.errors or not enrolment.name_taken else (("user_name", enrolment_steps.NAME_TAKEN),)
    typed = at.loaded.typed or chosen
    name, user_name = (typed.get(each, "")[:_TYPED_CHARACTERS] for each in ("name", "user_name"))
    hint = phrase(
        "You sign in with this, and {entity} sees it. Your e-mail address is a good choice.",
        entity=at.loaded.invited.entity.name if at.loaded.invited else "",
    )
    fields = (
        Field(name="name", label=phrase("Your name"), kind="name", value=name),
        Field(name="user_name", label=_USER_NAME, hint=hint, kind="user name", value=user_name),
    )
    return at._replace(errors=at.errors or taken).build_page(
        phrase("Your name and user name"), "profile", Form(parts=fields, button=_CONTINUE)
    )


async def _first(at: _StepContext) -> View:
    text = phrase(
        "With a passkey you sign in with your fingerprint, your face or your device's PIN. You do not need a password or "
        "a code."
    )
    passkey = _passkey(at, await enrolment_steps.passkey_options(at.context, at.loaded), _SET_UP_PASSKEY, text)
    return at.build_page(
        phrase("Choose how you sign in") if passkey else phrase("Choose a password"),
        "password",
        passkey,
        factors.choose_password(at.loaded.user.user_name, secondary=passkey is not None),
    )


async def _password(at: _StepContext) -> View:
    return at.build_page(phrase("Choose a new password"), "password", factors.choose_password(at.loaded.user.user_name))


async def _second_factor(at: _StepContext) -> View:
    options = await enrolment_steps.passkey_options(at.context, at.loaded)
    text = phrase("With a passkey you sign in with your fingerprint, your face or your device's PIN.")
    passkey = _passkey(at, options, _SET_UP_PASSKEY, text)
    secret, picture = enrolments.app_secret(at.context, at.loaded.enrolment), at.path(_PICTURE)
    by_email = QuietButtons(buttons=(("email", phrase("Use codes by e-mail instead")),), action=at.path("way"))
    return at.build_page(
        factors.SET_UP_APP,
        "code",
        _SECOND_STEP,
        passkey,
        *factors.set_up_app(at.web, at.loaded.user, secret, picture, secondary=passkey is not None),
        by_email if enrolment_steps.email_offered(at.context, at.loaded) else None,
    )


async def _mailed_code(at: _StepContext) -> View:
    page, way = enrolment_steps.mailed_code_request(at.context, at.loaded), at.path("way")
    heading, wanted = second_factor_form(page, way)
    hint = wanted.hint if page.under_way or page.more else _NO_MORE_CODES
    code = Form(parts=(Field(name="code", label=phrase("Code"), hint=hint, kind="code"),), button=_CONTINUE)
    send = Form(button=phrase("Send the code"), decision="email", action=way)
    others = QuietButtons(buttons=(*wanted.ways, _APP_INSTEAD), action=way)
    if wanted.label:
        return at.build_page(heading, "code", code, others)
    # The page no longer has the field that an error about the code would link to.
    errors = tuple(("", text) for _, text in at.errors)
    return at._replace(errors=errors).build_page(heading, "code", hint, send if wanted.send else None, others)


async def _codes(at: _StepContext) -> View:
    readable = enrolments.codes_are_readable(at.context, at.loaded.enrolment)
    codes = enrolments.codes(at.context, at.loaded.enrolment) if readable else ()
    left = await at.context.provider.registry.factors.recovery_codes_left(at.loaded.user.user_id)
    return at.build_page(factors.SAVE_CODES, "codes", *factors.keep_codes(codes, replaces=left > 0))


async def _prove_password(at: _StepContext) -> View:
    hint = phrase("Your current password.")
    fields = (
        Field(name="user_name", label=_USER_NAME, kind="own user name", value=at.loaded.user.user_name),
        Field(name="password", label=phrase("Password"), hint=hint, kind="password"),
    )
    return at.build_page(
        phrase("Enter your password"),
        "password",
        Form(parts=fields, button=_CONTINUE),
        _only_the_operator(at, phrase("I have also forgotten my password")),
    )


async def _prove_second_factor(at: _StepContext) -> View:
    takes_codes = await enrolment_steps.has_codes(at.context, at.loaded.user)
    options, text = await enrolment_steps.proof_options(at.context, at.loaded), phrase("Use your account's passkey.")
    passkey = _passkey(at, options, phrase("Use a passkey"), text, kind="get", alone=not takes_codes)
    hint = phrase("From your authenticator app, or one of your recovery codes.")
    code = Form(
        parts=(Field(name="code", label=phrase("Code"), hint=hint, kind="any code"),),
        button=_CONTINUE,
        secondary=passkey is not None,
    )
    lost = phrase("I have lost all of these") if takes_codes else phrase("I have lost my passkey")
    return at.build_page(
        phrase("Confirm it is you"), "code", passkey, code if takes_codes else None, _only_the_operator(at, lost)
    )


def _only_the_operator(at: _StepContext, summary: Phrase) -> Disclosure:
    text = phrase(
        "Only the operator of {provider_name} can help. Ask them for a new invitation.",
        provider_name=at.web.provider.policy.name,
    )
    return Disclosure(summary=summary, look="help", parts=(text,))


async def _save(at: _StepContext) -> View:
    return at.build_page(
        phrase("One last step"),
        _FINISH,
        phrase("You have finished every step, but we could not save your changes. Try again."),
        Form(button=phrase("Save")),
    )


_PAGES: Final[Mapping[EnrolmentStep | None, Callable[[_StepContext], Awaitable[View]]]] = {
    EnrolmentStep.PROFILE: _profile,
    EnrolmentStep.FIRST: _first,
    EnrolmentStep.PASSWORD: _password,
    EnrolmentStep.SECOND_FACTOR: _second_factor,
    EnrolmentStep.MAILED_CODE: _mailed_code,
    EnrolmentStep.RECOVERY_CODES: _codes,
    EnrolmentStep.PROVE_PASSWORD: _prove_password,
    EnrolmentStep.PROVE_SECOND_FACTOR: _prove_second_factor,
    None: _save,
}


async def _finished(web: WebContext, context: RequestContext, loaded: EnrolmentContext) -> View:
    if PURPOSES[loaded.enrolment.purpose].joins and (done := await find_answer_of(context, loaded.enrolment)):
        return answered_page(done, base_path=web.base_path, has_portal=web.access["manage"].enabled)
    account = web.base_path + ACCOUNT_PATH
    older = await enrolment_steps.passkeys_from_before(context, loaded)
    names = tuple(each.name for each in older)
    left = phrase(
        "These passkeys still open your account: {names}. If one of them is on a device that you have lost, remove it.",
        names=names,
    )
    return Problem(
        frame=Frame(),
        heading=PURPOSES[loaded.enrolment.purpose].done,
        paragraphs=(
            *((left,) if older else ()),
            phrase("If you were signing in on a page that is still open, go back to it and continue there."),
            phrase("Otherwise, go to the service that you want to use and sign in. You can close this page."),
        ),
        back=Link(url=f"{account}/passkeys", text=phrase("Check your passkeys"))
        if older
        else Link(url=account, text=phrase("Sign in to your account")),
    )


def answered_page(done: InvitationAnswer, *, base_path: str, has_portal: bool) -> View:
    """The page after an answer to an invitation (D60)."""
    if done.outcome == "declined":
        return _ending(
            phrase("You have declined"),
            phrase("Nothing has changed for you. You can close this page."),
            phrase("If you change your mind, ask {entity} to invite you again.", entity=done.entity),
        )
    to_account = Link(
        url=base_path + ACCOUNT_PATH, text=phrase("Sign in to your account") if done.new else phrase("Your account")
    )
    to_portal = Link(url=base_path + PORTAL_PATH, text=phrase("Go to the administration"))
    administers = done.administers and has_portal
    return Problem(
        frame=BARE,
        heading=phrase("You can now act for {entity}", entity=done.entity),
        paragraphs=(
            phrase("You have accepted the invitation, and your sign-in is set up.")
            if done.new
            else phrase("You have accepted the invitation."),
            phrase("You also administer {entity}: you decide who may act for it.", entity=done.entity)
            if administers
            else phrase(
                "The administrators of {entity} decide which services you can use. This may take some time. Your "
                "account shows your access.",
                entity=done.entity,
            ),
            phrase(
                "Go to the service that you want to use and sign in. You can choose {entity} there.", entity=done.entity
            ),
        ),
        back=to_portal if administers else to_account,
    )


def expired_page(entity: str) -> View:
    """The page of an invitation that was sent too long ago (D60)."""
    again = phrase("Ask {entity} to send it again. The new e-mail has a new link.", entity=entity)
    return _ending(phrase("This invitation has expired"), again)


def _ending(heading: Phrase, *paragraphs: Phrase) -> Problem:
    return Problem(frame=BARE, heading=heading, paragraphs=paragraphs)


_NOT_HERE: Final = phrase("This link no longer works")
ENDINGS: Final[Mapping[type[Exception], tuple[int, Problem]]] = {
    NotHere: (
        404,
        _ending(
            _NOT_HERE,
            phrase(
                "A link works once, for a limited time, and ends when your sign-in is changed in another way. Check that "
                "the address is complete."
            ),
            phrase("If you have already used it, sign in as usual. If not, ask the person who sent it for a new one."),
        ),
    ),
    HelpLapsed: (
        410,
        _ending(
            _NOT_HERE,
            phrase("Your account, or your membership of the organisation, has changed since the link was sent."),
            phrase("Sign in as usual. If you cannot, ask the operator of this service for help."),
        ),
    ),
    OpenElsewhere: (
        403,
        _ending(
            phrase("You started this in another browser"),
            phrase("Continue in the browser or app where you first opened the link. Nothing has changed yet."),
            phrase(
                "If you have used only this browser, allow cookies for this site and open the link again. If that does not "
                "help, ask for a new link."
            ),
        ),
    ),
    EnrolmentStopped: (
        403,
        _ending(
            phrase("We stopped this for your security"),
            phrase("The code was wrong too many times. Nothing has changed, and the link no longer works."),
            phrase("Ask the person who sent you this link for a new one."),
        ),
    ),
}
"""status and page of a link that is not valid (any more), of one of an administrator that would be refused by now (D69),
of an enrolment in another browser or without cookies (D34), and of one with too many wrong codes (D45)"""
