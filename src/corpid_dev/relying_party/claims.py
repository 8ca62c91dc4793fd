"""The roles in a block of userinfo (Spec 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class ResultSet(NamedTuple):
    """The roles at one service, perhaps for one client entity."""

    service: str
    rows: Sequence[Mapping[str, Any]]
    sub_entity: str = "CPEntID_SUB"
    """the member of a row that names the sub-entity"""
    client_entity: str = ""
    """empty: the roles are for the entity itself"""
    client_entity_type: str = ""


def result_sets(block: Mapping[str, Any]) -> Iterator[ResultSet]:
    """The result sets of a block of roles.

    Source: Spec 2.6
    """
    for service in block["Result_Set"]["ESrvc_Result"]:
        if "Auth_Set" not in service:
            yield ResultSet(service["CPESrvcID"], service["Auth_Result_Set"]["Row"])
            continue
        for chain in service["Auth_Set"]["TP_Auth"]:
            yield ResultSet(
                service["CPESrvcID"],
                chain["Auth_Result_Set"]["Row"],
                "CP_ClntEnt_SUB",
                chain["CP_Clnt_ID"],
                chain["CP_ClntEnt_TYPE"],
            )
