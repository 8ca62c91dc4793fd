"""Live state through a cache at most five seconds old, dropped at once where the change was made (D50)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.flows.registry_cache import _Cache
from corpid.rules.directory.records import Change, Entity, Membership, User
from corpid.rules.oauth.errors import TemporarilyUnavailable
from corpid.rules.oauth.records import Client
from tests.unit.flows.opened import EVENT, NOW, provider_at

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.request_context import Provider

CLIENT = Client(client_id="rp-1", name="RP", redirect_uris=("https://rp.example/cb",), jwks='{"keys":[]}')
OFF = msgspec.structs.replace(CLIENT, enabled=False)
USER = User(user_id="u", user_name="rina", name="Rina")
ENTITY = Entity(entity_id="e", type="UEN", registration_number="e", country="SG", name="Works")
MEMBER = Membership(user_id="u", entity_id="e", membership_id="m")
EVERY = (USER, ENTITY, MEMBER)


async def write(provider: Provider, *records: Client | User | Entity | Membership) -> None:
    """As another process would: this one's cache does not learn of it."""
    await provider.registry.directory.write([Change(None, record) for record in records], EVENT)


async def test_a_change_elsewhere_is_seen_after_five_seconds_and_never_later(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        await write(provider, CLIENT)
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        await write(provider, msgspec.structs.replace(CLIENT, enabled=False))
        assert await provider.registry_cache.client("rp-1", NOW + 4.999) == CLIENT
        assert await provider.registry_cache.client("rp-1", NOW + 5) is None


async def test_a_change_made_here_is_seen_at_once(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        await write(provider, CLIENT)
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        await write(provider, OFF)
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        provider.registry_cache.drop()
        assert await provider.registry_cache.client("rp-1", NOW) is None


async def test_what_was_read_before_a_change_is_not_kept_after_it() -> None:
    """D50: a read that began before `drop` must not bring the old state back."""
    cache: _Cache[str] = _Cache()

    async def old() -> str:
        cache.clear()
        return "old"

    async def new() -> str:
        return "new"

    assert await cache.get("key", NOW, old) == "old"
    assert await cache.get("key", NOW, new) == "new"
    assert await cache.get("key", NOW, old) == "new"


async def test_an_unknown_client_is_looked_for_each_time_and_takes_nobodys_place(tmp_path: Path) -> None:
    """Whoever invents client_ids cannot empty the cache."""
    async with provider_at(tmp_path) as provider:
        await write(provider, CLIENT)
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        for number in range(5000):
            assert await provider.registry_cache.client(f"nobody-{number}", NOW) is None
        await write(provider, OFF, msgspec.structs.replace(CLIENT, client_id="nobody-1"))
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        assert await provider.registry_cache.client("nobody-1", NOW) is not None


async def test_a_full_cache_forgets_the_oldest_answer_only() -> None:
    cache: _Cache[int] = _Cache()

    for number in range(4097):
        assert await cache.get(number, NOW, partial(_value, number)) == number
    assert await cache.get(1, NOW, partial(_value, -1)) == 1
    assert await cache.get(0, NOW, partial(_value, -1)) == -1


async def _value(number: int) -> int:
    return number


async def test_a_clock_that_goes_back_makes_no_answer_older(tmp_path: Path) -> None:
    """D49: what was read in the future is not believed."""
    async with provider_at(tmp_path) as provider:
        await write(provider, CLIENT)
        assert await provider.registry_cache.client("rp-1", NOW) == CLIENT
        await write(provider, OFF)
        assert await provider.registry_cache.client("rp-1", NOW - 1) is None


async def test_every_link_between_person_and_entity_must_be_enabled(tmp_path: Path) -> None:
    """SECURITY.md: over the whole chain."""
    async with provider_at(tmp_path) as provider:
        assert await provider.registry_cache.acting("u", "e", NOW) is None
        await write(provider, *EVERY)
        provider.registry_cache.drop()
        acting = await provider.registry_cache.acting("u", "e", NOW)
        assert acting is not None
        assert (acting.user, acting.entity, acting.membership) == EVERY
        for record in EVERY:
            await write(provider, msgspec.structs.replace(record, enabled=False))
            provider.registry_cache.drop()
            assert await provider.registry_cache.acting("u", "e", NOW) is None
            await write(provider, record)
        provider.registry_cache.drop()
        assert await provider.registry_cache.acting("u", "e", NOW) is not None
        assert await provider.registry_cache.acting("e", "u", NOW) is None


async def test_maintenance_is_seen_within_five_seconds(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        await provider.registry_cache.refuse_maintenance(NOW)
        await provider.registry.deployment.set_maintenance(True, EVENT)
        await provider.registry_cache.refuse_maintenance(NOW + 4)
        with pytest.raises(TemporarilyUnavailable):
            await provider.registry_cache.refuse_maintenance(NOW + 5)
