"""`corpid doctor`: checks of a deployment from outside, and of a node.

A few dozen requests. None can succeed, and nothing is written but log lines. Requests that a node reports back need the
settings of a node (`request_checks.Prober`); no other one needs a secret.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads it when the program runs
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.doctor import deployment, local_checks, request_checks
from corpid.cli.doctor.deployment import ExaminedDeployment, NoResponse, Origin
from corpid.rules import diagnostics
from corpid.rules.diagnostics import Finding, Reported, SkippedCheck, count_noun, named, not_looked_at
from corpid.settings.issuers import issuers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from corpid.cli.doctor.request_checks import Check
    from corpid.settings import Settings


_UNANSWERED: Final = "A request was not answered"
_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "bold red", "not looked at": "cyan"}
_WIDTH: Final = max(map(len, _COLOURS))
_ENOUGH: Final = 3
"""unanswered requests, after which the checks stop"""


def doctor(
    url: Annotated[
        str,
        typer.Argument(metavar="[URL]", help="Public URL of CorpID. Default: base_url, then every further issuer."),
    ] = "",
    *,
    node: Annotated[
        bool, typer.Option("--node", help="Also check this node's settings and engines. Default without URL.")
    ] = False,
    ca: Annotated[Path | None, typer.Option(help="PEM file of the certificate authority to trust instead.")] = None,
    proxy: Annotated[
        Path | None, typer.Option(help="The proxy's configuration (nginx, HAProxy), for what requests cannot show.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Examine a running deployment: proxy, TLS, clocks, keys, engines.

    Changes nothing.

    Exits with 1 if there is a problem, with 0 if there are only warnings.
    """
    found: list[Reported] = []
    chosen = None
    if node or not url:
        try:
            chosen = settings.load()
        except settings.SettingsError as error:
            found.append(diagnostics.problem(diagnostics.sentence(error), about="settings"))
    where = url or (chosen.base_url if chosen else "")
    if where:
        found += _check_from_outside(where, ca, chosen)
    if chosen is not None and not url:
        for issuer_id, issuer in list(issuers(chosen).items())[1:]:
            found += [
                msgspec.structs.replace(each, about=f"{issuer_id}: {each.about}")
                for each in _check_from_outside(issuer.base_url, ca, chosen)
            ]
    if chosen is not None:
        found += [
            *named("connecting addresses", local_checks.check_peers(chosen)),
            *named("this node", local_checks.check_this_node(chosen)),
            *local_checks.check_node(chosen),
        ]
    configuration = None if proxy is None else output.text_of(proxy, expected="a proxy's configuration")
    found += local_checks.check_proxy_configuration(configuration, chosen)
    if json:
        output.as_json({"url": where, "findings": found})
    else:
        _print_text(where, found)
    if any(finding.verdict == "problem" for finding in found):
        raise typer.Exit(1)


def _print_text(url: str, findings: Sequence[Reported]) -> None:
    """The report, for people.

    What was not looked at comes last, by reason.
    """
    output.line((url, "bold"))
    looked_at = [each for each in findings if isinstance(each, Finding)]
    width = max((len(finding.about) for finding in looked_at), default=0)
    for finding in looked_at:
        colour, indented = _COLOURS[finding.verdict], " " * (width + _WIDTH + 3)
        output.line((finding.verdict.ljust(_WIDTH), colour), f" {finding.about.ljust(width)}  {finding.seen}")
        if finding.change:
            output.line(indented, finding.change)
    reasons: dict[str, list[str]] = {}
    for each in findings:
        if isinstance(each, SkippedCheck):
            reasons.setdefault(each.seen, []).append(each.about)
    for reason, about in reasons.items():
        output.line(("not looked at", _COLOURS["not looked at"]), f" {', '.join(about)}")
        output.line(" " * (_WIDTH + 1), reason)
    output.say(_summarise(findings))


def _summarise(findings: Sequence[Reported]) -> str:
    """`0 problems, 1 warning, 2 not looked at, 20 ok.`"""
    verdicts = [finding.verdict for finding in findings]
    counts = [count_noun(verdicts.count(each), each) for each in ("problem", "warning")]
    unseen = verdicts.count("not_looked_at")
    return f"{', '.join(counts)}, {unseen} not looked at, {verdicts.count('ok')} ok."


def _check_from_outside(url: str, authority: Path | None, node: Settings | None) -> list[Reported]:
    try:
        origin = Origin(url, deployment.create_tls_context(authority))
    except ValueError as error:
        output.fail(f"{error}.")
    except (OSError, ssl.SSLError) as error:
        output.fail(f"--ca {authority} cannot be read: {error}")
    found: list[Reported] = []
    with suppress(NoResponse):
        found += _report_failures("certificate", lambda: request_checks.check_tls(origin))
    certificate_refused = any(finding.about == "certificate" and finding.verdict == "problem" for finding in found)
    if certificate_refused:
        origin = Origin(url, deployment.create_unchecked_context())
    first, there = deployment.reach_deployment(origin)
    found += named("reachable", first)
    if there is None:
        reason = "There is no discovery document, which names what to look at."
        return [*found, *_skip(request_checks.CHECKS, reason), *request_checks.skip_probes(reason, node)]
    found += _check_requests(there)
    if certificate_refused:
        return [*found, *request_checks.skip_probes("No probe is sent to a host whose certificate is refused.", node)]
    return [*found, *_check_probes(there, node)]


def _check_requests(there: ExaminedDeployment) -> list[Reported]:
    found: list[Reported] = []
    for number, (about, check) in enumerate(request_checks.CHECKS, start=1):
        found += _run_check(about, check, there)
        if sum(finding.seen.startswith(_UNANSWERED) for finding in found) >= _ENOUGH:
            return [*found, *_skip(request_checks.CHECKS[number:], f"{_ENOUGH} requests before were not answered.")]
    return found


def _skip(checks: Sequence[tuple[str, Check]], reason: str) -> Iterator[Reported]:
    for about, _ in checks:
        yield not_looked_at(reason, about=about)


def _check_probes(there: ExaminedDeployment, node: Settings | None) -> list[Reported]:
    """Check what a node receives, if the settings allow it."""
    if node is None:
        reason = (
            "Only a node reports what it receives, and only to its own settings: run this on a node, or with --node."
        )
        return list(request_checks.skip_probes(reason, None))
    try:
        seal = local_checks.create_probe_seal(node)
    except local_checks.NoKey as error:
        return list(request_checks.skip_probes(diagnostics.sentence(error), node))
    return _report_failures("probes", lambda: request_checks.check_probes(request_checks.Prober(there, node, seal)))


def _run_check(about: str, check: Check, there: ExaminedDeployment) -> list[Reported]:
    try:
        return _report_failures(about, lambda: check(there))
    except NoResponse as error:
        seen = diagnostics.sentence(f"{_UNANSWERED}: {error}")
        return [diagnostics.problem(seen, "check the logs of the proxy and of the nodes", about=about)]


def _report_failures(about: str, look: Callable[[], Reported | Iterable[Reported] | None]) -> list[Reported]:
    """The findings of a check.

    Raises NoResponse. Every other failure is a finding.
    """
    try:
        return named(about, look())
    except NoResponse:
        raise
    except Exception as error:  # noqa: BLE001 - the answer may be anything
        seen = f"The response cannot be understood ({type(error).__name__})."
        return [diagnostics.problem(seen, "let the proxy send every path of this host to CorpID", about=about)]
