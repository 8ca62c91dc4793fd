"""Giving a person access at a service, on one page without a script (D53, D54, D55)."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.rules.directory.records import Assignment
from corpid.rules.directory.role_forms import VALUES_IN_USE, most_frequent_values, one_year
from corpid.rules.directory.values import NO_END, Parameter
from corpid.web.pages.role_fields import value_field
from tests import contexts
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
from tests.sign_in.world import World, form_of, new_world, shown_again

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

YEAR = value_field(HARBOUR, "Permit Year")
BERTH = value_field(HARBOUR, "Berth")
PART = value_field(HARBOUR)


class Task:
    """Somebody at the portal's home page, with their clicks and rounds of errors.

    What is typed is no click; a radio button that is chosen already is left as it is.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser, self.clicks, self.errors = browser, 0, 0

    async def follow(self, text: str) -> None:
        self.clicks += 1
        await follow(self.browser, text)

    async def send(self, *names: str, **values: str) -> None:
        form = self.browser.page.form_with(*names, *values)
        assert form is not None, self.browser.page.text
        chosen = {each.name: each.value for each in form.controls if each.choice and each.chosen}
        choices = {each.name for each in form.controls if each.choice}
        self.clicks += 1 + sum(name in choices and chosen.get(name) != value for name, value in values.items())
        await self.browser.fill_and_submit(*names, **values)
        self.errors += "There is a problem" in self.browser.page.text


async def test_a_role_without_parameters_takes_at_most_six_clicks_and_no_round_of_errors(made: World) -> None:
    """D54: from the home page."""
    await staffed(made)
    task = Task(await in_portal(made))
    await task.follow("Give access")
    assert "Foreign matters" not in task.browser.page.text
    await task.send(find="marcus", access="NOTICES", end="none")
    assert "marcus (Marcus Lee) may act at Notices for Acme Pte. Ltd. from today" in task.browser.page.text
    await task.send("form_token")
    [row] = await roles(made)
    assert (row.service_id, row.role, row.end_date) == ("NOTICES", "", NO_END)
    assert (task.clicks <= 6, task.errors) == (True, 0)


async def test_a_role_with_parameters_takes_at_most_seven_clicks_and_no_round_of_errors(made: World) -> None:
    """D54: the parameters of the service are asked for on the same page; the access ends, unless that is chosen."""
    await staffed(made)
    task = Task(await in_portal(made))
    await task.follow("Give access")
    assert "Approves applications." in task.browser.page.text
    await task.send(find="Marc", access="HARBOUR/Approver", **{YEAR: "2026"})
    assert (
        "marcus (Marcus Lee) may act as Approver at Harbour permits for Acme Pte. Ltd. from today"
        in task.browser.page.text
    )
    await task.send("form_token")
    [row] = await roles(made)
    assert (row.role, row.parameters) == ("Approver", (Parameter(name="Permit Year", value="2026"),))
    assert row.end_date == one_year(date.fromisoformat(row.start_date)).isoformat()
    assert (task.clicks, task.errors) == (4, 0)


async def test_of_several_people_whom_the_words_fit_one_is_chosen_and_the_rest_stays_as_it_was(made: World) -> None:
    """D54, D61: a name that is offered means one of them."""
    await staffed(made)
    await employed(made, "marcia", "Marcia Tan")
    browser = await in_portal(made, "access/new")
    assert "marcia (Marcia Tan)" in offered(browser)["find-used"]
    await browser.fill_and_submit(find="marc", access="NOTICES", end="none")
    text = browser.page.text
    assert "There is a problem 2 people match. Choose one, or enter more of the name." in text
    assert text.index("Name, user name or e-mail address") < text.index("People who match")
    assert "marcia (Marcia Tan)" in text
    assert "Nadia" not in text
    assert offered(browser)["find-used"] == ["marcia (Marcia Tan)", "marcus (Marcus Lee)"]
    await browser.fill_and_submit(person="m-marcia")
    assert "marcia (Marcia Tan) may act at Notices" in browser.page.text
    await go(made, browser, "access/new")
    await browser.fill_and_submit(find="marcus (Marcus Lee)", access="NOTICES", end="none")
    assert "marcus (Marcus Lee) may act at Notices" in browser.page.text


async def test_of_more_people_than_are_listed_their_number_is_said(made: World) -> None:
    """D54, D83."""
    await staffed(made)
    for number in range(14):
        await employed(made, f"koh{number:02}", f"Koh {number}")
    browser = await in_portal(made, "access/new")
    await browser.fill_and_submit(find="koh", access="NOTICES", end="none")
    text = browser.page.text
    assert "14 people match. Choose one of the first 12, or enter more of the name." in text
    assert ("koh11 (Koh 11)" in text, "koh12 (Koh 12)" in text) == (True, False)


async def test_a_role_says_which_values_it_needs_before_it_is_chosen(made: World) -> None:
    """D54: those that are required."""
    await staffed(made)
    text = (await in_portal(made, "access/new")).page.text
    assert "Harbour permits: Approver Approves applications. Needs: Permit Year" in text
    assert text.count("Needs:") == len(HARBOUR.roles)


async def test_each_thing_that_is_missing_is_said_on_the_page_once(made: World) -> None:
    """D54: nobody, nothing; then nobody of that name."""
    await staffed(made)
    browser = await in_portal(made, "access/new")
    await browser.fill_and_submit("find")
    for sentence in ("Enter who gets access.", "Choose what the person may do."):
        assert sentence in browser.page.text
    await browser.fill_and_submit(find="zebra", access="HARBOUR/Checker", end="date", end_date="2020-01-01")
    for sentence in (
        "Nobody found.",
        "Enter today or a later day.",
        "Enter the Permit Year. Harbour permits needs it.",
    ):
        assert sentence in browser.page.text


async def test_of_many_roles_each_service_is_opened_and_the_values_of_many_are_asked_once_one_is_chosen(
    made: World,
) -> None:
    """D54: a service that an entity may use is found on the page itself, and no error leads to its values."""
    await staffed(made)
    await made.write(replace(HARBOUR, service_id="BERTHS", name="Berths", roles=tuple(map("R{:02}".format, range(12)))))
    browser = await in_portal(made, "access/new?person=m-marcus")
    assert "<summary>Berths</summary>" in browser.response.text  # type: ignore[union-attr]
    await browser.fill_and_submit(access="NOTICES", end="none")
    assert "may act at Notices" in browser.page.text
    await made.write(*(replace(HARBOUR, service_id=f"PORT{number}", name=f"Port {number}") for number in range(7)))
    await go(made, browser, "access/new?person=m-marcus")
    assert browser.page.form_with(YEAR) is None
    await browser.fill_and_submit(access="HARBOUR/Checker")
    assert "There is a problem" not in browser.page.text
    await browser.fill_and_submit(**{YEAR: "2026"})
    assert "may act as Checker at Harbour permits" in browser.page.text


async def test_what_is_missing_or_wrong_is_named_at_its_field_and_nothing_typed_is_lost(made: World) -> None:
    """R-14.1: no relying party reads a missing value."""
    await staffed(made)
    browser = await in_portal(made, "access/new?person=m-marcus")
    await browser.fill_and_submit(access="HARBOUR/Checker", end="date", end_date="2020-01-01", **{PART: "Jurong"})
    text = browser.page.text
    assert "Enter the Permit Year. Harbour permits needs it." in text
    assert "Enter today or a later day." in text
    assert form_of(browser, PART)[PART] == "Jurong"
    await browser.fill_and_submit(end="none", **{YEAR: "soon"})
    assert "Enter a year of four digits, such as 2026." in browser.page.text


async def test_further_roles_than_are_listed_are_mentioned() -> None:
    """D54: whoever gives a role knows that the list of those given is not whole."""
    more = "There is more: the person's page lists everything."

    async with new_world() as made:
        await staffed(made)
        rows = [checker(sub_entity=f"Berth {number}") for number in range(13)]
        await made.write(*rows[:12])
        browser = await in_portal(made)
        pages = "access/new?person=m-marcus", "access/new?person=m-marcus&access=NOTICES&check=all"
        for page in pages:
            await go(made, browser, page)
            assert ("Already given" in browser.page.text, more in browser.page.text) == (True, False)
        await made.write(rows[12])
        for page in pages:
            await go(made, browser, page)
            assert more in browser.page.text


async def test_a_form_that_skips_the_checks_of_the_page_is_refused(made: World) -> None:
    """R-14.1: also what was posted at once."""
    await staffed(made)
    browser = await in_portal(made, "access/new?person=m-marcus&access=NOTICES&check=all&end=none&start=today")
    token = form_of(browser, "form_token", "person")
    for access in ("HARBOUR/Checker", "FOREIGN/Clerk", "HARBOUR/Boss", ""):
        await shown_again(browser, await send(made, browser, "access/new", **{**token, "access": access}))
    assert await roles(made) == []


async def test_a_service_without_roles_and_no_end_need_no_more_than_a_confirmation(made: World) -> None:
    """R-14.1."""
    await staffed(made)
    browser = await in_portal(made, "access/new?person=m-nadia&access=NOTICES")
    await browser.fill_and_submit(end="none")
    assert (
        "nadia (Nadia Rahman) may act at Notices for Acme Pte. Ltd. from today, with no end date." in browser.page.text
    )
    await confirm(browser)
    [row] = await roles(made, "nadia")
    assert (row.role, row.end_date) == ("", NO_END)


async def test_a_role_that_the_person_has_leads_to_its_change_and_one_that_has_ended_is_given_again(
    made: World,
) -> None:
    """D55."""
    await staffed(made)
    await made.write(checker())
    asked = f"access/new?person=m-marcus&access=HARBOUR/Checker&start=today&end=none&{YEAR}=2027&check=all"
    browser = await in_portal(made, asked)
    assert "marcus (Marcus Lee) already has this role. Change it instead." in browser.page.text
    await follow(browser, "Change this access")
    assert browser.page.heading == "Change access"
    await made.write(replace(checker(), start_date="2020-01-01", end_date="2020-12-31"))
    await go(made, browser, asked)
    await confirm(browser)
    [row] = await roles(made)
    assert (row.end_date, row.parameters[0].value) == (NO_END, "2027")


async def test_what_a_person_has_already_is_said_before_a_role_is_chosen_and_before_it_is_given(made: World) -> None:
    """D54: what has ended is left out, and what the reader may not see (D53)."""
    await staffed(made)
    gone = checker(role="Approver", end_date="2020-12-31")
    notices = Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES")
    await made.write(checker(sub_entity="Jurong", end_date="2099-12-31"), gone, notices)
    browser = await in_portal(made, "access/new?person=m-marcus")
    text = browser.page.text
    assert "Already given" in text
    assert "marcus (Marcus Lee) may act as Checker at Harbour permits for Acme Pte. Ltd. until 31 Dec 2099." in text
    assert "Part of the organisation: Jurong" in text
    assert "marcus (Marcus Lee) may act at Notices" in text
    assert "as Approver" not in text
    await go(made, browser, f"access/new?person=m-marcus&access=HARBOUR/Approver&{YEAR}=2027&check=all")
    assert "marcus (Marcus Lee) may act as Checker at Harbour permits" in browser.page.text
    await go(made, browser, "access/new?person=m-nadia")
    assert "Already given" not in browser.page.text
    await appoint(made, level="sub_administrator", services=("HARBOUR",))
    await go(made, browser, "access/new?person=m-marcus")
    assert "marcus (Marcus Lee) may act as Checker" in browser.page.text
    assert "marcus (Marcus Lee) may act at Notices" not in browser.page.text


async def test_values_say_whether_they_are_required(made: World) -> None:
    """R-14.1: sub-entity and parameters, as the service declares them."""
    await staffed(made)
    browser = await in_portal(made, "access/new?person=m-marcus")
    for label in ("Part of the organisation (optional)", "Permit Year (required)", "Berth (optional)"):
        assert label in browser.page.text
    await made.write(replace(HARBOUR, sub_entity="mandatory"))
    await go(made, browser, "access/new?person=m-marcus")
    assert "Part of the organisation (required)" in browser.page.text


async def test_values_that_the_organisation_uses_at_the_service_are_offered(made: World) -> None:
    """D53, D61: of its own roles there that have not ended, and of no other organisation's."""
    await staffed(made)
    await employed(made, "wei", "Wei Ling", BANYAN)
    await made.write(
        checker(sub_entity="Jurong", parameters=(Parameter(name="Permit Year", value="2031"),)),
        checker("nadia", sub_entity="Old wharf", end_date="2020-12-31"),
        replace(checker("wei", sub_entity="Banyan yard"), entity_id=BANYAN),
    )
    browser = await in_portal(made, "access/new?person=m-nadia")
    assert offered(browser) == {f"{PART}-used": ["Jurong"], f"{YEAR}-used": ["2031"]}
    await go(made, browser, f"access/change/{identifier(checker(sub_entity='Jurong'))}")
    assert offered(browser)[f"{PART}-used"] == ["Jurong"]


def test_at_most_twenty_values_are_offered_the_most_frequent_first() -> None:
    rows = [checker(str(each), sub_entity=f"Berth {each % 30}") for each in range(100)]
    offered = most_frequent_values(rows).sub_entities
    assert len(offered) == VALUES_IN_USE
    assert set(offered[:10]) == {f"Berth {each}" for each in range(10)}


def offered(browser: Browser) -> dict[str, list[str]]:
    """The values of each list that a field offers, by its id."""
    assert browser.response is not None
    lists = re.findall(r'<datalist id="([^"]*)">(.*?)</datalist>', browser.response.text, re.DOTALL)
    return {name: re.findall(r'<option value="([^"]*)">', options) for name, options in lists}


async def test_nobody_gives_themselves_access_and_the_page_says_so_before_the_form(made: World) -> None:
    """D54."""
    await staffed(made)
    await appoint(made, who="marcus", level="administrator")
    alice = await contexts.belonging(made.provider.registry, ACME, limit=10)
    mine = next(held.membership_id for held, user in alice if user.user_name == "alice")
    browser = await in_portal(made, f"access/new?person={mine}")
    assert "You cannot change your own access." in browser.page.text
    assert browser.page.form_with("access") is None
    await go(made, browser, "access/new?person=m-marcus&access=NOTICES&end=none&check=all")
    token = form_of(browser, "form_token")
    posted = {**token, "person": mine, "access": "NOTICES", "start": "today", "end": "none"}
    await shown_again(browser, await send(made, browser, "access/new", **posted))
    assert await roles(made, "alice") == []


async def test_the_only_administrator_gives_themselves_access(made: World) -> None:
    """D54: marked `self` in the history."""
    await staffed(made)
    alice = await contexts.belonging(made.provider.registry, ACME, limit=10)
    mine = next(held.membership_id for held, user in alice if user.user_name == "alice")
    browser = await in_portal(made, f"access/new?person={mine}&access=NOTICES&end=none&check=all")
    await confirm(browser)
    [event] = await made.audit("assignment.add")
    assert event.detail["self"] == "true"


async def test_a_sub_administrator_sees_their_services_only(made: World) -> None:
    """D53."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    await made.write(checker())
    browser = await in_portal(made, "access/new?person=m-marcus")
    assert "Harbour permits" not in browser.page.text
    await go(made, browser, "access/new?person=m-marcus&access=NOTICES&end=none&check=all")
    token = form_of(browser, "form_token")
    posted = {"person": "m-marcus", "access": "HARBOUR/Approver", "start": "today", "end": "none"}
    await shown_again(browser, await send(made, browser, "access/new", **{**token, **posted, YEAR: "2026"}))
    for page in ("change", "remove"):
        assert await go(made, browser, f"access/{page}/{identifier(checker())}") == "Page not found"
    assert len(await roles(made)) == 1


async def test_the_people_and_roles_of_another_organisation_do_not_exist_here(made: World) -> None:
    """D54, D61."""
    await staffed(made)
    await employed(made, "olga", "Olga Berg", BANYAN)
    other = replace(checker("olga"), entity_id=BANYAN)
    await made.write(other)
    browser = await in_portal(made, "access/new?find=olga")
    assert "Olga" not in browser.page.text
    assert await go(made, browser, "access/new?person=m-olga") == "Page not found"
    await go(made, browser, "access/new?person=m-marcus&access=NOTICES&end=none&check=all")
    token = {"form_token": form_of(browser, "form_token")["form_token"]}
    posted = {**token, "person": "m-olga", "access": "NOTICES", "start": "today", "end": "none"}
    assert (await send(made, browser, "access/new", **posted)).status_code == 404
    for page in ("change", "remove"):
        assert (await send(made, browser, f"access/{page}/{identifier(other)}", **token)).status_code == 404


async def test_where_approval_is_needed_confirming_makes_a_request(made: World) -> None:
    """D55."""
    await staffed(made)
    await appoint(made, who="nadia", level="owner")
    await demand(made, "roles")
    browser = await in_portal(made, "access/new?person=m-marcus&access=NOTICES&start=today&end=none&check=all")
    assert "This needs the approval of another administrator." in browser.page.text
    await confirm(browser)
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, reason="Covers for Nadia")
    assert await roles(made) == []
    [request] = await requests(made)
    assert (request.reason, request.requester) == ("Covers for Nadia", "user:id-alice")


async def test_a_role_is_changed_with_the_old_and_the_new_sentence_in_view(made: World) -> None:
    """D55."""
    await staffed(made)
    await made.write(checker(end_date="2029-06-30"))
    browser = await in_portal(made, f"access/change/{identifier(checker())}")
    await browser.fill_and_submit(role="Approver", end="date", end_date="2030-01-31")
    assert (
        "marcus (Marcus Lee) may act as Checker at Harbour permits for Acme Pte. Ltd. until 30 Jun" in browser.page.text
    )
    assert (
        "marcus (Marcus Lee) may act as Approver at Harbour permits for Acme Pte. Ltd. until 31 Jan"
        in browser.page.text
    )
    await confirm(browser)
    [row] = await roles(made)
    assert (row.role, row.end_date, row.parameters[0].value) == ("Approver", "2030-01-31", "2026")


async def test_a_change_keeps_the_further_values_of_a_parameter_that_the_form_leaves_as_it_is(made: World) -> None:
    """R-14.1: a role may have several, of which the form has the first."""
    await staffed(made)
    values = tuple(Parameter(name="Permit Year", value=value) for value in ("2026", "2027"))
    await made.write(checker(parameters=values))
    browser = await in_portal(made, f"access/change/{identifier(checker())}")
    await browser.fill_and_submit(role="Approver")
    await confirm(browser)
    assert await roles(made) == [checker(role="Approver", parameters=values)]


async def test_a_change_that_changes_nothing_or_makes_a_role_that_is_there_is_not_offered(made: World) -> None:
    """D55."""
    await staffed(made)
    await made.write(checker(), checker(role="Approver"))
    browser = await in_portal(made, f"access/change/{identifier(checker())}")
    await browser.fill_and_submit("check")
    assert "Nothing would change." in browser.page.text
    await browser.fill_and_submit(role="Approver")
    assert "This person already has that role." in browser.page.text


async def test_a_role_is_taken_away_once_after_a_question(made: World) -> None:
    """D55: a second confirmation finds nothing."""
    await staffed(made)
    await made.write(checker())
    page = f"access/remove/{identifier(checker())}"
    browser = await in_portal(made, page)
    assert browser.page.heading == "Remove this access?"
    assert "marcus (Marcus Lee) may act as Checker" in browser.page.text
    token = form_of(browser, "form_token")
    assert (await send(made, browser, page, **token)).status_code == 303
    assert await roles(made) == []
    made.clock.pass_(601)
    assert (await send(made, browser, page, **token)).status_code == 404


async def test_a_double_click_makes_one_request(made: World) -> None:
    """D15, D55."""
    await staffed(made)
    await demand(made, "all")
    page = "access/new"
    browser = await in_portal(made, f"{page}?person=m-marcus&access=NOTICES&start=today&end=none&check=all")
    form = {**form_of(browser, "form_token", "reason"), "reason": "on holiday"}
    for _ in range(2):
        assert (await send(made, browser, page, **form)).status_code == 303
    assert len(await requests(made)) == 1
