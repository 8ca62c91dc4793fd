"""Forms of developer mode survive Back and Reload (D73)."""

from __future__ import annotations

from tests.developer.scene import demo_world
from tests.sign_in.world import BASE, form_of

ANYBODY = f"{BASE}/developer/anybody"
NEW = f"{BASE}/developer/clients/new"
PRIVATE = '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA", "d": "c2VjcmV0LXNlY3JldA"}]}'


async def test_what_was_typed_stays_on_reload_for_its_browser_and_for_ten_minutes() -> None:
    """D73."""
    async with demo_world() as made:
        browser, other = await made.browser(), await made.browser()
        await browser.open(ANYBODY)
        await browser.fill_and_submit(name="Ann Anybody", entity="")
        for _ in range(3):
            assert browser.response is not None
            assert (browser.response.request.method, browser.response.status_code) == ("GET", 200)
            assert "Enter the identifier of the organisation." in browser.page.text
            assert form_of(browser, "entity")["name"] == "Ann Anybody"
            await browser.reload()
        await other.open(ANYBODY)
        await other.open(browser.url)
        assert form_of(other, "entity")["name"] == ""
        kept = browser.url
        await browser.open(ANYBODY)
        assert form_of(browser, "entity")["name"] == ""
        made.clock.pass_(600)
        await browser.open(kept)
        assert form_of(browser, "entity")["name"] == ""


async def test_a_check_is_a_page_to_reload_and_no_private_key_is_kept() -> None:
    """D73, D27."""
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(NEW)
        for button in ("check", "save"):
            await browser.fill_and_submit("client_id", jwks=PRIVATE, name="Shop", button=button)
            for _ in range(2):
                assert browser.response is not None
                assert browser.response.request.method == "GET"
                assert "c2VjcmV0" not in browser.response.text
                assert form_of(browser, "client_id")["name"] == "Shop"
                assert "Enter the identifier of the client." in browser.page.text
                await browser.reload()
