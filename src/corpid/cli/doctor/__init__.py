"""`corpid doctor`: checks of a deployment from outside, and of a node.

A few dozen requests. None can succeed, and nothing is written but log lines. Requests that a node reports back need the
settings of a node (`probe_checks`); no other one needs a secret.
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
from corpid.cli.doctor import (
    findings,
    http_checks,
    local_checks,
    probe_checks,
    proxy_configuration,
    reachability,
)
from corpid.cli.doctor.findings import SkippedCheck, not_looked_at
from corpid.cli.doctor.raw_http import NoResponse, Origin
from corpid.rules import diagnostics
from corpid.rules.diagnostics import Finding
from corpid.settings.issuers import issuers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from corpid.cli.doctor.findings import Reported
    from corpid.cli.doctor.reachability import Deployment
    from corpid.settings import Settings

    Check = Callable[[Deployment], Reported | Sequence[Reported] | None]

CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("base_url", reachability.issuer),
    ("endpoints", reachability.endpoints),
    ("key set", http_checks.keys),
    ("paths", http_checks.paths),
    ("Authorization", http_checks.authorization),
    ("DPoP", http_checks.dpop),
    ("header sizes", http_checks.heads),
    ("body sizes", http_checks.bodies),
    ("caching", http_checks.caching),
    ("compression", http_checks.compression),
    ("page headers", http_checks.page_headers),
    ("media types", http_checks.media_types),
    ("metrics", http_checks.metrics),
    ("other names", http_checks.other_names),
    ("clock", http_checks.clock),
    ("readiness", http_checks.ready),
    ("HSTS", reachability.hsts),
    ("plain HTTP", reachability.plain_http),
)
_UNANSWERED: Final = "A request was not answered"
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
    ca: Annotated[Path | None, typer.Option(help="PEM file of the certification authority to trust instead.")] = None,
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
            found.append(diagnostics.problem("settings", diagnostics.sentence(error)))
    where = url or (chosen.base_url if chosen else "")
    if where:
        found += _outside(where, ca, chosen)
    if chosen is not None and not url:
        for issuer_id, issuer in list(issuers(chosen).items())[1:]:
            found += [
                msgspec.structs.replace(each, about=f"{issuer_id}: {each.about}")
                for each in _outside(issuer.base_url, ca, chosen)
            ]
    if chosen is not None:
        found += [*local_checks.look_at_peers(chosen), local_checks.look_at_itself(chosen), *local_checks.look(chosen)]
    found += proxy_configuration.look(None if proxy is None else _text(proxy), chosen)
    (findings.print_json if json else findings.print_text)(where, found)
    if any(finding.verdict == "problem" for finding in found):
        raise typer.Exit(1)


def _text(file: Path) -> str:
    return output.text_of(file, expected="a proxy's configuration")


def _outside(url: str, authority: Path | None, node: Settings | None) -> list[Reported]:
    try:
        origin = Origin(url, reachability.trusting(authority))
    except ValueError as error:
        output.fail(f"{error}.")
    except (OSError, ssl.SSLError) as error:
        output.fail(f"--ca {authority} cannot be read: {error}")
    found: list[Reported] = []
    with suppress(NoResponse):
        found += _understood("certificate", lambda: list(reachability.tls(origin)))
    certificate_refused = any(finding.about == "certificate" and finding.verdict == "problem" for finding in found)
    if certificate_refused:
        origin = Origin(url, reachability.unchecked())
    first, there = reachability.reach(origin)
    found.append(first)
    if there is None:
        reason = "There is no discovery document, which names what to look at."
        return [*found, *_unseen(CHECKS, reason), *probe_checks.unseen(reason, node)]
    found += _checks(there)
    if certificate_refused:
        return [*found, *probe_checks.unseen("No probe is sent to a host whose certificate is refused.", node)]
    return [*found, *_probed(there, node)]


def _checks(there: Deployment) -> list[Reported]:
    found: list[Reported] = []
    for number, (about, check) in enumerate(CHECKS, start=1):
        found += _checked(about, check, there)
        if sum(finding.seen.startswith(_UNANSWERED) for finding in found) >= _ENOUGH:
            return [*found, *_unseen(CHECKS[number:], f"{_ENOUGH} requests before were not answered.")]
    return found


def _unseen(checks: Sequence[tuple[str, Check]], reason: str) -> Iterator[Reported]:
    for about, _ in checks:
        yield not_looked_at(about, reason)


def _probed(there: Deployment, node: Settings | None) -> list[Reported]:
    """Check what a node receives, if the settings allow it."""
    if node is None:
        reason = (
            "Only a node reports what it receives, and only to its own settings: run this on a node, or with --node."
        )
        return list(probe_checks.unseen(reason, None))
    try:
        seal = local_checks.probe_seal(node)
    except local_checks.NoKey as error:
        return list(probe_checks.unseen(diagnostics.sentence(error), node))
    return _understood("probes", lambda: list(probe_checks.look(probe_checks.Prober(there, node, seal))))


def _checked(about: str, check: Check, there: Deployment) -> list[Reported]:
    try:
        return _understood(about, lambda: check(there))
    except NoResponse as error:
        change = "Change: check the logs of the proxy and of the nodes."
        return [diagnostics.problem(about, diagnostics.sentence(f"{_UNANSWERED}: {error}"), change)]


def _understood(about: str, look: Callable[[], Reported | Sequence[Reported] | None]) -> list[Reported]:
    """The findings of a check.

    Raises NoResponse. Every other failure is a finding.
    """
    try:
        result = look()
    except NoResponse:
        raise
    except Exception as error:  # noqa: BLE001 - the answer may be anything
        seen = f"The response cannot be understood ({type(error).__name__})."
        return [diagnostics.problem(about, seen, "Change: let the proxy send every path of this host to CorpID.")]
    if isinstance(result, (Finding, SkippedCheck)):
        return [result]
    return list(result or ())
