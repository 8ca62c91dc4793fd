"""From what the flows say of an account to the pages that show it (DESIGN "Pages")."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows import interactions
from corpid.flows.account import activity, own_factors
from corpid.flows.account.own_client import PATH
from corpid.protocol import assurance, totp
from corpid.texts import counted, phrase
from corpid.web.account import views
from corpid.web.enrolment.pages import RULES
from corpid.web.enrolment.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.frame import Frame, Link
from corpid.web.languages import LANGUAGES, lookup
from corpid.web.signin.factor_fields import AskPasskey
from corpid.web.signin.sign_out import SIGN_OUT_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.account.seats import Seat
    from corpid.flows.caller import Caller
    from corpid.ports import Passkey
    from corpid.texts import Phrase
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View

_UP: Final = phrase("Your account")
_UP_TO_PASSKEYS: Final = phrase("Your passkeys")
_GROUP: Final = 4
_REFERENCE_CHARACTERS: Final = 16
_SHOWN: Final[Mapping[tuple[str, ...], Phrase]] = {
    assurance.PASSKEY: phrase("Passkey"),
    assurance.PASSWORD_AND_CODE: phrase("Password and code"),
}


def place(desk: Desk, page: str = "") -> str:
    """The address path of a page of the account."""
    return f"{desk.base_path}{PATH}" + (f"/{page}" if page else "")


def reference(passkey: Passkey) -> str:
    """What stands for a passkey in the address of its page."""
    return sha256(passkey.credential_id.encode()).hexdigest()[:_REFERENCE_CHARACTERS]


def _frame(desk: Desk, sitting: Seat, *, up: Link | None = None, step_name: str = "") -> Frame:
    token = interactions.form_token(desk.provider, sitting.browser.browser_id, sitting.form)
    return Frame(form_token=token, step_name=step_name, up=up or Link(url=place(desk), text=_UP))


def _moment(desk: Desk, at: int) -> datetime:
    return datetime.fromtimestamp(at, desk.provider.policy.timezone)


async def overview(desk: Desk, caller: Caller, sitting: Seat, *, saved: bool) -> View:
    """Everything there is, and how it stands."""
    factors = await own_factors.of(desk.provider, sitting)
    browsers = await activity.signed_in(desk.provider, caller, sitting)
    token = interactions.form_token(desk.provider, sitting.browser.browser_id, sitting.form)
    return views.Overview(
        frame=Frame(form_token=token),
        name=sitting.user.name,
        user_name=sitting.user.user_name,
        sections=(*_factor_sections(desk, factors), *_other_sections(desk, sitting, len(browsers))),
        sign_out=desk.base_path + SIGN_OUT_PATH,
        saved=saved,
    )


def _factor_sections(desk: Desk, factors: own_factors.Factors) -> tuple[views.Section, ...]:
    number, left = len(factors.passkeys), factors.codes_left
    known = phrase("Set up") if factors.has_password else phrase("None")
    app = phrase("Set up") if factors.credentials.totp_secret else phrase("None")
    return (
        views.Section(
            url=place(desk, "passkeys"),
            name=phrase("Passkeys"),
            state=counted(number, "{count} passkey", "{count} passkeys") if number else phrase("None"),
        ),
        views.Section(url=place(desk, "password"), name=phrase("Password"), state=known),
        views.Section(url=place(desk, "app"), name=phrase("Authenticator app"), state=app),
        views.Section(
            url=place(desk, "codes"),
            name=phrase("Recovery codes"),
            state=counted(left, "{count} code left", "{count} codes left") if left else phrase("None"),
        ),
    )


def _other_sections(desk: Desk, sitting: Seat, browsers: int) -> tuple[views.Section, ...]:
    language = lookup((sitting.user.language,), LANGUAGES)
    return (
        views.Section(
            url=place(desk, "browsers"),
            name=phrase("Where you are signed in"),
            state=counted(browsers, "{count} browser", "{count} browsers"),
        ),
        views.Section(
            url=place(desk, "sign-ins"), name=phrase("Your last sign-ins"), state=phrase("When, where and how")
        ),
        views.Section(
            url=place(desk, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else sitting.user.language),
        ),
    )


def _line(desk: Desk, passkey: Passkey) -> views.PasskeyLine:
    return views.PasskeyLine(
        url=place(desk, f"passkey/{reference(passkey)}"),
        name=passkey.name,
        made=_moment(desk, passkey.created_at),
        used=_moment(desk, passkey.used_at) if passkey.used_at else None,
        synced=passkey.synced,
    )


async def passkeys(desk: Desk, sitting: Seat, *, saved: bool) -> View:
    """The passkeys of a person (D46)."""
    factors = await own_factors.of(desk.provider, sitting)
    return views.Passkeys(
        frame=_frame(desk, sitting),
        passkeys=tuple(_line(desk, each) for each in factors.passkeys),
        add=place(desk, "new-passkey") if own_factors.makes_passkeys(desk.provider) else "",
        saved=saved,
    )


async def new_passkey(desk: Desk, sitting: Seat, errors: tuple[FieldError, ...]) -> View:
    """Where a passkey is made (D46)."""
    return views.AddPasskey(
        frame=_frame(desk, sitting, up=Link(url=place(desk, "passkeys"), text=_UP_TO_PASSKEYS)),
        passkey=AskPasskey(
            action=place(desk, "new-passkey"),
            options=await own_factors.passkey_options(desk.provider, sitting),
        ),
        errors=errors,
    )


def passkey(desk: Desk, sitting: Seat, shown: Passkey, form: Mapping[str, str], errors: tuple[FieldError, ...]) -> View:
    """One passkey, which can be renamed and removed (D46)."""
    return views.Passkey(
        frame=_frame(desk, sitting, up=Link(url=place(desk, "passkeys"), text=_UP_TO_PASSKEYS)),
        action=place(desk, f"passkey/{reference(shown)}"),
        passkey=_line(desk, shown),
        heading=phrase("{name}", name=shown.name),
        typed=form.get("name", shown.name),
        errors=errors,
    )


async def app(desk: Desk, sitting: Seat, errors: tuple[FieldError, ...]) -> View:
    """Setting up an app anew (D45)."""
    factors = await own_factors.of(desk.provider, sitting)
    secret = own_factors.app_secret(desk.provider, sitting, factors.credentials)
    return SetUpApp(
        frame=_frame(desk, sitting),
        action=place(desk, "app"),
        picture=place(desk, "app/qr.svg"),
        app_link=_app_link(desk, sitting, secret),
        secret=" ".join(secret[start : start + _GROUP] for start in range(0, len(secret), _GROUP)),
        errors=errors,
    )


async def app_link(desk: Desk, sitting: Seat) -> str:
    """What the QR code says (D45)."""
    factors = await own_factors.of(desk.provider, sitting)
    return _app_link(desk, sitting, own_factors.app_secret(desk.provider, sitting, factors.credentials))


def _app_link(desk: Desk, sitting: Seat, secret: str) -> str:
    return totp.otpauth_uri(secret, account=sitting.user.user_name, issuer=desk.provider.policy.name)


def password(desk: Desk, sitting: Seat, errors: tuple[FieldError, ...]) -> View:
    """Choosing a new password (D44)."""
    return ChoosePassword(
        frame=_frame(desk, sitting),
        action=place(desk, "password"),
        heading=phrase("Choose a new password"),
        user_name=sitting.user.user_name,
        hint=RULES,
        errors=errors,
    )


async def codes(desk: Desk, sitting: Seat, form: Mapping[str, str], errors: tuple[FieldError, ...]) -> View:
    """New recovery codes; those that were not yet kept are shown again (D45)."""
    again = form.get("step", "") if "kept" not in form else ""
    offer = again or own_factors.offer_codes(desk.provider, sitting)
    factors = await own_factors.of(desk.provider, sitting)
    return KeepCodes(
        frame=_frame(desk, sitting, step_name=offer),
        action=place(desk, "codes"),
        codes=own_factors.codes(desk.provider, offer),
        replaces=factors.codes_left > 0,
        errors=errors,
    )


async def browsers(desk: Desk, caller: Caller, sitting: Seat, *, saved: bool) -> View:
    """Where the person is signed in (D30)."""
    found = await activity.signed_in(desk.provider, caller, sitting)
    return views.Browsers(
        frame=_frame(desk, sitting),
        action=place(desk, "browsers"),
        browsers=tuple(
            views.BrowserLine(
                name=each.name,
                device=each.device,
                since=_moment(desk, each.since),
                seen=_moment(desk, each.seen_at),
                this=each.this,
            )
            for each in found
        ),
        saved=saved,
    )


async def sign_ins(desk: Desk, caller: Caller, sitting: Seat) -> View:
    """The last sign-ins."""
    lines = tuple(
        views.SignInLine(
            at=_moment(desk, each.at),
            client=each.client_name,
            entity=each.entity_name,
            factors=_SHOWN.get(each.amr, phrase("Another way")),
            device=each.device,
        )
        for each in await activity.past(desk.provider, caller, sitting)
    )
    return views.SignIns(frame=_frame(desk, sitting), sign_ins=lines)


def language(desk: Desk, sitting: Seat, errors: tuple[FieldError, ...]) -> View:
    """Choosing a language."""
    known = lookup((sitting.user.language,), LANGUAGES)
    return views.ChooseLanguage(
        frame=_frame(desk, sitting),
        action=place(desk, "language"),
        chosen=known.tag if known else "",
        errors=errors,
    )
