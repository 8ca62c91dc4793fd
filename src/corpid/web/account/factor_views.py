"""Views of the pages that set up factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.rules.authentication.password_rules import SHORTEST
from corpid.texts import Phrase, phrase
from corpid.web.pages.layout import FormView

if TYPE_CHECKING:
    from corpid.web.pages.layout import Link
    from corpid.web.pages.views import AskPasskey

RULES: Final = phrase(
    "At least {shortest} characters. Several words make a good one; no special characters are needed.",
    shortest=SHORTEST,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosePassword(FormView):
    """A new password, or a passkey instead.

    Fields: user_name (for password managers), password. Of the other form: passkey.
    """

    template: ClassVar[str] = "factors/choose_password.html"

    heading: Phrase
    user_name: str
    hint: Phrase = RULES
    passkey: AskPasskey | None = None
    notes: tuple[Phrase, ...] = ()
    """what the account says of it first"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpApp(FormView):
    """An authenticator app, or a passkey or codes by e-mail instead.

    Fields: code; of the other forms: passkey; decision=email. Error ids: code, passkey.
    """

    template: ClassVar[str] = "factors/set_up_app.html"
    heading: ClassVar[Phrase] = phrase("Set up your second factor")

    picture: str
    """address of the QR code"""
    app_link: str
    """opens an app on the same device (otpauth)"""
    secret: str
    """in groups, to be typed"""
    passkey: AskPasskey | None = None
    by_email: str = ""
    """the target of the button for codes by e-mail; empty: there are none"""
    notes: tuple[Phrase, ...] = ()
    """what the account says of it first"""
    remove: Link | None = None
    """if the account removes the previous one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepCodes(FormView):
    """Recovery codes, shown only once. Field: kept."""

    template: ClassVar[str] = "factors/keep_codes.html"
    heading: ClassVar[Phrase] = phrase("Keep these recovery codes")

    codes: tuple[str, ...]
    replaces: bool = False
    """whether the person has others, which end"""
    notes: tuple[Phrase, ...] = ()
    """what the account says of it first"""
    remove: Link | None = None
    """if the account removes the previous one"""
