"""Anybody acting for anything: a test person made for one sign-in (D66).

What they are is written with the keys of a directory file, and read by its readers. The same content makes the same
person again, so a request or a link that holds it can be used at any time.
"""

from __future__ import annotations

import uuid
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.apply import apply_document
from corpid.jose.encoding import MalformedToken, base64url, from_base64url, json_object
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import ListedTestPerson
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid_dev.flows.people import FILE, writing

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import DirectoryFile
    from corpid_dev.flows.people import Developer

_REF: Final = "anybody"
"""of the grants that third-party rights need; they allow every role of their service"""
_MOST: Final = 100
"""rows of one person"""

Row = dict[str, Any]


class Anybody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person, the entity that they act for, and their rights.

    Rows are those of a directory file, without `user`, `entity` and `third_party`.
    """

    entity: str
    """identifier of the entity to act for"""
    person: Row = {}
    """keys of `users`; the name is made up if it is missing"""
    entities: dict[str, Row] = {}
    """entities that do not exist yet, by identifier"""
    roles: list[Row] = []
    """rows of `assignments`"""
    third_party: list[Row] = []
    """rows of `[[third_party.assignments]]`, with `client_entity`; what they need is granted"""

    @property
    def content(self) -> bytes:
        """The same bytes for the same content."""
        return msgspec.json.encode(self, order="sorted")

    @property
    def digest(self) -> bytes:
        """The digest of the content, which names the person."""
        return sha256(self.content).digest()

    @property
    def user_name(self) -> str:
        return f"anybody-{self.digest.hex()[:10]}"

    @property
    def name(self) -> str:
        return str(self.person.get("name") or f"Anybody {self.digest.hex()[:4].upper()}")


_SEPARATOR: Final = ";"
_IN_LINES: Final = frozenset({"client_entity", "service", "role", "sub_entity", "parameters"})
"""keys of rows that lines can hold; JSON holds every one"""


def rows_of(text: str, *names: str) -> list[Row]:
    """Read rows from lines of text.

    A line has its `names` first, in this order, then role and sub-entity, and parameters as `Name=Value` anywhere; a
    semicolon separates them. Source: D66
    """
    rows: list[Row] = []
    for line in filter(str.strip, text.splitlines()):
        parts = [part.strip() for part in line.split(_SEPARATOR)]
        plain = [part for part in parts if "=" not in part]
        row: Row = dict(zip((*names, "role", "sub_entity"), plain, strict=False))
        parameters: dict[str, list[str]] = {}
        for name, _, value in (part.partition("=") for part in parts if "=" in part):
            parameters.setdefault(name.strip(), []).append(value.strip())
        rows.append(
            {name: value for name, value in row.items() if value} | ({"parameters": parameters} if parameters else {})
        )
    return rows


def lines_of(rows: list[Row], *names: str) -> str | None:
    """Write rows as lines of text, None if lines cannot hold them. Source: D66"""
    lines = []
    for row in rows:
        parameters = row.get("parameters", {})
        if not row.keys() <= _IN_LINES or not isinstance(parameters, dict):
            return None
        plain = [str(row.get(name, "")) for name in (*names, "role", "sub_entity")]
        named = [
            f"{name}={value}"
            for name, values in parameters.items()
            for value in (values if isinstance(values, list) else [values])
        ]
        while plain and not plain[-1]:
            plain.pop()
        lines.append(f"{_SEPARATOR} ".join([*plain, *named]))
    text = "\n".join(lines)
    return text if rows_of(text, *names) == _plain(rows) else None


def _plain(rows: list[Row]) -> list[Row]:
    """The rows as lines hold them, with lists of texts as parameters."""
    listed = []
    for row in rows:
        found = {name: str(value) for name, value in row.items() if name != "parameters" and value != ""}
        parameters = {
            name: [str(value) for value in (values if isinstance(values, list) else [values])]
            for name, values in row.get("parameters", {}).items()
        }
        listed.append(found | ({"parameters": parameters} if parameters else {}))
    return listed


def encode_person(anybody: Anybody) -> str:
    """Write a person as text for an address. Source: D66"""
    return base64url(anybody.content)


def decode_person(text: str) -> Anybody | None:
    """Read a person from an address, None if it holds none. Source: D66"""
    try:
        return msgspec.convert(json_object(from_base64url(text)), Anybody)
    except (MalformedToken, msgspec.ValidationError):
        return None


async def make(context: RequestContext, developer: Developer, anybody: Anybody) -> str:
    """Write this person to the demo's directory, as a test person.

    Returns the user name. What exists stays as it is. Raises InvalidRequest if the content cannot be applied, or would
    change a record of somebody else. Source: docs/directory.md, D56, D66
    """
    if len(anybody.roles) + len(anybody.third_party) > _MOST:
        raise _unfit(f"anybody has more than {_MOST} rows")
    document = msgspec.json.encode(_document(anybody))
    actor = writing(document)
    try:
        planned = await _applied(context, actor, document, dry_run=True)
        changed = next((each.subject for each in planned.differences if each.sign != "+"), None)
        if changed is not None:
            raise _unfit(f"anybody would change a record that exists: {changed}")
        await _applied(context, actor, document)
    except DirectoryError as error:
        raise _unfit(f"anybody: {error.problems[0].reason}") from None
    context.provider.registry_cache.drop()
    developer.add([ListedTestPerson(user_name=anybody.user_name, name=anybody.name, entities=(anybody.entity,))])
    return anybody.user_name


async def _applied(
    context: RequestContext, actor: DirectoryFile, document: bytes, *, dry_run: bool = False
) -> ApplyResult:
    provider = context.provider
    return await apply_document(
        provider.registry,
        provider.passwords,
        document,
        file=FILE,
        actor=actor,
        new_user_id=lambda: str(uuid.uuid4()),
        dry_run=dry_run,
    )


def _unfit(description: str) -> InvalidRequest:
    return InvalidRequest(Reason.SIMULATION, description)


def _document(anybody: Anybody) -> dict[str, object]:
    """The directory file that makes this person."""
    user_name, entity = anybody.user_name, anybody.entity
    user_id = str(uuid.UUID(bytes=anybody.digest[:16], version=4))
    granted = {(str(row.get("client_entity", "")), str(row.get("service", ""))) for row in anybody.third_party}
    grants = [
        {"client_entity": client_entity, "third_party": entity, "service": service, "ref": _REF}
        for client_entity, service in sorted(granted)
    ]
    person = {**anybody.person, "id": user_id, "name": anybody.name, "memberships": [entity]}
    sections: dict[str, object] = {
        "entities": anybody.entities,
        "users": {user_name: person},
        "assignments": [{**row, "user": user_name, "entity": entity} for row in anybody.roles],
        "third_party": {
            "grants": grants,
            "assignments": [{**row, "user": user_name, "third_party": entity} for row in anybody.third_party],
        },
    }
    if not anybody.entities:
        del sections["entities"]
    return sections
