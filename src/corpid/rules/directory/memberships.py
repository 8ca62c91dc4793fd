"""Memberships: details that an entity writes, invitations, and queries of members (D60, D61).

`Membership.invitation_sent_at` is DUE, NOT_TO_BE_SENT, REFUSED, the moment at which the e-mail was handed to the mail
server, or the negative moment at which a process took it to send it. A process that dies meanwhile leaves that moment,
and after `SENDING_SECONDS` another one sends the e-mail: at most once too often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.rules.audit import INVITED_PERSON
from corpid.rules.directory.names import bound_name, canonical, fold_ascii, label_identity
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.records import (
    NOT_TO_BE_SENT,
    Administrator,
    Assignment,
    Entity,
    MemberDetails,
    Membership,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.values import address, as_stored
from corpid.rules.fields import KeyedRecord, documented_fields, fields_of
from corpid.rules.readers import InvalidValue, Scalar, quote_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.document import Current, DocumentEntry, Key, Kind
    from corpid.texts import Phrase

PLAIN_DETAILS: Final = documented_fields(MemberDetails)
"""details that are texts and nothing else, by name: documents, tables, SCIM, search and pages take each alike"""


def details_of(membership: Membership) -> MemberDetails:
    """The details of a membership. Source: D61"""
    return MemberDetails(**{name: getattr(membership, name) for name in MemberDetails.__struct_fields__})


class InvalidDetails(Exception):
    """Details that cannot be stored.

    `faults` are pairs of member and sentence; `remedies` say what to do about some of them.
    """

    def __init__(self, faults: tuple[tuple[str, str], ...], remedies: Mapping[str, Phrase] | None = None) -> None:
        self.faults = faults
        self.remedies = remedies or {}
        super().__init__("; ".join(f"{member}: {sentence}" for member, sentence in faults))


def check_details(details: MemberDetails, *, named: bool = True) -> MemberDetails:
    """Return details in their stored form.

    A user name that is an address is also the e-mail address if none is given; without a user name the address is used
    as one. If it need not be `named`, both may be empty: the person's own user name is shown. Raises InvalidDetails
    with every fault. Source: D51, D60, D61
    """
    faults: list[tuple[str, str]] = []
    remedies: dict[str, Phrase] = {}
    read: dict[str, str] = {}
    for member, field in fields_of(MemberDetails).items():
        try:
            read[member] = str(field.value(Scalar(0, getattr(details, member), plain=False)))
        except InvalidValue as error:
            faults.append((member, error.reason))
            if error.remedy is not None:
                remedies[member] = error.remedy
    if named and not faults and not (read["user_name"] or read["email"]):
        faults.append(("user_name", "a name for this member is required, such as an e-mail address"))
    if faults:
        raise InvalidDetails(tuple(faults), remedies)
    read["email"] = read["email"] or _address_or_empty(read["user_name"])
    read["user_name"] = read["user_name"] or (read["email"] if named else "")
    return MemberDetails(**read)


def _address_or_empty(text: str) -> str:
    try:
        return address(text)
    except ValueError:
        return ""


def identity(membership: Membership, user: User) -> str:
    """The account's user name, or the address of an invitation.

    The entity cannot write it. In small letters, as both are compared: a capital I looks like a small l. An invitation
    without an address, which nobody can accept, has the identifier of the membership. Source: D68
    """
    if membership.invited:
        return membership.email.lower() or membership.membership_id
    return canonical(user.user_name)


def member_full_name(membership: Membership, user: User) -> str:
    """The name that the entity wrote, else the person's own.

    May be empty. Source: D61
    """
    return membership.name or ("" if membership.invited else user.name)


def member_user_name(membership: Membership, user: User) -> str:
    """The user name that the entity wrote, else the account's.

    May be empty. Source: D60, D61
    """
    return membership.user_name or ("" if membership.invited else user.user_name)


def member_email(membership: Membership, user: User) -> str:
    """The address of a member; empty if there is none. Source: D61"""
    return membership.email or ("" if membership.invited else user.email)


def shown_name(membership: Membership, user: User) -> str:
    """A member's identity, with the name beside it. Source: D68"""
    full_name = member_full_name(membership, user)
    return label_identity(identity(membership, user), full_name, invited=membership.invited)


def shown_account(user: User) -> str:
    """The user name of an account, with its own name beside it. Source: D68"""
    return label_identity(canonical(user.user_name), user.name)


def name_outside(user: User) -> str:
    """A person of another entity, who acts for this one.

    As `shown_account`. Empty for an invited person: another entity wrote what is known of them. Source: D61, D68
    """
    return "" if user.placeholder else shown_account(user)


MemberName: TypeAlias = Literal[
    "membership_id", "user_name", "any_user_name", "external_id", "email", "active", "invited"
]
"""`any_user_name` (with `eq` only) is what the entity wrote or that of the account, whichever fits"""
ConditionOperator: TypeAlias = Literal["eq", "co", "sw"]
SortedBy: TypeAlias = Literal["membership_id", "user_name", "external_id", "email"]
MemberState: TypeAlias = Literal["invited", "active", "suspended", "locked"]
RoleOrder: TypeAlias = Literal["person", "service", "role", "until"]
"""of an entity's roles: by the member's user name, or by service, role or last day and then person"""
SEARCH_SERVICES: Final = 100
"""of one search"""
MemberCondition: TypeAlias = tuple[MemberName, ConditionOperator, str]
"""member, operator and value; of `active` and `invited`, `true` or `false`"""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an entity, whose person may be a placeholder."""

    membership: Membership
    user: User

    @property
    def name(self) -> str:
        """The identity, with the name that the entity wrote (D68)."""
        return shown_name(self.membership, self.user)

    @property
    def label(self) -> str:
        """As `name`, without a word that nobody types to find them."""
        return label_identity(self.identity, self.name_alone)

    @property
    def identity(self) -> str:
        """The account's user name, or an invitation's address (D68)."""
        return identity(self.membership, self.user)

    @property
    def marked_identity(self) -> str:
        """As `identity`, an address marked as that of an invitation (D68)."""
        return label_identity(self.identity, invited=self.membership.invited)

    @property
    def name_alone(self) -> str:
        """The name that the entity wrote, else their own, else the identity (D61)."""
        return bound_name(member_full_name(self.membership, self.user)) or self.identity

    @property
    def email(self) -> str:
        """The address at which the entity knows them; may be empty (D61).

        That of an invitation is in small letters (D68).
        """
        address = member_email(self.membership, self.user)
        return address.lower() if self.membership.invited else address

    def has_address(self, written: str) -> bool:
        """Return whether an address is that of the member.

        That of the account, or that to which an invitation went: another one, which the membership may have, tells
        nobody apart. True if nothing is written, or nothing known. Source: D68
        """
        membership, asked = self.membership, fold_ascii(as_stored(written))
        known = membership.email if membership.invited else self.user.email
        return not asked or not (known or membership.email) or asked == fold_ascii(known)

    @property
    def state(self) -> MemberState:
        """The state of sign-in that the entity may know (D61)."""
        if self.membership.invited:
            return "invited"
        if not self.membership.enabled:
            return "suspended"
        return "active" if self.user.enabled else "locked"


class MemberQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The members of an entity that are asked for."""

    entity_id: str
    conditions: tuple[MemberCondition, ...] = ()
    """all must match; members that the entity did not set are the person's"""
    sorted_by: SortedBy = "membership_id"
    descending: bool = False
    offset: int = 0
    limit: int


class RoleSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search for roles of an entity's members; empty members fit all."""

    entity_id: str
    words: tuple[str, ...] = ()
    """beginnings of words that a member has, all of them (`rules.directory.words`)"""
    services: tuple[str, ...] = ()
    """at most SEARCH_SERVICES"""
    role: str = ""
    first: str = ""
    """the earliest last day, as in a record"""
    last: str = ""
    """the latest one"""
    order: RoleOrder = "person"
    """`service` is for one service, `until` for roles that end"""
    backwards: bool = False


class EntityTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Present numbers of an entity."""

    people: int
    """also invited and disabled ones"""
    ending: int
    offers: int
    """to it as a third party, which it has not accepted"""


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
