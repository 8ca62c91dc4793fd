"""Look-up by reference and search: what is found, and by whom (D53, D82)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory.actors import load_operator
from corpid.flows.operations import lookup
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory.records import Operator, User
from corpid.rules.references import find_reference, make_reference
from tests.console.scene import WITHOUT_PASSKEY, in_console
from tests.sign_in.world import new_world

if TYPE_CHECKING:
    from corpid.flows.operations.lookup import ReferenceRecords, SearchResult
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.rules.directory.records import OperatorLevel
    from tests.sign_in.world import World

LEVELS: tuple[OperatorLevel, ...] = ("operator", "support", "auditor")


async def actor(made: World, level: OperatorLevel) -> DeploymentOperator:
    """Somebody of this level, who has just signed in."""
    user_id = f"id-of-{level}"
    await made.write(
        User(user_id=user_id, user_name=f"of-{level}", name="Opal"), Operator(user_id=user_id, level=level)
    )
    now = made.clock()
    return await load_operator(made.provider.registry, user_id, auth_time=now, now=now)


async def refused(made: World, client_id: str = "rp1") -> str:
    """The reference in the description of a client's refused request."""
    http = await made.http()
    answer = await http.post("/request", data={"client_id": client_id})
    await made.provider.refusals.flush(made.provider.registry)
    await made.provider.counters.flush(made.provider.registry)
    return find_reference(answer.json()["error_description"])


async def looked_up(made: World, reference: str, level: OperatorLevel) -> ReferenceRecords:
    who = await actor(made, level)
    return await lookup.look_up(made.provider.registry, reference, actor=who, now=made.clock())


async def searched(made: World, text: str, level: OperatorLevel = "operator") -> SearchResult:
    return await lookup.search(made.provider.registry, text, actor=await actor(made, level), limit=3)


def names(found: SearchResult) -> list[Any]:
    return [getattr(each, "user_name", None) or each.name for group in found.groups for each in group.found]


@pytest.mark.parametrize("level", LEVELS)
async def test_the_reference_in_a_description_finds_the_refusal_with_its_reason(level: OperatorLevel) -> None:
    """D28, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made)
        made.clock.pass_(86_400)
        found = await looked_up(made, reference, level)
        ((reason, client),) = [(each.reason, each.client_id) for each in found.refusals]
        assert (reason, client) == ("assertion_type", "rp1")
        assert found.at == made.clock() - 86_400
        assert not found.counts


async def test_a_refusal_whose_reference_names_no_time_is_found_as_well() -> None:
    """D82: references of earlier versions were random."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made)
        registry = made.provider.registry
        (kept,) = await registry.client_refusals.list_for_client("rp1")
        await registry.client_refusals.add([replace(kept, request_id="0" * 16)], kept=20)
        found = await looked_up(made, "0" * 16, "operator")
        assert (found.at, [each.client_id for each in found.refusals]) == (0, ["rp1"])
        assert reference != "0" * 16


async def test_a_request_of_nobody_is_known_by_its_time_and_the_refusals_of_its_hour() -> None:
    """D82: nothing is written for it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made, "stranger")
        found = await looked_up(made, reference, "support")
        assert (found.at, found.refusals, found.entries) == (int(made.clock()), (), ())
        assert [(each.reason, each.count) for each in found.counts] == [("assertion_type", 1)]


async def test_the_ending_of_a_sign_in_and_what_it_wrote_are_found_by_its_reference() -> None:
    """D57, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for _ in range(3):
            await in_console(made, "auditor")
            made.clock.pass_(400)
        entries = await made.audit("sign_in.complete")
        for each in entries:
            found = await looked_up(made, each.request_id, "operator")
            assert each.number in [one.number for one in found.entries]
            assert {one.request_id for one in found.entries} == {each.request_id}
        assert len({each.request_id for each in entries}) == 3


async def test_support_finds_nothing_about_operators_by_a_reference() -> None:
    """D53, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await in_console(made, "auditor")
        (ending,) = await made.audit("sign_in.complete")
        assert not (await looked_up(made, ending.request_id, "support")).entries
        assert (await looked_up(made, ending.request_id, "auditor")).entries


async def test_a_reference_that_nobody_made_finds_nothing_and_nothing_is_written() -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        who, registry = await actor(made, "operator"), made.provider.registry
        before = len(await registry.audit.latest(AuditQuery(), limit=100))
        for reference in (make_reference(made.clock(), 7), make_reference(made.clock() + 3000, 7), "f" * 16):
            found = await lookup.look_up(registry, reference, actor=who, now=made.clock())
            assert not (found.refusals or found.entries)
        assert len(await registry.audit.latest(AuditQuery(), limit=100)) == before


@pytest.mark.parametrize("level", LEVELS)
async def test_every_kind_of_record_is_found_and_counted(level: OperatorLevel) -> None:
    """D82, D83."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        assert names(await searched(made, "ali", level)) == ["alice"]
        assert names(await searched(made, "alice t", level)) == ["alice"]
        assert "Acme Pte. Ltd." in names(await searched(made, "acme", level))
        assert names(await searched(made, "PERM", level)) == ["Permits"]
        assert names(await searched(made, "rp", level)) == ["Relying Party 1"]
        await made.write(*(User(user_id=f"id-{n}", user_name=f"many{n}", name="M") for n in range(5)))
        (people,) = (await searched(made, "many", level)).groups
        assert (len(people.found), people.total.count, people.total.exact) == (3, 3, False)


async def test_support_neither_finds_nor_counts_operators() -> None:
    """D53, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Operator(user_id="id-alice", level="auditor"))
        assert names(await searched(made, "alice", "auditor")) == ["alice"]
        assert not (await searched(made, "alice", "support")).groups


async def test_a_key_is_found_by_its_identifier_at_the_server_and_at_clients() -> None:
    """D42, D82: the identifier as a whole, and no pattern of the database."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        (own, *_) = [each.kid for each in await made.provider.registry.keys.list_all() if each.use == "sig"]
        assert [each.kid for each in (await searched(made, own)).keys] == [own]
        client = await made.provider.registry.clients.get("rp1")
        theirs = [key["kid"] for key in json.loads(client.jwks)["keys"]]
        for kid in theirs:
            assert [each.client_id for each in (await searched(made, kid)).key_clients] == ["rp1"]
            assert not (await searched(made, kid[:-1])).key_clients
        for pattern in ("%%%%", "____", "!!!!", "keys", '"kid"'):
            assert not (await searched(made, pattern)).key_clients


@pytest.mark.parametrize(
    "text", ["", "\0", "\ud800", "%", "' OR 1=1 --", "<script>", "a" * 100, "٣٤", "\N{ZERO WIDTH JOINER}"]
)
async def test_a_hostile_text_finds_nothing(text: str) -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        found = await searched(made, text)
        assert not (found.groups or found.keys or found.key_clients)
