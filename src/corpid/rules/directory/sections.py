"""The sections and keys of a directory file, as data.

The same table for people is in docs/directory.md. Members of an API client are read by the same keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules.directory import values
from corpid.rules.directory.names import user_name
from corpid.rules.directory.nodes import Items, Node, Pairs, Scalar, quote_value
from corpid.rules.directory.records import AdministratorLevel, Approvals, GrantState, OperatorLevel
from corpid.rules.directory.values import InvalidValue, Reader, text_of
from corpid.rules.oauth.api_client import API_CLIENT_MEMBERS
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


class SectionKey(msgspec.Struct, frozen=True, kw_only=True):
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
    keys: dict[str, SectionKey]
    identity: tuple[str, ...]
    identifier: Reader | None = None
    """how the key of an entry is read; None for a list of rows"""
    former: dict[str, str] = msgspec.field(default_factory=dict)
    """former name of a key, which is still read → its name"""


def client_key(declared: ClientMember) -> SectionKey:
    """The key of a client's member. Source: docs/directory.md"""
    member = declared.member
    read = _FORMS[declared.form](declared)
    return SectionKey(
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
    "service": SectionKey(member="service_id", read=SERVICE_ID, needed=True),
    "role": SectionKey(member="role", read=ROLE),
    "sub_entity": SectionKey(member="sub_entity", read=SUB_ENTITY),
    "ref": SectionKey(member="ref", read=values.line_of_text(32)),
    "start_date": SectionKey(member="start_date", read=values.day),
    "end_date": SectionKey(member="end_date", read=values.day),
    "parameters": SectionKey(member="parameters", read=values.row_parameters),
}
_USER: Final = SectionKey(member="user_id", read=login, needed=True)

SECTIONS: Final[dict[str, Section]] = {
    "entities": Section(
        kind="entity",
        identity=("entity_id",),
        identifier=ENTITY_ID,
        keys={
            "type": SectionKey(member="type", read=ENTITY_TYPE, needed=True),
            "registration_number": SectionKey(member="registration_number", read=values.registered_number(50)),
            "country": SectionKey(member="country", read=values.country, needed=True),
            "name": SectionKey(member="name", read=values.name(200), needed=True),
            "status": SectionKey(member="status", read=ENTITY_STATUS),
            "enabled": SectionKey(member="enabled", read=values.yes_or_no),
            "approvals": SectionKey(member="approvals", read=values.one_of(*get_args(Approvals))),
        },
    ),
    "users": Section(
        kind="user",
        identity=("user_name",),
        identifier=login,
        keys={
            "id": SectionKey(member="user_id", read=values.stable_id),
            "name": SectionKey(member="name", read=values.name(200), needed=True),
            "email": SectionKey(member="email", read=values.email),
            "language": SectionKey(member="language", read=values.language),
            "identity_number": SectionKey(member="identity_number", read=values.registered_number(32)),
            "identity_country": SectionKey(member="identity_country", read=_country_or_empty),
            "account_type": SectionKey(member="account_type", read=values.one_of("standard", "foreign")),
            "enabled": SectionKey(member="enabled", read=values.yes_or_no),
            "password": SectionKey(member="password", read=values.password),
            "password_hash": SectionKey(member="password_hash", read=values.password_hash),
            "totp_secret": SectionKey(member="totp_secret", read=values.totp_secret),
            "memberships": SectionKey(member="memberships", read=memberships),
            TEST: SectionKey(member=TEST, read=values.yes_or_no),
        },
    ),
    "services": Section(
        kind="service",
        identity=("service_id",),
        identifier=SERVICE_ID,
        keys={
            "name": SectionKey(member="name", read=values.name(100), needed=True),
            "description": SectionKey(member="description", read=values.DESCRIPTION),
            "roles": SectionKey(member="roles", read=values.texts(values.name(values.ROLE_CHARACTERS))),
            "role_descriptions": SectionKey(member="role_descriptions", read=values.role_descriptions),
            "parameters": SectionKey(member="parameters", read=values.parameter_definitions),
            "third_parties": SectionKey(member="third_parties", read=values.yes_or_no),
            "sub_entity": SectionKey(member="sub_entity", read=values.one_of("none", "optional", "mandatory")),
            "entity_types": SectionKey(member="entity_types", read=values.texts(ENTITY_TYPE, least=1)),
            "entity_statuses": SectionKey(member="entity_statuses", read=values.texts(ENTITY_STATUS, least=1)),
            "enabled": SectionKey(member="enabled", read=values.yes_or_no),
            "approval_required": SectionKey(member="approval_required", read=values.yes_or_no),
        },
    ),
    "administrators": Section(
        kind="administrator",
        identity=("user_id", "entity_id"),
        keys={
            "user": _USER,
            "entity": SectionKey(member="entity_id", read=ENTITY_ID, needed=True),
            "level": SectionKey(member="level", read=ADMINISTRATOR_LEVEL, needed=True),
            "services": SectionKey(member="services", read=administered_services),
        },
    ),
    "operators": Section(
        kind="operator",
        identity=("user_id",),
        keys={"user": _USER, "level": SectionKey(member="level", read=OPERATOR_LEVEL, needed=True)},
    ),
    "assignments": Section(
        kind="assignment",
        identity=("user_id", "entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={"user": _USER, "entity": SectionKey(member="entity_id", read=ENTITY_ID, needed=True), **_ROW},
    ),
    "third_party.grants": Section(
        kind="grant",
        identity=("client_entity_id", "entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={
            "client_entity": SectionKey(member="client_entity_id", read=ENTITY_ID, needed=True),
            "third_party": SectionKey(member="entity_id", read=ENTITY_ID, needed=True),
            **_ROW,
            "state": SectionKey(member="state", read=values.one_of(*get_args(GrantState))),
        },
    ),
    "third_party.assignments": Section(
        kind="third-party row",
        identity=("user_id", "entity_id", "client_entity_id", "service_id", "role", "sub_entity", "ref"),
        keys={
            "user": _USER,
            "third_party": SectionKey(member="entity_id", read=ENTITY_ID, needed=True),
            "client_entity": SectionKey(member="client_entity_id", read=ENTITY_ID, needed=True),
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


_API_CLIENT_KEYS: Final = {each.name: client_key(each) for each in API_CLIENT_MEMBERS.values()}


class MembersRefused(Exception):
    """Members that no client of the API can have.

    `reasons` has a sentence for each.
    """

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def read_api_client_members(client_id: str, members: Mapping[str, object]) -> dict[str, object]:
    """The members of a record, from texts and lists of texts.

    None stands for a member that is not given. Raises MembersRefused with every fault. Source: D59, docs/directory.md
    """
    found: dict[str, object] = {}
    reasons = []
    try:
        CLIENT_ID(_api_member_node(client_id))
    except InvalidValue as error:
        reasons.append(error.reason)
    for name, given in members.items():
        key = _API_CLIENT_KEYS.get(name)
        if given is None:
            continue
        if key is None:
            reasons.append(
                f"{name}: a client of the API does not have this; its members are {', '.join(_API_CLIENT_KEYS)} and its entity"
            )
            continue
        try:
            found[name] = key.value(_api_member_node(given))
        except InvalidValue as error:
            reasons.append(f"{name}: {error.reason}")
    if reasons:
        raise MembersRefused(reasons)
    return found


def _api_member_node(given: object) -> Node:
    if isinstance(given, list | tuple):
        return Items(0, tuple(map(_api_member_node, given)))
    return Scalar(0, str(given), plain=False)
