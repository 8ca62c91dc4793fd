"""A relying party that serves its key set from the one thread that also pushes, as the sample for Java does.

It sends what that sample sends, so that its requests are tried where there is no Java.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import httpx

from corpid.settings.fields import PUBLIC_SERVICE
from corpid_dev.relying_party.interfaces import CURRENT
from corpid_dev.relying_party.relying_party import RelyingParty
from tests.protocol.test_demo_relying_parties import READS_DATA, nimbus_assertion, nimbus_proof

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLISHED = {"authorization_response_iss_parameter_supported": PUBLIC_SERVICE.settings["return_iss"]}


class OneThread(HTTPServer):
    """It handles one request at a time; whatever it asks of the provider, it waits for."""

    def __init__(self, port: int, issuer: str, client_id: str, scope: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.loop = asyncio.new_event_loop()
        self.rp = RelyingParty(
            client_id=client_id,
            issuer=issuer,
            http=httpx.AsyncClient(trust_env=False),
            interface=replace(CURRENT, alone={**CURRENT.alone, **PUBLISHED}),
            redirect_uri=f"http://localhost:{port}/callback",
            scope=scope,
            id_token_enc="A256CBC-HS512",
            userinfo_enc="A256GCM",
            stringified_blocks=True,
        )

    async def login(self) -> str:
        """The address to send the browser to."""
        self.rp.restart()
        to = (await self.rp.discover())["pushed_authorization_request_endpoint"]
        form = {"client_assertion": nimbus_assertion(self.rp, to), **READS_DATA}
        pushed = await self.rp.push(form, nimbus_proof(self.rp, "POST", to))
        assert pushed.status_code == 201, pushed.text
        self.rp.sign_in.request_uri = pushed.json()["request_uri"]
        return self.rp.authorization_url()

    async def callback(self, url: str) -> dict[str, Any]:
        """The verified claims of the ID token and of userinfo."""
        to = self.rp.metadata["token_endpoint"]
        form = {"client_assertion": nimbus_assertion(self.rp, to), "client_id": None}
        answer = await self.rp.token(self.rp.callback(url), form, nimbus_proof(self.rp, "POST", to))
        tokens = await self.rp.believe(answer)
        return {**tokens.id_token, **await self.rp.userinfo()}


class _Handler(BaseHTTPRequestHandler):
    server: OneThread

    def do_GET(self) -> None:
        text, to = "", None
        path = self.path.partition("?")[0]
        try:
            if path == "/.well-known/jwks.json":
                text = json.dumps(self.server.rp.jwks())
            elif path == "/login":
                to = self.server.loop.run_until_complete(self.server.login())
            else:
                url = f"{self.server.rp.redirect_uri.removesuffix('/callback')}{self.path}"
                text = json.dumps(self.server.loop.run_until_complete(self.server.callback(url)))
        except Exception as error:  # noqa: BLE001 - shown to the test
            self.send_response(401)
            text = str(error)
        else:
            self.send_response(302 if to else 200)
        if to:
            self.send_header("Location", to)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def one_thread(port: int, issuer: str, client_id: str, scope: str) -> Iterator[str]:
    """The address of a running one."""
    with OneThread(port, issuer, client_id, scope) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{port}"
        finally:
            server.shutdown()
            thread.join()
            server.loop.run_until_complete(server.rp.http.aclose())
            server.loop.close()
