"""Key sets of clients: what is fetched when, and which set a request gets (D27)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from corpid.adapters.client_keys import FetchedClientKeys
from corpid.adapters.egress import EgressError
from corpid.jose.encoding import base64url
from corpid.ports import AuditEvent, FetchedKeySet, KeySetUnavailable, StoreUnavailable
from corpid.protocol.records import Client
from tests.adapters.rp_server import answer, egress_to, relying_party

if TYPE_CHECKING:
    from corpid.jose.keys import ClientKeySet
    from corpid.ports import ClientKeys

URL = "https://rp.example/jwks"
T = 1_800_000_000.0
HOUR = 3600
DAY = 86400


def jwks(*kids: str, **members: str) -> bytes:
    keys = []
    for kid in kids:
        numbers = ec.derive_private_key(len(kid) + ord(kid[-1]), ec.SECP256R1()).public_key().public_numbers()
        point = {"x": base64url(numbers.x.to_bytes(32, "big")), "y": base64url(numbers.y.to_bytes(32, "big"))}
        keys.append({"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, **point, **members})
    return json.dumps({"keys": keys}, separators=(",", ":")).encode()


def kids(key_set: ClientKeySet) -> list[str | None]:
    return [key.kid for key in key_set.signing]


def client(jwks_uri: str | None = URL, inline: str | None = None, client_id: str = "rp") -> Client:
    return Client(
        client_id=client_id, name="RP", redirect_uris=("https://rp.example/cb",), jwks=inline, jwks_uri=jwks_uri
    )


@dataclass(slots=True)
class Kept:
    """The part of a registry that keeps fetched key sets, shared by processes and restarts."""

    sets: dict[str, FetchedKeySet] = field(default_factory=dict)
    reads: int = 0
    down: bool = False

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        self._demand_up()
        self.reads += 1
        await asyncio.sleep(0)
        return self.sets.get(client_id)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        self._demand_up()
        self.sets[client_id] = fetched

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        self._demand_up()
        self.sets.pop(client_id, None)

    async def get(self, client_id: str) -> Client | None:
        return None

    async def all(self) -> list[Client]:
        return []

    def _demand_up(self) -> None:
        if self.down:
            raise StoreUnavailable("down")


@dataclass(slots=True)
class RelyingParty:
    """What stands at the URLs; `gate` holds answers back."""

    body: bytes = field(default_factory=lambda: jwks("one"))
    down: bool = False
    fetches: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def fetch(self, url: str) -> bytes:
        self.fetches.append(url)
        if self.gate is not None:
            await self.gate.wait()
        if self.down:
            raise EgressError("no connection to rp.example")
        return self.body


async def settled() -> None:
    """Let what runs in the background come to its end."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_an_inline_set_is_prepared_once_and_kept_by_its_content() -> None:
    async def story() -> None:
        rp, kept = RelyingParty(), Kept()
        keys: ClientKeys = FetchedClientKeys(kept, rp.fetch)
        first = await keys.current(client(None, jwks("a").decode()), now=T)
        assert kids(first) == ["a"]
        assert await keys.current(client(None, jwks("a").decode()), now=T + DAY) is first
        assert await keys.refetched(client(None, jwks("a").decode()), now=T) is first
        assert kids(await keys.current(client(None, jwks("b").decode()), now=T)) == ["b"]
        assert (rp.fetches, kept.reads) == ([], 0)

    asyncio.run(story())


@pytest.mark.parametrize("inline", [None, "", "{", "[]", '{"keys":1}'])
def test_a_client_without_a_readable_inline_set_or_url_has_no_key_set(inline: str | None) -> None:
    keys = FetchedClientKeys(Kept(), RelyingParty().fetch)
    with pytest.raises(KeySetUnavailable, match="the key set in the record of rp"):
        asyncio.run(keys.current(client(None, inline), now=T))


def test_a_fetched_set_is_the_answer_for_an_hour_without_another_fetch() -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        for seconds in (0, 1, 100, HOUR - 1):
            assert kids(await keys.current(client(), now=T + seconds)) == ["one"]
            await settled()
        assert rp.fetches == [URL]

    asyncio.run(story())


def test_requests_within_five_seconds_never_touch_the_store() -> None:
    async def story() -> None:
        kept = Kept()
        keys = FetchedClientKeys(kept, RelyingParty().fetch)
        first = await keys.current(client(), now=T)
        reads = kept.reads
        for _ in range(100):
            assert await keys.current(client(), now=T + 4.9) is first
        assert kept.reads == reads
        assert await keys.current(client(), now=T + 5.1) is first
        assert kept.reads == reads + 1

    asyncio.run(story())


def test_after_an_hour_the_old_set_answers_at_once_and_the_new_one_comes_in_the_background() -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_fifty_requests_of_one_client_make_one_fetch() -> None:
    async def story() -> None:
        rp, kept = RelyingParty(gate=asyncio.Event()), Kept()
        keys = FetchedClientKeys(kept, rp.fetch)
        waiting = [asyncio.create_task(keys.current(client(), now=T)) for _ in range(50)]
        await settled()
        assert rp.gate is not None
        rp.gate.set()
        assert len({id(key_set) for key_set in await asyncio.gather(*waiting)}) == 1
        assert (len(rp.fetches), kept.reads) == (1, 1)

    asyncio.run(story())


def test_whoever_gives_up_waiting_ends_neither_the_fetch_nor_the_wait_of_the_others() -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_a_slow_url_of_one_client_delays_no_other_client() -> None:
    async def story() -> None:
        slow, fast = RelyingParty(gate=asyncio.Event()), RelyingParty()

        async def fetch(url: str) -> bytes:
            return await (slow if "slow" in url else fast).fetch(url)

        keys = FetchedClientKeys(Kept(), fetch)
        waiting = asyncio.create_task(keys.current(client("https://slow.example/", client_id="slow"), now=T))
        await settled()
        assert kids(await keys.current(client(), now=T)) == ["one"]
        assert not waiting.done()
        await keys.close()

    asyncio.run(story())


def test_an_unknown_kid_fetches_again_at_once_but_only_once_a_minute() -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.body = jwks("two")
        assert kids(await keys.refetched(client(), now=T)) == ["two"]
        rp.body = jwks("three")
        assert kids(await keys.refetched(client(), now=T + 59)) == ["two"]
        assert len(rp.fetches) == 2
        assert kids(await keys.refetched(client(), now=T + 60)) == ["three"]
        assert len(rp.fetches) == 3

    asyncio.run(story())


def test_fifty_unknown_kids_at_the_same_time_make_one_fetch() -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.body = jwks("two")
        answers = await asyncio.gather(*(keys.refetched(client(), now=T + 1) for _ in range(50)))
        assert {tuple(kids(key_set)) for key_set in answers} == {("two",)}
        assert len(rp.fetches) == 2

    asyncio.run(story())


@pytest.mark.parametrize("body", [jwks("two"), jwks()])
def test_a_valid_set_takes_effect_at_once_even_if_it_lost_keys(body: bytes) -> None:
    async def story() -> None:
        rp = RelyingParty(body=jwks("one", "two"))
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.body = body
        expected = [key["kid"] for key in json.loads(body)["keys"]]
        assert kids(await keys.refetched(client(), now=T + 1)) == expected
        assert kids(await keys.current(client(), now=T + 1)) == expected

    asyncio.run(story())


@pytest.mark.parametrize("trouble", ["unreachable", "malformed"])
def test_without_a_new_set_the_last_good_one_stays_in_use_for_a_day_after_it_was_fetched(trouble: str) -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.down, rp.body = trouble == "unreachable", b"<html>Down for maintenance</html>"
        assert kids(await keys.refetched(client(), now=T + 1)) == ["one"]
        for seconds in (HOUR, 12 * HOUR, DAY - 1):
            assert kids(await keys.current(client(), now=T + seconds)) == ["one"]
            await settled()
        with pytest.raises(KeySetUnavailable):
            await keys.current(client(), now=T + DAY)

    asyncio.run(story())


def test_a_day_is_counted_from_the_fetch_even_when_the_set_was_looked_at_a_second_before() -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.down = True
        assert kids(await keys.current(client(), now=T + DAY - 1)) == ["one"]
        await settled()
        with pytest.raises(KeySetUnavailable):
            await keys.current(client(), now=T + DAY + 1)

    asyncio.run(story())


def test_no_set_at_all_is_unavailable_and_says_why() -> None:
    async def story() -> None:
        rp = RelyingParty(down=True)
        keys = FetchedClientKeys(Kept(), rp.fetch)
        with pytest.raises(KeySetUnavailable, match=r"no key set at https://rp\.example/jwks: no connection"):
            await keys.current(client(), now=T)
        with pytest.raises(KeySetUnavailable, match="no connection"):
            await keys.refetched(client(), now=T + 1)

    asyncio.run(story())


def test_a_dead_url_is_tried_every_ten_seconds_and_not_by_every_request() -> None:
    async def story() -> None:
        rp = RelyingParty(down=True)
        keys = FetchedClientKeys(Kept(), rp.fetch)
        for seconds in (0, 1, 5, 9.9):
            with pytest.raises(KeySetUnavailable):
                await keys.current(client(), now=T + seconds)
        assert len(rp.fetches) == 1
        rp.down = False
        assert kids(await keys.current(client(), now=T + 10)) == ["one"]

    asyncio.run(story())


def test_a_refetch_that_a_dead_url_prevented_is_not_held_against_the_next_one() -> None:
    async def story() -> None:
        rp = RelyingParty()
        keys = FetchedClientKeys(Kept(), rp.fetch)
        await keys.current(client(), now=T)
        rp.down = True
        await keys.current(client(), now=T + HOUR)
        await settled()
        assert kids(await keys.refetched(client(), now=T + HOUR + 1)) == ["one"]
        rp.down, rp.body = False, jwks("two")
        assert kids(await keys.refetched(client(), now=T + HOUR + 11)) == ["two"]

    asyncio.run(story())


def test_a_set_is_kept_across_restarts() -> None:
    async def story() -> None:
        rp, kept = RelyingParty(), Kept()
        await FetchedClientKeys(kept, rp.fetch).current(client(), now=T)
        rp.down = True
        keys = FetchedClientKeys(kept, rp.fetch)
        assert kids(await keys.current(client(), now=T + 60)) == ["one"]
        assert len(rp.fetches) == 1
        with pytest.raises(KeySetUnavailable):
            await FetchedClientKeys(kept, rp.fetch).current(client(), now=T + DAY)

    asyncio.run(story())


def test_a_kept_set_that_cannot_be_read_is_fetched_again() -> None:
    async def story() -> None:
        kept = Kept({"rp": FetchedKeySet(jwks_uri=URL, jwks="{", fetched_at=int(T))})
        assert kids(await FetchedClientKeys(kept, RelyingParty().fetch).current(client(), now=T)) == ["one"]

    asyncio.run(story())


def test_a_set_of_the_future_grows_old_like_any_other() -> None:
    """A clock that was once wrong must not keep withdrawn keys alive for years."""

    async def story() -> None:
        rp = RelyingParty(body=jwks("two"))
        kept = Kept({"rp": FetchedKeySet(jwks_uri=URL, jwks=jwks("one").decode(), fetched_at=int(T) + 400 * DAY)})
        keys = FetchedClientKeys(kept, rp.fetch)
        assert kids(await keys.current(client(), now=T)) == ["one"]
        await keys.current(client(), now=T + HOUR)
        await settled()
        assert kids(await keys.current(client(), now=T + HOUR + 6)) == ["two"]
        assert kept.sets["rp"].fetched_at == int(T) + HOUR

    asyncio.run(story())


def test_what_another_process_fetched_is_used_within_five_seconds() -> None:
    async def story() -> None:
        rp, kept = RelyingParty(), Kept()
        here, there = FetchedClientKeys(kept, rp.fetch), FetchedClientKeys(kept, rp.fetch)
        await here.current(client(), now=T)
        await there.current(client(), now=T)
        rp.body = jwks("two")
        await there.refetched(client(), now=T + 1)
        assert kids(await here.current(client(), now=T + 5)) == ["two"]
        assert len(rp.fetches) == 2

    asyncio.run(story())


def test_a_set_that_an_operator_dropped_is_gone_within_five_seconds() -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_private_members_are_not_kept() -> None:
    """D27: a relying party that publishes its private key does not find it in our database."""

    async def story() -> None:
        rp, kept = RelyingParty(), Kept()
        rp.body = jwks("one", d="c2VjcmV0")
        assert kids(await FetchedClientKeys(kept, rp.fetch).current(client(), now=T)) == ["one"]
        assert "c2VjcmV0" not in kept.sets["rp"].jwks
        assert kept.sets["rp"].jwks.encode() == jwks("one")

    asyncio.run(story())


def test_another_url_in_the_record_makes_the_old_set_worthless() -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_a_store_that_is_down_takes_no_set_away_that_is_in_memory() -> None:
    async def story() -> None:
        rp, kept = RelyingParty(), Kept()
        keys = FetchedClientKeys(kept, rp.fetch)
        await keys.current(client(), now=T)
        kept.down = True
        assert kids(await keys.current(client(), now=T + 60)) == ["one"]
        rp.body = jwks("two")
        assert kids(await keys.refetched(client(), now=T + 61)) == ["two"]
        with pytest.raises(StoreUnavailable):
            await FetchedClientKeys(kept, rp.fetch).current(client(), now=T + 61)
        kept.down = False
        assert kids(await keys.current(client(), now=T + 70)) == ["two"]

    asyncio.run(story())


def test_trouble_and_private_members_are_logged_for_the_operator_cut_to_size() -> None:
    async def story() -> None:
        rp = RelyingParty(body=jwks("one", d="AAAA"))
        keys = FetchedClientKeys(Kept(), rp.fetch)
        with capture_logs() as logged:
            await keys.current(client(), now=T)
            rp.body = b'{"keys":"' + b"x" * 5000
            await keys.refetched(client(), now=T + 1)
        assert [line["event"] for line in logged] == ["key_set_fetched", "key_set_not_fetched"]
        assert "private member d" in logged[0]["detail"]
        assert all(line["client_id"] == "rp" and len(line["detail"]) <= 300 for line in logged)

    asyncio.run(story())


def test_a_set_comes_from_a_server_over_tls_through_the_one_outgoing_client() -> None:
    async def story() -> None:
        async with relying_party(answer(jwks("real"))) as server:
            kept = Kept()
            keys = FetchedClientKeys(kept, egress_to(server.port).fetch)
            assert kids(await keys.current(client(server.url), now=T)) == ["real"]
            assert kept.sets["rp"] == FetchedKeySet(jwks_uri=server.url, jwks=jwks("real").decode(), fetched_at=int(T))
            assert msgspec.json.decode(msgspec.json.encode(kept.sets["rp"]), type=FetchedKeySet) == kept.sets["rp"]

    asyncio.run(story())


def test_closing_ends_what_is_under_way() -> None:
    async def story() -> None:
        rp = RelyingParty(gate=asyncio.Event())
        keys = FetchedClientKeys(Kept(), rp.fetch)
        waiting = asyncio.create_task(keys.current(client(), now=T))
        await settled()
        await keys.close()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())
