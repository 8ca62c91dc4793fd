"""Authorization server metadata at its own path, over real sockets (RFC 8414 §3)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from corpid import settings
from corpid_dev.demo.demo import next_free
from tests.protocol.expectations import EVERY
from tests.tiers import first_or_full
from tests.world.provider import RunningProvider, served, started

if TYPE_CHECKING:
    from pathlib import Path

WELL_KNOWN = "/.well-known/oauth-authorization-server"


def of_rfc_8414(issuer: str) -> str:
    """RFC 8414 §3.1: inserted between the host and the path of the issuer."""
    parts = urlsplit(issuer)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


def fetched(data_dir: Path, path: str, further: dict[str, str], **chosen: Any) -> dict[str, dict[str, Any]]:
    """What each issuer serves at both addresses, and at the addresses that are none; by issuer's path."""

    async def main() -> dict[str, dict[str, Any]]:
        port, sockets = next_free("localhost", 0)
        host = f"http://localhost:{port}"
        tables = [
            {"id": f"further-{number}", "base_url": host + below, "generations": [generation]}
            for number, (below, generation) in enumerate(further.items())
        ]
        more = {"issuers": tables} if tables else {}
        loaded = settings.load(
            data_dir=data_dir, base_url=host + path, host="localhost", port=port, developer_mode=True, **more, **chosen
        )
        async with (
            started(RunningProvider, loaded, clock=time.time) as made,
            served(made.application.asgi, sockets, drain_seconds=0.1),
            httpx.AsyncClient(trust_env=False) as http,
        ):
            return {below: await _of_issuer(http, host + below) for below in (path, *further)}

    return asyncio.run(main())


async def _of_issuer(http: httpx.AsyncClient, issuer: str) -> dict[str, Any]:
    openid, oauth = f"{issuer}/.well-known/openid-configuration", of_rfc_8414(issuer)
    answers = [await http.get(url) for url in (openid, oauth)]
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["content-type"].startswith("application/json")
    assert answers[1].headers["access-control-allow-origin"] == "*"
    assert (await http.get(f"{oauth}/")).status_code == 404
    if urlsplit(issuer).path:
        assert (await http.get(f"{issuer}{WELL_KNOWN}")).status_code == 404
    document: dict[str, Any] = answers[1].json()
    assert document["issuer"] == issuer
    return document


@pytest.mark.parametrize("path", first_or_full(["/corp/id", ""]))
@pytest.mark.parametrize("generation", first_or_full(EVERY, first="current"))
def test_the_metadata_are_the_discovery_document_at_their_own_path(tmp_path: Path, generation: str, path: str) -> None:
    """RFC 8414 §3.1, §3.3: the issuer in it is the one whose path was inserted; D32."""
    [document] = fetched(tmp_path, path, {}, generations=(generation,)).values()
    assert ("pushed_authorization_request_endpoint" in document) is (generation != "legacy")


def test_each_issuer_of_a_deployment_has_its_own(tmp_path: Path) -> None:
    """D62, RFC 8414 §3.1: several on one host are told apart by the path after the well-known one."""
    further = {"/before": "legacy", "/corp/fapi": "fapi2"}
    documents = fetched(tmp_path, "/corp", further, generations=("current",))
    assert list(documents) == ["/corp", "/before", "/corp/fapi"]
    documents = fetched(tmp_path / "root", "", {"/before": "legacy"}, generations=("current",))
    assert [each["require_pushed_authorization_requests"] for each in list(documents.values())[:1]] == [True]
