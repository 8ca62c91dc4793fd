"""`corpid client migration`: who still uses a generation or an exception that ends, and what each has to change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.flows.administration.migration import report
from corpid.protocol.generations import GENERATIONS
from corpid.settings.presets import client_rules

if TYPE_CHECKING:
    from corpid.flows.administration.migration import ClientUse

_HEADINGS: Final = ("Client", "Generation", "Last used (UTC)", "Sign-ins", "Ends on", "Days left")


def migration(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show who still uses legacy, until when they may, and what current would refuse of what they do.

    Clients of other generations are listed whose assertions may name an endpoint as aud. Servers count sign-ins and habits and write them once a second; no request is stored.
    """
    found, served = output.run(_report())
    if json:
        output.as_json(found)
        return
    ending = [each.name for each in GENERATIONS.values() if each.ends]
    for name in ending:
        if name not in served:
            output.warn(f"This deployment does not serve {name}: its generations are {', '.join(served)}.")
    _say_generations(", ".join(ending), [each for each in found if each.successor])
    exceptions = [each for each in found if not each.successor]
    if exceptions:
        output.table("Clients whose assertions may name an endpoint", _HEADINGS, [_row(each) for each in exceptions])
        for use in exceptions:
            _say_what_to_change(use)


def _say_generations(names: str, found: list[ClientUse]) -> None:
    if not found:
        output.say(f"No client may use {names}, and none has used it: it can be switched off.")
        return
    output.table("Clients of a generation that ends", _HEADINGS, [_row(each) for each in found])
    for use in found:
        _say_what_to_change(use)
    if not any(each.uses for each in found):
        output.say(f"None of them has used {names} yet, as far as was counted.")


def _row(use: ClientUse) -> tuple[str | tuple[str, ...], ...]:
    return (
        (use.client_id, use.name),
        use.generation,
        _moment(use.last_at),
        str(use.uses),
        _ends_on(use),
        "" if use.days_left is None else "passed" if use.passed else str(use.days_left),
    )


def _say_what_to_change(use: ClientUse) -> None:
    refused = {one.refused: f"{_often(one.count)}, last {_moment(one.last_at)}" for one in use.habits}
    by_whom = use.successor or f"{use.generation}, without endpoint_audience_until,"
    if refused:
        output.members(f"{use.client_id}: {by_whom} would refuse this", refused)
    if not use.lists_successor:
        output.say(f"{use.client_id}: its record does not name {use.successor}; add it to its generations")


def _ends_on(use: ClientUse) -> str:
    return (use.last_day or "no day set, so refused") if use.allowed else "may not use it any more"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _moment(at: int | None) -> str:
    return "never" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


async def _report() -> tuple[list[ClientUse], tuple[str, ...]]:
    chosen = settings.load()
    async with open_registry(chosen) as stores:
        today = datetime.fromtimestamp(stores.clock(), chosen.timezone).date().isoformat()
        rules = client_rules(chosen)
        found = await report(stores.registry, actor=OPERATOR, generations=GENERATIONS, today=today, rules=rules)
    return found, chosen.generations
