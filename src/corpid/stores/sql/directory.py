"""The directory: records by key, questions, pages of lists, and changes.

A question or a page is one statement. Changes are written by `changes.ChangeWriter`.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache, partial, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa

from corpid.rules.directory.entity_choice import FORMS, Form
from corpid.rules.directory.lists import RECORD_LISTS
from corpid.rules.directory.memberships import EntityTotals
from corpid.rules.directory.records import (
    A,
    ActingPerson,
    Administrator,
    AppointmentStatus,
    Assignment,
    Entity,
    Membership,
    NameRefused,
    Operator,
    OperatorLevel,
    Service,
    StoreChange,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    ThirdPartyRow,
    User,
)
from corpid.rules.directory.sources import SourcedRecord, sources_after
from corpid.rules.fields import KeyedRecord
from corpid.stores.sql.changes import ChangeWriter
from corpid.stores.sql.columns import (
    LIMIT,
    Codec,
    columns,
    decode_joined,
    number_texts,
    record_codec,
    repeat_texts,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.mappers import (
    ASSIGNMENTS,
    ENTITIES,
    KINDS,
    MEMBERSHIPS,
    PAGE,
    USERS,
    Kinds,
    RecordType,
    fold_user_name,
)
from corpid.stores.sql.sessions import PeoplePart, SignOuts
from corpid.stores.sql.statements import Database, Row, Statement, by_shape, query
from corpid.stores.sql.tables import (
    HAS_END,
    administrators,
    assignments,
    entities,
    memberships,
    operators,
    services,
    third_party_assignments,
    third_party_grants,
    users,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from corpid.rules.audit import AuditEvent
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.lists import RecordLists

R = TypeVar("R", bound=KeyedRecord)
Parameters: TypeAlias = "list[sa.BindParameter[str]]"

ADMINISTRATORS: Final = record_codec(Administrator)
OPERATORS: Final = record_codec(Operator)
SERVICES: Final = record_codec(Service)
GRANTS: Final = record_codec(ThirdPartyGrant)
THIRD_PARTY_ASSIGNMENTS: Final = record_codec(ThirdPartyAssignment)

_USER_ID: Final = text_parameter("user_id")
_ENTITY_ID: Final = text_parameter("entity_id")

_ESCAPE: Final = "/"
_FORMS: Final = text_parameters("form", len(FORMS))
_MEMBERSHIPS: Final = memberships.join(entities, entities.c.entity_id == memberships.c.entity_id)
_MINE: Final = sa.and_(memberships.c.user_id == _USER_ID, sa.not_(memberships.c.invited))
"""open invitations have no effect (D60)"""
_USABLE: Final = sa.and_(
    memberships.c.enabled, entities.c.enabled, (entities.c.type + ":" + entities.c.status).in_(_FORMS)
)

_CLIENT_ENTITY_END: Final = len(THIRD_PARTY_ASSIGNMENTS.columns) + len(ENTITIES.columns)

_READS_AT_ONCE: Final = 200
_PEOPLE_AT_ONCE: Final = 100
_FIRST: Final = text_parameter("first")


_ONE_USER: Final = KINDS[User].one
_SET_LANGUAGE: Final = Statement(
    lambda: (
        sa.update(users)
        .where(users.c.user_id == sa.bindparam("user"))
        .values(language=sa.bindparam("new"), source=sa.bindparam("by"), member_sources=sa.bindparam("since"))
    )
)


class Directory(PeoplePart):
    """Entities, users and their relations.

    Reads of the request path are single statements on an index.
    """

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts, lists: RecordLists) -> None:
        super().__init__(database, audit, kinds, sign_outs)
        self._lists: Final = lists
        self._changes: Final = ChangeWriter(database, audit, kinds, sign_outs)

    async def read(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], R]:
        """The records with these keys.

        Those that do not exist are left out. Lets others run now and then.
        """
        known = self._kinds[kind]
        return {key: known.codec.decode(row) async for key, row in self._find_rows(known, known.one, keys)}

    async def find(self, kind: type[R], *key: str) -> R | None:
        """The record with this key; None if there is none."""
        return (await self.read(kind, [key])).get(key)

    async def sourced(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], SourcedRecord[R]]:
        """The records with these keys, and where they come from (D65)."""
        known = self._kinds[kind]
        return {
            key: SourcedRecord(record=known.decode(row), sources=known.decode_sources(row))
            async for key, row in self._find_rows(known, known.sourced, keys)
        }

    async def _find_rows(
        self, known: RecordType, statement: Statement, keys: Iterable[tuple[str, ...]]
    ) -> AsyncIterator[tuple[tuple[str, ...], Row]]:
        for number, key in enumerate(keys, start=1):
            row = await self._database.row(statement, dict(zip(known.keys, key, strict=True)))
            if row is not None:
                yield key, row
            if number % _READS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def scan(self, kind: type[R]) -> AsyncIterator[R]:
        """Every record of a kind, by key.

        Page by page; concurrent writes may or may not be seen.
        """
        async for found in self.scan_sourced(kind):
            yield found.record

    async def scan_sourced(self, kind: type[R]) -> AsyncIterator[SourcedRecord[R]]:
        """Every record of a kind, by key, and where it comes from (D65)."""
        known = self._kinds[kind]
        rows = await self._database.rows(known.first_page, {"limit": PAGE})
        while rows:
            for row in rows:
                yield SourcedRecord(record=known.decode(row), sources=known.decode_sources(row))
            after = dict(zip(known.keys, rows[-1][-len(known.keys) :], strict=True))
            rows = await self._database.rows(known.next_page, after | {"limit": PAGE}) if len(rows) == PAGE else []

    async def acting(self, user_id: str, entity_id: str) -> ActingPerson | None:
        return await select_acting.one(self._database, user_id=user_id, entity_id=entity_id)

    async def user(self, user_id: str) -> User | None:
        row = await self._database.row(_ONE_USER, {"user_id": user_id})
        return None if row is None else USERS.decode(row)

    async def user_by_name(self, user_name: str) -> User | None:
        """By user name, compared after PRECIS mapping (D51).

        None for a text that cannot be a user name.
        """
        try:
            name = fold_user_name(user_name)
        except NameRefused:
            return None
        return await select_user_by_name.one(self._database, name=name)

    async def set_language(self, user_id: str, language: str, event: AuditEvent) -> None:
        """Store the language (a tag) of e-mails to a person.

        Nothing else of the record changes.
        """
        async with self._database.transaction():
            known = self._kinds[User]
            row = await self._database.row(known.locked, {"user_id": user_id})
            if row is None:
                return
            was: User = known.decode(row)
            becomes = msgspec.structs.replace(was, language=language)
            sources = known.encode_sources(sources_after(event.actor, was, becomes, known.decode_sources(row)))
            values = {"user": user_id, "new": language, "by": sources["source"], "since": sources["member_sources"]}
            await self._database.run(_SET_LANGUAGE, values)
            await self._audit.record_change(event, was, becomes)

    async def usable(self, user_id: str, accepted: frozenset[Form]) -> list[ActingPerson]:
        """Return at most two entities that a person can act for.

        Person, entity and membership are enabled, and the entity is of these types and statuses.
        """
        return await select_usable.every(self._database, user_id=user_id, **bind_forms(accepted))

    async def choices(
        self, user_id: str, accepted: frozenset[Form], *, words: Sequence[str], first: str, limit: int
    ) -> tuple[list[tuple[Entity, Membership]], int]:
        """A page of a person's memberships, and the number of matches.

        The entity matches every word (`entity_choice.search_words`). Usable ones (the first `first` of these) come
        before the others, then by name; capital and small letters sort alike. A list that is cut is counted by a second
        look.
        """
        patterns = [make_pattern(word) for word in sorted(set(words))]
        values = {"user_id": user_id, **number_texts("listed", patterns)}
        page = {**values, **bind_forms(accepted), "first": first, "limit": limit}
        rows = await self._database.rows(select_choices(len(patterns)), page)
        found = [_decode_choice(user_id, row) for row in rows]
        if len(found) < limit:
            return found, len(found)
        count = await self._database.row(count_choices(len(patterns)), values)
        return found, count[0] if count else 0

    async def administered(self, user_id: str) -> list[Administrator]:
        """A person's levels, by entity (D53)."""
        return await select_administered.every(self._database, user_id=user_id)

    async def administrators(self, entity_id: str) -> list[AppointmentStatus[Administrator]]:
        """An entity's administrators, by person (D53)."""
        return await select_administrators.every(self._database, entity_id=entity_id)

    async def operators(self, level: OperatorLevel) -> list[AppointmentStatus[Operator]]:
        """The deployment's operators of a level, by person (D53)."""
        return await select_operators.every(self._database, level=level)

    async def services(self, service_ids: Sequence[str]) -> list[Service]:
        """In the order of identifiers."""
        return [SERVICES.decode(row) for row in await self._of_services(select_services, service_ids)]

    async def assignments(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[Assignment]:
        """In the order of keys."""
        rows = await self._of_services(select_assignments, service_ids, user_id=user_id, entity_id=entity_id)
        return [ASSIGNMENTS.decode(row) for row in rows]

    async def third_party_rows(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[ThirdPartyRow]:
        """In the order of the assignments' keys."""
        rows = await self._of_services(select_third_party_rows, service_ids, user_id=user_id, entity_id=entity_id)
        grants: dict[Row, list[Row]] = {}
        for row in rows:
            grants.setdefault(row[:_CLIENT_ENTITY_END], []).append(row[_CLIENT_ENTITY_END:])
        return [_decode_third_party_row(row, granted) for row, granted in grants.items()]

    async def _of_services(
        self, statement: Callable[[int], Statement], service_ids: Sequence[str], **values: str
    ) -> list[Row]:
        wanted = sorted(set(service_ids))
        if not wanted:
            return []
        return await self._database.rows(statement(len(wanted)), values | number_texts("listed", wanted))

    async def third_party_roles(
        self, entity_id: str, client_entity_id: str, people: Collection[str]
    ) -> list[ThirdPartyAssignment]:
        """Roles of a third party's people for a client entity, by key."""
        parties = {"entity_id": entity_id, "client_entity_id": client_entity_id}
        return [
            THIRD_PARTY_ASSIGNMENTS.decode(row)
            for row in await self._of_people(select_third_party_roles, people, **parties)
        ]

    async def invitations(self, placeholders: Collection[str]) -> list[Membership]:
        """The invitations of placeholders."""
        return [MEMBERSHIPS.decode(row) for row in await self._of_people(select_invitations, placeholders)]

    async def _of_people(
        self, statement: Callable[[int], Statement], people: Collection[str], **values: str
    ) -> list[Row]:
        """Rows of people, of a hundred with each statement."""
        wanted, rows = sorted(set(people)), list["Row"]()
        for start in range(0, len(wanted), _PEOPLE_AT_ONCE):
            part = wanted[start : start + _PEOPLE_AT_ONCE]
            listed = repeat_texts("listed", part, _PEOPLE_AT_ONCE)
            rows += await self._database.rows(statement(_PEOPLE_AT_ONCE), values | listed)
        return rows

    async def totals(self, entity_id: str, *, first: str, last: str, most: int) -> EntityTotals:
        """Numbers of an entity's home page, each counted up to `most`.

        Of its own roles those that end from day `first` to day `last`.
        """
        values = {"entity_id": entity_id, "first": first, "last": last, "limit": most}
        people, roles, offers = await self._database.row(count_totals, values) or (0, 0, 0)
        return EntityTotals(people=people, ending=roles, offers=offers)

    async def page(
        self, kind: type[R], where: Mapping[str, str], *, after: tuple[str, ...] = (), limit: int
    ) -> list[R]:
        """Records by key, after that key.

        `where` gives columns of the kind's list and their values.
        """
        return await self._lists.find(RECORD_LISTS[kind], where, after=after, limit=limit)

    async def write(
        self,
        changes: Sequence[StoreChange],
        event: AuditEvent | None = None,
        within: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Write changes, each with its event in the same transaction, as `ChangeWriter.write`.

        Source: D57
        """
        await self._changes.write(changes, event, within)


def _decode_acting(row: Row) -> ActingPerson:
    user, entity, membership, held = decode_joined(row, USERS, ENTITIES, MEMBERSHIPS, ADMINISTRATORS)
    return ActingPerson(user=user, entity=entity, membership=membership, administrator=held)


def _decode_status(codec: Codec[A], row: Row) -> AppointmentStatus[A]:
    return AppointmentStatus(record=codec.decode(row[:-1]), enabled=bool(row[-1]))


def by_count(build: Callable[[Parameters], sa.Select[Any]]) -> Callable[[int], Statement]:
    """Decorate what builds a statement for each number of its values `listed`."""
    return by_shape(wraps(build)(lambda count: build(text_parameters("listed", count))))


@query(USERS.decode)
def select_user_by_name() -> sa.Select[Any]:
    """`name` → user. D51."""
    return sa.select(*columns(users, USERS)).where(users.c.user_name_key == sa.bindparam("name"))


@query(_decode_acting)
def select_acting() -> sa.Select[Any]:
    """`user_id`, `entity_id` → user, entity, membership, administrator.

    Nulls for a person who does not administer. Source: D50, D53
    """
    return _select_acting().where(_MINE, memberships.c.entity_id == _ENTITY_ID)


def _select_acting() -> sa.Select[Any]:
    chain = memberships.join(users).join(entities, entities.c.entity_id == memberships.c.entity_id)
    selected = (*columns(users, USERS), *columns(entities, ENTITIES), *columns(memberships, MEMBERSHIPS))
    level = columns(administrators, ADMINISTRATORS)
    return sa.select(*selected, *level).select_from(chain.outerjoin(administrators))


@query(_decode_acting)
def select_usable() -> sa.Select[Any]:
    """Select at most two entities that a person can use.

    The parameters are `user_id` and the forms; the columns are those of `select_acting`. Source: D17, D30, D50
    """
    return _select_acting().where(_MINE, _USABLE).limit(2)


@by_count
def select_choices(words: Parameters) -> sa.Select[Any]:
    """`user_id`, `first`, `limit`, forms, words → rows of `_decode_choice`.

    Usable entities come first, then by name.
    """
    of = entities.c
    selected = (of.entity_id, of.type, of.registration_number, of.country, of.name, of.status, of.enabled)
    preferred = of.entity_id == text_parameter("first")
    rank = sa.case((sa.not_(_USABLE), 2), (preferred, 0), else_=1)
    return (
        sa.select(*selected, memberships.c.enabled)
        .select_from(_MEMBERSHIPS)
        .where(_MINE, *_match_words(words))
        .order_by(rank, of.search_text)
        .limit(LIMIT)
    )


@by_count
def count_choices(words: Parameters) -> sa.Select[Any]:
    """`user_id`, words → the number of matching entities.

    Without words the entities are not read.
    """
    return (
        sa.select(sa.func.count())
        .select_from(_MEMBERSHIPS if words else memberships)
        .where(_MINE, *_match_words(words))
    )


def _match_words(words: Parameters) -> list[sa.ColumnElement[bool]]:
    return [entities.c.search_text.like(word, escape=_ESCAPE) for word in words]


def make_pattern(word: str) -> str:
    """The pattern of texts that contain a word, for `select_choices`."""
    for special in (_ESCAPE, "%", "_"):
        word = word.replace(special, _ESCAPE + special)
    return f"%{word}%"


@lru_cache(maxsize=256)
def bind_forms(accepted: frozenset[Form]) -> Mapping[str, str]:
    """The values of the statements' parameters for types and statuses.

    Those that are left over match nothing.
    """
    given = [f"{form}:{status}" for form, status in sorted(accepted)]
    given += [""] * (len(FORMS) - len(given))
    return MappingProxyType({parameter.key: value for parameter, value in zip(_FORMS, given, strict=True)})


def _decode_choice(user_id: str, row: Row) -> tuple[Entity, Membership]:
    """One row of `select_choices`, decoded by hand.

    A codec takes six times as long.
    """
    entity_id, form, number, country, name, status, enabled, member = row
    entity = Entity(
        entity_id=entity_id,
        type=form,
        registration_number=number,
        country=country,
        name=name,
        status=status,
        enabled=enabled != 0,
    )
    return entity, Membership(user_id=user_id, entity_id=entity_id, enabled=member != 0)


@query(ADMINISTRATORS.decode)
def select_administered() -> sa.Select[Any]:
    """`user_id` → administrator. D53."""
    held = sa.select(*columns(administrators, ADMINISTRATORS)).where(administrators.c.user_id == _USER_ID)
    return held.order_by(administrators.c.entity_id)


@query(partial(_decode_status, ADMINISTRATORS))
def select_administrators() -> sa.Select[Any]:
    """`entity_id` → administrator, and whether person and membership are enabled."""
    able = sa.and_(users.c.enabled, memberships.c.enabled)
    chain = administrators.join(memberships).join(users, users.c.user_id == administrators.c.user_id)
    return (
        sa.select(*columns(administrators, ADMINISTRATORS), able)
        .select_from(chain)
        .where(administrators.c.entity_id == _ENTITY_ID)
        .order_by(administrators.c.user_id)
    )


@query(partial(_decode_status, OPERATORS))
def select_operators() -> sa.Select[Any]:
    """`level` → operator, and whether the person is enabled."""
    return (
        sa.select(*columns(operators, OPERATORS), users.c.enabled)
        .select_from(operators.join(users))
        .where(operators.c.level == text_parameter("level"))
        .order_by(operators.c.user_id)
    )


@by_count
def select_services(wanted: Parameters) -> sa.Select[Any]:
    found = services.c.service_id.in_(wanted)
    return sa.select(*columns(services, SERVICES)).where(found).order_by(services.c.service_id)


@by_count
def select_assignments(wanted: Parameters) -> sa.Select[Any]:
    """`user_id`, `entity_id`, services → assignment."""
    mine = assignments.c.user_id == _USER_ID, assignments.c.entity_id == _ENTITY_ID
    found = assignments.c.service_id.in_(wanted)
    return sa.select(*columns(assignments, ASSIGNMENTS)).where(*mine, found).order_by(*assignments.primary_key)


@by_count
def select_third_party_roles(wanted: Parameters) -> sa.Select[Any]:
    """`entity_id`, `client_entity_id`, people → assignment."""
    of = third_party_assignments.c
    parties = of.entity_id == _ENTITY_ID, of.client_entity_id == text_parameter("client_entity_id")
    found = sa.select(*columns(third_party_assignments, THIRD_PARTY_ASSIGNMENTS)).where(
        *parties, of.user_id.in_(wanted)
    )
    return found.order_by(*third_party_assignments.primary_key)


@by_count
def select_invitations(wanted: Parameters) -> sa.Select[Any]:
    """Placeholders → membership."""
    of = memberships.c
    return sa.select(*columns(memberships, MEMBERSHIPS)).where(of.user_id.in_(wanted), of.invited)


@by_count
def select_third_party_rows(wanted: Parameters) -> sa.Select[Any]:
    """`user_id`, `entity_id`, services → assignment, client entity, grant.

    Once per accepted grant; nulls if there is none.
    """
    mine, grants = third_party_assignments, third_party_grants
    granted = sa.and_(
        grants.c.client_entity_id == mine.c.client_entity_id,
        grants.c.entity_id == mine.c.entity_id,
        grants.c.service_id == mine.c.service_id,
        grants.c.state == sa.literal_column("'accepted'"),
    )
    rows = mine.join(entities, entities.c.entity_id == mine.c.client_entity_id).outerjoin(grants, granted)
    selected = (*columns(mine, THIRD_PARTY_ASSIGNMENTS), *columns(entities, ENTITIES), *columns(grants, GRANTS))
    return (
        sa.select(*selected)
        .select_from(rows)
        .where(mine.c.user_id == _USER_ID, mine.c.entity_id == _ENTITY_ID, mine.c.service_id.in_(wanted))
        .order_by(*mine.primary_key, *grants.primary_key)
    )


def _decode_third_party_row(row: Row, granted: list[Row]) -> ThirdPartyRow:
    """A row of the outer join.

    An assignment without a grant comes once, with nulls for the grant.
    """
    assignment, client_entity = decode_joined(row, THIRD_PARTY_ASSIGNMENTS, ENTITIES)
    grants = tuple(GRANTS.decode(grant) for grant in granted if grant[0] is not None)
    return ThirdPartyRow(assignment=assignment, client_entity=client_entity, grants=grants)


def _match_days() -> tuple[sa.ColumnElement[bool] | sa.TextClause, ...]:
    """`entity_id`, `first`, `last` → roles that end in these days.

    The last condition, which the others imply, is that of the index.
    """
    return (
        assignments.c.entity_id == _ENTITY_ID,
        assignments.c.end_date >= _FIRST,
        assignments.c.end_date <= text_parameter("last"),
        sa.text(HAS_END),
    )


@Statement
def count_totals() -> sa.Select[Any]:
    """`entity_id`, `first`, `last`, `limit` → numbers up to the limit."""
    one: sa.ColumnElement[int] = sa.literal_column("1", sa.Integer)
    people = sa.select(one).where(memberships.c.entity_id == _ENTITY_ID).select_from(memberships)
    ending = sa.select(one).where(*_match_days()).select_from(assignments)
    offers = (
        sa.select(one)
        .where(third_party_grants.c.entity_id == _ENTITY_ID, third_party_grants.c.state == "offered")
        .select_from(third_party_grants)
    )
    return sa.select(
        *(
            sa.select(sa.func.count()).select_from(each.limit(LIMIT).subquery("counted")).scalar_subquery()
            for each in (people, ending, offers)
        )
    )
