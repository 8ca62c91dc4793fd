"""Endpoints of sign-in and sign-out: pages, steps, exits.

A sign-in that its browser holds is stored at its first page. A POST that claims its step is redirected with 303. A late
request, or one with an old cookie or form, is redirected to the page that is current. Source: D15, D34, D35
"""

from __future__ import annotations

from asyncio import sleep
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows import encrypted_values
from corpid.flows.authentication import (
    browsers,
    completion,
    interaction_context,
    interactions,
    own_pages,
    passkeys,
    sessions,
    sign_in,
)
from corpid.flows.authentication.browsers import Browser, FormHandled, SubmittedForm
from corpid.flows.authentication.completion import AlreadyCompleted, OtherBrowser
from corpid.flows.authentication.entity_selection import QUERY_CHARACTERS
from corpid.flows.authentication.own_pages import PATHS, SIGN_OUT_PATH
from corpid.flows.authentication.sign_in import SignInStopped
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.sign_in import ClosureReason, Interaction, SignInEvent, StaleStep
from corpid.rules.characters import typed_code
from corpid.rules.oauth import parameters
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Reason
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.authentication import pages
from corpid.web.authentication.pages import AT_ONCE, Retry, final_frame
from corpid.web.context import ARRIVE, ENTERED, WebContext, interaction_path, with_parameter
from corpid.web.http.requests import cookie, form_bytes, page_request
from corpid.web.pages import errors, views
from corpid.web.pages.components import BARE, BoldName, FieldError, Form, Frame, Link, Page, View, ViewPart, client_site
from corpid.web.pages.errors import ErrorContext
from corpid.web.pages.responses import (
    add_cookie,
    leave,
    page_response,
    picked_language,
    require_own_form,
    see_other,
    set_cookie,
    throttled_page,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session
    from corpid.rules.oauth.records import Client

_WAITS: Final = 20
_WAIT_SECONDS: Final = 0.05
_FIELDS: Final = frozenset(
    {"form_token", "step", "user_name", "password", "code", "passkey", "passkeys", "entity", "query", "decision"}
    | {"person", "way", ENTERED}
)
_TYPED_CHARACTERS: Final = 400
_TYPED: Final = ("user_name", "query")
"""what a page shows again"""


class SignInEnd(Enum):
    EXPIRED = "expired"
    """the ten minutes are over (D15)"""
    ENDED = "ended"
    """finished before, here or in another tab (D15)"""
    ENDED_ELSEWHERE = "ended_elsewhere"
    """another sign-in answered the same request (D15)"""
    SHUT = "shut"
    """too many wrong codes (D45)"""
    CLAIMED_ELSEWHERE = "claimed_elsewhere"
    """another browser was first with this request (D15)"""


OF_CLOSED: Final[Mapping[ClosureReason, SignInEnd]] = {
    ClosureReason.ENDED: SignInEnd.ENDED,
    ClosureReason.ANSWERED_ELSEWHERE: SignInEnd.ENDED_ELSEWHERE,
    ClosureReason.EXPIRED: SignInEnd.EXPIRED,
}


@dataclass(frozen=True, slots=True)
class _RequiredFields:
    """Fields that must not be empty, each with its error."""

    event: SignInEvent
    """what the sign-in must accept: a page that has lapsed leads to the current one, which has no such field"""
    fields: tuple[FieldError, ...]


class FormStep(ViewPart, frozen=True, kw_only=True):
    """A POST of the sign-in: its submission and its error field."""

    submit: Callable[[RequestContext, InteractionContext, Mapping[str, str]], Awaitable[InteractionContext]]
    """returns the context as it is then"""
    field: str = ""
    required: _RequiredFields | None = None
    """what the form must hold; one that lacks it is no attempt"""
    other_account: bool = False
    """true if the form has a button for another account"""
    mails: bool = False
    """true if it may send an e-mail, in the language of the page"""


async def _password(context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]) -> InteractionContext:
    user_name, password = form.get("user_name", "").strip(), form.get("password", "")
    return await sign_in.submit_password(context, loaded, user_name=user_name, password=password)


async def _code(context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]) -> InteractionContext:
    able = form.get("passkeys") == "yes"
    return await sign_in.submit_code(context, loaded, code=form.get("code", ""), makes_passkeys=able)


async def _offer(context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]) -> InteractionContext:
    if form.get("decision") == "not_now":
        return await passkeys.decline_offer(context, loaded)
    return await passkeys.accept_offer(context, loaded, answer=form.get("passkey", ""))


async def _consent(context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]) -> InteractionContext:
    if form.get("decision") != "agree":
        raise InvalidInput(phrase("Choose whether you agree."))
    return await sign_in.submit_consent(context, loaded)


async def _confirm(context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]) -> InteractionContext:
    if form.get("decision") != "continue":
        raise InvalidInput(phrase("Choose whether to continue."))
    return await sign_in.confirm(context, loaded)


async def _extend(context: RequestContext, loaded: InteractionContext, _: Mapping[str, str]) -> InteractionContext:
    return await sign_in.extend(context, loaded)


STEPS: Final[Mapping[str, FormStep]] = {
    "password": FormStep(
        submit=_password,
        field="password",
        required=_RequiredFields(
            SignInEvent.PASSWORD,
            (("user_name", phrase("Enter your user name.")), ("password", phrase("Enter your password."))),
        ),
        other_account=True,
    ),
    "passkey": FormStep(
        submit=lambda context, loaded, form: passkeys.submit_passkey(context, loaded, answer=form.get("passkey", "")),
        field="passkey",
    ),
    "way": FormStep(
        submit=lambda context, loaded, form: sign_in.choose_way(context, loaded, way=form.get("decision", "")),
        other_account=True,
        mails=True,
    ),
    "code": FormStep(
        submit=_code, field="code", required=_RequiredFields(SignInEvent.CODE, (("code", phrase("Enter the code.")),))
    ),
    "offer": FormStep(submit=_offer, field="passkey", other_account=True),
    "entity": FormStep(
        submit=lambda context, loaded, form: sign_in.submit_entity(context, loaded, entity_id=form.get("entity", "")),
        field="entity",
        other_account=True,
    ),
    "consent": FormStep(submit=_consent, other_account=True),
    "confirm": FormStep(submit=_confirm, other_account=True),
    "extend": FormStep(submit=_extend),
    "cancel": FormStep(submit=lambda context, loaded, _: sign_in.cancel(context, loaded)),
}
"""by the last part of the form's action address"""


@dataclass(slots=True, kw_only=True, eq=False)
class _Submission:
    """A form from a page of this browser, for the current step."""

    step: FormStep
    form: Mapping[str, str]
    loaded: InteractionContext


def _to(web: WebContext, interaction_id: str, action: str = "") -> Response:
    return see_other(interaction_path(web, interaction_id, action))


def _to_entered(web: WebContext, interaction_id: str) -> Response:
    return see_other(with_parameter(interaction_path(web, interaction_id)))


async def interaction(request: Request, web: WebContext) -> Response:
    """Answer every address below /sign-in/{interaction}.

    They are the page, its steps, and the ways to leave. Source: D15
    """
    interaction_id, _, action = str(request.path_params["rest"]).partition("/")
    state = request.scope["state"]
    try:
        answer = await _answer(request, web, interaction_id, action)
    except InvalidRequest as error:
        answer = errors.as_page(request, error, web.renderer)
    except Exception as error:  # noqa: BLE001 - rendered here, since the cookie goes with it
        # The address of the page itself leads back to the sign-in from each of its actions.
        answer = errors.as_page(request, error, web.renderer, _met("", Frame(under_way=True)))
    if "landed" in state:
        add_cookie(answer, web, web.arrival_cookie_name, "", seconds=0)
    if "cookie" in state:
        # Also after a failure that follows the sign-in: the old value is invalid.
        set_cookie(answer, web, state["cookie"])
    return answer


async def _answer(request: Request, web: WebContext, interaction_id: str, action: str) -> Response:
    provider, sent = web.provider, cookie(request, web.cookie_name)
    context = await page_request(request, provider)
    refused = await _land(request, web, context, interaction_id, action)
    if refused is not None:
        return refused
    if action == ARRIVE and request.method == "POST":
        return _to(web, interaction_id)
    try:
        loaded = await interaction_context.load_interaction(context, interaction_id, sent)
        if cookie(request, web.passkey_cookie_name):
            loaded = interaction_context.with_passkey(loaded)
        return await _at(request, web, context, loaded, action)
    except interaction_context.NoInteraction:
        if sent is None:
            return page_response(request, web.renderer, without_cookie_page(), status=403)
        return page_response(request, web.renderer, unknown_page(interactions.explain_loss(context)), status=404)
    except interaction_context.ForeignBrowser as stranger:
        await provider.registry_cache.refuse_maintenance(context.now)
        if request.method == "POST":
            # Redirect a form with an old cookie value to the current page. A repeated form, as from a double click,
            # gets the new cookie value again.
            new_cookie = await _value_after(context, sent, sha256(await form_bytes(request)).digest())
            if new_cookie is not None:
                request.scope["state"]["cookie"] = new_cookie
            return _to(web, interaction_id)
        client = await own_pages.requesting_client(context, stranger.interaction.request.client_id)
        return page_response(request, web.renderer, other_browser_page(client, stranger.interaction), status=403)


async def _land(
    request: Request, web: WebContext, context: RequestContext, interaction_id: str, action: str
) -> Response | None:
    """Store a sign-in that its browser holds (D15, D34).

    It arrives in a cookie, or in a form if it is too long for one. Returns a page if storing failed and the browser has
    to try again.
    """
    held = cookie(request, web.arrival_cookie_name)
    posted = action == ARRIVE and request.method == "POST"
    if posted:
        held = parameters.parse(await form_bytes(request), {ARRIVE}).get(ARRIVE)
    if held is None or not interactions.names_pending(held, interaction_id):
        return None
    sent = cookie(request, web.cookie_name)
    found = await interactions.find_pending(context, interaction_id, cookie=sent, held=held)
    if found is not None:
        browser, pending = found
        client = await completion.find_client(context, pending.interaction.request)
        try:
            await own_pages.refuse_maintenance(context, pending.interaction.request)
            await interactions.store_pending(context, browser, pending)
        except Exception as error:  # noqa: BLE001 - the requesting client is known here
            return _failed(request, web, client, pending.interaction, error, reload=posted)
    request.scope["state"]["landed"] = True
    return None


def _met(url: str, frame: Frame) -> ErrorContext:
    """Return the error context of a sign-in whose page can be reopened."""
    return ErrorContext(frame=frame, back=Link(url=url, text=phrase("Open the page again")), goes_on=True)


def _failed(
    request: Request,
    web: WebContext,
    client: Client,
    interaction: Interaction,
    error: Exception,
    *,
    reload: bool = False,
) -> Response:
    """Return the error page of a sign-in that can continue.

    `reload` says that only the same form can continue it.
    """
    around = pages.client_frame(web, client, interaction, under_way=True)
    return errors.as_page(
        request, error, web.renderer, ErrorContext(frame=around) if reload else _met(around.here, around)
    )


async def _at(
    request: Request, web: WebContext, context: RequestContext, loaded: InteractionContext, action: str
) -> Response:
    """Answer a browser at its own sign-in; errors are shown within it."""
    try:
        await own_pages.refuse_maintenance(context, loaded.interaction.request)
        if request.method == "POST":
            return await _post(request, web, context, loaded, action)
        return await _get(request, web, context, loaded, action)
    except (interaction_context.NoInteraction, interaction_context.ForeignBrowser):
        raise
    except Exception as error:  # noqa: BLE001 - the requesting client is known here
        return _failed(request, web, loaded.client, loaded.interaction, error)


async def _value_after(context: RequestContext, sent: str | None, form: bytes) -> str | None:
    """Return the cookie value that resulted from this form.

    Another request may still be handling the form; this waits at most a second for it.
    """
    for _ in range(_WAITS):
        try:
            new_cookie = await browsers.replace_again(context, sent, form)
        except browsers.OtherForm:
            return None
        if new_cookie is not None:
            return new_cookie
        if not sent or not await browsers.is_handled(context, sent, form):
            return None
        await sleep(_WAIT_SECONDS)
    return None


async def _get(
    request: Request, web: WebContext, context: RequestContext, loaded: InteractionContext, action: str
) -> Response:
    looked_at = loaded.interaction
    # A sign-in with an outcome was completed, if at all, by itself.
    completed, claimed_elsewhere = None, False
    if looked_at.outcome is None:
        completed, claimed_elsewhere = await completion.completed_or_claimed(context, looked_at)
    if action == "leave" and machine.may_leave(looked_at, completed, now=context.now):
        response = await completion.leave(context, looked_at)
        if response.error:
            found = {"error": response.error, "reason": response.reason, "detail": response.detail}
            # A request that was not pushed only claims to be its client's.
            pushed = GENERATIONS[looked_at.request.generation].pushed
            name = "client_id" if pushed else "claimed_client_id"
            request.scope["state"]["log"].update(found, **{name: looked_at.request.client_id})
        around = await pages.final_frame(web, context, loaded.client, looked_at) if response.posted else Frame()
        return await leave(request, web, response, around)
    if action == "return" and looked_at.outcome is not None:
        return page_response(request, web.renderer, await pages.leaving(web, context, loaded))
    if action:
        return _to(web, looked_at.interaction_id)
    closed = machine.closure_reason(looked_at, completed, now=context.now)
    if closed is not None:
        return page_response(request, web.renderer, await _ending(web, context, loaded, closed))
    if claimed_elsewhere:
        return await _over(request, web, context, loaded, SignInEnd.CLAIMED_ELSEWHERE, status=409)
    asked = request.query_params if request.scope["query_string"] else {}
    if (
        ENTERED in asked
        and (kept := await encrypted_values.read_form(context, sign_in.form_place(looked_at))) is not None
    ):
        return await _with_errors(request, web, context, loaded, kept.fields, *kept.errors)
    return await _with_errors(request, web, context, loaded, asked)


async def _with_errors(
    request: Request,
    web: WebContext,
    context: RequestContext,
    loaded: InteractionContext,
    entered: Mapping[str, str],
    *errors: FieldError,
) -> Response:
    """Return the current page, with what was entered."""
    query = entered.get("query", "").strip()[:QUERY_CHARACTERS]
    page = await sign_in.current(context, loaded, query=query)
    again = Retry(
        errors=errors,
        typed=entered.get("user_name", "") if errors else "",
        query=query,
        test_people=() if web.developer is None else web.developer.people(request),
    )
    return page_response(request, web.renderer, await pages.of_step(web, context, loaded, page, again))


async def _over(
    request: Request,
    web: WebContext,
    context: RequestContext,
    loaded: InteractionContext,
    ending: SignInEnd,
    *,
    status: int = 200,
) -> Response:
    return page_response(request, web.renderer, await ended_page(web, context, loaded, ending), status=status)


async def _ending(web: WebContext, context: RequestContext, loaded: InteractionContext, closed: ClosureReason) -> View:
    """Return the page of a closed sign-in."""
    if closed is ClosureReason.ANSWERING:
        return await pages.waiting_page(web, context, loaded)
    return await ended_page(web, context, loaded, OF_CLOSED[closed])


_ENDINGS: Final[Mapping[type[Exception], tuple[SignInEnd, int]]] = {
    AlreadyCompleted: (SignInEnd.ENDED_ELSEWHERE, 200),
    OtherBrowser: (SignInEnd.CLAIMED_ELSEWHERE, 409),
    SignInStopped: (SignInEnd.SHUT, 200),
}
"""the page of a sign-in that is over, and its status, by the flows' exceptions"""
_NOT_TAKEN: Final[tuple[type[Exception], ...]] = (StaleStep, InvalidInput, Throttled, *_ENDINGS)
"""any other exception is an error after which the sign-in can continue (`_failed`)"""


async def _post(
    request: Request, web: WebContext, context: RequestContext, loaded: InteractionContext, action: str
) -> Response:
    interaction_id, body = loaded.interaction.interaction_id, await form_bytes(request)
    step, form = STEPS.get(action), parameters.parse(body, _FIELDS)
    if "code" in form:  # a field with only spaces and hyphens is empty, and no attempt
        form["code"] = typed_code(form["code"])
    if action == AT_ONCE and web.developer is not None and web.developer.opens(request):
        step = FormStep(submit=web.developer.sign_in_at_once, field="person")
        request.scope["state"]["log"]["detail"] = "simulated"
    if step is None:
        raise InvalidRequest(Reason.STEP_UNKNOWN, "there is no such step")
    require_own_form(context, form, loaded.browser.browser_id, interaction_id)
    looked_at = loaded.interaction
    # Whether the request was answered in another tab is found out by whatever claims the step.
    if machine.closure_reason(looked_at, None, now=context.now) or form.get("step") != sign_in.step_name(looked_at):
        return _to(web, interaction_id, "return" if looked_at.outcome is not None else "")
    if step.mails:
        loaded = replace(loaded, picked_language=picked_language(request))
    digest = sha256(body).digest()
    submitted = _Submission(step=step, form=form, loaded=replace(loaded, form=SubmittedForm(digest=digest)))
    try:
        return await _take(request, web, context, submitted)
    except FormHandled:
        # A double click makes a browser drop the first answer: the second waits for it and returns the same (D34).
        new_cookie = await _value_after(context, loaded.cookie, digest)
    if new_cookie is not None:
        request.scope["state"]["cookie"] = new_cookie
        return _to(web, interaction_id)
    kept = await encrypted_values.read_form(context, sign_in.form_place(looked_at))
    if kept is not None and kept.digest == digest:
        return _to_entered(web, interaction_id)
    submitted.loaded = replace(loaded, form=SubmittedForm(digest=digest, waited=True))
    return await _take(request, web, context, submitted)


async def _take(request: Request, web: WebContext, context: RequestContext, submitted: _Submission) -> Response:
    """Take the step; redirect to the next page or the exit."""
    step, loaded, form = submitted.step, submitted.loaded, submitted.form
    try:
        if step.other_account and form.get("decision") == "other_account":
            after = await sign_in.start_over(context, loaded)
        else:
            empty = [error for error in step.required.fields if not form.get(error[0])] if step.required else []
            if step.required is not None and empty:
                loaded.require(context, step.required.event)
                return await _rejected(web, context, submitted, *empty)
            after = await step.submit(context, loaded, form)
    except _NOT_TAKEN as error:
        answer = await _not_taken(request, web, context, submitted, error)
        # Only now: whoever waits for this form then looks for what was kept of it.
        await browsers.handled_in_vain(context, loaded.cookie, loaded.form, rejected=isinstance(error, InvalidInput))
        return answer
    if after.cookie != loaded.cookie:
        request.scope["state"]["cookie"] = after.cookie
    if step.submit is _extend and ENTERED in form:
        return _to_entered(web, loaded.interaction.interaction_id)
    return _to(web, loaded.interaction.interaction_id, "return" if after.interaction.outcome is not None else "")


async def _not_taken(
    request: Request, web: WebContext, context: RequestContext, submitted: _Submission, error: Exception
) -> Response:
    loaded = submitted.loaded
    if isinstance(error, InvalidInput):
        return await _rejected(web, context, submitted, (submitted.step.field, error.sentence))
    if isinstance(error, Throttled):
        wrong = (submitted.step.field, error.sentence)
        return throttled_page(await _with_errors(request, web, context, loaded, submitted.form, wrong), error)
    for kind, (ending, status) in _ENDINGS.items():
        if isinstance(error, kind):
            return await _over(request, web, context, loaded, ending, status=status)
    return _to(web, loaded.interaction.interaction_id)


async def _rejected(web: WebContext, context: RequestContext, submitted: _Submission, *errors: FieldError) -> Response:
    """Keep the form, and redirect to its page (D73)."""
    loaded, form = submitted.loaded, submitted.form
    place = sign_in.form_place(loaded.interaction)
    if submitted.step.submit is _extend:
        await encrypted_values.add_error(context, place, *errors)
    else:
        typed = {name: form[name][:_TYPED_CHARACTERS] for name in _TYPED if form.get(name)}
        await encrypted_values.save_form(
            context, place, StoredForm(fields=typed, errors=errors, digest=loaded.form.digest)
        )
    return _to_entered(web, loaded.interaction.interaction_id)


# --- pages of a sign-in that has ended, or is not this browser's (D15, D34)


class _EndingText(ViewPart, frozen=True, kw_only=True):
    heading: Phrase
    explanation: Phrase
    advice: Callable[[str], Phrase]
    """by the client's name"""
    answers: bool = True
    """true if the link back carries an answer of this sign-in"""


_COMPLETED: Final = _EndingText(
    heading=phrase("This sign-in is finished"),
    explanation=phrase("It was completed or cancelled, here or in another tab. A sign-in works only once."),
    advice=lambda name: phrase("Return to {name}. If you are not signed in there, start again.", name=name),
)
_ENDING_TEXTS: Final[Mapping[SignInEnd, _EndingText]] = {
    SignInEnd.EXPIRED: _EndingText(
        heading=phrase("This sign-in has expired"),
        explanation=phrase(
            "For your security, you have to finish signing in within a few minutes. Nothing was shared."
        ),
        advice=lambda name: phrase("Return to {name} and start again.", name=name),
    ),
    SignInEnd.ENDED: _COMPLETED,
    SignInEnd.ENDED_ELSEWHERE: _EndingText(
        heading=_COMPLETED.heading, explanation=_COMPLETED.explanation, advice=_COMPLETED.advice, answers=False
    ),
    SignInEnd.SHUT: _EndingText(
        heading=phrase("This sign-in was stopped"),
        explanation=phrase(
            "The code was wrong too many times, so we ended this sign-in for your security. Nothing was shared."
        ),
        advice=lambda name: phrase("Return to {name} and start again.", name=name),
    ),
    SignInEnd.CLAIMED_ELSEWHERE: _EndingText(
        heading=phrase("This sign-in continues in another browser"),
        explanation=phrase("The same link was also opened in another browser or window, and somebody continued there."),
        advice=lambda name: phrase(
            "Continue there. If that was not you, or the other page is closed, go to {name} and start again.", name=name
        ),
        answers=False,
    ),
}


def ending_page(ending: SignInEnd, name: str, frame: Frame, back: Link | None) -> views.Problem:
    """Return the page of an ending; `name` is the client's name."""
    text = _ENDING_TEXTS[ending]
    return views.Problem(frame=frame, heading=text.heading, paragraphs=(text.explanation, text.advice(name)), back=back)


async def ended_page(web: WebContext, context: RequestContext, loaded: InteractionContext, ending: SignInEnd) -> View:
    """Return the page of a finished sign-in, for its own browser."""
    client, interaction = loaded.client, loaded.interaction
    answer = Link(
        url=interaction_path(web, interaction.interaction_id, "leave"),
        text=phrase("Return to {name}", name=client.name),
    )
    back = answer if _ENDING_TEXTS[ending].answers else client_site(client, interaction.request.redirect_uri)
    return ending_page(ending, client.name, await final_frame(web, context, client, interaction), back)


def other_browser_page(client: Client | None, interaction: Interaction) -> View:
    """Return the page for another browser than the sign-in's own.

    It is also shown if cookies are blocked. Source: D34
    """
    request = interaction.request
    return views.Problem(
        frame=Frame(client_name=client.name if client else None, ui_locales=request.ui_locales),
        heading=phrase("This sign-in belongs to another browser"),
        paragraphs=(
            phrase("It was started in another browser or window, or this browser does not accept cookies."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
        back=client_site(client, request.redirect_uri) if client else None,
    )


def without_cookie_page() -> View:
    """Return the page for an unknown sign-in without a cookie.

    With a cookie, more might be known. Source: D34
    """
    return views.Problem(
        frame=Frame(),
        heading=phrase("Cookies are needed to sign in"),
        paragraphs=(
            phrase("This browser does not accept cookies, or the address was opened in another browser."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
    )


def unknown_page(reason: Phrase | None = None) -> View:
    """Return the page for a sign-in that no longer exists.

    `reason` is the one that is known.
    """
    return views.Problem(
        frame=Frame(),
        heading=phrase("We cannot find this sign-in"),
        paragraphs=(
            reason or phrase("The address is incomplete, or the sign-in ended a while ago."),
            phrase("Go back to the service you came from and start again."),
        ),
    )


# --- sign-out

_SIGN_OUT_FORM: Final = "sign-out"
_SIGNED_OUT: Final = Page(
    frame=BARE,
    heading=phrase("You are signed out"),
    parts=(phrase("Nobody can use your account in this browser without signing in again. You can close this window."),),
)


async def sign_out(request: Request, web: WebContext) -> Response:
    """Ask, then end the sessions of this browser.

    The cookie value is replaced. Source: D30, D34
    """
    provider = web.provider
    context = await page_request(request, provider)
    sent = cookie(request, web.cookie_name)
    browser = await browsers.recognise(context, sent)
    held = await sessions.list_live_sessions(context, browser)
    if browser is None or sent is None or not held:
        if request.method == "POST":
            return see_other(web.base_path + SIGN_OUT_PATH)
        return page_response(request, web.renderer, _SIGNED_OUT)
    if request.method != "POST":
        return page_response(request, web.renderer, await _ask_sign_out(web, context, browser, held))
    form = parameters.parse(await form_bytes(request), {"form_token", "step"})
    require_own_form(context, form, browser.browser_id, _SIGN_OUT_FORM)
    answer = see_other(web.base_path + SIGN_OUT_PATH)
    with suppress(StaleStep):  # the page asks again, or reports that it is done
        set_cookie(answer, web, await sessions.sign_out(context, sent, browser, held))
    return answer


async def _ask_sign_out(web: WebContext, context: RequestContext, browser: Browser, held: list[Session]) -> View:
    """Return the question before signing out.

    It has a link back to the provider's own pages that are open.
    """
    found = [await web.provider.registry.directory.user(each.user_id) for each in held]
    opened = next((PATHS[each.purpose] for each in held if each.purpose in PATHS), "/")
    names = dict.fromkeys(user.name for user in found if user is not None)
    return Page(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, _SIGN_OUT_FORM)),
        action=web.base_path + SIGN_OUT_PATH,
        heading=phrase("Sign out?"),
        parts=(
            *(phrase("You are signed in as {user_name}.", user_name=BoldName(name)) for name in names),
            phrase("Services that you have already opened may keep you signed in. Sign out there as well."),
            Form(button=phrase("Sign out"), back=Link(url=web.base_path + opened, text=phrase("Stay signed in"))),
        ),
    )
