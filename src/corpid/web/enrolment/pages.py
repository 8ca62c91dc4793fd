"""From an enrolment's step to the page that shows it (DESIGN "Pages")."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from corpid.directory.password_rules import SHORTEST
from corpid.flows import interactions
from corpid.flows.account.own_client import PATH as ACCOUNT_PATH
from corpid.flows.enrolment import enrolments, proving, setting
from corpid.flows.enrolment.steps import PATHS, Step
from corpid.protocol import totp
from corpid.texts import phrase
from corpid.web.enrolment import views
from corpid.web.frame import Form, Frame, Link
from corpid.web.signin.factor_fields import AskPasskey
from corpid.web.views import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid import ports
    from corpid.directory.records import User
    from corpid.flows.caller import Caller
    from corpid.flows.enrolment.enrolments import Enrolment, Sitting
    from corpid.ports import LinkPurpose
    from corpid.texts import Phrase
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View

    Page = Callable[[Desk, Sitting, Frame, tuple[FieldError, ...]], Awaitable[View]]

PATH: Final = "/enrolment/"
_GROUP: Final = 4
RULES: Final = phrase(
    "At least {shortest} characters. Several words make a good one; no special characters are needed.",
    shortest=SHORTEST,
)
_HEADINGS: Final[Mapping[LinkPurpose, Phrase]] = {
    "invitation": phrase("Set up your sign-in"),
    "password": phrase("Choose a new password"),
    "second_factor": phrase("Set up your second factor anew"),
}


_NO_MORE_TIME: Final = phrase("There is no more time after that. If it is too short, ask for a new link.")


def place(desk: Desk, enrolment_id: str, action: str = "") -> str:
    """The address path of an enrolment's page, or of one of its actions."""
    return f"{desk.base_path}{PATH}{enrolment_id}" + (f"/{action}" if action else "")


def begin(desk: Desk, link: ports.Link, user: User, *, action: str, form_token: str) -> View:
    """What a link is for (D46)."""
    name = desk.provider.policy.name
    told = {
        "invitation": phrase("{user}, here you set up how you sign in with {name}.", user=user.name, name=name),
        "password": phrase("{user}, here you choose a new password for {name}.", user=user.name, name=name),
        "second_factor": phrase("{user}, here you set up a new second factor for {name}.", user=user.name, name=name),
    }
    return views.Begin(
        frame=Frame(form_token=form_token, under_way=True),
        action=action,
        heading=_HEADINGS[link.purpose],
        told=told[link.purpose],
        user_name=user.user_name,
        steps=len(PATHS[link.purpose]),
    )


def step_name(enrolment: Enrolment) -> str:
    """What a form says of its page: more time leaves the forms that are shown as they are (D15, WCAG 2.2.1)."""
    return str(enrolment.serial - enrolment.extensions)


def _frame(desk: Desk, caller: Caller, sitting: Sitting) -> Frame:
    enrolment, provider = sitting.enrolment, desk.provider
    steps, more = enrolment.steps, Form(action=place(desk, enrolment.enrolment_id, "extend"))
    return Frame(
        step=(steps.index(enrolment.step) + 1, len(steps)) if enrolment.step else None,
        step_name=step_name(enrolment),
        form_token=interactions.form_token(provider, enrolment.browser_id, enrolment.enrolment_id),
        expires_at=datetime.fromtimestamp(enrolment.expires_at, provider.policy.timezone),
        expires_in=max(0, int(enrolment.expires_at - caller.now)),
        extend=more if sitting.extendable else None,
        last_time=None if sitting.extendable else _NO_MORE_TIME,
        under_way=True,
    )


async def of_step(desk: Desk, caller: Caller, sitting: Sitting, *, errors: tuple[FieldError, ...] = ()) -> View:
    """The page of an enrolment's step, and the one after its end."""
    if sitting.enrolment.finished:
        return await _finished(desk, sitting)
    return await _PAGES[sitting.enrolment.step](desk, sitting, _frame(desk, caller, sitting), errors)


def _passkey(desk: Desk, sitting: Sitting, options: str) -> AskPasskey | None:
    if not options:
        return None
    return AskPasskey(action=place(desk, sitting.enrolment.enrolment_id, "passkey"), options=options)


async def _first(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    options = await setting.passkey_options(desk.provider, sitting)
    return views.ChoosePassword(
        frame=frame,
        action=place(desk, sitting.enrolment.enrolment_id, "password"),
        heading=phrase("Choose how you sign in") if options else phrase("Choose a password"),
        user_name=sitting.user.user_name,
        hint=RULES,
        passkey=_passkey(desk, sitting, options),
        errors=errors,
    )


async def _password(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    return views.ChoosePassword(
        frame=frame,
        action=place(desk, sitting.enrolment.enrolment_id, "password"),
        heading=phrase("Choose a new password"),
        user_name=sitting.user.user_name,
        hint=RULES,
        errors=errors,
    )


async def _second_factor(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    enrolment_id = sitting.enrolment.enrolment_id
    secret = enrolments.app_secret(desk.provider, sitting.enrolment)
    return views.SetUpApp(
        frame=frame,
        action=place(desk, enrolment_id, "code"),
        picture=place(desk, enrolment_id, "qr.svg"),
        app_link=app_link(desk, sitting),
        secret=" ".join(secret[start : start + _GROUP] for start in range(0, len(secret), _GROUP)),
        passkey=_passkey(desk, sitting, await setting.passkey_options(desk.provider, sitting)),
        errors=errors,
    )


def app_link(desk: Desk, sitting: Sitting) -> str:
    """What the QR code says (D45)."""
    secret = enrolments.app_secret(desk.provider, sitting.enrolment)
    return totp.otpauth_uri(secret, account=sitting.user.user_name, issuer=desk.provider.policy.name)


async def _codes(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    return views.KeepCodes(
        frame=frame,
        action=place(desk, sitting.enrolment.enrolment_id, "codes"),
        codes=enrolments.codes(desk.provider, sitting.enrolment),
        replaces=await desk.provider.registry.factors.recovery_codes_left(sitting.user.user_id) > 0,
        errors=errors,
    )


async def _prove_password(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    return views.ProvePassword(
        frame=frame,
        action=place(desk, sitting.enrolment.enrolment_id, "password"),
        user_name=sitting.user.user_name,
        errors=errors,
    )


async def _prove_second_factor(desk: Desk, sitting: Sitting, frame: Frame, errors: tuple[FieldError, ...]) -> View:
    return views.ProveSecondFactor(
        frame=frame,
        action=place(desk, sitting.enrolment.enrolment_id, "code"),
        takes_codes=await proving.has_codes(desk.provider, sitting.user),
        passkey=_passkey(desk, sitting, await proving.passkey_options(desk.provider, sitting)),
        errors=errors,
    )


async def _save(desk: Desk, sitting: Sitting, frame: Frame, _: tuple[FieldError, ...]) -> View:
    return views.Save(frame=frame, action=place(desk, sitting.enrolment.enrolment_id, "finish"))


_PAGES: Final[Mapping[Step | None, Page]] = {
    Step.FIRST: _first,
    Step.PASSWORD: _password,
    Step.SECOND_FACTOR: _second_factor,
    Step.RECOVERY_CODES: _codes,
    Step.PROVE_PASSWORD: _prove_password,
    Step.PROVE_SECOND_FACTOR: _prove_second_factor,
    None: _save,
}
_DONE: Final[Mapping[LinkPurpose, Phrase]] = {
    "invitation": phrase("Your sign-in is set up"),
    "password": phrase("Your password is changed"),
    "second_factor": phrase("Your second factor is changed"),
}


async def _finished(desk: Desk, sitting: Sitting) -> View:
    account = desk.base_path + ACCOUNT_PATH
    older = await setting.passkeys_from_before(desk.provider, sitting)
    names = ", ".join(each.name for each in older)
    left = phrase(
        "These passkeys still open your account: {names}. Was one of them on a device that you have lost? Remove it.",
        names=names,
    )
    return Problem(
        frame=Frame(),
        heading=_DONE[sitting.enrolment.purpose],
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
