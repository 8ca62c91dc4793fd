"""Members of one entity, their invitations, and provisioning tokens (D60)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from corpid.rules.directory.memberships import (
    SEARCH_SERVICES,
    SENDING_SECONDS,
    ConditionOperator,
    Member,
    MemberCondition,
    MemberName,
    MemberQuery,
    OpenInvitation,
    RoleOrder,
    RoleSearch,
    SortedBy,
    being_sent,
)
from corpid.rules.directory.names import fold_ascii, fold_text, is_storable
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.values import NO_END
from corpid.stores.sql.columns import (
    LIMIT,
    columns,
    decode_joined,
    integer_parameter,
    number_texts,
    record_table,
    repeat_texts,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.directory import make_pattern
from corpid.stores.sql.lists import bind_words, decode_member, has_word
from corpid.stores.sql.mappers import ASSIGNMENTS, ENTITIES, MEMBERSHIPS, USERS
from corpid.stores.sql.statements import Part, Query, Row, Statement, by_shape, query
from corpid.stores.sql.tables import (
    COMPLETED_SIGN_IN,
    DUE,
    HAS_END,
    SHOWN_EMAIL,
    SHOWN_USER_NAME,
    assignments,
    audit,
    entities,
    memberships,
    provisioning_tokens,
    services,
    users,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from corpid.rules.directory.records import Assignment, Entity, Membership

Shape = tuple[tuple["MemberName", "ConditionOperator"], ...]


class RoleShape(NamedTuple):
    """The facts that decide on the text of a statement about roles."""

    words: int
    """how many are searched"""
    services: bool
    role: bool
    order: RoleOrder = "person"
    backwards: bool = False


TOKENS: Final = record_table(provisioning_tokens, RegisteredProvisioningToken)
_ESCAPE: Final = "/"
_LAST: Final = "\U0010ffff"
"""after every character of a name"""
_NAMED_AT_ONCE: Final = 100
"""memberships that one statement looks up"""

_OF: Final = memberships.c
_ONE: Final = sa.literal_column("1", sa.Integer)
_EMPTY: Final = sa.literal_column("''", sa.Text)
"""no parameter: the engine has to see that an index of some rows serves"""
_WITH_PERSON: Final = memberships.join(users, users.c.user_id == _OF.user_id)


_VALUES: Final[Mapping[str, sa.ColumnElement[str]]] = {
    "user_name": sa.literal_column(SHOWN_USER_NAME, sa.Text),
    "external_id": _OF.external_id,
    "email": sa.literal_column(SHOWN_EMAIL, sa.Text),
    "membership_id": _OF.membership_id,
}
_SWITCHES: Final[Mapping[str, sa.ColumnElement[bool]]] = {"active": _OF.enabled, "invited": _OF.invited}


class _RoleOrder(NamedTuple):
    """An order of an entity's roles, in which an index leads."""

    part: tuple[sa.ColumnElement[Any], ...]
    """the columns of the index: a part of a search ends after all roles of one of its rows"""
    rest: tuple[sa.ColumnElement[Any], ...]
    """further columns of a role's key"""
    among: tuple[sa.ColumnElement[bool] | sa.TextClause, ...]
    """the conditions of the index"""

    @property
    def keys(self) -> tuple[sa.ColumnElement[Any], ...]:
        return self.part + self.rest


_AT: Final = assignments.c
_ENTITY_ID: Final = text_parameter("entity_id")
_OF_ENTITY: Final = _AT.entity_id == _ENTITY_ID
ROLE_ORDERS: Final[Mapping[RoleOrder, _RoleOrder]] = {
    "person": _RoleOrder(
        (_VALUES["user_name"], _OF.membership_id),
        (_AT.service_id, _AT.role, _AT.sub_entity, _AT.ref),
        (_OF.entity_id == _ENTITY_ID, _OF.membership_id != _EMPTY),
    ),
    "service": _RoleOrder(
        (_AT.user_id,),
        (_AT.role, _AT.sub_entity, _AT.ref),
        (_OF_ENTITY, _AT.service_id == text_parameter("listed_0")),
    ),
    "role": _RoleOrder((_AT.role, _AT.service_id, _AT.user_id, _AT.sub_entity, _AT.ref), (), (_OF_ENTITY,)),
    "until": _RoleOrder(
        (_AT.end_date, _AT.user_id, _AT.service_id, _AT.role, _AT.sub_entity, _AT.ref),
        (),
        (_OF_ENTITY, sa.text(HAS_END)),
    ),
}
"""docs/decisions/0041"""


_MEMBER: Final = Query(
    lambda: (
        sa.select(*columns(memberships, MEMBERSHIPS), *columns(users, USERS))
        .select_from(_WITH_PERSON)
        .where(_OF.membership_id == text_parameter("membership_id"), _OF.membership_id != _EMPTY)
    ),
    decode_member,
)
_OF_TOKEN: Final = provisioning_tokens.c
_TOKEN: Final = Statement(
    lambda: (
        sa.select(*columns(provisioning_tokens, TOKENS), *columns(entities, ENTITIES))
        .select_from(provisioning_tokens.join(entities))
        .where(_OF_TOKEN.token_hash == text_parameter("hash"))
    )
)
_TOKENS_OF_ENTITY: Final = TOKENS.query(
    lambda found: found.where(_OF_TOKEN.entity_id == _ENTITY_ID).order_by(_OF_TOKEN.created_at, _OF_TOKEN.token_id)
)
_NOTE_USE: Final = Statement(
    lambda: (
        sa.update(provisioning_tokens)
        .where(_OF_TOKEN.token_id == sa.bindparam("token"), _OF_TOKEN.last_used_at < integer_parameter("since"))
        .values(last_used_at=integer_parameter("at"))
    )
)


class Provisioning(Part):
    """Members by identifier and filter, and tokens."""

    async def member(self, membership_id: str) -> Member | None:
        return await _MEMBER.one(self._database, membership_id=membership_id)

    async def memberships(self, entity_id: str, membership_ids: Collection[str]) -> list[Membership]:
        """Those of an entity that have these identifiers, in any order.

        One statement for each hundred; lets others run between two.
        """
        found: list[Membership] = []
        wanted = [each for each in dict.fromkeys(membership_ids) if each and is_storable(each)]
        for start in range(0, len(wanted), _NAMED_AT_ONCE):
            part = wanted[start : start + _NAMED_AT_ONCE]
            values = repeat_texts("listed", part, _NAMED_AT_ONCE)
            found += [MEMBERSHIPS.decode(row) for row in await self._database.rows(_select_named, values)]
            await asyncio.sleep(0)
        return [each for each in found if each.entity_id == entity_id]

    async def members(self, query: MemberQuery) -> tuple[int, list[Member]]:
        """The number of those that match, and a part of them.

        Without rows that a migration has not given an identifier yet. One statement for a page with the last member,
        else two.
        """
        shape = tuple((member, operator) for member, operator, _ in query.conditions)
        values: dict[str, object] = {"entity_id": query.entity_id}
        for number, condition in enumerate(query.conditions):
            values |= _bound(number, condition)
        part = {**values, "limit": query.limit, "offset": query.offset}
        found = [
            decode_member(row)
            for row in await self._database.rows(select_page(shape, query.sorted_by, query.descending), part)
        ]
        if len(found) < query.limit and (found or not query.offset):
            return query.offset + len(found), found
        count = await self._database.row(count_members(shape), values)
        return (count[0] if count else 0), found

    async def search_roles(
        self, wanted: RoleSearch, *, after: tuple[str, ...], limit: int, examined: int
    ) -> tuple[list[tuple[tuple[Assignment, Member], tuple[str, ...]]], tuple[str, ...] | None]:
        """Roles that fit, of the next `examined` rows of an index.

        `after` is a place, empty at the beginning; the rest of its row's roles come, too. With members and places, and
        the place at which the search goes on; None if nothing follows. Two statements, the first on an index alone.
        """
        order, backwards = ROLE_ORDERS[wanted.order], wanted.backwards
        width, wide = len(order.part), len(order.keys)
        low, high = (wanted.first, wanted.last) if wanted.order == "until" else ("", _LAST)
        bounds = (low, *("",) * (wide - 1)), (high, *(_LAST,) * (wide - 1))
        place, end = bounds[::-1] if backwards else bounds
        values: dict[str, object] = {"entity_id": wanted.entity_id, **_bind_roles(wanted)}
        values |= bind_words(wanted.words) | number_texts("place", after or place)
        row = await self._database.row(
            select_part_end(wanted.order, backwards),
            values | number_texts("end", end) | {"offset": examined - 1},
        )
        further = None if row is None else (*map(str, row), *bounds[not backwards][width:])
        if further is not None and (further <= end if backwards else further >= end):
            further = None
        shape = RoleShape(len(wanted.words), bool(wanted.services), bool(wanted.role), wanted.order, backwards)
        rows = await self._database.rows(
            select_roles(shape), values | number_texts("end", further or end) | {"limit": limit}
        )
        found = []
        for each in rows:
            membership, user, role = decode_joined(each, MEMBERSHIPS, USERS, ASSIGNMENTS)
            found.append(((role, Member(membership=membership, user=user)), each[-wide:]))
        return found, further

    async def services_with_roles(self, entity_id: str) -> list[tuple[str, str]]:
        """Identifier and name of each service at which members have roles."""
        rows = await self._database.rows(_select_services, {"entity_id": entity_id})
        return [(str(row[0]), str(row[1])) for row in rows]

    async def count_roles(self, wanted: RoleSearch, *, most: int) -> list[tuple[str, str, int]]:
        """Service, role and number of an entity's roles that fit.

        Words do not count. Of all that fit, up to `most` are counted.
        """
        statement = count_roles_found(RoleShape(0, bool(wanted.services), bool(wanted.role)))
        values = {"entity_id": wanted.entity_id, **_bind_roles(wanted), "limit": most}
        return [(str(row[0]), str(row[1]), int(row[2])) for row in await self._database.rows(statement, values)]

    async def roles(self, entity_id: str, user_ids: Collection[str]) -> list[tuple[str, str, int]]:
        """Person, service and number of roles for an entity.

        Of at most 100 people. Always the same statement: who is repeated is found once.
        """
        wanted = list(dict.fromkeys(user_ids))
        if not wanted:
            return []
        values = repeat_texts("listed", wanted, _NAMED_AT_ONCE)
        rows = await self._database.rows(_count_roles, {"entity_id": entity_id, **values})
        return [(str(row[0]), str(row[1]), int(row[2])) for row in rows]

    async def last_sign_ins(self, entity_id: str, user_ids: Collection[str]) -> dict[str, int]:
        """Moment of the last sign-in for an entity, by person.

        Of at most 100 members. Whoever has none that is kept is left out.
        """
        wanted = list(dict.fromkeys(user_ids))
        if not wanted:
            return {}
        values = repeat_texts("listed", wanted, _NAMED_AT_ONCE)
        rows = await self._database.rows(select_last_sign_ins, {"entity_id": entity_id, **values})
        return {str(row[0]): int(row[1]) for row in rows if row[1] is not None}

    async def token(self, token_hash: str) -> tuple[RegisteredProvisioningToken, Entity] | None:
        """A token by its hash, and its entity; it may have expired."""
        row = await self._database.row(_TOKEN, {"hash": token_hash})
        if row is None:
            return None
        token, entity = decode_joined(row, TOKENS, ENTITIES)
        return token, entity

    async def tokens(self, entity_id: str) -> list[RegisteredProvisioningToken]:
        """The tokens of an entity, the oldest first."""
        return await _TOKENS_OF_ENTITY.every(self._database, entity_id=entity_id)

    async def note_use(self, token_id: str, *, at: int, unless_since: int) -> None:
        """Write a token's last use, unless a recent one is written."""
        await self._database.write(_NOTE_USE, {"token": token_id, "at": at, "since": unless_since})


def select_waiting_invitations() -> sa.Select[Any]:
    """The number of waiting e-mails, and the moment of the oldest."""
    return sa.select(sa.func.count(), sa.func.coalesce(sa.func.min(_OF.changed_at), sa.literal_column("0"))).where(
        sa.text(DUE), _OF.enabled, _OF.invitation_sent_at <= sa.literal_column("0")
    )


_WAITING: Final = Statement(select_waiting_invitations)


class Invitations(Part):
    """Invitations, and the sending of their e-mails."""

    async def find(self, user_id: str) -> OpenInvitation | None:
        """Return the invitation of a placeholder, in one statement."""
        return await _select_invitation.one(self._database, user_id=user_id)

    async def of_entity(self, entity_id: str, *, after: str, limit: int) -> list[Membership]:
        """Return open invitations of an entity, by identifier."""
        return await _select_open_invitations.every(self._database, entity_id=entity_id, after=after, limit=limit)

    async def due(self, *, now: float, limit: int) -> list[OpenInvitation]:
        """Return invitations with an e-mail to send, untried ones first."""
        return await _select_due_invitations.every(self._database, since=being_sent(now - SENDING_SECONDS), most=limit)

    async def count_waiting(self) -> tuple[int, int]:
        """The number of members whose e-mail waits, and the oldest's moment.

        Epoch seconds; 0 if there is none.
        """
        row = await self._database.row(_WAITING, {})
        return (int(row[0]), int(row[1])) if row else (0, 0)

    async def take(self, invited: OpenInvitation, *, now: float) -> bool:
        """Take an invitation for sending, in one statement.

        Another process gets False, until this one has been silent for `SENDING_SECONDS`; so it does if the invitation
        has changed since it was read.
        """
        seen = invited.membership.invitation_sent_at
        return await self._database.write(_mark_invitation, self._values(invited, seen, being_sent(now))) == 1

    async def settle(self, invited: OpenInvitation, *, taken: float, becomes: int) -> bool:
        """Store the outcome of an e-mail, if this process still has it.

        `becomes` is a moment in epoch seconds, or a mark of `rules.directory.memberships`.
        """
        return await self._database.write(_mark_invitation, self._values(invited, being_sent(taken), becomes)) == 1

    @staticmethod
    def _values(invited: OpenInvitation, seen: int, becomes: int) -> dict[str, object]:
        member = invited.membership
        this = {"waiting": member.user_id, "entity": member.entity_id, "address": member.email}
        return {**this, "seen": seen, "becomes": becomes}


def _named(own: sa.BindParameter[str], persons: sa.BindParameter[str], *, served: bool) -> sa.CompoundSelect[Any]:
    """The identifiers of members with a user name, by two indexes.

    `served`: the account's user name counts only where the entity has written none. With `or` between the two, an
    engine reads every member of the entity.
    """
    entity = text_parameter("entity_id")
    first, second, person = memberships.alias("first"), memberships.alias("second"), users.alias("person")
    by_entity = sa.select(first.c.membership_id).where(
        first.c.entity_id == entity, first.c.user_name_key == own, first.c.user_name_key != _EMPTY
    )
    by_person = (
        sa.select(second.c.membership_id)
        .select_from(person.join(second, second.c.user_id == person.c.user_id))
        .where(person.c.user_name_key == persons, second.c.entity_id == entity)
    )
    if served:
        by_person = by_person.where(second.c.user_name_key == _EMPTY)
    return sa.union_all(by_entity, by_person)


def _condition(number: int, member: MemberName, operator: ConditionOperator) -> sa.ColumnElement[bool]:
    value = text_parameter(f"value_{number}")
    if member in _SWITCHES:
        return _SWITCHES[member] == sa.bindparam(f"value_{number}", type_=sa.Boolean)
    if operator == "co":
        return _VALUES[member].like(value, escape=_ESCAPE)
    if operator == "eq" and member in {"user_name", "any_user_name"}:
        person = text_parameter(f"name_{number}")
        return _OF.membership_id.in_(_named(value, person, served=member == "user_name"))
    found = _VALUES[member]
    is_given = [found != _EMPTY] if member == "external_id" else []  # its index has no other rows
    if operator == "eq":
        return sa.and_(found == value, *is_given)
    return sa.and_(found >= value, found < text_parameter(f"until_{number}"), *is_given)


def _matching(shape: Shape) -> list[sa.ColumnElement[bool]]:
    of_entity = _OF.entity_id == text_parameter("entity_id")
    return [of_entity, _OF.membership_id != _EMPTY, *(_condition(number, *each) for number, each in enumerate(shape))]


@by_shape
def count_members(shape: Shape) -> sa.Select[Any]:
    """`entity_id`, values → the number of members that match."""
    return sa.select(sa.func.count()).select_from(memberships).where(*_matching(shape))


@Statement
def _select_named() -> sa.Select[Any]:
    """Identifiers → memberships, of whichever entities."""
    wanted = text_parameters("listed", _NAMED_AT_ONCE)
    found = _OF.membership_id.in_(wanted), _OF.membership_id != _EMPTY
    return sa.select(*columns(memberships, MEMBERSHIPS)).where(*found)


@by_shape
def select_page(shape: Shape, sorted_by: SortedBy, descending: bool) -> sa.Select[Any]:
    """`entity_id`, values, `limit`, `offset` → membership and user.

    What a filter leaves is sorted: the index that has the order is kept out of the engine's sight, which would read
    every member by it.
    """
    key, last = _VALUES[sorted_by], _OF.membership_id
    order = [each + "" if shape else each for each in dict.fromkeys((key, last))]
    return (
        sa.select(*columns(memberships, MEMBERSHIPS), *columns(users, USERS))
        .select_from(_WITH_PERSON)
        .where(*_matching(shape))
        .order_by(*(each.desc() if descending else each for each in order))
        .limit(LIMIT)
        .offset(integer_parameter("offset"))
    )


def _bind_place(
    name: str, keys: Sequence[sa.ColumnElement[Any]], *, below: bool, strictly: bool
) -> list[sa.ColumnElement[bool]]:
    """The rows above or below a place, or at it unless `strictly`.

    SQLite compares no tuple in an index of an expression: there the name bounds the rows.
    """
    place = text_parameters(name, len(keys))
    key, bound = sa.tuple_(*keys), sa.tuple_(*place)
    found = (key < bound if strictly else key <= bound) if below else (key > bound if strictly else key >= bound)
    if keys[0] is not _VALUES["user_name"]:
        return [found]
    return [found, keys[0] <= place[0] if below else keys[0] >= place[0]]


def _ordered(keys: Sequence[sa.ColumnElement[Any]], *, backwards: bool) -> list[sa.ColumnElement[Any]]:
    return [each.desc() if backwards else each for each in keys]


@by_shape
def select_part_end(order: RoleOrder, backwards: bool) -> sa.Select[Any]:
    """Bounds, `offset` → the columns of a later row of the index.

    Between two names PostgreSQL reads the index in its order; of columns it does so from the place on.
    """
    part, _, among = ROLE_ORDERS[order]
    found = sa.select(*part).where(*among, *_bind_place("place", part, below=backwards, strictly=True))
    if order == "person":
        found = found.where(*_bind_place("end", part, below=not backwards, strictly=False))
    return found.order_by(*_ordered(part, backwards=backwards)).limit(1).offset(integer_parameter("offset"))


@Statement
def _select_services() -> sa.Select[Any]:
    """`entity_id` → services of its roles, by one look-up for each."""
    first = sa.select(sa.func.min(_AT.service_id).label("service_id")).where(_OF_ENTITY)
    held = first.cte("held", recursive=True)
    following = (
        sa.select(sa.func.min(_AT.service_id)).where(_OF_ENTITY, _AT.service_id > held.c.service_id).scalar_subquery()
    )
    held = held.union_all(sa.select(following).where(held.c.service_id.is_not(None)))
    name = sa.select(services.c.name).where(services.c.service_id == held.c.service_id).scalar_subquery()
    return sa.select(held.c.service_id, name).where(held.c.service_id.is_not(None))


def _match_roles(shape: RoleShape) -> list[sa.ColumnElement[bool]]:
    """The conditions on roles; `earliest` and `latest` bound their last days."""
    within = [
        _OF_ENTITY,
        _AT.end_date >= text_parameter("earliest"),
        _AT.end_date <= text_parameter("latest"),
    ]
    if shape.services and shape.order != "service":
        # A service may have a million rows: its index is kept out of the engine's sight.
        wanted = text_parameters("listed", SEARCH_SERVICES)
        within.append(sa.case((_AT.service_id.in_(wanted), sa.true()), else_=sa.false()))
    if shape.role:
        within.append(_AT.role == text_parameter("role"))
    return within


def _bind_roles(wanted: RoleSearch) -> dict[str, object]:
    """The values of `_match_roles` except the entity."""
    days = {"earliest": wanted.first, "latest": wanted.last or NO_END}
    services = repeat_texts("listed", wanted.services, SEARCH_SERVICES)
    return {**days, **services, **({"role": wanted.role} if wanted.role else {})}


@by_shape
def select_roles(shape: RoleShape) -> sa.Select[Any]:
    """`place_…`, `end_…`, values, `limit` → membership, user, role, place."""
    order = ROLE_ORDERS[shape.order]
    within = [
        *order.among,
        *_bind_place("place", order.keys, below=shape.backwards, strictly=True),
        *_bind_place("end", order.part, below=not shape.backwards, strictly=False),
        _OF.membership_id != _EMPTY,
        *_match_roles(shape),
        *(has_word(Member, number, _OF.user_id) for number in range(shape.words)),
    ]
    held = sa.and_(_AT.user_id == _OF.user_id, _AT.entity_id == _OF.entity_id)
    keys = (each.label(f"key_{number}") for number, each in enumerate(order.keys))
    return (
        sa.select(*columns(memberships, MEMBERSHIPS), *columns(users, USERS), *columns(assignments, ASSIGNMENTS), *keys)
        .select_from(_WITH_PERSON.join(assignments, held))
        .where(*within)
        .order_by(*_ordered(order.keys, backwards=shape.backwards))
        .limit(LIMIT)
    )


@by_shape
def count_roles_found(shape: RoleShape) -> sa.Select[Any]:
    """`entity_id`, values, `limit` → service, role, number of roles."""
    some = sa.select(assignments.c.service_id, assignments.c.role).where(*_match_roles(shape))
    found = some.limit(LIMIT).subquery("counted")
    return sa.select(found.c.service_id, found.c.role, sa.func.count()).group_by(found.c.service_id, found.c.role)


@Statement
def _count_roles() -> sa.Select[Any]:
    """`entity_id`, a hundred people → person, service, number of roles."""
    wanted = text_parameters("listed", _NAMED_AT_ONCE)
    person, service = assignments.c.user_id, assignments.c.service_id
    of_entity = assignments.c.entity_id == text_parameter("entity_id")
    found = sa.select(person, service, sa.func.count()).where(of_entity, person.in_(wanted))
    return found.group_by(person, service)


@Statement
def select_last_sign_ins() -> sa.Select[Any]:
    """`entity_id`, a hundred people → person, moment of the last sign-in."""
    wanted = text_parameters("listed", _NAMED_AT_ONCE)
    of_entity = text_parameter("entity_id")
    last = (
        sa.select(audit.c.at)
        .where(audit.c.actor == "user:" + _OF.user_id, audit.c.entity_id == of_entity, sa.text(COMPLETED_SIGN_IN))
        .order_by(audit.c.number.desc())
        .limit(_ONE)
        .scalar_subquery()
    )
    return sa.select(_OF.user_id, last).where(_OF.entity_id == of_entity, _OF.user_id.in_(wanted))


def _bound(number: int, condition: MemberCondition) -> dict[str, object]:
    """The values of a condition's parameters."""
    member, operator, text = condition
    if member in _SWITCHES:
        return {f"value_{number}": text == "true"}
    value = {"user_name": fold_text, "any_user_name": fold_text, "email": fold_ascii}.get(member, str)(text)
    if operator == "eq":
        return {f"value_{number}": value, f"name_{number}": _user_name(text)}
    if operator == "sw":
        return {f"value_{number}": value, f"until_{number}": value + _LAST}
    return {f"value_{number}": make_pattern(value)}


def _user_name(text: str) -> str:
    """The key of a person's user name; empty if it is invalid."""
    try:
        return mapped(text)
    except ValueError:
        return ""


def _decode_invitation(row: Row) -> OpenInvitation:
    user, membership, entity = decode_joined(row, USERS, MEMBERSHIPS, ENTITIES)
    return OpenInvitation(user=user, membership=membership, entity=entity)


def _select_invited() -> sa.Select[Any]:
    """Select placeholders with their invitations and entities."""
    rows = memberships.join(users, users.c.user_id == memberships.c.user_id).join(
        entities, entities.c.entity_id == memberships.c.entity_id
    )
    return (
        sa.select(*columns(users, USERS), *columns(memberships, MEMBERSHIPS), *columns(entities, ENTITIES))
        .select_from(rows)
        .where(memberships.c.invited, users.c.placeholder)
    )


@query(_decode_invitation)
def _select_due_invitations() -> sa.Select[Any]:
    """`since`, `most` → new invitations, then those of dead senders."""
    return (
        _select_invited()
        .where(sa.text(DUE), _OF.invitation_sent_at >= integer_parameter("since"))
        .where(_OF.enabled, entities.c.enabled)
        .order_by(_OF.invitation_sent_at.desc(), _OF.membership_id.desc())
        .limit(integer_parameter("most"))
    )


@query(_decode_invitation)
def _select_invitation() -> sa.Select[Any]:
    """`user_id` → the invitation of a placeholder."""
    return _select_invited().where(memberships.c.user_id == sa.bindparam("user_id"))


@query(MEMBERSHIPS.decode)
def _select_open_invitations() -> sa.Select[Any]:
    """`entity_id`, `after`, `limit` → invited memberships, by an index of them."""
    entity = _OF.entity_id == text_parameter("entity_id")
    rest = _OF.membership_id > text_parameter("after")
    found = sa.select(*columns(memberships, MEMBERSHIPS)).where(sa.text("memberships.invited"), entity, rest)
    return found.order_by(_OF.membership_id).limit(LIMIT)


@Statement
def _mark_invitation() -> sa.Update:
    """A conditional update: of two processes, one gets the e-mail."""
    this = _OF.user_id == sa.bindparam("waiting"), _OF.entity_id == sa.bindparam("entity")
    seen = _OF.invitation_sent_at == integer_parameter("seen")
    same = _OF.invited, _OF.email == text_parameter("address")
    marked = integer_parameter("becomes")
    return sa.update(memberships).where(*this, seen, *same).values(invitation_sent_at=marked)
