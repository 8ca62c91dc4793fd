"""People of one entity from a table: added, or invited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows.directory.apply import prepare_document
from corpid.flows.directory.finding import find_entity
from corpid.flows.directory.member_changes import plan_invitation
from corpid.flows.directory.members import AmbiguousName, find_member, other_address
from corpid.flows.directory.write import (
    IdentifierConflict,
    authorise_changes,
    check_changes,
    cut_parts,
    guard_records,
    write_parts,
)
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.differences import OTHER_PERSON
from corpid.rules.directory.invitations import UNREACHABLE, is_unreachable
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.records import Change, MemberDetails, User
from corpid.rules.directory.sources import means_another
from corpid.rules.directory.tables import parse_members, parse_people

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.document import DirectoryDocument
    from corpid.stores.sql.registry import Registry
    from corpid.texts import Phrase

    Report: TypeAlias = Callable[[Literal["checked", "imported"], int, int], None]
    """the result for a number of people, of a total"""

PEOPLE_AT_ONCE: Final = 100
"""people of one transaction: themselves and their memberships"""


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """People and memberships that were added, or would be."""

    people: int
    """in the table"""
    added: int
    memberships: int
    remarks: tuple[FileProblem, ...]
    written: bool


async def import_people(
    registry: Registry,
    passwords: Passwords,
    content: bytes,
    *,
    file: str,
    entity_id: str,
    actor: Actor,
    new_user_id: Callable[[], str],
    report: Report,
    dry_run: bool = False,
) -> ImportResult:
    """Add the people of a table (CSV) and their memberships.

    Who is there already gets the membership and is not changed otherwise, which is remarked on. Everything is checked
    before the first change; then a hundred people are one transaction, so an interrupted import is finished by the same
    table again. `file` names it in errors, `new_user_id` gives a UUID. Raises DirectoryError with every problem,
    write.Refused if there is no such entity, access.Forbidden; Conflict and StoreUnavailable, after which the
    transactions before stay. Source: D51, docs/directory.md
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    document = parse_people(content, file, entity_id=entity_id)
    total = len(document.entries_of("user"))
    parts: list[list[Change]] = []
    problems: list[FileProblem] = []
    remarks: list[FileProblem] = []
    for number, part in enumerate(_parts(document), start=1):
        try:
            prepared = await prepare_document(registry, passwords, part, new_user_id=new_user_id)
        except DirectoryError as error:
            problems += error.problems
            continue
        problems += await _find_others(registry, part)
        remarks += [*prepared.warnings, *_others(part, prepared.changes)]
        parts.append([change for change in prepared.changes if change.verb == "add"])
        report("checked", min(number * PEOPLE_AT_ONCE, total), total)
    if problems:
        raise DirectoryError(file, problems)
    if not dry_run:
        async for number, _ in write_parts(registry, actor, parts, planned=True, batch=new_user_id()):
            report("imported", min(number * PEOPLE_AT_ONCE, total), total)
    kinds = [change.kind for part in parts for change in part]
    return ImportResult(
        people=total,
        added=kinds.count("user"),
        memberships=kinds.count("membership"),
        remarks=tuple(sorted(remarks)),
        written=bool(kinds) and not dry_run,
    )


async def import_members(
    registry: Registry,
    content: bytes,
    *,
    file: str,
    entity_id: str,
    send: bool,
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
    report: Report,
    dry_run: bool = False,
) -> ImportResult:
    """Invite the people of a table (CSV) to an entity.

    A user name that a member has already is skipped, so an interrupted import is finished by the same table again.
    Everything is checked before the first change; then a hundred invitations are one transaction. E-mails are sent
    later, if `send`. For operators' commands, whose invitations are not counted. Raises DirectoryError with every
    problem, write.Refused if there is no such entity, access.Forbidden; Conflict and StoreUnavailable, after which
    the transactions before stay. Source: D60, D61, docs/directory.md
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    rows = parse_members(content, file)
    changes: list[Change] = []
    problems: list[FileProblem] = []
    unreachable: list[FileProblem] = []
    for number, (line, details) in enumerate(rows, start=1):
        change = plan_invitation(details, entity_id, now=now, new_id=new_id, send=send)
        try:
            await check_changes(registry, actor, [change])
        except IdentifierConflict as taken:
            if taken.member != "user_name":
                problems.append(FileProblem(line, str(taken)))
            elif reason := await _find_other(registry, entity_id, details):
                problems.append(FileProblem(line, reason))
            continue
        changes.append(change)
        if is_unreachable(change.after):
            unreachable.append(FileProblem(line, f"{details.user_name}: {UNREACHABLE}"))
        if number % PEOPLE_AT_ONCE == 0 or number == len(rows):
            report("checked", number, len(rows))
            await asyncio.sleep(0)
    if problems:
        raise DirectoryError(file, problems)
    if dry_run:
        await authorise_changes(registry, actor, changes)
    else:
        parts = cut_parts(changes, PEOPLE_AT_ONCE)
        async for number, _ in write_parts(registry, actor, parts, planned=True, seen=guard_records, batch=new_id()):
            report("imported", min(number * PEOPLE_AT_ONCE, len(changes)), len(changes))
    return ImportResult(
        people=len(rows), added=0, memberships=len(changes), remarks=tuple(unreachable),
        written=bool(changes) and not dry_run,
    )  # fmt: skip


def _parts(document: DirectoryDocument) -> Iterator[DirectoryDocument]:
    """The document of each hundred people."""
    users, memberships = ([*document.entries_of(kind).items()] for kind in ("user", "membership"))
    for start in range(0, len(users), PEOPLE_AT_ONCE):
        end = start + PEOPLE_AT_ONCE
        yield msgspec.structs.replace(
            document, entries={"user": dict(users[start:end]), "membership": dict(memberships[start:end])}
        )


async def _find_others(registry: Registry, document: DirectoryDocument) -> list[FileProblem]:
    """Rows whose user name is the account of somebody else (D68)."""
    entries = document.entries_of("user")
    named = {key: await registry.directory.user_by_name(key[0]) for key in entries}
    found = await registry.directory.sourced(User, [user.key for user in named.values() if user is not None])
    return [
        FileProblem(entries[key].line, f"{key[0]}: {OTHER_PERSON}")
        for key, user in named.items()
        if user is not None and user.key in found and means_another(entries[key], user, found[user.key].sources)
    ]


async def _find_other(registry: Registry, entity_id: str, details: MemberDetails) -> Phrase | str:
    """The reason why a row is not about the member it names.

    Empty if it is. Source: D68
    """
    try:
        found = await find_member(registry, entity_id, details.user_name)
    except AmbiguousName as several:
        return str(several)
    return other_address(found) if found is not None and not found.has_address(details.email) else ""


def _others(document: DirectoryDocument, changes: tuple[Change, ...]) -> Iterator[FileProblem]:
    """Remarks on people who are there already and otherwise."""
    for change in changes:
        if change.kind == "user" and change.verb == "change" and change.after is not None:
            name = str(getattr(change.after, "user_name", ""))
            names = change.after.__struct_fields__
            differing = [each for each in names if getattr(change.before, each) != getattr(change.after, each)]
            line = document.entries_of("user")[(name,)].line
            yield FileProblem(line, f"{name} is there already, with another {' and '.join(differing)}, which stays")
