"""Key sets of clients across restarts and processes: what the registry keeps of them (D27)."""

from __future__ import annotations

import pytest

from corpid.outbound.client_keys import FetchedClientKeys
from corpid.rules.audit import AuditEvent
from corpid.rules.failures import KeySetUnavailable, StoreUnavailable
from corpid.rules.oauth.records import FetchedKeySet
from tests.adapters.key_sets import DAY, HOUR, URL, Kept, RelyingParty, T, client, jwks, kids, settled


async def test_a_set_is_kept_across_restarts() -> None:
    rp, kept = RelyingParty(), Kept()
    await FetchedClientKeys(kept, rp.fetch).current(client(), now=T)
    rp.down = True
    keys = FetchedClientKeys(kept, rp.fetch)
    assert kids(await keys.current(client(), now=T + 60)) == ["one"]
    assert len(rp.fetches) == 1
    with pytest.raises(KeySetUnavailable):
        await FetchedClientKeys(kept, rp.fetch).current(client(), now=T + DAY)


async def test_a_kept_set_that_cannot_be_read_is_fetched_again() -> None:
    kept = Kept({"rp": FetchedKeySet(jwks_uri=URL, jwks="{", fetched_at=int(T))})
    assert kids(await FetchedClientKeys(kept, RelyingParty().fetch).current(client(), now=T)) == ["one"]


async def test_a_set_of_the_future_grows_old_like_any_other() -> None:
    """A clock that was once wrong must not keep withdrawn keys alive for years."""
    rp = RelyingParty(body=jwks("two"))
    kept = Kept({"rp": FetchedKeySet(jwks_uri=URL, jwks=jwks("one").decode(), fetched_at=int(T) + 400 * DAY)})
    keys = FetchedClientKeys(kept, rp.fetch)
    assert kids(await keys.current(client(), now=T)) == ["one"]
    await keys.current(client(), now=T + HOUR)
    await settled()
    assert kids(await keys.current(client(), now=T + HOUR + 6)) == ["two"]
    assert kept.sets["rp"].fetched_at == int(T) + HOUR


async def test_what_another_process_fetched_is_used_within_five_seconds() -> None:
    rp, kept = RelyingParty(), Kept()
    here, there = FetchedClientKeys(kept, rp.fetch), FetchedClientKeys(kept, rp.fetch)
    await here.current(client(), now=T)
    await there.current(client(), now=T)
    rp.body = jwks("two")
    await there.refetch(client(), now=T + 1)
    assert kids(await here.current(client(), now=T + 5)) == ["two"]
    assert len(rp.fetches) == 2


async def test_a_set_that_an_operator_dropped_is_gone_within_five_seconds() -> None:
    rp, kept = RelyingParty(), Kept()
    keys = FetchedClientKeys(kept, rp.fetch)
    await keys.current(client(), now=T)
    await kept.drop_fetched_key_set("rp", AuditEvent(actor="operator", action="client.drop_keys"))
    rp.down = True
    with pytest.raises(KeySetUnavailable):
        await keys.current(client(), now=T + 5)
    with pytest.raises(KeySetUnavailable):
        await keys.current(client(), now=T + 6)
    rp.down, rp.body = False, jwks("two")
    assert kids(await keys.current(client(), now=T + 20)) == ["two"]
    assert kept.sets["rp"].jwks.encode() == rp.body


async def test_private_members_are_not_kept() -> None:
    """D27: a relying party that publishes its private key does not find it in our database."""
    rp, kept = RelyingParty(), Kept()
    rp.body = jwks("one", d="c2VjcmV0")
    assert kids(await FetchedClientKeys(kept, rp.fetch).current(client(), now=T)) == ["one"]
    assert "c2VjcmV0" not in kept.sets["rp"].jwks
    assert kept.sets["rp"].jwks.encode() == jwks("one")


async def test_another_url_in_the_record_makes_the_old_set_worthless() -> None:
    rp, kept = RelyingParty(), Kept()
    keys = FetchedClientKeys(kept, rp.fetch)
    await keys.current(client(), now=T)
    rp.down = True
    moved = client("https://rp.example/new")
    with pytest.raises(KeySetUnavailable):
        await keys.current(moved, now=T + 1)
    with pytest.raises(KeySetUnavailable):
        await FetchedClientKeys(kept, rp.fetch).current(moved, now=T + 1)
    rp.down, rp.body = False, jwks("two")
    assert kids(await keys.current(moved, now=T + 20)) == ["two"]
    assert kept.sets["rp"].jwks_uri == moved.jwks_uri
    assert kids(await keys.current(client(None, jwks("three").decode()), now=T + 21)) == ["three"]


async def test_a_store_that_is_down_takes_no_set_away_that_is_in_memory() -> None:
    rp, kept = RelyingParty(), Kept()
    keys = FetchedClientKeys(kept, rp.fetch)
    await keys.current(client(), now=T)
    kept.down = True
    assert kids(await keys.current(client(), now=T + 60)) == ["one"]
    rp.body = jwks("two")
    assert kids(await keys.refetch(client(), now=T + 61)) == ["two"]
    with pytest.raises(StoreUnavailable):
        await FetchedClientKeys(kept, rp.fetch).current(client(), now=T + 61)
    kept.down = False
    assert kids(await keys.current(client(), now=T + 70)) == ["two"]
