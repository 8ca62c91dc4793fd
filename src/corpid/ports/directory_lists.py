"""Lists of the directory's records, a page at a time.

Each page is one statement on an index, whatever the size of the directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    DeletionRequest,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

N = TypeVar("N", Entity, Service, User)
L = TypeVar(
    "L",
    Membership,
    Administrator,
    Assignment,
    ThirdPartyGrant,
    ThirdPartyAssignment,
    ChangeRequest,
    DeletionRequest,
)


class EntityTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Present numbers of an entity."""

    people: int
    """also invited and disabled ones"""
    ending: int
    offers: int
    """to it as a third party, which it has not accepted"""


class DirectoryLists(Protocol):
    """Pages of records, for the lists that people read."""

    async def named(self, kind: type[N], *, first: str, until: str, limit: int) -> list[N]:
        """Records by identifier, a user's by name: from `first`, before `until`."""

    async def entities_by_name(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[Entity]:
        """Entities by folded name (`entity_choice.search_text`) and identifier.

        The name begins from `first`, before `until`; `after` is folded name and identifier of the one before.
        """

    async def people_by_name(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[User]:
        """People by name and identifier, as `entities_by_name`.

        Small and capital letters of ASCII are alike.
        """

    async def entities_by_number(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[Entity]:
        """Entities by registration number and identifier, as `entities_by_name`."""

    async def people_by_email(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[User]:
        """People by e-mail address and identifier, as `people_by_name`."""

    async def members(self, entity_id: str, *, first: str, until: str, limit: int) -> list[User]:
        """An entity's members by user name: from `first`, before `until`."""

    async def belonging(self, entity_id: str, *, after: str, limit: int) -> list[tuple[Membership, User]]:
        """An entity's memberships with their people, after an identifier.

        Of the membership; a page costs the same however many there are.
        """

    async def totals(self, entity_id: str, *, first: str, last: str, most: int) -> EntityTotals:
        """Numbers of an entity's home page, each counted up to `most`.

        Of its own roles those that end from day `first` to day `last`.
        """

    async def ending(
        self, entity_id: str, *, first: str, last: str, after: tuple[str, ...], limit: int
    ) -> list[Assignment]:
        """An entity's own roles that end from day `first` to `last`.

        By last day and key; `after` is both of the one before, or empty texts.
        """

    async def page(self, kind: type[L], where: Mapping[str, str], *, after: tuple[str, ...], limit: int) -> list[L]:
        """Records by key, after that key; empty texts are before every key.

        `where` gives members of the key and their values; each that is named is one that the kind has.
        """

    async def latest_requests(self, entity_id: str, state: str, *, before: str, limit: int) -> list[ChangeRequest]:
        """An entity's change requests in one state, the latest first.

        Those before an identifier.
        """
