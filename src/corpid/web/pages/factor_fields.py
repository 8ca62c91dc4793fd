"""Fields of factor pages: passkey, code, and other ways (D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from corpid.rules.authentication.sign_in import Way
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.authentication.second_factor_methods import AskSecondFactor
    from corpid.texts import Phrase


_CODE: Final = phrase("Code")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPasskey:
    """A passkey form, shown and filled by a script if supported.

    Field: passkey. Error id: passkey.
    """

    action: str
    options: str
    """JSON for `navigator.credentials.get`, or for `create` if one is made"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


_OTHERS: Final[Mapping[Way, Phrase]] = {
    Way.APP: phrase("Use your authenticator app"),
    Way.PASSKEY: phrase("Use your passkey"),
    Way.EMAIL: phrase("Send me a code by e-mail"),
    Way.RECOVERY: phrase("Use a recovery code"),
}
_SENT: Final = phrase("Use the code we sent you")
_AGAIN: Final = (Way.EMAIL.value, phrase("Send a new code"))
_NO_MORE: Final = phrase("No more codes can be sent in this sign-in. Use another way, or cancel and start again.")
_KEPT: Final[Mapping[Way, tuple[Phrase, Asked]]] = {
    Way.APP: (
        phrase("Enter your 6-digit code"),
        Asked(hint=phrase("Open your authenticator app. It shows a new code every 30 seconds.")),
    ),
    Way.PASSKEY: (
        phrase("Sign in with your passkey"),
        Asked(hint=phrase("Your device asks for your fingerprint, your face or its PIN."), label=None),
    ),
    Way.RECOVERY: (
        phrase("Enter a recovery code"),
        Asked(
            hint=phrase("One of the codes that you kept when you set up your sign-in. Each works once."),
            label=phrase("Recovery code"),
            numeric=False,
        ),
    ),
}
"""of what a person has already"""


def asked(page: AskSecondFactor, ways_action: str) -> tuple[Phrase, Asked]:
    """The heading of a second factor's page, and its form.

    Source: DESIGN "Pages", D45
    """
    says = {**_OTHERS, Way.EMAIL: _SENT} if page.under_way else _OTHERS
    ways = tuple((other.value, says[other]) for other in page.others)
    if page.way is not Way.EMAIL:
        heading, wanted = _KEPT[page.way]
        return heading, replace(wanted, ways_action=ways_action, ways=ways)
    address = masked(page.email)
    if page.under_way:
        hint = phrase("We sent it to {address}. It works for 10 minutes, on this page only.", address=address)
        again = (_AGAIN,) if page.more else ()
        return phrase("Enter the code we sent you"), Asked(hint=hint, ways_action=ways_action, ways=again + ways)
    hint = phrase("We can send a 6-digit code to {address}.", address=address) if page.more else _NO_MORE
    not_sent = Asked(hint=hint, label=None, send=page.more, ways_action=ways_action, ways=ways)
    return phrase("Get a code by e-mail"), not_sent


def masked(address: str) -> str:
    """A masked e-mail address: `m•••@example.com` (DESIGN "Pages")."""
    name, _, host = address.rpartition("@")
    return f"{name[:1]}•••@{host}"
