"""The audit's verification in parts, and its public keys (D58, D59)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from corpid.flows.operations.audit_seals import Sealer, audit_keys, verify
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.access import CommandLine
from tests.adapters.conftest import place
from tests.adapters.opened import NOW
from tests.adapters.test_audit_seals import ACTOR, three_seals, unguarded
from tests.api.calling import ENTITY, HARBOUR, Api, bound
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import ALICE

if TYPE_CHECKING:
    from tests.adapters.databases import Place
    from tests.protocol.provider import World

__all__ = ["place"]


def seal(world: World) -> None:
    sealer = Sealer(world.provider.registry, lambda _: None)
    assert world.run(sealer.seal_all(CommandLine(by="ops@node1"), now=world.clock.now)) >= 1


def test_the_public_audit_keys_are_there_for_everybody(world: World, api: Api) -> None:
    """D58, RFC 7517: without a token, also during maintenance, and never a private key."""
    api.added("/entities", ENTITY)
    seal(world)
    api.call("PUT", "/maintenance", {"maintenance": True})
    answer = world.get(f"{ISSUER}/api/v1/audit/keys")
    api.call("PUT", "/maintenance", {"maintenance": False})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/jwk-set+json")
    assert answer.json() == world.run(audit_keys(world.provider.registry))
    assert answer.json()["keys"]
    assert all("d" not in key for key in answer.json()["keys"])


def test_the_audit_is_verified_part_by_part(world: World, api: Api) -> None:
    """D58: each seal once, and the last part counts what is not sealed."""
    for number in range(3):
        api.added("/entities", {**ENTITY, "entity_id": f"E{number}"})
        seal(world)
    api.added("/entities", ENTITY)
    whole = world.run(verify(world.provider.registry, CommandLine(by="ops@node1"), now=world.clock.now))
    parts: list[Any] = []
    after: int | None = 0
    while after is not None:
        answer = api.get(f"/audit/verification?limit=2&after={after}")
        assert answer.status_code == 200, answer.text
        parts.append(answer.json())
        after = parts[-1]["next"]
    assert all(part["seals"] == 2 for part in parts[:-1])
    assert sum(part["seals"] for part in parts) == whole.seals
    assert sum(part["entries"] for part in parts) == whole.entries
    assert sum(part["found"] for part in parts) == whole.found
    assert (parts[-1]["digest"], parts[-1]["sealed_to"]) == (whole.digest, whole.sealed_to)
    assert [part["unsealed"] for part in parts] == [0] * (len(parts) - 1) + [whole.unsealed]
    beyond = api.get("/audit/verification?after=9007199254740991").json()
    assert (beyond["seals"], beyond["unsealed"], beyond["next"]) == (0, whole.unsealed, None)


def test_a_verification_is_not_for_bound_clients_and_runs_alone(world: World, api: Api) -> None:
    """D59."""
    assert bound(world).get("/audit/verification").status_code == 403
    asgi: Any = world.application.asgi
    asgi._app._context.api_calls.add(("api-1", "verification"))
    assert api.get("/audit/verification").status_code == 409
    asgi._app._context.api_calls.clear()
    for wrong in ("limit=51", "limit=0", "after=-1", "after=x"):
        assert api.get(f"/audit/verification?{wrong}").status_code == 400


async def test_the_parts_find_what_the_whole_finds(place: Place) -> None:
    """D58: a changed entry, and a seal that was removed between two parts."""
    async with place.opened() as stores:
        await three_seals(stores)
    unguarded(place)
    for statement in ("UPDATE audit SET object = 'x' WHERE number = 7", "DELETE FROM audit_seals WHERE number = 2"):
        place.sql(statement)
        async with place.opened() as stores:
            whole = await verify(stores.registry, ACTOR, now=NOW)
            parts = [await verify(stores.registry, ACTOR, now=NOW, most=1)]
            while parts[-1].next:
                parts.append(await verify(stores.registry, ACTOR, now=NOW, after=parts[-1].next, most=1))
            assert whole.found
            assert [each for part in parts for each in part.findings] == whole.findings
            assert sum(part.entries for part in parts) == whole.entries
            assert parts[-1].sealed_to == whole.sealed_to


def test_a_person_is_named_by_the_user_name_of_today_or_by_identifier(world: World, api: Api) -> None:
    """D59: nothing is looked through for names of removed people, so that no answer takes longer for one."""
    added = api.added("/users", {"user_name": "zoe", "name": "Zoe"})
    assert api.get("/audit?user=zoe").json()["items"]
    assert api.delete(f"/users/{added['id']}", if_match="*").status_code == 204
    assert api.get("/audit?user=zoe").json() == api.get("/audit?user=nobody").json() == {"items": []}
    actions = [each["action"] for each in api.get(f"/audit?user={added['id']}").json()["items"]]
    assert actions == ["user.remove", "user.add"]


def test_the_people_of_an_entry_are_named_as_far_as_the_caller_may_know(world: World, api: Api) -> None:
    """D61, D68: somebody invited by their address then, also after it."""
    invited = api.added("/invitations", {"entity": HARBOUR, "name": "Gina Teo", "email": "gina@harbour.example"})
    assert api.delete(f"/invitations/{invited['id']}", if_match="*").status_code == 204
    for caller, action in product((api, bound(world)), ("invite", "remove")):
        [entry] = caller.get(f"/audit?entity={HARBOUR}&action=membership.{action}&limit=1").json()["items"]
        assert list(entry["people"].values()) == ["(invited) gina@harbour.example (Gina Teo)"]
    again = api.added("/invitations", {"entity": HARBOUR, "name": "Hana Lim", "email": "hana@harbour.example"})
    members = {each["identity"]: each["user_id"] for each in api.every(f"/memberships?entity={HARBOUR}")}
    waiting = members[again["email"]]
    event = AuditEvent(actor="system", action="link.membership", object=waiting, entity_id=HARBOUR)
    world.run(world.provider.registry.audit.write(event, now=world.clock.now))
    for caller, named in ((api, {}), (bound(world), {waiting: "(invited) hana@harbour.example (Hana Lim)"})):
        [entry] = caller.get(f"/audit?entity={HARBOUR}&action=link.membership&limit=1").json()["items"]
        assert entry["people"] == named
    before = api.every("/assignments?user=alice")[0]
    gone = f"/assignments/{before['id']}"
    assert api.delete(gone, if_match="*").status_code == 204
    for caller, name in ((api, "alice"), (bound(world), f"alice ({ALICE.name})")):
        [entry] = caller.get(f"/audit?entity={HARBOUR}&action=assignment.remove&limit=1").json()["items"]
        assert entry["people"] == {before["user_id"]: name}
