"""Several issuers behind the shipped proxy configurations: by path, and by a further name (D62)."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tests.machine import free_port
from tests.operate.certificates import certified
from tests.operate.proxies import SHIPPED, proxy
from tests.web.processes import serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", SHIPPED)
def test_issuers_are_told_apart_behind_the_shipped_proxy(tmp_path: Path, name: str) -> None:
    """docs/operate.md, "Several issuers": Host arrives as the caller sent it; a name that is no issuer's is refused."""
    own = certified(tmp_path / "tls")
    secure, plain, node = (free_port() for _ in range(3))
    first, old, fapi = (
        f"https://{rest}" for rest in (f"localhost:{secure}", f"localhost:{secure}/old", f"fapi.localhost:{secure}")
    )
    tables = [
        {"id": "old", "base_url": old, "generations": ["legacy"]},
        {"id": "fapi", "base_url": fapi, "generations": ["fapi2"]},
    ]
    chosen = {"base_url": first, "port": str(node), "trusted_proxies": "127.0.0.1", "issuers": json.dumps(tables)}
    trusting = ssl.create_default_context(cafile=str(own.authority))
    with (
        serving(tmp_path, **chosen),
        proxy(name, tmp_path / "proxy", own, ports=(secure, plain), nodes=(node, node)),
        httpx.Client(verify=trusting, trust_env=False, timeout=30) as http,
    ):

        def asked(url: str) -> httpx.Response:
            parts = urlsplit(url)
            where = f"{first}{parts.path}/.well-known/openid-configuration"
            return http.get(where, headers={"host": parts.netloc})

        assert [asked(url).json()["issuer"] for url in (first, old, fapi)] == [first, old, fapi]
        assert asked(f"https://else.localhost:{secure}").status_code == 421
