"""The statements by which a request reads the directory; a test asks SQLite that none of them scans a table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import sqlalchemy as sa

from corpid.adapters.sql.codecs import ENTITIES, USERS, record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.tables import (
    assignments,
    entities,
    memberships,
    services,
    third_party_assignments,
    third_party_grants,
    users,
)
from corpid.directory.choice import FORMS
from corpid.directory.records import Assignment, Entity, Membership, Service, ThirdPartyAssignment, ThirdPartyGrant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from corpid.adapters.sql.statements import Database, Prepared, Row
    from corpid.directory.choice import Form

Parameters: TypeAlias = "list[sa.BindParameter[str]]"

MEMBERSHIPS: Final = record_codec(Membership)
SERVICES: Final = record_codec(Service)
ASSIGNMENTS: Final = record_codec(Assignment)
GRANTS: Final = record_codec(ThirdPartyGrant)
THIRD_PARTY_ASSIGNMENTS: Final = record_codec(ThirdPartyAssignment)

_USER_ID: Final = sa.bindparam("user_id", type_=sa.Text)
_ENTITY_ID: Final = sa.bindparam("entity_id", type_=sa.Text)

_ESCAPE: Final = "/"
_FORMS: Final = [sa.bindparam(f"form_{number}", type_=sa.Text) for number in range(len(FORMS))]
_HELD: Final = memberships.join(entities, entities.c.entity_id == memberships.c.entity_id)
_MINE: Final = memberships.c.user_id == _USER_ID
_USABLE: Final = sa.and_(
    memberships.c.enabled, entities.c.enabled, (entities.c.type + ":" + entities.c.status).in_(_FORMS)
)


def user_by_name() -> sa.Select[Any]:
    """`name` → user. D51."""
    return sa.select(*columns(users, USERS)).where(users.c.user_name_key == sa.bindparam("name"))


def acting() -> sa.Select[Any]:
    """`user_id`, `entity_id` → user, entity, membership. D50."""
    chain = memberships.join(users).join(entities, entities.c.entity_id == memberships.c.entity_id)
    selected = (*columns(users, USERS), *columns(entities, ENTITIES), *columns(memberships, MEMBERSHIPS))
    mine = memberships.c.user_id == _USER_ID, memberships.c.entity_id == _ENTITY_ID
    return sa.select(*selected).select_from(chain).where(*mine)


def usable() -> sa.Select[Any]:
    """`user_id`, forms → entity_id, of at most two entities that can be used. D17, D30."""
    return sa.select(memberships.c.entity_id).select_from(_HELD).where(_MINE, _USABLE).limit(2)


def choices(words: Parameters) -> sa.Select[Any]:
    """`user_id`, `first`, `limit`, forms, words → what `choice` reads: usable ones first, then by name."""
    of = entities.c
    selected = (of.entity_id, of.type, of.registration_number, of.country, of.name, of.status, of.enabled)
    preferred = of.entity_id == sa.bindparam("first", type_=sa.Text)
    rank = sa.case((sa.not_(_USABLE), 2), (preferred, 0), else_=1)
    return (
        sa.select(*selected, memberships.c.enabled)
        .select_from(_HELD)
        .where(_MINE, *_each(words))
        .order_by(rank, of.search_text)
        .limit(sa.bindparam("limit", type_=sa.Integer))
    )


def count_of_choices(words: Parameters) -> sa.Select[Any]:
    """`user_id`, words → how many entities match. Without words the entities are not looked at."""
    return sa.select(sa.func.count()).select_from(_HELD if words else memberships).where(_MINE, *_each(words))


def _each(words: Parameters) -> list[sa.ColumnElement[bool]]:
    return [entities.c.search_text.like(word, escape=_ESCAPE) for word in words]


def containing(word: str) -> str:
    """The pattern of texts that contain a word, for `choices`."""
    for special in (_ESCAPE, "%", "_"):
        word = word.replace(special, _ESCAPE + special)
    return f"%{word}%"


def form_values(accepted: AbstractSet[Form]) -> dict[str, str]:
    """The values of the statements' parameters for types and statuses; those that are left over match nothing."""
    given = [f"{form}:{status}" for form, status in sorted(accepted)]
    given += [""] * (len(FORMS) - len(given))
    return {parameter.key: value for parameter, value in zip(_FORMS, given, strict=True)}


def choice(user_id: str, row: Row) -> tuple[Entity, Membership]:
    """One row of `choices`, written out: a codec takes six times as long."""
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


def services_of(wanted: Parameters) -> sa.Select[Any]:
    """Services → service."""
    found = services.c.service_id.in_(wanted)
    return sa.select(*columns(services, SERVICES)).where(found).order_by(services.c.service_id)


def assignments_of(wanted: Parameters) -> sa.Select[Any]:
    """`user_id`, `entity_id`, services → assignment."""
    mine = assignments.c.user_id == _USER_ID, assignments.c.entity_id == _ENTITY_ID
    found = assignments.c.service_id.in_(wanted)
    return sa.select(*columns(assignments, ASSIGNMENTS)).where(*mine, found).order_by(*assignments.primary_key)


def third_party_rows_of(wanted: Parameters) -> sa.Select[Any]:
    """`user_id`, `entity_id`, services → assignment, client entity, grant (or nulls), once per grant."""
    mine, grants = third_party_assignments, third_party_grants
    granted = sa.and_(
        grants.c.client_entity_id == mine.c.client_entity_id,
        grants.c.entity_id == mine.c.entity_id,
        grants.c.service_id == mine.c.service_id,
    )
    rows = mine.join(entities, entities.c.entity_id == mine.c.client_entity_id).outerjoin(grants, granted)
    selected = (*columns(mine, THIRD_PARTY_ASSIGNMENTS), *columns(entities, ENTITIES), *columns(grants, GRANTS))
    return (
        sa.select(*selected)
        .select_from(rows)
        .where(mine.c.user_id == _USER_ID, mine.c.entity_id == _ENTITY_ID, mine.c.service_id.in_(wanted))
        .order_by(*mine.primary_key, *grants.primary_key)
    )


def listed(values: Sequence[str]) -> dict[str, str]:
    """Values for the parameters of a statement made by `by_count`."""
    return {_name(number): value for number, value in enumerate(values)}


def _name(number: int) -> str:
    return f"listed_{number}"


def by_count(database: Database, statement: Callable[[Parameters], sa.Select[Any]]) -> Callable[[int], Prepared]:
    """A statement for each number of services or words, prepared when it is first needed."""

    @cache
    def prepared(count: int) -> Prepared:
        return database.prepare(statement([sa.bindparam(_name(number), type_=sa.Text) for number in range(count)]))

    return prepared
