"""Changes of a person's factors that cross the end of their sessions and links (D30, D44, D46)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials, FactorChange, FactorLink, Session
from corpid.rules.directory.records import Change, SignOut
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import LIM, TAN, write
from tests.adapters.test_factors import KEY, NOBODY, WITH, add

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

ROUNDS = 12
WAITS_SECONDS = 0.3
"""for what has to wait: it would be done in a few milliseconds"""
HERE = Session(
    session_id="here", user_id=TAN.user_id, browser_id="b", auth_time=1, amr=("pwd",), level=2,
    expires_at=int(NOW) + 60, purpose="account",
)  # fmt: skip
CHANGE = FactorChange(before=NOBODY, after=WITH, session_id="here", end_sessions_but="here")


def link(name: str) -> FactorLink:
    return FactorLink(
        link_hash=name, purpose="password", user_id=TAN.user_id, created_at=1, expires_at=int(NOW) + 900, factors=""
    )


async def held(place: Place, session_id: str) -> bool:
    rows = place.sql(f"SELECT session_id FROM sessions WHERE session_id = '{session_id}'")
    return bool(rows)


async def test_a_session_that_has_ended_changes_no_factors(place: Place) -> None:
    """D30, D44: neither one that was ended, nor another person's, nor one that never was."""
    async with place.opened() as stores:
        registry = stores.registry
        await write(stores, TAN, LIM)
        await registry.sessions.put(replace(HERE, session_id="foreign", user_id=LIM.user_id))
        await registry.sessions.put(HERE)
        await registry.sessions.put(replace(HERE, session_id="elsewhere", browser_id="another"))
        before = len(await registry.audit.entries())
        for session_id in ("foreign", "none"):
            assert not await registry.factors.change(replace(CHANGE, session_id=session_id), EVENT)
        assert await registry.factors.credentials(TAN.user_id) == NOBODY
        assert len(await registry.audit.entries()) == before
        assert await registry.factors.change(CHANGE, EVENT)
        assert not await held(place, "elsewhere")
        await registry.sessions.end_all(TAN.user_id, EVENT, but_browser="another")
        assert not await registry.factors.change(FactorChange(before=WITH, after=NOBODY, session_id="here"), EVENT)
        assert await registry.factors.credentials(TAN.user_id) == WITH


async def test_of_a_change_and_the_end_of_its_session_the_later_one_finds_the_earlier_one_done(place: Place) -> None:
    """D30: whoever was told that a session is ended finds nothing written in it afterwards."""
    async with place.opened() as stores:
        registry = stores.registry
        await write(stores, TAN)
        ends = (
            lambda: registry.sessions.end("here", EVENT),
            lambda: registry.sessions.end_all(TAN.user_id, EVENT),
            lambda: registry.directory.write([SignOut(TAN.user_id)], EVENT),
        )
        for number in range(ROUNDS):
            await registry.sessions.put(HERE)
            await asyncio.gather(registry.factors.change(CHANGE, EVENT), ends[number % len(ends)]())
            assert not await held(place, "here")
            assert not await registry.factors.change(replace(CHANGE, before=WITH, after=NOBODY), EVENT)
            await registry.directory.write([Change(None, NOBODY)], EVENT)


async def test_of_changes_at_once_by_somebody_without_factors_one_is_written(place: Place) -> None:
    """docs/architecture.md, "One-time use": there is no row yet that the second could find changed."""
    async with place.opened() as stores:
        await write(stores, TAN)
        changes = [
            FactorChange(before=NOBODY, after=Credentials(user_id=TAN.user_id, password_hash=f"$argon2id${number}"))
            for number in range(6)
        ]
        done = await asyncio.gather(*(stores.registry.factors.change(each, EVENT) for each in changes))
        assert sum(done) == 1
        assert await stores.registry.factors.credentials(TAN.user_id) == changes[done.index(True)].after


async def test_of_two_links_of_a_person_one_is_finished_and_the_other_is_told_at_once(postgresql: Place) -> None:
    """D46: beside sign-outs and disabling by others; nobody waits for whoever waits for them, so all are answered."""
    async with postgresql.opened() as stores:
        registry = stores.registry
        await write(stores, TAN)
        for number in range(ROUNDS):
            await asyncio.gather(*(registry.sessions.put(replace(HERE, session_id=f"s{each}")) for each in range(4)))
            for name in ("first", "second"):
                await registry.factors.keep_link(link(name), EVENT, spared="first")
            by_link = [
                FactorChange(
                    before=NOBODY,
                    after=NOBODY,
                    add_passkey=replace(KEY, credential_id=f"{name} {number}"),
                    spend_link=name,
                    end_sessions_but="",
                )
                for name in ("first", "second")
            ]
            first, second, *_ = await asyncio.gather(
                *(registry.factors.change(each, EVENT) for each in by_link),
                registry.sessions.end_all(TAN.user_id, EVENT, but_browser="none"),
                registry.factors.keep_link(replace(link("third"), purpose="invitation"), EVENT),
            )
            assert {first, second} == {False, True}
            await asyncio.gather(
                registry.directory.write([Change(None, NOBODY), SignOut(TAN.user_id)], EVENT),
                registry.factors.change(FactorChange(before=NOBODY, after=NOBODY, end_sessions_but=""), EVENT),
            )


async def new_password(stores: SqlStores) -> None:
    assert await stores.registry.factors.change(FactorChange(before=NOBODY, after=WITH, end_sessions_but=""), EVENT)


async def disabled(stores: SqlStores) -> None:
    await stores.registry.directory.write([Change(None, replace(TAN, enabled=False)), SignOut(TAN.user_id)], EVENT)


async def begun(stores: SqlStores) -> bool:
    return await stores.registry.sessions.put_if_unchanged(HERE, NOBODY)


@pytest.mark.full
@pytest.mark.parametrize("stored", [(NOBODY,), ()], ids=["credentials", "no credentials"])
@pytest.mark.parametrize("ending", [new_password, disabled], ids=lambda each: each.__name__)
@pytest.mark.parametrize("first", ["session", "ending"])
async def test_a_session_begins_before_its_person_is_signed_out_and_ends_or_does_not_begin(
    postgresql: Place,
    first: str,
    ending: Callable[[SqlStores], Coroutine[None, None, None]],
    stored: tuple[Credentials, ...],
) -> None:
    """D50: never between the look for sessions to end and the commit of what ended them."""
    async with postgresql.opened() as stores:
        await write(stores, replace(TAN, enabled=True), *stored)
        one, other = (begun, ending) if first == "session" else (ending, begun)
        async with stores.transient.batch(NOW):
            assert await one(stores) is not False
            late = asyncio.create_task(other(stores))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert await late in ((None,) if first == "session" else (False,))
        assert not await held(postgresql, "here")


@pytest.mark.parametrize("first", ["session", "removal"])
async def test_a_session_of_a_passkey_begins_before_the_passkey_is_removed_and_ends_or_does_not_begin(
    postgresql: Place, first: str
) -> None:
    """D46, D50: a removal leaves password and app as they were, so that only the passkey tells of it."""

    async def removal(stores: SqlStores) -> bool:
        change = FactorChange(before=WITH, after=WITH, remove_passkey=KEY.credential_id, end_sessions_but="")
        return await stores.registry.factors.change(change, EVENT)

    async def begins(stores: SqlStores) -> bool:
        return await stores.registry.sessions.put_if_unchanged(HERE, WITH, passkey=KEY.credential_id)

    async with postgresql.opened() as stores:
        await write(stores, replace(TAN, enabled=True))
        assert await stores.registry.factors.change(replace(add(KEY), after=WITH), EVENT)
        one, other = (begins, removal) if first == "session" else (removal, begins)
        async with stores.transient.batch(NOW):
            assert await one(stores)
            late = asyncio.create_task(other(stores))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert await late is (first == "session")
        assert not await held(postgresql, "here")
