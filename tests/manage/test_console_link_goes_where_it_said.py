"""The console's "Reset sign-in" and "Send a link" go to another address than the page named.

Kind: what identifies a person (here the address for recovery) changes between show and submit; D50, D61, D68, D69.
Severity: high for "Reset sign-in" (a thief gets an account that the operator did not mean to give away), medium for
"Send a link". The page says "invited by e-mail to ADDRESS", "It goes to ADDRESS, and only to this address", and "Do
this only if you are sure that this address is still the person's own". The form has no digest: if the account's address
changes before the button is pressed, a link that asks for no factor goes to an address that the operator never saw.
A thief of a session and a second factor has begun a change of address; its 72 hours end at a moment that the thief
knows and can choose, so they ask the operator for help by telephone just before it (the waiting change is shown on no
page of the console, and pressing before it ends would have stopped it). Window: at most the 15 minutes of a recent
sign-in. (The known low was "person actions carry no digest of names shown": this is the address and the account.)
Proposed mend: `names=digest_names((shown_account(found.user), found.user.email))` in
`web/operations/people.ask_action`, compared with the user that the link is written for; the same with the address in
`entities.ask_invitation`. Perhaps also: the person's page says that another address waits.
"""

from __future__ import annotations

import pytest

from tests.account.test_email import NEW, OLD, later, mailed_world, proven
from tests.console.scene import REASON, WITHOUT_PASSKEY, go, in_console


@pytest.mark.parametrize(("action", "choice"), [("renew", {}), ("link", {"choice": "second_factor"})])
async def test_a_link_of_the_console_goes_to_the_address_that_was_shown(action: str, choice: dict[str, str]) -> None:
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
