"""Key sets of clients: what is fetched when, and which set a request gets (D27)."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from corpid.outbound.client_keys import ClientKeys, FetchedClientKeys
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth.records import FetchedKeySet
from tests.adapters.key_sets import DAY, HOUR, URL, Kept, RelyingParty, T, client, jwks, kids, settled
from tests.adapters.rp_server import answer, egress_to, relying_party
from tests.logs import capture_logs


async def test_an_inline_set_is_prepared_once_and_kept_by_its_content() -> None:
    rp, kept = RelyingParty(), Kept()
    keys: ClientKeys = FetchedClientKeys(kept, rp.fetch)
    first = await keys.current(client(None, jwks("a").decode()), now=T)
    assert kids(first) == ["a"]
    assert await keys.current(client(None, jwks("a").decode()), now=T + DAY) is first
    assert await keys.refetch(client(None, jwks("a").decode()), now=T) is first
    assert kids(await keys.current(client(None, jwks("b").decode()), now=T)) == ["b"]
    assert (rp.fetches, kept.reads) == ([], 0)


@pytest.mark.parametrize("inline", [None, "", "{", "[]", '{"keys":1}'])
def test_a_client_without_a_readable_inline_set_or_url_has_no_key_set(inline: str | None) -> None:
    keys = FetchedClientKeys(Kept(), RelyingParty().fetch)
    with pytest.raises(KeySetUnavailable, match="the key set in the record of rp"):
        asyncio.run(keys.current(client(None, inline), now=T))


async def test_a_fetched_set_is_the_answer_for_an_hour_without_another_fetch() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    for seconds in (0, 1, 100, HOUR - 1):
        assert kids(await keys.current(client(), now=T + seconds)) == ["one"]
        await settled()
    assert rp.fetches == [URL]


async def test_requests_within_five_seconds_never_touch_the_store() -> None:
    kept = Kept()
    keys = FetchedClientKeys(kept, RelyingParty().fetch)
    first = await keys.current(client(), now=T)
    reads = kept.reads
    for _ in range(100):
        assert await keys.current(client(), now=T + 4.9) is first
    assert kept.reads == reads
    assert await keys.current(client(), now=T + 5.1) is first
    assert kept.reads == reads + 1


async def test_after_an_hour_the_old_set_answers_at_once_and_the_new_one_comes_in_the_background() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.body, rp.gate = jwks("two"), asyncio.Event()
    for _ in range(10):
        assert kids(await keys.current(client(), now=T + HOUR)) == ["one"]
    rp.gate.set()
    await settled()
    assert kids(await keys.current(client(), now=T + HOUR + 1)) == ["two"]
    assert len(rp.fetches) == 2


async def test_fifty_requests_of_one_client_make_one_fetch() -> None:
    rp, kept = RelyingParty(gate=asyncio.Event()), Kept()
    keys = FetchedClientKeys(kept, rp.fetch)
    waiting = [asyncio.create_task(keys.current(client(), now=T)) for _ in range(50)]
    await settled()
    assert rp.gate is not None
    rp.gate.set()
    assert len({id(key_set) for key_set in await asyncio.gather(*waiting)}) == 1
    assert (len(rp.fetches), kept.reads) == (1, 1)


async def test_whoever_gives_up_waiting_ends_neither_the_fetch_nor_the_wait_of_the_others() -> None:
    rp = RelyingParty(gate=asyncio.Event())
    keys = FetchedClientKeys(Kept(), rp.fetch)
    impatient, patient = (asyncio.create_task(keys.current(client(), now=T)) for _ in range(2))
    await settled()
    impatient.cancel()
    await settled()
    assert impatient.cancelled()
    assert rp.gate is not None
    rp.gate.set()
    assert kids(await patient) == ["one"]
    assert len(rp.fetches) == 1


async def test_a_slow_url_of_one_client_delays_no_other_client() -> None:
    slow, fast = RelyingParty(gate=asyncio.Event()), RelyingParty()

    async def fetch(url: str) -> bytes:
        return await (slow if "slow" in url else fast).fetch(url)

    keys = FetchedClientKeys(Kept(), fetch)
    waiting = asyncio.create_task(keys.current(client("https://slow.example/", client_id="slow"), now=T))
    await settled()
    assert kids(await keys.current(client(), now=T)) == ["one"]
    assert not waiting.done()
    await keys.close()


async def test_an_unknown_kid_fetches_again_at_once_but_only_once_a_minute() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.body = jwks("two")
    assert kids(await keys.refetch(client(), now=T)) == ["two"]
    rp.body = jwks("three")
    assert kids(await keys.refetch(client(), now=T + 59)) == ["two"]
    assert len(rp.fetches) == 2
    assert kids(await keys.refetch(client(), now=T + 60)) == ["three"]
    assert len(rp.fetches) == 3


async def test_fifty_unknown_kids_at_the_same_time_make_one_fetch() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.body = jwks("two")
    answers = await asyncio.gather(*(keys.refetch(client(), now=T + 1) for _ in range(50)))
    assert {tuple(kids(key_set)) for key_set in answers} == {("two",)}
    assert len(rp.fetches) == 2


@pytest.mark.parametrize("body", [jwks("two"), jwks()])
async def test_a_valid_set_takes_effect_at_once_even_if_it_lost_keys(body: bytes) -> None:
    rp = RelyingParty(body=jwks("one", "two"))
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.body = body
    expected = [key["kid"] for key in json.loads(body)["keys"]]
    assert kids(await keys.refetch(client(), now=T + 1)) == expected
    assert kids(await keys.current(client(), now=T + 1)) == expected


@pytest.mark.parametrize("trouble", ["unreachable", "malformed"])
async def test_without_a_new_set_the_last_good_one_stays_in_use_for_a_day_after_it_was_fetched(trouble: str) -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.down, rp.body = trouble == "unreachable", b"<html>Down for maintenance</html>"
    assert kids(await keys.refetch(client(), now=T + 1)) == ["one"]
    for seconds in (HOUR, 12 * HOUR, DAY - 1):
        assert kids(await keys.current(client(), now=T + seconds)) == ["one"]
        await settled()
    with pytest.raises(KeySetUnavailable):
        await keys.current(client(), now=T + DAY)


async def test_a_day_is_counted_from_the_fetch_even_when_the_set_was_looked_at_a_second_before() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.down = True
    assert kids(await keys.current(client(), now=T + DAY - 1)) == ["one"]
    await settled()
    with pytest.raises(KeySetUnavailable):
        await keys.current(client(), now=T + DAY + 1)


async def test_no_set_at_all_is_unavailable_and_says_why() -> None:
    rp = RelyingParty(down=True)
    keys = FetchedClientKeys(Kept(), rp.fetch)
    with pytest.raises(KeySetUnavailable, match=r"no key set at https://rp\.example/jwks: no connection"):
        await keys.current(client(), now=T)
    with pytest.raises(KeySetUnavailable, match="no connection"):
        await keys.refetch(client(), now=T + 1)


async def test_a_dead_url_is_tried_every_ten_seconds_and_not_by_every_request() -> None:
    rp = RelyingParty(down=True)
    keys = FetchedClientKeys(Kept(), rp.fetch)
    for seconds in (0, 1, 5, 9.9):
        with pytest.raises(KeySetUnavailable):
            await keys.current(client(), now=T + seconds)
    assert len(rp.fetches) == 1
    rp.down = False
    assert kids(await keys.current(client(), now=T + 10)) == ["one"]


async def test_a_refetch_that_a_dead_url_prevented_is_not_held_against_the_next_one() -> None:
    rp = RelyingParty()
    keys = FetchedClientKeys(Kept(), rp.fetch)
    await keys.current(client(), now=T)
    rp.down = True
    await keys.current(client(), now=T + HOUR)
    await settled()
    assert kids(await keys.refetch(client(), now=T + HOUR + 1)) == ["one"]
    rp.down, rp.body = False, jwks("two")
    assert kids(await keys.refetch(client(), now=T + HOUR + 11)) == ["two"]


async def test_a_key_set_that_comes_and_goes_is_logged_once_in_ten_minutes() -> None:
    """D49: one line when it cannot be fetched, one when it can again, however often it is asked for."""
    rp = RelyingParty(body=jwks("one"))
    keys = FetchedClientKeys(Kept(), rp.fetch)
    with capture_logs() as logged:
        await keys.current(client(), now=T)
        for seconds in range(61, 600, 61):
            rp.down = seconds % 2 == 1
            await keys.refetch(client(), now=T + seconds)
        rp.down = True
        await keys.refetch(client(), now=T + 700)
    told = [line["event"] for line in logged if line["log_level"] == "warning"]
    assert told == ["key_set_not_fetched", "key_set_fetched_again", "key_set_not_fetched"]


async def test_trouble_and_private_members_are_logged_for_the_operator_cut_to_size() -> None:
    rp = RelyingParty(body=jwks("one", d="AAAA"))
    keys = FetchedClientKeys(Kept(), rp.fetch)
    with capture_logs() as logged:
        await keys.current(client(), now=T)
        rp.body = b'{"keys":"' + b"x" * 5000
        await keys.refetch(client(), now=T + 1)
    assert [line["event"] for line in logged] == ["key_set_fetched", "key_set_not_fetched"]
    assert "private member d" in logged[0]["detail"]
    assert all(line["client_id"] == "rp" and len(line["detail"]) <= 300 for line in logged)


async def test_a_set_comes_from_a_server_over_tls_through_the_one_outgoing_client() -> None:
    async with relying_party(answer(jwks("real"))) as server:
        kept = Kept()
        keys = FetchedClientKeys(kept, egress_to(server.port).fetch)
        assert kids(await keys.current(client(server.url), now=T)) == ["real"]
        assert kept.sets["rp"] == FetchedKeySet(jwks_uri=server.url, jwks=jwks("real").decode(), fetched_at=int(T))
        assert msgspec.json.decode(msgspec.json.encode(kept.sets["rp"]), type=FetchedKeySet) == kept.sets["rp"]


async def test_closing_ends_what_is_under_way() -> None:
    others = asyncio.all_tasks()
    rp = RelyingParty(gate=asyncio.Event())
    keys = FetchedClientKeys(Kept(), rp.fetch)
    waiting = asyncio.create_task(keys.current(client(), now=T))
    await settled()
    await keys.close()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert asyncio.all_tasks() == others
