"""From an enrolment's step to the page that shows it (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.flows import interactions, passkeys
from corpid.flows.account.own_client import PATH as ACCOUNT_PATH
from corpid.flows.enrolment import enrolments, mailbox, proving, setting
from corpid.flows.enrolment.steps import Step, chosen
from corpid.flows.links import PURPOSES
from corpid.flows.ways import Way
from corpid.texts import phrase
from corpid.web.enrolment import views
from corpid.web.factors import app_key
from corpid.web.factors.fields import AskPasskey, asked
from corpid.web.factors.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.frame import Form, Frame, Link, time_limit
from corpid.web.views import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid import ports
    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, EnrolmentVisit
    from corpid.flows.links import Purpose
    from corpid.web.endpoints import Desk
    from corpid.web.frame import FieldError
    from corpid.web.views import View

    Page = Callable[[Desk, Caller, EnrolmentVisit, Frame, tuple[FieldError, ...]], Awaitable[View]]

PATH: Final = "/enrolment/"
_NO_MORE_CODES: Final = phrase("No more codes can be sent here. Set up an authenticator app, or ask for a new link.")
_APP_INSTEAD: Final = (Way.APP.value, phrase("Set up an authenticator app"))
_NO_MORE_TIME: Final = phrase("There is no more time after that. If it is too short, ask for a new link.")


def place(desk: Desk, enrolment_id: str, action: str = "") -> str:
    """The address path of an enrolment's page, or of one of its actions."""
    return f"{desk.base_path}{PATH}{enrolment_id}" + (f"/{action}" if action else "")


def begin(desk: Desk, link: ports.Link, user: User, *, action: str, form_token: str) -> View:
    """What a link is for (D46)."""
    purpose = PURPOSES[link.purpose]
    return views.Begin(
        frame=Frame(form_token=form_token, under_way=True),
        action=action,
        heading=purpose.heading,
        told=purpose.told(user.name, desk.provider.policy.name),
        user_name=user.user_name,
        steps=len(purpose.steps),
        fewer=_ends_early(desk, purpose),
    )


def _ends_early(desk: Desk, purpose: Purpose) -> bool:
    """Whether a passkey, which stands for both factors, can be made first."""
    return passkeys.offered(desk.provider) and chosen(purpose.steps, passkey_first=True) != purpose.steps


def step_name(enrolment: Enrolment) -> str:
    """What a form says of its page: more time leaves the forms that are shown as they are (D15, WCAG 2.2.1)."""
    return str(enrolment.serial - enrolment.extensions)


def _frame(desk: Desk, caller: Caller, visit: EnrolmentVisit) -> Frame:
    enrolment, provider = visit.enrolment, desk.provider
    steps, more = enrolment.steps, Form(action=place(desk, enrolment.enrolment_id, "extend"))
    return Frame(
        step=(steps.index(enrolment.step) + 1, len(steps)) if enrolment.step else None,
        fewer_steps=enrolment.step is Step.FIRST and _ends_early(desk, PURPOSES[enrolment.purpose]),
        step_name=step_name(enrolment),
        form_token=interactions.form_token(provider, enrolment.browser_id, enrolment.enrolment_id),
        limit=time_limit(
            enrolment.expires_at,
            now=caller.now,
            zone=provider.policy.timezone,
            more=more if visit.extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        here=place(desk, enrolment.enrolment_id),
        under_way=True,
    )


async def of_step(desk: Desk, caller: Caller, visit: EnrolmentVisit, *, errors: tuple[FieldError, ...] = ()) -> View:
    """The page of an enrolment's step, and the one after its end."""
    if visit.enrolment.finished:
        return await _finished(desk, visit)
    return await _PAGES[visit.enrolment.step](desk, caller, visit, _frame(desk, caller, visit), errors)


def _passkey(desk: Desk, visit: EnrolmentVisit, options: str) -> AskPasskey | None:
    if not options:
        return None
    return AskPasskey(action=place(desk, visit.enrolment.enrolment_id, "passkey"), options=options)


async def _first(
    desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    options = await setting.passkey_options(desk.provider, visit)
    return ChoosePassword(
        frame=frame,
        action=place(desk, visit.enrolment.enrolment_id, "password"),
        heading=phrase("Choose how you sign in") if options else phrase("Choose a password"),
        user_name=visit.user.user_name,
        passkey=_passkey(desk, visit, options),
        errors=errors,
    )


async def _password(
    desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return ChoosePassword(
        frame=frame,
        action=place(desk, visit.enrolment.enrolment_id, "password"),
        heading=phrase("Choose a new password"),
        user_name=visit.user.user_name,
        errors=errors,
    )


async def _second_factor(
    desk: Desk, caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    enrolment_id = visit.enrolment.enrolment_id
    secret = enrolments.app_secret(desk.provider, visit.enrolment)
    return SetUpApp(
        frame=frame,
        action=place(desk, enrolment_id, "code"),
        picture=place(desk, enrolment_id, "qr.svg"),
        app_link=app_link(desk, visit),
        secret=app_key.grouped(secret),
        passkey=_passkey(desk, visit, await setting.passkey_options(desk.provider, visit)),
        by_email=place(desk, enrolment_id, "way") if mailbox.offered(desk.provider, caller, visit) else "",
        errors=errors,
    )


async def _mailed_code(
    desk: Desk, caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    enrolment_id, page = visit.enrolment.enrolment_id, mailbox.asked(caller, visit)
    heading, wanted = asked(page, place(desk, enrolment_id, "way"))
    can_go_on = page.under_way or page.more
    return views.TypeMailedCode(
        frame=frame,
        action=place(desk, enrolment_id, "code"),
        heading=heading,
        asked=replace(wanted, hint=wanted.hint if can_go_on else _NO_MORE_CODES, ways=(*wanted.ways, _APP_INSTEAD)),
        errors=errors,
    )


def app_link(desk: Desk, visit: EnrolmentVisit) -> str:
    """What the QR code says (D45)."""
    secret = enrolments.app_secret(desk.provider, visit.enrolment)
    return app_key.link(desk, visit.user, secret)


async def _codes(
    desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return KeepCodes(
        frame=frame,
        action=place(desk, visit.enrolment.enrolment_id, "codes"),
        codes=enrolments.codes(desk.provider, visit.enrolment),
        replaces=await desk.provider.registry.factors.recovery_codes_left(visit.user.user_id) > 0,
        errors=errors,
    )


async def _prove_password(
    desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return views.ProvePassword(
        frame=frame,
        action=place(desk, visit.enrolment.enrolment_id, "password"),
        user_name=visit.user.user_name,
        errors=errors,
    )


async def _prove_second_factor(
    desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, errors: tuple[FieldError, ...]
) -> View:
    return views.ProveSecondFactor(
        frame=frame,
        action=place(desk, visit.enrolment.enrolment_id, "code"),
        takes_codes=await proving.has_codes(desk.provider, visit.user),
        passkey=_passkey(desk, visit, await proving.passkey_options(desk.provider, visit)),
        errors=errors,
    )


async def _save(desk: Desk, _caller: Caller, visit: EnrolmentVisit, frame: Frame, _: tuple[FieldError, ...]) -> View:
    return views.Save(frame=frame, action=place(desk, visit.enrolment.enrolment_id, "finish"))


_PAGES: Final[Mapping[Step | None, Page]] = {
    Step.FIRST: _first,
    Step.PASSWORD: _password,
    Step.SECOND_FACTOR: _second_factor,
    Step.MAILED_CODE: _mailed_code,
    Step.RECOVERY_CODES: _codes,
    Step.PROVE_PASSWORD: _prove_password,
    Step.PROVE_SECOND_FACTOR: _prove_second_factor,
    None: _save,
}


async def _finished(desk: Desk, visit: EnrolmentVisit) -> View:
    account = desk.base_path + ACCOUNT_PATH
    older = await setting.passkeys_from_before(desk.provider, visit)
    names = tuple(each.name for each in older)
    left = phrase(
        "These passkeys still open your account: {names}. Was one of them on a device that you have lost? Remove it.",
        names=names,
    )
    return Problem(
        frame=Frame(),
        heading=PURPOSES[visit.enrolment.purpose].done,
        paragraphs=(
            *((left,) if older else ()),
            phrase("If a page is still open on which you were signing in, go back to it and go on there."),
            phrase("Otherwise open the service that you want to use and sign in. You can close this page."),
        ),
        back=Link(url=f"{account}/passkeys", text=phrase("Look at your passkeys"))
        if older
        else Link(url=account, text=phrase("Sign in to your account")),
    )


def gone() -> View:
    """The link does not open anything any more, or never did."""
    return Problem(
        frame=Frame(),
        heading=phrase("This link no longer works"),
        paragraphs=(
            phrase(
                "A link works once and for a limited time, and ends when your sign-in is changed in another way. "
                "Check that its address is complete."
            ),
            phrase("If you have used it already, sign in as usual. If not, ask for a new one where you got it."),
        ),
    )


def other_browser() -> View:
    """Another browser began, or this one keeps no cookies (D34)."""
    return Problem(
        frame=Frame(),
        heading=phrase("This was begun in another browser"),
        paragraphs=(
            phrase("Go on in the browser or app in which you opened the link first. Nothing has changed yet."),
            phrase(
                "If this is the only browser you used, allow it to keep cookies for this site and open the link again. "
                "If that does not help, ask for a new link."
            ),
        ),
    )


def stopped() -> View:
    """Too many wrong codes (D45)."""
    return Problem(
        frame=Frame(),
        heading=phrase("This was stopped for your safety"),
        paragraphs=(
            phrase("The code was wrong too often. Nothing has changed, and the link no longer works."),
            phrase("Ask for a new link where you got this one."),
        ),
    )
