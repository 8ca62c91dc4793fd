"""Rows of third parties, checked against the client entity's grants (R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.rules.directory.records import Parameter, ThirdPartyAssignment, ThirdPartyGrant


def allows(grant: ThirdPartyGrant, row: ThirdPartyAssignment) -> bool:
    """Return whether a grant allows a row, apart from dates.

    A blank role or sub-entity of the grant allows any. A parameter that the grant names must be
    set in the row, to values that the grant lists; parameters it does not name are free. R-21.
    """
    same = (grant.client_entity_id, grant.entity_id, grant.service_id) == (
        row.client_entity_id,
        row.entity_id,
        row.service_id,
    )
    return (
        same
        and grant.role in {"", row.role}
        and grant.sub_entity in {"", row.sub_entity}
        and all(set(_values(row.parameters, name)) <= allowed for name, allowed in _allowed(grant).items())
        and all(_values(row.parameters, name) for name in _allowed(grant))
    )


def covers(grant: ThirdPartyGrant, row: ThirdPartyAssignment) -> bool:
    """Return whether a row lies inside a grant's dates.

    Source: R-21
    """
    return allows(grant, row) and grant.start_date <= row.start_date and row.end_date <= grant.end_date


def _allowed(grant: ThirdPartyGrant) -> dict[str, set[str]]:
    return {parameter.name: set(_values(grant.parameters, parameter.name)) for parameter in grant.parameters}


def _values(parameters: tuple[Parameter, ...], name: str) -> list[str]:
    return [parameter.value for parameter in parameters if parameter.name == name]
