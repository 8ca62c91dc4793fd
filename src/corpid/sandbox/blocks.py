"""The shape of the blocks that tell what a person may do (Spec 2.6, D22, D23)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpid.sandbox import verification

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.sandbox.verification import Checklist


def objects(checks: Checklist, what: str, block: Any, *, stringified: bool) -> Any:
    """A block as an object: as it came, or out of the text that this client registered for (D22)."""
    if not stringified:
        return block
    checks.that(f"{what}: text", isinstance(block, str), f"expected a text that holds JSON, got {type(block).__name__}")
    return verification.json_object(checks, what, block)


def assignments(checks: Checklist, what: str, block: Any) -> None:
    """The roles for the entity itself. Raises CheckFailed."""
    _services(checks, what, block, _assignments)


def third_parties(checks: Checklist, what: str, block: Any) -> None:
    """The roles for other entities. Raises CheckFailed."""
    _services(checks, what, block, _third_parties)


def _services(checks: Checklist, what: str, block: Any, rows_of: Callable[[Mapping[str, Any]], str]) -> None:
    try:
        result_set = block["Result_Set"]
        services = result_set["ESrvc_Result"]
        counted = result_set["ESrvc_Row_Count"] == len(services)
        problem = "" if counted else f"ESrvc_Row_Count is {result_set['ESrvc_Row_Count']}, not {len(services)}"
        for service in services:
            problem = problem or rows_of(service)
    except (KeyError, TypeError) as error:
        raise checks.failed(f"{what}: shape", f"is not as Spec 2.6 says ({error!r})") from error
    checks.that(f"{what}: shape and counts", not problem, problem, f"{len(services)} services")


def _assignments(service: Mapping[str, Any]) -> str:
    return _rows(service["CPESrvcID"], service["Auth_Result_Set"], "CPEntID_SUB")


def _third_parties(service: Mapping[str, Any]) -> str:
    chains = service["Auth_Set"]["TP_Auth"]
    if service["Auth_Set"]["ENT_ROW_COUNT"] != len(chains):
        return f"{service['CPESrvcID']}: ENT_ROW_COUNT does not count TP_Auth"
    problems = (
        _rows(f"{chain['CP_Clnt_ID']} {chain['CP_ClntEnt_TYPE']}", chain["Auth_Result_Set"], "CP_ClntEnt_SUB")
        for chain in chains
    )
    return next(filter(None, problems), "")


def _rows(name: str, result_set: Mapping[str, Any], sub_entity: str) -> str:
    rows = result_set["Row"]
    if result_set["Row_Count"] != len(rows):
        return f"{name}: Row_Count does not count Row"
    members = {sub_entity, "CPRole", "StartDate", "EndDate", "Parameter"}
    return next((f"{name}: a row has {sorted(row)}, not {sorted(members)}" for row in rows if set(row) != members), "")
