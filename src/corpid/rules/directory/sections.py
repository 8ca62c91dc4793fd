"""The sections and keys of a directory file, as data.

The same table for people is in docs/directory.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules.directory import values
from corpid.rules.directory.names import user_name
from corpid.rules.directory.nodes import Items, Node, Pairs, Scalar, quote_value
from corpid.rules.directory.records import AdministratorLevel, Approvals, GrantState, OperatorLevel
from corpid.rules.directory.values import InvalidValue, Reader, text_of
from corpid.rules.oauth.records import CLIENT_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.rules.oauth.records import ClientMember, MemberForm

Kind: TypeAlias = Literal[
    "service", "entity", "user", "credentials", "membership", "administrator", "operator",
    "assignment", "grant", "third-party row", "client",
]  # fmt: skip

KINDS: Final[tuple[Kind, ...]] = (
    "service", "entity", "user", "credentials", "membership", "administrator", "operator",
    "assignment", "grant", "third-party row", "client",
)  # fmt: skip
"""every kind of record, in the order of writing: referenced records come first"""
LEVELS: Final[frozenset[Kind]] = frozenset({"administrator", "operator"})
"""kinds that are pruned only if that is asked for on its own (D65)"""

ENTITY_ID: Final = values.identifier(10)
SERVICE_ID: Final = values.identifier(25)
CLIENT_ID: Final = values.identifier(64)
ROLE: Final = values.line_of_text(values.ROLE_CHARACTERS)
SUB_ENTITY: Final = values.line_of_text(32)
ENTITY_TYPE: Final = values.one_of("UEN", "NON-UEN", "GSTN")
ENTITY_STATUS: Final = values.one_of("Registered", "Deregistered", "Withdrawn", empty=True)
URI: Final = values.identifier(2048, r"[!-~]", "printable ASCII")
ADMINISTRATOR_LEVEL: Final = values.one_of(*get_args(AdministratorLevel))
OPERATOR_LEVEL: Final = values.one_of(*get_args(OperatorLevel))
ALL: Final = "all"
NOTHING: Final = "none"
OWN_FACTORS: Final = frozenset({"password", "password_hash", "totp_secret"})
TEST: Final = "test"
"""marks a person of the demo's file whom the demo signs in without their factors; it is stored nowhere (D66)"""


def login(node: Node) -> str:
    """A user name in its one form (D51)."""
    try:
        return user_name(text_of(node))
    except ValueError as error:
        raise InvalidValue(node.line, str(error)) from None


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
        return str(ENTITY_ID(node)), {}
    nodes = {key.text: value for key, value in node.entries} if isinstance(node, Pairs) else {}
    if "entity" not in nodes or not nodes.keys() <= {"entity", "enabled"}:
        raise InvalidValue(node.line, "write a membership as the entity's identifier or as {entity: …, enabled: false}")
    fields: dict[str, object] = {"enabled": values.yes_or_no(nodes["enabled"])} if "enabled" in nodes else {}
    return str(ENTITY_ID(nodes["entity"])), fields


def administered_services(node: Node) -> object:
    """The services of a sub-administrator: a list, or the word `all`.

    Raises InvalidValue. Source: D53
    """
    if isinstance(node, Items):
        return values.texts(SERVICE_ID)(node)
    if text_of(node) != ALL:
        raise InvalidValue(
            node.line, f"write a list of services, such as [TAX-FILING], or the word {ALL} for every one"
        )
    return ALL


def _country_or_empty(node: Node) -> object:
    return values.country(node) if text_of(node) else ""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a section: record member, reader, required or not."""

    member: str
    read: Reader
    needed: bool = False
    clearable: bool = False
    """`none` takes the value away, which leaving the key out does not"""

    def value(self, node: Node) -> object:
        """The value for the record, None to remove it.

        Raises InvalidValue. Source: docs/directory.md
        """
        taken_away = self.clearable and isinstance(node, Scalar) and node.text == NOTHING
        return None if taken_away else self.read(node)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the file.

    `identity` names a row's members of identity. A keyed section has one, outside its keys.
    """

    kind: Kind
    keys: dict[str, Key]
    identity: tuple[str, ...]
    identifier: Reader | None = None
    """how the key of an entry is read; None for a list of rows"""
    former: dict[str, str] = msgspec.field(default_factory=dict)
    """former name of a key, which is still read → its name"""


def client_key(declared: ClientMember) -> Key:
    """The key of a client's member. Source: docs/directory.md"""
    member = declared.member
    read = _FORMS[declared.form](declared)
    return Key(
        member=declared.name,
        read=values.texts(read, least=member.least) if declared.listed else read,
        needed=member.needed,
        clearable=member.clearable,
    )


_FORMS: Final[Mapping[MemberForm, Callable[[ClientMember], Reader]]] = {
    "text": lambda each: values.name(each.member.limit),
    "identifier": lambda each: values.identifier(each.member.limit),
    "algorithm": lambda each: values.identifier(each.member.limit, r"[A-Za-z0-9+-]", "letters, digits, + -"),
    "url": lambda _: URI,
    "day": lambda _: values.day,
    "key set": lambda _: values.key_set,
    "word": lambda each: values.one_of(*each.values),
    "flag": lambda _: values.yes_or_no,
    "number": lambda _: values.whole_number,
}
"""form of a client's member → how it is read"""

_ROW: Final = {
    "service": Key(member="service_id", read=SERVICE_ID, needed=True),
    "role": Key(member="role", read=ROLE),
    "sub_entity": Key(member="sub_entity", read=SUB_ENTITY),
    "ref": Key(member="ref", read=values.line_of_text(32)),
    "start_date": Key(member="start_date", read=values.day),
    "end_date": Key(member="end_date", read=values.day),
    "parameters": Key(member="parameters", read=values.row_parameters),
}
_USER: Final = Key(member="user_id", read=login, needed=True)

SECTIONS: Final[dict[str, Section]] = {
    "entities": Section(
        kind="entity",
        identity=("entity_id",),
        identifier=ENTITY_ID,
        keys={
            "type": Key(member="type", read=ENTITY_TYPE, needed=True),
            "registration_number": Key(member="registration_number", read=values.registered_number(50)),
            "country": Key(member="country", read=values.country, needed=True),
            "name": Key(member="name", read=values.name(200), needed=True),
            "status": Key(member="status", read=ENTITY_STATUS),
            "enabled": Key(member="enabled", read=values.yes_or_no),
            "approvals": Key(member="approvals", read=values.one_of(*get_args(Approvals))),
        },
    ),
    "users": Section(
        kind="user",
        identity=("user_name",),
        identifier=login,
        keys={
            "id": Key(member="user_id", read=values.stable_id),
            "name": Key(member="name", read=values.name(200), needed=True),
            "email": Key(member="email", read=values.email),
            "language": Key(member="language", read=values.language),
            "identity_number": Key(member="identity_number", read=values.registered_number(32)),
            "identity_country": Key(member="identity_country", read=_country_or_empty),
            "account_type": Key(member="account_type", read=values.one_of("standard", "foreign")),
            "enabled": Key(member="enabled", read=values.yes_or_no),
            "password": Key(member="password", read=values.password),
            "password_hash": Key(member="password_hash", read=values.password_hash),
            "totp_secret": Key(member="totp_secret", read=values.totp_secret),
            "memberships": Key(member="memberships", read=memberships),
            TEST: Key(member=TEST, read=values.yes_or_no),
        },
    ),
    "services": Section(
        kind="service",
        identity=("service_id",),
        identifier=SERVICE_ID,
        keys={
            "name": Key(member="name", read=values.name(100), needed=True),
            "description": Key(member="description", read=values.DESCRIPTION),
            "roles": Key(member="roles", read=values.texts(values.name(values.ROLE_CHARACTERS))),
            "role_descriptions": Key(member="role_descriptions", read=values.role_descriptions),
            "parameters": Key(member="parameters", read=values.parameter_definitions),
            "third_parties": Key(member="third_parties", read=values.yes_or_no),
            "sub_entity": Key(member="sub_entity", read=values.one_of("none", "optional", "mandatory")),
            "entity_types": Key(member="entity_types", read=values.texts(ENTITY_TYPE, least=1)),
            "entity_statuses": Key(member="entity_statuses", read=values.texts(ENTITY_STATUS, least=1)),
            "enabled": Key(member="enabled", read=values.yes_or_no),
            "approval_required": Key(member="approval_required", read=values.yes_or_no),
        },
    ),
    "administrators": Section(
        kind="administrator",
        identity=("user_id", "entity_id"),
        keys={
            "user": _USER,
            "entity": Key(member="entity_id", read=ENTITY_ID, needed=True),
            "level": Key(member="level", read=ADMINISTRATOR_LEVEL, needed=True),
            "services": Key(member="services", read=administered_services),
        },
    ),
    "operators": Section(
        kind="operator",
        identity=("user_id",),
        keys={"user": _USER, "level": Key(member="level", read=OPERATOR_LEVEL, needed=True)},
    ),
    "assignments": Section(
        kind="assignment",
        identity=("user_id", "entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={"user": _USER, "entity": Key(member="entity_id", read=ENTITY_ID, needed=True), **_ROW},
    ),
    "third_party.grants": Section(
        kind="grant",
        identity=("client_entity_id", "entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={
            "client_entity": Key(member="client_entity_id", read=ENTITY_ID, needed=True),
            "third_party": Key(member="entity_id", read=ENTITY_ID, needed=True),
            **_ROW,
            "state": Key(member="state", read=values.one_of(*get_args(GrantState))),
        },
    ),
    "third_party.assignments": Section(
        kind="third-party row",
        identity=("user_id", "entity_id", "client_entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={
            "user": _USER,
            "third_party": Key(member="entity_id", read=ENTITY_ID, needed=True),
            "client_entity": Key(member="client_entity_id", read=ENTITY_ID, needed=True),
            **_ROW,
        },
    ),
    "clients": Section(
        kind="client",
        identity=("client_id",),
        identifier=CLIENT_ID,
        former={each.member.former: each.name for each in CLIENT_MEMBERS.values() if each.member.former},
        keys={each.name: client_key(each) for each in CLIENT_MEMBERS.values() if each.member.in_file},
    ),
}
