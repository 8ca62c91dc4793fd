"""The example directory, and the userinfo expected for its people.

It is read here a second time, apart from the provider's own reader and its own law, so that
`corpid demo --check` compares what the provider answers with what the file says.

Secrets of the people of a demo that other machines reach.

Those of the example directory are published, so that nobody could tell who on the network signs in with them.
"""

from __future__ import annotations

import json
import secrets
from base64 import b32encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from corpid.rules.directory.document import TEST
from corpid.stores import private_files
from corpid_dev.demo import example_files
from corpid_dev.relying_party.claims import result_sets
from corpid_dev.relying_party.people import Person

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date
    from pathlib import Path

NAME: Final = "directory.yaml"
FIRST_DAY, NO_END = "0001-01-01", "9999-12-31"
MISSING: Final = "ERROR_MISSING_VALUE"

Role = tuple[str, str, str, str, str, str, tuple[tuple[str, str], ...]]
"""client entity (empty for the entity itself), service, role, sub-entity, start, end, parameters"""


def content() -> bytes:
    """The file, as text in UTF-8."""
    return example_files.content(NAME)


@dataclass(frozen=True, slots=True)
class ExampleDirectory:
    """A directory file as plain mappings and lists; every scalar is text."""

    sections: Mapping[str, Any]

    @classmethod
    def read(cls, text: bytes) -> ExampleDirectory:
        """Parse a directory file that `corpid apply` accepts."""
        return cls(yaml.load(text, yaml.BaseLoader))  # noqa: S506 - makes text, lists and mappings only

    def persons(self) -> list[Person]:
        """Everybody who can sign in, in the file's order."""
        return [
            Person(
                user_name=user_name,
                password=user["password"],
                totp_secret=user["totp_secret"],
                name=user.get("name", ""),
                entities=tuple(self._memberships(user)),
                about="Acts for other entities, too, as a third party" if self._is_third_party(user_name) else "",
            )
            for user_name, user in self.sections["users"].items()
            if _on(user) and "password" in user and "totp_secret" in user
        ]

    def test_people(self) -> list[Person]:
        """The people whom the file marks with `test: true` (D66)."""
        return [person for person in self.persons() if self.sections["users"][person.user_name].get(TEST) == "true"]

    def services(self) -> list[str]:
        """The identifiers of all entity services."""
        return list(self.sections["services"])

    def id_token_attributes(self, person: Person, entity_id: str) -> dict[str, dict[str, str]]:
        """The attributes of an ID token with every scope, by party.

        Source: D2, R-12.4
        """
        user, entity = self.sections["users"][person.user_name], self.sections["entities"][entity_id]
        of_user = {
            "account_type": user.get("account_type", "standard"),
            "identity_number": user.get("identity_number", ""),
            "identity_coi": user.get("identity_country", ""),
            "name": user.get("name", ""),
        }
        of_entity = {
            "entity_type": entity["type"],
            "entity_reg_number": entity.get("registration_number", ""),
            "entity_coi": entity.get("country", ""),
            "entity_name": entity.get("name", ""),
            "entity_uen_status": entity.get("status", "") if entity["type"] == "UEN" else "",
        }
        return {
            "user": {name: value for name, value in of_user.items() if value},
            "entity": {name: value for name, value in of_entity.items() if value},
        }

    def packed_parties(self, person: Person, entity_id: str) -> dict[str, dict[str, str]]:
        """userInfo, entityInfo and the unpacked `sub` of an ID token.

        With packed `sub`, that is. Source: R-12.2
        """
        user, entity = self.sections["users"][person.user_name], self.sections["entities"][entity_id]
        foreign, number = entity["type"] != "UEN", user.get("identity_number", "")
        status = {"Deregistered": "De-Registered"}.get(entity.get("status", ""), entity.get("status", ""))
        held = [
            "Sub-Admin" if row["level"] == "sub_administrator" else "Admin"
            for row in self.sections.get("administrators", ())
            if (row["user"], row["entity"]) == (person.user_name, entity_id)
        ]
        return {
            "sub": {"s": number, "uuid": user["id"], "u": entity_id + number, "c": user.get("identity_country", "")},
            "userInfo": {
                "CPAccType": held[0] if held else "User",
                "CPUID_FullName": user.get("name", ""),
                "ISSPHOLDER": "YES" if user.get("account_type", "standard") == "standard" else "NO",
            },
            "entityInfo": {
                "CPEntID": entity_id,
                "CPEnt_TYPE": entity["type"],
                "CPEnt_Status": "" if entity["type"] == "NON-UEN" else status,
                "CPNonUEN_Country": entity.get("country", "") if foreign else "",
                "CPNonUEN_RegNo": entity.get("registration_number", "") if foreign else "",
                "CPNonUEN_Name": entity.get("name", "") if foreign else "",
            },
        }

    def usable(self, person: Person) -> list[str]:
        """The entities of a person, for a client with every service.

        Source: R-20
        """
        return [entity_id for entity_id in person.entities if self._accepted(self.sections["entities"][entity_id])]

    def roles(self, person: Person, entity_id: str, today: date) -> list[Role]:
        """The expected roles of `auth_info`, in the order of these tuples.

        Source: Spec 2.6, D23
        """
        rows = (row for row in self._rows("assignments") if row["user"] == person.user_name)
        return sorted(
            self._role("", row, row.get("start_date", FIRST_DAY), row.get("end_date", NO_END))
            for row in rows
            if row["entity"] == entity_id and self._open(row["service"]) and _holds(row, today)
        )

    def third_party_roles(self, person: Person, entity_id: str, today: date) -> list[Role]:
        """The expected rows of `tp_auth_info`, each within its client entity's grant.

        Source: Spec 2.6, D23
        """
        rows = [
            row
            for row in self._third_party("assignments")
            if row["user"] == person.user_name and row["third_party"] == entity_id
        ]
        spans = [(row, span) for row in rows if (span := self._span(row, today)) is not None]
        return sorted(self._role(row["client_entity"], row, *span) for row, span in spans)

    def _is_third_party(self, user_name: str) -> bool:
        return any(row["user"] == user_name for row in self._third_party("assignments"))

    def _memberships(self, user: Mapping[str, Any]) -> list[str]:
        listed = [{"entity": one} if isinstance(one, str) else one for one in user.get("memberships", [])]
        return [one["entity"] for one in listed if _on(one)]

    def _accepted(self, entity: Mapping[str, Any]) -> bool:
        return _on(entity) and any(
            _on(service)
            and entity["type"] in service.get("entity_types", ["UEN", "NON-UEN", "GSTN"])
            and entity.get("status", "") in service.get("entity_statuses", ["Registered", ""])
            for service in self.sections["services"].values()
        )

    def _open(self, service_id: str) -> bool:
        return _on(self.sections["services"][service_id])

    def _span(self, row: Mapping[str, Any], today: date) -> tuple[str, str] | None:
        service = self.sections["services"][row["service"]]
        client_entity = self.sections["entities"][row["client_entity"]]
        if service.get("third_parties") != "true" or not _on(service) or not _on(client_entity):
            return None
        same = ("client_entity", "third_party", "service")
        spans = [
            (
                min(grant.get("end_date", NO_END), row.get("end_date", NO_END)),
                max(grant.get("start_date", FIRST_DAY), row.get("start_date", FIRST_DAY)),
            )
            for grant in self._third_party("grants")
            if all(grant[name] == row[name] for name in same)
            and all(grant.get(name, "") in ("", row.get(name, "")) for name in ("role", "sub_entity"))
            and _inside(grant.get("parameters", {}), row.get("parameters", {}))
        ]
        current = [span for span in spans if span[1] <= today.isoformat() <= span[0]]
        return (max(current)[1], max(current)[0]) if current else None

    def _role(self, client_entity: str, row: Mapping[str, Any], start: str, end: str) -> Role:
        service = self.sections["services"][row["service"]]
        given = row.get("sub_entity", "")
        sub_entity = {"optional": given, "mandatory": given or MISSING}.get(service.get("sub_entity", "none"), "")
        parameters = tuple(_parameters(service.get("parameters", {}), row.get("parameters", {})))
        return (client_entity, row["service"], row.get("role", ""), sub_entity, start, end, parameters)

    def _rows(self, section: str) -> list[dict[str, Any]]:
        return list(self.sections.get(section, []))

    def _third_party(self, part: str) -> list[dict[str, Any]]:
        return list(self.sections.get("third_party", {}).get(part, []))


def roles_in(block: Mapping[str, Any] | None) -> list[Role]:
    """The roles in a block of userinfo; none without it.

    In the form of `roles` and `third_party_roles`.
    """
    return sorted(
        (each.client_entity, each.service, row["CPRole"], row[each.sub_entity], row["StartDate"], row["EndDate"],
         tuple((one["name"], one["value"]) for one in row["Parameter"]))
        for each in (result_sets(block) if block else ())
        for row in each.rows
    )  # fmt: skip


def _parameters(definitions: Mapping[str, Any], given: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, definition in definitions.items():
        unset = MISSING if definition.get("mandatory") == "true" else ""
        for value in _each(given.get(name, "")):
            yield name, value or unset


def _inside(granted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(name in given and set(_each(given[name])) <= set(_each(granted[name])) for name in granted)


def _each(values: str | list[str]) -> list[str]:
    return [values] if isinstance(values, str) else values


def _on(record: Mapping[str, Any]) -> bool:
    return bool(record.get("enabled", "true") == "true")


def _holds(row: Mapping[str, Any], today: date) -> bool:
    return bool(row.get("start_date", FIRST_DAY) <= today.isoformat() <= row.get("end_date", NO_END))


_NAMES: Final = ("password", "totp_secret")
_TOTP_BYTES: Final = 20
_GROUPS: Final = 4


def with_own_secrets(directory: ExampleDirectory, path: Path) -> ExampleDirectory:
    """The directory with secrets of this demo alone.

    They are kept in a file (0600), so that they stay the same at the next start.
    """
    kept = _read(path)
    users: dict[str, Any] = {}
    for user_name, user in directory.sections["users"].items():
        own = own_secrets(kept.get(user_name, {}))
        users[user_name] = {**user, **{name: own[name] for name in _NAMES if name in user}}
    own_of = {user_name: {name: user[name] for name in _NAMES if name in user} for user_name, user in users.items()}
    private_files.replace(path, json.dumps(own_of, indent=1).encode())
    return ExampleDirectory({**directory.sections, "users": users})


def _read(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    try:
        kept: dict[str, dict[str, str]] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} does not hold the people's secrets; delete it or use --fresh") from error
    return kept


def own_secrets(known: Mapping[str, str]) -> dict[str, str]:
    """A person's password and TOTP secret, new where none is known."""
    return {
        "password": known.get("password") or _password(),
        "totp_secret": known.get("totp_secret") or b32encode(secrets.token_bytes(_TOTP_BYTES)).decode(),
    }


def _password() -> str:
    """Sixteen letters and digits, in groups for typing."""
    text = b32encode(secrets.token_bytes(10)).decode().lower()
    size = len(text) // _GROUPS
    return "-".join(text[start : start + size] for start in range(0, len(text), size))
