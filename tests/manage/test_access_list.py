"""The access of an organisation's people as a list, and its end in bulk (D53, D54, D81, D83)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, get_args
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.flows.directory import role_assignment
from corpid.flows.directory.role_assignment import EntityRole, RoleFilter
from corpid.rules.directory.memberships import RoleOrder
from corpid.rules.directory.records import Assignment, Change, ChangeRequest
from corpid.web import lists
from tests.manage import access_scene
from tests.manage.access_scene import (
    HARBOUR,
    checker,
    confirm,
    demand,
    employed,
    follow,
    identifier,
    requests,
    roles,
    staffed,
)
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, form_of, new_world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid_dev.relying_party.browser import Browser

NOTICES = Assignment(user_id="id-nadia", entity_id=ACME, service_id="NOTICES")


async def held(made: World) -> None:
    """Marcus has two roles, Nadia one."""
    await staffed(made)
    await made.write(
        checker(sub_entity="Jurong", end_date="2099-12-31"), checker(role="Approver"), replace(NOTICES),
        checker("nadia", end_date="2020-12-31"),
    )  # fmt: skip


def people(browser: Browser) -> list[str]:
    """Those of the rows, in their order."""
    assert browser.response is not None
    body = browser.response.text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [row.partition("<bdi>")[2].partition(" ")[0] for row in body.split("<tr>")[1:]]


async def end(made: World, browser: Browser, *rows: Assignment) -> None:
    """Send a selection, of whatever roles, and open what comes then."""
    chosen = {f"select-{identifier(row)}": "yes" for row in rows}
    sent = await send(
        made, browser, "access/end", **form_of(browser, "form_token", "decision"), **chosen, decision="end"
    )
    await browser.open(urljoin(made.base, sent.headers["Location"]), site="same-origin")


async def test_every_role_that_holds_is_listed_with_person_service_part_and_last_day(made: World) -> None:
    """D53, D83: those that have ended only if they are asked for."""
    await held(made)
    browser = await in_portal(made, "access")
    assert people(browser) == ["marcus", "marcus", "nadia"]
    for text in ("3 in this list", "Jurong", "31 Dec 2099", "No end", "Permit Year: 2026"):
        assert text in browser.page.text
    await browser.fill_and_submit(ends="over")
    assert people(browser) == ["nadia"]
    assert "31 Dec 2020" in browser.page.text


async def test_the_list_is_narrowed_by_words_service_role_and_last_day(made: World) -> None:
    """D83: in the address, with the total of what is shown."""
    await held(made)
    browser = await in_portal(made, "access")
    await browser.fill_and_submit(q="lee marcus")
    assert people(browser) == ["marcus", "marcus"]
    await browser.fill_and_submit(q="", service="HARBOUR")
    assert people(browser) == ["marcus", "marcus"]
    await browser.fill_and_submit(role="Approver")
    assert people(browser) == ["marcus"]
    assert "1 in this list" in browser.page.text
    await browser.fill_and_submit(role="", service="", ends="dated")
    assert people(browser) == ["marcus"]
    await browser.fill_and_submit(q="nadia", ends="dated")
    assert people(browser) == []
    await follow(browser, "Show all access")
    assert len(people(browser)) == 3


async def test_a_long_list_goes_on_page_by_page_without_loss_or_repetition() -> None:
    """D83: by person, and by last day."""
    async with new_world() as made:
        await staffed(made)
        rows = [
            checker("nadia" if each % 2 else "marcus", ref=f"{each:03}", end_date="2099-01-31") for each in range(120)
        ]
        await made.write(*rows)
        browser = await in_portal(made)
        for page in ("access", "access?ends=dated", "access?q=acme.example"):
            await go(made, browser, page)
            found = people(browser)
            for _ in range(2):
                await follow(browser, "Next page")
                found += people(browser)
            assert (found.count("marcus"), found.count("nadia"), len(found)) == (60, 60, 120)
        assert await go(made, browser, "access?after=x") == "Page not found"


async def sorted_by_each(made: World) -> None:
    """Roles whose order is another one by person, service, role and last day."""
    await staffed(made)
    await made.write(
        replace(HARBOUR, name="zebra permits"),
        *(
            Assignment(
                user_id=f"id-{who}", entity_id=ACME, service_id=service, role=role, ref=f"{each:02}",
                end_date=f"20{99 - each}-12-31",
            )
            for each in range(20)
            for who, service, role in (
                ("marcus", "HARBOUR", "Checker"), ("nadia", "HARBOUR", "Approver"), ("nadia", "NOTICES", ""),
            )
        ),
    )  # fmt: skip


_KEYS: Mapping[RoleOrder, Callable[[EntityRole], tuple[str, ...]]] = {
    "person": lambda each: (each.member.identity, each.row.service_id, each.row.role, each.row.ref),
    "service": lambda each: (each.service.name.casefold(), each.row.user_id, each.row.role, each.row.ref),
    "role": lambda each: (each.row.role, each.row.service_id, each.row.user_id, each.row.ref),
    "until": lambda each: (each.row.end_date, *each.row.key),
}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("order", get_args(RoleOrder))
@pytest.mark.parametrize("search", ["", "acme example"])
async def test_the_list_is_sorted_both_ways_and_paged_in_both_directions(
    made: World, monkeypatch: pytest.MonkeyPatch, order: RoleOrder, descending: bool, search: str
) -> None:
    """D83: whatever is searched, and however short the parts are in which the roles are looked through."""
    await sorted_by_each(made)
    monkeypatch.setattr(role_assignment, "_EXAMINED_AT_ONCE", 7)
    registry, actor = made.provider.registry, owner(made, "alice")
    wanted = RoleFilter(
        search=search, first="2000-01-01", last="2099-12-30" if order == "until" else "", order=order,
        descending=descending,
    )  # fmt: skip
    listed = partial(role_assignment.list_entity_roles, registry, actor, wanted, limit=11)
    pages = [await listed(after="")]
    while after := pages[-1].after:
        pages.append(await listed(after=after))
        back = await listed(after="", before=pages[-1].before)
        assert (back.found, bool(back.before)) == (pages[-2].found, len(pages) > 2)
    found = [each for page in pages for each in page.found]
    assert len(found) == (57 if order == "until" else 60)
    assert found == sorted(found, key=_KEYS[order], reverse=descending)


async def test_a_search_that_stops_early_goes_on_in_both_directions(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D83: where it stopped, with as many roles as it found; none is missed."""
    await sorted_by_each(made)
    monkeypatch.setattr(role_assignment, "_EXAMINED_AT_ONCE", 3)
    monkeypatch.setattr(role_assignment, "_PARTS", 2)
    registry, actor = made.provider.registry, owner(made, "alice")
    for order in ("role", "service"):
        wanted = RoleFilter(search="nadia", role="Approver", order=order)
        listed = partial(role_assignment.list_entity_roles, registry, actor, wanted, limit=11)
        page = await listed(after="")
        found = list(page.found)
        while page.after:
            page = await listed(after=page.after)
            found += page.found
        assert [each.row.ref for each in found] == [f"{each:02}" for each in range(20)]
        back = await listed(after="", before=page.before) if page.before else page
        while back.before:
            back = await listed(after="", before=back.before)
            assert len(back.found) <= 11


async def test_the_head_of_a_column_sorts_the_access(made: World) -> None:
    """D83: once more the other way; the address and the file say how, and the pages lead on and back."""
    await sorted_by_each(made)
    browser = await in_portal(made, "access")
    await follow(browser, "Service")
    assert people(browser)[:20] == ["nadia"] * 20
    await follow(browser, "Next page")
    assert len(people(browser)) == 10
    await follow(browser, "Previous page")
    assert len(people(browser)) == 50
    await follow(browser, "Service")
    assert browser.url.endswith("/access?sort=-service")
    assert people(browser)[0] == "nadia" and people(browser)[-1] == "nadia"
    await follow(browser, "Until")
    assert browser.url.endswith("/access?ends=dated&sort=until")
    assert "31 Dec 2080" in browser.page.text
    assert "31 Dec 2099" not in browser.page.text
    await follow(browser, "Until")
    await follow(browser, "Download as CSV")
    assert browser.response is not None
    assert browser.response.text.splitlines()[1].endswith("2099-12-31")


async def test_a_place_at_a_service_without_access_is_in_no_page(made: World) -> None:
    await sorted_by_each(made)
    browser = await in_portal(made)
    assert await go(made, browser, "access?sort=service&after=GONE/id/r/s/t") == "Page not found"


async def test_a_sub_administrator_sees_the_roles_at_their_services(made: World) -> None:
    """D53."""
    await held(made)
    await appoint(made, level="sub_administrator", services=("NOTICES",))
    browser = await in_portal(made, "access")
    assert people(browser) == ["nadia"]
    assert "1 in this list" in browser.page.text
    assert await go(made, browser, "access?service=HARBOUR") == "You cannot open this page"
    await go(made, browser, "access/roles")
    assert "Harbour permits" not in browser.page.text


async def test_each_role_in_use_is_counted_and_leads_to_those_who_have_it(made: World) -> None:
    """D53: of the roles that hold."""
    await held(made)
    await made.write(checker("nadia", role="Approver"))
    browser = await in_portal(made, "access")
    await follow(browser, "Roles in use")
    await follow(browser, "2 Harbour permits Approver")
    assert people(browser) == ["marcus", "nadia"]


async def test_selected_roles_end_after_one_check(made: World) -> None:
    """D81: each with its event, in one batch."""
    await held(made)
    browser = await in_portal(made, "access")
    rows = checker(sub_entity="Jurong"), NOTICES
    await end(made, browser, *rows)
    assert browser.page.heading == "Remove access?"
    assert "2 people lose 2 roles." in browser.page.text
    assert people(browser) == ["marcus", "nadia"]
    await confirm(browser)
    assert "lost access" in browser.page.text
    assert [each.role for each in await roles(made)] == ["Approver"]
    assert [each.end_date for each in await roles(made, "nadia")] == ["2020-12-31"]
    events = await made.audit("assignment.remove")
    assert len({each.detail["batch"] for each in events}) == 1


async def test_the_list_is_as_it_was_sorted_after_a_check_that_changes_nothing(made: World) -> None:
    """D81, D83."""
    await held(made)
    browser = await in_portal(made, "access?sort=-role")
    await browser.fill_and_submit("decision", **{f"select-{identifier(NOTICES)}": "yes"})
    assert browser.page.heading == "Remove access?"
    await follow(browser, "Cancel")
    assert "sort=-role" in browser.url
    assert len(await roles(made)) == 2


async def test_the_whole_list_ends_as_it_was_filtered_and_shown() -> None:
    """D81: the filter, evaluated again; what came in meanwhile is shown first."""
    async with new_world() as made:
        await staffed(made)
        await made.write(NOTICES, *(checker(ref=f"{each:03}") for each in range(150)))
        browser = await in_portal(made, "access?service=HARBOUR")
        await browser.fill_and_submit("decision", all="yes")
        assert "1 person loses 150 roles." in browser.page.text
        assert "100 more roles are not listed here." in browser.page.text
        await made.write(checker(ref="999"))
        await confirm(browser)
        assert "There is a problem" in browser.page.text
        assert "1 person loses 151 roles." in browser.page.text
        await confirm(browser)
        assert await roles(made) == []
        assert len(await roles(made, "nadia")) == 1


async def test_access_that_the_reader_cannot_change_is_not_offered_and_stays(made: World) -> None:
    """D54: their own, and that of an owner."""
    await held(made)
    await appoint(made, who="nadia", level="owner")
    await appoint(made, level="administrator")
    own = replace(NOTICES, user_id="id-alice")
    await made.write(own)
    browser = await in_portal(made, "access")
    assert people(browser) == ["alice", "marcus", "marcus", "nadia"]
    form = browser.page.form_with("decision")
    assert form is not None
    assert sum(each.name.startswith("select-") for each in form.controls) == 2
    rows = own, NOTICES, checker(role="Approver")
    await end(made, browser, *rows)
    assert "2 roles stay" in browser.page.text
    await confirm(browser)
    assert len(await roles(made, "alice")) == len(await roles(made, "nadia")) - 1 == 1
    assert len(await roles(made)) == 1


async def test_roles_of_another_organisation_or_service_are_not_ended(made: World) -> None:
    """D53, D59."""
    await held(made)
    await employed(made, "olga", "Olga Berg", BANYAN)
    other = replace(checker("olga"), entity_id=BANYAN)
    await made.write(other)
    await appoint(made, level="sub_administrator", services=("NOTICES",))
    browser = await in_portal(made, "access")
    await end(made, browser, other, checker(role="Approver"))
    assert "Choose the access in the list first." in browser.page.text
    assert len(await roles(made)) == 2


async def test_where_approval_is_needed_the_end_of_many_becomes_a_request(made: World) -> None:
    """D55, D81."""
    await held(made)
    await appoint(made, who="nadia", level="owner")
    await demand(made, "roles")
    browser = await in_portal(made, "access")
    rows = checker(sub_entity="Jurong"), checker(role="Approver")
    await end(made, browser, *rows)
    await confirm(browser)
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, reason="Left the team")
    assert len(await roles(made)) == 2
    [request] = await requests(made)
    assert (request.reason, len(request.changes)) == ("Left the team", 2)


async def requested(made: World, count: int) -> None:
    """So many changes that Alice has requested wait, and roles at Notices need approval."""
    await appoint(made, who="marcus", level="owner")
    rows = (replace(NOTICES, ref=f"waits {each}") for each in range(count))
    request = ChangeRequest(
        request_id="00000001-x", entity_id=ACME, requester="user:id-alice", reason="They left",
        changes=tuple(Change(None, row) for row in rows), created_at=int(made.clock()),
    )  # fmt: skip
    await made.write(replace(access_scene.NOTICES, approval_required=True), request)


async def every_role_selected(made: World, *, waiting: int) -> Browser:
    """The page that asks whether 121 roles end, of which one needs approval; so many other changes wait."""
    await staffed(made)
    await requested(made, waiting)
    await made.write(NOTICES, *(checker("nadia", ref=f"{each:03}") for each in range(120)))
    browser = await in_portal(made, "access")
    await browser.fill_and_submit("decision", all="yes")
    return browser


async def test_no_role_of_a_selection_ends_before_it_is_approved_if_one_of_them_needs_approval(made: World) -> None:
    """D55, D81: as the page says, also in the hundred in which nothing needs it."""
    browser = await every_role_selected(made, waiting=1)
    assert "Nothing changes until then." in browser.page.text
    await confirm(browser, reason="The season is over")
    assert "Nothing changes until it is approved" in browser.page.text
    assert sorted(len(each.changes) for each in await requests(made)) == [1, 21, 100]
    assert len([row async for row in made.provider.registry.directory.scan(Assignment)]) == 121


async def test_a_removal_that_stops_says_how_many_were_requested_and_why(made: World) -> None:
    """D55, D81."""
    browser = await every_role_selected(made, waiting=1895)
    await confirm(browser, reason="The season is over")
    assert "Approval was requested for the removal of 100 roles only." in browser.page.text
    assert "can wait for approval" in browser.page.text


async def test_a_removal_that_stops_says_how_many_roles_ended(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """D81: a hundred end together; somebody changes one of the others before their turn."""
    await staffed(made)
    late = checker("nadia")
    await made.write(*(checker(ref=f"{each:03}") for each in range(100)), late)
    browser = await in_portal(made, "access?sort=person")
    await browser.fill_and_submit("decision", all="yes")
    wait = asyncio.sleep

    async def change_meanwhile(seconds: float) -> None:
        if not await roles(made):
            await made.write(replace(late, end_date="2030-01-01"))
        await wait(seconds)

    monkeypatch.setattr(asyncio, "sleep", change_meanwhile)
    await confirm(browser)
    assert "Only 100 roles were removed. Something changed while you were on this page." in browser.page.text
    assert [each.end_date for each in await roles(made, "nadia")] == ["2030-01-01"]


async def test_a_role_that_the_reader_cannot_change_has_no_checkbox_however_old_the_sign_in_is(made: World) -> None:
    """D53, D54: and those that they can change have one."""
    await held(made)
    await appoint(made, who="nadia", level="administrator")
    browser = await in_portal(made, "access")
    assert "Select nadia (Nadia Rahman)" in browser.page.text
    made.clock.pass_(901)
    await go(made, browser, "access")
    assert "Select nadia (Nadia Rahman)" in browser.page.text
    await appoint(made, level="administrator")
    await go(made, browser, "access")
    assert "Select nadia (Nadia Rahman)" not in browser.page.text
    assert "Select marcus (Marcus Lee)" in browser.page.text


async def test_nothing_selected_ends_nothing(made: World) -> None:
    await held(made)
    browser = await in_portal(made, "access")
    await browser.fill_and_submit("decision")
    assert "Choose the access in the list first." in browser.page.text
    assert browser.page.heading == "Access"
    assert await go(made, browser, "access/end") == "Access"


async def test_the_list_is_downloaded_as_it_is_filtered(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """D83, RFC 4180: up to a number of rows."""
    await held(made)
    await made.write(replace(HARBOUR, name="=Harbour"))
    browser = await in_portal(made, "access?service=HARBOUR")
    await follow(browser, "Download as CSV")
    assert browser.response is not None
    lines = browser.response.text.splitlines()
    assert lines[0].endswith(
        "Name,User name,E-mail address,Service,Role,Part of the organisation,Parameters,First day,Last day"
    )
    assert lines[1] == "Marcus Lee,marcus,marcus@acme.example,'=Harbour,Approver,,Permit Year: 2026,,"
    assert lines[2] == "Marcus Lee,marcus,marcus@acme.example,'=Harbour,Checker,Jurong,Permit Year: 2026,,2099-12-31"
    assert len(lines) == 3
    monkeypatch.setattr(lists, "MOST_DOWNLOADED", 1)
    await go(made, browser, "access/csv?service=HARBOUR")
    assert browser.response.text.splitlines()[-1].startswith('"This file is not complete.')
