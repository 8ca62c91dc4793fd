"""A table of people and roles: problems by line, a preview, then all or nothing (D55, D60)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.records import Membership
from corpid.rules.directory.tables import MOST_ACCESS_LINES
from corpid.rules.directory.values import Parameter
from tests import contexts
from tests.manage.access_scene import checker, confirm, demand, follow, requests, roles, staffed
from tests.manage.scene import ACME, appoint, go, in_portal, send
from tests.sign_in.world import World, form_of, shown_again

HEADER = "user_name,name,email,service,role,end_date,parameter:Permit Year"


def table(*lines: str, header: str = HEADER) -> str:
    return "\r\n".join((header, *lines))


async def test_a_table_is_shown_in_sentences_before_anything_changes_and_then_taken_over(made: World) -> None:
    """D60: who is not there yet is invited, with the role."""
    await staffed(made)
    await made.write(checker("nadia", end_date="2099-12-31"))
    browser = await in_portal(made, "access/import")
    lines = table(
        "marcus,,,HARBOUR,Approver,2099-06-30,2026",
        "nadia,,,Harbour permits,Checker,,2027",
        "omar,Omar Aziz,omar@acme.example,NOTICES,,,",
    )
    await confirm(browser, table=lines)
    text = browser.page.text
    assert (
        "marcus (Marcus Lee) may act as Approver at Harbour permits for Acme Pte. Ltd. from today until 30 Jun" in text
    )
    assert "nadia (Nadia Rahman) may act as Checker at Harbour permits for Acme Pte. Ltd. until 31 Dec" in text
    assert "omar@acme.example (Omar Aziz) gets an invitation for Acme Pte. Ltd." in text
    assert "This makes 4 changes." in text
    assert await roles(made) == []
    await browser.fill_and_submit("decision", button="confirm")
    [given] = await roles(made)
    assert (given.role, given.end_date) == ("Approver", "2099-06-30")
    [changed] = await roles(made, "nadia")
    assert (changed.end_date, changed.parameters[0].value) == ("2099-12-31", "2027")
    belonging = await contexts.belonging(made.provider.registry, ACME, limit=20)
    [omar] = [held for held, _ in belonging if held.user_name == "omar"]
    assert isinstance(omar, Membership)
    assert omar.invited


async def test_a_table_that_changes_nothing_is_not_taken_over_by_a_form_of_ones_own_making(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "access/import")
    table = "user_name\nmarcus"
    for confirmed in ({}, {"decision": "confirm", "confirmed": "yes"}):
        fields = {**form_of(browser, "form_token", "table"), "table": table, **confirmed}
        shown = await shown_again(browser, await send(made, browser, "access/import", **fields))
        assert "Nothing would change." in shown.text


async def test_every_problem_is_named_by_its_line_and_nothing_changes(made: World) -> None:
    """R-14.1, D55."""
    await staffed(made)
    browser = await in_portal(made, "access/import")
    lines = table(
        "marcus,,,HARBOUR,Approver,,",
        "nobody,,,NOTICES,,,",
        "marcus,,,FOREIGN,Clerk,,",
        "nadia,,,NOTICES,,2020-01-01,",
        "nadia,,,NOTICES,,,2026",
        "nadia,,,HARBOUR,Checker,,2026",
        "nadia,,,HARBOUR,Checker,,2027",
        "nadia,,,HARBOUR,Boss,,2027",
        "nadia,,,HARBOUR,,,2027",
    )
    await confirm(browser, table=lines)
    text = browser.page.text
    for problem in (
        "2 Enter the Permit Year.",
        "3 Nobody here has this user name.",
        "4 There is no service FOREIGN here.",
        "5 Enter today or a later day.",
        "6 Notices has no parameter Permit Year.",
        "8 This role is already in line 7.",
        "9 Harbour permits has no role Boss. It has these: Checker, Approver.",
        "10 Fill in the role. Harbour permits has these: Checker, Approver.",
    ):
        assert problem in text, problem
    assert "8 problems in the table. Nothing has been changed." in text
    await confirm(browser, table=table("marcus;NOTICES", header="user_name;servce"))
    assert "servce" in browser.page.text
    await confirm(browser, table=table(*(f"p{n},,,NOTICES,,," for n in range(MOST_ACCESS_LINES + 1))))
    assert f"Enter at most {MOST_ACCESS_LINES} lines at once" in browser.page.text
    assert await roles(made) == await roles(made, "nadia") == []


async def test_a_sub_administrator_invites_nobody_and_gives_roles_at_their_services_only(made: World) -> None:
    """D53."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    browser = await in_portal(made, "access/import")
    token = form_of(browser, "form_token", "table")
    for line in (
        "marcus,,,HARBOUR,Checker,,2026",
        "omar,Omar Aziz,omar@acme.example,NOTICES,,,",
        "alice,,,NOTICES,,,",
    ):
        fields = {**token, "table": table(line), "decision": "confirm"}
        await shown_again(browser, await send(made, browser, "access/import", **fields))
    await confirm(browser, table=table("marcus,,,NOTICES,,,"))
    await browser.fill_and_submit("decision", button="confirm")
    assert len(await roles(made)) == 1
    assert await roles(made, "alice") == []


async def test_where_approval_is_needed_the_table_becomes_one_request(made: World) -> None:
    """D55."""
    await staffed(made)
    await appoint(made, who="nadia")
    await demand(made, "roles")
    browser = await in_portal(made, "access/import")
    await confirm(browser, table=table("marcus,,,NOTICES,,,", "marcus,,,HARBOUR,Checker,,2026"))
    await browser.fill_and_submit("decision", button="confirm")
    assert "Say why, for the person who approves it." in browser.page.text
    await browser.fill_and_submit(button="confirm", reason="New in the team")
    [request] = await requests(made)
    assert len(request.changes) == 2
    assert await roles(made) == []


async def test_a_table_copied_from_a_spreadsheet_is_separated_by_tabs_and_can_be_changed_again(made: World) -> None:
    """docs/accessibility.md: what was pasted is kept."""
    await staffed(made)
    browser = await in_portal(made, "access/import")
    await confirm(browser, table=table("marcus\tNOTICES", header="user_name\tservice"))
    assert "This makes 1 change." in browser.page.text
    await browser.fill_and_submit("decision", button="edit")
    form = browser.page.form_with("table")
    assert form is not None
    assert "marcus\tNOTICES" in next(each.value for each in form.controls if each.name == "table")


async def test_an_empty_table_has_the_columns_of_the_services_at_which_the_reader_gives_access(made: World) -> None:
    """D81: those that a table is read by."""
    await staffed(made)
    browser = await in_portal(made, "access/import")
    await follow(browser, "Download an empty table with these columns")
    header = browser.response.text if browser.response else ""
    assert header == (
        "\ufeffuser_name,name,email,service,role,sub_entity,start_date,end_date,"
        "parameter:Permit Year,parameter:Berth\r\n"
    )
    await appoint(made, level="sub_administrator", services=("NOTICES",))
    await go(made, browser, "access/import/access.csv")
    assert browser.response is not None
    assert "parameter:" not in browser.response.text
    await go(made, browser, "access/import")
    await confirm(browser, table=header + "marcus,,,NOTICES,,,,,,\r\n")
    assert "This makes 1 change." in browser.page.text


async def test_a_column_that_is_left_out_changes_none_of_the_values_of_a_role(made: World) -> None:
    """R-14.1: also of a parameter with several values; one that is typed is the only one then."""
    await staffed(made)
    values = [("Permit Year", "2026"), ("Permit Year", "2027"), ("Berth", "A"), ("Berth", "B")]
    held = tuple(Parameter(name=name, value=value) for name, value in values)
    await made.write(checker(parameters=held, end_date="2027-12-31"))
    browser = await in_portal(made, "access/import")
    assert "an empty cell changes nothing" in browser.page.text
    lines = table("marcus,HARBOUR,Checker,2028-12-31", header="user_name,service,role,end_date")
    await confirm(browser, table=lines)
    await browser.fill_and_submit("decision", button="confirm")
    assert await roles(made) == [checker(parameters=held, end_date="2028-12-31")]
    await go(made, browser, "access/import")
    lines = table("marcus,HARBOUR,Checker,C", header="user_name,service,role,parameter:Berth")
    await confirm(browser, table=lines)
    await browser.fill_and_submit("decision", button="confirm")
    typed = (*held[:2], Parameter(name="Berth", value="C"))
    assert await roles(made) == [checker(parameters=typed, end_date="2028-12-31")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("marcus,NOTICES,Viewer,,2028-12-31", "Notices has no role Viewer."),
        (
            "marcus,NOTICES,,Branch 1,2028-12-31",
            "Access at Notices is for the whole organisation. Leave sub_entity empty.",
        ),
    ],
)
async def test_a_limit_that_the_service_does_not_have_is_a_problem_of_its_line(
    made: World, line: str, problem: str
) -> None:
    """R-14.1: nobody gets more than was typed."""
    await staffed(made)
    browser = await in_portal(made, "access/import")
    await confirm(browser, table=table(line, header="user_name,service,role,sub_entity,end_date"))
    assert problem in browser.page.text
    assert await roles(made) == []
