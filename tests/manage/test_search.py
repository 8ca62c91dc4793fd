"""The portal's search: people, services, third parties and requests of the organisation (D53, D83)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Change, Service
from corpid.rules.directory.words import has_words, words_of_search
from tests.manage.access_scene import employed, staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import GRANT, three
from tests.sign_in.world import World, entity


@pytest.mark.parametrize(
    ("asked", "found"), [("lee mar", True), ("MARC", True), ("lee marcus x", False), ("arcus", False), ("Lée", True)]
)
def test_words_are_found_in_any_order_by_their_beginnings(asked: str, found: bool) -> None:
    """D83."""
    assert has_words("Marcus Lee", words_of_search(asked)) is found


async def test_what_the_organisation_has_is_found_from_every_page_in_any_order_of_words(made: World) -> None:
    """D83: each with a link to it, and nothing of another organisation (D61)."""
    await staffed(made)
    await employed(made, "olga", "Olga Lee", BANYAN)
    browser = await in_portal(made, "history")
    await browser.fill_and_submit(search="lee marc")
    assert browser.page.heading == "Search: lee marc"
    links = {text: target for target, text in browser.page.links}
    assert links["Marcus Lee"].endswith("/manage/person/m-marcus")
    assert "Olga" not in browser.page.text
    await browser.fill_and_submit(search="permits harb")
    links = {text.split(" (")[0]: target for target, text in browser.page.links}
    assert links["Harbour permits"].endswith("/manage/access?service=HARBOUR")
    assert any(target.endswith("/manage/access?service=HARBOUR&role=Checker") for target, _ in browser.page.links)
    await browser.fill_and_submit(search="zebra")
    assert "Nothing found." in browser.page.text


async def test_a_request_that_waits_is_found_by_whom_it_concerns(made: World) -> None:
    """D55: by its requester, too."""
    await acme(made)
    found = await requested(made, Change(None, ROLE), who="alice")
    browser = await in_portal(made, "search?search=permits+cor")
    assert any(target.endswith(f"/manage/requests/{found.request_id}") for target, _ in browser.page.links)


async def test_a_hit_says_why_it_is_there_and_each_kind_how_many(made: World) -> None:
    """D83: its requester is shown as You. Nothing is found by its approvers, or one's own organisation."""
    await acme(made)
    await requested(made, Change(None, ROLE), who="alice")
    browser = await in_portal(made, "search?search=alice")
    assert "Requests: 1" in browser.page.text
    assert "Requested by alice" in browser.page.text
    for text in ("bob", "acme"):
        await go(made, browser, f"search?search={text}")
        assert "Requests:" not in browser.page.text
    await employed(made, "pat", "Pat Lee", ACME, email="pelican@acme.example")
    await go(made, browser, "search?search=pelican")
    assert "Pat Lee pelican@acme.example pat" in browser.page.text


async def test_third_parties_are_found_by_those_who_may_see_them(made: World) -> None:
    """D53: no sub-administrator sees third parties."""
    await three(made)
    await made.write(GRANT)
    browser = await in_portal(made)
    await browser.fill_and_submit(search="trad ban")
    assert "Banyan Trading" in browser.page.text
    assert any("/manage/third-parties/grant/" in target for target, _ in browser.page.links)
    await appoint(made, level="sub_administrator", services=("PERMITS",))
    assert await go(made, browser, "search?search=banyan") == "Search: banyan"
    assert "Banyan Trading" not in browser.page.text


async def test_a_request_is_found_by_its_own_service_only(made: World) -> None:
    """D55, D83."""
    await acme(made)
    await made.person("dan", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Dan Ong")
    await made.write(Service(service_id="HARBOUR", name="Harbour dues", roles=("Payer",)))
    await requested(made)
    made.clock.pass_(5)
    await requested(made, Change(None, replace(ROLE, user_id="id-dan", service_id="HARBOUR", role="Payer")))
    text = (await in_portal(made, "search?search=Harbour")).page.text
    assert "Give access to dan (Dan Ong): Payer at Harbour dues" in text
    assert "Requests: 1" in text
    assert "Give access to cora" not in text
