"""The sections and keys of a directory file, as data.

The same table for people is in docs/directory.md. Members of an API client are read by the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules import readers
from corpid.rules.directory import values
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.fields import Field, documented_fields, fields_of, key_fields
from corpid.rules.oauth.api_client import API_CLIENT_MEMBERS
from corpid.rules.oauth.records import Client
from corpid.rules.readers import InvalidValue, Items, Node, Pairs, Reader, Scalar, quote_value

Kind: TypeAlias = Literal[
    "service", "entity", "user", "credentials", "membership", "administrator", "operator",
    "assignment", "grant", "third-party row", "client",
]  # fmt: skip

NOUNS: Final[Mapping[Kind, str]] = {
    "service": "a service", "entity": "an entity", "user": "a person", "credentials": "a person's factors",
    "membership": "a membership", "administrator": "an administrator", "operator": "an operator",
    "assignment": "a role", "grant": "a third-party grant", "third-party row": "a third-party assignment",
    "client": "a client",
}  # fmt: skip
"""kind → its name for people, with an article"""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""every kind of record, in the order of writing: referenced records come first"""
LEVELS: Final[frozenset[Kind]] = frozenset({"administrator", "operator"})
"""kinds that are pruned only if that is asked for on its own (D65)"""

OWN_FACTORS: Final = frozenset({"password", "password_hash", "totp_secret"})
TEST: Final = "test"
"""marks a person of the demo's file whom the demo signs in without their factors; it is stored nowhere (D66)"""


def memberships(node: Node) -> dict[str, tuple[int, dict[str, object]]]:
    """Entity identifier → line and content of the membership.

    Raises InvalidValue. Source: R-21
    """
    if not isinstance(node, Items):
        raise InvalidValue(node.line, "a list of entity identifiers is expected here: [209900042K]")
    found: dict[str, tuple[int, dict[str, object]]] = {}
    for item in node.nodes:
        entity_id, fields = _membership(item)
        if entity_id in found:
            raise InvalidValue(item.line, f"{quote_value(entity_id)} occurs twice in the list")
        found[entity_id] = (item.line, fields)
    return found


def _membership(node: Node) -> tuple[str, dict[str, object]]:
    if isinstance(node, Scalar):
        return str(values.ENTITY_ID(node)), {}
    nodes = {key.text: value for key, value in node.entries} if isinstance(node, Pairs) else {}
    if "entity" not in nodes or not nodes.keys() <= {"entity", *LISTED_MEMBERSHIP}:
        raise InvalidValue(
            node.line,
            "write a membership as the entity's identifier or as {entity: …, enabled: false}; it can have "
            f"{', '.join(LISTED_MEMBERSHIP)}",
        )
    fields = {}
    for name, key in LISTED_MEMBERSHIP.items():
        if name in nodes:
            try:
                fields[key.name] = key.value(nodes[name])
            except InvalidValue as error:
                raise InvalidValue(error.line, f"{name}: {error.reason}") from None
    return str(values.ENTITY_ID(nodes["entity"])), fields


LISTED_MEMBERSHIP: Final = {name: key for name, key in documented_fields(Membership).items() if not key.identifies}
"""the keys of a membership below its user, beside the entity"""


class DocumentSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the file.

    `identity` names a row's members of identity. A keyed section has one, outside its keys.
    """

    kind: Kind
    keys: dict[str, Field]
    identity: tuple[str, ...]
    identifier: Reader | None = None
    """how the key of an entry is read; None for a list of rows"""
    former: dict[str, str] = msgspec.field(default_factory=dict)
    """former name of a key, which is still read → its name"""


def _mapping(kind: Kind, record: type[msgspec.Struct], name: str, **further: Field) -> DocumentSection:
    """A section of entries with a key of their own, `name`."""
    declared = fields_of(record)[name]
    keys = {key: each for key, each in documented_fields(record).items() if each.name != name}
    former = {each.former: key for key, each in keys.items() if each.former}
    return DocumentSection(
        kind=kind, identity=(name,), identifier=declared.read, former=former, keys={**keys, **further}
    )


def _rows(kind: Kind, record: type[msgspec.Struct]) -> DocumentSection:
    return DocumentSection(kind=kind, identity=key_fields(record), keys=documented_fields(record))


SECTIONS: Final[dict[str, DocumentSection]] = {
    "entities": _mapping("entity", Entity, "entity_id"),
    "services": _mapping("service", Service, "service_id"),
    "users": _mapping(
        "user", User, "user_name",
        password=Field(
            name="password", read=values.password, default_doc="none",
            doc="12 to 128 characters; only in developer mode or with `--development`",
        ),
        password_hash=Field(
            name="password_hash", read=values.password_hash, default_doc="none",
            doc="argon2id hash, `$argon2id$v=19$…`, of at least 19 MiB and 2 passes or an "
            "[equivalent](decisions/0031-the-cost-of-a-password.md), such as Keycloak's",
        ),
        totp_secret=Field(
            name="totp_secret", read=values.totp_secret, default_doc="none", doc="base32, at least 160 bits"
        ),
        memberships=Field(
            name="memberships", read=memberships, default_doc="none",
            doc="list of entity identifiers, or of mappings with `entity` and, optionally, "
            f"{', '.join(f'`{name}`' for name in LISTED_MEMBERSHIP)}: `{{entity: …, enabled: false}}`",
        ),
        test=Field(
            name=TEST, read=readers.yes_or_no, default_doc="`false`",
            doc="`true`: the demo lets this person [sign in at once](relying-parties.md#sign-in-at-once-and-from-ci); "
            "only in the demo's own file, or with `--development`; not stored",
        ),
    ),
    "administrators": _rows("administrator", Administrator),
    "operators": _rows("operator", Operator),
    "assignments": _rows("assignment", Assignment),
    "third_party.grants": _rows("grant", ThirdPartyGrant),
    "third_party.assignments": _rows("third-party row", ThirdPartyAssignment),
    "clients": _mapping("client", Client, "client_id"),
}  # fmt: skip

SECTION_OF: Final[Mapping[str, str]] = {section.kind: name for name, section in SECTIONS.items()}
"""kind → the section that has its records"""


def read_api_client_members(client_id: str, members: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """The members of a record, and a sentence for every fault.

    They are read from texts and lists of texts; None stands for a member that is not given. Source: D59, docs/directory.md
    """
    found: dict[str, object] = {}
    reasons = []
    try:
        readers.CLIENT_ID(_api_member_node(client_id))
    except InvalidValue as error:
        reasons.append(error.reason)
    for name, given in members.items():
        key = API_CLIENT_MEMBERS.get(name)
        if given is None:
            continue
        if key is None:
            reasons.append(
                f"{name}: a client of the API does not have this; its members are {', '.join(API_CLIENT_MEMBERS)} and its entity"
            )
            continue
        try:
            found[name] = key.value(_api_member_node(given))
        except InvalidValue as error:
            reasons.append(f"{name}: {error.reason}")
    return found, reasons


def _api_member_node(given: object) -> Node:
    if isinstance(given, list | tuple):
        return Items(0, tuple(map(_api_member_node, given)))
    return Scalar(0, str(given), plain=False)
