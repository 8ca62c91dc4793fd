"""A browser and `corpid demo --tls`: a relying party that has stayed on http is reached from https pages."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from playwright.sync_api import Browser, expect

from corpid.rules.oauth.discovery import AUTHORIZATION_PATH
from corpid_dev.relying_party.interfaces import LEGACY
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.verification import Callback
from tests.interop.demonstration import demonstrated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Callback(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>Back again</h1>")

    def do_GET(self) -> None:
        if "?" in self.path:
            self.server.seen.append(Callback(f"http://x{self.path}"))  # type: ignore[attr-defined]
        self._answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.seen.append(Callback(f"http://x{self.path}", parse_qsl(body)))  # type: ignore[attr-defined]
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def website() -> Iterator[tuple[str, list[Callback]]]:
    """The callback of a relying party on plain http, and what came to it."""
    with HTTPServer(("127.0.0.1", 0), _Callback) as server:
        seen: list[Callback] = []
        server.seen = seen  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://localhost:{server.server_port}/callback", seen
        finally:
            server.shutdown()


@pytest.mark.full
@pytest.mark.parametrize("mode", ["query", "form_post"])
def test_https_pages_lead_back_to_an_http_website_of_this_machine(mode: str, tmp_path: Path, chromium: Browser) -> None:
    """D37, D38: neither the policy of our pages nor the browser's rules for mixed content stop it."""
    keys = RelyingPartyKeys.generate()
    with website() as (callback, seen), demonstrated(tmp_path, interface=LEGACY, tls=True) as demo:
        order = {
            "client_id": "http-rp", "name": "RP", "redirect_uris": [callback], "jwks": keys.public(),
            "scopes": ["openid"], "generations": ["legacy"], "legacy_until": "2999-12-31",
        }  # fmt: skip
        assert demo.hosting.certificate is not None
        with httpx.Client(verify=demo.hosting.certificate.client_context(), trust_env=False) as http:
            registered = http.post(f"{demo.issuer}/developer/clients", json=order)
        assert registered.status_code == 201, registered.text

        request = {
            "client_id": "http-rp", "redirect_uri": callback, "response_type": "code", "scope": "openid", "state": "s" * 30,
            "nonce": "n" * 30, "code_challenge": "c" * 43, "code_challenge_method": "S256", "response_mode": mode,
        }  # fmt: skip
        with chromium.new_context(ignore_https_errors=True) as context:
            page = context.new_page()
            page.goto(f"{demo.issuer}{AUTHORIZATION_PATH}?{urlencode(request)}")
            page.get_by_role("button", name="Rina Example").click()
            expect(page.get_by_role("heading", name="Back again")).to_be_visible()
            assert {each["name"]: each["secure"] for each in context.cookies()} == {"__Host-corpid": True}
        [answer] = seen
        assert {"code", "state"} <= dict(answer.carried()[mode]).keys()
