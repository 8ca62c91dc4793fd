"""The small directory of the protocol tests: who exists, and who may act for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition
from corpid.rules.oauth.generations import SCOPES as _EVERY_SCOPE

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord

SCOPES: Final = tuple(_EVERY_SCOPE)
PASSWORD: Final = "correct horse battery"
TOTP_SECRET: Final = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"

HARBOUR: Final = Entity(
    entity_id="209900042K",
    type="UEN",
    registration_number="209900042K",
    country="SG",
    name="Harbour Works Pte. Ltd.",
    status="Registered",
)
FOREIGN: Final = Entity(
    entity_id="C12345678D", type="NON-UEN", registration_number="HRB 4711", country="DE", name="Nordwerk GmbH"
)
CLIENT_ENTITY: Final = Entity(
    entity_id="201000001A",
    type="UEN",
    registration_number="201000001A",
    country="SG",
    name="Orchard Foods",
    status="Registered",
)

ALICE: Final = User(
    user_id="5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10",
    user_name="alice",
    name="Alice Ä. Example",
    identity_number="S0000001X",
    identity_country="SG",
)
"""acts for one entity"""
BOB: Final = User(user_id="7c6f1b52-0000-4000-8000-000000000002", user_name="bob", name="Bob")
"""acts for two"""
CAROL: Final = User(user_id="7c6f1b52-0000-4000-8000-000000000003", user_name="carol", name="Carol")
"""acts for nobody"""

MEMBERSHIP: Final = Membership(user_id=ALICE.user_id, entity_id=HARBOUR.entity_id)

PERMITS: Final = Service(
    service_id="PERMITS",
    name="Permits",
    roles=("Maker", "Checker"),
    parameters=(ParameterDefinition(name="Year"),),
    third_parties=True,
    sub_entity="optional",
    entity_types=("UEN", "NON-UEN"),
)
GRANTS: Final = Service(service_id="GRANTS", name="Grants", roles=("Applicant",))

MAKER: Final = Assignment(
    user_id=ALICE.user_id,
    entity_id=HARBOUR.entity_id,
    service_id="PERMITS",
    role="Maker",
    sub_entity="PORT",
    start_date="2020-01-01",
    parameters=(Parameter(name="Year", value="2027"),),
)
THIRD_PARTY_GRANT: Final = ThirdPartyGrant(
    client_entity_id=CLIENT_ENTITY.entity_id, entity_id=HARBOUR.entity_id, service_id="PERMITS"
)
THIRD_PARTY: Final = ThirdPartyAssignment(
    user_id=ALICE.user_id,
    entity_id=HARBOUR.entity_id,
    client_entity_id=CLIENT_ENTITY.entity_id,
    service_id="PERMITS",
    role="Checker",
    start_date="2021-02-03",
)


def records(password_hash: str) -> list[KeyedRecord]:
    """Everything, in the order in which it can be written."""
    users = (ALICE, BOB, CAROL)
    return [
        HARBOUR,
        FOREIGN,
        CLIENT_ENTITY,
        *users,
        *(Credentials(user_id=one.user_id, password_hash=password_hash, totp_secret=TOTP_SECRET) for one in users),
        MEMBERSHIP,
        Membership(user_id=BOB.user_id, entity_id=HARBOUR.entity_id),
        Membership(user_id=BOB.user_id, entity_id=FOREIGN.entity_id),
        PERMITS,
        GRANTS,
        MAKER,
        THIRD_PARTY_GRANT,
        THIRD_PARTY,
    ]


# What resources tell of Alice at rp-1 (Spec 2.6, D23)

AUTH_INFO: Final = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Result_Set": {
                    "Row_Count": 1,
                    "Row": [
                        {
                            "CPEntID_SUB": "PORT",
                            "CPRole": "Maker",
                            "StartDate": "2020-01-01",
                            "EndDate": "9999-12-31",
                            "Parameter": [{"name": "Year", "value": "2027"}],
                        }
                    ],
                },
            }
        ],
    }
}
TP_AUTH_INFO: Final = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Set": {
                    "ENT_ROW_COUNT": 1,
                    "TP_Auth": [
                        {
                            "CP_Clnt_ID": "201000001A",
                            "CP_ClntEnt_TYPE": "UEN",
                            "Auth_Result_Set": {
                                "Row_Count": 1,
                                "Row": [
                                    {
                                        "CP_ClntEnt_SUB": "",
                                        "CPRole": "Checker",
                                        "StartDate": "2021-02-03",
                                        "EndDate": "9999-12-31",
                                        "Parameter": [{"name": "Year", "value": ""}],
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
