"""Lists of records by declaration (`rules.directory.lists`), and words to search by.

The words of records that the previous version wrote are found again (D83).
"""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.directory.lists import FIRST, FIRST_CHARACTER, LAST, MOST_COUNTED, ListQuery, ListTotal, RecordList
from corpid.rules.directory.memberships import Member
from corpid.rules.directory.records import Entity, Membership, Service, User
from corpid.rules.directory.words import words_of
from corpid.rules.oauth.records import Client
from corpid.stores.sql.columns import (
    LIMIT,
    columns,
    decode_joined,
    number_texts,
    select_columns,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.mappers import KINDS, MEMBERSHIPS, USERS, RecordType
from corpid.stores.sql.statements import Part, Row, Statement, by_shape
from corpid.stores.sql.tables import (
    BEGINNING_OF_ADDRESS,
    BEGINNING_OF_NAME,
    BEGINNING_OF_PERSONS_NAME,
    SHOWN_EMAIL,
    SHOWN_NAME,
    SHOWN_USER_NAME,
    assignments,
    client_words,
    entity_words,
    member_words,
    memberships,
    operators,
    outdated_words,
    service_words,
    user_words,
    users,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

_EXPRESSIONS: Final[Mapping[tuple[type, str], str]] = {
    (Entity, "name"): BEGINNING_OF_NAME,
    (User, "name"): BEGINNING_OF_PERSONS_NAME,
    (User, "email"): BEGINNING_OF_ADDRESS,
    (Member, "user_name"): SHOWN_USER_NAME,
    (Member, "email"): SHOWN_EMAIL,
    (Member, "name"): SHOWN_NAME,
}
"""columns of orders whose index has an expression"""
_WORDS: Final[Mapping[type, tuple[sa.Table, str]]] = {
    User: (user_words, "user_id"),
    Entity: (entity_words, "entity_id"),
    Service: (service_words, "service_id"),
    Client: (client_words, "client_id"),
    Member: (member_words, "user_id"),
}
"""the words of each kind, and the identifier of a record; of members beside the entity's"""
_NARROWER: Final = frozenset({"user_id", "entity_id", "client_entity_id"})
"""members that fewer records have in common than a service"""
_EMPTY: Final = sa.literal_column("''", sa.Text)
_ONE: Final = sa.literal_column("1", sa.Integer)
_FEW: Final = 2000
"""records that are looked up and sorted for a page sooner than a list is read in which they are dense"""
_EXAMINED: Final = sa.literal_column("4999", sa.Integer)
"""rows of a word, less the last one, that one statement looks at; SQLite's are executed in the loop"""
_COUNTED: Final = sa.literal_column(str(MOST_COUNTED + 1), sa.Integer)
_READ: Final = sa.literal_column(str(2 * _FEW), sa.Integer)
"""no parameter: PostgreSQL has to see that so many rows at most are read"""


class Shape(NamedTuple):
    """The facts that decide on a statement's text."""

    kind: type
    order: tuple[str, ...]
    given: tuple[str, ...]
    """columns that narrow the list"""
    bounded: bool
    """whether the first column of the order has bounds"""
    backwards: bool = False
    no_operators: bool = False
    words: int = 0
    """how many are searched"""
    service: bool = False
    """whether a role at a service is asked for"""
    few: bool = False
    by_service: bool = False
    """whether the fewest records have a role, rather than the first word"""
    by_word: bool = False
    """whether the rows of the first word are walked, a part for each statement"""

    @property
    def searched(self) -> bool:
        return self.words > 0 or self.service


class RecordLists(Part):
    """Pages and totals of every list; each is one statement."""

    async def page(self, wanted: ListQuery) -> list[tuple[Any, tuple[str, ...]]]:
        """Records with their places, in the list's order.

        Also those of a page that is read backwards.
        """
        width = 2 if wanted.by_word else len(wanted.order.columns)
        shape, values = find_shape(wanted), bind_place(wanted) | bind_words(wanted.words, wanted.service_id)
        rows: list[Row] = []
        async for part in self._list_parts(shape, values):
            rows += await self._database.rows(select_page(shape), {**part, "limit": wanted.limit - len(rows)})
            if len(rows) == wanted.limit:
                break
        decode = decode_member if wanted.listed.record is Member else KINDS[wanted.listed.record].decode
        found = [(decode(row), row[-width:]) for row in rows]
        return found[::-1] if wanted.backwards else found

    async def total(self, wanted: ListQuery, *, most: int, frequent: bool = False) -> ListTotal:
        """The number of records on all pages, exact up to `most` (D83).

        `frequent`: each of what is searched has many rows.
        """
        wanted = replace(wanted, by_word=frequent, few=False, place=(), backwards=False)
        shape, values = find_shape(wanted), bind_place(wanted) | bind_words(wanted.words, wanted.service_id)
        shape = (
            shape._replace(order=(), bounded=False)
            if shape.searched
            else shape._replace(bounded=bool(wanted.beginning))
        )
        found = 0
        async for part in self._list_parts(shape, values):
            row = await self._database.row(count_records(shape), {**part, "limit": most + 1 - found})
            found += row[0] if row else 0
            if found > most:
                break
        return ListTotal(count=min(found, most), exact=found <= most)

    async def _list_parts(self, shape: Shape, values: dict[str, object]) -> AsyncIterator[dict[str, object]]:
        """The values of each statement.

        One for a list; several for the rows of a word, each of which reads a part.
        """
        while shape.by_word and shape.words + shape.service > 1:
            of_word = Shape(shape.kind, (), (), False, shape.backwards, words=1, by_word=True)
            end = await self._database.row(select_part_end(of_word), values)
            if end is None:
                break
            yield values | number_texts("end", end)
            values = values | number_texts("place", end)
            await asyncio.sleep(0)
        yield values

    async def plan(self, wanted: ListQuery) -> tuple[ListQuery, ListTotal]:
        """A search as it costs least, and its total (D83).

        What the fewest records have is looked up, the rest is asked of each of these. Where many records remain, they
        are not sorted: a page of what is found by words goes on in their index, one that is narrowed by state or
        service alone in its order. So it does where each word has many rows, whatever remains: they are walked part by
        part, and the loop serves others between two. A place says in which way its page was read.
        """
        words, frequent = wanted.words, False
        if len(words) + bool(wanted.service_id) > 1:
            shape = Shape(wanted.listed.record, (), tuple(sorted(wanted.where)), False, words=len(words),
                          service=bool(wanted.service_id))  # fmt: skip
            row = await self._database.row(
                count_words(shape), {**wanted.where, **bind_words(wanted.words, wanted.service_id)}
            )
            counts = row or (0,) * (len(words) + 1)
            words = tuple(each for _, each in sorted(zip(counts, words, strict=False), key=itemgetter(0)))
            by_service = bool(wanted.service_id) and counts[-1] < min(counts[:-1])
            wanted = replace(wanted, words=words, by_service=by_service)
            frequent = min(counts) > MOST_COUNTED
        total = await self.total(wanted, most=MOST_COUNTED, frequent=frequent)
        few = not wanted.by_word and not frequent and total.count <= _FEW
        many = not few and not wanted.place and (frequent or any(each[0] != " " for each in words))
        return replace(wanted, few=few, by_word=wanted.by_word or many), total

    async def find(
        self,
        listed: RecordList,
        where: Mapping[str, str | bool] | None = None,
        *,
        order: str = "",
        beginning: str = "",
        after: tuple[str, ...] = (),
        limit: int,
        backwards: bool = False,
    ) -> list[Any]:
        """Records of a page, without their places; backwards the last one first.

        `after` is a place, or empty texts.
        """
        wanted = ListQuery(
            listed=listed, order=listed.order(order), where=where or {}, beginning=beginning,
            place=after if any(after) else (), limit=limit, backwards=backwards,
        )  # fmt: skip
        found = [record for record, _ in await self.page(wanted)]
        return found[::-1] if backwards else found


def find_shape(wanted: ListQuery) -> Shape:
    return Shape(
        wanted.listed.record, () if wanted.by_word else wanted.order.columns, tuple(sorted(wanted.where)),
        wanted.order.bounded and not wanted.by_word,
        wanted.backwards, wanted.no_operators, len(wanted.words), bool(wanted.service_id), wanted.few,
        bool(wanted.service_id) and (wanted.by_service or not wanted.words),
        wanted.by_word,
    )  # fmt: skip


def bind_words(words: Sequence[str], service_id: str = "") -> dict[str, object]:
    """The values of the words, and of the service, that are searched."""
    values: dict[str, object] = {"service_id": service_id} if service_id else {}
    for number, word in enumerate(words):
        values |= {f"word_{number}": word, f"word_{number}_until": word + LAST}
    return values


def bind_place(wanted: ListQuery) -> dict[str, object]:
    """The values of `select_page`.

    Two bounds on the same side are the same place: SQLite begins at the one, PostgreSQL at the other.
    """
    values: dict[str, object] = {**wanted.where, "limit": wanted.limit}
    if wanted.by_word:
        start, end = (wanted.words[0], FIRST), (wanted.words[0] + LAST, FIRST)
        place = min(max(wanted.place or (end if wanted.backwards else start), start), end)
        return values | number_texts("place", place) | number_texts("end", start if wanted.backwards else end)
    width, beginning, at = len(wanted.order.columns), wanted.beginning, wanted.place
    first, until = beginning, beginning + LAST
    if at and wanted.backwards:
        until = min(until, at[0] if width == 1 else at[0] + FIRST_CHARACTER)
    elif at:
        first = max(first, at[0] + FIRST_CHARACTER if width == 1 else at[0])
    place = at or (until if wanted.backwards else first, *((LAST if wanted.backwards else FIRST,) * (width - 1)))
    return values | {"first": first, "until": until} | number_texts("place", place)


def _find_kind(shape: Shape) -> RecordType:
    return KINDS[Membership if shape.kind is Member else shape.kind]


@by_shape
def select_page(shape: Shape) -> sa.Select[Any]:
    """The given columns, `first` and `until`, `place_…`, `limit` → records, places."""
    known = _find_kind(shape)
    table = known.table
    words, identifier, of_words = _find_term(shape, 0) if shape.by_word else (table, "", [])
    keys = [words.c.word, words.c[identifier]] if shape.by_word else _find_keys(table, shape)
    found = select_columns(table, known.codec.columns)
    if shape.kind is Member:
        found = found.add_columns(*columns(users, USERS))
        found = found.join(users, users.c.user_id == memberships.c.user_id)
    found = found.add_columns(*(each.label(f"key_{number}") for number, each in enumerate(keys)))
    if shape.by_word:
        others = [_has_term(shape, each, words.c[identifier]) for each in range(1, shape.words + shape.service)]
        found = found.join(words, words.c[identifier] == table.c[identifier])
        found = found.where(*of_words, *others, _is_first(shape, words))
    found = found.where(*_narrow(table, shape), *_search(table, shape))
    if not shape.by_word and (len(keys) > 1 or not shape.bounded):
        key, place = sa.tuple_(*keys), _bind_key("place", len(keys))
        found = found.where(key < place if shape.backwards else key > place)
    found = found.order_by(*(each.desc() if shape.backwards else each for each in keys))
    return found.limit(LIMIT)


@by_shape
def count_records(shape: Shape) -> sa.Select[Any]:
    """The given columns, `first`, `until`, `limit` → number up to the limit."""
    table = _find_kind(shape).table
    if shape.searched:
        some = _select_found(table, shape)
    else:
        some = sa.select(_ONE).select_from(table).where(*_narrow(table, shape))
    limited = some.limit(LIMIT).subquery("counted")
    return sa.select(sa.func.count()).select_from(limited)


@by_shape
def select_part_end(shape: Shape) -> sa.Select[Any]:
    """`place_…`, `end_…` → the last row of a part, if more follow."""
    words, identifier, conditions = _find_term(shape, 0)
    keys = [words.c.word, words.c[identifier]]
    ordered = (each.desc() if shape.backwards else each for each in keys)
    return sa.select(*keys).where(*conditions).order_by(*ordered).limit(_ONE).offset(_EXAMINED)


@by_shape
def count_words(shape: Shape) -> sa.Select[Any]:
    """Count the rows of each searched word and of the role."""
    counted = []
    for number in range(shape.words + shape.service):
        source, _, conditions = _find_term(shape, number)
        some = sa.select(_ONE).select_from(source).where(*conditions).limit(_COUNTED).subquery(f"counted_{number}")
        counted.append(sa.select(sa.func.count()).select_from(some).scalar_subquery())
    return sa.select(*counted)


def _find_keys(table: sa.Table, shape: Shape) -> list[sa.ColumnElement[str]]:
    """The columns of the order.

    Where few records are found, its index is kept out of the engine's sight, which would read the list by it.
    """
    keys: list[sa.ColumnElement[str]] = [
        sa.literal_column(_EXPRESSIONS[shape.kind, name], sa.Text)
        if (shape.kind, name) in _EXPRESSIONS
        else table.c[name]
        for name in shape.order
    ]
    return [each + _EMPTY for each in keys] if shape.few else keys


def _find_term(shape: Shape, number: int) -> tuple[sa.FromClause, str, list[sa.ColumnElement[bool]]]:
    """The rows of what is searched: their table, identifier and conditions."""
    table, key = _WORDS[shape.kind]
    if number == shape.words:
        held = assignments.alias("held")
        return held, key, [_equal(held, "entity_id"), _equal(held, "service_id")]
    words = table.alias(f"words_{number}")
    first, until = (text_parameter(f"word_{number}{end}") for end in ("", "_until"))
    entity = [_equal(words, "entity_id")] if shape.kind is Member else []
    if not (shape.by_word and number == 0):
        return words, key, [*entity, words.c.word >= first, words.c.word < until]
    row, place, end = sa.tuple_(words.c.word, words.c[key]), _bind_key("place", 2), _bind_key("end", 2)
    return words, key, [*entity, *((row < place, row >= end) if shape.backwards else (row > place, row <= end))]


def _bind_key(name: str, width: int) -> sa.Tuple:
    return sa.tuple_(*text_parameters(name, width))


def _equal(table: sa.FromClause, name: str) -> sa.ColumnElement[bool]:
    return table.c[name] == text_parameter(name)


def _has_term(shape: Shape, number: int, identifier: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """The condition that a record has a word, or the role.

    One look-up for each record, which no engine turns into a join.
    """
    source, key, conditions = _find_term(shape, number)
    return sa.select(_ONE).where(source.c[key] == identifier, *conditions).limit(1).scalar_subquery().is_not(None)


def has_word(kind: type, number: int, identifier: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """`word_…`, of members `entity_id` → whether a record has a word."""
    return _has_term(Shape(kind, (), (), False, words=number + 1), number, identifier)


def _is_first(shape: Shape, words: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that no earlier word of the record is found."""
    earlier = _WORDS[shape.kind][0].alias("earlier")
    same = [earlier.c[name] == words.c[name] for name in earlier.c.keys() if name != "word"]  # noqa: SIM118 - no dict
    within = earlier.c.word >= text_parameter("word_0"), earlier.c.word < words.c.word
    return sa.select(_ONE).where(*same, *within).limit(1).scalar_subquery().is_(None)


def _select_found(table: sa.Table, shape: Shape) -> sa.Select[Any]:
    """The identifiers of the records that are found, each once."""
    driver = shape.words if shape.by_service else 0
    source, key, conditions = _find_term(shape, driver)
    others = [_has_term(shape, each, source.c[key]) for each in range(shape.words + shape.service) if each != driver]
    found = sa.select((source.c[key] + _EMPTY).label(key)).where(*conditions, *others)  # in the order of no index
    found = found.where(_is_first(shape, source)) if shape.by_word else found.distinct()
    more = [name for name in shape.given if not (shape.kind is Member and name == "entity_id")]
    if more:
        this = table.alias("this")
        same = (this.c[name] == sa.bindparam(name, type_=table.c[name].type) for name in more)
        found = found.where(sa.select(_ONE).where(this.c[key] == source.c[key], *same).scalar_subquery().is_not(None))
    if shape.no_operators:
        found = found.where(source.c[key].not_in(sa.select(operators.c.user_id)))
    return found


def _search(table: sa.Table, shape: Shape) -> list[sa.ColumnElement[bool]]:
    """The conditions on the records that are searched."""
    if not shape.searched or shape.by_word:
        return []
    _, key = _WORDS[shape.kind]
    if shape.few:
        return [table.c[key].in_(sa.select(_select_found(table, shape).limit(_READ).subquery("counted_found").c[key]))]
    return [_has_term(shape, number, table.c[key]) for number in range(shape.words + shape.service)]


def _narrow(table: sa.Table, shape: Shape) -> list[sa.ColumnElement[bool]]:
    """The conditions on the records of a list.

    Indexes by entity and by service have the order of people. A service may have a million rows, so its index is kept
    out of the engine's sight if something narrower is given; PostgreSQL then expects half of the narrower rows to be of
    that service, and reads them in their order until the page is full.
    """
    found: list[sa.ColumnElement[bool]] = []
    for name in shape.given:
        fits = table.c[name] == sa.bindparam(name, type_=table.c[name].type)
        is_last = name == "service_id" and not _NARROWER.isdisjoint(shape.given)
        found.append(sa.func.coalesce(fits, sa.false()) if is_last else fits)
    if shape.kind is Member:
        found.append(table.c.membership_id != _EMPTY)  # rows that a migration has not given an identifier yet
    if shape.bounded:
        first = _find_keys(table, shape)[0]
        found += [first >= text_parameter("first"), first < text_parameter("until")]
    if shape.no_operators:
        found.append(table.c.user_id.not_in(sa.select(operators.c.user_id)))  # no join, so that the order stays
    return found


def decode_member(row: Row) -> Member:
    """A membership and its person; more columns may follow in the row."""
    membership, user = decode_joined(row, MEMBERSHIPS, USERS)
    return Member(membership=membership, user=user)


_AT_ONCE: Final = 200
_KINDS: Final[Mapping[str, type]] = {
    "user": User, "entity": Entity, "membership": Membership, "service": Service, "client": Client,
}  # fmt: skip
_KEY: Final = ("record", "user_id", "entity_id")
"""of a service or a client the last one has the identifier"""


_REMOVE: Final = Statement(
    lambda: sa.delete(outdated_words).where(*(outdated_words.c[name] == sa.bindparam(f"{name}_noted") for name in _KEY))
)


@Statement
def _noted() -> sa.Executable:
    columns = [outdated_words.c[name] for name in _KEY]
    return sa.select(*columns).order_by(*columns).limit(sa.literal_column(str(_AT_ONCE), sa.Integer))


class OutdatedWords(Part):
    """Records whose words are to be found again; triggers note them."""

    async def refresh(self) -> int:
        """Find the words of some noted records; returns their number.

        A record is locked before its note is removed: who changes it meanwhile notes it again, or is seen. Raises
        StoreUnavailable.
        """
        noted = await self._database.rows(_noted, {})
        if not noted:
            return 0
        async with self._database.transaction():
            for row in noted:
                kind, values = KINDS[_KINDS[row[0]]], dict(zip(_KEY, row, strict=True))
                named = {**dict.fromkeys(kind.keys, row[2]), **values}
                found = await self._database.row(kind.locked, named)
                if found is not None:
                    words = words_of(kind.decode(found))
                    await self._database.run(_write_words(kind.table), {**named, "found": words})
                await self._database.run(_REMOVE, {f"{name}_noted": value for name, value in values.items()})
        return len(noted)


@by_shape
def _write_words(table: sa.Table) -> sa.Update:
    this = (each == sa.bindparam(f"{each.name}") for each in table.primary_key)
    return sa.update(table).where(*this).values(words=sa.bindparam("found"))
