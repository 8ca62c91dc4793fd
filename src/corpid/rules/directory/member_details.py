"""Details of a member as an entity writes them (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.names import canonical, label_identity
from corpid.rules.directory.records import MemberDetails, Membership, User
from corpid.rules.directory.values import address
from corpid.rules.fields import documented_fields, fields_of
from corpid.rules.readers import InvalidValue, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

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
