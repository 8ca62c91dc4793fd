"""Clients of the admin API in a world: registered there, honest unless a test says in which place they are not (D59)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpid.flows.oauth.token import verify
from corpid.flows.request_context import request_context
from corpid.rules.oauth.api_client import API_SCOPES, RegisteredApiClient
from corpid_dev.relying_party.relying_party import ASSERTION_TYPE, Requests, Values
from tests.protocol.deployment import ISSUER
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    import httpx

    from corpid.rules.directory.access import ApiClient
    from tests.protocol.provider import World

API_ISSUER: Final = f"{ISSUER}/api"
API_TOKEN: Final = f"{ISSUER}/api/token"
METADATA: Final = f"{ISSUER}/.well-known/oauth-authorization-server/api"
PATH: Final = "/api/v1/entities/209900042K"
"""of a request to the API"""


def registered(client_id: str = "api-1", **members: Any) -> RegisteredApiClient:
    """A client of the API as it is stored, with every scope."""
    given = {"jwks": json.dumps(rp_keys(client_id).public()), **members}
    known: dict[str, Any] = {"name": f"API client {client_id}", "scopes": API_SCOPES, **given}
    return RegisteredApiClient(client_id=client_id, **known)


@dataclass(kw_only=True)
class ApiCaller(Requests):
    """A client of the API: it asks for a token, and calls with it."""

    world: World

    def token_parameters(self) -> dict[str, Any]:
        """The honest form of a token request."""
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self.assertion(),
        }

    def ask(self, headers: Values | None = None, /, *, body: bytes | None = None, **form: Any) -> httpx.Response:
        """Send a token request; the answer as it came."""
        sent = {"DPoP": self.proof("POST", self._token_url), **(headers or {})}
        parameters = {**self.token_parameters(), **form}
        return self.world.run(self._post("Token", self._token_url, parameters, sent, body))

    def access_token(self, **form: Any) -> str:
        """A token that was just issued."""
        answer = self.ask(**form)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def verified(
        self, token: str, *, method: str = "GET", path: str = PATH, scheme: str = "DPoP", **proof: Any
    ) -> ApiClient:
        """Who calls, as the API sees it; `proof` are overrides of the proof. Raises OAuthError."""
        headers = [self.proof(method, f"{ISSUER}{path}", token, **proof)]
        return self.shown([f"{scheme} {token}"], headers, method=method, path=path)

    def shown(self, authorization: list[str], proofs: list[str], *, method: str = "GET", path: str = PATH) -> ApiClient:
        """As `verified`, with these headers."""

        async def look() -> ApiClient:
            context = await request_context(self.world.provider, request_id="r" * 16, address="192.0.2.7")
            return await verify(
                context,
                method=method,
                path=path,
                authorization=[each.encode() for each in authorization],
                proofs=[each.encode() for each in proofs],
            )

        return self.world.run(look())

    @property
    def _token_url(self) -> str:
        return f"{self.issuer}/token"


def caller(world: World, client_id: str = "api-1") -> ApiCaller:
    """Whoever has the keys of a client."""
    return ApiCaller(
        client_id=client_id,
        issuer=f"{world.issuer}/api",
        http=world.http,
        clock=world.clock,
        keys=rp_keys(client_id),
        world=world,
    )


def registers(world: World, client_id: str = "api-1", **members: Any) -> ApiCaller:
    """Register a client of the API, or change it, in another process; five seconds pass (D50)."""
    world.writes(registered(client_id, **members))
    return caller(world, client_id)
