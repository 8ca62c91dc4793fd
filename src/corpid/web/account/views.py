"""What the account's pages show; the rules are those of `web.views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.web.frame import Frame
    from corpid.web.signin.factor_fields import AskPasskey
    from corpid.web.views import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the account: its page, its name, and how it stands."""

    url: str
    name: Phrase
    state: Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Where everything is, and for whom."""

    template: ClassVar[str] = "account/overview.html"
    heading: ClassVar[Phrase] = phrase("Your account")

    frame: Frame
    name: str
    user_name: str
    sections: tuple[Section, ...]
    sign_out: str
    saved: bool = False
    """whether something was just changed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyLine:
    """A passkey; `used` is None for one that was never used."""

    url: str
    name: str
    made: datetime
    used: datetime | None
    synced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkeys:
    """The passkeys of a person."""

    template: ClassVar[str] = "account/passkeys.html"
    heading: ClassVar[Phrase] = phrase("Your passkeys")

    frame: Frame
    passkeys: tuple[PasskeyLine, ...]
    add: str
    """the page that makes one; empty where passkeys do not work"""
    saved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPasskey:
    """Makes a passkey. Field: passkey."""

    template: ClassVar[str] = "account/add_passkey.html"
    heading: ClassVar[Phrase] = phrase("Add a passkey")

    frame: Frame
    passkey: AskPasskey
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """One passkey. Field: name; the buttons send decision=rename and decision=remove."""

    template: ClassVar[str] = "account/passkey.html"

    frame: Frame
    action: str
    passkey: PasskeyLine
    heading: Phrase
    typed: str = ""
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLine:
    """A browser in which the person is signed in."""

    name: str
    device: str
    since: datetime
    seen: datetime
    this: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsers:
    """Where the person is signed in. Field: browser; or decision=others."""

    template: ClassVar[str] = "account/browsers.html"
    heading: ClassVar[Phrase] = phrase("Where you are signed in")

    frame: Frame
    action: str
    browsers: tuple[BrowserLine, ...]
    saved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLine:
    """A sign-in of the past; an empty client is the account itself."""

    at: datetime
    client: str
    entity: str
    factors: Phrase
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIns:
    """The last sign-ins of a person."""

    template: ClassVar[str] = "account/sign_ins.html"
    heading: ClassVar[Phrase] = phrase("Your last sign-ins")

    frame: Frame
    sign_ins: tuple[SignInLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseLanguage:
    """The language of letters and pages. Field: language."""

    template: ClassVar[str] = "account/language.html"
    heading: ClassVar[Phrase] = phrase("Your language")

    frame: Frame
    action: str
    chosen: str
    errors: tuple[FieldError, ...] = ()
