"""Lists of the directory's records: one statement for each page."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import combinations
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa

from corpid.rules.directory.queries import EntityTotals
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
from corpid.stores.sql.codecs import columns
from corpid.stores.sql.directory_tables import (
    BEGINNING_OF_ADDRESS,
    BEGINNING_OF_NAME,
    BEGINNING_OF_PERSONS_NAME,
    HAS_END,
    NAME_CHARACTERS,
    assignments,
    memberships,
    users,
)
from corpid.stores.sql.directory_tables import third_party_grants as grants
from corpid.stores.sql.records import DirectoryRecords

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.stores.sql.mappers import RecordType
    from corpid.stores.sql.statements import CompiledStatement

NARROWED_BY: Final[Mapping[type, tuple[str, ...]]] = {
    Membership: ("user_id",),
    Administrator: ("entity_id", "user_id"),
    Assignment: ("entity_id", "role", "service_id", "user_id"),
    ThirdPartyGrant: ("client_entity_id", "entity_id", "service_id", "state"),
    ThirdPartyAssignment: ("client_entity_id", "entity_id", "service_id", "user_id"),
    ChangeRequest: ("entity_id", "state"),
    DeletionRequest: (),
}
"""kind → members that a page of it can be narrowed by, in the order of names"""

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
_NARROWER: Final = frozenset({"user_id", "entity_id", "client_entity_id"})
"""members that fewer records have in common than a service"""
_LIMIT: Final = sa.bindparam("limit", type_=sa.Integer)
_FIRST: Final = sa.bindparam("first", type_=sa.Text)
_UNTIL: Final = sa.bindparam("until", type_=sa.Text)
_ENTITY: Final = sa.bindparam("entity_id", type_=sa.Text)


def named(known: RecordType, key: sa.ColumnElement[str]) -> sa.Select[Any]:
    """`first`, `until`, `limit` → records."""
    within = key >= _FIRST, key < _UNTIL
    return sa.select(*columns(known.table, known.codec)).where(*within).order_by(key).limit(_LIMIT)


def by_name(known: RecordType, beginning: str) -> sa.Select[Any]:
    """`first`, `until`, `after_name`, `after_id`, `limit` → records.

    `beginning` is the expression of an index, which the key follows.
    """
    name: sa.ColumnElement[str] = sa.literal_column(beginning, sa.Text)
    key = known.table.c[known.keys[0]]
    after = sa.tuple_(sa.bindparam("after_name", type_=sa.Text), sa.bindparam("after_id", type_=sa.Text))
    within = name >= _FIRST, name < _UNTIL, sa.tuple_(name, key) > after
    return sa.select(*columns(known.table, known.codec)).where(*within).order_by(name, key).limit(_LIMIT)


def bounds_of_names(first: str, until: str, after: tuple[str, str]) -> dict[str, object]:
    """The values of `by_name` except `limit`.

    Its two lower bounds are the same place: PostgreSQL begins to read an index at one of them, whichever it is.
    """
    begins = max((first[:NAME_CHARACTERS], ""), (after[0][:NAME_CHARACTERS], after[1]))
    return {"first": begins[0], "until": until, "after_name": begins[0], "after_id": begins[1]}


def members(known: RecordType) -> sa.Select[Any]:
    """`entity_id`, `first`, `until`, `limit` → user, by an index of both."""
    chain = memberships.join(users, users.c.user_id == memberships.c.user_id)
    found = named(known, memberships.c.person_name_key).select_from(chain)
    return found.where(memberships.c.entity_id == sa.bindparam("entity_id", type_=sa.Text))


def belonging(known: RecordType, of: RecordType) -> sa.Select[Any]:
    """`entity_id`, `after`, `limit` → membership, user, by an index of both."""
    chain = memberships.join(users, users.c.user_id == memberships.c.user_id)
    within = (
        memberships.c.entity_id == sa.bindparam("entity_id", type_=sa.Text),
        memberships.c.membership_id > sa.bindparam("after", type_=sa.Text),
    )
    selected = (*columns(memberships, known.codec), *columns(users, of.codec))
    found = sa.select(*selected).select_from(chain).where(*within)
    return found.order_by(memberships.c.entity_id, memberships.c.membership_id).limit(_LIMIT)


def page(known: RecordType, given: tuple[str, ...]) -> sa.Select[Any]:
    """The given members of the key, `after_…` of all, `limit` → records.

    Indexes by entity and by service have the order of people. A service may have a million rows, so its index is kept
    out of the engine's sight if something narrower is given; PostgreSQL then expects half of the narrower rows to be of
    that service, and reads them in their order until the page is full.
    """
    table = known.table
    keys = [table.c[name] for name in known.keys]
    after = sa.tuple_(*(sa.bindparam(f"after_{name}", type_=sa.Text) for name in known.keys))
    found = sa.select(*columns(table, known.codec))
    for name in given:
        is_last = name == "service_id" and not _NARROWER.isdisjoint(given)
        fits = table.c[name] == sa.bindparam(name, type_=sa.Text)
        found = found.where(sa.func.coalesce(fits, sa.false()) if is_last else fits)
    return found.where(sa.tuple_(*keys) > after).order_by(*keys).limit(_LIMIT)


def _days() -> tuple[sa.ColumnElement[bool] | sa.TextClause, ...]:
    """`entity_id`, `first`, `last` → roles that end in these days.

    The last condition, which the others imply, is that of the index.
    """
    return (
        assignments.c.entity_id == _ENTITY,
        assignments.c.end_date >= _FIRST,
        assignments.c.end_date <= sa.bindparam("last", type_=sa.Text),
        sa.text(HAS_END),
    )


def totals() -> sa.Select[Any]:
    """`entity_id`, `first`, `last`, `limit` → numbers up to the limit."""
    one: sa.ColumnElement[int] = sa.literal_column("1", sa.Integer)
    people = sa.select(one).where(memberships.c.entity_id == _ENTITY).select_from(memberships)
    ending = sa.select(one).where(*_days()).select_from(assignments)
    offers = sa.select(one).where(grants.c.entity_id == _ENTITY, grants.c.state == "offered").select_from(grants)
    return sa.select(
        *(
            sa.select(sa.func.count()).select_from(each.limit(_LIMIT).subquery("counted")).scalar_subquery()
            for each in (people, ending, offers)
        )
    )


def ending(known: RecordType) -> sa.Select[Any]:
    """The same, `after_…` of day and key, `limit` → roles in order."""
    keys = [known.table.c.end_date, *(known.table.c[name] for name in known.keys)]
    after = sa.tuple_(*(sa.bindparam(f"after_{each.name}", type_=sa.Text) for each in keys))
    within = *_days(), sa.tuple_(*keys) > after
    return sa.select(*columns(known.table, known.codec)).where(*within).order_by(*keys).limit(_LIMIT)


def latest_requests(known: RecordType) -> sa.Select[Any]:
    """`entity_id`, `state`, `before`, `limit` → change requests, by an index."""
    names = ("entity_id", "state")
    same = [known.table.c[name] == sa.bindparam(name, type_=sa.Text) for name in names]
    key = known.table.c.request_id
    within = key < sa.bindparam("before", type_=sa.Text)
    ordered = [known.table.c[name].desc() for name in (*names, "request_id")]
    return sa.select(*columns(known.table, known.codec)).where(*same, within).order_by(*ordered).limit(_LIMIT)


def folded_ascii(text: str) -> str:
    """A text with the capital letters of ASCII made small.

    Both engines fold these, and no others.
    """
    return text.translate(_SMALL)


_SMALL: Final = {ord(letter): letter.lower() for letter in ascii_uppercase}


class DirectoryLists(DirectoryRecords):
    """Pages of records, for the lists that people read."""

    @cached_property
    def _named(self) -> dict[type, CompiledStatement]:
        keys = {Entity: "entity_id", Service: "service_id", User: "user_name_key"}
        found = {kind: named(self._kinds[kind], self._kinds[kind].table.c[key]) for kind, key in keys.items()}
        return {kind: self._database.prepare(statement) for kind, statement in found.items()}

    @cached_property
    def _by_name(self) -> dict[type, CompiledStatement]:
        found = {Entity: BEGINNING_OF_NAME, User: BEGINNING_OF_PERSONS_NAME}
        return {kind: self._database.prepare(by_name(self._kinds[kind], each)) for kind, each in found.items()}

    @cached_property
    def _by_number(self) -> CompiledStatement:
        return self._database.prepare(by_name(self._kinds[Entity], "registration_number"))

    @cached_property
    def _by_email(self) -> CompiledStatement:
        return self._database.prepare(by_name(self._kinds[User], BEGINNING_OF_ADDRESS))

    @cached_property
    def _members(self) -> CompiledStatement:
        return self._database.prepare(members(self._kinds[User]))

    @cached_property
    def _belonging(self) -> CompiledStatement:
        return self._database.prepare(belonging(self._kinds[Membership], self._kinds[User]))

    @cached_property
    def _latest_requests(self) -> CompiledStatement:
        return self._database.prepare(latest_requests(self._kinds[ChangeRequest]))

    @cached_property
    def _pages(self) -> dict[tuple[type, tuple[str, ...]], CompiledStatement]:
        return {
            (kind, given): self._database.prepare(partial(page, self._kinds[kind], given))
            for kind, members in NARROWED_BY.items()
            for count in range(len(members) + 1)
            for given in combinations(members, count)
        }

    @cached_property
    def _totals(self) -> CompiledStatement:
        return self._database.prepare(totals)

    @cached_property
    def _ending(self) -> CompiledStatement:
        return self._database.prepare(ending(self._kinds[Assignment]))

    async def named(self, kind: type[N], *, first: str, until: str, limit: int) -> list[N]:
        """Records by identifier, a user's by name: from `first`, before `until`.

        Byte by byte.
        """
        rows = await self._database.rows(self._named[kind], {"first": first, "until": until, "limit": limit})
        return [self._kinds[kind].codec.decode(row) for row in rows]

    async def entities_by_name(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[Entity]:
        """Entities by folded name (`entity_choice.search_text`) and identifier.

        Byte by byte, of a name its first hundred characters. The name begins from `first`, before `until`; `after` is
        folded name and identifier of the one before.
        """
        return await self._of_name(Entity, first, until, after, limit)

    async def people_by_name(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[User]:
        """People by name and identifier, as `entities_by_name`.

        Small and capital letters of ASCII are alike.
        """
        folded = folded_ascii(after[0]), after[1]
        return await self._of_name(User, folded_ascii(first), folded_ascii(until), folded, limit)

    async def entities_by_number(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[Entity]:
        """Entities by registration number and identifier, as `entities_by_name`."""
        rows = await self._database.rows(self._by_number, bounds_of_names(first, until, after) | {"limit": limit})
        return [self._kinds[Entity].codec.decode(row) for row in rows]

    async def people_by_email(self, *, first: str, until: str, after: tuple[str, str], limit: int) -> list[User]:
        """People by e-mail address and identifier, as `people_by_name`."""
        values = bounds_of_names(folded_ascii(first), folded_ascii(until), (folded_ascii(after[0]), after[1]))
        rows = await self._database.rows(self._by_email, values | {"limit": limit})
        return [self._kinds[User].codec.decode(row) for row in rows]

    async def _of_name(self, kind: type[N], first: str, until: str, after: tuple[str, str], limit: int) -> list[N]:
        values = bounds_of_names(first, until, after) | {"limit": limit}
        return [self._kinds[kind].codec.decode(row) for row in await self._database.rows(self._by_name[kind], values)]

    async def members(self, entity_id: str, *, first: str, until: str, limit: int) -> list[User]:
        """An entity's members by user name: from `first`, before `until`.

        Byte by byte.
        """
        values = {"entity_id": entity_id, "first": first, "until": until, "limit": limit}
        return [self._kinds[User].codec.decode(row) for row in await self._database.rows(self._members, values)]

    async def belonging(self, entity_id: str, *, after: str, limit: int) -> list[tuple[Membership, User]]:
        """An entity's memberships with their people, after an identifier.

        Of the membership; a page costs the same however many there are.
        """
        rows = await self._database.rows(self._belonging, {"entity_id": entity_id, "after": after, "limit": limit})
        held, of = self._kinds[Membership].codec, self._kinds[User].codec
        width = len(held.columns)
        return [(held.decode(row[:width]), of.decode(row[width:])) for row in rows]

    async def totals(self, entity_id: str, *, first: str, last: str, most: int) -> EntityTotals:
        """Numbers of an entity's home page, each counted up to `most`.

        Of its own roles those that end from day `first` to day `last`.
        """
        values = {"entity_id": entity_id, "first": first, "last": last, "limit": most}
        people, roles, offers = await self._database.row(self._totals, values) or (0, 0, 0)
        return EntityTotals(people=people, ending=roles, offers=offers)

    async def ending(
        self, entity_id: str, *, first: str, last: str, after: tuple[str, ...], limit: int
    ) -> list[Assignment]:
        """An entity's own roles that end from day `first` to `last`.

        By last day and key; `after` is both of the one before, or empty texts. The days before that place are left out
        here, too: SQLite would read their roles.
        """
        known = self._kinds[Assignment]
        names = ("end_date", *known.keys)
        beginning = {f"after_{name}": value for name, value in zip(names, after, strict=True)}
        values = {"entity_id": entity_id, "first": max(first, after[0]), "last": last, **beginning, "limit": limit}
        return [known.codec.decode(row) for row in await self._database.rows(self._ending, values)]

    async def page(self, kind: type[L], where: Mapping[str, str], *, after: tuple[str, ...], limit: int) -> list[L]:
        """Records by key, after that key; empty texts are before every key.

        `where` gives members of the key and their values; each that is named is one that the kind has.
        """
        known = self._kinds[kind]
        beginning = {f"after_{name}": value for name, value in zip(known.keys, after, strict=True)}
        values = {**where, **beginning, "limit": limit}
        rows = await self._database.rows(self._pages[kind, tuple(sorted(where))], values)
        return [known.codec.decode(row) for row in rows]

    async def latest_requests(self, entity_id: str, state: str, *, before: str, limit: int) -> list[ChangeRequest]:
        """An entity's change requests in one state, the latest first.

        Those before an identifier.
        """
        values = {"entity_id": entity_id, "state": state, "before": before, "limit": limit}
        codec = self._kinds[ChangeRequest].codec
        return [codec.decode(row) for row in await self._database.rows(self._latest_requests, values)]
