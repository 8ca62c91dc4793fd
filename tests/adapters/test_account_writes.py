"""What a person changes in their account, on each engine (D30, D46)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import FactorChange, FactorLink, Session
from corpid.rules.directory.records import Change, MissingReference, SignOut, User
from corpid.rules.limits import BROWSER_NAMES
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import LIM, TAN, write
from tests.adapters.test_factors import KEY, NOBODY, add

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place


async def test_of_several_removals_at_once_the_last_passkey_is_left(place: Place) -> None:
    """D46: also of a person whose credentials have no row yet."""
    ids = ("A", "B", "C", "D")

    async with place.opened() as stores:
        await write(stores, TAN)
        factors = stores.registry.factors
        for each in ids:
            assert await factors.change(add(replace(KEY, credential_id=each)), EVENT)
        removals = [
            FactorChange(before=NOBODY, after=NOBODY, remove_passkey=each, passkey_remains=True) for each in ids
        ]
        done = await asyncio.gather(*(factors.change(each, EVENT) for each in removals))
        assert sum(done) == len(ids) - 1
        assert len(await factors.passkeys(TAN.user_id)) == 1


async def test_of_several_additions_at_once_no_more_are_kept_than_there_may_be(place: Place) -> None:
    """D46: also of a person whose credentials have no row yet."""
    async with place.opened() as stores:
        await write(stores, TAN)
        factors = stores.registry.factors
        additions = [replace(add(replace(KEY, credential_id=each)), passkeys_at_most=2) for each in "ABCD"]
        done = await asyncio.gather(*(factors.change(each, EVENT) for each in additions))
        assert sum(done) == 2
        assert len(await factors.passkeys(TAN.user_id)) == 2
        assert await factors.change(add(replace(KEY, credential_id="E")), EVENT)


async def test_a_use_is_noted_of_a_session_that_lives_and_of_no_other(place: Place) -> None:
    """D30: what has ended does not come back; the other browsers of a person end together."""
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        sessions = stores.registry.sessions
        now = int(await stores.transient.engine_time() or NOW)
        session = Session(
            session_id="s", user_id=TAN.user_id, browser_id="b", auth_time=1, amr=("pwd",), level=2, expires_at=now + 60
        )
        here = replace(session, session_id="t", browser_id="here")
        for each in (session, here, replace(session, session_id="x", user_id=LIM.user_id)):
            await sessions.put(each)
        await sessions.use("s", at=now, entity_id="E1")
        assert await sessions.get("s", now=now) == replace(session, seen_at=now, entity_id="E1")
        await sessions.use("s", at=now + 1)
        assert await sessions.get("s", now=now) == replace(session, seen_at=now + 1, entity_id="E1")
        await sessions.end_all(TAN.user_id, EVENT, but_browser="here")
        await sessions.use("s", at=now)
        assert await sessions.list_for_user(TAN.user_id, now=now) == [here]
        assert len(await sessions.list_for_user(LIM.user_id, now=now)) == 1
        await sessions.put(replace(here, expires_at=now))
        assert await sessions.list_for_user(TAN.user_id, now=now) == []


async def test_a_language_is_written_and_nothing_else_of_a_person(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        await stores.registry.directory.set_language(TAN.user_id, "ms", EVENT)
        found = await stores.registry.directory.read(User, [TAN.key, LIM.key])
        assert found == {TAN.key: replace(TAN, language="ms"), LIM.key: LIM}


LINK = FactorLink(
    link_hash="ab", purpose="password", user_id=TAN.user_id, created_at=1, expires_at=int(NOW) + 900, factors=""
)


async def _signed_in_with_a_link(stores: SqlStores, now: int) -> Session:
    """Tan has a session, and a link that somebody may have opened."""
    session = Session(
        session_id="s", user_id=TAN.user_id, browser_id="b", auth_time=1, amr=("pwd",), level=2, expires_at=now + 60
    )
    await stores.registry.sessions.put(session)
    await stores.registry.factors.keep_link(LINK, EVENT)
    return session


async def test_any_change_of_a_persons_factors_ends_every_link_of_theirs(place: Place) -> None:
    """D46: also one of passkeys alone, so that what was begun with a lost passkey cannot be finished."""
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        factors = stores.registry.factors
        assert await factors.change(add(KEY), EVENT)
        foreign = replace(LINK, link_hash="cd", user_id=LIM.user_id)
        await factors.keep_link(foreign, EVENT)
        await factors.keep_link(replace(LINK, link_hash="password"), EVENT)
        await factors.keep_link(replace(LINK, link_hash="second_factor", purpose="second_factor"), EVENT)
        assert await factors.change(FactorChange(before=NOBODY, after=NOBODY, remove_passkey=KEY.credential_id), EVENT)
        assert [await factors.link(each) for each in ("password", "second_factor")] == [None, None]
        assert await factors.link("cd") == foreign
        begun_before = FactorChange(before=NOBODY, after=NOBODY, spend_link="password")
        assert not await factors.change(begun_before, EVENT)


async def test_who_is_signed_out_has_neither_sessions_nor_links(place: Place) -> None:
    """D44, D50: in the transaction of the change that asks for it."""
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        now = int(await stores.transient.engine_time() or NOW)
        await _signed_in_with_a_link(stores, now)
        off = replace(TAN, enabled=False)
        await stores.registry.directory.write([SignOut(LIM.user_id)], EVENT)
        assert await stores.registry.sessions.get("s", now=now) is not None
        await stores.registry.directory.write([SignOut(TAN.user_id), Change(None, off)], EVENT)
        assert await stores.registry.sessions.get("s", now=now) is None
        assert await stores.registry.factors.link(LINK.link_hash) is None
        assert await stores.registry.directory.user(TAN.user_id) == off


async def test_browsers_keep_the_names_given_last_and_lose_them_with_their_person(place: Place) -> None:
    """D30: of one person so many; an empty name takes one away."""
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        sessions = stores.registry.sessions
        for number in range(BROWSER_NAMES + 3):
            await sessions.name_browser(TAN.user_id, f"b{number:02}", f"Name {number}", EVENT, at=number)
        names = await sessions.browser_names(TAN.user_id)
        assert set(names) == {f"b{number:02}" for number in range(3, BROWSER_NAMES + 3)}
        assert await sessions.browser_names(LIM.user_id) == {}
        await sessions.name_browser(LIM.user_id, "b05", "Mine", EVENT, at=9)
        await sessions.name_browser(TAN.user_id, "b05", "Another", EVENT, at=99)
        await sessions.name_browser(TAN.user_id, "b06", "", EVENT, at=99)
        names = await sessions.browser_names(TAN.user_id)
        assert (names["b05"], "b06" in names, len(names)) == ("Another", False, BROWSER_NAMES - 1)
        await stores.registry.directory.write([Change(TAN, None)])
        assert await sessions.browser_names(TAN.user_id) == {}
        assert await sessions.browser_names(LIM.user_id) == {"b05": "Mine"}
        with pytest.raises(MissingReference):
            await sessions.name_browser(TAN.user_id, "b05", "Gone", EVENT, at=99)
