"""Members of an entity by filter, and provisioning tokens (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import msgspec

from corpid.rules.directory.records import Entity, Membership, User

if TYPE_CHECKING:
    from collections.abc import Collection

    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken

MemberName: TypeAlias = Literal["membership_id", "user_name", "any_user_name", "external_id", "email", "active"]
"""`any_user_name` (with `eq` only) is what the entity wrote or that of the account, whichever fits"""
Operator: TypeAlias = Literal["eq", "co", "sw"]
SortedBy: TypeAlias = Literal["membership_id", "user_name", "external_id", "email"]
MemberState: TypeAlias = Literal["invited", "active", "suspended", "locked"]
SEARCH_WORDS: Final = 4
"""of one search"""
Condition: TypeAlias = tuple[MemberName, Operator, str]
"""member, operator and value; of `active`, `true` or `false`"""


class StoredMember(msgspec.Struct, frozen=True, kw_only=True):
    """A membership and its person, who may be a placeholder."""

    membership: Membership
    user: User


class MemberQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The members of an entity that are asked for."""

    entity_id: str
    conditions: tuple[Condition, ...] = ()
    """all must match; members that the entity did not set are the person's"""
    sorted_by: SortedBy = "membership_id"
    descending: bool = False
    offset: int = 0
    limit: int


class MemberSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search for members of an entity; empty members fit all."""

    entity_id: str
    words: tuple[str, ...] = ()
    """parts of name, user name or e-mail address, as the entity sees them; all must match, at most SEARCH_WORDS"""
    state: MemberState | Literal[""] = ""
    service_id: str = ""
    """at which they have a role for the entity"""


class Provisioning(Protocol):
    """Members by identifier and filter, and tokens."""

    async def member(self, membership_id: str) -> StoredMember | None: ...
    async def memberships(self, entity_id: str, membership_ids: Collection[str]) -> list[Membership]:
        """Those of an entity that have these identifiers, in any order."""

    async def members(self, query: MemberQuery) -> tuple[int, list[StoredMember]]:
        """The number of those that match, and a part of them.

        Without rows that a migration has not given an identifier yet.
        """

    async def members_by_name(
        self, entity_id: str, *, after: tuple[str, str], limit: int
    ) -> list[tuple[StoredMember, tuple[str, str]]]:
        """Members by user name after a place, each with its own.

        A page costs the same however many there are, and wherever it is.
        """

    async def search(
        self, wanted: MemberSearch, *, after: tuple[str, str], limit: int, examined: int
    ) -> tuple[list[tuple[StoredMember, tuple[str, str]]], tuple[str, str] | None]:
        """As `members_by_name`, but only those that fit, among the next `examined` members.

        Also the place of the last one that was examined; None if there are no more.
        """

    async def roles(self, entity_id: str, user_ids: Collection[str]) -> list[tuple[str, str, int]]:
        """Person, service and number of roles for an entity.

        Of at most 100 people.
        """

    async def token(self, token_hash: str) -> tuple[RegisteredProvisioningToken, Entity] | None:
        """A token by its hash, and its entity; it may have expired."""

    async def tokens(self, entity_id: str) -> list[RegisteredProvisioningToken]:
        """The tokens of an entity, the oldest first."""

    async def note_use(self, token_id: str, *, at: int, unless_since: int) -> None:
        """Write a token's last use, unless a recent one is written."""
