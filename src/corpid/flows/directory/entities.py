"""Entities, and single records added under the rules of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from corpid.flows.directory.apply import ApplyResult, PlanWithNames, prepare
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.write import MembersRefused, Refused, switch_record, write
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.differences import difference
from corpid.rules.directory.document import one_entry, parse
from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.plan import Change, Plan
from corpid.rules.directory.records import Entity, Service
from corpid.rules.directory.sections import SECTIONS
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from corpid.outbound.passwords import Passwords
    from corpid.rules.audit_actions import AuditAction
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.plan import Verb
    from corpid.rules.directory.sections import Kind
    from corpid.rules.oauth.client_registration import Rules
    from corpid.stores.sql.registry import Registry

R = TypeVar("R", bound=msgspec.Struct)
ADDS: Final[frozenset[Verb]] = frozenset({"add"})
SETS: Final[frozenset[Verb]] = frozenset({"add", "change"})
NOBODY: Final[Mapping[str, str]] = {}

_CHANGED_WITH: Final[Mapping[Kind, str]] = {"client": "corpid client update", "entity": "corpid entity update"}
"""the command that changes one record of a kind"""


class Addition(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """A record to add, with the changes that it brings."""

    record: R
    prepared: PlanWithNames


async def addition(
    registry: Registry,
    passwords: Passwords,
    record: type[R],
    section: str,
    key: str,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str],
    rules: Rules = PLAIN_RULES,
) -> Addition[R]:
    """The changes of adding a record.

    `members` are keys of its section, None for those not given. `rules` are those of clients.

    Raises Refused when it exists already or breaks a rule. Source: docs/directory.md
    """
    kind = SECTIONS[section].kind
    prepared = await prepared_entry(registry, passwords, section, key, members, new_user_id=new_user_id, rules=rules)
    added = [change.becomes for change in prepared.plan.changes if change.kind == kind and change.verb == "add"]
    if not added or not isinstance(added[0], record):
        raise Refused(f"the {kind} {key} exists already: change it with `{_CHANGED_WITH.get(kind, 'corpid apply')}`")
    return Addition(record=added[0], prepared=prepared)


async def prepared_entry(
    registry: Registry,
    passwords: Passwords,
    section: str,
    key: str | None,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str],
    rules: Rules = PLAIN_RULES,
) -> PlanWithNames:
    """The changes that a file with this one entry would make.

    `members` are keys of its section, None for those not given; `key` is None for a row, which has no other identifier.

    Raises Refused with every fault. Source: docs/directory.md
    """
    try:
        document = parse(one_entry(section, key, members), "", typed=True)
        return await prepare(registry, passwords, document, new_user_id=new_user_id, rules=rules)
    except DirectoryError as error:
        raise MembersRefused(tuple(problem.reason for problem in error.problems)) from None


async def add_entity(
    registry: Registry,
    passwords: Passwords,
    entity_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Add an entity.

    `members` as in a directory file. Raises Refused, access.Forbidden, StoreUnavailable. R-12.4
    """
    adding = await addition(registry, passwords, Entity, "entities", entity_id, members, new_user_id=str)
    return await carried_out(registry, adding.prepared, actor=actor, verbs=ADDS, dry_run=dry_run)


async def update_entity(
    registry: Registry,
    passwords: Passwords,
    entity_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    was: Entity | None = None,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of an entity.

    `members` as in a directory file, None for those that keep their value; `was` is the entity that this was decided
    on. Raises Refused with every fault, if there is no such entity or no member is named, access.Forbidden, Conflict,
    StoreUnavailable. Source: R-12.4, docs/directory.md
    """
    await entity_named(registry, entity_id, actor=actor)
    if all(value is None for value in members.values()):
        raise Refused("nothing was named to change: `corpid entity update --help` lists what can be")
    prepared = await prepared_entry(registry, passwords, "entities", entity_id, members, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=frozenset({"change"}), dry_run=dry_run, was=was)


async def carried_out(
    registry: Registry,
    prepared: PlanWithNames,
    *,
    actor: Actor,
    verbs: frozenset[Verb],
    dry_run: bool,
    action: AuditAction | None = None,
    was: Entity | Client | Service | None = None,
) -> ApplyResult:
    """Write the prepared change, unless `dry_run`, and describe it.

    `action` as in `write`; `was` is the record that the change was decided on, otherwise the one that it was prepared
    on. What somebody else writes at the same moment is not overwritten. Raises Refused if a change is none of `verbs`,
    access.Forbidden, Conflict, StoreUnavailable. Source: docs/directory.md
    """
    changes = prepared.plan.changes
    if any(change.verb not in verbs for change in changes):
        raise Refused(phrase("it was removed at the same moment: nothing was changed"))
    if changes and not dry_run:
        await write(registry, actor, changes, action=action, seen=_seen(changes, was))
    return ApplyResult(
        differences=tuple(difference(change, prepared.user_names) for change in changes),
        warnings=prepared.plan.warnings,
        written=bool(changes) and not dry_run,
    )


def _seen(changes: Iterable[Change], was: Entity | Client | Service | None) -> list[Precondition]:
    """The entities, clients and services that the changes were decided on."""
    found = []
    for change in changes:
        record = change.becomes or change.was
        if isinstance(record, Entity | Client | Service):
            decided_on = was if was is not None and type(was) is type(record) else change.was
            found.append(Precondition(type(record), change.key, decided_on))  # type: ignore[arg-type]  # of the same type
    return found


async def switch_entity(
    registry: Registry, entity_id: str, *, enabled: bool, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Enable or disable an entity, and everybody acting for it.

    Raises Refused if it does not exist or nothing would change, access.Forbidden, StoreUnavailable. Source: D50
    """
    found = await entity_named(registry, entity_id, actor=actor)
    becomes = switch_record(found, phrase("entity {name}", name=entity_id), enabled=enabled)
    change = Change(verb="change", kind="entity", key=found.key, was=found, becomes=becomes)
    return await one_change(registry, change, actor=actor, dry_run=dry_run)


async def one_change(
    registry: Registry,
    change: Change,
    *,
    actor: Actor,
    dry_run: bool,
    user_names: Mapping[str, str] = NOBODY,
    remarks: Iterable[str] = (),
) -> ApplyResult:
    """Write one change, unless `dry_run`, and return it in words.

    `user_names` is user identifier → user name, `remarks` go along. Raises access.Forbidden, Conflict,
    StoreUnavailable. Source: docs/directory.md
    """
    plan = Plan(changes=(change,), warnings=tuple(Problem(0, remark) for remark in remarks))
    prepared = PlanWithNames(plan=plan, user_names=dict(user_names))
    return await carried_out(registry, prepared, actor=actor, verbs=frozenset({change.verb}), dry_run=dry_run)
