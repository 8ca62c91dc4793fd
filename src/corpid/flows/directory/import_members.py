"""Many invitations of one entity at once, from a table."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.import_people import PEOPLE_AT_ONCE, ImportResult, write_parts
from corpid.flows.directory.provisioning import IdentifierConflict, considered_invitation, invitation
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.invitations import UNREACHABLE, is_unreachable
from corpid.rules.directory.members_file import parse_members
from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.records import Membership

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.flows.directory.import_people import Report
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.plan import Change
    from corpid.stores.sql.registry import Registry


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
    await entity_named(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    rows = parse_members(content, file)
    changes: list[Change] = []
    problems: list[Problem] = []
    unreachable: list[Problem] = []
    for number, (line, details) in enumerate(rows, start=1):
        change = invitation(details, entity_id, now=now, new_id=new_id, enabled=True, send=send)
        try:
            await considered_invitation(registry, change, actor=actor)
        except IdentifierConflict as taken:
            if taken.member != "user_name":
                problems.append(Problem(line, str(taken)))
            continue
        changes.append(change)
        if is_unreachable(change.becomes):
            unreachable.append(Problem(line, f"{details.user_name}: {UNREACHABLE}"))
        if number % PEOPLE_AT_ONCE == 0 or number == len(rows):
            report("checked", number, len(rows))
            await asyncio.sleep(0)
    if problems:
        raise DirectoryError(file, problems)
    if not dry_run:
        parts = [changes[start : start + PEOPLE_AT_ONCE] for start in range(0, len(changes), PEOPLE_AT_ONCE)]
        await write_parts(registry, actor, parts, report, len(changes), seen=_absent)
    return ImportResult(
        people=len(rows), added=0, memberships=len(changes), remarks=tuple(unreachable),
        written=bool(changes) and not dry_run,
    )  # fmt: skip


def _absent(change: Change) -> list[Precondition]:
    """The guard of an invitation: its membership does not exist yet."""
    return [Precondition(Membership, change.key, None)]
