"""What the shipped proxies answer while no node can be reached."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.rules.oauth.discovery import AUTHORIZATION_PATH, DISCOVERY_PATH, PAR_PATH, TOKEN_PATH
from corpid.web.http.middleware import HSTS, PAGE_HEADERS
from tests.machine import free_port
from tests.operate.certificates import certified
from tests.operate.proxies import SHIPPED, proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
"""sent by the JDK's own client for everything"""

PROGRAMS = [
    ("POST", PAR_PATH, "*/*"),
    ("POST", TOKEN_PATH, JAVA),
    ("GET", DISCOVERY_PATH, JAVA),
    ("GET", "/userinfo", "application/json"),
    ("GET", "/id/userinfo", JAVA),
    ("GET", "/api/v1/people", BROWSER),
    ("PATCH", "/scim/v2/Users/1", JAVA),
    ("POST", "/sign-in/password", "*/*"),
]
PEOPLE = [("GET", "/account"), ("GET", f"{AUTHORIZATION_PATH}?client_id=rp-1"), ("POST", "/sign-in/password")]


@pytest.fixture(scope="module", params=SHIPPED)
def without_nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A caller of a proxy whose nodes do not listen."""
    directory = tmp_path_factory.mktemp(request.param)
    own = certified(directory / "tls")
    ports, nodes = (free_port(), free_port()), (free_port(), free_port())
    trusting = ssl.create_default_context(cafile=str(own.authority))
    with (
        proxy(request.param, directory / "proxy", own, ports=ports, nodes=nodes),
        httpx.Client(base_url=f"https://localhost:{ports[0]}", verify=trusting, trust_env=False) as client,
    ):
        yield client


def expected_headers(response: httpx.Response) -> None:
    """503 until later, kept by nobody, and protected as a page of CorpID."""
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert response.headers["cache-control"] == "no-store"
    for name, value in (*PAGE_HEADERS, HSTS):
        if name != b"content-security-policy":
            assert response.headers.get_list(name.decode()) == [value.decode()]
    assert "x-corpid-down" not in response.headers


@pytest.mark.parametrize(("method", "path", "accept"), PROGRAMS)
def test_programs_get_json_that_says_to_come_again(
    without_nodes: httpx.Client, method: str, path: str, accept: str
) -> None:
    """RFC 6749 4.1.2.1 `temporarily_unavailable`, also for programs that accept HTML without meaning it."""
    response = without_nodes.request(method, path, headers={"Accept": accept})
    expected_headers(response)
    assert response.headers.get_list("content-type") == ["application/json"]
    assert response.json()["error"] == "temporarily_unavailable"


@pytest.mark.parametrize(("method", "path"), PEOPLE)
def test_people_get_a_page_in_four_languages(without_nodes: httpx.Client, method: str, path: str) -> None:
    response = without_nodes.request(method, path, headers={"Accept": BROWSER})
    expected_headers(response)
    assert response.headers.get_list("content-type") == ["text/html; charset=utf-8"]
    assert re.findall(r' lang="([\w-]+)"', response.text) == ["en", "zh-Hans", "ms", "ta"]
    [style] = re.findall(r"<style>(.*?)</style>", response.text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in response.headers["content-security-policy"]


def test_the_answers_of_both_proxies_have_the_same_texts() -> None:
    nginx, haproxy = (path.with_name("corpid-down.map").read_text(encoding="utf-8") for path in SHIPPED.values())
    quoted = re.findall(r"^(json|html) '([^']*)';$", nginx, flags=re.MULTILINE)
    lines = [line.split(" ", maxsplit=1) for line in haproxy.splitlines() if not line.startswith("#")]
    assert [[kind, " ".join(text.split())] for kind, text in quoted] == lines
