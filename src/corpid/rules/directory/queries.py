"""Queries of an entity's members, and what they return (D60)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from corpid.rules.directory import member_details
from corpid.rules.directory.names import bound_name, fold_ascii, label_identity
from corpid.rules.directory.records import Membership, User
from corpid.rules.directory.values import as_stored

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
        return member_details.shown_name(self.membership, self.user)

    @property
    def label(self) -> str:
        """As `name`, without a word that nobody types to find them."""
        return label_identity(self.identity, self.name_alone)

    @property
    def identity(self) -> str:
        """The account's user name, or an invitation's address (D68)."""
        return member_details.identity(self.membership, self.user)

    @property
    def marked_identity(self) -> str:
        """As `identity`, an address marked as that of an invitation (D68)."""
        return label_identity(self.identity, invited=self.membership.invited)

    @property
    def name_alone(self) -> str:
        """The name that the entity wrote, else their own, else the identity (D61)."""
        return bound_name(member_details.member_full_name(self.membership, self.user)) or self.identity

    @property
    def email(self) -> str:
        """The address at which the entity knows them; may be empty (D61).

        That of an invitation is in small letters (D68).
        """
        address = member_details.member_email(self.membership, self.user)
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
