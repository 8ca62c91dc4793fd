"""Requests of SCIM in a world: with the token of an entity, and what came back (D60)."""

from __future__ import annotations

import hashlib
import json as jsons
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.sign_in.costs import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.protocol.provider import World

ROOT: Final = f"{ISSUER}/scim/v2"
HARBOUR: Final = directory.HARBOUR.entity_id
ORCHARD: Final = directory.CLIENT_ENTITY.entity_id
USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
APPLICANT: Final = "GRANTS: Applicant"
"""the one group of the entity: a role at a service without parameters"""
YEAR: Final = 365 * 86400


def address_of(user_name: str) -> dict[str, Any]:
    """An address for an invitation, which needs one."""
    return {} if "@" in user_name else {"emails": [{"value": f"{user_name}@harbour.example"}]}


@dataclass(kw_only=True)
class Scim:
    """A provisioning client: `scim.get("/Users")`. By name a header is written if_match."""

    world: World
    token: str

    def call(
        self, method: str, path: str, json: Any = None, /, *, body: bytes | None = None, **headers: Any
    ) -> httpx.Response:
        """One request; the answer as it came."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if json is not None:
            body = jsons.dumps(json).encode()
        if body is not None:
            sent.setdefault("content-type", "application/scim+json")
        sent.setdefault("authorization", f"Bearer {self.token}")
        return self.world.run(
            self.world.http.request(method, f"{self.world.issuer}/scim/v2{path}", content=body, headers=sent)
        )

    def get(self, path: str, **headers: Any) -> httpx.Response:
        return self.call("GET", path, **headers)

    def put(self, path: str, json: Any, **headers: Any) -> httpx.Response:
        return self.call("PUT", path, json, **headers)

    def delete(self, path: str, **headers: Any) -> httpx.Response:
        return self.call("DELETE", path, **headers)

    def patch(self, path: str, *operations: dict[str, Any], **headers: Any) -> httpx.Response:
        return self.call("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)}, **headers)

    def added(self, user_name: str, **members: Any) -> Any:
        """A user that was just added."""
        answer = self.call(
            "POST", "/Users", {"schemas": [USER], "userName": user_name, **address_of(user_name), **members}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()

    def found(self, kind: str, condition: str, query: str = "") -> list[Any]:
        """The resources that a filter finds."""
        answer = self.get(f"/{kind}?filter={quote(condition)}{query}")
        assert answer.status_code == 200, answer.text
        listed = answer.json()
        assert listed["totalResults"] == len(listed["Resources"])
        return list(listed["Resources"])

    def group(self, name: str = APPLICANT) -> Any:
        """A group by its name, with its members."""
        (found,) = self.found("Groups", f'displayName eq "{name}"')
        return found

    def members(self, name: str = APPLICANT) -> set[str]:
        return {each["value"] for each in self.group(name).get("members", ())}


def token_of(entity_id: str, world: World, token_id: str = "") -> tuple[str, RegisteredProvisioningToken]:
    """A token of an entity, and its record."""
    name = token_id or f"t-{entity_id}"
    text = hashlib.sha256(name.encode()).hexdigest()[:43]
    record = RegisteredProvisioningToken(
        token_id=name,
        entity_id=entity_id,
        name="Identity service",
        token_hash=hashlib.sha256(text.encode()).hexdigest(),
        created_at=int(world.clock.now),
        expires_at=int(world.clock.now) + YEAR,
        created_by="command:lee@node1",
    )
    return text, record


def provisioning(world: World, entity_id: str = HARBOUR, token_id: str = "") -> Scim:
    """A client with a token of an entity."""
    text, record = token_of(entity_id, world, token_id)
    world.writes(record)
    return Scim(world=world, token=text)


@contextmanager
def metered(world: World) -> Iterator[Meter]:
    """Count what this world's requests cost, until the context ends: others use it after this test."""
    meter, served = Meter(), world.application.asgi
    meter.watch(world)  # type: ignore[arg-type]
    world.http = world.running.connect()
    try:
        yield meter
    finally:
        object.__setattr__(world.application, "asgi", served)
        world.http = world.running.connect()


def refused(answer: httpx.Response, status: int, scim_type: str | None = None) -> str:
    """The detail of an error document of this status and type (RFC 7644 §3.12)."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/scim+json"
    told = answer.json()
    assert told["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert told["status"] == str(status)
    assert told.get("scimType") == scim_type, told
    return str(told["detail"])
