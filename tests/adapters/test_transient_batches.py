"""How a batch of a short-lived store ends (docs/architecture.md, "One-time use")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid.rules.oauth.errors import InvalidGrant, OAuthError
from corpid.rules.oauth.refusals import Reason
from tests.adapters.opened import NOW, memory_transient
from tests.adapters.transient_stores import KEY, Opened, add, count, put, take

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.stores.transient import TransientStore


async def test_what_was_spent_stays_spent_when_the_flow_refuses(opened: Opened) -> None:
    """Order of a request: an error after spending commits, never rolls back."""

    async def refuse(store: TransientStore) -> None:
        async with store.batch(NOW) as batch:
            assert await batch.add("jti", KEY, 60)
            assert await batch.take("code", KEY) == b"grant"
            raise InvalidGrant(Reason.CODE_UNKNOWN, "The code was issued for another redirect_uri.")

    async with opened() as store:
        await put(store, b"grant")
        with pytest.raises(InvalidGrant):
            await refuse(store)
        assert not await add(store)
        assert await take(store) is None


@pytest.mark.parametrize("failure", [RuntimeError("a fault"), asyncio.CancelledError()], ids=["fault", "cancelled"])
async def test_anything_else_undoes_the_whole_unit(opened_undoing: Opened, failure: BaseException) -> None:
    """A request that broke spent nothing: its client may send it again."""

    async def fail(store: TransientStore) -> None:
        async with store.batch(NOW) as batch:
            await batch.take("code", KEY)
            await batch.put("code", KEY, b"another", 60)
            await batch.add("jti", KEY, 60)
            await batch.count("misses", KEY, 60)
            raise failure

    async with opened_undoing() as store:
        await put(store, b"grant")
        with pytest.raises(type(failure)):
            await fail(store)
        assert await take(store) == b"grant"
        assert await add(store)
        assert await count(store) == 1


async def test_a_unit_inside_a_unit_of_the_same_task_shares_its_end(opened_undoing: Opened) -> None:
    async def fail(store: TransientStore) -> None:
        async with store.batch(NOW):
            assert await add(store)
            raise RuntimeError("a fault")

    async with opened_undoing() as store:
        with pytest.raises(RuntimeError, match="a fault"):
            await fail(store)
        assert await add(store)


async def test_another_task_sees_a_unit_only_when_it_has_ended(opened_undoing: Opened) -> None:
    async with opened_undoing() as store:
        inside, leave = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            async with store.batch(NOW) as batch:
                await batch.put("code", KEY, b"grant", 60)
                inside.set()
                await leave.wait()
                raise InvalidGrant(Reason.CODE_UNKNOWN, "Refused.")

        spending = asyncio.create_task(slow())
        await inside.wait()
        looks = asyncio.gather(store.get("code", KEY, now=NOW), take(store))
        await asyncio.sleep(0)
        assert not looks.done()
        leave.set()
        with pytest.raises(OAuthError):
            await spending
        looked, taken = await looks
        assert looked in {b"grant", None}
        # PostgreSQL does not let the other task wait: it may have looked before the end, and takes it afterwards.
        assert taken == b"grant" or (taken is None and await take(store) == b"grant")


async def test_the_memory_store_keeps_nothing_of_a_unit_it_undid(tmp_path: Path) -> None:
    async def fail(store: TransientStore) -> None:
        async with store.batch(NOW) as batch:
            await batch.put("code", KEY, b"grant", 60)
            raise RuntimeError("a fault")

    async with memory_transient(tmp_path) as store:
        with pytest.raises(RuntimeError, match="a fault"):
            await fail(store)
        assert await store.sweep(now=NOW + 3600) == 0
