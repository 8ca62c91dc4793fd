"""`corpid doctor` on a laptop, on settings that are wrong, and where nothing answers. With proxies: tests/operate."""

from __future__ import annotations

import json
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from corpid import settings
from corpid.cli.doctor import local_checks, request_checks
from corpid.cli.doctor.deployment import RawResponse
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change, Membership
from corpid.rules.server_processes import ServerProcess
from tests import engines
from tests.clusters import RedisCluster
from tests.machine import free_port, key_file
from tests.web.processes import serving

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
LISTENING = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
"""127.0.0.1 port 8080"""


def findings(text: str) -> dict[str, dict[str, Any]]:
    return {finding["about"]: finding for finding in json.loads(text)["findings"]}


@pytest.mark.parametrize("generations", ["current", pytest.param("legacy", marks=pytest.mark.full)])
def test_a_server_on_this_machine_has_no_problem_and_nothing_is_left_behind(
    terminal: Terminal, generations: str
) -> None:
    """It is safe to run in production: none of its requests can succeed, none is written down but as a log line."""
    with serving(terminal.folder, generations=generations) as running:
        result = terminal.run("doctor", running.base_url, "--json")
        audit = terminal.done("audit", "list", "--json")
        failed = [line for line in running.lines() if line.get("status", 0) >= 500]
    found = findings(result.stdout)
    assert {about for about, each in found.items() if each["verdict"] not in ("ok", "not_looked_at")} == set()
    assert found["callers' addresses"]["verdict"] == "not_looked_at", "a URL alone does not show them"
    assert (result.exit_code, failed, audit) == (0, [], "")


def test_a_server_below_a_path_is_looked_at_there(terminal: Terminal) -> None:
    with serving(terminal.folder, path="/sso") as running:
        there = terminal.done("doctor", running.base_url, "--json")
        beside = terminal.run("doctor", running.base_url.removesuffix("/sso"))
    assert {each["verdict"] for each in findings(there).values()} == {"ok", "not_looked_at"}
    assert findings(there)["readiness"]["verdict"] == "not_looked_at", "it is outside the path"
    assert beside.exit_code == 1
    assert "include it in base_url" in beside.stdout


def test_where_nothing_answers_it_says_so(terminal: Terminal) -> None:
    result = terminal.run("doctor", f"http://127.0.0.1:{free_port()}")
    assert result.exit_code == 1
    assert "does not answer: Connection refused" in result.stdout
    assert "is not a URL" in terminal.refused("doctor", "login.example.org")
    assert "cannot be read" in terminal.refused("doctor", "https://127.0.0.1", "--ca", "missing.pem")


def test_http_that_is_asked_for_tls_is_told_apart_from_nothing(terminal: Terminal) -> None:
    with serving(terminal.folder) as running:
        result = terminal.run("doctor", running.base_url.replace("http://", "https://"))
    assert result.exit_code == 1
    assert "it does not speak TLS here: is it http?\n" in result.stdout


class _Website(BaseHTTPRequestHandler):
    """Answers everything with the same page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_another_program_is_not_taken_for_corpid(terminal: Terminal) -> None:
    with HTTPServer(("127.0.0.1", 0), _Website) as website:
        thread = Thread(target=website.handle_request)
        thread.start()
        result = terminal.run("doctor", f"http://127.0.0.1:{website.server_port}")
        thread.join()
    assert result.exit_code == 1
    assert "200 by BaseHTTP" in result.stdout
    assert "send every path of this host to CorpID" in result.stdout


def test_settings_that_do_not_go_together_are_a_problem(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_BASE_URL", "https://login.example.org")
    result = terminal.run("doctor")
    assert result.exit_code == 1
    assert "nothing here serves TLS" in result.stdout
    assert "Change:" not in result.stdout.split("settings")[1].split("\n")[1], "the sentence says what to change"


def test_a_node_is_looked_at_from_inside(empty_terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    key = key_file(empty_terminal.folder / "sealing.key")
    (empty_terminal.folder / "sealing.key").chmod(0o644)
    monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY_FILE", key)
    monkeypatch.setenv("CORPID_DEVELOPER_MODE", "true")
    found = findings(empty_terminal.run("doctor", url, "--node", "--json").stdout)
    assert found["developer_mode"]["verdict"] == "warning"
    assert "chmod 600" in found["key-encryption key"]["seen"]
    assert "does not exist" in found["database"]["seen"]
    assert not (empty_terminal.folder / "data").exists(), "looking writes nothing"


async def old(stores: Stores) -> None:
    await stores.registry.audit.write(AuditEvent(actor="system", action="test.change"), now=time.time() - 3 * 3600)


def test_entries_that_nobody_seals_are_a_warning(terminal: Terminal) -> None:
    """D58: at least hourly."""

    def seals() -> dict[str, Any]:
        url = f"http://127.0.0.1:{free_port()}"
        return findings(terminal.run("doctor", url, "--node", "--json").stdout)["audit seals"]

    terminal.look(old)
    assert seals()["verdict"] == "warning"
    assert "waiting for a seal for 3 hours" in seals()["seen"]
    terminal.done("audit", "seal")
    assert seals()["verdict"] == "ok"


async def registered(shared: Any, stores: Stores) -> None:
    now = int(stores.clock())
    for number, version in ((1, "0.1.0"), (2, "0.2.0")):
        process = ServerProcess(
            process_id=str(number), host=f"node{number}", number=number, address="0.0.0.0:8000", version=version,
            started_at=now, seen_at=now, settings={**shared, "key_encryption_key": "ab"[number - 1] * 4},
        )  # fmt: skip
        await stores.registry.server_processes.note(process)


def test_live_processes_of_another_version_or_with_other_settings_are_named(terminal: Terminal) -> None:
    """D43, D49."""
    shared = {"base_url": "https://login.example", "key_encryption_key": "aaaa"}

    terminal.look(partial(registered, shared))
    url = f"http://127.0.0.1:{free_port()}"
    found = findings(terminal.run("doctor", url, "--node", "--json").stdout)
    assert "0.2.0 at node2 (2)" in found["versions of the processes"]["seen"]
    assert found["key_encryption_key of the processes"]["verdict"] == "problem"


async def aged(stores: Stores) -> None:
    [invited] = [each async for each in stores.registry.directory.scan(Membership) if each.invited]
    becomes = msgspec.structs.replace(invited, changed_at=int(time.time()) - 3 * 86_400)
    await stores.registry.directory.write([Change(None, becomes)], AuditEvent(actor="system", action="test.change"))


def test_emails_of_invitations_that_nobody_sends_are_a_warning(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D60: without a mail server, and while the server refuses them for days."""
    terminal.done("entity", "add", "C3", "--type", "UEN", "--name", "Gamma")

    def email_check() -> tuple[str, str]:
        url = f"http://127.0.0.1:{free_port()}"
        found = findings(terminal.run("doctor", url, "--node", "--json").stdout)["invitations"]
        return found["verdict"], found["seen"] + found["change"]

    assert email_check()[0] == "ok"
    terminal.done("membership", "invite", "--entity", "C3", "--name", "Tan", "--email", "tan@gamma.example")
    verdict, told = email_check()
    assert (verdict, "mail_url" in told) == ("warning", True)
    monkeypatch.setenv("CORPID_MAIL_URL", "smtp://127.0.0.1:25")
    monkeypatch.setenv("CORPID_MAIL_FROM", "corpid@gamma.example")
    assert email_check()[0] == "ok"
    terminal.look(aged)
    verdict, told = email_check()
    assert (verdict, "3 days old" in told, "invitations_stopped" in told) == ("warning", True, True)


def test_clients_that_may_leave_pkce_out_are_named(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9700 §2.1.1; Spec "LEGACY without PKCE": only who may do so today, where LEGACY is served."""
    legacy, until = "generations: [legacy], legacy_until: ", "9999-12-31"
    members = {
        "bare": f"{legacy}'{until}', pkce: optional",
        "dated": f"{legacy}'{until}', pkce: optional, pkce_optional_until: '{until}'",
        "disabled": f"{legacy}'{until}', pkce: optional, enabled: false",
        "ended": f"{legacy}'2020-01-01', pkce: optional",
        "past": f"{legacy}'{until}', pkce: optional, pkce_optional_until: '2020-01-01'",
        "pushing": "generations: [current], pkce: optional",
        "strict": f"{legacy}'{until}'",
    }
    uris = "redirect_uris: ['https://rp.example/cb'], jwks_uri: https://rp.example/j"
    clients = "".join(f"  {name}: {{name: RP, {uris}, {more}}}\n" for name, more in members.items())
    terminal.done("apply", terminal.file(f"clients:\n{clients}"))

    def pkce(generations: str) -> dict[str, Any] | None:
        monkeypatch.setenv("CORPID_GENERATIONS", generations)
        url = f"http://127.0.0.1:{free_port()}"
        return findings(terminal.run("doctor", url, "--node", "--json").stdout).get("PKCE")

    found = pkce("current,legacy")
    assert found is not None
    assert found["verdict"] == "warning"
    assert found["seen"].startswith("bare, dated can omit it (pkce optional).")
    assert "RFC 9700 2.1.1" in found["seen"]
    assert "pkce_optional_until" in found["change"]
    assert pkce("current") is None
    switched = "{pkce: required, pkce_optional_until: none}"
    terminal.done("apply", terminal.file(f"clients: {{bare: {switched}, dated: {switched}}}"))
    found = pkce("legacy")
    assert found is not None
    assert found["verdict"] == "ok"


@pytest.mark.full
def test_engines_are_looked_at(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """A database without its schema, and a Redis that may forget, are problems; put right, they are none."""
    may_forget = engines.RedisServer("--maxmemory-policy", "allkeys-lru", program=program)
    with engines.postgresql() as database_url, may_forget as server:
        monkeypatch.setenv("CORPID_DATABASE_URL", database_url)
        monkeypatch.setenv("CORPID_TRANSIENT_URL", server.url)
        monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY_FILE", key_file(terminal.folder / "sealing.key"))
        before = findings(terminal.run("doctor", "--json").stdout)
        server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        terminal.done("migrate")
        terminal.done("key", "rotate")
        after = findings(terminal.run("doctor", "--json").stdout)
    assert "corpid migrate" in before["schema"]["seen"]
    assert "noeviction" in before[server.name]["seen"]
    assert "No key is signing" in before["signing keys"]["seen"]
    assert [after[name]["verdict"] for name in ("database", "schema", "signing keys", server.name)] == ["ok"] * 4
    assert "PostgreSQL" in after["database"]["seen"]
    assert after[server.name]["seen"].startswith(f"{server.name} ")


@pytest.mark.full
def test_a_node_that_lost_data_or_is_not_ready_is_told_by_itself(terminal: Terminal) -> None:
    """D49, D67: whatever the proxy makes of /readyz, and whichever node it asks."""
    with engines.RedisServer() as server:
        port = free_port()
        chosen = {"base_url": f"http://localhost:{port}", "port": str(port), "transient_url": server.url}
        with serving(terminal.folder, **chosen) as running, terminal.given(chosen):
            server.command("FLUSHALL")
            while "recovering" not in httpx.get(f"{running.base_url}/readyz", trust_env=False).json():
                time.sleep(0.05)
            lost = findings(terminal.run("doctor", "--json").stdout)
            server.command("CONFIG", "SET", "maxmemory", "1")
            while httpx.get(f"{running.base_url}/readyz", trust_env=False).status_code == 200:
                time.sleep(0.05)
            full = findings(terminal.run("doctor", "--json").stdout)
        with terminal.given(chosen):
            gone = findings(terminal.run("doctor", "--json").stdout)
    for about in ("this node", "readiness"):
        assert lost[about]["verdict"] == "warning"
        assert "It lost its short-lived state; until 20" in lost[about]["seen"]
        assert full[about]["verdict"] == "problem"
        assert "is not ready: short-lived state" in full[about]["seen"]
        assert gone[about]["verdict"] == "not_looked_at"


def test_readiness_that_a_proxy_hides_is_not_looked_at() -> None:
    hidden = RawResponse(status=404, headers=(), body=b'{"error": "not_found"}')
    assert request_checks.judge_readiness(hidden) is None


@pytest.mark.full
def test_every_primary_of_a_cluster_is_looked_at(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that may forget what was spent is found wherever it is."""
    with RedisCluster() as cluster:
        monkeypatch.setenv("CORPID_TRANSIENT_URL", cluster.url)
        cluster.primaries[2].command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        found = findings(terminal.run("doctor", "--json").stdout)
    seen = [finding for about, finding in found.items() if about.startswith("Redis")]
    assert sorted(finding["verdict"] for finding in seen) == ["ok", "ok", "problem"]
    [refused] = [finding["seen"] for finding in seen if finding["verdict"] == "problem"]
    assert f":{cluster.primaries[2].port} may forget" in refused


@pytest.mark.parametrize(
    ("peer", "verdict"),
    [("0A00000A", "ok"), ("0B00000A", "problem"), ("0000000000000000FFFF00000A00000A", "ok"), ("", "not_looked_at")],
)
def test_whoever_connects_has_to_be_a_trusted_proxy(tmp_path: Path, peer: str, verdict: str) -> None:
    """D47; the table is that of Linux on a little-endian machine, and 10.0.0.10 is trusted."""
    table = tmp_path / "tcp"
    connected = f"   1: 0100007F:1F90 {peer}:D431 01 00000000:00000000 00:00000000 00000000     0\n" if peer else ""
    table.write_text(HEADING + LISTENING + connected)
    chosen = settings.load(base_url="https://login.example.org", trusted_proxies="10.0.0.10", data_dir=tmp_path)
    found = local_checks.check_peers(chosen, [table, tmp_path / "missing"])
    assert found is not None
    assert found.verdict == verdict


@pytest.mark.full
def test_a_node_reports_what_it_receives_to_who_has_its_settings(terminal: Terminal) -> None:
    """D47, D49: on a laptop no proxy is in between; what nobody looked at is counted, and is not ok."""
    port = free_port()
    chosen = {"base_url": f"http://localhost:{port}", "port": str(port)}
    with serving(terminal.folder, **chosen), terminal.given(chosen):
        found = findings(terminal.run("doctor", "--json").stdout)
        shown = terminal.run("doctor").stdout
        gone = terminal.run("doctor", f"http://127.0.0.1:{free_port()}").stdout
    assert "No proxy is trusted" in found["callers' addresses"]["seen"]
    assert {found[name]["verdict"] for name in ("encoded paths", "response headers", "cached answers")} == {"ok"}
    assert found["slow responses"]["verdict"] == "not_looked_at"
    assert "not looked at slow responses\n" in shown
    assert "warnings, 1 not looked at" in shown
    assert "There is no discovery document, which names what to look at." in gone
    assert gone.splitlines()[-1].startswith("1 problem, 0 warnings, 31 not looked at, 0 ok.")


@pytest.mark.full
@pytest.mark.parametrize(("header", "address"), [("Forwarded", "198.51.100.78"), ("X-Forwarded-For", "198.51.100.77")])
def test_a_forged_address_is_looked_for_in_the_header_of_the_settings(
    terminal: Terminal, header: str, address: str
) -> None:
    """D47: callers are taken for a trusted proxy here, and so is what they write."""
    port = free_port()
    chosen = {
        "base_url": f"http://localhost:{port}",
        "port": str(port),
        "trusted_proxies": "127.0.0.1,::1",
        "forwarded_header": header,
    }
    with serving(terminal.folder, **chosen), terminal.given(chosen):
        result = terminal.run("doctor", "--json")
    found = findings(result.stdout)["callers' addresses"]
    assert (result.exit_code, found["verdict"]) == (1, "problem")
    assert f"wrote {address} into {header}, and the node believed it" in found["seen"]
    assert f"replace {header} by" in found["change"]


@pytest.mark.parametrize(
    ("text", "seconds", "verdict"),
    [
        ("upstream corpid { server a; keepalive_timeout 60s; }", 75, "ok"),
        ("upstream corpid { server a; keepalive_timeout 2m; }", 75, "warning"),
        ("upstream corpid { server a; keepalive_timeout 60; }", 60, "warning"),
        ("server { keepalive_timeout 2m; }", 75, "ok"),
        ("default-server check pool-purge-delay 90s", 75, "warning"),
        ("default-server check pool-purge-delay 60000", 75, "ok"),
        ("# pool-purge-delay 90s", 75, "ok"),
        ("", 75, "ok"),
    ],
)
def test_the_proxy_closes_idle_connections_first(text: str, seconds: float, verdict: str) -> None:
    """D47: a request can meet a connection that CorpID closes; a keepalive for callers is another one."""
    assert local_checks.check_idle_connections(text, seconds).verdict == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("proxy_next_upstream error timeout;", "ok"),
        ("proxy_next_upstream error\n  non_idempotent;", "problem"),
        ("# proxy_next_upstream non_idempotent;", "ok"),
        ("retry-on conn-failure", "ok"),
        ("retry-on conn-failure 503", "problem"),
        ("retry-on all-retryable-errors\nhttp-request disable-l7-retry if METH_POST", "ok"),
    ],
)
def test_a_proxy_must_not_send_a_post_again(text: str, verdict: str) -> None:
    """What it carries is spent by the first time (RFC 9449 §11.1, D8)."""
    assert local_checks.check_failover(text).verdict == verdict
