"""`corpid user import`: many people of one entity."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.directory import read_file
from corpid.cli.running import run
from corpid.engines import new_user_id, open_registry
from corpid.flows.directory import import_people
from corpid.rules.directory.nodes import SHOWN, locate_problem

if TYPE_CHECKING:
    from corpid.flows.directory.import_people import ImportResult

_REPORT_EVERY: Final = 1000
"""people"""


def import_all(
    file: Annotated[
        Path, typer.Argument(help="A table (CSV) whose first line names its columns; - reads standard input.")
    ],
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="The entity that they act for.")],
    invite: Annotated[
        bool | None,
        typer.Option(
            "--invite/--no-invite", help="Make members who accept an invitation, with or without an e-mail to each."
        ),
    ] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Add the people of a table, who act for one entity.

    The columns are user_name, name, email, language, identity_number, identity_country and account_type; the first two
    are needed. The same table again adds what is missing, and nothing else.

    With --invite or --no-invite no accounts are made: each person becomes a member of the entity by accepting an
    invitation. The columns are then user_name, external_id, name, given_name, family_name and email.
    """
    content, name = read_file(file)
    imported = run(_import(content, name, entity, invite=invite, dry_run=dry_run))
    if json:
        output.as_json(imported)
        return
    for remark in imported.remarks[:SHOWN]:
        output.warn(locate_problem(name, remark))
    if len(imported.remarks) > SHOWN:
        output.warn(f"and {len(imported.remarks) - SHOWN:,} more remarks: --json lists them")
    if not imported.added and not imported.memberships:
        output.say(f"Nothing to change: all of the {imported.people:,} people are there and act for {entity}.")
        return
    if invite is not None:
        counts = f"{imported.memberships:,} invited, of {imported.people:,} people in the table"
        without = f"; {len(imported.remarks):,} without an e-mail address" if len(imported.remarks) else ""
        output.say(f"{'Would be' if dry_run else 'Done'}: {counts}{without}.")
        return
    counts = f"{imported.added:,} people and {imported.memberships:,} memberships added, of {imported.people:,} people"
    output.say(f"{'Would be' if dry_run else 'Done'}: {counts} in the table.")


def _report(what: str, done: int, total: int) -> None:
    if total > _REPORT_EVERY and (done % _REPORT_EVERY == 0 or done == total):
        output.line(f"{what.capitalize()}: {done:,} of {total:,} people", error=True)


async def _import(content: bytes, name: str, entity: str, *, invite: bool | None, dry_run: bool) -> ImportResult:
    async with open_registry(settings.load()) as opened:
        if invite is not None:
            return await import_people.import_members(
                opened.registry,
                content,
                file=name,
                entity_id=entity,
                send=invite,
                actor=opened.actor,
                now=opened.clock(),
                new_id=new_user_id,
                report=_report,
                dry_run=dry_run,
            )
        return await import_people.import_people(
            opened.registry,
            opened.passwords,
            content,
            file=name,
            entity_id=entity,
            actor=opened.actor,
            new_user_id=new_user_id,
            report=_report,
            dry_run=dry_run,
        )
