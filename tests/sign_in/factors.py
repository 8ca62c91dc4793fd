"""Factors that a test gives Alice without the pages for it, and how she shows them."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication import records
from corpid.rules.authentication.records import FactorChange
from tests.authenticator import Authenticator
from tests.sign_in.world import World, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

ALICE = "id-alice"
REFUSED = "This passkey was not accepted."
CODES = tuple(records.recovery_code(bytes([number]) * records.RECOVERY_CODE_BYTES) for number in range(3))


async def change(made: World, user_id: str = ALICE, **changes: Any) -> None:
    """Change somebody's factors, as the account pages do."""
    stored = await made.provider.registry.factors.credentials(user_id)
    change = FactorChange(before=stored, after=changes.pop("after", stored), **changes)
    event = AuditEvent(actor="operator", action="test.change")
    assert await made.provider.registry.factors.change(change, event)


async def passkey(made: World, user_id: str = ALICE, **options: Any) -> Authenticator:
    """A passkey that is registered here."""
    key = Authenticator(user_handle=user_id.encode(), **options)
    await change(made, user_id, add_passkey=key.record(user_id))
    return key


async def recovery(made: World, user_id: str = ALICE) -> None:
    """Give a person the recovery codes `CODES`."""
    await change(made, user_id, recovery_codes=tuple(records.recovery_code_hash(user_id, code) for code in CODES))


def options_of(browser: Browser) -> str:
    """What the page that is shown gives to the script."""
    assert browser.response is not None
    found = re.search(r'data-options="([^"]*)"', browser.response.text)
    assert found is not None, "the page offers no passkey"
    return html.unescape(found[1])


def answer_of(made: World, browser: Browser, key: Authenticator, **changes: Any) -> str:
    """What the script of the page that is shown would send."""
    parts = urlsplit(made.base)
    return key.use(options_of(browser), **{"origin": f"{parts.scheme}://{parts.netloc}", **changes})


async def use(made: World, browser: Browser, key: Authenticator, **changes: Any) -> str:
    """Press the button and use this passkey; the heading that is shown then."""
    await browser.fill_and_submit(passkey=answer_of(made, browser, key, **changes))
    return browser.page.heading


async def at_sign_in(made: World, rp: RelyingParty | None = None) -> Browser:
    """A new browser, at the sign-in page."""
    browser = await made.browser()
    await walk_to(made, browser, rp or await made.relying_party())
    return browser


async def choose(browser: Browser, way: str) -> str:
    """Press the button of a way; the heading that is shown then."""
    await browser.fill_and_submit("decision", button=way)
    return browser.page.heading


async def type_code(browser: Browser, code: str) -> str:
    """Type a code where one is asked for; the heading that is shown then."""
    await browser.fill_and_submit(code=code)
    return browser.page.heading


def offered(browser: Browser) -> list[str]:
    """The ways that the page shows as buttons."""
    return [
        button.value
        for form in browser.page.forms
        for button in form.buttons
        if button.name == "decision" and button.value != "other_account"
    ]


def wrong(code: str) -> str:
    """Another code of six digits."""
    return f"{(int(code) + 1) % 10**6:06}"
