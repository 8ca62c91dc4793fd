"""Several issuers at the command line: registration, the migration report, the doctor (D62)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from corpid import settings
from corpid.cli.doctor import local_checks
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change
from corpid.rules.oauth.records import Client
from tests.cli.test_clients import ADD
from tests.machine import free_port
from tests.web.processes import serving

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

EVENT: Final = AuditEvent(actor="operator", action="test.change")
LEGACY: Final = ("--generation", "legacy", "--legacy-until", "2099-12-31")


@pytest.fixture
def several(terminal: Terminal) -> Terminal:
    """A deployment with CURRENT at the first issuer and LEGACY at a further one."""
    (terminal.folder / "corpid.toml").write_text(
        'generations = ["current"]\n[[issuers]]\nid = "old"\nbase_url = "http://localhost:8080/old"\n'
        'generations = ["legacy"]\n'
    )
    return terminal


def test_a_client_is_registered_for_the_issuers_that_it_names(several: Terminal) -> None:
    """D62: and what its relying party has to know names each of them."""
    said = several.done(*ADD, "--issuer", "first", "--issuer", "old", *LEGACY, "--generation", "current")
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "Issuer http://localhost:8080" in lines
    assert "http://localhost:8080/old" in lines
    assert "With legacy at http://localhost:8080/old" in lines
    assert json.loads(several.done("client", "show", "rp", "--json"))["issuers"] == ["first", "old"]


def test_a_client_of_a_further_issuer_gets_every_scope_as_one_of_the_first_does(several: Terminal) -> None:
    """D62: what the help of --scope says holds at each issuer."""
    several.done(*ADD, "--issuer", "old", *LEGACY)
    further = json.loads(several.done("client", "show", "rp", "--json"))["scopes"]
    several.done(*("other" if each == "rp" else each for each in ADD))
    assert further == json.loads(several.done("client", "show", "other", "--json"))["scopes"] != ["openid"]


def test_a_client_that_names_an_issuer_that_is_not_there_is_refused(several: Terminal) -> None:
    """D62."""
    assert "'gone' is no issuer of this deployment: choose from first, old" in several.refused(*ADD, "--issuer", "gone")
    entry = "{name: RP, redirect_uris: ['https://rp.example/cb'], jwks_uri: https://rp.example/j, issuers: [gone]}"
    refused = several.refused("apply", several.file(f"clients: {{rp: {entry}}}"))
    assert "no issuer of this deployment" in " ".join(refused.split())


def test_a_client_whose_issuers_serve_none_of_its_generations_is_told(several: Terminal) -> None:
    """D62: with the issuer that would."""
    for issuer, generation, other in (("old", ("--generation", "current"), "first"), ("first", LEGACY, "old")):
        client = f"of-{issuer}"
        said = several.run(*(client if each == "rp" else each for each in ADD), "--issuer", issuer, *generation)
        assert said.exit_code == 0
        told = " ".join(said.stderr.split())
        assert f"{client} cannot be used so far: it uses " in told
        assert f", and its issuer {issuer} serves only " in told
        assert f"change that with `corpid client update {client} --issuer {other}`" in told
        assert "not served here so far: the generations of none of its issuers name it" in " ".join(said.stdout.split())


def test_the_last_day_is_told_in_the_time_zone_of_the_issuer_that_ends_it(several: Terminal) -> None:
    """D62: presets and time zones are an issuer's own."""
    path = several.folder / "corpid.toml"
    path.write_text(path.read_text() + 'timezone = "Asia/Singapore"\n')
    said = several.done(*ADD, "--issuer", "old", "--issuer", "first", *LEGACY)
    assert "until the end of 2099-12-31 (Asia/Singapore)" in " ".join(said.split())


def test_the_migration_report_is_one_and_says_who_cannot_reach_the_successor(several: Terminal) -> None:
    """D62: one client_id, one report."""
    several.done(*ADD, "--issuer", "old", *LEGACY, "--generation", "current")
    [found] = json.loads(several.done("client", "migration", "--json"))
    assert (found["client_id"], found["lists_successor"], found["reaches_successor"]) == ("rp", True, False)
    assert "rp: none of its issuers serves current; add one that does" in several.done("client", "migration")
    several.done("client", "update", "rp", "--issuer", "old", "--issuer", "first")
    [found] = json.loads(several.done("client", "migration", "--json"))
    assert found["reaches_successor"] is True


def about(chosen: settings.Settings) -> dict[str, Any]:
    return {finding.about: finding for finding in local_checks.check_node(chosen)}


async def written(stores: Stores) -> None:
    client = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), issuers=("gone", "first"))
    await stores.registry.directory.write([Change(None, client)], EVENT)


def test_the_doctor_says_where_passkeys_do_not_work_and_who_names_an_issuer_that_is_gone(terminal: Terminal) -> None:
    """D62."""
    terminal.look(written)
    url = {"base_url": "https://login.example.org", "trusted_proxies": "10.0.0.1"}
    table = {"id": "old", "base_url": "https://old.example.org", "generations": ["legacy"]}
    found = about(settings.load(**url, issuers=[table]))
    assert found["issuers"].verdict == "problem"
    assert "rp (gone)" in found["issuers"].seen
    assert found["passkeys"].verdict == "warning"
    assert "No passkeys are offered at old: their host is not login.example.org" in found["passkeys"].seen
    assert "passkeys" not in about(settings.load(**url, issuers=[table], passkey_rp_id="example.org"))


@pytest.mark.full
def test_one_process_serves_every_issuer_and_the_doctor_looks_at_each(terminal: Terminal) -> None:
    """D62: over a socket, by path and by host."""
    port = free_port()
    tables = [
        {"id": "old", "base_url": f"http://localhost:{port}/old", "generations": ["legacy"]},
        {"id": "fapi", "base_url": f"http://127.0.0.1:{port}", "generations": ["fapi2"]},
    ]
    chosen = {"base_url": f"http://localhost:{port}", "port": str(port), "issuers": json.dumps(tables)}
    with serving(terminal.folder, **chosen), terminal.given(chosen):
        for url in (chosen["base_url"], *(table["base_url"] for table in tables)):
            found = httpx.get(f"{url}/.well-known/openid-configuration", trust_env=False).json()
            assert found["issuer"] == url
        result = terminal.run("doctor", "--json")
    findings = {each["about"]: each for each in json.loads(result.stdout)["findings"]}
    assert findings["old: base_url"]["verdict"] == findings["base_url"]["verdict"] == "ok"
    assert findings["fapi: endpoints"]["verdict"] == "ok"
    for about in ("clock", "old: clock", "fapi: clock"):
        assert findings[about]["seen"].startswith("CorpID's clock"), "also where nothing is pushed"
    assert [name for name, each in findings.items() if each["verdict"] == "problem"] == []


def test_the_help_of_serve_says_that_every_issuer_is_served(terminal: Terminal) -> None:
    said = " ".join(terminal.done("serve", "--help").replace("│", " ").split())
    assert "If the setting issuers names further issuers, this process serves all of them" in said
