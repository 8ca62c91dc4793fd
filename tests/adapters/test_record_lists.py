"""Lists by declaration (D83), on both engines: orders, directions, totals, and what is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.directory.lists import UnknownPlace, list_records
from corpid.rules.directory.access import CommandLine, DeploymentOperator, Forbidden
from corpid.rules.directory.lists import (
    ADMINISTRATORS,
    API_CLIENTS,
    ASSIGNMENTS,
    CLIENTS,
    ENTITIES,
    MEMBERS,
    MEMBERSHIPS,
    MOST_COUNTED,
    OPERATORS,
    PROVISIONING_TOKENS,
    RECORD_LISTS,
    SERVICES,
    THIRD_PARTY_ASSIGNMENTS,
    USERS,
    RecordList,
)
from corpid.rules.directory.records import Operator
from tests.adapters.stored_records import write
from tests.adapters.test_directory_lists import EVERYTHING, NAMES
from tests.adapters.test_directory_lists import USERS as PEOPLE

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

BY = CommandLine(by="lee@node1")
ORDERS = [
    (listed, order.name, descending)
    for listed in RECORD_LISTS.values()
    for order in listed.orders
    for descending in (False, True)
]
FILLED = {
    USERS.record: 6, ENTITIES.record: 4, SERVICES.record: 2, MEMBERS.record: 4, MEMBERSHIPS.record: 8,
    ASSIGNMENTS.record: 32, THIRD_PARTY_ASSIGNMENTS.record: 8, ADMINISTRATORS.record: 8,
}  # fmt: skip
"""records of each kind; of members those of one entity"""


def where_of(listed: RecordList) -> dict[str, str]:
    return {"entity_id": "A1"} if listed is MEMBERS else {}


async def walk(stores: SqlStores, listed: RecordList, **asked: Any) -> list[list[Any]]:
    """Every page forwards; on the way each is read again backwards from the next one."""
    pages: list[list[Any]] = []
    after = ""
    while True:
        page = await list_records(
            stores.registry, BY, listed, where_of(listed), after=after, limit=3, count_to=MOST_COUNTED, **asked
        )
        assert page.total is not None and page.total.exact
        assert page.total.count == FILLED.get(listed.record, 0)
        if pages:
            back = await list_records(
                stores.registry, BY, listed, where_of(listed), before=page.before, limit=3, **asked
            )
            assert list(back.found) == pages[-1]
            assert back.after and bool(back.before) is (len(pages) > 1)
        else:
            assert page.before == ""
        pages.append(list(page.found))
        if not page.after:
            return pages
        after = page.after


async def test_every_list_is_paged_in_every_order_in_both_directions(place: Place) -> None:
    """D83: links lead forwards and back, and no record is missed or seen twice."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        for listed, order, descending in ORDERS:
            found = [each for page in await walk(stores, listed, order=order, descending=descending) for each in page]
            assert len(found) == FILLED.get(listed.record, 0), (listed.kind, order)
            other = [
                each for page in await walk(stores, listed, order=order, descending=not descending) for each in page
            ]
            assert found == other[::-1]


@pytest.mark.full
async def test_a_total_is_exact_up_to_ten_thousand(place: Place) -> None:
    """D83: then it says "more than 10,000", and no more records are counted."""
    rows = (
        "INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, identity_country,"
        " account_type, enabled, placeholder) WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE"
        " n < {count}) SELECT CAST('{mark}' || n AS TEXT), 'u', CAST('{mark}' || n AS TEXT), 'N', '', '', '', '', '',"
        " true, false FROM rows"
    )

    async with place.opened() as stores:

        async def counted(**asked: Any) -> tuple[int, bool]:
            page = await list_records(stores.registry, BY, USERS, limit=1, count_to=MOST_COUNTED, **asked)
            assert page.total is not None
            return page.total.count, page.total.exact

        assert await counted() == (0, True)
        place.sql(rows.format(count=MOST_COUNTED, mark="a"))
        assert await counted() == (MOST_COUNTED, True)
        place.sql(rows.format(count=2, mark="b"))
        assert await counted() == (MOST_COUNTED, False)
        place.sql('UPDATE users SET words = \'{"name": ["ann", "anna"]}\'')
        assert await counted(search="ann") == await counted(search="a") == (MOST_COUNTED, False)
        place.sql("UPDATE users SET words = '{\"name\": [\"bo\"]}' WHERE user_id IN ('b1', 'b2')")
        assert await counted(search="ann") == (MOST_COUNTED, True)
        assert await counted(search="b") == (2, True)
        assert await counted(search="c") == (0, True)


async def test_support_neither_sees_nor_counts_operators(place: Place) -> None:
    """D53, D82: every hit and every count passes `authorise`, and a page is full although some are left out."""
    support = DeploymentOperator(user_id="s", level="support", auth_time=0, now=0)
    auditor = DeploymentOperator(user_id="s", level="auditor", auth_time=0, now=0)

    async with place.opened() as stores:
        await write(stores, *EVERYTHING, Operator(user_id=PEOPLE[0].user_id, level="operator"))
        for listed in (USERS, MEMBERS, MEMBERSHIPS, ASSIGNMENTS, ADMINISTRATORS, THIRD_PARTY_ASSIGNMENTS):
            found = {}
            for actor in (support, auditor):
                page = await list_records(
                    stores.registry, actor, listed, where_of(listed), limit=50, count_to=MOST_COUNTED
                )
                assert page.total is not None and page.total.count == len(page.found)
                found[actor.level] = len(page.found)
            assert found["support"] < found["auditor"] == FILLED[listed.record]
        page = await list_records(stores.registry, support, USERS, limit=3)
        assert [each.user_name for each in page.found] == sorted(NAMES)[1:4]
        with pytest.raises(Forbidden):
            await list_records(stores.registry, support, OPERATORS, limit=3)
        with pytest.raises(Forbidden):
            await list_records(stores.registry, support, API_CLIENTS, limit=3)


async def test_a_place_of_another_list_is_refused(place: Place) -> None:
    """D83: a place has as many parts as its order."""
    async with place.opened() as stores:
        for listed in (CLIENTS, PROVISIONING_TOKENS, ENTITIES):
            for after, before in (("a/b", ""), ("", "a/b")):
                with pytest.raises(UnknownPlace):
                    await list_records(stores.registry, BY, listed, limit=3, after=after, before=before)
