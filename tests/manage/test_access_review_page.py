"""The yearly access review in the portal (D54, D57, docs/decisions/0022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.rules.directory.access_review import AccessReview
from corpid.rules.directory.records import Membership
from tests.manage.access_scene import checker, confirm, demand, employed, follow, requests, roles, staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.sign_in.world import World, entity, form_of, shown_again

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

REVIEW = "access-review"
WITHOUT = f"{REVIEW}?access=none"
"""the list of those without access"""
CHANGED = "access has changed since you looked. Check it again"


async def state(made: World) -> tuple[Any, tuple[int, int]]:
    reviews = made.provider.registry.access_reviews
    return await reviews.find(ACME), await reviews.counts(ACME)


async def due(made: World) -> None:
    now = int(made.clock())
    await made.provider.registry.access_reviews.add([AccessReview(entity_id=ACME, due_at=now - 1, remind_at=now)])


async def colleague(made: World, level: Any = "administrator") -> None:
    """Bob, who administers Acme, too."""
    await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lim")
    await appoint(made, level=level, who="bob")


def seen(browser: Browser, who: str) -> dict[str, str]:
    """The checkbox of a person, chosen."""
    [name] = [each for each in selectable(browser) if each.startswith(f"select-m-{who}.")]
    return {name: "yes"}


def selectable(browser: Browser) -> list[str]:
    """The names of the checkboxes of people."""
    return [each.name for form in browser.page.forms for each in form.controls if each.name.startswith("select-")]


async def keep(made: World, browser: Browser, ticks: dict[str, str]) -> Any:
    return await send(made, browser, REVIEW, **form_of(browser, "form_token"), **ticks, decision="keep")


async def test_people_who_were_not_looked_at_are_listed_with_what_they_may_do(made: World) -> None:
    await staffed(made)
    await made.write(checker())
    await due(made)
    browser = await in_portal(made)
    await follow(browser, "The yearly access review is due.")
    assert browser.page.heading == "Access review"
    assert "A review has been due since" in browser.page.text
    assert "Harbour permits: Checker, with no end date" in browser.page.text
    assert "Permit Year: 2026" in browser.page.text
    assert "alice (Alice Tan) Owner" in browser.page.text
    assert "nadia" not in browser.page.text
    await follow(browser, "Without access")
    assert "Select nadia (Nadia Rahman) nadia (Nadia Rahman)" in browser.page.text
    assert "nadia (Nadia Rahman) None" in browser.page.text
    assert "marcus" not in browser.page.text


async def test_a_row_says_who_gave_the_role_and_the_list_is_in_the_order_of_the_people(made: World) -> None:
    """docs/decisions/0022, D83: the name and the organisation stand there once."""
    await staffed(made)
    await employed(made, "abel", "Zoe Wong")
    await due(made)
    browser = await in_portal(made, "access/new?person=m-marcus")
    await browser.fill_and_submit(access="NOTICES", end="none")
    await browser.fill_and_submit("form_token")
    await go(made, browser, "access")
    await follow(browser, "Access review")
    assert "Notices, with no end date, given by alice (Alice Tan)" in browser.page.text
    assert browser.page.text.count("Acme Pte. Ltd.") == 1
    await follow(browser, "Without access")
    assert [each.partition(".")[0] for each in selectable(browser)] == ["select-m-abel", "select-m-nadia"]


async def test_a_review_that_is_not_due_begins_only_on_demand(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made)
    assert "access review" not in browser.page.text
    await go(made, browser, "settings")
    await follow(browser, "Access review")
    assert not selectable(browser)
    await follow(browser, "Begin the review")
    assert "0 of 3 people reviewed" in browser.page.text
    assert "The next review is due" not in browser.page.text
    await follow(browser, "Without access")
    await keep(made, browser, seen(browser, "marcus"))
    await go(made, browser)
    assert "The access review is in progress: 1 of 3 people reviewed." in browser.page.text


async def test_people_are_kept_one_by_one_or_several_at_once_until_the_review_is_signed_off(made: World) -> None:
    await staffed(made)
    await due(made)
    browser = await in_portal(made, REVIEW)
    [own] = [each for each in selectable(browser) if not each.startswith("select-m-")]
    await browser.fill_and_submit(**{own: "yes"})
    assert "The access stays as shown." in browser.page.text
    assert "1 of 3 people reviewed" in browser.page.text
    assert "Sign off" not in browser.page.text
    await follow(browser, "Without access")
    await browser.fill_and_submit(**seen(browser, "marcus"), **seen(browser, "nadia"))
    assert "Everybody has been reviewed." in browser.page.text
    await follow(browser, "Sign off")
    await confirm(browser)
    assert "The review has been signed off." in browser.page.text
    assert "alice (Alice Tan) signed off the last review on" in browser.page.text
    review, _ = await state(made)
    assert (review.signed_off_by, review.kept, review.ended) == ("user:id-alice", 3, 0)


async def test_a_change_between_what_was_shown_and_the_decision_keeps_nobody_and_is_marked(made: World) -> None:
    await staffed(made)
    await made.write(checker(), checker("nadia"))
    await due(made)
    browser = await in_portal(made, REVIEW)
    await made.write(checker(role="Approver"))
    sent = await keep(made, browser, {**seen(browser, "marcus"), **seen(browser, "nadia")})
    sent = await shown_again(browser, sent)
    assert CHANGED in sent.text
    assert sent.text.count("Changed since you looked") == 1
    assert "Approver" in sent.text
    review, (_, kept) = await state(made)
    assert (review.began_at, kept) == (0, 0)


async def test_where_nobody_is_left_to_select_there_is_no_button(made: World) -> None:
    """docs/decisions/0022: only the reader is left, and somebody else has to look at their access."""
    await staffed(made)
    await colleague(made)
    await due(made)
    browser = await in_portal(made, REVIEW)
    await keep(made, browser, dict.fromkeys(selectable(browser), "yes"))
    await go(made, browser, WITHOUT)
    await keep(made, browser, dict.fromkeys(selectable(browser), "yes"))
    await go(made, browser, REVIEW)
    assert "This is you." in browser.page.text
    assert selectable(browser) == []
    assert browser.page.form_with("decision") is None


async def test_nobody_selected_is_said(made: World) -> None:
    await staffed(made)
    await due(made)
    browser = await in_portal(made, REVIEW)
    sent = await keep(made, browser, {})
    sent = await shown_again(browser, sent)
    assert "Select people first." in sent.text


async def test_a_membership_is_ended_after_a_page_that_says_what_it_takes_away_and_is_counted(made: World) -> None:
    await staffed(made)
    await made.write(checker())
    await due(made)
    browser = await in_portal(made, f"{REVIEW}/m-marcus/end")
    assert "End the membership of marcus (Marcus Lee)?" in browser.page.heading
    assert "marcus (Marcus Lee) may act as Checker at Harbour permits" in browser.page.text
    await confirm(browser)
    assert "The membership has been ended." in browser.page.text
    registry = made.provider.registry
    assert not await registry.directory.read(Membership, [("id-marcus", ACME)])
    assert (await registry.access_reviews.all_decisions(ACME))["id-marcus"].decision == "end"


async def test_an_end_that_needs_approval_becomes_a_request_with_a_reason(made: World) -> None:
    """D55."""
    await staffed(made)
    await demand(made, "all")
    await due(made)
    browser = await in_portal(made, f"{REVIEW}/m-marcus/end")
    await confirm(browser, reason=" ")
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, reason="Left in March")
    assert "Your request has been sent." in browser.page.text
    assert len(await requests(made)) == 1
    await go(made, browser, WITHOUT)
    assert "Removal requested" in browser.page.text


async def test_a_review_is_not_signed_off_while_somebody_is_left(made: World) -> None:
    await staffed(made)
    await due(made)
    browser = await in_portal(made, f"{REVIEW}/sign-off")
    assert "No review is in progress." in browser.page.text
    await go(made, browser, WITHOUT)
    token = form_of(browser, "form_token")
    await keep(made, browser, seen(browser, "marcus"))
    await go(made, browser, f"{REVIEW}/sign-off")
    assert "Review everybody who is listed again." in browser.page.text
    sent = await send(made, browser, f"{REVIEW}/sign-off", **token)
    sent = await shown_again(browser, sent)
    review, _ = await state(made)
    assert review.began_at
    assert not review.signed_off_at


async def test_two_administrators_review_at_the_same_time_and_sign_off_once(made: World) -> None:
    """D54: each keeps the other, nobody themselves."""
    await staffed(made)
    await colleague(made)
    await due(made)
    browser, other = await in_portal(made, REVIEW), await in_portal(made, REVIEW, who="bob")
    assert "This is you." in browser.page.text
    for each in (browser, other):
        assert (await keep(made, each, dict.fromkeys(selectable(each), "yes"))).status_code == 303
    await go(made, browser, WITHOUT)
    await keep(made, browser, dict.fromkeys(selectable(browser), "yes"))
    await go(made, browser, f"{REVIEW}/sign-off")
    await go(made, other, f"{REVIEW}/sign-off")
    assert "No review" not in other.page.text
    await confirm(browser)
    await confirm(other)
    assert "No review is in progress." in other.page.text
    assert len(await made.audit("access_review.sign_off")) == 1


async def test_nobody_keeps_their_own_access_by_a_form_of_their_own_making(made: World) -> None:
    """D54."""
    await staffed(made)
    await colleague(made)
    await due(made)
    browser = await in_portal(made, REVIEW, who="bob")
    membership = (await made.provider.registry.directory.read(Membership, [("id-bob", ACME)]))["id-bob", ACME]
    sent = await keep(made, browser, {f"select-{membership.membership_id}.x.y": "yes"})
    sent = await shown_again(browser, sent)
    assert "Another owner or administrator has to review your access." in sent.text


async def test_people_of_another_organisation_are_neither_shown_nor_kept_nor_ended(made: World) -> None:
    """D61."""
    await staffed(made)
    await made.write(entity(BANYAN, "Banyan"))
    await employed(made, "olga", "Olga Foreign", BANYAN)
    await due(made)
    browser = await in_portal(made, REVIEW)
    assert "Olga Foreign" not in browser.page.text
    token = form_of(browser, "form_token")
    await shown_again(browser, await keep(made, browser, {"select-m-olga.x.y": "yes"}))
    assert (await send(made, browser, f"{REVIEW}/m-olga/end", **token)).status_code == 404
    assert await made.provider.registry.directory.read(Membership, [("id-olga", BANYAN)])


async def test_a_sub_administrator_neither_sees_nor_changes_the_review(made: World) -> None:
    """D53."""
    await staffed(made)
    await colleague(made)
    await due(made)
    browser = await in_portal(made, WITHOUT, who="bob")
    fields = {**form_of(browser, "form_token"), **seen(browser, "marcus"), "decision": "keep"}
    await appoint(made, level="sub_administrator", who="bob")
    for page in (REVIEW, f"{REVIEW}/m-marcus/end", f"{REVIEW}/sign-off"):
        answer = await send(made, browser, page, **fields)
        assert answer.status_code == 403 or "entered=" in answer.headers["Location"]
        assert await go(made, browser, page) == "You cannot open this page"
    await go(made, browser)
    assert "access review" not in browser.page.text
    review, (people, kept) = await state(made)
    assert (review.began_at, people, kept) == (0, 4, 0)


async def crowd(made: World, count: int) -> None:
    await staffed(made)
    for number in range(count):
        await employed(made, f"p{number:02}", f"Person {number:02}")
    await due(made)


async def test_the_list_goes_on_page_by_page_and_says_where_one_is(made: World) -> None:
    """D83: by user name, as the list of people has it."""
    await crowd(made, 50)
    browser = await in_portal(made, WITHOUT)
    assert len(selectable(browser)) == 40
    assert "1–40 of 52" in browser.page.text  # noqa: RUF001
    assert browser.page.text.index("Person 03") < browser.page.text.index("Person 21")
    await follow(browser, "Next page")
    assert len(selectable(browser)) == 12
    assert "41–52 of 52" in browser.page.text  # noqa: RUF001
    await browser.fill_and_submit("decision")
    assert "Select people first." in browser.page.text
    assert len(selectable(browser)) == 12
    await follow(browser, "Previous page")
    assert "1–40 of 52" in browser.page.text  # noqa: RUF001


async def test_each_decision_leads_back_to_the_place_in_the_list_where_it_was_made(made: World) -> None:
    """docs/decisions/0022: kept, removed, or requested; a place past the end is the last page."""
    await crowd(made, 50)
    await made.write(*(checker(f"p{number:02}") for number in range(50)))
    browser = await in_portal(made, f"{REVIEW}?q=Person")
    await follow(browser, "Next page")
    await browser.fill_and_submit(**seen(browser, "p41"), button="Keep access")
    assert "41–49 of 49" in browser.page.text  # noqa: RUF001
    await follow(browser, "Remove p42 (Person 42), Checker, Harbour permits")
    await follow(browser, "Cancel")
    assert "41–49 of 49" in browser.page.text  # noqa: RUF001
    await browser.fill_and_submit(**seen(browser, "p42"), button="Remove roles")
    await browser.fill_and_submit("confirmed")
    assert "lost access" in browser.page.text
    assert "41–48 of 48" in browser.page.text  # noqa: RUF001
    assert browser.url.startswith(f"{made.base}/manage/{REVIEW}?")
    await go(made, browser, f"{REVIEW}?q=Person&after=400")
    assert "41–48 of 48" in browser.page.text  # noqa: RUF001


async def test_people_to_review_are_found_as_in_the_list_of_people(made: World) -> None:
    """D83: words in any order, a state, a service."""
    await crowd(made, 3)
    await made.write(checker("p01"), checker("marcus"))
    browser = await in_portal(made, f"{REVIEW}?q=lee+mar")
    assert [each.partition(".")[0] for each in selectable(browser)] == ["select-m-marcus"]
    assert "With access 1" in browser.page.text
    await go(made, browser, f"{REVIEW}?service=HARBOUR")
    assert len(selectable(browser)) == 2
    await go(made, browser, f"{REVIEW}?service=NOTICES")
    assert "Nobody is left to review here." in browser.page.text
    await go(made, browser, f"{WITHOUT}&state=suspended")
    assert selectable(browser) == []


async def test_a_removal_that_waits_is_marked_and_asked_for_twice_only_knowingly(made: World) -> None:
    """D55: in the review, in the list of access, and where one asks."""
    await staffed(made)
    await colleague(made)
    await made.write(checker())
    await demand(made, "roles")
    await due(made)
    browser = await in_portal(made, REVIEW)
    await follow(browser, "Remove marcus (Marcus Lee), Checker, Harbour permits")
    address = browser.url
    await confirm(browser, reason="Left in March")
    assert browser.page.heading == "Access review"
    assert "Your request has been sent." in browser.page.text
    assert "Removal requested" in browser.page.text
    assert not any("Remove" in label for _, label in browser.page.links)
    await go(made, browser, "access")
    assert "Removal requested" in browser.page.text
    await browser.open(address, site="same-origin")
    assert "This removal is already requested." in browser.page.text
    await go(made, browser, REVIEW)
    await browser.fill_and_submit(**seen(browser, "marcus"), button="Remove roles")
    assert "The removal of 1 of these roles is already requested." in browser.page.text


async def test_a_suspension_after_the_decision_brings_the_person_back(made: World) -> None:
    await staffed(made)
    await due(made)
    browser = await in_portal(made, WITHOUT)
    await keep(made, browser, seen(browser, "marcus"))
    directory = made.provider.registry.directory
    key = ("id-marcus", ACME)
    await made.write(replace((await directory.read(Membership, [key]))[key], enabled=False))
    await go(made, browser, WITHOUT)
    assert "Marcus Lee" in browser.page.text
    assert "0 of 3 people reviewed" in browser.page.text


async def test_the_link_of_an_e_mail_leads_to_the_review_of_the_organisation_that_is_chosen_then(made: World) -> None:
    """D54: the link itself chooses none."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    await due(made)
    browser = await in_portal(made, f"{REVIEW}?of={ACME}")
    assert browser.page.heading == "Choose who you act for"
    await browser.fill_and_submit(entity=ACME)
    assert browser.page.heading == "Access review"
    assert "Acme Pte. Ltd." in browser.page.text


async def test_a_link_to_another_organisations_review_shows_none_and_chooses_nothing(made: World) -> None:
    """D54."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    await browser.fill_and_submit(entity=BANYAN)
    assert await go(made, browser, f"{REVIEW}?of={ACME}") == "This page belongs to another organisation"
    assert "You are acting for Banyan Trading." in browser.page.text
    assert await go(made, browser, REVIEW) == "Access review"


_LEADS_TO: Final = {"ending": "access?ends=30"}
"""pages of e-mails that lead on"""


@pytest.mark.parametrize("page", ["ending", "administrators", "tokens", "requests"])
async def test_a_link_of_an_e_mail_leads_to_its_page_for_its_organisation_alone(made: World, page: str) -> None:
    """D54, docs/decisions/0022: across the choice, which the link does not make."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made, f"{page}?of={ACME}")
    assert browser.page.heading == "Choose who you act for"
    await browser.fill_and_submit(entity=ACME)
    assert browser.url == f"{made.base}/manage/{_LEADS_TO.get(page, f'{page}?of={ACME}')}"
    assert browser.page.heading != "Page not found"
    assert await go(made, browser, f"{page}?of={BANYAN}") == "This page belongs to another organisation"
    assert browser.response is not None
    assert browser.response.status_code == 403


@pytest.mark.parametrize("page", ["//evil.example", "..%2Fconsole", "https:%2F%2Fevil.example", "people%0d%0aX:1"])
async def test_the_page_after_the_choice_is_one_of_the_portal(made: World, page: str) -> None:
    """D54: no open redirect."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made, f"organisation?page={page}")
    await browser.fill_and_submit(entity=ACME)
    assert browser.response is not None
    assert str(browser.response.url).startswith(f"{made.base}/manage")


async def test_everybody_of_a_page_is_kept_at_once_as_the_page_showed_them(made: World) -> None:
    """D54: somebody whose access changed meanwhile is not."""
    await staffed(made)
    await made.write(checker(), checker("nadia"))
    await due(made)
    browser = await in_portal(made, REVIEW)
    await made.write(checker(role="Approver"))
    await browser.fill_and_submit("decision", all="yes")
    assert CHANGED in browser.page.text
    await browser.fill_and_submit("decision", all="yes")
    assert "Everybody has been reviewed." in browser.page.text


async def test_each_role_has_its_row_and_is_removed_from_there(made: World) -> None:
    """D55: the review goes on where it was."""
    await staffed(made)
    await made.write(checker(), checker(role="Approver"))
    await due(made)
    browser = await in_portal(made, REVIEW)
    assert browser.response is not None
    assert browser.response.text.count('data-label="Decision"') == 3
    await follow(browser, "Remove marcus (Marcus Lee), Approver, Harbour permits")
    await confirm(browser)
    assert browser.page.heading == "Access review"
    saved, _, listed = browser.page.text.partition("Undo")
    assert "1 person lost access (Approver at Harbour permits): marcus (Marcus Lee)" in saved
    assert "Harbour permits: Approver" not in listed
    assert "Harbour permits: Checker" in listed


async def test_all_access_of_several_people_is_removed_by_one_selection_and_one_page(made: World) -> None:
    """D54, D81: the page names each role, and the review goes on."""
    await staffed(made)
    await made.write(checker(), checker(role="Approver"), checker("nadia"))
    await due(made)
    browser = await in_portal(made, REVIEW)
    ticked = seen(browser, "marcus") | seen(browser, "nadia")
    await browser.fill_and_submit(**ticked, button="Remove roles")
    assert browser.page.heading == "Remove access?"
    assert "2 people lose 3 roles." in browser.page.text
    assert len(await roles(made)) == 2
    await browser.fill_and_submit("confirmed")
    assert browser.page.heading == "Access review"
    assert "lost access" in browser.page.text
    assert [*await roles(made), *await roles(made, "nadia")] == []


async def test_access_of_somebody_who_was_renamed_since_the_list_was_shown_is_not_removed(made: World) -> None:
    """D68."""
    await staffed(made)
    await made.write(checker())
    await due(made)
    browser = await in_portal(made, REVIEW)
    found = (await made.provider.registry.directory.read(Membership, [("id-marcus", ACME)]))["id-marcus", ACME]
    await made.write(replace(found, name="Marcus Tan"))
    await browser.fill_and_submit(**seen(browser, "marcus"), button="Remove roles")
    assert "Names have changed since you looked." in browser.page.text
    assert len(await roles(made)) == 1
