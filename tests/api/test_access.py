"""Who may call what: scopes, and clients that are bound to an entity (D59, D61)."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx
import pytest

from corpid.rules.directory.access import ALL_SCOPES
from corpid.rules.directory.objects import RESOURCES
from corpid.web.api.operations import OPERATIONS, Operation
from corpid.web.http.connections import OVERLOADED
from tests.api.calling import ENTITY, HARBOUR, ORCHARD, Api, bound, calling, pointers
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import ALICE, CAROL
from tests.protocol.provider import World


def addressed(operation: Operation) -> str:
    return operation.path.replace("{id}", "nothing")


def test_every_operation_refuses_a_token_without_its_scope_before_anything_else(world: World) -> None:
    """D59: derived from the table of operations, so that one that is new is looked at."""
    by_scope = {
        scope: calling(world, f"lacks-{number}", scopes=sorted(ALL_SCOPES - {scope}))
        for number, scope in enumerate(sorted(ALL_SCOPES))
    }
    assert {operation.scope for operation in OPERATIONS} == {*ALL_SCOPES, ""}
    for operation in OPERATIONS:
        if not operation.scope:
            continue
        answer = by_scope[operation.scope].call(operation.method, addressed(operation), body=b"\xff")
        assert answer.status_code == 403, operation.name
        assert f'error="insufficient_scope", scope="{operation.scope}"' in answer.headers["www-authenticate"]


def test_every_operation_asks_for_a_token_before_anything_else(world: World) -> None:
    """D24, RFC 9449 §7.1: the bare challenge, whatever was sent."""
    assert [operation.name for operation in OPERATIONS if not operation.scope] == ["audit_keys"]
    for operation in OPERATIONS:
        if not operation.scope:
            continue
        url = f"{ISSUER}/api/v1{addressed(operation)}?unknown=1"
        answer = world.run(world.http.request(operation.method, url, content=b"\xff"))
        assert answer.status_code == 401, operation.name
        assert answer.headers["www-authenticate"] == 'DPoP algs="ES256 ES256K ES384 ES512"'
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_document_asks_for_no_token(world: World) -> None:
    """D59."""
    answer = world.get(f"{ISSUER}/api/v1/openapi.json")
    assert (answer.status_code, answer.json()["openapi"]) == (200, "3.1.0")
    assert answer.json()["servers"] == [{"url": f"{ISSUER}/api/v1"}]


def test_a_token_of_a_person_is_refused_and_so_is_one_with_another_proof(world: World, api: Api) -> None:
    """D59, RFC 9449 §7."""
    api.get("/entities")
    proof = api.caller.proof("POST", f"{ISSUER}/api/v1/entities", api.token)
    assert api.get("/entities", dpop=proof).status_code == 401
    repeated = api.caller.proof("GET", f"{ISSUER}/api/v1/entities", api.token)
    assert [api.get("/entities", dpop=repeated).status_code for _ in range(2)] == [200, 401]
    assert api.get("/entities", authorization=f"DPoP {world.tokens().access_token}").status_code == 401


def test_a_bound_client_sees_its_entity_and_what_belongs_to_it(world: World, api: Api) -> None:
    """D59, D61."""
    own = bound(world)
    assert [each["id"] for each in own.every("/entities")] == [HARBOUR]
    members = {each["user"] for each in api.every(f"/memberships?entity={HARBOUR}")}
    assert {each["user_name"] for each in own.every("/users")} == members
    assert {each["entity"] for each in own.every("/memberships")} == {HARBOUR}
    assert {each["entity"] for each in own.every("/assignments")} == {HARBOUR}
    assert own.every("/services") == api.every("/services")
    for path in ("/third-party-grants", "/third-party-assignments"):
        sides = {(each["client_entity"], each["third_party"]) for each in own.every(path)}
        assert all(HARBOUR in side for side in sides)
    assert own.get("/clients").status_code == 403
    assert own.get("/keys").status_code == own.get("/maintenance").status_code == 403
    assert own.post("/directory", {}).status_code == 403


def test_a_client_entity_reads_who_acts_for_it_and_looks_for_nobody(world: World, api: Api) -> None:
    """D61, D68: the account's user name in a row and a list, and of somebody invited nothing."""
    path = "/third-party-assignments"
    [row, *_] = [each for each in api.every(path) if each["client_entity"] == ORCHARD]
    assert row["user"]
    rows = f"{path}?client_entity={ORCHARD}&third_party={row['third_party']}"
    for entity in (ORCHARD, row["third_party"]):
        own = calling(world, f"bound-{entity}", scopes=["directory.read"], entity_id=entity)
        [listed] = [each for each in own.every(rows) if each["id"] == row["id"]]
        assert (listed["identity"], listed["user_id"]) == (row["identity"], row["user_id"])
        assert own.get(f"{path}/{row['id']}").json()["identity"] == row["identity"]
        found = own.every(f"{rows}&user={row['user']}")
        assert bool(found) is (entity != ORCHARD)


@pytest.mark.parametrize("path", ["memberships", "administrators", "assignments", "users"])
def test_a_list_of_another_entity_is_refused_in_the_same_words_as_one_that_is_not_there(
    world: World, path: str
) -> None:
    """D59."""
    own = bound(world)
    answers = [own.get(f"/{path}?entity={entity}") for entity in (ORCHARD, "NOWHERE")]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_another_entitys_object_is_the_same_404_as_one_that_is_not_there(world: World, api: Api) -> None:
    """D59: by guessed key, for each verb."""
    own = bound(world)
    api.added("/users", {"user_name": "zoe", "name": "Zoe"})
    api.added("/memberships", {"user": "zoe", "entity": ORCHARD})
    api.added("/services", {"service_id": "S", "name": "S", "roles": ["R"]})
    api.added("/assignments", {"user": "zoe", "entity": ORCHARD, "service": "S", "role": "R"})
    api.added("/administrators", {"user": "zoe", "entity": ORCHARD, "level": "administrator"})
    hidden = {
        "entities": ORCHARD,
        "users": api.every("/users?search=zoe")[0]["id"],
        "memberships": api.every("/memberships?user=zoe")[0]["id"],
        "assignments": api.every("/assignments?user=zoe")[0]["id"],
        "administrators": api.every("/administrators?user=zoe")[0]["id"],
    }
    for path, identifier in hidden.items():
        for name in (identifier, "nothing"):
            answers = [
                own.get(f"/{path}/{name}"),
                own.patch(f"/{path}/{name}", {"enabled": False}, if_match="*"),
                own.delete(f"/{path}/{name}", if_match="*"),
            ]
            assert [(each.status_code, each.json()["detail"]) for each in answers] == [
                (404, "There is no such object")
            ] * 3, path


def test_a_bound_client_does_not_learn_whether_a_person_exists(world: World, api: Api) -> None:
    """D60, D61: a stranger and nobody are answered in the same words."""
    own = bound(world)
    assert CAROL.user_name in {each["user_name"] for each in api.every("/users")}
    for path, more in (
        ("/assignments", {"service": "PERMITS", "role": "Checker"}),
        ("/administrators", {"level": "administrator"}),
        ("/memberships", {}),
    ):
        told = [
            own.post(path, {"user": name, "entity": HARBOUR, **more}) for name in (CAROL.user_name, "nobody.at.all")
        ]
        assert [each.status_code for each in told] == [422, 422]
        details = [pointers(each)["/user"] for each in told]
        assert details == [f"nobody of this user name belongs to {HARBOUR}"] * 2


def test_a_bound_client_writes_for_its_entity_only(world: World, api: Api) -> None:
    """D56, D59: a person, an entity, a service or a client never."""
    own = bound(world)
    level = own.added("/administrators", {"user": "alice", "entity": HARBOUR, "level": "administrator"})
    assert own.patch(f"/administrators/{level['id']}", {"level": "owner"}, if_match="*").status_code == 403
    assert own.delete(f"/administrators/{level['id']}", if_match=level["etag"]).status_code == 204
    role = {"user": "alice", "service": "PERMITS", "role": "Checker", "ref": "from the API"}
    assert own.post("/assignments", {**role, "entity": HARBOUR}).status_code == 201
    assert own.post("/assignments", {**role, "entity": ORCHARD}).status_code == 403
    grant = {"service": "PERMITS", "role": "Checker"}
    assert (
        own.post("/third-party-grants", {**grant, "client_entity": ORCHARD, "third_party": HARBOUR}).status_code == 403
    )
    for resource in ("entities", "users", "services", "clients"):
        assert own.post(f"/{resource}", {}).status_code == 403
    assert own.patch(f"/users/{ALICE.user_id}", {"name": "X"}, if_match="*").status_code == 403
    assert own.patch(f"/entities/{HARBOUR}", {"name": "X"}, if_match="*").status_code == 403


def test_a_bound_client_does_not_learn_from_a_role_for_whom_whether_an_entity_exists(world: World, api: Api) -> None:
    """D59: an entity that has granted nothing is refused in the same words as one that is not there."""
    client = bound(world)
    api.added("/entities", ENTITY)
    role = {"user": "alice", "third_party": HARBOUR, "service": "PERMITS", "role": "Checker"}
    told = [
        pointers(client.post("/third-party-assignments", {**role, "client_entity": entity}))
        for entity in ("E1001", "E9999")
    ]
    assert told[0] == told[1] == {"/client_entity": f"no entity of this identifier has granted {HARBOUR} anything"}


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_a_document_shows_and_changes_only_kinds_that_the_token_lets_write(world: World, dry_run: str) -> None:
    """D59: a plan of a document tells what there is, so it needs the same scopes; nobody's factors are told (D61)."""
    client = calling(world, scopes=["directory.write"])
    for path in (f"/directory?dry_run={dry_run}", f"/directory?dry_run={dry_run}&prune=true"):
        documents: list[dict[str, Any]] = [
            {"clients": {}}, {"clients": {"rp-1": {"name": "A"}}}, {"operators": []},
            {"users": {"alice": {"totp_secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}}},
        ]  # fmt: skip
        for document in documents:
            assert client.post(path, document).status_code == 403, (path, document)
    yaml = client.call("POST", "/directory?dry_run=true", body=b"clients: {}\n", content_type="application/yaml")
    assert yaml.status_code == 403


def test_a_document_gives_nobody_the_identifier_of_a_person_who_was_removed(api: Api) -> None:
    """D51, D59: relying parties know people by it. Of a person who is there it goes on naming that person."""
    removed = api.added("/users", {"user_name": "nina", "name": "Nina"})
    assert api.delete(f"/users/{removed['id']}", if_match="*").status_code == 204
    new = {"users": {"mallory": {"id": removed["id"], "name": "Mallory"}}}
    for path in ("/directory", "/directory?dry_run=true"):
        assert list(pointers(api.post(path, new))) == ["/users/mallory/id"]
    yaml = f"users:\n  mallory:\n    id: {removed['id']}\n    name: Mallory\n".encode()
    told = api.call("POST", "/directory", body=yaml, content_type="application/yaml")
    assert (told.status_code, told.json()["errors"][0]["line"]) == (422, "3")
    renamed = {"users": {"alicia": {"id": ALICE.user_id, "name": "Alicia"}}}
    assert api.post("/directory", renamed).status_code == 200
    assert api.get(f"/users/{ALICE.user_id}").json()["user_name"] == "alicia"


def test_a_program_does_not_end_by_itself_that_roles_need_approval(api: Api) -> None:
    """D55, D59: neither by a change, nor by removing what demands it and adding it again, nor by a document."""
    service = {"name": "Grants", "roles": ["Applicant"], "approval_required": True}
    api.added("/services", {"service_id": "S1", **service})
    api.added("/entities", {**ENTITY, "approvals": "roles"})
    role = {"user": "alice", "entity": HARBOUR, "service": "S1", "role": "Applicant"}
    assert "Change-Reason" in api.post("/assignments", role).json()["detail"]
    entity = {"type": "UEN", "country": "SG", "name": "Harbour Bakery"}
    for refused in (
        api.patch("/services/S1", {"approval_required": False}, if_match="*"),
        api.patch("/services/S1", {"approval_required": None}, if_match="*"),
        api.delete("/services/S1", if_match="*"),
        api.post("/directory", {"services": {"S1": {**service, "approval_required": False}}}),
        api.post("/directory?prune=true", {"services": {}}),
        api.patch("/entities/E1001", {"approvals": "none"}, if_match="*"),
        api.patch("/entities/E1001", {"approvals": None}, if_match="*"),
        api.delete("/entities/E1001", if_match="*"),
        api.post("/directory", {"entities": {"E1001": {**entity, "approvals": "none"}}}),
        api.post("/directory?prune=true", {"entities": {}}),
    ):
        # 422: it could be requested, with a reason
        assert refused.status_code in {403, 422}, refused.text
    assert api.get("/services/S1").json()["approval_required"]
    assert api.get("/entities/E1001").json()["approvals"] == "roles"
    assert api.patch("/services/S1", {"name": "Grants of the state"}, if_match="*").status_code == 200


def test_every_resource_is_in_the_table_with_its_five_verbs() -> None:
    names = {(each.method, each.path) for each in OPERATIONS}
    for resource in RESOURCES:
        assert {("GET", f"/{resource.path}"), ("POST", f"/{resource.path}")} <= names
        assert {(method, f"/{resource.path}/{{id}}") for method in ("GET", "PATCH", "DELETE")} <= names
    changing = [each for each in OPERATIONS if each.takes_object]
    assert all(each.conditional == (each.method in {"PATCH", "DELETE"}) for each in changing)
    assert all(each.repeatable == (each.method == "POST") for each in OPERATIONS)


def test_unknown_paths_and_methods_are_problems_too(api: Api) -> None:
    """D32, RFC 9110 §15.5.6."""
    answer = api.call("PUT", "/entities/E1", {})
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PATCH, HEAD")
    for method in ("DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        assert api.call(method, "/maintenance").headers["allow"] == "GET, PUT, HEAD"
    assert api.get("/nowhere").status_code == 404
    head = api.call("HEAD", "/entities")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("limited", ["api_per_client", "api_per_address"])
def test_a_client_that_calls_too_often_is_told_when_to_come_again(worlds: Any, limited: str) -> None:
    """D47."""
    api = calling(worlds.fresh(**{limited: 3}))
    answers = [api.get("/maintenance") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def busy(world: World, scope: Any, receive: Any, send: Any) -> None:
    await world.application.asgi({**scope, "state": {OVERLOADED: True}}, receive, send)


async def ask(busy: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=busy)) as http:
        return await http.get(f"{ISSUER}/api/v1/entities")


def test_a_process_that_is_busy_says_when_to_come_again(world: World) -> None:
    """D47: before the token is looked at."""
    answer = world.run(ask(partial(busy, world)))
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert int(answer.headers["retry-after"]) > 0


def test_in_developer_mode_ones_own_machine_is_not_counted() -> None:
    """D47."""
    url = "http://localhost:8080"
    with World(base_url=url, developer_mode=True, api_per_address=2) as world:
        assert {world.get(f"{url}/api/v1/maintenance").status_code for _ in range(8)} == {401}
