"""E-mails to people: account events, codes and links.

A notice is sent after its change was written. If a person has no address, nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.account_client import PATH as ACCOUNT_PATH
from corpid.ports import Letter
from corpid.rules.limits import MAILED_CODE_SECONDS, TOTP_MISSES
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import Mail
    from corpid.rules.authentication.link_codes import NewLink
    from corpid.rules.directory.records import Entity, User
    from corpid.texts import Phrase

_MINUTE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification: subject line and sentence."""

    subject: Phrase
    text: Phrase


SET_UP: Final = Notice(
    subject=phrase("Your sign-in is set up"),
    text=phrase("Your sign-in was set up with your invitation."),
)
PASSWORD_CHANGED: Final = Notice(
    subject=phrase("Your password was changed"),
    text=phrase("Your password was changed. You need to sign in again in every browser."),
)
APP_ADDED: Final = Notice(
    subject=phrase("An authenticator app was added"),
    text=phrase("An authenticator app was set up for your account."),
)
APP_REPLACED: Final = Notice(
    subject=phrase("Your authenticator app was changed"),
    text=phrase("Another authenticator app was set up for your account. The old one no longer works."),
)
APP_REMOVED: Final = Notice(
    subject=phrase("Your authenticator app was removed"),
    text=phrase("The authenticator app was removed from your account. Its codes no longer work."),
)
PASSKEY_ADDED: Final = Notice(
    subject=phrase("A passkey was added"),
    text=phrase("A new passkey can be used to sign in to your account."),
)
PASSKEY_REMOVED: Final = Notice(
    subject=phrase("A passkey was removed"),
    text=phrase("A passkey was removed from your account. It no longer works."),
)
NEW_RECOVERY_CODES: Final = Notice(
    subject=phrase("You have new recovery codes"),
    text=phrase("New recovery codes were created for your account. The old ones no longer work."),
)
RECOVERY_CODES_REMOVED: Final = Notice(
    subject=phrase("Your recovery codes were removed"),
    text=phrase("The recovery codes were removed from your account. They no longer work."),
)


def joined(entity: Entity) -> Notice:
    """An invitation of this entity was accepted with the account (D60)."""
    return Notice(
        subject=phrase("You can now act for {entity}", entity=entity.name),
        text=phrase("The invitation from {entity} was accepted with your account.", entity=entity.name),
    )


def second_factor_changed(done: Phrase) -> Notice:
    """After a link for a lost second factor.

    `done` says what was set up, as a sentence (D45, D46).
    """
    return Notice(
        subject=phrase("Your second factor was changed"),
        text=phrase(
            "{done} You have new recovery codes. Your old authenticator app and recovery codes no longer work, "
            "and you need to sign in again in every browser.",
            done=done,
        ),
    )


WRONG_CODES: Final = Notice(
    subject=phrase("Wrong codes were entered after your password"),
    text=phrase(
        "Somebody entered your password and then a wrong code, {misses} times in one day. Nobody got in. If it "
        "was not you, somebody knows your password: choose a new one now.",
        misses=TOTP_MISSES,
    ),
)


def codes_paused(misses: int, *, duration: Phrase, known: bool, recover: str) -> Notice:
    """The notice that wrong codes have paused code entry.

    `recover` is a URL (D45).

    `known`: they were typed in a browser in which the person has signed in before.
    """
    where = (
        phrase(
            "In that browser, which you have used before, codes from an app or by e-mail are now refused {duration}.",
            duration=duration,
        )
        if known
        else phrase(
            "In browsers that you have not used before, codes from an app or by e-mail are now refused {duration}.",
            duration=duration,
        )
    )
    return Notice(
        subject=phrase("Change your password: somebody may know it"),
        text=phrase(
            "Somebody entered your password and then a wrong code, {misses} times without signing in. Nobody "
            "got in. {where} A passkey or a recovery code still works.\n\nIf it was not you, somebody knows "
            "your password. Change it now: sign in to your account at the address below with a browser that "
            "you have used before, a passkey or a recovery code, then choose Password. If you cannot sign in, "
            "ask for a new password here:\n\n{recover}",
            misses=misses,
            where=where,
            recover=recover,
        ),
    )


def new_device(device: str) -> Notice:
    """A sign-in in a browser that was not seen before.

    `device` as its names are known, e.g. `Firefox on Windows` (D47).
    """
    return Notice(
        subject=phrase("Your account was used on a new device"),
        text=phrase("Somebody signed in to your account with {device} for the first time.", device=device)
        if device
        else phrase("Somebody signed in to your account in a new browser."),
    )


def code_used(left: int) -> Notice:
    """One of the recovery codes was used, and so many are left.

    Source: D45
    """
    return Notice(
        subject=phrase("A recovery code was used"),
        text=counted(
            left,
            "One of your recovery codes was used. {count} code is left.",
            "One of your recovery codes was used. {count} codes are left.",
        ),
    )


def notify(context: RequestContext, user: User, notice: Notice) -> None:
    """Send a person a notice about their account.

    Source: DESIGN, Security
    """
    text = phrase(
        "Hello {name},\n\n{text}\n\nIf this was you, you do not need to do anything. If it was not, tell your "
        "organisation's {provider} administrator now, and check how and where you sign in:\n\n{account}\n\n"
        "Your user name is {user_name}.",
        name=user.name,
        text=notice.text,
        account=context.provider.policy.deployment_url + ACCOUNT_PATH,
        provider=context.provider.policy.name,
        user_name=user.user_name,
    )
    _post(context.provider.mail, user, notice.subject, text)


def link(mail: Mail, user: User, made: NewLink, *, heading: Phrase, lead: Phrase, provider_name: str) -> None:
    """Send a person their link, and the code to type instead.

    Source: DESIGN, Security
    """
    text = phrase(
        "Hello {name},\n\n{lead}\n\n{url}\n\nIf the page asks for a code, enter this one. On another device, "
        "open {page} and enter it there.\n\n{code}\n\nIf you did not expect this, do not use the link, and "
        "tell your organisation's {provider} administrator.\n\nYour user name is {user_name}.",
        name=user.name,
        lead=lead,
        url=made.url,
        page=made.page,
        code=made.code,
        provider=provider_name,
        user_name=user.user_name,
    )
    _post(mail, user, heading, text)


def invitation(entity: Entity, made: NewLink, *, to: str, lead: Phrase, language: str, provider_name: str) -> Letter:
    """The letter of an entity's invitation, with the link.

    The entity's name is the only part of it that anybody chose, and it is an operator's choice: whoever invites writes
    none of it. Source: D60
    """
    text = phrase(
        "Hello,\n\n{entity} invites you to act for it with {provider}. {lead}\n\n{url}\n\nIf the page asks for "
        "a code, enter this one. On another device, open {page} and enter it there.\n\n{code}\n\nIf you do not "
        "know {entity}, do not use the link. If you do nothing, nothing happens.",
        entity=entity.name,
        provider=provider_name,
        lead=lead,
        url=made.url,
        page=made.page,
        code=made.code,
    )
    return Letter(to=to, subject=phrase("{entity} invites you", entity=entity.name), text=text, language=language)


def mailed_code(context: RequestContext, user: User, code: str, *, why: Phrase, language: str = "") -> None:
    """Send a person a code that they asked for.

    `why` says what for, and what to do if they did not. `language` is another than the account's, or empty (D45).
    """
    # Not the code itself: mail servers log subjects, and locked telephones show them.
    subject = phrase("Your code for {name}", name=context.provider.policy.name)
    text = phrase(
        "Your code is {code}. It works for {minutes} minutes, on the page where you asked for it.\n\n{why}\n\n"
        "Nobody from {name} will ever ask you for this code.\n",
        code=code,
        minutes=MAILED_CODE_SECONDS // _MINUTE,
        why=why,
        name=context.provider.policy.name,
    )
    _post(context.provider.mail, user, subject, text, language=language)


def no_link(context: RequestContext, user: User) -> None:
    """Refer a person with a forgotten password to an administrator.

    No link could help them. Source: DESIGN, Security
    """
    text = phrase(
        "Hello {name},\n\nSomebody, perhaps you, asked for a new password for your account {user_name}. You "
        "cannot set one by e-mail: ask your organisation's {provider} administrator for a link.\n\nIf you did "
        "not ask, you do not need to do anything.",
        name=user.name,
        user_name=user.user_name,
        provider=context.provider.policy.name,
    )
    _post(context.provider.mail, user, phrase("Request for a new password"), text)


def _post(mail: Mail, user: User, subject: Phrase, text: Phrase, *, language: str = "") -> None:
    if user.email:
        mail.post(Letter(to=user.email, subject=subject, text=text, language=language or user.language))
