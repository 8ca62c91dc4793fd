"""Authorization data in the formats that relying parties read.

Rows outside their dates are left out, so are services that are switched off. The order is that of
identifiers and then of what the row says, so that the same directory gives the same bytes.
Source: Spec 2.6, R-14, D23
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from corpid.rules.directory.records import Assignment, Entity, Service, ThirdPartyAssignment, ThirdPartyRow

    Row: TypeAlias = Assignment | ThirdPartyAssignment

MISSING: Final = "ERROR_MISSING_VALUE"
"""replaces a mandatory value that is not set (R-14.1)"""


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


def _rows(rows: Iterable[Row], service: Service, sub_entity_name: str) -> dict[str, object]:
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


def _sub_entity(row: Row, service: Service) -> str:
    return {"none": "", "optional": row.sub_entity, "mandatory": row.sub_entity or MISSING}[service.sub_entity]


def _parameters(row: Row, service: Service) -> list[dict[str, str]]:
    shown = []
    for definition in service.parameters:
        unset = MISSING if definition.mandatory else ""
        values = [parameter.value for parameter in row.parameters if parameter.name == definition.name]
        shown += [{"name": definition.name, "value": value or unset} for value in values or [""]]
    return shown


def _result_set(results: list[dict[str, object]]) -> dict[str, object]:
    return {"Result_Set": {"ESrvc_Row_Count": len(results), "ESrvc_Result": results}}
