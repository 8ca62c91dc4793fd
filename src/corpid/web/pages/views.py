"""Views: one frozen record per page, rendered by `web.pages.rendering`.

Rules of this file: a view holds text, paths and choices, never markup; every text is escaped by the template. What
CorpID says is a `Phrase`, which the page says in its language; what others say is a str. A view names its template and
the heading, which is the h1 and the page's title. Every POST form carries `form_token` and `step` in addition to the
fields that its view names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication.entity_selection import SHOWN
from corpid.rules.authentication.sign_in import SecondFactorMethod
from corpid.rules.directory.members import masked_address
from corpid.rules.limits import DAY, MAILED_CODE_SECONDS, MINUTE, PASSKEY_OFFER_AGAIN_SECONDS
from corpid.texts import Phrase, phrase
from corpid.web.pages.components import FormView, Link, PageView, ViewPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from corpid.flows.authentication.factors import SecondFactorQuestion
    from corpid.rules.directory.records import ListedTestPerson

_CODE: Final = phrase("Code")


class AskPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """A passkey form, shown and filled by a script if supported.

    Field: passkey. Error id: passkey.
    """

    action: str
    options: str
    """JSON for `navigator.credentials.get`, or for `create` if one is made"""


class SecondFactorForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of one second factor, and buttons for the others.

    Those buttons send decision to `ways_action`.
    """

    hint: Phrase
    label: Phrase | None = _CODE
    """of the field; None: there is nothing to type yet"""
    numeric: bool = True
    passkey: AskPasskey | None = None
    """shown instead of something that is typed"""
    send: bool = False
    """whether the page's button has a code sent (decision=email)"""
    ways_action: str = ""
    ways: tuple[tuple[str, Phrase], ...] = ()
    """decision, and what the button says"""


_SIGN_IN: Final = phrase("Sign in")
TAKING_YOU_BACK: Final = phrase("Taking you back")
ONE_MOMENT: Final = phrase("One moment")


class TestPersonForm(ViewPart, frozen=True, kw_only=True):
    """The form of developer mode that signs a test person in (D66).

    Fields: person (a button each), way. Error id: person.
    """

    action: str
    people: Sequence[ListedTestPerson]
    anybody: str
    """the address of the page that makes another test person"""
    ways: tuple[str, ...]
    """names of what amr can claim, the default first"""


class SignIn(FormView, frozen=True, kw_only=True):
    """Step one: user name and password, or passkey.

    Fields: user_name, password. Of the second form: passkey. Error ids: these. If `person` has to sign in again, a
    third form sends decision=other_account.
    """

    template: ClassVar[str] = "sign_in.html"

    person: str = ""
    """the name of the one person who may sign in, whose user name is fixed; empty: anybody may"""
    user_name: str = ""
    """what was typed, kept after an error; or the person's"""
    passkey: AskPasskey | None = None
    passkey_first: bool = False
    """whether the passkey's button leads, since this browser has used one"""
    recover: str
    """the address for a forgotten password"""
    at_once: TestPersonForm | None = None
    """in developer mode only"""

    @property
    def heading(self) -> Phrase:
        """The h1, which names the one person who may sign in."""
        return phrase("Confirm it is you, {name}", name=self.person) if self.person else _SIGN_IN


class SecondFactor(FormView, frozen=True, kw_only=True):
    """Step two: the second factor.

    Field: code, which may contain spaces when pasted, or passkey. Error ids: these.
    """

    template: ClassVar[str] = "second_factor.html"

    heading: Phrase
    asked: SecondFactorForm
    sends_mail: bool
    """whether administrators can help: they do by e-mail only (D69)"""


_OTHER_WAYS: Final[Mapping[SecondFactorMethod, Phrase]] = {
    SecondFactorMethod.APP: phrase("Use your authenticator app"),
    SecondFactorMethod.PASSKEY: phrase("Use your passkey"),
    SecondFactorMethod.EMAIL: phrase("Send me a code by e-mail"),
    SecondFactorMethod.RECOVERY: phrase("Use a recovery code"),
}
_USE_SENT_CODE: Final = phrase("Use the code we sent you")
_SEND_NEW_CODE: Final = (SecondFactorMethod.EMAIL.value, phrase("Send a new code"))
_NO_MORE_CODES: Final = phrase(
    "We cannot send any more codes in this sign-in. Use another way, or cancel and start again."
)
_OWN_WAYS: Final[Mapping[SecondFactorMethod, tuple[Phrase, SecondFactorForm]]] = {
    SecondFactorMethod.APP: (
        phrase("Enter your 6-digit code"),
        SecondFactorForm(hint=phrase("Open your authenticator app. It shows a new code every 30 seconds.")),
    ),
    SecondFactorMethod.PASSKEY: (
        phrase("Sign in with your passkey"),
        SecondFactorForm(hint=phrase("Your device asks for your fingerprint, your face or its PIN."), label=None),
    ),
    SecondFactorMethod.RECOVERY: (
        phrase("Enter a recovery code"),
        SecondFactorForm(
            hint=phrase("One of the codes that you saved when you set up your sign-in. Each works once."),
            label=phrase("Recovery code"),
            numeric=False,
        ),
    ),
}
"""of what a person has already"""


def second_factor_form(page: SecondFactorQuestion, ways_action: str) -> tuple[Phrase, SecondFactorForm]:
    """The heading of a second factor's page, and its form.

    Source: D45
    """
    labels = {**_OTHER_WAYS, SecondFactorMethod.EMAIL: _USE_SENT_CODE} if page.under_way else _OTHER_WAYS
    ways = tuple((other.value, labels[other]) for other in page.others)
    if page.way is not SecondFactorMethod.EMAIL:
        heading, wanted = _OWN_WAYS[page.way]
        return heading, replace(wanted, ways_action=ways_action, ways=ways)
    address = masked_address(page.email)
    if page.under_way:
        hint = phrase(
            "We sent it to {address}. It works for {minutes} minutes, on this page only.",
            address=address,
            minutes=MAILED_CODE_SECONDS // MINUTE,
        )
        again = (_SEND_NEW_CODE,) if page.more else ()
        return phrase("Enter the code we sent you"), SecondFactorForm(
            hint=hint, ways_action=ways_action, ways=again + ways
        )
    hint = phrase("We can send a 6-digit code to {address}.", address=address) if page.more else _NO_MORE_CODES
    not_sent = SecondFactorForm(hint=hint, label=None, send=page.more, ways_action=ways_action, ways=ways)
    return phrase("Get a code by e-mail"), not_sent


class OfferPasskey(FormView, frozen=True, kw_only=True):
    """The offer of a passkey, after a sign-in with a password (D46).

    Fields: passkey, or decision=not_now. Error id: passkey.
    """

    template: ClassVar[str] = "offer_passkey.html"
    heading: ClassVar[Phrase] = phrase("Sign in with a passkey next time?")

    passkey: AskPasskey | None
    """None if passkeys work here no longer"""
    days: int = PASSKEY_OFFER_AGAIN_SECONDS // DAY
    """how long a person who chose Not now is not asked again"""


CHOICES_WITHOUT_SEARCH: Final = 8
"""up to so many entities, no search box is shown (docs/accessibility.md)"""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An entity in a list.

    `number` is shown as it is, after what it is called.
    """

    id: str
    name: str
    number: str
    number_name: Phrase
    status: Phrase | None = None
    usable: bool = True
    reason: Phrase | None = None
    """why it is not usable, a whole sentence"""
    preselected: bool = False


class ChooseEntity(FormView, frozen=True, kw_only=True):
    """Step three: the entity.

    Fields: entity (`Choice.id`), query (the search term, hidden). With `other_account` a second button sends
    decision=other_account. The search is a GET to `search_action` with the field query and carries no token, since a
    token has no place in an address. Error ids: entity, query.
    """

    template: ClassVar[str] = "choose_entity.html"
    heading: ClassVar[Phrase] = phrase("Choose who you act for")

    search_action: str
    choices: tuple[Choice, ...]
    """those that match the query; the first 50 are shown"""
    total: int
    """how many match the query"""
    query: str = ""
    other_account: bool = False

    @property
    def shown(self) -> tuple[Choice, ...]:
        """The rendered choices."""
        return self.choices[:SHOWN]

    @property
    def searchable(self) -> bool:
        """True if the search box is shown (docs/accessibility.md)."""
        return bool(self.query) or self.total > CHOICES_WITHOUT_SEARCH

    @property
    def answerable(self) -> bool:
        """True if any rendered choice can be taken."""
        return any(choice.usable for choice in self.shown)


class Consent(FormView, frozen=True, kw_only=True):
    """Consent to the data that the RP would receive (D29).

    The button sends decision=agree. With `other_account` a second one sends decision=other_account. To refuse is Cancel
    (D17).
    """

    template: ClassVar[str] = "consent.html"
    heading: ClassVar[Phrase] = phrase("Do you agree to share this?")

    summary: tuple[tuple[Phrase, Phrase], ...]
    """in short: pairs of subject and what is shared about it"""
    items: tuple[Phrase, ...]
    """all of it, in plain words, e.g. `The organisation's name and registration number`"""
    said: tuple[tuple[Phrase, str], ...] = ()
    """what the RP says of its request: label and text"""
    until: datetime | None
    """the day until which it is remembered; None: it is not"""
    other_account: bool = False


class SignInConfirmationView(FormView, frozen=True, kw_only=True):
    """The confirmation before single sign-on completes (D30).

    Buttons: decision=continue or decision=other_account.
    """

    template: ClassVar[str] = "confirm.html"

    user_name: str
    entity: str

    @property
    def heading(self) -> Phrase:
        """The h1, which names the person."""
        return phrase("Continue as {name}?", name=self.user_name)


class Leave(PageView, frozen=True, kw_only=True):
    """The page between the last form and the RP.

    `url` is our own, which redirects. Source: D37
    """

    template: ClassVar[str] = "leave.html"
    heading: ClassVar[Phrase] = TAKING_YOU_BACK

    url: str
    client_name: str


class FormPost(PageView, frozen=True, kw_only=True):
    """The page whose form posts the response to the RP.

    A script sends it (OAuth 2.0 Form Post Response Mode §2, D37); or a sign-in too long for a cookie (D15, D34).
    """

    template: ClassVar[str] = "form_post.html"

    heading: Phrase = TAKING_YOU_BACK
    action: str
    """the redirect URI, or our own"""
    fields: tuple[tuple[str, str], ...]


class Wait(PageView, frozen=True, kw_only=True):
    """The page while another request writes the completion.

    Asks again at `url` after a second (D15).
    """

    template: ClassVar[str] = "wait.html"
    heading: ClassVar[Phrase] = ONE_MOMENT

    url: str


class Problem(PageView, frozen=True, kw_only=True):
    """An error page without a way on, except back.

    Never repeats a value of the query (D16).
    """

    template: ClassVar[str] = "problem.html"

    heading: Phrase
    paragraphs: tuple[Phrase, ...]
    reference: str | None = None
    """the request id (D28)"""
    for_developers: str | None = None
    """what was wrong with the request; shown in developer mode only, with the rest of the explanation"""
    compared: tuple[tuple[str, str], ...] = ()
    """what was received, what was expected and what is registered"""
    reason: str = ""
    """the code of the reason in the catalogue"""
    inspector: str = ""
    """the address of the request in the inspector, if the reader may see that"""
    discovery: str = ""
    """the address of the discovery document, on a page about an unknown address"""
    back: Link | None = None
    others: tuple[Link, ...] = ()
    """other ways on, below `back`"""


class Explain(FormView, frozen=True, kw_only=True):
    """The page for a person without a usable entity (D17).

    A button posts to `action`, another one to `other_account`.
    """

    template: ClassVar[str] = "explain.html"
    heading: ClassVar[Phrase] = phrase("You cannot use this service yet")

    choices: tuple[Choice, ...]
    """with their reasons; empty: the person acts for nobody. The first 50 are shown"""
    total: int = 0
    """how many there are"""
    other_account: str = ""
    """the target of decision=other_account; empty: there is no such button"""

    @property
    def shown(self) -> tuple[Choice, ...]:
        """The rendered entities."""
        return self.choices[:SHOWN]
