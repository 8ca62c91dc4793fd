"""The latest refusals of each client (D28)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from corpid.flows.operations.buffers import RecentRefusals
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change
from corpid.rules.oauth.records import Client, FetchedKeySet
from corpid.rules.oauth.refusals import ClientRefusal
from tests.adapters.opened import EVENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

RP = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')
OTHER = Client(client_id="other", name="Other", redirect_uris=("https://o.example/cb",), jwks='{"keys":[]}')


def refusal(at: float, request_id: str = "r", *, client_id: str = "rp", claimed: bool = False) -> ClientRefusal:
    return ClientRefusal(
        client_id=client_id,
        claimed=claimed,
        at=at,
        request_id=request_id,
        method="POST",
        path="/par",
        reason="assertion_audience",
        detail="aud",
    )


@asynccontextmanager
async def registered(place: Place) -> AsyncIterator[SqlStores]:
    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, RP), Change(None, OTHER)], EVENT)
        yield stores


async def test_only_the_latest_refusals_of_a_client_are_kept_and_claimed_ones_push_nothing_out(place: Place) -> None:
    async with registered(place) as stores:
        kept = stores.registry.client_refusals
        await kept.add([refusal(100.25 + number) for number in range(5)], kept=3)
        await kept.add([refusal(200 + number, claimed=True) for number in range(9)], kept=2)
        await kept.add([refusal(7, client_id="other")], kept=3)
        assert [(each.at, each.claimed) for each in await kept.list_for_client("rp")] == [
            (208, True), (207, True), (104.25, False), (103.25, False), (102.25, False),
        ]  # fmt: skip
        assert await kept.list_for_client("other") == [refusal(7, client_id="other")]


async def test_refusals_of_the_same_moment_are_kept_apart_and_none_is_written_twice(place: Place) -> None:
    """Two processes may write at the same time, and one may write again what it could not confirm."""
    async with registered(place) as stores:
        kept = stores.registry.client_refusals
        same = [refusal(100, name) for name in "abc"]
        await kept.add(same, kept=2)
        await kept.add(same, kept=2)
        assert [each.request_id for each in await kept.list_for_client("rp")] == ["c", "b"]


async def test_refusals_of_a_client_that_does_not_exist_or_is_removed_are_gone(place: Place) -> None:
    async with registered(place) as stores:
        kept = stores.registry.client_refusals
        await kept.add([refusal(100, client_id="nobody", claimed=True)], kept=2)
        assert await kept.list_for_client("nobody") == []
        await kept.add([refusal(100)], kept=2)
        await stores.registry.directory.write([Change(RP, None)], EVENT)
        assert await kept.list_for_client("rp") == []


async def test_what_no_database_keeps_is_not_noted_and_holds_nothing_up(place: Place) -> None:
    """Strangers choose what they claim to be: PostgreSQL refuses U+0000, and no engine takes half a surrogate pair."""
    async with registered(place) as stores:
        recent = RecentRefusals()
        for number, claimed in enumerate(("a\0b", "\ud800", "x" * 5000, "rp")):
            recent.note(refusal(number, client_id=claimed, claimed=True))
        await recent.flush(stores.registry)
        assert [each.at for each in await stores.registry.client_refusals.list_for_client("rp")] == [3]


async def test_nothing_is_written_for_a_client_that_does_not_exist(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers can name a thousand of them: each is one read."""
    async with registered(place) as stores:
        kept, begun = stores.registry.client_refusals, list[bool]()
        database = kept._database
        transaction = database.transaction

        def counted() -> object:
            begun.append(True)
            return transaction()

        monkeypatch.setattr(database, "transaction", counted)
        await kept.add([refusal(1, client_id="nobody", claimed=True)], kept=3)
        assert not begun
        await kept.add([refusal(1)], kept=3)
        assert begun


async def test_refusals_of_one_request_are_found_whichever_clients_they_are_of(place: Place) -> None:
    """D82."""
    async with registered(place) as stores:
        kept = stores.registry.client_refusals
        await kept.add([refusal(100, "a"), refusal(100.5, "b"), refusal(300, "a")], kept=9)
        await kept.add([refusal(100, "a", client_id="other", claimed=True)], kept=9)

        async def found(reference: str, since: float, until: float, limit: int = 9) -> list[tuple[str, float]]:
            rows = await kept.list_by_reference(reference, since=since, until=until, limit=limit)
            return [(each.client_id, each.at) for each in rows]

        assert await found("a", 0, 300) == [("other", 100), ("rp", 100)]
        assert await found("a", 0, 1000, limit=2) == [("other", 100), ("rp", 100)]
        assert await found("b", 100, 101) == [("rp", 100.5)]
        assert await found("b", 0, 100) == []


async def test_clients_are_found_by_a_text_of_their_keys_and_no_pattern_of_the_database_means_anything(
    place: Place,
) -> None:
    """D82: keys of the record, and those that were fetched."""
    async with place.opened() as stores:
        clients, directory = stores.registry.clients, stores.registry.directory
        own = Client(client_id="own", name="RP", redirect_uris=RP.redirect_uris, jwks='{"keys":[{"kid":"a%b_c!d"}]}')
        far = Client(client_id="far", name="RP", redirect_uris=RP.redirect_uris, jwks_uri="https://rp.example/keys")
        await directory.write([Change(None, own), Change(None, far)], EVENT)
        fetched = FetchedKeySet(jwks_uri="https://rp.example/keys", jwks='{"keys":[{"kid":"of-far"}]}', fetched_at=1)
        await clients.keep_fetched_key_set("far", fetched)
        assert await clients.list_mentioning("a%b_c!d", limit=9) == ["own"]
        assert await clients.list_mentioning("of-far", limit=9) == ["far"]
        for pattern in ("a%c", "a_b_c!d", "%%", "!%"):
            assert await clients.list_mentioning(pattern, limit=9) == []


async def test_audit_entries_of_one_request_are_found_within_a_range_of_numbers(place: Place) -> None:
    """D82."""
    async with place.opened() as stores:
        log = stores.registry.audit
        for request_id in ("a", "b", "a"):
            await log.write(AuditEvent(actor="system", action="test.change", object="o", request_id=request_id), now=1)
        numbers = [each.number for each in await log.list_by_request("a", after=0, last=1 << 40, limit=9)]
        assert numbers[1] == numbers[0] + 2
        one = await log.list_by_request("a", after=numbers[0], last=numbers[1], limit=9)
        assert [each.number for each in one] == numbers[1:]
