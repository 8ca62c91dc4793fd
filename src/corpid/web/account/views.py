"""Views of the account's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.rules.authentication.passwords import SHORTEST_PASSWORD
from corpid.rules.limits import EMAIL_UNDO_SECONDS, HOUR, MAILED_CODE_SECONDS, MINUTE
from corpid.texts import Phrase, phrase
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.web.pages.views import AskPasskey


class AddPasskey(PageView, frozen=True, kw_only=True):
    """A form that creates a passkey. Field: passkey."""

    template: ClassVar[str] = "account/add_passkey.html"
    heading: ClassVar[Phrase] = phrase("Add a passkey")

    passkey: AskPasskey


class BrowserLine(ViewPart, frozen=True, kw_only=True):
    """A browser in which the person is signed in."""

    name: str
    given_name: str
    """by the person; empty if they gave none"""
    rename: str
    """the page that names it; empty if there is none"""
    device: str
    since: datetime
    seen: datetime
    this: bool


class Browsers(FormView, frozen=True, kw_only=True):
    """The person's signed-in browsers. Field: browser; or decision=others."""

    template: ClassVar[str] = "account/browsers.html"
    heading: ClassVar[Phrase] = phrase("Where you are signed in")

    browsers: tuple[BrowserLine, ...]


class SharedLine(ViewPart, frozen=True, kw_only=True):
    """Data shared with one service for one organisation."""

    url: str
    """the page that ends it"""
    client: str
    entity: str
    since: datetime
    until: datetime
    items: tuple[Phrase, ...]


class Sharing(PageView, frozen=True, kw_only=True):
    """The services that receive a person's data by their consent."""

    template: ClassVar[str] = "account/sharing.html"
    heading: ClassVar[Phrase] = phrase("Services you share data with")

    lines: tuple[SharedLine, ...]
    asked_again: bool = False
    """whether each sign-in asks for consent, also where it was given before"""
    later: str = ""
    """the page of later consents; empty if this is the first"""
    earlier: str = ""
    """the page of earlier consents; empty if this is the last"""


class SignInLine(ViewPart, frozen=True, kw_only=True):
    """A past sign-in.

    An empty client is the account. A name no longer known is a phrase.
    """

    at: datetime
    client: str
    entity: str
    factors: Phrase
    device: str
    network: str = ""
    """empty if it is not known"""


class SignIns(PageView, frozen=True, kw_only=True):
    """The last sign-ins of a person."""

    template: ClassVar[str] = "account/sign_ins.html"
    heading: ClassVar[Phrase] = phrase("Your last sign-ins")

    sign_ins: tuple[SignInLine, ...]


class ChangeEmail(FormView, frozen=True, kw_only=True):
    """A new e-mail address, which a code is sent to. Field: email."""

    template: ClassVar[str] = "account/email.html"
    heading: ClassVar[Phrase] = phrase("Your e-mail address")

    old: str
    """empty if there is none"""
    typed: str = ""
    hours: int = EMAIL_UNDO_SECONDS // HOUR


CODE_HINT: Final = phrase("It works for {minutes} minutes, on this page only.", minutes=MAILED_CODE_SECONDS // MINUTE)


class ProveEmail(FormView, frozen=True, kw_only=True):
    """The code that was sent to a new e-mail address.

    Field: code. The buttons send decision=code, decision=again and decision=other.
    """

    template: ClassVar[str] = "account/prove_email.html"
    heading: ClassVar[Phrase] = phrase("Confirm your new e-mail address")

    new: str
    hint: Phrase = CODE_HINT


class EmailWaiting(FormView, frozen=True, kw_only=True):
    """A new e-mail address that takes effect later. The button sends decision=keep."""

    template: ClassVar[str] = "account/email_waiting.html"
    heading: ClassVar[Phrase] = phrase("Your e-mail address is about to change")

    old: str
    new: str
    at: datetime


class UndoEmail(FormView, frozen=True, kw_only=True):
    """The page of a link that undoes a change of address.

    No fields of its own.
    """

    template: ClassVar[str] = "enrolment/undo_email.html"

    heading: Phrase
    introduction: Phrase
    user_name: str
    old: str
    new: str
    """both masked: the mailbox may be somebody else's by now"""


class ChooseLanguage(FormView, frozen=True, kw_only=True):
    """The language of e-mails, and of the pages in this browser.

    Field: language.
    """

    template: ClassVar[str] = "account/language.html"
    heading: ClassVar[Phrase] = phrase("Your language")

    chosen: str


RULES: Final = phrase(
    "At least {shortest} characters. Several words make a good one; you do not need special characters.",
    shortest=SHORTEST_PASSWORD,
)


class ChoosePassword(FormView, frozen=True, kw_only=True):
    """A new password, or a passkey instead.

    Fields: user_name (for password managers), password. Of the other form: passkey.
    """

    template: ClassVar[str] = "factors/choose_password.html"

    heading: Phrase
    user_name: str
    hint: Phrase = RULES
    passkey: AskPasskey | None = None


class SetUpApp(FormView, frozen=True, kw_only=True):
    """An authenticator app, or a passkey or codes by e-mail instead.

    Fields: code; of the other forms: passkey; decision=email. Error ids: code, passkey.
    """

    template: ClassVar[str] = "factors/set_up_app.html"
    heading: ClassVar[Phrase] = phrase("Set up your second step")

    picture: str
    """address of the QR code"""
    app_link: str
    """opens an app on the same device (otpauth)"""
    secret: str
    """in groups, to be typed"""
    passkey: AskPasskey | None = None
    by_email: str = ""
    """the target of the button for codes by e-mail; empty: there are none"""
    remove: Link | None = None
    """if the account removes the previous one"""


OTHER_CODES: Final = "other-codes"
"""the `decision` of a person who has not saved the codes"""


class KeepCodes(FormView, frozen=True, kw_only=True):
    """Recovery codes, readable for a minute (D73).

    Fields: kept, decision=OTHER_CODES.
    """

    template: ClassVar[str] = "factors/keep_codes.html"
    heading: ClassVar[Phrase] = phrase("Save your recovery codes")
    other_codes: ClassVar[str] = OTHER_CODES

    codes: tuple[str, ...]
    """empty once they are no longer shown"""
    replaces: bool = False
    """whether the person has others, which end"""
    back: str = ""
    """the way back to the account; empty if there is none"""
    remove: Link | None = None
    """if the account removes the previous one"""


class Invitation(FormView, frozen=True, kw_only=True):
    """An invitation, and the two ways to accept it.

    The buttons send decision=sign_in, decision=new and decision=decline.
    """

    template: ClassVar[str] = "enrolment/invitation.html"

    heading: Phrase
    introduction: Phrase
    entity: str
    number_name: Phrase
    number: str
    steps: int
    fewer: bool
    """whether they may be fewer, with a passkey"""


class Accept(FormView, frozen=True, kw_only=True):
    """An invitation, for the person who is signed in.

    The buttons send decision=accept, decision=decline and decision=other_account.
    """

    template: ClassVar[str] = "account/invitation.html"

    heading: Phrase
    entity: str
    number_name: Phrase
    number: str
    name: str
    user_name: str
    belongs: bool
    """whether the person acts for the entity already"""
