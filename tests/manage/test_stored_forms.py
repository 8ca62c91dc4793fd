"""Forms that were not accepted, and check pages: shown again by a GET, which spends and writes nothing (D73)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.directory.records import Service
from tests import contexts
from tests.manage.access_scene import staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, portal, send
from tests.sign_in.world import World, entity, form_of, shown_again

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

SEVERAL = "invite/several"
TABLE = "user_name;service\nmarcus;NOTICES"
CHECKED = {
    SEVERAL: ("people", "Tom <tom@example.org>", "Invite 1 person?", "Send 1 invitation"),
    "access/import": ("table", TABLE, "marcus (Marcus Lee) may act at Notices", "confirm"),
}
"""the field of a page, what is typed there, what its check page says, and the button that confirms it"""


def said(browser: Browser) -> str:
    return f"{browser.page.heading} {browser.page.text}"


async def stored(made: World) -> list[Any]:
    """What is recorded, and who belongs to Acme."""
    registry = made.provider.registry
    found = await contexts.belonging(registry, ACME, limit=100)
    return [len(await registry.audit.entries(limit=1000)), [held for held, _ in found]]


@pytest.mark.parametrize("page", CHECKED)
async def test_a_check_page_survives_reload_and_back_and_writes_nothing(made: World, page: str) -> None:
    field, typed, text, button = CHECKED[page]
    await staffed(made)
    browser = await in_portal(made, page)
    before = await stored(made)
    await browser.fill_and_submit(field, **{field: typed})
    checked = browser.url
    for _ in range(3):
        assert text in said(browser)
        await browser.reload()
    await go(made, browser, page)
    assert text not in said(browser)
    await browser.open(checked, site="none")
    assert text in said(browser)
    assert await stored(made) == before
    await browser.fill_and_submit(field, button=button)
    assert await stored(made) != before
    await browser.open(checked, site="none")
    assert text not in said(browser)


@pytest.mark.parametrize("page", CHECKED)
@pytest.mark.parametrize("wrong", [False, True], ids=["checked", "rejected"])
async def test_another_session_reads_no_kept_form_whose_name_it_knows(made: World, page: str, wrong: bool) -> None:
    field, typed, text, _ = CHECKED[page]
    await staffed(made)
    browser, other = await in_portal(made, page), await in_portal(made, page)
    await browser.fill_and_submit(field, **{field: "somebody unheard of" if wrong else typed})
    assert "entered=" in browser.url
    assert wrong or text in said(browser)
    assert not wrong or form_of(browser, field)[field].strip() == "somebody unheard of"
    await other.open(browser.url, site="none")
    assert text not in said(other)
    assert form_of(other, field)[field].strip() == ""


async def test_a_kept_form_is_of_one_page_and_of_ten_minutes(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit("name", name="Tom", email="nowhere")
    name = browser.url.partition("entered=")[2]
    await go(made, browser, f"{SEVERAL}?entered={name}")
    assert "nowhere" not in browser.page.text
    made.clock.pass_(599)
    await go(made, browser, f"invite?entered={name}")
    assert form_of(browser, "name")["email"] == "nowhere"
    assert "Enter an e-mail address" in browser.page.text
    made.clock.pass_(1)
    await go(made, browser, f"invite?entered={name}")
    assert form_of(browser, "name")["email"] == ""


async def test_an_error_is_there_again_after_reload_and_a_change_of_language_and_is_not_recorded_again(
    made: World,
) -> None:
    await staffed(made)
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit("name", name="Tom", email="nowhere")
    before = await stored(made)
    for _ in range(5):
        await browser.reload()
        assert "Enter an e-mail address such as name@example.com." in browser.page.text
        assert form_of(browser, "name")["name"] == "Tom"
    link = next(target for target, _ in browser.page.links if target.startswith("/language/ms"))
    await browser.open(f"{made.base}{link}", site="same-origin")
    assert form_of(browser, "name")["name"] == "Tom"
    assert "entered=" in browser.url
    assert await stored(made) == before


async def test_two_identical_forms_are_one_attempt(made: World) -> None:
    """Without JavaScript: a rejected and an accepted one."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    await browser.fill_and_submit("people", people="tom@example.org")
    fields = form_of(browser, "confirmed")
    first, second = [await send(made, browser, SEVERAL, **fields) for _ in range(2)]
    assert first.headers["Location"] == second.headers["Location"]
    assert len(await made.audit("membership.invite")) == 1
    again = {**fields, "people": "tom@example.org "}
    before = await stored(made)
    first, second = [await send(made, browser, SEVERAL, **again) for _ in range(2)]
    assert first.headers["Location"] == second.headers["Location"]
    assert "already belongs to" in (await shown_again(browser, first)).text
    assert await stored(made) == before


async def test_going_back_from_a_check_page_keeps_what_was_typed(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table=TABLE)
    await browser.fill_and_submit("form_token", "table", button="edit")
    assert "may act at Notices" not in browser.page.text
    assert form_of(browser, "table")["table"].strip() == TABLE


async def test_what_changed_before_the_confirmation_is_said_on_the_form(made: World) -> None:
    """The check page of what is no longer possible is the form with the error; a reload says the same."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    await browser.fill_and_submit("people", people="tom@example.org")
    assert browser.page.heading == "Invite 1 person?"
    other = await in_portal(made, "invite")
    await other.fill_and_submit("name", name="Tom", email="tom@example.org")
    for _ in range(2):
        await browser.reload()
        assert browser.page.heading == "Invite several people"
        assert "already belongs to" in browser.page.text


async def test_an_offer_is_checked_on_a_page_of_its_own_that_offers_nothing(made: World) -> None:
    """D56."""
    await appoint(made)
    await made.write(entity(BANYAN, "Banyan"), Service(service_id="PERMITS", name="Permits", third_parties=True))
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    await browser.fill_and_submit("start")
    for _ in range(2):
        assert browser.page.heading == "Check the offer"
        await browser.reload()
    assert not await made.audit("grant.offer")
    await browser.fill_and_submit("form_token", button="edit")
    assert browser.page.form_with("start") is not None
    assert browser.url.startswith(portal(made, "third-parties/offer?entered="))


async def test_a_form_that_was_in_time_is_shown_without_a_new_sign_in_and_is_there_after_one(made: World) -> None:
    """D54, D73: a form is taken five minutes longer than its page is opened."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    made.clock.pass_(650)
    await browser.fill_and_submit(name="Grace Ho", email="not an address")
    assert browser.page.heading == "Invite a person"
    assert form_of(browser, "email")["email"] == "not an address"
    made.clock.pass_(300)
    await browser.reload()
    assert browser.page.heading.startswith("Confirm it is you")
    await browser.fill_and_submit(password=made.people["alice"].password)
    await made.code(browser, made.people["alice"])
    assert browser.page.heading == "Invite a person"
    assert form_of(browser, "email")["email"] == "not an address"
