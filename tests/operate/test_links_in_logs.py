"""A link followed in Chromium through each proxy: no log holds its secret, whatever the proxy logs (D48)."""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from playwright.sync_api import sync_playwright

from corpid.rules.authentication import records
from tests.browser.stage import FLAGS, HEADLESS_SHELL, shows
from tests.cli.test_commands import value
from tests.operate.proxies import SHIPPED, proxy
from tests.web.processes import command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operate.nodes import Nodes

OLD_SECRET: Final = "0ldSecretOfALinkThatWentOutBefore"
IN_QUERY: Final = "queryIsNobodysBusiness"
TALKATIVE: Final = {
    "nginx": ('"$request_method $logged_path"', '"$request" $request_uri from=$http_referer'),
    "haproxy": ("%[var(txn.logged_path)]", "%r %[capture.req.uri] from=%[capture.req.hdr(0)]"),
}

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


def _invited(nodes: Nodes, user_name: str) -> str:
    """The link of a new person, as the command line shows it."""
    done = command(nodes.directory, "user", "add", user_name, "--name", "Nina", "--entity", "A1", **nodes.settings)
    assert done.returncode == 0, done.stderr
    return value(done.stdout, "Link")


def _followed(url: str) -> None:
    """In Chromium, to the first page of the enrolment."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=HEADLESS_SHELL, args=FLAGS)
        page = chromium.new_context(ignore_https_errors=True).new_page()
        page.goto(url)
        shows(page, "Set up your sign-in")
        page.get_by_role("button", name="Continue").click()
        shows(page, "Choose how you sign in")
        chromium.close()


def _logs(nodes: Nodes, directory: Path) -> str:
    """What the proxy and both nodes have logged."""
    files = [*directory.glob("access.log"), directory / "output", *nodes.directory.glob("node-*.log")]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _holds(logs: str, url: str) -> bool:
    return records.canonical(url) in logs.upper().replace("-", "")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_proxy_logs_neither_secrets_in_paths_nor_queries(nodes: Nodes, tmp_path: Path, name: str) -> None:
    """D48: also of links as they were before, and on port 80, which leads to the configured name."""
    directory, url = tmp_path / "proxy", _invited(nodes, f"{name}-shipped")
    trusting = ssl.create_default_context(cafile=str(nodes.certified.authority))
    old = f"/enrol/{OLD_SECRET}?state={IN_QUERY}"
    with (
        proxy(name, directory, nodes.certified, ports=nodes.ports, nodes=nodes.node_ports),
        httpx.Client(verify=trusting, trust_env=False) as http,
    ):
        _followed(url)
        answer = http.get(nodes.issuer + old, headers={"Accept": "text/html"})
        assert (answer.status_code, "Ask for a new link" in answer.text) == (410, True)
        moved = http.get(f"http://127.0.0.1:{nodes.ports[1]}{old}", headers={"Host": "elsewhere.example"})
    assert moved.status_code == 301
    assert moved.headers["location"].startswith("https://localhost")
    assert moved.headers["location"].endswith(old)
    logs = _logs(nodes, directory)
    assert "/enrol" in (directory / ("access.log" if name == "nginx" else "output")).read_text(encoding="utf-8")
    assert not _holds(logs, url)
    assert OLD_SECRET not in logs
    assert IN_QUERY not in logs


@pytest.mark.parametrize("name", SHIPPED)
def test_a_proxy_that_logs_all_it_can_does_not_log_the_secret_of_a_link(
    nodes: Nodes, tmp_path: Path, name: str
) -> None:
    """D48: by design, not by log format."""
    directory, url = tmp_path / "proxy", _invited(nodes, f"{name}-talkative")

    def changed(text: str) -> str:
        shipped, written = TALKATIVE[name]
        return text.replace(shipped, written).replace(
            "frontend public\n", "frontend public\n    http-request capture req.hdr(Referer) len 200\n"
        )

    with proxy(name, directory, nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=changed):
        _followed(url)
    logs = _logs(nodes, directory)
    assert re.search(r"POST \S*/enrol HTTP/", logs)
    assert f"from={nodes.issuer}/enrol" in logs
    assert not _holds(logs, url)
