"""E-mails to people: account events, codes and links.

A notice is sent after its change was written. If a person has no address, nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from corpid.flows.authentication.own_pages import ACCOUNT_PATH
from corpid.rules.directory.names import canonical
from corpid.rules.emails import Action, Code, Copied, Email, EmailPart, Facts, UrlLine, to_email_time
from corpid.rules.limits import CODE_MISSES, MAILED_CODE_SECONDS, MINUTE
from corpid.texts import Phrase, counted, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.flows.request_context import Provider, RequestContext
    from corpid.outbound.mail import Mail
    from corpid.rules.authentication.records import NewLink
    from corpid.rules.directory.records import Entity, User

_WHEN: Final = phrase("When")
_DEVICE: Final = phrase("Device")
_USER_NAME: Final = phrase("User name")
_WORKS_UNTIL: Final = phrase("Works until")


AccountPage: TypeAlias = Literal[
    "overview", "access", "app", "browsers", "codes", "delete", "email", "passkeys", "password", "sign-ins"
]
_BUTTONS: Final[Mapping[AccountPage, Phrase]] = {
    "overview": phrase("Check your account"),
    "access": phrase("See your access"),
    "app": phrase("Check your authenticator app"),
    "browsers": phrase("See where you are signed in"),
    "codes": phrase("Check your recovery codes"),
    "delete": phrase("See your request"),
    "email": phrase("Check your e-mail address"),
    "passkeys": phrase("Check your passkeys"),
    "password": phrase("Change your password"),
    "sign-ins": phrase("Check your sign-ins"),
}
"""of the pages of the account, by their path; the overview has none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification: subject line and text.

    When, where, what to do and the address of the account's page follow by themselves.
    """

    subject: Phrase
    text: Phrase
    page: AccountPage = "overview"
    """of the account, to which its button leads"""
    further: tuple[Phrase | UrlLine, ...] = ()
    """further paragraphs"""
    preview: Phrase | None = None
    """None: device and time"""
    advice: Phrase | None = None
    """what to do; None: what to do if it was somebody else"""


SET_UP: Final = Notice(
    subject=phrase("Your sign-in is set up"),
    text=phrase("Your sign-in was set up with your invitation."),
)
PASSWORD_CHANGED: Final = Notice(
    subject=phrase("Your password was changed"),
    page="sign-ins",
    text=phrase("Your password was changed. You need to sign in again in every browser."),
)
APP_ADDED: Final = Notice(
    subject=phrase("An authenticator app was added"),
    page="app",
    text=phrase("An authenticator app was set up for your account."),
)
APP_REPLACED: Final = Notice(
    subject=phrase("Your authenticator app was changed"),
    page="app",
    text=phrase("Another authenticator app was set up for your account. The old one no longer works."),
)
APP_REMOVED: Final = Notice(
    subject=phrase("Your authenticator app was removed"),
    page="app",
    text=phrase("The authenticator app was removed from your account. Its codes no longer work."),
)
PASSKEY_ADDED: Final = Notice(
    subject=phrase("A passkey was added"),
    page="passkeys",
    text=phrase("A new passkey can be used to sign in to your account."),
)
PASSKEY_REMOVED: Final = Notice(
    subject=phrase("A passkey was removed"),
    page="passkeys",
    text=phrase("A passkey was removed from your account. It no longer works."),
)
NEW_RECOVERY_CODES: Final = Notice(
    subject=phrase("You have new recovery codes"),
    page="codes",
    text=phrase("New recovery codes were created for your account. The old ones no longer work."),
)
EMAIL_STAYS: Final = Notice(
    subject=phrase("Your e-mail address stays the same"),
    page="email",
    text=phrase("The change of your e-mail address was stopped. You may have to sign in again."),
)
RECOVERY_CODES_REMOVED: Final = Notice(
    subject=phrase("Your recovery codes were removed"),
    page="codes",
    text=phrase("The recovery codes were removed from your account. They no longer work."),
)


def notify_joined(entity: Entity) -> Notice:
    """An invitation of this entity was accepted with the account (D60)."""
    return Notice(
        subject=phrase("You can now act for {entity}", entity=entity.name),
        page="access",
        text=phrase("The invitation from {entity} was accepted with your account.", entity=entity.name),
    )


def second_factor_changed(done: Phrase) -> Notice:
    """After a link for a lost second factor.

    `done` says what was set up, as a sentence (D45, D46).
    """
    return Notice(
        subject=phrase("Your second step was changed"),
        text=phrase(
            "{done} You have new recovery codes. Your old authenticator app and recovery codes no longer work, "
            "and you need to sign in again in every browser.",
            done=done,
        ),
    )


def asked_by(by: User, entity: Entity) -> Phrase:
    """The administrator who asked for help, in a sentence.

    By user name, since a person writes their own name. Source: D68, D69
    """
    return phrase(
        "{user_name}, who administers {entity}, asked us to help you sign in.",
        user_name=canonical(by.user_name),
        entity=entity.name,
    )


def notify_unlocked(asked: Phrase) -> Notice:
    """An administrator had the account unlocked; `asked` says who (D69)."""
    return Notice(
        subject=phrase("Your account was unlocked"),
        page="sign-ins",
        text=phrase(
            "{asked} You no longer have to wait after wrong passwords and codes: you can try again now.", asked=asked
        ),
        preview=asked,
        advice=phrase("If you did not ask for help, change your password, and check how and where you sign in."),
    )


DELETION_REQUESTED: Final = Notice(
    subject=phrase("You asked for your account to be deleted"),
    page="delete",
    text=phrase(
        "Your request to delete your account was received. Until the operator deletes it, your account works as "
        "before, and you can withdraw the request in your account."
    ),
)
DELETION_WITHDRAWN: Final = Notice(
    subject=phrase("Your account will not be deleted"),
    page="delete",
    text=phrase("Your request to delete your account was withdrawn. Your account stays as it is."),
)
WRONG_CODES: Final = Notice(
    subject=phrase("Wrong codes were entered after your password"),
    page="password",
    text=phrase(
        "Somebody entered your password and then a wrong code, {misses} times in one day. Nobody got in. If it "
        "was not you, somebody knows your password: choose a new one now.",
        misses=CODE_MISSES,
    ),
    preview=phrase("Nobody got in. If it was not you, choose a new password now."),
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
        page="password",
        text=phrase(
            "Somebody entered your password and then a wrong code, {misses} times without signing in. Nobody "
            "got in. {where} A passkey or a recovery code still works.",
            misses=misses,
            where=where,
        ),
        further=(
            phrase(
                "If it was not you, somebody knows your password. Change it now: sign in to your account with a "
                "browser that you have used before, a passkey or a recovery code, then choose Password. If you "
                "cannot sign in, ask for a new password here:"
            ),
            UrlLine(recover),
        ),
        preview=phrase("Nobody got in. {where}", where=where),
    )


def new_device(device: str) -> Notice:
    """A sign-in in a browser that was not seen before.

    `device` as its names are known, e.g. `Firefox on Windows` (D47).
    """
    return Notice(
        subject=phrase("Your account was used on a new device"),
        page="browsers",
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
        page="codes",
        text=counted(
            left,
            "One of your recovery codes was used. {count} code is left.",
            "One of your recovery codes was used. {count} codes are left.",
        ),
        preview=counted(
            left,
            "{count} code is left. If this was you, you do not need to do anything.",
            "{count} codes are left. If this was you, you do not need to do anything.",
        ),
    )


def email_changed(address: str) -> Notice:
    """A new e-mail address took effect (D61)."""
    return Notice(
        subject=phrase("Your e-mail address was changed"),
        page="email",
        text=phrase("The e-mail address of your account is now {address}.", address=Copied(address)),
    )


def notify(context: RequestContext, user: User, notice: Notice) -> None:
    """Send a person a notice about their account."""
    tell(context.provider, user, notice, now=context.now, device=context.device)


def tell(provider: Provider, user: User, notice: Notice, *, now: float, device: str = "") -> None:
    """Send a notice, also outside a request.

    `now` is in epoch seconds; `device` is empty if nobody acted.
    """
    policy = provider.policy
    when = to_email_time(now)
    rows: tuple[tuple[Phrase, str | datetime], ...] = ((_WHEN, when),)
    if device:
        rows = (*rows, (_DEVICE, device))
    advice = notice.advice or phrase(
        "If this was you, you do not need to do anything. If it was not, tell your organisation's {provider} "
        "administrator now, and check how and where you sign in.",
        provider=policy.name,
    )
    path = "" if notice.page == "overview" else f"/{notice.page}"
    check = Action(text=_BUTTONS[notice.page], url=f"{policy.deployment_url}{ACCOUNT_PATH}{path}")
    place = (
        phrase("{device}, {time}. If this was you, you do not need to do anything.", device=device, time=when)
        if device
        else phrase("{time}. If this was you, you do not need to do anything.", time=when)
    )
    parts = (notice.text, *notice.further, Facts((*rows, (_USER_NAME, Copied(user.user_name)))), advice, check)
    _post(provider.mail, user, subject=notice.subject, preview=notice.preview or place, parts=parts)


def link(
    mail: Mail,
    user: User,
    made: NewLink,
    *,
    heading: Phrase,
    lead: Phrase,
    provider_name: str,
    asked: Phrase | None = None,
) -> None:
    """Send a person their link, and the code to type instead.

    `asked` says who had it sent, if an entity's administrator did: the person tells the operator of a link that they
    did not expect, not whoever sent it. Source: D69
    """
    ends = to_email_time(made.expires_at)
    parts = (
        *((asked,) if asked is not None else ()),
        lead,
        Action(text=heading, url=made.url),
        _typed(made),
        Facts(((_WORKS_UNTIL, ends), (_USER_NAME, Copied(user.user_name)))),
        phrase(
            "If you did not expect this, do not use the link, and tell your organisation's {provider} administrator.",
            provider=provider_name,
        )
        if asked is None
        else phrase(
            "If you did not expect this, do not use the link, and tell the operator of {provider}.",
            provider=provider_name,
        ),
    )
    preview = phrase("The link works once, until {time}.", time=ends)
    _post(mail, user, subject=heading, preview=preview, parts=parts)


def email_will_change(context: RequestContext, user: User, made: NewLink, *, address: str, lead: Phrase) -> None:
    """Send a person the link that undoes a change of their address.

    `address` is the new one, masked: the old mailbox may be somebody else's by now. Source: D61
    """
    ends = to_email_time(made.expires_at)
    parts = (
        phrase(
            "The e-mail address of your account is about to change to {address}. Until then, e-mails still come to this "
            "address.",
            address=Copied(address),
        ),
        phrase("If this was you, you do not need to do anything."),
        lead,
        Action(text=phrase("Stop the change"), url=made.url),
        _typed(made),
        Facts(
            (
                (_WHEN, to_email_time(context.now)),
                (_WORKS_UNTIL, ends),
                (_USER_NAME, Copied(user.user_name)),
            )
        ),
    )
    _post(
        context.provider.mail,
        user,
        subject=phrase("Your e-mail address is about to change"),
        preview=phrase("If this was not you, stop it until {time}.", time=ends),
        parts=parts,
    )


def invitation(entity: Entity, made: NewLink, *, to: str, lead: Phrase, language: str, provider_name: str) -> Email:
    """The e-mail of an entity's invitation, with the link.

    The entity's name is the only part of it that anybody chose, and it is an operator's choice: whoever invites writes
    none of it. Source: D60
    """
    ends = to_email_time(made.expires_at)
    return Email(
        to=to,
        subject=phrase("Invitation to act for {entity}", entity=entity.name),
        preview=phrase("Accept or decline until {time}.", time=ends),
        parts=(
            phrase("{entity} invites you to act for it with {provider}.", entity=entity.name, provider=provider_name),
            lead,
            phrase("If you accept, {entity} sees the user name of your account.", entity=entity.name),
            Action(text=phrase("Respond to the invitation"), url=made.url),
            _typed(made),
            Facts(((_WORKS_UNTIL, ends),)),
            phrase(
                "If you do not know {entity}, do not use the link. If you do nothing, nothing happens.",
                entity=entity.name,
            ),
        ),
        language=language,
    )


def signing_in(client_name: str, provider_name: str) -> Phrase:
    """The reason of a code at a sign-in (D45)."""
    return phrase(
        "You are signing in to {client}. If this is not you, somebody knows your password: do not share the "
        "code, and tell your organisation's {name} administrator.",
        client=client_name,
        name=provider_name,
    )


def setting_up(provider_name: str) -> Phrase:
    """The reason of a code when codes by e-mail are set up (D45)."""
    return phrase(
        "You are setting up your sign-in with {name}: codes like this one will come to this address. If this "
        "is not you, do not share the code, and tell your organisation's {name} administrator.",
        name=provider_name,
    )


def mailed_code(context: RequestContext, user: User, code: str, *, why: Phrase, language: str = "") -> None:
    """Send a person a code that they asked for.

    `why` says what for, and what to do if they did not. `language` is another than the account's, or empty (D45).
    """
    ends = to_email_time(context.now + MAILED_CODE_SECONDS)
    parts = (
        Code(text=phrase("Enter this code on the page where you asked for it:"), value=code),
        Facts(((_WORKS_UNTIL, ends), (_USER_NAME, Copied(user.user_name)))),
        why,
    )
    _post(
        context.provider.mail,
        user,
        subject=phrase("Your code for {name}", name=context.provider.policy.name),
        preview=phrase("It works for {minutes} minutes. Do not share it.", minutes=MAILED_CODE_SECONDS // MINUTE),
        parts=parts,
        language=language,
    )


def no_link(context: RequestContext, user: User) -> None:
    """Refer a person whom no link could help."""
    text = phrase(
        "Somebody, perhaps you, asked for a new password for your account. You cannot set one by e-mail: ask the "
        "operator of {provider}.",
        provider=context.provider.policy.name,
    )
    _refer(context, user, subject=phrase("Request for a new password"), text=text)


def no_help(context: RequestContext, user: User, asked: Phrase) -> None:
    """Refer a person whom an administrator cannot help; `asked` says who. Source: D69"""
    text = phrase(
        "{asked} We cannot help with your account in this way: ask the operator of {provider}.",
        asked=asked,
        provider=context.provider.policy.name,
    )
    _refer(context, user, subject=phrase("Help with your sign-in"), text=text)


def _refer(context: RequestContext, user: User, *, subject: Phrase, text: Phrase) -> None:
    """Send a person to the operator."""
    parts = (
        text,
        Facts(((_WHEN, to_email_time(context.now)), (_USER_NAME, Copied(user.user_name)))),
        phrase("If you did not ask, you do not need to do anything."),
    )
    _post(
        context.provider.mail,
        user,
        subject=subject,
        preview=phrase("Ask the operator of {provider}.", provider=context.provider.policy.name),
        parts=parts,
    )


def send_erasure_notice(mail: Mail, user: User, *, provider_name: str) -> None:
    """Send the last e-mail to a person, who was erased.

    Source: D57
    """
    parts = (
        phrase(
            "Your account at {provider} has been deleted, with your name, your e-mail address and the ways in which you "
            "signed in. You can no longer sign in.",
            provider=provider_name,
        ),
        Facts(((_USER_NAME, Copied(user.user_name)),)),
        phrase("Services that you used keep what they have already received. Ask them about it."),
        phrase(
            "If you did not ask for this, tell your organisation's {provider} administrator.", provider=provider_name
        ),
    )
    _post(
        mail,
        user,
        subject=phrase("Your account has been deleted"),
        preview=phrase("You can no longer sign in."),
        parts=parts,
    )


def _typed(made: NewLink) -> Code:
    return Code(
        text=phrase(
            "If the page asks for a code, enter this one. On another device, open {page} and enter it there.",
            page=Copied(made.page),
        ),
        value=made.code,
    )


def _post(
    mail: Mail, user: User, *, subject: Phrase, preview: Phrase, parts: tuple[EmailPart, ...], language: str = ""
) -> None:
    if user.email:
        mail.post(
            Email(
                to=user.email,
                subject=subject,
                preview=preview,
                name=user.name,
                parts=parts,
                language=language or user.language,
            )
        )
