"""The serving processes that register themselves (D49)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.rules.server_processes import ServerProcess

if TYPE_CHECKING:
    from tests.adapters.databases import Place

ONE = ServerProcess(
    process_id="one",
    host="node1",
    number=812,
    address="0.0.0.0:8000",
    version="0.1.0",
    started_at=100,
    seen_at=100,
    settings={"base_url": "https://login.example", "key_encryption_key": "Zk1c0pQ4"},
)


async def test_a_process_is_noted_again_and_again_listed_once_and_removed(place: Place) -> None:
    async with place.opened() as stores:
        processes = stores.registry.server_processes
        await processes.note(ONE)
        await processes.note(replace(ONE, process_id="two", host="node0"))
        await processes.note(replace(ONE, seen_at=160))
        assert await processes.list_all() == [replace(ONE, process_id="two", host="node0"), replace(ONE, seen_at=160)]
        await processes.remove("one")
        await processes.remove("one")
        assert [each.process_id for each in await processes.list_all()] == ["two"]


async def test_those_that_were_not_seen_for_long_are_removed(place: Place) -> None:
    async with place.opened() as stores:
        processes = stores.registry.server_processes
        await processes.note(ONE)
        await processes.note(replace(ONE, process_id="later", seen_at=200))
        assert await processes.remove_old(before=200) == 1
        assert [each.process_id for each in await processes.list_all()] == ["later"]
