"""`corpid rp-check`: a relying party's behaviour when something is wrong."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path  # noqa: TC003 - typer reads it when the program runs
from typing import TYPE_CHECKING, Annotated

import typer

from corpid.cli import output
from corpid_dev.cli.stopping import on_stop
from corpid_dev.demo import example_directory
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.developer_api import DEFAULT_URL, NotDone, trusting
from corpid_dev.flows.readiness_runs import ReadinessError
from corpid_dev.readiness import report as renderings
from corpid_dev.readiness.cases import BASELINE, CASES
from corpid_dev.readiness.driver import Options, check
from corpid_dev.readiness.observation import Verdict
from corpid_dev.readiness.visitor import Marker

if TYPE_CHECKING:
    from corpid_dev.readiness.case import Case
    from corpid_dev.readiness.report import Report

_STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.WARNED: "yellow",
    Verdict.NOT_JUDGED: "cyan",
}


def rp_check(
    url: Annotated[str, typer.Argument(help="Where a login begins, such as https://rp.example/login.")] = "",
    *,
    developer: Annotated[
        str, typer.Option(metavar="URL", help="Address of developer mode, as `corpid demo` prints it.")
    ] = DEFAULT_URL,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM file of a certificate authority to trust, too.")
    ] = None,
    success_text: Annotated[
        str, typer.Option(metavar="TEXT", help="Text shown only to a signed-in person. Default: learned.")
    ] = "",
    success_url: Annotated[
        str, typer.Option(metavar="URL", help="Beginning of the address after a sign-in. Default: learned.")
    ] = "",
    login_form: Annotated[
        str, typer.Option(metavar="NAME", help="Form, button or link that begins the login, if URL is a page.")
    ] = "",
    user: Annotated[str, typer.Option(help="Test person of the demo. Default: its first.")] = "",
    entity: Annotated[str, typer.Option(metavar="ID", help="Entity to act for, if the person has several.")] = "",
    only: Annotated[list[str] | None, typer.Option(metavar="CASE", help="Try this case; may be repeated.")] = None,
    skip: Annotated[list[str] | None, typer.Option(metavar="CASE", help="Leave a case out; may be repeated.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as a page.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List the cases, and exit.")] = False,
) -> None:
    """Check how a relying party behaves when something is wrong.

    Signs in there again and again, with a running `corpid demo` as its provider, which makes one mistake each time.
    Exits with 1 if a case failed.
    """
    if show:
        output.table("Cases", ("Case", "What is expected"), [(each.id, each.title) for each in CASES.values()])
        return
    if not url:
        raise typer.BadParameter("give the URL where a login begins", param_hint="URL")
    chosen = _chosen(only or [], skip or [])
    if not user:
        first = ExampleDirectory.read(example_directory.content()).test_people()[0]
        user, entity = first.user_name, entity or first.entities[0]
    try:
        tls = trusting(ca)
    except NotDone as error:
        output.fail(str(error))
    options = Options(
        url=url,
        developer=developer,
        tls=tls,
        user=user,
        entity=entity,
        marker=Marker(url=success_url, text=success_text) if success_url or success_text else None,
        press=login_form,
        cases=chosen,
    )
    try:
        report = asyncio.run(_checked(options))
    except (NotDone, ReadinessError) as error:
        output.fail(str(error))
    except asyncio.CancelledError:
        output.fail("Stopped. The orders of this check are withdrawn.")
    for file, text in ((html, renderings.html), (json, renderings.json), (junit, renderings.junit)):
        if file is not None:
            _write(file, text(report))
    _show(report)
    raise typer.Exit(1 if report.failed else 0)


def _chosen(only: list[str], skip: list[str]) -> list[Case]:
    """The cases to try; the ordinary sign-in is always among them."""
    unknown = sorted({*only, *skip} - CASES.keys())
    if unknown:
        raise typer.BadParameter(f"there is no case {', '.join(unknown)}; see corpid rp-check --list")
    wanted = [case_id for case_id in CASES if (not only or case_id in only) and case_id not in skip]
    return [CASES[case_id] for case_id in dict.fromkeys((BASELINE.id, *wanted))]


async def _checked(options: Options) -> Report:
    """Check, until SIGTERM or Ctrl-C; orders are withdrawn then, too."""
    running = asyncio.ensure_future(check(options, progress=_progress))
    on_stop(running.cancel)
    return await running


def _progress(sentence: str) -> None:
    """Progress, for somebody who waits."""
    if sys.stderr.isatty():
        output.line(sentence, error=True)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        output.fail(f"{file} cannot be written: {error.strerror}")


def _show(report: Report) -> None:
    rows = [
        (each.case.id, output.styled(each.verdict.value, _STYLES[each.verdict]), each.finding.seen)
        for each in report.results
    ]
    output.table(f"Readiness of {report.url}", ("Case", "Verdict", "Seen"), rows)
    for each in report.results:
        if each.verdict in (Verdict.FAILED, Verdict.WARNED):
            output.say(f"{each.case.id}: {each.case.fix} ({'; '.join(source.name for source in each.case.sources)})")
    output.say(f"A session is recognised if {report.marker}." if report.marker else "No sign of a session is known.")
    output.say(f"{report.sentence()}.")
