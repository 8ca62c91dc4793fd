"""Invitations: placeholders, their acceptance, and when an e-mail is due (D60).

`Membership.invitation_sent_at` is DUE, NOT_TO_BE_SENT, REFUSED, the moment at which the e-mail was handed to the mail
server, or the negative moment at which a process took it to send it. A process that dies meanwhile leaves that moment,
and after `SENDING_SECONDS` another one sends the e-mail: at most once too often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.rules.audit_actions import INVITED_PERSON
from corpid.rules.directory.member_details import InvalidDetails, identity
from corpid.rules.directory.names import fold_ascii, label_identity
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.records import (
    NOT_TO_BE_SENT,
    Administrator,
    Assignment,
    Entity,
    Membership,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.readers import quote_value

if TYPE_CHECKING:
    from corpid.rules.directory.document import Current, DocumentEntry, Key
    from corpid.rules.directory.sections import Kind
    from corpid.rules.fields import KeyedRecord

EmailState: TypeAlias = Literal["none", "waiting", "sent", "refused", "no_mail"]

REFUSED: Final = -2
"""the mail server says that there is no such mailbox"""
UNREACHABLE: Final = "there is no e-mail address, so nobody can accept the invitation"
SENDING_SECONDS: Final = 300
"""how long a process has an e-mail to itself; longer than an attempt takes"""


CARRIED: Final = (ThirdPartyAssignment, Assignment, Administrator)
"""records that an invitation carries to the person who accepts it, and that end if it goes to another address"""


def is_invitation(was: KeyedRecord | None, becomes: KeyedRecord | None) -> bool:
    """Return whether a change of a record is an invitation. Source: D60"""
    return was is None and isinstance(becomes, Membership) and becomes.invited


def is_redirection(was: KeyedRecord | None, becomes: KeyedRecord | None) -> bool:
    """Return whether an invitation would go to another address.

    Level and roles that were given with it go to the person who accepts it. Capital letters make no other address, since
    small ones identify it. Source: D53, D55, D60, D68
    """
    if not isinstance(was, Membership) or not isinstance(becomes, Membership):
        return False
    return was.invited and fold_ascii(becomes.email) != fold_ascii(was.email)


def is_unreachable(record: KeyedRecord | None) -> bool:
    """Return whether it is an invitation without an address. Source: D60, D68"""
    return isinstance(record, Membership) and record.invited and not record.email


def refuse_unreachable(record: KeyedRecord | None) -> None:
    """Refuse an invitation without an address. Raises InvalidDetails. Source: D60"""
    if is_unreachable(record):
        raise InvalidDetails((("email", UNREACHABLE),))


def placeholder(invited: Membership) -> User:
    """Return the placeholder of an invited membership.

    It has no factors, no address and no name that anybody can sign in with, and it is disabled. Source: D60
    """
    return User(user_id=invited.user_id, user_name=invited.user_id, name="", enabled=False, placeholder=True)


def shown_invitation(invited: Membership) -> str:
    """The address of an invitation, with the name, for an event. Source: D68"""
    return label_identity(identity(invited, placeholder(invited)), invited.name)


def name_invitation(membership: Membership) -> dict[str, str]:
    """Return whom an invitation is for, as an event's detail. Source: D68"""
    return {INVITED_PERSON: shown_invitation(membership)} if membership.invited else {}


def accepted_by(invited: Membership, user_id: str, *, now: int) -> Membership:
    """Return an invited membership as a person's own.

    Its identifier stays, and so does what the entity wrote. `now` is in epoch seconds. Source: D60
    """
    return replace(invited, user_id=user_id, invited=False, changed_at=now)


def account(user_id: str, *, user_name: str, name: str, email: str, language: str) -> User:
    """Return the account of a new person who accepts an invitation.

    Its identifier is not the placeholder's, so that the history is the same as for an older account.
    `email` is the address that received the invitation. Source: D60
    """
    return User(user_id=user_id, user_name=user_name, name=name, email=email, language=language)


def was_invitation(membership: Membership) -> bool:
    """Return whether a membership is an invitation or was one (D60)."""
    return membership.invited or bool(membership.created_at)


def email_state(invited: Membership, *, mail_works: bool) -> EmailState:
    """The state of the e-mail of an invitation.

    `no_mail`: it waits, and this deployment sends none. Source: D60
    """
    sent_at = invited.invitation_sent_at
    if not invited.invited or sent_at == NOT_TO_BE_SENT or not invited.email:
        return "none"
    if sent_at > 0:
        return "sent"
    if sent_at == REFUSED:
        return "refused"
    return "waiting" if mail_works else "no_mail"


def being_sent(now: float) -> int:
    """The mark of an e-mail that is being sent, from `now` (D60)."""
    return -int(now)


_OF_ACCOUNTS: Final[frozenset[Kind]] = frozenset({"user", "credentials", "membership", "operator"})
"""kinds of which a placeholder has none but itself and its membership"""


def of_nobody(
    entry: DocumentEntry, key: Key, existing: KeyedRecord | None, record: KeyedRecord, current: Current
) -> list[FileProblem]:
    """Return the fault of an entry about a placeholder.

    A file makes no account of it: its membership is suspended, its roles and level are given. Source: D60
    """
    person = current.records_of("user").get(key[:1])
    if entry.kind not in _OF_ACCOUNTS or not isinstance(person, User) or not person.placeholder or record == existing:
        return []
    if entry.kind == "membership" and existing is not None:
        return []
    reason = f"{quote_value(entry.key[0])} has not accepted an invitation yet: there is no account to change"
    return [FileProblem(entry.line, reason)]


class OpenInvitation(msgspec.Struct, frozen=True, kw_only=True):
    user: User
    """the placeholder that the membership stands on"""
    membership: Membership
    entity: Entity
