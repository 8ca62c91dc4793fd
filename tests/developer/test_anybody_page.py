"""The page of a demo that makes anybody acting for anything, and its address (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import Service
from corpid_dev.web.mode import KEY_COOKIE
from tests.developer.scene import KEY, demo_world
from tests.sign_in.world import BASE, FORM, World, form_of, query_of, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser, Form

PAGE = f"{BASE}/developer/anybody"
FIRST = "200000001A"


async def at_sign_in(made: World) -> Browser:
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp)
    return browser


def values(form: Form) -> dict[str, str]:
    return {control.name: control.value.strip() for control in form.controls}


def linked(browser: Browser, text: str) -> str:
    return next(target for target, said in browser.page.links if text in said)


async def follow(browser: Browser, text: str) -> None:
    await browser.open(f"{BASE}{linked(browser, text)}")


async def test_a_person_is_made_from_fields_and_signs_in_at_once() -> None:
    """D66: from the sign-in page and back to it."""
    async with demo_world() as made:
        browser = await at_sign_in(made)
        await follow(browser, "Anybody, acting for anything")
        await browser.fill_and_submit(
            name="Ann Anybody", entity="209999001A", entity_name="Anything Pte. Ltd.", roles="PERMITS; Maker"
        )
        assert "Ann Anybody can now sign in at once" in browser.page.text
        await follow(browser, "Back to the sign-in")
        form = browser.page.form_with("person")
        assert form is not None
        user_name = next(button.value for button in form.buttons if button.value.startswith("anybody-"))
        await browser.fill_and_submit("person", button=user_name)
        assert "code" in query_of(browser.left)


async def test_the_address_of_a_person_opens_them_again() -> None:
    """D66: with every field as it was typed, also in another demo; opening it writes nothing."""
    links: list[str] = []
    async with demo_world() as made:
        await made.write(Service(service_id="OTHERS", name="Others", roles=("Preparer",), third_parties=True))
        browser = await made.browser()
        await browser.open(PAGE)
        typed = {
            "name": "Ann",
            "entity": FIRST,
            "roles": "PERMITS; Maker",
            "third_party": "200000002A; OTHERS; Preparer",
        }
        await browser.fill_and_submit(**typed)
        link = linked(browser, "Address of this person")
        links.append(link)
        another = await made.browser()
        await another.open(f"{BASE}{link}")
        form = another.page.form_with("entity")
        assert form is not None
        assert {name: values(form)[name] for name in typed} == typed

    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(f"{BASE}{links[0]}")
        assert "can now sign in" not in browser.page.text
        assert await made.audit("directory.apply") == []


async def test_json_says_what_fields_cannot() -> None:
    """D66: dates, types of entities, members of the person; it comes back as JSON."""
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(PAGE)
        content = (
            f'{{"entity": "{FIRST}", "roles": [{{"service": "PERMITS", "role": "Maker", "end_date": "2099-12-31"}}]}}'
        )
        await browser.fill_and_submit("entity", json=content)
        assert "can now sign in at once" in browser.page.text
        form = browser.page.form_with("json")
        assert form is not None
        assert "2099-12-31" in values(form)["json"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "Enter the identifier of the organisation."),
        ({"entity": FIRST, "roles": "NOWHERE; Maker"}, "NOWHERE"),
        ({"entity": "200000001A", "entity_name": "Another"}, "exists"),
        ({"json": "[]"}, "This is not a JSON object."),
        ({"json": "{}"}, "missing required field"),
    ],
)
async def test_what_cannot_be_used_is_said_at_its_field_and_kept(fields: dict[str, str], told: str) -> None:
    """docs/accessibility.md, WCAG 3.3.1."""
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(PAGE)
        await browser.fill_and_submit("entity", **fields)
        assert browser.response is not None
        assert browser.response.status_code == 200
        assert told in browser.page.text
        form = browser.page.form_with("entity")
        assert form is not None
        assert all(values(form)[name] == value for name, value in fields.items())
        assert await made.audit("directory.apply") == []


async def test_a_form_of_another_site_or_browser_makes_nobody() -> None:
    """D35."""
    async with demo_world() as made:
        browser, other = await made.browser(), await made.browser()
        await browser.open(PAGE)
        await other.open(PAGE)
        own, foreign = form_of(browser, "entity"), form_of(other, "entity")
        for fields, site in ((own, "cross-site"), (own, "same-site"), (foreign, "same-origin"), ({}, "same-origin")):
            answer = await browser.http.post(
                PAGE, data={**fields, "entity": FIRST}, headers={"Sec-Fetch-Site": site, "Content-Type": FORM}
            )
            assert answer.status_code == 400
        assert await made.audit("directory.apply") == []


async def test_the_link_with_the_key_opens_the_pages_on_another_machine() -> None:
    """D66: the key moves from the address into a cookie."""
    async with demo_world() as made:
        http = await made.http("192.0.2.7")
        assert (await http.get("/developer/anybody")).status_code == 404
        answer = await http.get(f"/developer?key={KEY}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/developer")
        assert f"{KEY_COOKIE}={KEY}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax" in answer.headers["set-cookie"]
        assert (await http.get("/developer/anybody")).status_code == 200
        assert 'href="/developer/anybody"' in (await http.get("/developer")).text
