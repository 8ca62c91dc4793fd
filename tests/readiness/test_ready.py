"""The demo's website and every example pass the readiness report; the command reports it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import httpx
import pytest

from corpid_dev.demo.demo_rp import CLIENT_ID
from corpid_dev.readiness.cases import CASES
from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERMEDIATE, LEGACY, Interface
from tests.interop.examples import KINDS, Example, example, of_kind
from tests.readiness.scene import PATIENCE, RunningDemo, demo, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator


SCOPES = ["openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name"]
NO_ISS = {"iss-altered", "iss-missing"}
UNJUDGED = {
    "current": NO_ISS,
    "intermediate": NO_ISS,
    "fapi2": {
        "id-token-other-key", "id-token-not-encrypted", "userinfo-signature", "userinfo-aud", "userinfo-iss",
    },
    "legacy": {"proof-key-fresh", "token-type", "dpop-nonce", "par-error", "par-unavailable"},
}  # fmt: skip
"""generation → the cases that it cannot have"""
EXAMPLES_COOL_DOWN = 2.0
"""seconds; the examples fetch a key set again after one"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    with demo(tmp_path_factory.mktemp("demo"), CURRENT) as made:
        yield made


def registered(client: Example, running: RunningDemo) -> None:
    """Register an example as docs/relying-parties.md does."""
    members = {"name": client.client_id, "redirect_uris": [client.redirect_uri], "jwks": client.jwks,
               "scopes": SCOPES, "services": ["HARBOUR-PERMIT"]}  # fmt: skip
    running.apply({"clients": {client.client_id: members}})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [of_kind(kind) for kind in KINDS])
def test_every_example_is_ready(running: RunningDemo, tmp_path: Path, kind: str) -> None:
    """README: an example teaches what is right."""
    with example(kind, running.issuer, tmp_path / "keys.json", f"{kind}-ready") as client:
        registered(client, running)
        report = running.checked(f"{client.home}/login", cool_down=EXAMPLES_COOL_DOWN)
    assert verdicts(report).keys() == UNJUDGED["current"]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("interface", [CURRENT, INTERMEDIATE, FAPI2, LEGACY], ids=lambda each: each.name)
def test_the_demos_website_is_ready(tmp_path: Path, interface: Interface) -> None:
    with demo(tmp_path, interface) as running:
        report = running.checked(f"{running.demo.relying_party_url}/")
    assert verdicts(report).keys() == UNJUDGED[interface.name]


def corpid(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (Path(sys.executable).with_name("corpid"), "rp-check", *words),
        env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_the_command_writes_every_report(running: RunningDemo, tmp_path: Path) -> None:
    page, document, xml = (tmp_path / name for name in ("report.html", "report.json", "report.xml"))
    done = corpid(
        f"{running.demo.relying_party_url}/", "--developer", running.demo.developer_url,
        "--only", "id-token-nonce", "--only", "state-altered", "--skip", "state-altered",
        "--html", str(page), "--json", str(document), "--junit", str(xml),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed." in done.stdout
    assert "id-token-nonce" in page.read_text()
    report = json.loads(document.read_text())
    assert [(each["id"], each["verdict"]) for each in report["cases"]] == [
        ("baseline", "passed"), ("id-token-nonce", "passed"),
    ]  # fmt: skip
    assert len(ElementTree.parse(xml).findall(".//testcase")) == 2


@pytest.mark.full
def test_the_command_says_what_is_missing(running: RunningDemo) -> None:
    nobody = corpid("http://127.0.0.1:9/", "--developer", "http://localhost:9/developer")
    assert (nobody.returncode, "start `corpid demo`" in nobody.stderr) == (1, True)
    unknown = corpid("http://127.0.0.1:9/", "--only", "no-such-case")
    assert (unknown.returncode, "no case no-such-case" in unknown.stderr) == (2, True)
    listed = corpid("--list").stdout
    assert [case_id for case_id in CASES if case_id not in listed] == []


@pytest.mark.full
def test_a_relying_party_that_does_not_answer_fails_and_nothing_else_is_judged(running: RunningDemo) -> None:
    failed = corpid("http://127.0.0.1:9/", "--developer", running.demo.developer_url, "--only", "state-altered")
    assert (failed.returncode, "1 failed, 1 not judged." in failed.stdout) == (1, True)


@pytest.mark.full
def test_orders_are_withdrawn_after_ctrl_c(running: RunningDemo) -> None:
    """D66: nothing of a check stays behind."""
    orders = f"{running.issuer}/developer/orders"

    def in_force() -> list[str]:
        return [each["order"] for each in httpx.get(orders, trust_env=False).json()["orders"]]

    words = (f"{running.demo.relying_party_url}/", "--developer", running.demo.developer_url, "--only", "token-slow")
    with subprocess.Popen(
        (Path(sys.executable).with_name("corpid"), "rp-check", *words),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as checking:  # fmt: skip
        while in_force() != ["latency"]:
            assert checking.poll() is None
            time.sleep(0.05)
        checking.send_signal(signal.SIGINT)
        _, said = checking.communicate(timeout=PATIENCE)
    assert (checking.returncode, "withdrawn" in said) == (1, True)
    assert in_force() == []


@pytest.mark.full
def test_orders_that_somebody_else_has_placed_are_not_mixed_up(running: RunningDemo) -> None:
    order = {"client_id": CLIENT_ID, "order": "maintenance", "sign_in": "urn:another"}
    placed = httpx.post(f"{running.issuer}/developer/orders", json=order, trust_env=False)
    try:
        done = corpid(f"{running.demo.relying_party_url}/", "--developer", running.demo.developer_url)
        assert (done.returncode, "maintenance" in done.stderr) == (1, True)
    finally:
        httpx.delete(f"{running.issuer}/developer/orders/{placed.json()['id']}", trust_env=False)
