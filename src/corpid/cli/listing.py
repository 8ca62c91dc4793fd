"""The options and the output of lists."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid.cli import output
from corpid.rules.directory.lists import MOST_COUNTED
from corpid.rules.directory.values import NO_BEGINNING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.cli.output import Lines
    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import ListPage, T
    from corpid.rules.directory.records import Entity, ThirdPartyGrant, User
    from corpid.rules.directory.roles import RoleRow
    from corpid.settings import Settings

DEFAULT: Final = 50
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, but change nothing.")]
Limit = Annotated[int, typer.Option(help="Show at most this many.", min=1, max=1000)]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the whole list as CSV, in the columns of the admin API.")]
Total = Annotated[bool, typer.Option("--total", help=f"Say how many there are, up to {MOST_COUNTED:,}.")]
After = Annotated[
    str, typer.Option(metavar="PLACE", help="Continue after this place; the last line of a list shows it.")
]


def show(
    title: str,
    headings: Sequence[str],
    page: ListPage[T],
    row: Callable[[T], Sequence[Lines]],
    command: str,
    *,
    limit: int = DEFAULT,
    after: str = "after",
    total: bool = False,
    **given: str,
) -> None:
    """Print a page as a table.

    Its last line is the command that shows the next one. `given` are the options that narrow the list, `after` is the
    one that leads on.
    """
    if not page.found:
        output.say(f"{title}: none.")
        return
    output.table(title, headings, [row(each) for each in page.found])
    if page.total and (total or page.after or page.before):
        output.say(f"{'' if page.total.exact else 'More than '}{page.total.count:,} in all.")
    if page.after:
        options = {**given, "limit": "" if limit == DEFAULT else str(limit), after: page.after}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value]
        output.say(f"There are more: {shlex.join(['corpid', *command.split(), *words])}")


def today(stores: Stores) -> str:
    """Return the day in the deployment's time zone (D23)."""
    return datetime.fromtimestamp(stores.clock(), stores.settings.timezone).date().isoformat()


def state(*, enabled: bool) -> str:
    """Return the state of a record in a word."""
    return "active" if enabled else "disabled"


def state_of(user: User) -> str:
    """Return the state of a person in a few words (D60)."""
    return "invited" if user.placeholder else state(enabled=user.enabled)


def entity(shown: Entity) -> tuple[str, str]:
    """Return the cell of an entity: identifier and name."""
    return shown.entity_id, shown.name


def parts(row: RoleRow | ThirdPartyGrant, *, any_role: str = "(none)") -> tuple[str, ...]:
    """Return the cell of a role, one part a line."""
    further = (row.sub_entity, f"ref {row.ref}" if row.ref else "")
    values = (f"{each.name} = {each.value}" for each in row.parameters)
    return (row.role or any_role, *filter(None, further), *values)


def moment(at: int, chosen: Settings) -> str:
    """Return a moment in the deployment's zone, to the minute."""
    return datetime.fromtimestamp(at, chosen.timezone).strftime("%Y-%m-%d %H:%M")


def first_day(day: str) -> str:
    """Return the first day of a row, if it has one."""
    return "" if day == NO_BEGINNING else day


def report(applied: ApplyResult, *, dry_run: bool, json: bool, done: str = "") -> None:
    """Print the changes of a command as `corpid apply` prints them.

    If `done` is given, a change that was made is reported as "The … is `done`.".
    """
    for warning in applied.warnings:
        output.warn(warning.reason)
    if json:
        output.as_json({"changes": applied.differences, "written": applied.written})
    elif done and applied.written:
        output.say(f"The {applied.differences[0].subject} is {done}.")
    else:
        output.differences(applied.differences, done=not dry_run)
