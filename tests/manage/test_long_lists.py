"""Lists and files that stop early say so, and how to go on (D53, D55, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory import approvals, grants, lists, portal
from corpid.rules.directory.records import Administrator, Membership, Service, User
from corpid.rules.directory.values import NO_END
from corpid.stores.sql import lists as stored
from corpid.web.directory import administrators, history
from corpid.web.directory.third_parties import page_of
from tests.manage.access_scene import checker, staffed
from tests.manage.scene import ACME, appoint, go, in_portal
from tests.manage.test_requests import acme, requested
from tests.manage.test_third_parties import GRANT, ROW, three
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    import pytest

HUGO = "00000000-0000-4000-8000-0000000000aa"
MORE = "More may follow: continue with “Next page”."


async def test_a_search_for_requests_that_stops_goes_on_on_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """D55: instead of saying that nothing waits."""
    monkeypatch.setattr(lists, "_ROUNDS", 1)
    monkeypatch.setattr(approvals, "_AT_ONCE", 1)

    async with new_world() as made:
        await acme(made)
        await requested(made)
        browser = await in_portal(made, "requests")
        assert MORE in browser.page.text
        assert "None of your requests is waiting." not in browser.page.text
        target = next(target for target, text in browser.page.links if text == "Next page" and "own=" in target)
        await go(made, browser, target.partition("/manage/")[2])
        assert "None of your requests is waiting." in browser.page.text


async def test_a_search_for_a_third_partys_people_that_stops_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """D56."""
    monkeypatch.setattr(lists, "_ROUNDS", 1)
    monkeypatch.setattr(grants, "_AT_ONCE", 1)

    async with new_world() as made:
        await three(made)
        await made.write(GRANT, ROW)
        browser = await in_portal(made, page_of("grant", GRANT))
        assert "Finn Goh" in browser.page.text
        assert MORE in browser.page.text


async def test_a_search_that_finds_too_many_to_sort_claims_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """D83."""
    async with new_world() as made:
        await staffed(made)
        browser = await in_portal(made, "people?q=marcus")
        assert "People by user name" in browser.page.text
        monkeypatch.setattr(stored, "_FEW", 0)
        await go(made, browser, "people?q=marcus")
        assert "Marcus Lee" in browser.page.text
        assert "People by user name" not in browser.page.text


async def test_a_file_of_the_history_that_stops_early_says_so_in_its_last_line(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D57: bounded by work, also if the filter finds nothing, and by rows."""
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    for name in ("one", "two", "three"):
        await go(made, browser, "tokens/new")
        await browser.fill_and_submit("token_id", name=name, days="90")

    async def lines(query: str = "") -> list[str]:
        answer = await browser.http.get(f"{made.base}/manage/history/export{query}")
        return answer.text.splitlines()

    whole = await lines()
    assert not whole[-1].startswith('"This file is not complete')
    monkeypatch.setattr(history, "_MOST_EXPORTED", 1)
    assert (await lines())[-1].startswith('"This file is not complete')
    assert len(await lines()) == 3
    monkeypatch.undo()
    monkeypatch.setattr(history, "_MOST_READ", 1)
    monkeypatch.setattr(history, "_EXPORT_PART", 1)
    assert (await lines())[-1].startswith('"This file is not complete')


async def test_services_beyond_the_first_are_mentioned_and_those_of_a_level_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D53: saving a level takes nothing away that its page did not show."""
    monkeypatch.setattr(administrators, "_MOST_SERVICES", 1)
    monkeypatch.setattr(history, "_MOST_SERVICES", 1)

    async with new_world() as made:
        await staffed(made)
        await made.write(
            Service(service_id="ZOO", name="Zoo"),
            User(user_id="id-hugo", user_name="hugo", name="Hugo Sim"),
            Membership(user_id="id-hugo", entity_id=ACME, membership_id=HUGO),
            Administrator(user_id="id-hugo", entity_id=ACME, level="sub_administrator", services=("ZOO",)),
        )
        browser = await in_portal(made, f"administrators/{HUGO}")
        await browser.fill_and_submit("level", level="sub_administrator")
        assert "Not all services are listed here." in browser.page.text
        form = browser.page.form_with("all_services")
        assert form is not None
        assert "service-ZOO" in form.names()
        await go(made, browser, "history")
        assert "Not all services are listed here." in browser.page.text


async def test_a_colleague_with_more_roles_than_the_page_looks_at_is_said_to_have_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D54."""
    monkeypatch.setattr("corpid.flows.directory.role_assignment.MOST_ROLES", 1)

    async with new_world() as made:
        await staffed(made)
        await made.write(checker(end_date=NO_END), checker(role="Approver", end_date=NO_END))
        browser = await in_portal(made, "access/copy?person=m-nadia&from=m-marcus")
        assert "This person has more roles than are listed here." in browser.page.text


async def test_the_home_page_does_not_count_what_it_has_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """D53, D55."""
    monkeypatch.setattr(portal, "MOST_REQUESTS", 0)

    async with new_world() as made:
        await acme(made)
        await requested(made)
        browser = await in_portal(made)
        assert "More than 0 requests are waiting." in browser.page.text
