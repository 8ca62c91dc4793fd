"""What a portal asks the admin API for, through HTTP, on a large database beside a small one (D59)."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from benchmarks import fill, people, statements
from benchmarks.directory_lists import BY, CROWD_ID, Places
from benchmarks.in_turn import Call, compared
from benchmarks.relying_party import FORM_HEADER, authentication, bound, generate_key, open_key, proof, public_jwk
from benchmarks.steps import require
from corpid.flows.directory.clients import add_api_client
from corpid.flows.directory.lists import format_place
from corpid.rules.oauth.api_client import API_SCOPES
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.stores.sql.open import open_postgresql
from corpid.web.api.calls import write_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import asyncpg

    from benchmarks.http_client import Answer
    from benchmarks.stage import Stage
    from corpid.stores.encryption_at_rest import SecretCipher

CLIENT_ID = "benchmark"
_JSON = "Content-Type: application/json\r\n"
_WHATEVER_IS_THERE = "If-Match: *\r\n"
_FEW = 5
"""of a page of what the small database has little of"""


class Portal:
    """A client of the API with every scope, and what its calls cost. An in_turn.Meter."""

    def __init__(self, stage: Stage, key: bytes, counting: asyncpg.Connection, database: str) -> None:
        self.asked: list[dict[str, Any]] = []
        """the statements on PostgreSQL of all calls"""
        self._stage = stage
        self._signing, self._bound_to = open_key(key), open_key(generate_key())
        self._jwk = public_jwk(self._bound_to)
        self._counting, self._database = counting, database
        self._issuer = f"{stage.maker.endpoints.issuer}/api"
        self._count: statements.Count | None = None
        self._loop_seconds = 0.0
        self._token = ""

    async def renew(self) -> None:
        """Fetch a token, which is good for ten minutes. Raises steps.Wrong."""
        form = {"grant_type": "client_credentials", **authentication(self._signing, CLIENT_ID, self._issuer)}
        url = f"{self._issuer}/token"
        head = f"{FORM_HEADER}DPoP: {proof(self._bound_to, self._jwk, 'POST', url)}\r\n"
        answer = await self._stage.load.client.fetch(url, "POST", head, urlencode(form).encode())
        self._token = _content("token of the API", answer, 200)["access_token"]

    async def begin(self) -> None:
        await self.renew()
        self._count = statements.Count(self._counting, self._database)
        await self._count.begin()
        self._loop_seconds = self._stage.provider.loop_seconds()

    async def end(self, calls: int) -> dict[str, float]:
        spent = self._stage.provider.loop_seconds() - self._loop_seconds
        assert self._count is not None
        await self._count.note(calls)
        found = self._count.document()
        self.asked += found["statements"]
        return {"cpu_ms": round(1000 * spent / calls, 3), "database_ms": found["ms_each"]}

    async def call(
        self, name: str, method: str, path: str, body: dict[str, Any] | None = None, status: int = 200, head: str = ""
    ) -> tuple[float, Any]:
        """Seconds until the answer, which has been judged, and its content. Raises steps.Wrong."""
        url = f"{self._issuer}/v1/{path}"
        lines = bound(self._bound_to, self._jwk, method, url, self._token) + head + (_JSON if body else "")
        content = json.dumps(body).encode() if body else None
        begun = time.perf_counter()
        answer = await self._stage.load.client.fetch(url, method, lines, content)
        spent = time.perf_counter() - begun
        return spent, _content(name, answer, status)


def _content(name: str, answer: Answer, status: int) -> Any:
    require(name, answer.status == status, f"status {answer.status}: {answer.body[:200]!r}")
    return json.loads(answer.body) if answer.body else {}


async def register(dsn: str, cipher: SecretCipher) -> bytes:
    """The private key of a client of the API that is registered in this database, with every scope."""
    key = generate_key()
    jwk = {**public_jwk(open_key(key)), "use": "sig", "alg": "ES256", "kid": "sig"}
    members = {"name": "Benchmark", "scopes": list(API_SCOPES), "jwks": json.dumps({"keys": [jwk]})}
    stores = await open_postgresql(dsn, cipher, time.time)
    try:
        await add_api_client(
            stores.registry, CLIENT_ID, members, entity_id="", actor=BY, rules=PLAIN_RULES, now=time.time()
        )
    finally:
        await stores.close()
    return key


async def figures(portals: Mapping[str, tuple[Portal, Places]], rounds: int) -> dict[str, dict[str, Any]]:
    """Each kind of call, by name, on both databases in turn. Raises steps.Wrong, also for other numbers of items."""
    for portal, _ in portals.values():
        await portal.renew()
    calls = {name: _calls(portal, places) for name, (portal, places) in portals.items()}
    return await compared(calls, {name: portal for name, (portal, _) in portals.items()}, rounds)


def _calls(portal: Portal, places: Places) -> dict[str, Call]:
    user, member = places.user, places.member

    def at(*parts: str) -> str:
        return f"cursor={write_cursor((format_place(parts),))}"

    return {
        "people": _list(portal, lambda n: f"users?{at(user(n))}"),
        "people by the beginning of their user name": _list(portal, lambda n: f"users?search={user(n)[:-1]}"),
        "people by the beginning of their name": _list(
            portal, lambda n: f"users?{urlencode({'name': places.members_name(n)})}"
        ),
        "people of the largest entity": _list(portal, lambda n: f"users?entity={CROWD_ID}&{at(_identifier(n))}"),
        "people of the largest entity by the beginning of their user name": _list(
            portal, lambda n: f"users?entity={CROWD_ID}&search={member(n)[:-1]}"
        ),
        "a person": _one(portal, lambda n: f"users/{fill.user_id(user(n))}"),
        "a person renamed": _renaming(portal, places),
        "a person's memberships": _list(portal, lambda n: f"memberships?user={user(n)}"),
        "memberships of the largest entity": _list(
            portal, lambda n: f"memberships?entity={CROWD_ID}&{at(_identifier(n))}"
        ),
        "entities": _list(portal, lambda n: f"entities?{at(places.entity(n))}"),
        "an entity": _one(portal, lambda n: f"entities/{places.entity(n)}"),
        "services": _list(portal, lambda _: "services"),
        "a person's roles": _list(portal, lambda n: f"assignments?user={user(n)}"),
        "roles for an entity": _list(portal, lambda n: f"assignments?entity={places.firm(n)}"),
        "roles for the largest entity": _list(portal, lambda _: f"assignments?entity={CROWD_ID}"),
        "roles for the largest entity at a service": _list(
            portal, lambda _: f"assignments?entity={CROWD_ID}&service={people.SERVICE}"
        ),
        "roles at a service": _list(
            portal, lambda n: f"assignments?service={people.SERVICE}&{at(fill.user_id(user(n)), *[''] * 5)}"
        ),
        "roles at a service with few": _list(portal, lambda n: f"assignments?service={fill.service(n)}&limit={_FEW}"),
        **_role(portal, places),
        "relying parties": _list(portal, lambda n: f"clients?limit={_FEW}&{at(fill.client_id(n % _FEW))}"),
        "the audit": _list(portal, lambda _: "audit"),
        "the audit of the largest entity": _list(portal, lambda _: f"audit?entity={CROWD_ID}"),
        "the audit of a person": _list(
            portal, lambda n: f"audit?{urlencode({'object': fill.user_id(user(n)), 'action': 'user.update'})}"
        ),
    }


def _identifier(number: int) -> str:
    """Before a random identifier in the first half of all that there can be."""
    return f"{number * 7919 % 0x8000:04x}"


def _list(portal: Portal, path: Callable[[int], str]) -> Call:
    async def call(number: int) -> tuple[float, int]:
        spent, content = await portal.call("list", "GET", path(number))
        return spent, len(content["items"])

    return call


def _one(portal: Portal, path: Callable[[int], str]) -> Call:
    async def call(number: int) -> tuple[float, int]:
        spent, content = await portal.call("object", "GET", path(number))
        return spent, int("etag" in content)

    return call


def _renaming(portal: Portal, places: Places) -> Call:
    async def call(number: int) -> tuple[float, int]:
        path, name = f"users/{fill.user_id(places.user(number))}", f"Renamed {number}"
        spent, content = await portal.call("renaming", "PATCH", path, {"name": name}, head=_WHATEVER_IS_THERE)
        return spent, int(content["name"] == name)

    return call


def _role(portal: Portal, places: Places) -> dict[str, Call]:
    """A role given, and each of these taken afterwards."""
    given: list[str] = []

    async def give(number: int) -> tuple[float, int]:
        entity = fill.own_entities(places.person(number), places.size)[0]
        role = {"user": places.user(number), "entity": entity, "service": people.SERVICE, "role": "Maker"}
        spent, content = await portal.call("role", "POST", "assignments", {**role, "ref": "benchmark"}, status=201)
        given.append(content["id"])
        return spent, 1

    async def take(_: int) -> tuple[float, int]:
        path = f"assignments/{quote(given.pop())}"
        spent, _ = await portal.call("role", "DELETE", path, status=204, head=_WHATEVER_IS_THERE)
        return spent, 1

    return {"a role given": give, "a role taken": take}
