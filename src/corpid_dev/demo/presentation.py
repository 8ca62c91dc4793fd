"""The demo RP's account of a sign-in: words and rows without markup."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.relying_party.claim_checks import parties_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corpid_dev.relying_party.timeline import Exchange
    from corpid_dev.relying_party.verification import Check

MEANINGS: Final = {
    "iss": "who issued it",
    "aud": "who it is for",
    "sub": "who signed in, or for whom",
    "sub_type": "whether sub is the person or the entity",
    "iat": "issued at",
    "exp": "valid until",
    "auth_time": "when the person proved who they are",
    "nonce": "ours, to tie it to this sign-in",
    "at_hash": "ties it to the access token",
    "sid": "names the session at the provider, to this client alone",
    "amr": "how the person proved it",
    "acr": "the assurance level reached",
    "userInfo.CPAccType": "kind of account",
    "userInfo.CPUID_FullName": "the person who acts",
    "userInfo.ISSPHOLDER": "whether the account is a standard one",
    "entityInfo.CPEntID": "whom the person acts for",
    "entityInfo.CPEnt_TYPE": "what kind of entity",
    "entityInfo.CPEnt_Status": "how it stands in the register",
    "entityInfo.CPNonUEN_Country": "not told of UEN entities",
    "entityInfo.CPNonUEN_RegNo": "not told of UEN entities",
    "entityInfo.CPNonUEN_Name": "not told of UEN entities",
    "entity": "whom the person acts for",
    "act": "the person who acts",
    "client_id": "the relying party it was issued to",
    "scope": "what it may be used for",
    "jti": "its own number",
    "cnf.jkt": "thumbprint of the DPoP key it is bound to",
    "typ": "what kind of JWT it is",
    "alg": "the algorithm",
    "enc": "the content encryption",
    "kid": "which key",
}
OWN_BLOCKS: Final = ("auth_info", "AuthInfo")
OTHERS_BLOCKS: Final = ("tp_auth_info", "TPAuthInfo")
TIMES: Final = frozenset({"iat", "exp", "auth_time"})

GENERATIONS: Final = {
    "legacy": "The request goes through the browser, and the access token is a bearer token.",
    "intermediate": "The request is pushed, tokens are bound to a key, and there is an entity-info resource.",
    "current": "The request is pushed, and tokens are bound to a key.",
    "fapi2": "The FAPI 2.0 Security Profile, as stock libraries implement it.",
}
"""a description of each generation of the interface"""

ADVICE: Final = {
    "access_denied": "The person pressed Cancel, refused consent, or has no entity that may use this service.",
    "login_required": "The request had prompt=none, and nobody is signed in at the provider in this browser.",
    "interaction_required": "The request had prompt=none, and the provider had to show a page.",
    "consent_required": "The request had prompt=none, and the provider had to ask for consent.",
    "invalid_request_uri": "The pushed request was completed already or is older than 60 seconds.",
    "invalid_request": "A parameter is missing, repeated, malformed or has an unsupported value.",
    "invalid_client": "The client is unknown or its assertion was refused: key, audience, lifetime or jti.",
    "invalid_grant": "The code is unknown, already used, older than 60 seconds, or belongs to another client.",
    "invalid_scope": "A scope is unknown, or this client is not registered for it.",
    "invalid_dpop_proof": "The proof is stale, was already used, or is for another method or address.",
    "invalid_token": "The access token has expired, was revoked, or is bound to another key.",
    "temporarily_unavailable": "The provider is busy or under maintenance; try again in a moment.",
    "server_error": "Something went wrong at the provider; its log has the reference.",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim: its path, its value in words, its meaning."""

    name: str
    value: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A role, as a table row."""

    role: str
    sub_entity: str
    start: str
    end: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles at one service, possibly for a client entity.

    Those of a third party have one.
    """

    service: str
    client_entity: str
    rows: tuple[RoleRow, ...]


@dataclass(frozen=True, slots=True)
class Parties:
    """The person and the entity of a sign-in: names, else identifiers."""

    person: str
    entity: str


def parties(claims: Mapping[str, Any]) -> Parties:
    """The two parties of an ID token of any generation (D2, R-12.2)."""
    if "entityInfo" in claims:
        person, entity = claims["userInfo"], claims["entityInfo"]
        return Parties(person["CPUID_FullName"] or claims["sub"], entity["CPNonUEN_Name"] or entity["CPEntID"])
    person, entity = parties_of(claims)
    return Parties(
        person.get("sub_attributes", {}).get("name") or person["sub"],
        entity.get("sub_attributes", {}).get("entity_name") or entity["sub"],
    )


def facts(claims: Mapping[str, Any]) -> list[Fact]:
    """Claims as flat facts, nested ones by their path.

    Blocks with tables of their own are left out.
    """
    plain = {name: value for name, value in claims.items() if name not in OWN_BLOCKS + OTHERS_BLOCKS}
    return [Fact(path, _words(path, value), _meaning(path)) for path, value in _flat(plain, "")]


def role_tables(claims: Mapping[str, Any]) -> list[RoleTable]:
    """The services of `auth_info`, or `AuthInfo`."""
    return [
        RoleTable(service["CPESrvcID"], "", _rows(service["Auth_Result_Set"], "CPEntID_SUB"))
        for service in _services(claims, OWN_BLOCKS)
    ]


def third_party_tables(claims: Mapping[str, Any]) -> list[RoleTable]:
    """The client entities of `tp_auth_info`, or `TPAuthInfo`."""
    return [
        RoleTable(
            service["CPESrvcID"],
            f"{chain['CP_Clnt_ID']} ({chain['CP_ClntEnt_TYPE']})",
            _rows(chain["Auth_Result_Set"], "CP_ClntEnt_SUB"),
        )
        for service in _services(claims, OTHERS_BLOCKS)
        for chain in service["Auth_Set"]["TP_Auth"]
    ]


def by_subject(checks: Iterable[Check]) -> dict[str, list[Check]]:
    """Checks by the part of their name before the colon."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        subject = check.name.partition(":")[0]
        groups.setdefault(subject[0].upper() + subject[1:], []).append(check)
    return groups


def pretty(value: object) -> str:
    """JSON for reading.

    A text that is JSON is laid out, any other stays as it is.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_of(exchange: Exchange) -> str:
    """The path of an exchange's URL."""
    return "/" + exchange.url.split("/", 3)[-1]


def advice(error: str) -> str:
    """Advice on an error code; empty for an unknown one."""
    return ADVICE.get(error, "")


def _services(claims: Mapping[str, Any], names: tuple[str, ...]) -> list[Mapping[str, Any]]:
    return [service for name in names if name in claims for service in claims[name]["Result_Set"]["ESrvc_Result"]]


def _rows(result_set: Mapping[str, Any], sub_entity: str) -> tuple[RoleRow, ...]:
    return tuple(
        RoleRow(
            row["CPRole"] or "any role",
            row[sub_entity],
            row["StartDate"],
            "no end" if row["EndDate"] == "9999-12-31" else row["EndDate"],
            tuple((parameter["name"], parameter["value"]) for parameter in row["Parameter"]),
        )
        for row in result_set["Row"]
    )


def _flat(claims: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in claims.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _words(path: str, value: Any) -> str:
    if path in TIMES and isinstance(value, int):
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC ({value})"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return (value or "(blank)") if isinstance(value, str) else json.dumps(value)


def _meaning(path: str) -> str:
    return MEANINGS.get(path) or MEANINGS.get(path.partition(".")[0], "") if "sub_attributes" not in path else ""
