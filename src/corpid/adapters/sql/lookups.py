"""The statements by which a request reads the directory; a test asks SQLite that none of them scans a table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import sqlalchemy as sa

from corpid.adapters.sql.codecs import USERS, record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.tables import (
    assignments,
    credentials,
    entities,
    memberships,
    services,
    third_party_assignments,
    third_party_grants,
    users,
)
from corpid.directory.records import Assignment, Entity, Membership, Service, ThirdPartyAssignment, ThirdPartyGrant

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.adapters.sql.statements import Database, Prepared, Row

ServiceParameters: TypeAlias = "list[sa.BindParameter[str]]"

ENTITIES: Final = record_codec(Entity)
MEMBERSHIPS: Final = record_codec(Membership)
SERVICES: Final = record_codec(Service)
ASSIGNMENTS: Final = record_codec(Assignment)
GRANTS: Final = record_codec(ThirdPartyGrant)
THIRD_PARTY_ASSIGNMENTS: Final = record_codec(ThirdPartyAssignment)

_USER_ID: Final = sa.bindparam("user_id", type_=sa.Text)
_ENTITY_ID: Final = sa.bindparam("entity_id", type_=sa.Text)
_STEP: Final = sa.bindparam("step", type_=sa.BigInteger)


def user_by_name() -> sa.Select[Any]:
    """`name` → user. D51."""
    return sa.select(*columns(users, USERS)).where(users.c.user_name_key == sa.bindparam("name"))


def acting() -> sa.Select[Any]:
    """`user_id`, `entity_id` → user, entity, membership. D50."""
    chain = memberships.join(users).join(entities, entities.c.entity_id == memberships.c.entity_id)
    selected = (*columns(users, USERS), *columns(entities, ENTITIES), *columns(memberships, MEMBERSHIPS))
    mine = memberships.c.user_id == _USER_ID, memberships.c.entity_id == _ENTITY_ID
    return sa.select(*selected).select_from(chain).where(*mine)


def choices() -> sa.Select[Any]:
    """`user_id` → what `choice` reads."""
    of = entities.c
    selected = (of.entity_id, of.type, of.registration_number, of.country, of.name, of.status, of.enabled)
    return (
        sa.select(*selected, memberships.c.enabled)
        .select_from(memberships.join(entities))
        .where(memberships.c.user_id == _USER_ID)
    )


def choice(user_id: str, row: Row) -> tuple[Entity, Membership]:
    """One row of `choices`, written out: a person may have thousands, and a codec takes six times as long."""
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


def services_of(wanted: ServiceParameters) -> sa.Select[Any]:
    """Services → service."""
    found = services.c.service_id.in_(wanted)
    return sa.select(*columns(services, SERVICES)).where(found).order_by(services.c.service_id)


def assignments_of(wanted: ServiceParameters) -> sa.Select[Any]:
    """`user_id`, `entity_id`, services → assignment."""
    mine = assignments.c.user_id == _USER_ID, assignments.c.entity_id == _ENTITY_ID
    found = assignments.c.service_id.in_(wanted)
    return sa.select(*columns(assignments, ASSIGNMENTS)).where(*mine, found).order_by(*assignments.primary_key)


def third_party_rows_of(wanted: ServiceParameters) -> sa.Select[Any]:
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


def raise_totp_step() -> sa.Update:
    """`user`, `step`: the check and the change are one statement. D45."""
    lower = credentials.c.totp_last_step < _STEP
    return (
        sa.update(credentials).where(credentials.c.user_id == sa.bindparam("user"), lower).values(totp_last_step=_STEP)
    )


def rehash() -> sa.Update:
    """`user`, `old`, `new`. D44."""
    same = credentials.c.password_hash == sa.bindparam("old")
    new = sa.bindparam("new", type_=sa.Text)
    return sa.update(credentials).where(credentials.c.user_id == sa.bindparam("user"), same).values(password_hash=new)


def service_name(number: int) -> str:
    """The parameter's name of the number-th service that is asked for."""
    return f"service_{number}"


def by_count(database: Database, statement: Callable[[ServiceParameters], sa.Select[Any]]) -> Callable[[int], Prepared]:
    """A statement for each number of services, prepared when it is first needed."""

    @cache
    def prepared(count: int) -> Prepared:
        return database.prepare(statement([sa.bindparam(service_name(number)) for number in range(count)]))

    return prepared
