"""Remembered consents, on both databases (D29, D62)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Membership
from corpid.rules.oauth.consent import Consent
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import ACME, BOOKS, CLIENT, LIM, TAN, remove, write

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

LATER = int(NOW) + 10**9
"""later than any engine's clock"""
BELONGS = Membership(user_id=TAN.user_id, entity_id=ACME.entity_id)
ALSO = Membership(user_id=TAN.user_id, entity_id=BOOKS.entity_id)
OTHER = Membership(user_id=LIM.user_id, entity_id=ACME.entity_id)
OTHER_CLIENT = replace(CLIENT, client_id="rp2")
GIVEN = Consent(
    user_id=TAN.user_id, entity_id=ACME.entity_id, client_id=CLIENT.client_id, issuer_id="first",
    scopes=("openid", "user.name"), given_at=5, expires_at=LATER,
)  # fmt: skip
FURTHER = {
    "person": replace(GIVEN, user_id=LIM.user_id),
    "entity": replace(GIVEN, entity_id=BOOKS.entity_id),
    "client": replace(GIVEN, client_id="rp2"),
    "issuer": replace(GIVEN, issuer_id="other"),
    "scopes": replace(GIVEN, scopes=("openid", "entity.identity")),
}


async def fill(stores: SqlStores) -> None:
    await write(stores, TAN, LIM, ACME, BOOKS, CLIENT, OTHER_CLIENT, BELONGS, ALSO, OTHER)


async def remembered(stores: SqlStores, like: Consent = GIVEN) -> list[Consent]:
    return await stores.registry.consents.find_remembered(
        like.user_id, like.entity_id, like.client_id, like.issuer_id, now=NOW
    )


async def audited(stores: SqlStores) -> int:
    return len(await stores.registry.audit.entries(limit=1000))


async def test_consent_is_remembered_per_person_entity_client_issuer_and_set_of_scopes(place: Place) -> None:
    """D29, D62."""
    async with place.opened() as stores:
        await fill(stores)
        consents = stores.registry.consents
        for each in (GIVEN, *FURTHER.values()):
            assert await consents.give(each, EVENT)
        assert sorted(await remembered(stores), key=lambda each: each.scopes) == [FURTHER["scopes"], GIVEN]
        for name in ("person", "entity", "client", "issuer"):
            assert await remembered(stores, FURTHER[name]) == [FURTHER[name]]
        assert len(await consents.list_for_user(TAN.user_id, now=NOW)) == 5
        assert await consents.list_for_user(LIM.user_id, now=NOW) == [FURTHER["person"]]


async def test_giving_it_again_renews_it(place: Place) -> None:
    """D29: one record, with the later end; each time with its event."""
    async with place.opened() as stores:
        await fill(stores)
        before = await audited(stores)
        renewed = replace(GIVEN, given_at=9, expires_at=LATER + 1)
        assert await stores.registry.consents.give(GIVEN, EVENT)
        assert await stores.registry.consents.give(renewed, EVENT)
        assert await remembered(stores) == [renewed]
        assert await audited(stores) == before + 2


async def test_of_two_that_give_the_same_at_once_both_succeed(place: Place) -> None:
    """D29: two tabs."""
    async with place.opened() as stores:
        await fill(stores)
        given = await asyncio.gather(*(stores.registry.consents.give(GIVEN, EVENT) for _ in range(8)))
        assert all(given)
        assert await remembered(stores) == [GIVEN]


async def test_withdrawing_ends_every_set_for_one_client_and_entity_and_nothing_else(place: Place) -> None:
    """D29: at every issuer."""
    async with place.opened() as stores:
        await fill(stores)
        consents = stores.registry.consents
        for each in (GIVEN, *FURTHER.values()):
            await consents.give(each, EVENT)
        before = await audited(stores)
        assert await consents.withdraw(TAN.user_id, ACME.entity_id, CLIENT.client_id, EVENT)
        assert await audited(stores) == before + 1
        assert await consents.list_for_user(TAN.user_id, now=NOW) == [FURTHER["client"], FURTHER["entity"]]
        assert await consents.list_for_user(LIM.user_id, now=NOW) == [FURTHER["person"]]
        assert not await consents.withdraw(TAN.user_id, ACME.entity_id, CLIENT.client_id, EVENT)
        assert await audited(stores) == before + 1


@pytest.mark.parametrize("gone", [TAN, ACME, CLIENT, BELONGS], ids=["person", "entity", "client", "membership"])
async def test_consent_ends_with_person_entity_client_and_membership(place: Place, gone: KeyedRecord) -> None:
    """D29: and a later one of the same name begins without."""
    async with place.opened() as stores:
        await fill(stores)
        await stores.registry.consents.give(GIVEN, EVENT)
        await stores.registry.consents.give(FURTHER["person"] if gone is not ACME else FURTHER["entity"], EVENT)
        await remove(stores, gone)
        await fill(stores)
        assert await remembered(stores) == []


@pytest.mark.parametrize("gone", [TAN, ACME, CLIENT, BELONGS], ids=["person", "entity", "client", "membership"])
async def test_nothing_is_remembered_for_what_was_removed_meanwhile(place: Place, gone: KeyedRecord) -> None:
    """D29, D50: and no event says so."""
    async with place.opened() as stores:
        await fill(stores)
        await remove(stores, gone)
        before = await audited(stores)
        assert not await stores.registry.consents.give(GIVEN, EVENT)
        assert await audited(stores) == before
        await fill(stores)
        assert await remembered(stores) == []


async def test_an_expired_consent_is_not_remembered_and_is_swept(place: Place) -> None:
    """D29, D49: by the engine's clock, if it has one."""
    async with place.opened() as stores:
        await fill(stores)
        consents = stores.registry.consents
        over = replace(GIVEN, expires_at=1)
        await consents.give(over, EVENT)
        await consents.give(FURTHER["scopes"], EVENT)
        assert await remembered(stores) == [FURTHER["scopes"]]
        assert await consents.list_for_user(TAN.user_id, now=NOW) == [FURTHER["scopes"]]
        assert await consents.sweep(now=NOW) == 1
        assert await consents.sweep(now=NOW) == 0
        assert await remembered(stores) == [FURTHER["scopes"]]


async def test_the_record_stays_if_person_entity_membership_or_client_is_written_again(place: Place) -> None:
    """D29: a file that is applied anew withdraws nothing."""
    async with place.opened() as stores:
        await fill(stores)
        await stores.registry.consents.give(GIVEN, EVENT)
        await fill(stores)
        assert await remembered(stores) == [GIVEN]


async def given_and_failed(stores: SqlStores) -> None:
    async with stores.database.transaction():
        await stores.registry.consents.give(GIVEN, EVENT)
        raise ZeroDivisionError


async def test_what_undoes_the_transaction_undoes_consent_and_event(place: Place) -> None:
    """SECURITY.md: in the transaction of the change."""
    async with place.opened() as stores:
        await fill(stores)
        before = await audited(stores)
        with pytest.raises(ZeroDivisionError):
            await given_and_failed(stores)
        assert await remembered(stores) == []
        assert await audited(stores) == before
