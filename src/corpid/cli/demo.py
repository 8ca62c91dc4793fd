"""`corpid demo`: a complete provider and a relying party on this machine, in one command."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corpid.directory.problems import DirectoryError
from corpid.engines import StartError
from corpid.sandbox import check as checking
from corpid.sandbox import demo_directory
from corpid.sandbox.demo import LOG, running
from corpid.sandbox.demo_directory import DemoError
from corpid.sandbox.free_ports import FIRST_PORT
from corpid.sandbox.interfaces import CURRENT, INTERFACES
from corpid.settings import SettingsError
from corpid.web.server import ListenError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from corpid.sandbox.demo import Demo
    from corpid.sandbox.inspection import Outcome
    from corpid.sandbox.interfaces import Interface

    Start = Callable[[Path], AbstractAsyncContextManager[Demo]]


def demo(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Sign in without a person, verify everything, and end.")
    ] = False,
    generation: Annotated[
        str, typer.Option(help=f"Generation of the interface: {', '.join(INTERFACES)}.")
    ] = CURRENT.name,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print one JSON object.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: delete what an earlier demo left.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Where the demo keeps its data.")] = None,
    port: Annotated[int, typer.Option(help="The first port to try.", min=1, max=65000)] = FIRST_PORT,
    theme: Annotated[Path | None, typer.Option(help="Directory with the theme to look at (docs/theming.md).")] = None,
) -> None:
    """Run a provider and a demo relying party on this machine, with example data. Ctrl-C stops both."""
    console = Console(stderr=as_json)
    if generation not in INTERFACES:
        raise typer.BadParameter(f"choose from {', '.join(INTERFACES)}", param_hint="--generation")
    spoken = INTERFACES[generation]
    try:
        if check:
            code = _check(console, spoken, data_dir, as_json=as_json)
        else:
            code = _run(
                console, data_dir, partial(running, first_port=port, interface=spoken, theme=theme), fresh=fresh
            )
    except (DemoError, StartError, SettingsError, DirectoryError, ListenError) as error:
        Console(stderr=True).print(f"[bold red]The demo cannot start:[/] {escape(str(error))}", soft_wrap=True)
        if as_json:
            print(json.dumps({"ok": False, "problem": str(error), "scenarios": []}))
        code = 1
    raise typer.Exit(code)


def _run(console: Console, data_dir: Path | None, start: Start, *, fresh: bool) -> int:
    with demo_directory.held(data_dir or demo_directory.default(), fresh=fresh) as path:
        asyncio.run(_until_stopped(console, path, start))
    return 0


async def _until_stopped(console: Console, path: Path, start: Start) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with start(path) as demo:
        _welcome(console, demo)
        await stopped.wait()
        console.print("Stopping.")


def _welcome(console: Console, demo: Demo) -> None:
    now = time.time()
    table = Table(title="Sign in as", title_justify="left", title_style="bold")
    for heading in ("Person", "User name", "Password", "Code now", "Entities"):
        table.add_column(heading, no_wrap=heading != "Person")
    for person in demo.registration.persons:
        row = (person.name, person.user_name, person.password, person.code(now), str(len(person.entities)))
        table.add_row(*map(escape, row))
    console.print()
    console.print("[bold]CorpID demo[/]")
    console.print(f"Open       [bold link={demo.relying_party_url}]{demo.relying_party_url}[/]")
    console.print(f"Mail       {demo.relying_party_url}/mail (what the provider sends is caught there)")
    console.print(f"Provider   {demo.issuer} (generation {demo.registration.interface.name})")
    console.print(f"Data       {escape(str(demo.data_directory))} (log: {LOG})", soft_wrap=True)
    console.print()
    console.print(table)
    console.print("Codes change every 30 seconds and work once; the page above lists those of the moment.")
    console.print("Stop with Ctrl-C.")
    console.file.flush()


def _check(console: Console, interface: Interface, data_dir: Path | None, *, as_json: bool) -> int:
    with ExitStack() as stack:
        wanted = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpid-demo-")))
        path = stack.enter_context(demo_directory.held(wanted, fresh=False))
        report, outcomes = asyncio.run(_checked(path, interface))
        if not report["ok"]:
            Console(stderr=True).print((path / LOG).read_text(), markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(report))
    else:
        _summary(console, f"{report['issuer']}, generation {interface.name}", outcomes)
    return 0 if report["ok"] else 1


async def _checked(path: Path, interface: Interface) -> tuple[dict[str, object], list[Outcome]]:
    async with running(path, first_port=0, interface=interface) as demo:
        outcomes = await checking.run(demo)
        return checking.report(demo, outcomes), outcomes


def _summary(console: Console, what: str, outcomes: list[Outcome]) -> None:
    table = Table(title=f"Checked {what}", title_justify="left", title_style="bold")
    for heading in ("Scenario", "Person", "Entity", "Checks", "Result"):
        table.add_column(heading)
    for outcome in outcomes:
        held = sum(check.passed for check in outcome.checks.checks)
        count = f"{held} of {len(outcome.checks.checks)}"
        result = f"[red]{escape(outcome.problem)}[/]" if outcome.problem else "[green]all hold[/]"
        table.add_row(escape(outcome.scenario), escape(outcome.person), escape(outcome.entity), count, result)
    console.print(table)
