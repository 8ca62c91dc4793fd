"""Objects of the admin API: listed, read, added, changed and removed (D59)."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from corpid.flows.directory.apply import ApplyResult, apply_document
from corpid.flows.operations.signing_keys import ROTATED_EVERY_SECONDS
from corpid.rules.directory.access import CommandLine, DirectoryFile
from corpid.rules.directory.objects import RESOURCES
from corpid.rules.directory.records import Administrator, Membership, User
from corpid.web.api.openapi import EXAMPLES
from tests.api.calling import ENTITY, HARBOUR, ORCHARD, Api, bound, calling, pointers
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import ALICE, BOB

if TYPE_CHECKING:
    from tests.protocol.provider import World

CHANGES: dict[str, Any] = {
    "Entity": {"name": "Another name"},
    "User": {"name": "Another name", "language": "ms"},
    "Membership": {"enabled": False},
    "Service": {"roles": ["Preparer"]},
    "Assignment": {"end_date": "2030-12-31"},
    "ThirdPartyGrant": {"end_date": "2030-12-31"},
    "ThirdPartyAssignment": {"end_date": "2030-12-31"},
    "Administrator": {"level": "sub_administrator", "services": ["TAX-FILING"]},
    "Client": {"enabled": False},
}


def with_examples(api: Api) -> dict[str, Any]:
    """Everything that the examples of the documents refer to, added in their order; title → object."""
    api.added("/entities", {**EXAMPLES["Entity"], "entity_id": "E2002"})
    api.added("/users", {**EXAMPLES["User"], "user_name": "ravi"})
    found = {}
    for resource in RESOURCES:
        new = EXAMPLES[resource.title]
        if resource.title == "Service":
            new = {**new, "third_parties": True}
        if resource.title == "ThirdPartyAssignment":
            api.added("/memberships", {"user": "ravi", "entity": "E2002"})
        found[resource.title] = api.added(f"/{resource.path}", new)
    return found


def test_every_example_of_the_documents_can_be_added_read_listed_changed_and_removed(api: Api) -> None:
    """D59: one function for each verb, whatever the kind of record."""
    added = with_examples(api)
    for resource in reversed(RESOURCES):
        shown = added[resource.title]
        path = f"/{resource.path}/{shown['id']}"
        read = api.get(path)
        assert read.json() == shown
        assert read.headers["etag"] == shown["etag"]
        assert shown in api.every(f"/{resource.path}")
        changed = api.patch(path, CHANGES[resource.title], if_match=shown["etag"])
        assert changed.status_code == 200, changed.text
        assert changed.json() == {**shown, **CHANGES[resource.title], "etag": changed.headers["etag"]}
        assert changed.headers["etag"] != shown["etag"]
        removed = api.delete(path, if_match=changed.headers["etag"])
        assert (removed.status_code, removed.content) == (204, b"")
        assert api.get(path).status_code == 404


def test_an_added_object_is_where_location_says_and_is_added_once(api: Api) -> None:
    """RFC 9110 §10.2.2, D59."""
    first = api.post("/entities", ENTITY)
    assert first.headers["location"] == "https://op.example/api/v1/entities/E1001"
    again = api.post("/entities", ENTITY)
    assert (again.status_code, again.json()["title"]) == (409, "Conflict")
    taken = api.post("/users", {"user_name": "Alice", "name": "Another Alice"})
    assert taken.status_code == 409


def test_what_a_program_wrote_a_nightly_file_leaves_and_taking_it_over_changes_no_entity_tag(api: Api) -> None:
    """D59, D65: an entity tag is about the object, not about who wrote it."""
    shown = api.added("/entities", ENTITY)

    def applied(name: str, *, take_over: bool = False) -> ApplyResult:
        provider, content = api.world.provider, f"entities: {{E1001: {{name: {name}}}}}".encode()
        actor = DirectoryFile.from_content("hr.yaml", content, by=CommandLine(by="lee@node1"))
        return api.world.run(
            apply_document(
                provider.registry, provider.passwords, content, file="hr.yaml", actor=actor, new_user_id=str, take_over=take_over,
            )
        )  # fmt: skip

    [kept] = applied("Other").kept
    assert (kept.subject, kept.sources, kept.by) == (
        "entity E1001",
        ("API",),
        (f"the API client {api.caller.client_id}",),
    )
    assert api.get("/entities/E1001").json() == shown
    assert applied(ENTITY["name"], take_over=True).written
    assert api.get("/entities/E1001").headers["etag"] == shown["etag"]
    assert applied("Other").kept == ()
    assert api.get("/entities/E1001").headers["etag"] != shown["etag"]


def test_every_fault_of_an_object_is_told_by_its_pointer_and_nothing_is_written(api: Api) -> None:
    """RFC 9457 §3, D59: unknown members with did-you-mean, the allowed values of known ones."""
    faults = pointers(api.post("/entities", {"entity_id": "E1001", "type": "UENN", "naem": "X", "enabled": "yes"}))
    assert faults == {
        "/country": "country is required in an entity",
        "/enabled": "true or false is expected here",
        "/naem": "'naem' is not a field of an entity; did you mean 'name'?",
        "/name": "name is required in an entity",
        "/type": "'UENN' is not one of UEN, NON-UEN, GSTN; did you mean 'UEN'?",
    }
    assert api.get("/entities/E1001").status_code == 404
    role = {"user": "alice", "entity": HARBOUR, "service": "PERMITS", "role": "Chekcer"}
    assert "did you mean 'Checker'?" in pointers(api.post("/assignments", role))["/role"]
    client = {"client_id": "x", "name": "X", "redirect_uris": ["http://rp.example/"], "scopes": ["openid", "authinf"]}
    assert set(pointers(api.post("/clients", client))) >= {"/redirect_uris", "/scopes"}
    by_address = {
        "client_id": "x", "name": "X", "redirect_uris": ["https://rp.example/"], "jwks_uri": "https://8.8.8.0x8/k",
    }  # fmt: skip
    refused = pointers(api.post("/clients", by_address))
    assert set(refused) == {"/jwks_uri"}
    assert "use a public host name, such as keys.example.org, instead of an IP address" in refused["/jwks_uri"]


def test_a_merge_patch_gives_members_their_defaults_again_and_never_changes_what_names_an_object(api: Api) -> None:
    """RFC 7396, D59."""
    added = api.added("/entities", {**ENTITY, "status": "Registered"})
    path = "/entities/E1001"
    cleared = api.patch(path, {"status": None, "id": "E1001"}, if_match=added["etag"])
    assert cleared.json()["status"] == ""
    etag = cleared.headers["etag"]
    assert pointers(api.patch(path, {"name": None}, if_match=etag)) == {"/name": "name is required in an entity"}
    assert set(pointers(api.patch(path, {"entity_id": "E9", "id": "E9"}, if_match=etag))) == {"/entity_id", "/id"}
    assert api.patch(path, {}, if_match=etag).headers["etag"] == etag
    assert api.patch(path, [], if_match=etag).status_code == 422


def test_a_person_is_renamed_but_never_to_the_name_of_another(api: Api) -> None:
    """D51, R-12.4: the identifier stays."""
    added = api.added("/users", {"user_name": "lina", "name": "Lina"})
    path = f"/users/{added['id']}"
    assert api.patch(path, {"user_name": "alice"}, if_match=added["etag"]).status_code == 409
    renamed = api.patch(path, {"user_name": "Lina.Tan"}, if_match=added["etag"]).json()
    assert (renamed["id"], renamed["user_name"]) == (added["id"], "lina.tan")


def test_a_user_name_of_the_entity_means_its_member_and_one_that_means_two_people_is_refused(api: Api) -> None:
    """D68: account user name and the entity's are asked together."""
    role = {"entity": HARBOUR, "service": "PERMITS", "role": "Checker"}
    registry, alice = api.world.provider.registry, ALICE
    [held] = api.world.run(registry.directory.read(Membership, [(alice.user_id, HARBOUR)])).values()
    api.world.writes(replace(held, user_name="a.tan"), User(user_id="id-zoe", user_name="a.tan2", name="Zoe"))
    assert api.added("/assignments", {**role, "user": "A.Tan", "ref": "1"})["user_id"] == alice.user_id
    found = api.get(f"/assignments?user=a.tan&entity={HARBOUR}").json()["items"]
    assert {each["user_id"] for each in found} == {alice.user_id}
    zoe = Membership(user_id="id-zoe", entity_id=HARBOUR, user_name="alice")
    api.world.writes(zoe)  # as an earlier version let an entity call somebody
    answer = api.post("/assignments", {**role, "user": "alice", "ref": "2"})
    assert answer.status_code == 409
    assert "alice" in answer.json()["detail"]
    assert "a.tan2 (Zoe)" in answer.json()["detail"]


def test_an_api_client_moves_nobodys_address_for_recovery(api: Api) -> None:
    """D61: by one object or by a document; what else is known of the person it changes."""
    made = api.added("/users", {**EXAMPLES["User"], "user_name": "ravi", "email": "ravi@example.com"})
    path = f"/users/{made['id']}"
    refused = api.patch(path, {"email": "thief@example.org"}, if_match=made["etag"])
    assert (refused.status_code, "the person or an operator" in refused.text) == (403, True)
    document = {"users": {"ravi": {"name": "Ravi", "email": "thief@example.org"}}}
    assert api.post("/directory", document).status_code == 403
    assert api.get(path).json()["email"] == "ravi@example.com"
    assert api.patch(path, {"name": "Ravi K"}, if_match=made["etag"]).status_code == 200


def test_lists_page_by_cursor_and_narrow_by_their_filters(api: Api) -> None:
    """D59."""
    for number in range(5):
        api.added("/entities", {**ENTITY, "entity_id": f"E100{number}"})
    assert [each["id"] for each in api.every("/entities?search=E100")] == [f"E100{number}" for number in range(5)]
    people = [each["user_name"] for each in api.every("/users")]
    assert people == sorted(people)
    of_harbour = {each["user"] for each in api.every(f"/memberships?entity={HARBOUR}")}
    assert of_harbour == {each["user_name"] for each in api.every(f"/users?entity={HARBOUR}")}
    rows = api.every("/assignments")
    assert [each for each in rows if each["user"] == "alice"] == api.every("/assignments?user=alice")
    assert api.every("/assignments?user=nobody") == []
    assert api.every("/assignments?entity=nowhere&service=nothing") == []
    assert {each["entity"] for each in api.every("/memberships?user=bob")} >= {HARBOUR}


def test_lists_are_sorted_counted_and_read_back(api: Api) -> None:
    """D83: the orders that an index has, in both directions; `search` is the beginning of what is sorted by."""
    for number, name in enumerate(("Zest", "apple", "Apricot", "Zebra")):
        api.added(
            "/entities", {**ENTITY, "entity_id": f"E100{number}", "registration_number": f"R{9 - number}", "name": name}
        )

    def page(query: str) -> dict[str, Any]:
        answer = api.get(f"/entities?{query}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ids(found: dict[str, Any]) -> list[str]:
        return [each["id"] for each in found["items"]]

    assert ids(page("sort=name&search=AP")) == ["E1001", "E1002"]
    assert ids(page("sort=-number&search=R")) == ["E1000", "E1001", "E1002", "E1003"]
    first = page("sort=name&search=z&limit=1&total=true")
    assert (ids(first), first["total"], first["total_is_exact"]) == (["E1003"], 2, True)
    assert "previous" not in first
    second = page(f"sort=name&search=z&limit=1&cursor={first['next']}")
    assert (ids(second), "next" in second, "total" in second) == (["E1000"], False, False)
    assert ids(page(f"sort=name&search=z&limit=1&cursor={second['previous']}")) == ["E1003"]
    for other in ("", "sort=-name", "sort=number"):
        refused = api.get(f"/entities?{other}&search=z&cursor={first['next']}")
        assert refused.status_code == 400
        assert pointers(refused) == {
            "cursor": "This is not a cursor of this list: use the member next of a page, with the same filters and the "
            "same sort"
        }
    every = api.every("/entities?sort=-name")
    assert [each["id"] for each in every] == [each["id"] for each in api.every("/entities?sort=name")][::-1]
    refused = api.get(f"/users?entity={HARBOUR}&sort=email")
    assert refused.status_code == 400
    assert pointers(refused) == {
        "sort": "With these filters the list can be sorted by membership, user_name, shown_user_name, shown_email, shown_name"
    }


def test_a_list_is_exported_whole_as_csv(api: Api) -> None:
    """D83: filtered and sorted as the list, a column for each member, and no formula (RFC 4180)."""
    for number in range(230):
        api.added(
            "/entities", {**ENTITY, "entity_id": f"X{number:03}", "name": "=1+1" if number == 7 else f"N {number}"}
        )
    answer = api.get("/entities?search=X&sort=-id&format=csv")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="entities.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["id"] for row in rows] == [f"X{number:03}" for number in reversed(range(230))]
    assert rows[-8]["name"] == "'=1+1"
    shown = api.get("/entities/X001").json()
    assert rows[-2] == {name: "true" if value is True else value for name, value in shown.items() if name != "etag"}
    people = list(csv.DictReader(io.StringIO(api.get(f"/memberships?entity={HARBOUR}&format=csv").text, newline="")))
    assert [row["id"] for row in people] == [each["id"] for each in api.every(f"/memberships?entity={HARBOUR}")]
    assert list(pointers(api.get("/entities?sort=size&format=csv"))) == ["sort"]


def test_an_export_shows_what_its_client_may_see_and_no_more(world: World) -> None:
    """D61, D83: every row passes `authorise`, as on a page."""
    own = bound(world, scopes=("directory.read",))
    rows = list(csv.DictReader(io.StringIO(own.get("/users?format=csv").text, newline="")))
    assert {row["user_name"] for row in rows} == {each["user_name"] for each in own.every("/users")}
    assert own.get(f"/memberships?entity={ORCHARD}&format=csv").status_code == 403


async def _leave_after(world: World, scope: dict[str, Any], stop: int) -> list[str]:
    """What was sent until the client had gone, at the message of this number."""
    sent: list[str] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])
        if len(sent) == stop:
            raise OSError("the client has gone")

    with suppress(Exception):
        await world.application.asgi(scope, receive, send)  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_an_export_whose_client_leaves_makes_room_for_the_next(world: World, api: Api, stop: int) -> None:
    """D47, D83: one at a time, and none that nobody reads."""
    with closing(sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)) as database:
        database.execute(
            "INSERT INTO entities (entity_id, type, registration_number, country, name, status, enabled, search_text,"
            " words)"
            " WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n <= 3000)"
            " SELECT 'many' || n, 'UEN', 'R', 'SG', 'N', 'Registered', 1, 'n',"
            ' \'{"entity_id": ["many"]}\' FROM rows'
        )
    api.get("/entities?limit=1")
    path = "/api/v1/entities"
    proof = api.caller.proof("GET", f"{ISSUER}{path}", api.token)
    headers = [
        (b"host", b"op.example"), (b"authorization", f"DPoP {api.token}".encode()), (b"dpop", proof.encode()),
    ]  # fmt: skip
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET",
        "scheme": "https", "path": path, "raw_path": path.encode(), "query_string": b"format=csv", "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("op.example", 443), "state": {},
    }  # fmt: skip
    sent = world.run(_leave_after(world, scope, stop))
    assert len(sent) >= stop
    assert api.get("/entities?search=many1&format=csv").status_code == 200


@pytest.mark.full
def test_an_export_of_too_many_objects_is_refused_whole(world: World, api: Api) -> None:
    """D83: 100,000 at most; a file that stops somewhere would look complete."""
    with closing(sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)) as database:
        database.execute(
            "INSERT INTO entities (entity_id, type, registration_number, country, name, status, enabled, search_text,"
            " words)"
            " WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n <= 100000)"
            " SELECT 'many' || n, 'UEN', 'R', 'SG', 'N', 'Registered', 1, 'n',"
            ' \'{"entity_id": ["many"]}\' FROM rows'
        )
    answer = api.get("/entities?search=many&format=csv")
    assert answer.status_code == 422
    assert "narrow the list" in answer.text


def test_the_names_of_people_are_alike_in_capital_letters_from_page_to_page(api: Api) -> None:
    """D51: a cursor is the name as it is compared, so that no page comes twice."""
    for name in ("Zed1", "zed2", "ZED3"):
        api.added("/users", {**EXAMPLES["User"], "user_name": name})
    assert [each["user_name"].lower() for each in api.every("/users?search=zed")] == ["zed1", "zed2", "zed3"]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("sort=size", "sort"), ("cursor=~x", "cursor"), ("cursor=~WyJhIiwiYiJd", "cursor"),
        ("limit=0", "limit"), ("limit=201", "limit"), ("limit=two", "limit"), ("cursor=x", "cursor"),
        ("cursor=WyJhIiwiYiJd", "cursor"), ("serach=E1", "serach"), ("search=a&search=b", "search"),
        ("search=%00", "search"), ("cursor=WyJcdTAwMDAiXQ", "cursor"),
    ],
)  # fmt: skip
def test_a_parameter_that_means_nothing_is_named(api: Api, query: str, parameter: str) -> None:
    """A misspelt filter would show everything (D59)."""
    answer = api.get(f"/entities?{query}")
    assert answer.status_code == 400
    assert list(pointers(answer)) == [parameter]


def test_identity_numbers_are_masked_for_a_client_of_an_entity_and_no_secret_is_ever_shown(
    world: World, api: Api
) -> None:
    """D57, D61."""
    [alice] = [each for each in api.every("/users") if each["user_name"] == "alice"]
    assert alice["identity_number"] == "S0000001X"
    of_entity = bound(world).get(f"/users/{alice['id']}").json()
    assert of_entity == {**alice, "identity_number": "•••••001X"}
    writes = calling(world, "writer-1", scopes=("directory.write",))
    echoed = writes.patch(f"/users/{alice['id']}", {**of_entity, "name": "Alice B."}, if_match=alice["etag"])
    assert echoed.json()["identity_number"] == "•••••001X"
    assert api.get(f"/users/{alice['id']}").json()["identity_number"] == "S0000001X"
    assert not {"password_hash", "totp_secret", "password"} & set(alice)


def test_a_change_is_audited_with_the_client_its_request_and_address(world: World, api: Api) -> None:
    """D57."""
    answer = api.post("/entities", ENTITY)
    entry = api.get("/audit?object=E1001&limit=1").json()["items"][0]
    assert (entry["actor"], entry["action"], entry["entity_id"]) == ("client:api-1", "entity.add", "E1001")
    assert (entry["detail"], len(entry["request_id"])) == ({"address": "127.0.0.1"}, 16)
    assert answer.status_code == 201
    numbers = [each["number"] for each in api.every("/audit")]
    assert numbers == sorted(numbers, reverse=True)
    assert "/action" not in pointers(api.get("/audit?action=entty.add"))
    assert pointers(api.get("/audit?since=yesterday"))["since"].startswith("'yesterday' is not a time")


@pytest.mark.parametrize("services", [["TAX-FILING"], "all"])
def test_services_of_a_level_that_has_every_service_are_refused(api: Api, services: object) -> None:
    """D53: the portal, commands and files refuse them too."""
    given = {"user": "alice", "entity": HARBOUR, "level": "administrator", "services": services}
    answer = api.post("/administrators", given)
    assert answer.status_code == 422
    assert "administrator has every service" in answer.text


def test_a_client_of_an_entity_reads_that_entitys_audit_without_addresses(world: World, api: Api) -> None:
    """D61."""
    api.added("/administrators", {"user": "alice", "entity": HARBOUR, "level": "administrator"})
    api.added("/entities", ENTITY)
    entries = bound(world).get("/audit").json()["items"]
    assert {each["entity_id"] for each in entries} == {HARBOUR}
    assert not any({"address", "device"} & set(each["detail"]) for each in entries)
    assert bound(world).get(f"/audit?entity={ORCHARD}").status_code == 403


def test_a_service_that_is_removed_leaves_no_right_behind(api: Api) -> None:
    """D53: deleting a service never widens, nor does one that is made later."""
    service = api.added("/services", EXAMPLES["Service"])
    given = {"user": "alice", "entity": HARBOUR, "level": "sub_administrator", "services": ["TAX-FILING"]}
    held = api.added("/administrators", given)
    assert api.delete("/services/TAX-FILING", if_match=service["etag"]).status_code == 204
    assert api.get(f"/administrators/{held['id']}").json()["services"] == []


def test_keys_are_listed_and_rotated_and_show_no_secret(api: Api) -> None:
    """D42."""
    api.world.clock.now += ROTATED_EVERY_SECONDS
    made = api.post("/keys", {})
    assert made.status_code == 201
    assert made.json()["state"] == "published, not yet in use"
    listed = api.get("/keys").json()["items"]
    assert made.json() in listed
    assert made.headers["location"].endswith(f"/keys/{made.json()['id']}")
    assert api.get(f"/keys/{made.json()['id']}").json() == made.json()
    assert not any("secret" in name or "certificate" in name for each in listed for name in each)
    assert pointers(api.post("/keys", {"at_onec": True})) == {
        "/at_onec": "'at_onec' is not a field of this object; did you mean 'at_once'?"
    }


def test_people_are_found_by_name(world: World, api: Api) -> None:
    """A search of the whole directory, which a client of an entity has not."""
    for number in range(5):
        api.added("/users", {"user_name": f"zz{number}", "name": f"Zz Person {4 - number}"})
    assert [each["user_name"] for each in api.every("/users?name=zz%20p")] == ["zz4", "zz3", "zz2", "zz1", "zz0"]
    for client, query in ((api, "name=zz&search=z"), (api, f"name=zz&entity={HARBOUR}"), (bound(world), "name=zz")):
        assert list(pointers(client.get(f"/users?{query}"))) == ["name"]


def test_relying_parties_are_listed_a_page_at_a_time(api: Api) -> None:
    """D59: by identifier, and by its beginning."""
    world = api.world
    known = world.run(world.provider.registry.clients.list_all())
    for name in ("a-1", "zz-1", "zz-2"):
        world.writes(msgspec.structs.replace(known[0], client_id=name))
    every = sorted(["a-1", *(client.client_id for client in known), "zz-1", "zz-2"])
    assert [each["client_id"] for each in api.every("/clients")] == every
    assert [each["client_id"] for each in api.every("/clients?search=zz-")] == ["zz-1", "zz-2"]


def test_a_program_makes_a_key_at_most_once_in_an_hour(api: Api) -> None:
    """D42, D59: each is published and kept, and with `at_once` every cached key set is out of date."""
    api.world.clock.now += ROTATED_EVERY_SECONDS
    assert api.post("/keys", {"at_once": True}, idempotency_key="k").status_code == 201
    number = len(api.get("/keys").json()["items"])
    for body in ({"at_once": True}, {}):
        refused = api.post("/keys", body, idempotency_key="another")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(ROTATED_EVERY_SECONDS))
    assert api.post("/keys", {"at_once": True}, idempotency_key="k").headers["idempotent-replayed"] == "true"
    assert len(api.get("/keys").json()["items"]) == number
    api.world.clock.now += ROTATED_EVERY_SECONDS
    api.token = ""
    assert api.post("/keys", {}, idempotency_key="another").status_code == 201


def test_maintenance_is_switched_off_while_it_is_on(api: Api) -> None:
    """Spec 7, D59."""
    assert api.call("PUT", "/maintenance", {"maintenance": True}).json() == {"maintenance": True}
    busy = api.get("/entities")
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "60")
    assert api.get("/maintenance").json() == {"maintenance": True}
    assert api.call("PUT", "/maintenance", {"maintenance": False}).status_code == 200
    assert api.get("/entities").status_code == 200
    assert list(pointers(api.call("PUT", "/maintenance", {}))) == ["/maintenance"]


def test_the_membership_of_an_owner_is_out_of_a_programs_reach(world: World, api: Api) -> None:
    """D59: with it the ownership would go, also if another owner remains, and come back with it."""
    world.writes(*(Administrator(user_id=each.user_id, entity_id=HARBOUR, level="owner") for each in (ALICE, BOB)))
    held = next(each for each in api.every(f"/memberships?entity={HARBOUR}") if each["user"] == "alice")
    for client in (api, bound(world)):
        path = f"/memberships/{held['id']}"
        refused = [client.delete(path, if_match="*"), client.patch(path, {"enabled": False}, if_match="*")]
        assert [each.json()["detail"] for each in refused] == ["Only people can appoint owners"] * 2
    levels = api.every(f"/administrators?entity={HARBOUR}")
    assert {each["user"]: each["level"] for each in levels} == {"alice": "owner", "bob": "owner"}


def test_the_last_owner_is_not_taken_by_a_program(world: World, api: Api) -> None:
    """D54, D59."""
    world.writes(Administrator(user_id=ALICE.user_id, entity_id=HARBOUR, level="owner"))
    [held] = api.every(f"/administrators?entity={HARBOUR}")
    refused = api.delete(f"/administrators/{held['id']}", if_match=held["etag"])
    assert (refused.status_code, refused.json()["detail"]) == (403, "Only people can appoint owners")
    [member] = [each for each in api.every(f"/memberships?entity={HARBOUR}") if each["user"] == "alice"]
    assert api.delete(f"/memberships/{member['id']}", if_match=member["etag"]).status_code == 403


def test_a_membership_ends_with_its_level_and_roles_each_with_its_event(world: World) -> None:
    """D53, D57: as at the other doors."""
    world.writes(Administrator(user_id=ALICE.user_id, entity_id=HARBOUR, level="administrator"))
    own = bound(world)
    assert [each["user"] for each in own.every(f"/assignments?entity={HARBOUR}")] == ["alice"]
    alice = next(each for each in own.every(f"/memberships?entity={HARBOUR}") if each["user"] == "alice")
    assert own.delete(f"/memberships/{alice['id']}", if_match=alice["etag"]).status_code == 204
    assert own.every(f"/assignments?entity={HARBOUR}") == []
    ended = {each["action"] for each in own.get("/audit?limit=20").json()["items"]}
    assert ended >= {"membership.remove", "administrator.remove", "assignment.remove"}


@pytest.mark.parametrize("query", ["search=ali", f"search=ali&user=alice&entity={HARBOUR}", "search=ali&total=true"])
def test_memberships_are_searched_in_one_entity(api: Api, query: str) -> None:
    """D83: otherwise the answer says so."""
    answer = api.get(f"/memberships?{query}")
    assert answer.status_code < 500
    assert "give `entity`" in answer.text
