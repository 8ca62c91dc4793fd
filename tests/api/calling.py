"""Calls of the admin API in a world: each with a token and a proof of its own (D59)."""

from __future__ import annotations

import json as jsons
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.oauth.api_client import API_SCOPES
from tests.protocol.api_callers import ApiCaller, registers
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from tests.protocol.provider import World

HARBOUR: Final = "209900042K"
"""the entity of the world's directory that a client is bound to"""
ORCHARD: Final = "201000001A"
ENTITY: Final = {"entity_id": "E1001", "type": "UEN", "country": "SG", "name": "Harbour Bakery"}


@dataclass(kw_only=True)
class Api:
    """A client of the API that calls it: `api.get("/entities")`. By name a header is written if_match."""

    caller: ApiCaller
    world: World
    scopes: Sequence[str] = API_SCOPES
    token: str = field(default="", init=False)

    def call(
        self, method: str, path: str, json: Any = None, /, *, body: bytes | None = None, **headers: Any
    ) -> httpx.Response:
        """One call; the answer as it came."""
        self.token = self.token or self.caller.access_token(scope=" ".join(self.scopes))
        url = f"{ISSUER}/api/v1{path}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if json is not None:
            body = jsons.dumps(json).encode()
        if body is not None:
            sent.setdefault("content-type", "application/json")
        proof = self.caller.proof(method, url.partition("?")[0], self.token)
        sent = {"authorization": f"DPoP {self.token}", "dpop": proof, **sent}
        fields = [
            (name, one) for name, value in sent.items() for one in (value if isinstance(value, list) else [value])
        ]
        return self.world.run(self.world.http.request(method, url, content=body, headers=fields))

    def get(self, path: str, **headers: Any) -> httpx.Response:
        return self.call("GET", path, **headers)

    def post(self, path: str, json: Any = None, **headers: Any) -> httpx.Response:
        return self.call("POST", path, json, **headers)

    def patch(self, path: str, json: Any, **headers: Any) -> httpx.Response:
        return self.call("PATCH", path, json, **headers)

    def delete(self, path: str, **headers: Any) -> httpx.Response:
        return self.call("DELETE", path, **headers)

    def added(self, path: str, json: Any) -> Any:
        """An object that was just added."""
        answer = self.post(path, json)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def every(self, path: str) -> list[Any]:
        """The objects of all pages of a list."""
        found, cursor = [], ""
        while True:
            answer = self.get(f"{path}{'&' if '?' in path else '?'}limit=2{cursor}")
            assert answer.status_code == 200, answer.text
            page = answer.json()
            found += page["items"]
            if "next" not in page:
                return found
            assert len(page["items"]) == 2
            cursor = f"&cursor={page['next']}"


def calling(world: World, client_id: str = "api-1", *, scopes: Sequence[str] = API_SCOPES, **members: Any) -> Api:
    """Register a client of the API, which then calls it with these scopes."""
    return Api(caller=registers(world, client_id, **members), world=world, scopes=scopes)


def bound(world: World, entity_id: str = HARBOUR, *, scopes: Sequence[str] = API_SCOPES) -> Api:
    """A client that is bound to an entity."""
    return calling(world, "bound-1", scopes=scopes, entity_id=entity_id)


def pointers(answer: httpx.Response) -> dict[str, str]:
    """Pointer or parameter → detail of each fault of a problem."""
    assert answer.headers["content-type"] == "application/problem+json"
    return {each.get("pointer", each.get("parameter")): each["detail"] for each in answer.json().get("errors", ())}
