"""Pages of an enrolment: views, and building them from a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from corpid.flows.account import enrolment_steps, enrolments
from corpid.flows.account.links import PURPOSES, EnrolmentStep, chosen_steps
from corpid.flows.authentication import interactions
from corpid.flows.authentication.own_pages import ACCOUNT_PATH, PORTAL_PATH
from corpid.flows.directory import acceptance
from corpid.rules.authentication.sign_in import SecondFactorMethod
from corpid.texts import Phrase, phrase
from corpid.web.account import app_key
from corpid.web.account.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.pages.layout import BARE, Form, FormView, Frame, Link, time_limit
from corpid.web.pages.views import AskPasskey, Problem, second_factor_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.flows.account.enrolments import EnrolmentContext
    from corpid.flows.account.links import Purpose
    from corpid.flows.directory.acceptance import InvitationAnswer
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import FactorLink
    from corpid.rules.directory.records import User
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import SecondFactorForm, View

    Page = Callable[[WebContext, RequestContext, EnrolmentContext, Frame, tuple[FieldError, ...]], Awaitable[View]]


class TypeLinkCode(FormView, frozen=True, kw_only=True):
    """The code of a link, from the fragment or typed.

    Fields: code. Followed, which the script sets.
    """

    template: ClassVar[str] = "enrolment/type_link_code.html"
    heading: ClassVar[Phrase] = phrase("Enter your code")

    typed: str = ""
    """kept after an error"""


class Begin(FormView, frozen=True, kw_only=True):
    """The purpose and owner of a link; its button uses nothing up."""

    template: ClassVar[str] = "enrolment/begin.html"

    heading: Phrase
    introduction: Phrase
    user_name: str
    steps: int
    fewer: bool = False
    """whether they may be fewer, with a passkey"""


class ChooseName(FormView, frozen=True, kw_only=True):
    """The name and user name of a new person.

    Fields: name, user_name.
    """

    template: ClassVar[str] = "enrolment/profile.html"
    heading: ClassVar[Phrase] = phrase("Your name and user name")

    name: str
    user_name: str
    entity: str
    """who sees the user name"""


class TypeMailedCode(FormView, frozen=True, kw_only=True):
    """The code sent by e-mail.

    Field: code. Of the other form: decision.
    """

    template: ClassVar[str] = "enrolment/type_mailed_code.html"

    heading: Phrase
    asked: SecondFactorForm


class ProvePassword(FormView, frozen=True, kw_only=True):
    """The person's present password.

    Fields: user_name (for password managers), password.
    """

    template: ClassVar[str] = "enrolment/prove_password.html"
    heading: ClassVar[Phrase] = phrase("Enter your password")

    user_name: str


class ProveSecondFactor(FormView, frozen=True, kw_only=True):
    """The person's present second factor.

    Fields: code. Of the other form: passkey.
    """

    template: ClassVar[str] = "enrolment/prove_second_factor.html"
    heading: ClassVar[Phrase] = phrase("Confirm it is you")

    takes_codes: bool
    passkey: AskPasskey | None = None


class Save(FormView, frozen=True, kw_only=True):
    """A page that retries writing, after every step was done."""

    template: ClassVar[str] = "enrolment/save.html"
    heading: ClassVar[Phrase] = phrase("One last step")


class ForgottenPassword(FormView, frozen=True, kw_only=True):
    """A form for the user name of a forgotten password.

    Field: user_name.
    """

    template: ClassVar[str] = "enrolment/forgotten_password.html"
    heading: ClassVar[Phrase] = phrase("Choose a new password")


PATH: Final = "/enrolment/"
_SHOWN_CHARACTERS: Final = 400
"""of what was typed, which the page shows again"""
_NO_MORE_CODES: Final = phrase(
    "We cannot send any more codes here. Set up an authenticator app, or ask for a new link."
)
_APP_INSTEAD: Final = (SecondFactorMethod.APP.value, phrase("Set up an authenticator app"))
_SECOND_STEP: Final = phrase(
    "After your password we ask for a second step, so that nobody can sign in with your password alone."
)
_NO_MORE_TIME: Final = phrase("You cannot get more time. If you run out, ask for a new link.")


def enrolment_path(web: WebContext, enrolment_id: str, action: str = "") -> str:
    """The address path of an enrolment's page, or of an action."""
    return f"{web.base_path}{PATH}{enrolment_id}" + (f"/{action}" if action else "")


def begin(
    web: WebContext, context: RequestContext, link: FactorLink, user: User, *, action: str, form_token: str
) -> View:
    """The page of an opened link (D46)."""
    purpose = PURPOSES[link.purpose]
    return Begin(
        frame=Frame(form_token=form_token, under_way=True),
        action=action,
        heading=purpose.heading,
        introduction=purpose.introduction(user.name, web.provider.policy.name),
        user_name=user.user_name,
        steps=len(purpose.steps),
        fewer=_ends_early(context, purpose),
    )


def _ends_early(context: RequestContext, purpose: Purpose) -> bool:
    """Return whether a passkey, which replaces both factors, can come first."""
    return context.provider.policy.takes_passkeys and chosen_steps(purpose.steps, passkey_first=True) != purpose.steps


def _frame(web: WebContext, context: RequestContext, visit: EnrolmentContext) -> Frame:
    enrolment, provider = visit.enrolment, web.provider
    steps, more = enrolment.steps, Form(action=enrolment_path(web, enrolment.enrolment_id, "extend"))
    shortens = enrolment.step in (EnrolmentStep.PROFILE, EnrolmentStep.FIRST) and _ends_early(
        context, PURPOSES[enrolment.purpose]
    )
    return Frame(
        step=(steps.index(enrolment.step) + 1, None if shortens else len(steps)) if enrolment.step else None,
        step_name=enrolments.step_name(enrolment),
        form_token=interactions.form_token(context, enrolment.browser_id, enrolment.enrolment_id),
        limit=time_limit(
            enrolment.expires_at,
            now=context.now,
            zone=provider.policy.timezone,
            more=more if visit.extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        here=enrolment_path(web, enrolment.enrolment_id),
        under_way=True,
    )


async def of_step(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, *, errors: tuple[FieldError, ...] = ()
) -> View:
    """The page of an enrolment's step, and the one after its end."""
    if visit.enrolment.finished:
        return await _finished(web, context, visit)
    return await _PAGES[visit.enrolment.step](web, context, visit, _frame(web, context, visit), errors)


def _passkey(web: WebContext, visit: EnrolmentContext, options: str) -> AskPasskey | None:
    if not options:
        return None
    return AskPasskey(action=enrolment_path(web, visit.enrolment.enrolment_id, "passkey"), options=options)


async def _profile(
    web: WebContext, _: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    """The names that were typed, else those that the entity wrote."""
    enrolment, given = visit.enrolment, visit.invited.membership if visit.invited else None
    called = {"name": given.name, "user_name": given.user_name} if given else {}
    chosen = {"name": enrolment.name, "user_name": enrolment.user_name} if enrolment.user_name else called
    taken = () if errors or not enrolment.name_taken else (("user_name", enrolment_steps.NAME_TAKEN),)
    typed = visit.typed or chosen
    shown = {name: typed.get(name, "")[:_SHOWN_CHARACTERS] for name in ("name", "user_name")}
    action = enrolment_path(web, enrolment.enrolment_id, "profile")
    entity = visit.invited.entity.name if visit.invited else ""
    return ChooseName(frame=frame, action=action, errors=errors or taken, entity=entity, **shown)


async def _first(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    options = await enrolment_steps.passkey_options(context, visit)
    return ChoosePassword(
        frame=frame,
        action=enrolment_path(web, visit.enrolment.enrolment_id, "password"),
        heading=phrase("Choose how you sign in") if options else phrase("Choose a password"),
        user_name=visit.user.user_name,
        passkey=_passkey(web, visit, options),
        errors=errors,
    )


async def _password(
    web: WebContext, _: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return ChoosePassword(
        frame=frame,
        action=enrolment_path(web, visit.enrolment.enrolment_id, "password"),
        heading=phrase("Choose a new password"),
        user_name=visit.user.user_name,
        errors=errors,
    )


async def _second_factor(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    enrolment_id = visit.enrolment.enrolment_id
    secret = enrolments.app_secret(context, visit.enrolment)
    return SetUpApp(
        frame=frame,
        action=enrolment_path(web, enrolment_id, "code"),
        notes=(_SECOND_STEP,),
        picture=enrolment_path(web, enrolment_id, "qr.svg"),
        app_link=app_link(web, context, visit),
        secret=app_key.grouped(secret),
        passkey=_passkey(web, visit, await enrolment_steps.passkey_options(context, visit)),
        by_email=enrolment_path(web, enrolment_id, "way") if enrolment_steps.email_offered(context, visit) else "",
        errors=errors,
    )


async def _mailed_code(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    enrolment_id, page = visit.enrolment.enrolment_id, enrolment_steps.mailed_code_request(context, visit)
    heading, wanted = second_factor_form(page, enrolment_path(web, enrolment_id, "way"))
    can_go_on = page.under_way or page.more
    return TypeMailedCode(
        frame=frame,
        action=enrolment_path(web, enrolment_id, "code"),
        heading=heading,
        asked=msgspec.structs.replace(
            wanted, hint=wanted.hint if can_go_on else _NO_MORE_CODES, ways=(*wanted.ways, _APP_INSTEAD)
        ),
        errors=errors,
    )


def app_link(web: WebContext, context: RequestContext, visit: EnrolmentContext) -> str:
    """The content of the QR code (D45)."""
    secret = enrolments.app_secret(context, visit.enrolment)
    return app_key.link(web, visit.user, secret)


async def _codes(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return KeepCodes(
        frame=frame,
        action=enrolment_path(web, visit.enrolment.enrolment_id, "codes"),
        codes=enrolments.codes(context, visit.enrolment)
        if enrolments.codes_are_readable(context, visit.enrolment)
        else (),
        replaces=await web.provider.registry.factors.recovery_codes_left(visit.user.user_id) > 0,
        errors=errors,
    )


async def _prove_password(
    web: WebContext, _: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return ProvePassword(
        frame=frame,
        action=enrolment_path(web, visit.enrolment.enrolment_id, "password"),
        user_name=visit.user.user_name,
        errors=errors,
    )


async def _prove_second_factor(
    web: WebContext, context: RequestContext, visit: EnrolmentContext, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return ProveSecondFactor(
        frame=frame,
        action=enrolment_path(web, visit.enrolment.enrolment_id, "code"),
        takes_codes=await enrolment_steps.has_codes(context, visit.user),
        passkey=_passkey(web, visit, await enrolment_steps.proof_options(context, visit)),
        errors=errors,
    )


async def _save(
    web: WebContext, _: RequestContext, visit: EnrolmentContext, frame: Frame, __: tuple[FieldError, ...]
) -> View:
    return Save(frame=frame, action=enrolment_path(web, visit.enrolment.enrolment_id, "finish"))


_PAGES: Final[Mapping[EnrolmentStep | None, Page]] = {
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


async def _finished(web: WebContext, context: RequestContext, visit: EnrolmentContext) -> View:
    if PURPOSES[visit.enrolment.purpose].joins and (done := await acceptance.find_answer_of(context, visit.enrolment)):
        return answered_page(done, base_path=web.base_path, has_portal=web.access["manage"].enabled)
    account = web.base_path + ACCOUNT_PATH
    older = await enrolment_steps.passkeys_from_before(context, visit)
    names = tuple(each.name for each in older)
    left = phrase(
        "These passkeys still open your account: {names}. If one of them is on a device that you have lost, remove it.",
        names=names,
    )
    return Problem(
        frame=Frame(),
        heading=PURPOSES[visit.enrolment.purpose].done,
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
        return Problem(
            frame=BARE,
            heading=phrase("You have declined"),
            paragraphs=(
                phrase("Nothing has changed for you. You can close this page."),
                phrase("If you change your mind, ask {entity} to invite you again.", entity=done.entity),
            ),
        )
    to_account = Link(
        url=base_path + ACCOUNT_PATH,
        text=phrase("Sign in to your account") if done.new else phrase("Your account"),
    )
    to_portal = Link(url=base_path + PORTAL_PATH, text=phrase("To the administration"))
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
                "The administrators of {entity} decide which services you can use. This may take some time. "
                "Your account shows it.",
                entity=done.entity,
            ),
            phrase(
                "Go to the service that you want to use and sign in. You can choose {entity} there.", entity=done.entity
            ),
        ),
        back=to_portal if administers else to_account,
    )


def gone() -> View:
    """The page of a link that is not valid (any more)."""
    return Problem(
        frame=Frame(),
        heading=phrase("This link no longer works"),
        paragraphs=(
            phrase(
                "A link works once, for a limited time, and ends when your sign-in is changed in another way. "
                "Check that the address is complete."
            ),
            phrase("If you have already used it, sign in as usual. If not, ask the person who sent it for a new one."),
        ),
    )


def expired(entity: str) -> View:
    """The page of an invitation that was sent too long ago (D60)."""
    return Problem(
        frame=Frame(),
        heading=phrase("This invitation has expired"),
        paragraphs=(phrase("Ask {entity} to send it again. The new e-mail has a new link.", entity=entity),),
    )


def other_browser() -> View:
    """The page of an enrolment in another browser, or without cookies.

    Source: D34
    """
    return Problem(
        frame=Frame(),
        heading=phrase("You started this in another browser"),
        paragraphs=(
            phrase("Continue in the browser or app where you first opened the link. Nothing has changed yet."),
            phrase(
                "If you have used only this browser, allow cookies for this site and open the link again. If "
                "that does not help, ask for a new link."
            ),
        ),
    )


def stopped() -> View:
    """Too many wrong codes (D45)."""
    return Problem(
        frame=Frame(),
        heading=phrase("We stopped this for your security"),
        paragraphs=(
            phrase("The code was wrong too many times. Nothing has changed, and the link no longer works."),
            phrase("Ask the person who sent you this link for a new one."),
        ),
    )
