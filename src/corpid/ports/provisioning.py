"""Members of an entity by filter, and provisioning tokens (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from corpid.rules.directory.records import Entity, Membership, User

if TYPE_CHECKING:
    from collections.abc import Collection

    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken

MemberName: TypeAlias = Literal["membership_id", "user_name", "external_id", "email", "active"]
Operator: TypeAlias = Literal["eq", "co", "sw"]
SortedBy: TypeAlias = Literal["membership_id", "user_name", "external_id", "email"]
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

    async def token(self, token_hash: str) -> tuple[RegisteredProvisioningToken, Entity] | None:
        """A token by its hash, and its entity; it may have expired."""

    async def tokens(self, entity_id: str) -> list[RegisteredProvisioningToken]:
        """The tokens of an entity, the oldest first."""

    async def used(self, token_id: str, *, at: int, unless_since: int) -> None:
        """Write a token's last use, unless a recent one is written."""
