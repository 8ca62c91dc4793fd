"""Addresses of the console made by strangers: they lead nowhere else, and break nothing (D30, D54)."""

from __future__ import annotations

import pytest

from tests.console.scene import WITHOUT_PASSKEY, status
from tests.sign_in.world import new_world


@pytest.mark.parametrize("name", ["a%0d%0aX-Evil:%201", "%00", "%ff", "a%3Fb", "100%25", "a%23b"])
async def test_a_page_whose_name_no_identifier_can_have_is_not_found_before_a_sign_in_either(name: str) -> None:
    """D54: a sign-in leads back to the page, whose address must not become another one, nor a header of its own."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await made.browser()
        await browser.open(f"{made.base}/console/client/{name}", site="none")
        assert (status(browser), browser.page.heading) == (404, "Page not found")
