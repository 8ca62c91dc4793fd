"""The Result_Set shapes (Spec 2.6, R-14, D23)."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    ThirdPartyRow,
)
from corpid.rules.directory.roles import auth_info, tp_auth_info
from corpid.rules.directory.values import Parameter, ParameterDefinition

TODAY = date(2026, 11, 20)
PERMIT = Service(
    service_id="PERMIT",
    name="Permits",
    roles=("Maker", "Checker"),
    parameters=(
        ParameterDefinition(name="Year", kind="year", mandatory=True),
        ParameterDefinition(name="Note"),
    ),
    third_parties=True,
    sub_entity="optional",
)
AUDIT = Service(service_id="AUDIT", name="Audit", sub_entity="mandatory", third_parties=True)
ROW = Assignment(
    user_id="u",
    entity_id="A1",
    service_id="PERMIT",
    role="Maker",
    sub_entity="Berth",
    start_date="2026-01-01",
    parameters=(Parameter(name="Year", value="2026"), Parameter(name="Year", value="2027")),
)
CLIENT_ENTITY = Entity(entity_id="C3", type="GSTN", registration_number="G", country="SG", name="Gamma")
THEIRS = ThirdPartyAssignment(
    user_id="u", entity_id="A1", client_entity_id="C3", service_id="PERMIT", role="Maker", start_date="2026-01-01"
)
GRANT = ThirdPartyGrant(client_entity_id="C3", entity_id="A1", service_id="PERMIT", start_date="2025-01-01")
CHAIN = ThirdPartyRow(assignment=THEIRS, client_entity=CLIENT_ENTITY, grants=(GRANT,))


def changed(**members: object) -> Assignment:
    return msgspec.structs.replace(ROW, **members)


def chain(*grants: ThirdPartyGrant, **members: object) -> ThirdPartyRow:
    return ThirdPartyRow(
        assignment=msgspec.structs.replace(THEIRS, **members), client_entity=CLIENT_ENTITY, grants=grants
    )


def granted(**members: object) -> ThirdPartyGrant:
    return msgspec.structs.replace(GRANT, **members)


def rows_of(block: dict[str, object]) -> list[dict[str, object]]:
    """Every Row of a block with one service and, for third parties, one client entity."""
    [result] = block["Result_Set"]["ESrvc_Result"]  # type: ignore[index]
    holder = result["Auth_Set"]["TP_Auth"][0] if "Auth_Set" in result else result
    rows: list[dict[str, object]] = holder["Auth_Result_Set"]["Row"]
    return rows


def test_auth_info_has_the_shape_of_the_specification() -> None:
    """Spec 2.6, R-14.1: a repeated parameter repeats, an unset optional one is empty."""
    assert auth_info([ROW], [PERMIT], TODAY) == {
        "Result_Set": {
            "ESrvc_Row_Count": 1,
            "ESrvc_Result": [
                {
                    "CPESrvcID": "PERMIT",
                    "Auth_Result_Set": {
                        "Row_Count": 1,
                        "Row": [
                            {
                                "CPEntID_SUB": "Berth",
                                "CPRole": "Maker",
                                "StartDate": "2026-01-01",
                                "EndDate": "9999-12-31",
                                "Parameter": [
                                    {"name": "Year", "value": "2026"},
                                    {"name": "Year", "value": "2027"},
                                    {"name": "Note", "value": ""},
                                ],
                            }
                        ],
                    },
                }
            ],
        }
    }


def test_without_assignments_auth_info_is_present_with_count_zero() -> None:
    """D23."""
    assert auth_info([], [PERMIT], TODAY) == {"Result_Set": {"ESrvc_Row_Count": 0, "ESrvc_Result": []}}


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ("2026-11-20", "2026-11-20", 1),
        ("2026-11-21", "9999-12-31", 0),
        ("0001-01-01", "2026-11-19", 0),
        ("0001-01-01", "9999-12-31", 1),
    ],
)
def test_the_first_and_the_last_day_count_and_no_other(start: str, end: str, shown: int) -> None:
    """D23: dates are inclusive."""
    block = auth_info([changed(start_date=start, end_date=end)], [PERMIT], TODAY)
    assert block["Result_Set"]["ESrvc_Row_Count"] == shown  # type: ignore[index]


def test_a_mandatory_value_that_nobody_set_says_so() -> None:
    """R-14.1: ERROR_MISSING_VALUE for a sub-entity and for a parameter, unset or empty."""
    [row] = rows_of(auth_info([changed(service_id="AUDIT", sub_entity="", parameters=())], [AUDIT], TODAY))
    assert (row["CPEntID_SUB"], row["Parameter"]) == ("ERROR_MISSING_VALUE", [])
    for parameters in ((), (Parameter(name="Year", value=""),)):
        [row] = rows_of(auth_info([changed(parameters=parameters)], [PERMIT], TODAY))
        assert row["Parameter"] == [{"name": "Year", "value": "ERROR_MISSING_VALUE"}, {"name": "Note", "value": ""}]


def test_a_service_without_sub_entities_shows_none() -> None:
    """R-14.1."""
    plain = msgspec.structs.replace(PERMIT, sub_entity="none")
    [row] = rows_of(auth_info([ROW], [plain], TODAY))
    assert row["CPEntID_SUB"] == ""


def test_only_services_of_the_client_that_are_switched_on_are_told() -> None:
    off = msgspec.structs.replace(PERMIT, enabled=False)
    for services in ([], [AUDIT], [off]):
        assert auth_info([ROW], services, TODAY)["Result_Set"] == {"ESrvc_Row_Count": 0, "ESrvc_Result": []}


@given(st.permutations([ROW, changed(role="Checker"), changed(ref="2"), changed(service_id="AUDIT", sub_entity="x")]))
def test_the_order_does_not_depend_on_the_store(rows: list[Assignment]) -> None:
    expected = auth_info(
        [ROW, changed(role="Checker"), changed(ref="2"), changed(service_id="AUDIT", sub_entity="x")],
        [AUDIT, PERMIT],
        TODAY,
    )
    assert auth_info(rows, [PERMIT, AUDIT], TODAY) == expected


def test_tp_auth_info_has_the_shape_of_the_specification() -> None:
    """Spec 2.6, R-14.2: counts are lengths, Parameter is always there, the type is the client entity's."""
    assert tp_auth_info([CHAIN], [msgspec.structs.replace(PERMIT, parameters=())], TODAY) == {
        "Result_Set": {
            "ESrvc_Row_Count": 1,
            "ESrvc_Result": [
                {
                    "CPESrvcID": "PERMIT",
                    "Auth_Set": {
                        "ENT_ROW_COUNT": 1,
                        "TP_Auth": [
                            {
                                "CP_Clnt_ID": "C3",
                                "CP_ClntEnt_TYPE": "GSTN",
                                "Auth_Result_Set": {
                                    "Row_Count": 1,
                                    "Row": [
                                        {
                                            "CP_ClntEnt_SUB": "",
                                            "CPRole": "Maker",
                                            "StartDate": "2026-01-01",
                                            "EndDate": "9999-12-31",
                                            "Parameter": [],
                                        }
                                    ],
                                },
                            }
                        ],
                    },
                }
            ],
        }
    }


@pytest.mark.parametrize(
    ("row", "service"),
    [
        (chain(GRANT, end_date="2026-11-19"), PERMIT),
        (chain(), PERMIT),
        (chain(granted(end_date="2026-11-19")), PERMIT),
        (chain(granted(start_date="2026-11-21")), PERMIT),
        (chain(granted(role="Checker")), PERMIT),
        (chain(granted(sub_entity="Other")), PERMIT),
        (chain(granted(entity_id="B2")), PERMIT),
        (chain(granted(client_entity_id="B2")), PERMIT),
        (chain(granted(service_id="AUDIT")), PERMIT),
        (chain(granted(parameters=(Parameter(name="Year", value="2025"),))), PERMIT),
        (CHAIN, msgspec.structs.replace(PERMIT, third_parties=False)),
        (CHAIN, msgspec.structs.replace(PERMIT, enabled=False)),
        (CHAIN, AUDIT),
        (ThirdPartyRow(assignment=THEIRS, client_entity=msgspec.structs.replace(CLIENT_ENTITY, enabled=False), grants=(GRANT,)), PERMIT),
    ],
)  # fmt: skip
def test_a_third_party_row_that_does_not_hold_today_leaves_no_block(row: ThirdPartyRow, service: Service) -> None:
    """D23, R-21: the service allows third parties, the client entity is enabled and its grant covers the row."""
    assert tp_auth_info([row], [service], TODAY) is None


def test_a_row_never_outlasts_its_grant() -> None:
    """R-21: a grant that was shortened later cuts the rows that were made before."""
    [row] = rows_of(tp_auth_info([chain(granted(end_date="2026-12-31"))], [PERMIT], TODAY) or {})
    assert row["EndDate"] == "2026-12-31"


def test_several_services_and_client_entities_are_counted() -> None:
    other = ThirdPartyRow(
        assignment=msgspec.structs.replace(THEIRS, client_entity_id="B2"),
        client_entity=msgspec.structs.replace(CLIENT_ENTITY, entity_id="B2"),
        grants=(granted(client_entity_id="B2"),),
    )
    third = chain(granted(service_id="AUDIT"), service_id="AUDIT", role="")
    block = tp_auth_info([CHAIN, other, third], [PERMIT, AUDIT], TODAY) or {}
    result_set = block["Result_Set"]
    assert result_set["ESrvc_Row_Count"] == 2  # type: ignore[index]
    audit, permit = result_set["ESrvc_Result"]  # type: ignore[index]
    assert (audit["CPESrvcID"], permit["CPESrvcID"]) == ("AUDIT", "PERMIT")
    assert [one["CP_Clnt_ID"] for one in permit["Auth_Set"]["TP_Auth"]] == ["B2", "C3"]
    assert permit["Auth_Set"]["ENT_ROW_COUNT"] == 2
