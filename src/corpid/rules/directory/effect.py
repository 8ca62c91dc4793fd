"""Roles in words: for whom, until when, and why not."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from corpid.rules.directory.authorization_data import limit_to_grant
from corpid.rules.directory.records import (
    NO_END,
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    ThirdPartyRow,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Row: TypeAlias = Assignment | ThirdPartyAssignment


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A row with every record that it rests on."""

    row: Row
    user: User
    entity: Entity
    """for which the person acts; of a third-party row the third party"""
    membership: Membership
    service: Service
    client_entity: Entity | None = None
    """of a third-party row"""
    grants: tuple[ThirdPartyGrant, ...] = ()
    """of a third-party row, those of the client entity to the third party for the service"""


def reasons(role: Role, today: str) -> tuple[str, ...]:
    """Return why a role is not effective on a day.

    Source: D23, D50, R-21
    """
    return tuple(_reasons(role, today))


def _reasons(role: Role, today: str) -> Iterator[str]:
    if role.row.start_date > today:
        yield f"it starts on {in_words(role.row.start_date)}"
    if role.row.end_date < today:
        yield f"it ended on {in_words(role.row.end_date)}"
    if role.membership.invited:
        yield "the invitation has not been accepted"
    elif not role.user.enabled:
        yield "the person is disabled"
    if not role.membership.enabled:
        yield "the membership is disabled"
    if not role.entity.enabled:
        yield f"the entity {role.entity.entity_id} is disabled"
    if not role.service.enabled:
        yield f"the service {role.service.service_id} is disabled"
    if isinstance(role.row, ThirdPartyAssignment) and role.client_entity is not None:
        yield from _third_party_reasons(role, role.client_entity, today)


def _third_party_reasons(role: Role, client_entity: Entity, today: str) -> Iterator[str]:
    if not client_entity.enabled:
        yield f"the entity {client_entity.entity_id} is disabled"
    if not role.service.third_parties:
        yield f"the service {role.service.service_id} does not allow third parties"
    in_time = role.row.start_date <= today <= role.row.end_date
    if not in_time or not isinstance(role.row, ThirdPartyAssignment) or _cut(role, client_entity, today):
        return
    if any(grant.state == "offered" and grant.fits(role.row) for grant in role.grants):
        yield f"{role.entity.entity_id} has not accepted what {client_entity.entity_id} offers"
    else:
        yield f"{client_entity.entity_id} does not grant this to {role.entity.entity_id} today"


def _cut(role: Role, client_entity: Entity, today: str) -> list[ThirdPartyAssignment]:
    if not isinstance(role.row, ThirdPartyAssignment):
        return []
    return limit_to_grant(ThirdPartyRow(assignment=role.row, client_entity=client_entity, grants=role.grants), today)


def last_day(role: Role, today: str) -> str:
    """Return the last day of a role, if it has one.

    That of a third-party row is cut to the grant's. Source: D23
    """
    cut = _cut(role, role.client_entity, today) if role.client_entity is not None else []
    last = cut[0].end_date if cut else role.row.end_date
    return "" if last == NO_END else last


def sentence(role: Role, today: str, given_by: str = "") -> str:
    """Return a role as a sentence about its person.

    `given_by` names who gave it, if that is known. Source: D23, D65
    """
    why = reasons(role, today)
    last = last_day(role, today)
    ends = f": {'; '.join(why)}" if why else f" until {in_words(last)}" if last else ""
    given = f" (given by {given_by})" if given_by else ""
    return f"{'Cannot' if why else 'May'} act {describe_role(role)}{ends}{given}."


def describe_role(role: Role) -> str:
    """Describe a role and its entity, without dates. Source: R-14.1."""
    row = role.row
    further = [
        f"sub-entity {row.sub_entity}" if row.sub_entity else "",
        f"ref {row.ref}" if row.ref else "",
        *(f"{parameter.name} = {parameter.value}" for parameter in row.parameters),
    ]
    details = ", ".join(filter(None, further))
    parts = [
        f"as {row.role}" if row.role else "",
        f"at {row.service_id}",
        f"({details})" if details else "",
        f"for {name_entity(role.client_entity or role.entity)}",
        f"through {name_entity(role.entity)}" if role.client_entity else "",
    ]
    return " ".join(filter(None, parts))


def name_entity(entity: Entity) -> str:
    """Return an entity by identifier and name. Source: R-14.2."""
    return f"{entity.entity_id} ({entity.name})"


def in_words(day: str) -> str:
    """Return a day as people write it, such as `31 December 2027`.

    What is no day stays as it is. Source: D23
    """
    try:
        read = date.fromisoformat(day)
    except ValueError:
        return day
    return f"{read.day} {read:%B} {read.year}"
