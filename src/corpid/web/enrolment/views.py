"""What the pages of an enrolment show; the rules are those of `web.views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.web.frame import Frame
    from corpid.web.signin.factor_fields import AskPasskey
    from corpid.web.views import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """What a link is for, and for whom. The one button spends nothing yet."""

    template: ClassVar[str] = "enrolment/begin.html"

    frame: Frame
    action: str
    heading: Phrase
    told: Phrase
    user_name: str
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosePassword:
    """A new password, or a passkey instead. Fields: user_name (for password managers), password; of the other form: passkey."""

    template: ClassVar[str] = "enrolment/choose_password.html"

    frame: Frame
    action: str
    heading: Phrase
    user_name: str
    hint: Phrase
    passkey: AskPasskey | None = None
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpApp:
    """An authenticator app, or a passkey instead. Fields: code; of the other form: passkey."""

    template: ClassVar[str] = "enrolment/set_up_app.html"
    heading: ClassVar[Phrase] = phrase("Set up your second factor")

    frame: Frame
    action: str
    picture: str
    """address of the QR code"""
    app_link: str
    """opens an app on the same device (otpauth)"""
    secret: str
    """in groups, to be typed"""
    passkey: AskPasskey | None = None
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepCodes:
    """Recovery codes, shown this once. Field: kept."""

    template: ClassVar[str] = "enrolment/keep_codes.html"
    heading: ClassVar[Phrase] = phrase("Keep these recovery codes")

    frame: Frame
    action: str
    codes: tuple[str, ...]
    replaces: bool = False
    """whether the person has others, which end"""
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvePassword:
    """The password that the person has. Fields: user_name (for password managers), password."""

    template: ClassVar[str] = "enrolment/prove_password.html"
    heading: ClassVar[Phrase] = phrase("Enter your password")

    frame: Frame
    action: str
    user_name: str
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveSecondFactor:
    """The second factor that the person has. Fields: code; of the other form: passkey."""

    template: ClassVar[str] = "enrolment/prove_second_factor.html"
    heading: ClassVar[Phrase] = phrase("Show that it is you")

    frame: Frame
    action: str
    takes_codes: bool
    passkey: AskPasskey | None = None
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """Every step was done, but what they brought could not be written at that moment."""

    template: ClassVar[str] = "enrolment/save.html"
    heading: ClassVar[Phrase] = phrase("One last click")

    frame: Frame
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenPassword:
    """Asks whose password was forgotten. Field: user_name."""

    template: ClassVar[str] = "enrolment/forgotten_password.html"
    heading: ClassVar[Phrase] = phrase("Choose a new password")

    frame: Frame
    action: str
    errors: tuple[FieldError, ...] = ()
