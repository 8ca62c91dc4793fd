"""The look-ups of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.rules.directory.records import ActingPerson, Membership, ThirdPartyRow
from corpid.stores.sql import directory
from tests.adapters.stored_records import (
    ACME,
    ADMINISTERS,
    ASSIGNED,
    BOOKS,
    EVERYTHING,
    FOR_BOOKS,
    GRANTED,
    LEVY,
    MEMBER,
    TAN,
    TRADE,
    write,
)

if TYPE_CHECKING:
    from tests.adapters.databases import Place


async def test_a_person_is_found_by_any_form_of_the_user_name(place: Place) -> None:
    """D51: compared after PRECIS mapping."""
    async with place.opened() as stores:
        await write(stores, TAN)
        for name in ("Tan.WeiMing", "tan.weiming", "\uff34\uff21\uff2e.weiming"):
            assert await stores.registry.directory.user_by_name(name) == TAN
        assert await stores.registry.directory.user_by_name("tan") is None


async def test_acting_gives_the_whole_chain_or_nothing(place: Place) -> None:
    """D50: the state of user, entity and membership in one look."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        acting = await stores.registry.directory.acting("u1", "E1")
        assert acting == ActingPerson(user=TAN, entity=ACME, membership=MEMBER, administrator=ADMINISTERS)
        assert not acting.allowed
        for user_id, entity_id in (("u2", "E1"), ("u1", "E2"), ("nobody", "E1")):
            assert await stores.registry.directory.acting(user_id, entity_id) is None


async def test_services_are_those_asked_for_and_known(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, TRADE, LEVY)
        directory = stores.registry.directory
        assert await directory.services(["s2", "s1", "s1", "unknown"]) == [TRADE, LEVY]
        assert await directory.services(["s2"]) == [LEVY]
        assert await directory.services([]) == []


async def test_assignments_are_those_of_person_entity_and_services(place: Place) -> None:
    """Spec 1: a client reads the roles at its own services only."""
    async with place.opened() as stores:
        other_service = msgspec.structs.replace(ASSIGNED, service_id="s2")
        other_entity = msgspec.structs.replace(ASSIGNED, entity_id="E2")
        other_ref = msgspec.structs.replace(ASSIGNED, ref="s")
        memberships = Membership(user_id="u1", entity_id="E2"), Membership(user_id="u2", entity_id="E1")
        other_person = msgspec.structs.replace(ASSIGNED, user_id="u2")
        await write(stores, *EVERYTHING, *memberships, other_service, other_entity, other_ref, other_person)
        directory = stores.registry.directory
        assert await directory.assignments("u1", "E1", ["s1"]) == [ASSIGNED, other_ref]
        assert await directory.assignments("u1", "E1", ["s2", "s1"]) == [ASSIGNED, other_ref, other_service]
        assert await directory.assignments("u1", "E1", []) == []
        assert await directory.assignments("u1", "E1", ["unknown"]) == []


async def test_third_party_rows_come_with_client_entity_and_every_grant_for_the_service(place: Place) -> None:
    """R-21: a person's rows are judged against what the client entity granted."""
    async with place.opened() as stores:
        second_grant = msgspec.structs.replace(GRANTED, role="Approver")
        other_grants = (
            msgspec.structs.replace(GRANTED, service_id="s2"),
            msgspec.structs.replace(GRANTED, client_entity_id="E1", entity_id="E2"),
        )
        ungranted = msgspec.structs.replace(FOR_BOOKS, client_entity_id="E1")
        await write(stores, *EVERYTHING, second_grant, *other_grants, ungranted)
        assert await stores.registry.directory.third_party_rows("u1", "E1", ["s1", "s2"]) == [
            ThirdPartyRow(assignment=ungranted, client_entity=ACME, grants=()),
            ThirdPartyRow(assignment=FOR_BOOKS, client_entity=BOOKS, grants=(GRANTED, second_grant)),
        ]
        assert await stores.registry.directory.third_party_rows("u1", "E1", ["s2"]) == []
        assert await stores.registry.directory.third_party_rows("u2", "E1", ["s1"]) == []


async def test_a_statement_by_number_of_services_is_built_once(place: Place) -> None:
    async with place.opened() as stores:
        dialect = stores.database.dialect
        made = directory.select_services
        assert made(2).compiled(dialect) is made(2).compiled(dialect)
        assert made(2).compiled(dialect)[0] != made(3).compiled(dialect)[0]
