"""Several issuers behind the shipped proxy configurations, on two nodes: by a further name, and by path (D62)."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from corpid_dev.relying_party.interfaces import INTERFACES
from tests.house.source import ROOT
from tests.operate.nodes import two_nodes, whole_flow
from tests.operate.proxies import SHIPPED, proxy
from tests.web.processes import DIRECTORY, RINA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

OPERATE: Final = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
LEGACY_HOST: Final = "legacy.localhost"
ISSUERS: Final = (
    {"id": "legacy", "base_url": f"https://{LEGACY_HOST}:PORT", "generations": ["legacy"]},
    {"id": "fapi", "base_url": "https://localhost:PORT/fapi", "generations": ["fapi2"]},
)


def _directory() -> dict[str, Any]:
    """A client that is on its way from LEGACY to CURRENT."""
    clients: Any = DIRECTORY["clients"]
    client = {**clients["rp-1"], "issuers": ["first", "legacy"], "generations": ["legacy", "current"]}
    return {**DIRECTORY, "clients": {"rp-1": {**client, "legacy_until": "2099-12-31"}}}


def _with_the_further_name(name: str) -> Callable[[str], str]:
    """The change to the shipped configuration that docs/operate.md, "Several issuers", names."""

    def nginx(text: str) -> str:
        blocks = text[text.index("\nserver {") :]
        return text + blocks.replace("server_name localhost", f"server_name {LEGACY_HOST}")

    def haproxy(text: str) -> str:
        [general] = [line for line in text.splitlines(keepends=True) if "http-request redirect" in line]
        [own] = [line for line in OPERATE.splitlines(keepends=True) if "http-request redirect" in line]
        own = own.replace("legacy.login.example.org", LEGACY_HOST)
        return text.replace(general, own + general)

    return {"nginx": nginx, "haproxy": haproxy}[name]


@pytest.fixture
def _names_below_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are this machine (RFC 6761 §6.3), which not every resolver knows."""
    resolver = socket.getaddrinfo

    def found(host: Any, *arguments: Any, **options: Any) -> Any:
        return resolver("localhost" if host in {LEGACY_HOST, LEGACY_HOST.encode()} else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.usefixtures("_names_below_localhost")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_client_signs_in_at_two_names_through_the_shipped_proxy(tmp_path: Path, name: str) -> None:
    """D62: CURRENT at one name and LEGACY at the other, each answered by both nodes; a name that is no issuer's is refused."""
    with (
        two_nodes(tmp_path, _directory(), ISSUERS) as nodes,
        proxy(
            name,
            tmp_path / "proxy",
            nodes.certified,
            ports=nodes.ports,
            nodes=nodes.node_ports,
            change=_with_the_further_name(name),
        ),
    ):
        secure, plain = nodes.ports
        first, legacy, fapi = nodes.issuer, f"https://{LEGACY_HOST}:{secure}", f"{nodes.issuer}/fapi"
        rina = replace(RINA)
        modern = asyncio.run(whole_flow(nodes, person=rina))
        old = asyncio.run(whole_flow(nodes, legacy, INTERFACES["legacy"], rina))
        trusting = ssl.create_default_context(cafile=str(nodes.certified.authority))
        with httpx.Client(verify=trusting, trust_env=False, timeout=30) as http:
            documents = [http.get(f"{url}/.well-known/openid-configuration").json() for url in (first, legacy, fapi)]
            elsewhere = http.get(f"{first}/.well-known/openid-configuration", headers={"host": "else.localhost"})
            led = [http.get(f"http://{host}:{plain}/x?y").headers["location"] for host in ("localhost", LEGACY_HOST)]
    assert (modern["iss"], old["iss"]) == (first, legacy)
    assert modern["auth_info"] == old["AuthInfo"]
    assert [document["issuer"] for document in documents] == [first, legacy, fapi]
    assert elsewhere.status_code == 421
    assert [urlsplit(where)._replace(netloc=urlsplit(where).hostname or "").geturl() for where in led] == [
        "https://localhost/x?y",
        f"https://{LEGACY_HOST}/x?y",
    ]
    for number in range(2):
        lines = (tmp_path / f"node-{number}.log").read_text(encoding="utf-8").splitlines()
        assert {"first", "legacy"} <= {json.loads(line).get("issuer") for line in lines}, "both nodes answer both"
