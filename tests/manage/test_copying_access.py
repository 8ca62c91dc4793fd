"""Giving a person the access of a colleague (D54, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.rules.directory.records import Assignment
from corpid.web.directory.access import box
from tests.manage.access_scene import NOTICES, checker, confirm, follow, requests, roles, staffed
from tests.manage.scene import ACME, appoint, go, in_portal

if TYPE_CHECKING:
    from tests.sign_in.world import World


async def test_the_roles_that_are_ticked_are_given_from_today_and_no_others(made: World) -> None:
    """D23, D55."""
    await staffed(made)
    notices = Assignment(user_id="id-nadia", entity_id=ACME, service_id="NOTICES")
    ended = checker("nadia", role="Approver", end_date="2020-12-31")
    await made.write(checker("nadia", start_date="2020-01-01", end_date="2099-12-31"), notices, ended)
    browser = await in_portal(made, "access/copy?person=m-marcus")
    await browser.fill_and_submit(find="rahman")
    await follow(browser, "Nadia Rahman")
    assert "Approver" not in browser.page.text
    await confirm(browser)
    assert "Choose what to copy." in browser.page.text
    await confirm(browser, **{box(checker(end_date="2099-12-31"), "2027-01-15"): "yes"})
    [row] = await roles(made)
    assert (row.role, row.end_date, row.parameters) == ("Checker", "2099-12-31", checker().parameters)
    assert row.start_date > "2020-01-01"


async def test_what_the_person_has_already_is_shown_and_not_offered(made: World) -> None:
    """D55."""
    await staffed(made)
    await made.write(checker("nadia"), checker("marcus"))
    browser = await in_portal(made, "access/copy?person=m-marcus&from=m-nadia")
    assert "nadia (Nadia Rahman) has no access that you can copy here." in browser.page.text
    assert "Already given" in browser.page.text


async def test_a_sub_administrator_copies_only_at_their_services_and_nobody_to_themselves(made: World) -> None:
    """D53, D54."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    await made.write(checker("nadia"))
    browser = await in_portal(made, "access/copy?person=m-marcus&from=m-nadia")
    assert "Checker" not in browser.page.text
    await appoint(made, who="nadia")
    assert await go(made, browser, "access/copy?person=m-nadia&from=m-marcus") == "Copy access for nadia (Nadia Rahman)"
    assert "Only an owner can change this access." in browser.page.text


async def test_nothing_is_copied_before_it_is_approved_if_the_page_says_so(made: World) -> None:
    """D55: whichever roles are ticked."""
    await staffed(made)
    await appoint(made, who="nadia", level="owner")
    await made.write(replace(NOTICES, approval_required=True))
    await made.write(checker("nadia"), Assignment(user_id="id-nadia", entity_id=ACME, service_id="NOTICES"))
    browser = await in_portal(made, "access/copy?person=m-marcus&from=m-nadia")
    assert "Nothing changes until then." in browser.page.text
    ticked = {box(checker(), "2027-01-15"): "yes"}
    await confirm(browser, **ticked)
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, **ticked, reason="He stands in for Nadia")
    [request] = await requests(made)
    assert [each.key for each in request.changes] == [checker().key]
    assert await roles(made) == []
