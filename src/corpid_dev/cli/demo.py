"""`corpid demo`: a provider and a relying party on this machine."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpid.cli import output
from corpid.engines import StartError
from corpid.own_certificates import OWN_MACHINE, OwnCertificate
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.oauth.discovery import DISCOVERY_PATH
from corpid.settings import SettingsError
from corpid.settings.fields import PRESETS
from corpid.web.http.server import CertificateUnusable, ListenError
from corpid_dev import hosting
from corpid_dev.cli.stopping import stop_event
from corpid_dev.demo import check as checking
from corpid_dev.demo import demo as demonstration
from corpid_dev.demo import demo_administration
from corpid_dev.demo.demo import LOG, Demo, DemoError, running_issuers
from corpid_dev.demo.demo_rp import AUTHORITY_PATH
from corpid_dev.demo.new_rp import DEFAULT_ISSUER
from corpid_dev.hosting import FIRST_PORT, HostUnusable, NetworkHost
from corpid_dev.relying_party.interfaces import CURRENT, INTERFACES, Interface

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.cli.output import Part
    from corpid_dev.demo.check import Outcome

    Start = Callable[[Path], AbstractAsyncContextManager[tuple[Demo, ...]]]


def demo(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Sign in without a person, verify everything, and exit.")
    ] = False,
    generation: Annotated[
        str, typer.Option(help=f"Generation of the interface: {', '.join(INTERFACES)}. Default: {CURRENT.name}.")
    ] = "",
    issuers: Annotated[
        str,
        typer.Option(
            help="Generations, separated by commas: each at an issuer of its own, on one provider, with a website of its own. "
            "Default with --preset: those of the preset."
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print one JSON object.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: delete what an earlier demo left.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Where the demo keeps its data.")] = None,
    port: Annotated[int, typer.Option(help="The first port to try.", min=1, max=65000)] = FIRST_PORT,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Serve https, with the demo's own certificate authority (docs/relying-parties.md)."),
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Name or address of this machine by which other machines, such as a phone, reach the demo, with TLS and a key "
            "(docs/relying-parties.md); auto: its address on the network. Default: this machine alone."
        ),
    ] = "",
    theme: Annotated[Path | None, typer.Option(help="Directory with the theme to look at (docs/theming.md).")] = None,
    preset: Annotated[
        str, typer.Option(help=f"Group of settings: {', '.join(PRESETS)} (docs/settings.md). Default: none.")
    ] = "",
) -> None:
    """Run a provider and a demo relying party, with example data.

    Both run on this machine. Ctrl-C stops them.
    """
    network = _network(host)
    if preset and preset not in PRESETS:
        raise typer.BadParameter(f"choose from {', '.join(PRESETS)}", param_hint="--preset")
    spoken = _spoken(generation, issuers, preset)
    first_port = 0 if check else port
    start = partial(
        running_issuers, interfaces=spoken, first_port=first_port, theme=theme, preset=preset, network=network, tls=tls
    )
    try:
        code = _check(start, data_dir, as_json=as_json) if check else _run(data_dir, start, fresh=fresh)
    except (DemoError, StartError, SettingsError, DirectoryError, ListenError, CertificateUnusable) as error:
        output.complain(str(error), label="The demo cannot start:")
        if as_json:
            output.as_json({"ok": False, "problem": str(error), "scenarios": []})
        code = 1
    raise typer.Exit(code)


def _network(host: str) -> NetworkHost | None:
    try:
        return hosting.find(host) if host else None
    except HostUnusable as error:
        raise typer.BadParameter(str(error), param_hint="--host") from None


def _spoken(generation: str, issuers: str, preset: str) -> tuple[Interface, ...]:
    """The generations that are asked for, one for each issuer."""
    if generation and issuers:
        raise typer.BadParameter("it names every generation itself: leave --generation out", param_hint="--issuers")
    if not issuers and (generation or CURRENT.name) not in INTERFACES:
        raise typer.BadParameter(f"choose from {', '.join(INTERFACES)}", param_hint="--generation")
    usual = PRESETS[preset].generations if preset and not generation else [generation or CURRENT.name]
    names = [name.strip() for name in issuers.split(",")] if issuers else usual
    if len(set(names)) < len(names) or not INTERFACES.keys() >= set(names):
        raise typer.BadParameter(f"choose from {', '.join(INTERFACES)}, each once", param_hint="--issuers")
    return tuple(INTERFACES[name] for name in names)


def _run(data_dir: Path | None, start: Start, *, fresh: bool) -> int:
    with demonstration.locked(data_dir or demonstration.default_directory(), fresh=fresh) as path:
        asyncio.run(_until_stopped(path, start))
    return 0


async def _until_stopped(path: Path, start: Start) -> None:
    stopped = stop_event()
    async with start(path) as demos:
        _welcome(demos)
        await stopped.wait()
        output.say("Stopping.")


def _welcome(demos: tuple[Demo, ...]) -> None:
    now, demo = time.time(), demos[0]
    output.say("")
    output.line(("CorpID demo", "bold"))
    for each in demos:
        named = f"{each.issuer_id}, " if len(demos) > 1 else ""
        _labelled(
            ("Issuer", f"{named}generation {each.registration.interface.name}: {each.issuer}"),
            ("Open", (each.link, f"bold link {each.link}")),
        )
    _labelled(
        ("Mail", f"{demo.relying_party_url}/mail (what the provider sends is caught there)"),
        ("Portal", f"{demo.portal_url} (people who administer are listed below)"),
        ("Console", f"{demo.console_url} (as {demo_administration.OPERATOR}, an operator)"),
        ("Developer", f"{demo.developer_link} (your clients, test people who sign in at once, inspector, sandbox)"),
    )
    if demo.hosting.network is None:
        at = "" if demo.issuer == DEFAULT_ISSUER else f" --demo {demo.issuer}"
        if demo.hosting.certificate is not None:
            at += f" --ca {shlex.quote(str(demo.hosting.certificate.authority))}"
        _labelled(("New RP", f"corpid rp-new --language node my-rp{at} (or python, go, java: yours, registered here)"))
    _labelled(("Data", f"{demo.data_directory} (log: {LOG})"))
    output.say("")
    people = demo.registration.persons
    rows = [(each.name, each.user_name, each.password, each.code(now), str(len(each.entities))) for each in people]
    output.table("Sign in as", ("Person", "User name", "Password", "Code now", "Entities"), rows, unbroken=True)
    output.say("")
    duties = demo_administration.duties(demo.directory)
    output.table("Who administers, in the portal", ("User name", "Organisation", "Level"), duties)
    output.say("Codes change every 30 seconds and work once; the page above lists those of the moment.")
    if demo.hosting.certificate is not None:
        if demo.hosting.network is None:
            _trust(demo.issuer, demo.hosting.certificate)
        else:
            _from_elsewhere(demo, demo.hosting.network, demo.hosting.certificate)
    output.say("Stop with Ctrl-C.")
    sys.stdout.flush()


def _labelled(*rows: tuple[str, Part]) -> None:
    """One line a row; one without a label continues the last."""
    for label, text in rows:
        output.line(f"{label:<11}", text)


def _trust(issuer: str, certificate: OwnCertificate) -> None:
    """Print what makes programs and browsers of this machine trust the demo."""
    file = shlex.quote(str(certificate.authority))
    store = shlex.quote(str(certificate.authority.with_name("ca.p12")))
    kept = f"{certificate.authority_ends:%Y-%m-%d}"
    imported = f"-alias corpid-demo -file {file} -keystore {store} -storepass changeit"
    output.say("")
    output.line(("For https, let programs and browsers of this machine trust the demo", "bold"))
    _labelled(
        ("Authority", str(certificate.authority)),
        ("", f"It is the demo's own, certifies {', '.join(OWN_MACHINE)} alone, and is kept until {kept}."),
        ("Browsers", "Import the file as an authority for websites, or continue after the warning."),
        ("Node", f"export NODE_EXTRA_CA_CERTS={file}"),
        ("Python", f"export SSL_CERT_FILE={file} REQUESTS_CA_BUNDLE={file}"),
        ("Go", f"export SSL_CERT_FILE={file}"),
        ("curl", f"curl --cacert {file} {issuer}{DISCOVERY_PATH}"),
        ("Java", f"keytool -importcert -noprompt {imported}"),
        ("", f"java -Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword=changeit ..."),
        ("", "With the lines for Python, Go and Java, a program trusts no other authority."),
    )
    output.say("")


def _from_elsewhere(demo: Demo, network: NetworkHost, certificate: OwnCertificate) -> None:
    """Print link, key and certificate for browsers of other machines."""
    authority_url = demo.relying_party_url + AUTHORITY_PATH
    halves = certificate.fingerprint[:48], certificate.fingerprint[48:]
    output.say("")
    output.line(("From a phone, or another machine on this network", "bold"))
    output.qr_code(demo.link)
    _labelled(
        ("Open", (demo.link, f"bold link {demo.link}")),
        ("Key", "It is in the link, and new at each start. A browser that has opened the link keeps it for a day, and"),
        ("", "sees all pages above; others get 404 from /developer and from the demo RP. Do not pass it on."),
    )
    if network.is_name:
        _labelled(("Name", f"{network.host} must resolve to {network.reached_at} on the phone, too."))
    passkeys = (
        "They need the installed certificate."
        if network.is_name
        else "They do not work at an address: start with --host NAME, and install the certificate."
    )
    _labelled(
        (
            "Warning",
            "The certificate is the demo's own, so the browser warns. Continue if it shows this fingerprint (SHA-256):",
        ),
        *(("", half.removesuffix(":")) for half in halves),
        ("", f"No warning: install {certificate.authority} on the phone (or download it there: {authority_url})."),
        ("", f"It certifies {network.host} until {certificate.ends:%Y-%m-%d}, and can certify nothing else."),
        ("Passkeys", passkeys),
    )
    output.say("")


def _check(start: Start, data_dir: Path | None, *, as_json: bool) -> int:
    with ExitStack() as stack:
        wanted = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpid-demo-")))
        path = stack.enter_context(demonstration.locked(wanted, fresh=False))
        checked = asyncio.run(_checked(path, start))
        passed = all(report["ok"] for report, _ in checked)
        if not passed:
            output.document((path / LOG).read_text(), error=True)
    if as_json:
        reports = [report for report, _ in checked]
        output.as_json(reports[0] if len(reports) == 1 else {"ok": passed, "issuers": reports})
    else:
        for report, outcomes in checked:
            _summary(f"issuer {report['issuer_id']}, generation {report['generation']}: {report['issuer']}", outcomes)
    return 0 if passed else 1


async def _checked(path: Path, start: Start) -> list[tuple[dict[str, Any], list[Outcome]]]:
    """Check the issuers one after the other.

    They share the same people, whose codes work only once, so from the third issuer on this takes time.
    """
    checked = []
    async with start(path) as demos:
        for demo in demos:
            outcomes = await checking.run(demo)
            checked.append((checking.report(demo, outcomes), outcomes))
    return checked


def _summary(what: str, outcomes: list[Outcome]) -> None:
    rows = [
        (
            outcome.scenario,
            outcome.person,
            outcome.entity,
            f"{sum(check.passed for check in outcome.checks.checks)} of {len(outcome.checks.checks)}",
            output.styled(outcome.problem, "red") if outcome.problem else output.styled("all hold", "green"),
        )
        for outcome in outcomes
    ]
    output.table(f"Checked {what}", ("Scenario", "Person", "Entity", "Checks", "Result"), rows)
