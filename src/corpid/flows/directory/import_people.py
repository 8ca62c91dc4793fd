"""Many people of one entity at once, from a table."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows.directory.apply import prepare
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.write import write
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.people_file import parse_people

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.changes import Precondition
    from corpid.rules.directory.document import Document
    from corpid.rules.directory.plan import Change
    from corpid.stores.sql.registry import Registry

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
    remarks: tuple[Problem, ...]
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
    await entity_named(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    document = parse_people(content, file, entity_id=entity_id)
    total = len(document.entries_of("user"))
    parts: list[list[Change]] = []
    problems: list[Problem] = []
    remarks: list[Problem] = []
    for number, part in enumerate(_parts(document), start=1):
        try:
            prepared = await prepare(registry, passwords, part, new_user_id=new_user_id)
        except DirectoryError as error:
            problems += error.problems
            continue
        remarks += [*prepared.plan.warnings, *_others(part, prepared.plan.changes)]
        parts.append([change for change in prepared.plan.changes if change.verb == "add"])
        report("checked", min(number * PEOPLE_AT_ONCE, total), total)
    if problems:
        raise DirectoryError(file, problems)
    if not dry_run:
        await write_parts(registry, actor, parts, report, total)
    kinds = [change.kind for part in parts for change in part]
    return ImportResult(
        people=total,
        added=kinds.count("user"),
        memberships=kinds.count("membership"),
        remarks=tuple(sorted(remarks)),
        written=bool(kinds) and not dry_run,
    )


async def write_parts(
    registry: Registry,
    actor: Actor,
    parts: Sequence[list[Change]],
    report: Report,
    total: int,
    *,
    seen: Callable[[Change], Iterable[Precondition]] = lambda _: (),
) -> None:
    """Write the changes of each hundred people in one transaction.

    `seen` gives the guards of a change. Raises access.Forbidden, Conflict, StoreUnavailable. Source: docs/directory.md
    """
    for number, changes in enumerate(parts, start=1):
        if changes:
            started = time.monotonic()
            await write(registry, actor, changes, seen=[guard for change in changes for guard in seen(change)])
            # SQLite has no queue for writers: others need a gap between two writes.
            await asyncio.sleep(time.monotonic() - started)
        report("imported", min(number * PEOPLE_AT_ONCE, total), total)


def _parts(document: Document) -> Iterator[Document]:
    """The document of each hundred people."""
    users, memberships = ([*document.entries_of(kind).items()] for kind in ("user", "membership"))
    for start in range(0, len(users), PEOPLE_AT_ONCE):
        end = start + PEOPLE_AT_ONCE
        yield msgspec.structs.replace(
            document, entries={"user": dict(users[start:end]), "membership": dict(memberships[start:end])}
        )


def _others(document: Document, changes: tuple[Change, ...]) -> Iterator[Problem]:
    """Remarks on people who are there already and otherwise."""
    for change in changes:
        if change.kind == "user" and change.verb == "change" and change.becomes is not None:
            name = str(getattr(change.becomes, "user_name", ""))
            names = change.becomes.__struct_fields__
            differing = [each for each in names if getattr(change.was, each) != getattr(change.becomes, each)]
            line = document.entries_of("user")[(name,)].line
            yield Problem(line, f"{name} is there already, with another {' and '.join(differing)}, which stays")
