"""What the database refuses (D51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import MissingReference, NameRefused, NameTaken, User
from tests.adapters.stored_records import (
    ACME,
    ASSIGNED,
    FACTORS,
    FOR_BOOKS,
    GRANTED,
    LIM,
    MEMBER,
    TAN,
    TRADE,
    everything,
    write,
)

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from tests.adapters.databases import Place


@pytest.mark.parametrize("name", ["LIM", "\uff2cim", "lim"])
async def test_a_user_name_is_taken_in_every_form_that_reads_the_same(place: Place, name: str) -> None:
    """D51: unique after PRECIS mapping."""
    async with place.opened() as stores:
        await write(stores, LIM)
        with pytest.raises(NameTaken, match="User u9: another user has this user name"):
            await write(stores, User(user_id="u9", user_name=name, name="Lim"), ACME)
        assert await everything(stores) == [LIM]
        assert len(await stores.registry.audit.entries()) == 1


async def test_a_text_that_is_no_user_name_is_refused_and_found_nowhere(place: Place) -> None:
    """D51."""
    async with place.opened() as stores:
        with pytest.raises(NameRefused, match=r"User u9: 'a b': .*U\+0020"):
            await write(stores, User(user_id="u9", user_name="a b", name="A"))
        assert await stores.registry.directory.user_by_name("a b") is None
        assert await stores.registry.directory.user_by_name("") is None


@pytest.mark.parametrize("record", [MEMBER, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS], ids=lambda r: type(r).__name__)
async def test_a_record_that_refers_to_nothing_is_refused_by_name(place: Place, record: KeyedRecord) -> None:
    async with place.opened() as stores:
        with pytest.raises(MissingReference, match=f"{type(record).__name__} {'/'.join(record.key)}: it refers to"):
            await write(stores, record)


async def test_a_role_needs_the_membership_it_belongs_to(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, TAN, ACME, TRADE)
        with pytest.raises(MissingReference):
            await write(stores, ASSIGNED)
