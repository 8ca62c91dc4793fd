"""A link of the console goes to the address that its page named (D50, D61, D68, D69)."""

from __future__ import annotations

import pytest

from tests.account.test_email import NEW, OLD, later, mailed_world, proven
from tests.console.scene import REASON, WITHOUT_PASSKEY, go, in_console


@pytest.mark.parametrize(("action", "choice"), [("renew", {}), ("link", {"choice": "second_factor"})])
async def test_a_link_of_the_console_goes_to_the_address_that_was_shown(action: str, choice: dict[str, str]) -> None:
    """A change of address takes effect between show and submit: nothing is sent."""
    async with mailed_world(**WITHOUT_PASSKEY) as (made, postbox):
        await proven(made, postbox, NEW)  # by a thief; the owner is told, and it waits
        await later(made, 72 * 3600 - 300)
        browser = await in_console(made, "operator")
        await go(made, browser, f"people/id-alice/{action}")
        assert OLD in browser.page.text  # the address that the operator is sure of
        await later(made, 300)
        sent = len(postbox.emails)
        await browser.fill_and_submit(reason=REASON, **choice)
        assert [each.to for each in postbox.emails[sent:] if "/enrol" in each.text and each.to == NEW] == []
