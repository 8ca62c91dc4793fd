"""Roles: as relying parties read them, and in words.

Authorization data leaves out rows outside their dates, and services that are switched off. The order is that of
identifiers and then of what the row says, so that the same directory gives the same bytes. Source: Spec 2.6, R-14, D23
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final, TypeAlias

import msgspec

from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    ThirdPartyRow,
    User,
)
from corpid.rules.directory.values import NO_END

RoleRow: TypeAlias = Assignment | ThirdPartyAssignment


MISSING: Final = "ERROR_MISSING_VALUE"
"""replaces a mandatory value that is not set (R-14.1)"""


class RoleRecords(msgspec.Struct, frozen=True, kw_only=True):
    """A row with every record that it rests on."""

    row: RoleRow
    user: User
    entity: Entity
    """for which the person acts; of a third-party row the third party"""
    membership: Membership
    service: Service
    client_entity: Entity | None = None
    """of a third-party row"""
    grants: tuple[ThirdPartyGrant, ...] = ()
    """of a third-party row, those of the client entity to the third party for the service"""


def auth_info(assignments: Iterable[Assignment], services: Iterable[Service], today: date) -> dict[str, object]:
    """The AuthInfo of a person for one entity.

    `assignments` are the rows of that person and entity, `services` those of the client; `today` is
    the day in the deployment's time zone. Without a row: present, with count 0. Spec 2.6, R-14.1, D23.
    """
    served = _served(services)
    rows: defaultdict[str, list[Assignment]] = defaultdict(list)
    for row in assignments:
        if row.service_id in served and row.start_date <= today.isoformat() <= row.end_date:
            rows[row.service_id].append(row)
    results: list[dict[str, object]] = [
        {"CPESrvcID": service_id, "Auth_Result_Set": _rows(rows[service_id], served[service_id], "CPEntID_SUB")}
        for service_id in sorted(rows)
    ]
    return _result_set(results)


def tp_auth_info(rows: Iterable[ThirdPartyRow], services: Iterable[Service], today: date) -> dict[str, object] | None:
    """The TPAuthInfo of a person acting for a third party.

    None means "no block": no row is left.

    `rows` are those of the person and the entity they act for. A row counts if its service allows third
    parties, its client entity is enabled and a grant of that entity covers it today; its dates are cut to
    the grant's. Spec 2.6, R-14.2, D23.
    """
    served = {key: service for key, service in _served(services).items() if service.third_parties}
    found: defaultdict[str, defaultdict[str, list[ThirdPartyAssignment]]] = defaultdict(lambda: defaultdict(list))
    entities: dict[str, Entity] = {}
    for row in rows:
        service_id, client_entity_id = row.assignment.service_id, row.client_entity.entity_id
        if service_id not in served or not row.client_entity.enabled:
            continue
        for cut in limit_to_grant(row, today.isoformat()):
            entities[client_entity_id] = row.client_entity
            found[service_id][client_entity_id].append(cut)
    if not found:
        return None
    results: list[dict[str, object]] = [
        {"CPESrvcID": service_id, "Auth_Set": _client_entities(found[service_id], entities, served[service_id])}
        for service_id in sorted(found)
    ]
    return _result_set(results)


def _served(services: Iterable[Service]) -> dict[str, Service]:
    return {service.service_id: service for service in services if service.enabled}


def limit_to_grant(row: ThirdPartyRow, today: str) -> list[ThirdPartyAssignment]:
    """The row, cut to the dates of its longest valid grant.

    None unless it is valid today. Source: D23
    """
    spans = [
        (min(grant.end_date, row.assignment.end_date), max(grant.start_date, row.assignment.start_date))
        for grant in row.grants
        if grant.allows(row.assignment)
    ]
    open_today = [(end, start) for end, start in spans if start <= today <= end]
    if not open_today:
        return []
    end, start = max(open_today)
    return [msgspec.structs.replace(row.assignment, start_date=start, end_date=end)]


def _client_entities(
    rows: Mapping[str, list[ThirdPartyAssignment]], entities: Mapping[str, Entity], service: Service
) -> dict[str, object]:
    authorizations = [
        {
            "CP_Clnt_ID": entity_id,
            "CP_ClntEnt_TYPE": entities[entity_id].type,
            "Auth_Result_Set": _rows(rows[entity_id], service, "CP_ClntEnt_SUB"),
        }
        for entity_id in sorted(rows)
    ]
    return {"ENT_ROW_COUNT": len(authorizations), "TP_Auth": authorizations}


def _rows(rows: Iterable[RoleRow], service: Service, sub_entity_name: str) -> dict[str, object]:
    ordered = sorted(rows, key=lambda row: (row.sub_entity, row.role, row.start_date, row.end_date, row.ref))
    shown = [
        {
            sub_entity_name: _sub_entity(row, service),
            "CPRole": row.role,
            "StartDate": row.start_date,
            "EndDate": row.end_date,
            "Parameter": _parameters(row, service),
        }
        for row in ordered
    ]
    return {"Row_Count": len(shown), "Row": shown}


def _sub_entity(row: RoleRow, service: Service) -> str:
    return {"none": "", "optional": row.sub_entity, "mandatory": row.sub_entity or MISSING}[service.sub_entity]


def _parameters(row: RoleRow, service: Service) -> list[dict[str, str]]:
    shown = []
    for definition in service.parameters:
        unset = MISSING if definition.mandatory else ""
        values = [parameter.value for parameter in row.parameters if parameter.name == definition.name]
        shown += [{"name": definition.name, "value": value or unset} for value in values or [""]]
    return shown


def _result_set(results: list[dict[str, object]]) -> dict[str, object]:
    return {"Result_Set": {"ESrvc_Row_Count": len(results), "ESrvc_Result": results}}


def reasons(role: RoleRecords, today: str) -> tuple[str, ...]:
    """Return why a role is not effective on a day.

    Source: D23, D50, R-21
    """
    return tuple(_list_reasons(role, today))


def _list_reasons(role: RoleRecords, today: str) -> Iterator[str]:
    if role.row.start_date > today:
        yield f"it starts on {in_words(role.row.start_date)}"
    if role.row.end_date < today:
        yield f"it ended on {in_words(role.row.end_date)}"
    if role.membership.invited:
        yield "the invitation has not been accepted"
    elif not role.user.enabled:
        yield "the person is disabled"
    if not role.membership.enabled:
        yield "the membership is suspended"
    if not role.entity.enabled:
        yield f"the entity {role.entity.entity_id} is disabled"
    if not role.service.enabled:
        yield f"the service {role.service.service_id} is disabled"
    if isinstance(role.row, ThirdPartyAssignment) and role.client_entity is not None:
        yield from _third_party_reasons(role, role.client_entity, today)


def _third_party_reasons(role: RoleRecords, client_entity: Entity, today: str) -> Iterator[str]:
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


def _cut(role: RoleRecords, client_entity: Entity, today: str) -> list[ThirdPartyAssignment]:
    if not isinstance(role.row, ThirdPartyAssignment):
        return []
    return limit_to_grant(ThirdPartyRow(assignment=role.row, client_entity=client_entity, grants=role.grants), today)


def last_day(role: RoleRecords, today: str) -> str:
    """Return the last day of a role, if it has one.

    That of a third-party row is cut to the grant's. Source: D23
    """
    cut = _cut(role, role.client_entity, today) if role.client_entity is not None else []
    last = cut[0].end_date if cut else role.row.end_date
    return "" if last == NO_END else last


def sentence(role: RoleRecords, today: str, given_by: str = "") -> str:
    """Return a role as a sentence about its person.

    `given_by` names who gave it, if that is known. Source: D23, D65
    """
    why = reasons(role, today)
    last = last_day(role, today)
    ends = f": {'; '.join(why)}" if why else f" until {in_words(last)}" if last else ""
    given = f" (given by {given_by})" if given_by else ""
    return f"{'Cannot' if why else 'May'} act {describe_role(role)}{ends}{given}."


def describe_role(role: RoleRecords) -> str:
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
