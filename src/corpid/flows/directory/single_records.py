"""Single records, changed under the rules of a directory file.

A record is named as a person types it. One function for each verb, whatever the kind of record. Commands and the console
use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.actors import list_entities_without_owner
from corpid.flows.directory.apply import (
    ADDS,
    CHANGES,
    REMOVES,
    SETS,
    ApplyResult,
    carry_out,
    prepare_addition,
    prepare_entry,
)
from corpid.flows.directory.clients import find_any_client, update_api_client
from corpid.flows.directory.grants import GrantFilter, find_grant
from corpid.flows.directory.lists import (
    RowFilter,
    find_entity,
    find_service,
    find_user,
    pick_one,
    read_shown_key,
    refuse_invited,
)
from corpid.flows.directory.objects import ENDS_FIRST
from corpid.flows.directory.person_names import name_subjects
from corpid.flows.directory.write import Refused, plan_endings
from corpid.rules.directory.access import Actor, Object, ObjectKind, authorise
from corpid.rules.directory.document import SECTION_OF, SECTIONS, Kind
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.objects import RESOURCES, Resource
from corpid.rules.directory.plan import Plan
from corpid.rules.directory.records import KIND_OF, Assignment, Change, Entity, Operator, Service, User
from corpid.rules.directory.roles import in_words
from corpid.rules.directory.values import NO_END
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.client_registration import PLAIN_RULES, RegistrationRules
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.outbound.passwords import Passwords
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.registry import Registry

OPERATOR: Final = Resource(
    kind="operator", path="operators", title="Operator", record=Operator,
    keys=SECTIONS["operators"].keys,
)  # fmt: skip
BY_KIND: Final[Mapping[ObjectKind, Resource]] = {each.kind: each for each in (*RESOURCES, OPERATOR)}
_MOST_ROLES: Final = 1000
"""of one person for one entity at one service that are looked through"""
_COMMANDS: Final[Mapping[Kind, str]] = {"assignment": "role", "grant": "third-party"}
"""nouns of commands that are other words than the kind"""
_FINDERS: Final[Mapping[str, Callable[..., Awaitable[Any]]]] = {
    "user": find_user, "user_name": find_user, "entity": find_entity, "entity_id": find_entity,
    "service": find_service, "service_id": find_service, "client_id": find_any_client,
}  # fmt: skip
_ABSENT: Final[Mapping[Kind, str]] = {
    "membership": "{user} does not act for {entity}: `corpid entity list --user {user}` shows for whom",
    "administrator": (
        "{user} does not administer {entity}: `corpid administrator list --entity {entity}` shows who does"
    ),
    "operator": "{user} does not operate this deployment: `corpid operator list` shows who does",
}
_SWITCHED: Final[Mapping[str, Callable[[str], str]]] = {
    "API client": lambda name: f"API client {name}",
    "client": lambda name: phrase("client {name}", name=name),
    "entity": lambda name: phrase("entity {name}", name=name),
    "user": lambda name: phrase("user {name}", name=name),
}
"""kinds of which a switch that changes nothing is refused"""


_ENDING: Final[Mapping[Kind, str]] = {
    "entity": "memberships, levels, roles, grants, tokens of provisioning, clients of the API",
    "service": "roles and grants at it",
    "user": "factors, memberships, levels, roles",
}
"""of a removed record, in one statement of the store"""


_ENDS_FIRST: Final[Mapping[Kind, Callable[[Registry, Any], Awaitable[list[Change]]]]] = {
    **ENDS_FIRST, "membership": lambda registry, held: plan_endings(registry, Change(held, None))
}  # fmt: skip
"""kind of a record that is removed → the changes that come before"""
_ACTED_WITH: Final = frozenset({"user", "membership", "administrator"})
"""kinds of records without which an owner cannot act"""


class NamedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record with its identity as a directory file writes it."""

    record: Any
    names: dict[str, str]
    user_names: dict[str, str] = {}
    """user identifier → user name of its person"""


async def find_record(registry: Registry, actor: Actor, kind: Kind, names: Mapping[str, str | None]) -> NamedRecord:
    """The record of these names, which are members of its identity.

    Of a row None stands for any. Raises Refused if there is none, or more than one, access.Forbidden, StoreUnavailable.
    Source: D51, R-14
    """
    resource = BY_KIND[kind]
    if kind == "grant":  # each of its parties may be one that the actor may not read
        grant = await find_grant(registry, GrantFilter(**names), actor)  # type: ignore[arg-type]  # its three parties
        return NamedRecord(record=grant, names=dict(zip(resource.identity, grant.key, strict=True)))
    found, named = await _find_references(registry, actor, resource, names)
    user = found.get("user") or found.get("user_name")
    user_names = {user.user_id: user.user_name} if user is not None else {}
    if not resource.names_user:
        [record] = found.values()
    elif kind == "assignment":  # of which there may be several
        record = await _find_role(registry, found["user"], named, names)
        named |= {name: getattr(record, name) for name in resource.identity if name not in named}
    else:
        key = (each.key[0] for each in found.values())
        record = await registry.directory.find(resource.record, *key)
        if record is None:
            raise Refused(_ABSENT[kind].format(**named))
    return NamedRecord(record=record, names=named, user_names=await name_subjects(registry, [record], user_names))


async def add_record(
    registry: Registry,
    passwords: Passwords,
    kind: Kind,
    names: Mapping[str, str | None],
    members: Mapping[str, object],
    *,
    actor: Actor,
    new_user_id: Callable[[], str] = str,
    dry_run: bool = False,
) -> ApplyResult:
    """Add a record.

    One that rests on others may be there, and changes then. `members` as in a directory file, None for those not given;
    `new_user_id` gives a UUID for a person. Raises Refused with every fault, access.Forbidden, Conflict,
    StoreUnavailable. Source: R-14, D51, D53, docs/directory.md
    """
    resource = BY_KIND[kind]
    if not resource.names_user:
        authorise(actor, "read", Object(kind=kind))
        [key] = names.values()
        _, prepared = await prepare_addition(
            registry, passwords, resource.record, str(key), members, new_user_id=new_user_id
        )
        return await carry_out(registry, prepared, actor=actor, verbs=ADDS, dry_run=dry_run)
    _, named = await _find_references(registry, actor, resource, names)
    await _check_services(registry, resource, members, actor)
    named |= {name: text for name, text in names.items() if name not in named and text is not None}
    prepared = await prepare_entry(registry, passwords, *_to_entry(resource, named, members))
    return await carry_out(registry, prepared, actor=actor, verbs=SETS, dry_run=dry_run)


async def update_record(
    registry: Registry,
    passwords: Passwords,
    kind: Kind,
    names: Mapping[str, str | None],
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: RegistrationRules = PLAIN_RULES,
    was: Entity | Client | Service | None = None,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of a record; a running server follows within 5 s.

    `members` as in a directory file, None for those that keep their value; `rules` are those of clients; `was` is the
    record that this was decided on. Raises Refused with every fault, if there is no such record or no member is named,
    access.Forbidden, Conflict, StoreUnavailable. Source: Spec 1, D27, D50, docs/directory.md
    """
    found = await find_record(registry, actor, kind, names)
    if all(value is None for value in members.values()):
        command = _COMMANDS.get(kind, kind)
        raise Refused(f"nothing was named to change: `corpid {command} update --help` lists what can be")
    if isinstance(found.record, RegisteredApiClient):
        return await update_api_client(registry, found.record, members, actor=actor, rules=rules, dry_run=dry_run)
    resource = BY_KIND[kind]
    if resource.names_user:  # a row has to name what a new one needs
        needed = (key for key in resource.keys.values() if key.needed and not key.identifies)
        stated = {name: value for name, value in members.items() if value is not None}
        members = {key.key: getattr(found.record, key.name) for key in needed} | stated
    await _check_services(registry, resource, members, actor)
    entry = _to_entry(resource, found.names, members)
    prepared = await prepare_entry(registry, passwords, *entry, rules=rules)
    return await carry_out(registry, prepared, actor=actor, verbs=CHANGES, dry_run=dry_run, was=was)


async def set_enabled(
    registry: Registry,
    kind: Kind,
    names: Mapping[str, str | None],
    *,
    enabled: bool,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Enable or disable a record, and whatever rests on it.

    Remarks on entities that lose their last owner. Raises Refused if there is no such record, or if a client, an entity
    or a person is so already, access.Forbidden, Conflict, StoreUnavailable. Source: D50, D60
    """
    found = await find_record(registry, actor, kind, names)
    record = found.record
    refuse_invited(record)
    if record.enabled is enabled:
        if kind not in _SWITCHED:
            return ApplyResult(differences=(), warnings=(), written=False)
        [name] = found.names.values()
        thing = _SWITCHED[KIND_OF[type(record)]](name)
        raise Refused(
            phrase("the {thing} is already enabled", thing=thing)
            if enabled
            else phrase("the {thing} is already disabled", thing=thing)
        )
    change = Change(record, msgspec.structs.replace(record, enabled=enabled))
    return await _carry_out(registry, found, [change], actor=actor, dry_run=dry_run)


async def remove_record(
    registry: Registry,
    kind: Kind,
    names: Mapping[str, str | None],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Remove a record, with everything that rests on it.

    The level and roles that end with a membership are changes of their own. Remarks on entities that lose their last
    owner. Raises Refused if there is none or more than one, access.Forbidden, Conflict, StoreUnavailable. Source: D50,
    D53, D54, R-14
    """
    found = await find_record(registry, actor, kind, names)
    first = await _ENDS_FIRST[kind](registry, found.record) if kind in _ENDS_FIRST else []
    return await _carry_out(registry, found, [*first, Change(found.record, None)], actor=actor, dry_run=dry_run)


async def _carry_out(
    registry: Registry, found: NamedRecord, changes: list[Change], *, actor: Actor, dry_run: bool
) -> ApplyResult:
    record, becomes = found.record, changes[-1].after
    alone: list[str] = []
    if changes[-1].kind in _ACTED_WITH and not getattr(becomes, "enabled", False):
        alone = await list_entities_without_owner(registry, record.user_id)
    own = getattr(record, "entity_id", "")
    remarks = [f"the entity {each} will have no owner who can act" for each in alone if own in {"", each}]
    if becomes is None and changes[-1].kind in _ENDING:
        remarks.append(f"what rests on it ends, too: {_ENDING[changes[-1].kind]}")
    warnings = tuple(FileProblem(0, remark) for remark in remarks)
    plan = Plan(changes=tuple(changes), warnings=warnings, user_names=found.user_names)
    return await carry_out(registry, plan, actor=actor, verbs=CHANGES | REMOVES, dry_run=dry_run)


async def _find_references(
    registry: Registry, actor: Actor, resource: Resource, names: Mapping[str, str | None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The records that a record is named by, and their stored names."""
    found = {
        name: await _FINDERS[name](registry, names[name], actor=actor)
        for name in resource.identity or ("user_name",)
        if name in _FINDERS
    }
    return found, {name: read_shown_key(each) for name, each in found.items()}


async def _check_services(registry: Registry, resource: Resource, members: Mapping[str, object], actor: Actor) -> None:
    """Refuse unknown services of an administrator, with similar names."""
    named = members.get("services") if resource.names_user else None
    for service_id in named if isinstance(named, list) else ():
        await find_service(registry, service_id, actor=actor)


async def _find_role(
    registry: Registry, user: User, named: Mapping[str, str], names: Mapping[str, str | None]
) -> Assignment:
    where = {"user_id": user.user_id, "entity_id": named["entity"], "service_id": named["service"]}
    held = await registry.directory.page(Assignment, where, limit=_MOST_ROLES)
    wanted = RowFilter(**{name: names.get(name) for name in RowFilter.__struct_fields__})
    such = "such " if held else ""
    return pick_one(
        [row for row in held if wanted.fits(row)], among=held, several="several roles are meant",
        none=f"{user.user_name} has no {such}role for {named['entity']} at {named['service']}",
        note=lambda row: "" if row.end_date == NO_END else f"until {in_words(row.end_date)}",
    )  # fmt: skip


def _to_entry(
    resource: Resource, names: Mapping[str, str], members: Mapping[str, object]
) -> tuple[str, str | None, dict[str, object]]:
    """Section, key and members of a record's entry in a directory file."""
    if resource.kind not in SECTION_OF:  # a membership stands below its person
        stated = {name: value for name, value in members.items() if value is not None}
        return "users", names["user"], {"memberships": [{"entity": names["entity"], **stated}]}
    section = SECTION_OF[resource.kind]
    if SECTIONS[section].identifier is not None:
        [key] = names.values()
        return section, key, dict(members)
    return section, None, {**names, **members}
