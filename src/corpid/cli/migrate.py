"""`corpid migrate`: migrate the database, or show the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import engines, settings
from corpid.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.stores.sql.schema import Plan, Planned

_HEADINGS: Final = ("Migration", "Phase", "What it does", "What it locks", "About how long")
_MINUTE: Final = 60
_CONTRACT: Final = "contract"
_SERVED: Final = "Servers of the version before may go on meanwhile."
_GONE: Final = "No server of the version before may run any more."


def migrate(
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be done; change nothing.")] = False,
    contract: Annotated[
        bool,
        typer.Option("--contract", help="Also take away what only the version before needs: when none runs any more."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --plan: print it as JSON.")] = False,
) -> None:
    """Bring the database's schema up to this version.

    The default database does that by itself at start.

    Servers of the version before may go on meanwhile. Ctrl-C stops after the present step or batch; the next
    `corpid migrate` goes on from there.
    """
    if json and not plan:
        output.fail("--json is for a plan, and changes nothing: write `corpid migrate --plan --json`.")
    if plan:
        _show(output.run(_planned(contract=contract)), contract=contract, json=json)
        return
    name = output.run(_migrate(contract=contract))
    output.say(f"The database {name} has the schema of this version.")
    left = output.run(_planned(contract=False)).later
    if left:
        output.say(
            f"{len(left)} more can wait ({', '.join(step.revision for step in left)}): run `corpid migrate --contract` when "
            "no server of the version before runs any more."
        )


async def _migrate(*, contract: bool) -> str:
    return await engines.migrate(settings.load(), contract=contract, report=output.say)


async def _planned(*, contract: bool) -> Plan:
    plan = await engines.planned(settings.load())
    return replace(plan, now=(*plan.now, *plan.later), later=()) if contract else plan


def _show(plan: Plan, *, contract: bool, json: bool) -> None:
    if json:
        output.as_json(plan)
        return
    if not plan.now and not plan.later:
        output.say(f"The database {plan.database} needs no migration.")
        return
    if plan.now:
        _steps(f"corpid migrate{' --contract' if contract else ''}: {plan.database}", plan.now)
        _tell_who_may_serve(plan)
    if plan.later:
        _steps("corpid migrate --contract: when no server of the version before runs any more", plan.later)
    if any(step.rows for step in (*plan.now, *plan.later)):
        output.say("Durations are estimates from rates measured elsewhere; a fill tells its own as it goes on.")
    output.say("Nothing was changed.")


def _tell_who_may_serve(plan: Plan) -> None:
    """Print which servers may go on; none serves an empty database."""
    if plan.schema is not None:
        output.say(_GONE if any(step.phase == _CONTRACT for step in plan.now) else _SERVED)


def _steps(title: str, steps: Sequence[Planned]) -> None:
    rows = [(step.revision, step.phase, step.title, step.locks, _duration(step)) for step in steps]
    output.table(title, _HEADINGS, rows)


def _duration(step: Planned) -> str:
    if step.rows is None or step.seconds is None:
        return "as long as reading the table" if step.concurrently else "a moment"
    minutes = step.seconds // _MINUTE
    length = f"{minutes} minutes" if minutes > 1 else f"{step.seconds} seconds"
    return f"{step.rows:,} rows, {length}"
