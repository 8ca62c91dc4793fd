"""The letters: what happened to a person's account, and links that they asked for or were given.

A notice is sent after the change it tells of was written. Where a person has no address, nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows.account.own_client import PATH as ACCOUNT_PATH
from corpid.ports import Letter
from corpid.protocol.limits import INVITATION_SECONDS, PASSWORD_LINK_SECONDS, SECOND_FACTOR_LINK_SECONDS
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.directory.records import User
    from corpid.flows.provider import Provider
    from corpid.ports import LinkPurpose, Mail
    from corpid.texts import Phrase

_HOUR: Final = 3600
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What happened, in the line that a mailbox shows and in a sentence."""

    subject: Phrase
    told: Phrase


SET_UP: Final = Notice(
    subject=phrase("Your sign-in is set up"),
    told=phrase("Your sign-in was set up with the invitation that you were given."),
)
PASSWORD_CHANGED: Final = Notice(
    subject=phrase("Your password was changed"),
    told=phrase("Your password was changed. Every browser in which you were signed in has to sign in again."),
)
SECOND_FACTOR_CHANGED: Final = Notice(
    subject=phrase("Your second factor was changed"),
    told=phrase("Another authenticator app was set up for your account; the one before no longer works."),
)
PASSKEY_ADDED: Final = Notice(
    subject=phrase("A passkey was added"),
    told=phrase("A new passkey can be used to sign in to your account."),
)
PASSKEY_REMOVED: Final = Notice(
    subject=phrase("A passkey was removed"),
    told=phrase("A passkey of your account was removed and no longer works."),
)
NEW_RECOVERY_CODES: Final = Notice(
    subject=phrase("You have new recovery codes"),
    told=phrase("New recovery codes were made for your account; those before no longer work."),
)


def new_device(device: str) -> Notice:
    """A sign-in in a browser that was not seen before; `device` as its names are known, e.g. `Firefox on Windows` (D47)."""
    return Notice(
        subject=phrase("You signed in on a new device"),
        told=phrase("Somebody signed in to your account with {device}, for the first time.", device=device)
        if device
        else phrase("Somebody signed in to your account in a browser that was not used before."),
    )


def _code_used(left: int) -> Notice:
    return Notice(
        subject=phrase("A recovery code was used"),
        told=counted(
            left,
            "One of your recovery codes was used. {count} code is left.",
            "One of your recovery codes was used. {count} codes are left.",
        ),
    )


def tell(provider: Provider, user: User, notice: Notice) -> None:
    """Tell a person what happened to their account. Source: DESIGN, Security"""
    text = phrase(
        "Hello {name},\n\n{told}\n\n"
        "If that was you, there is nothing to do. If not, tell the person who manages {provider} in your "
        "organisation at once, and look at how and where you sign in:\n\n{account}\n\nYour user name is {user_name}.",
        name=user.name,
        told=notice.told,
        account=provider.policy.base_url + ACCOUNT_PATH,
        provider=provider.policy.name,
        user_name=user.user_name,
    )
    _post(provider.mail, user, notice.subject, text)


def recovery_code_used(provider: Provider, user: User, *, left: int) -> None:
    """Tell a person that one of their recovery codes was used, and how many are left (D45)."""
    tell(provider, user, _code_used(left))


_SUBJECTS: Final[Mapping[LinkPurpose, Phrase]] = {
    "invitation": phrase("Set up your sign-in"),
    "password": phrase("Choose a new password"),
    "second_factor": phrase("Set up your second factor anew"),
}
_LEADS: Final[Mapping[LinkPurpose, Phrase]] = {
    "invitation": phrase(
        "You can now set up your sign-in. Open this address within {hours} hours; it works once:",
        hours=INVITATION_SECONDS // _HOUR,
    ),
    "password": phrase(
        "You can choose a new password. Open this address within {minutes} minutes; it works once, and asks for "
        "your second factor first:",
        minutes=PASSWORD_LINK_SECONDS // _MINUTE,
    ),
    "second_factor": phrase(
        "You can set up your second factor anew. Open this address within {hours} hours; it works once, and asks "
        "for your password first:",
        hours=SECOND_FACTOR_LINK_SECONDS // _HOUR,
    ),
}


def link(mail: Mail, user: User, purpose: LinkPurpose, url: str, *, provider: str) -> None:
    """Send a person the link that was made for them; `provider` is its name. Source: DESIGN, Security"""
    text = phrase(
        "Hello {name},\n\n{lead}\n\n{url}\n\n"
        "If you did not expect this, do not open it, and tell the person who manages {provider} in your "
        "organisation.\n\nYour user name is {user_name}.",
        name=user.name,
        lead=_LEADS[purpose],
        url=url,
        provider=provider,
        user_name=user.user_name,
    )
    _post(mail, user, _SUBJECTS[purpose], text)


def no_link(provider: Provider, user: User) -> None:
    """Tell a person who forgot their password that only an administrator can help them. Source: DESIGN, Security"""
    text = phrase(
        "Hello {name},\n\nSomebody, perhaps you, asked for a new password for your account {user_name}. It cannot "
        "be set by e-mail: ask the person who manages {provider} in your organisation for a link.\n\n"
        "If you did not ask, there is nothing to do.",
        name=user.name,
        user_name=user.user_name,
        provider=provider.policy.name,
    )
    _post(provider.mail, user, _SUBJECTS["password"], text)


def _post(mail: Mail, user: User, subject: Phrase, text: Phrase) -> None:
    if user.email:
        mail.post(Letter(to=user.email, subject=subject, text=text, language=user.language))
