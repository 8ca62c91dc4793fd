"""Somebody who operates the deployment, in the console, with people and organisations around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from corpid.rules.directory.records import Operator, OperatorLevel
from tests.sign_in.world import FORM, World, form_of

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

ACME, BANYAN = "200000001A", "200000002A"
WITHOUT_PASSKEY: Final = {"operators_need_passkey": False}
"""settings of these tests"""
REASON: Final = "asked for by telephone"


def console(made: World, page: str = "") -> str:
    return f"{made.base}/console" + (f"/{page}" if page else "")


async def in_console(made: World, level: OperatorLevel, page: str = "", *, who: str = "") -> Browser:
    """A new browser of a new operator of this level, signed in to the console, at one of its pages."""
    name = who or f"the-{level}"
    if name not in made.people:
        await made.person(name, name=f"Opal {level}")
        await made.write(Operator(user_id=f"id-{name}", level=level))
    browser = await made.browser()
    made.clock.pass_(60)
    await browser.open(console(made, page), site="none")
    await made.factors(browser, made.people[name])
    return browser


async def go(made: World, browser: Browser, page: str = "") -> int:
    """Open a page of the console; its status."""
    await browser.open(console(made, page), site="none")
    assert browser.response is not None
    return browser.response.status_code


async def send(made: World, browser: Browser, page: str, /, **fields: str) -> httpx.Response:
    """Post a form to a page of the console as it is, following nothing; `browser` is at a form, whose token is sent."""
    sent = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    content = urlencode({**form_of(browser, "form_token"), **fields})
    return await browser.http.post(console(made, page), content=content, headers=sent)


async def demoted(made: World, level: OperatorLevel, form: str) -> Browser:
    """Somebody at a form of an operator, whose level was lowered after it was shown: its token is right."""
    browser = await in_console(made, "operator", form)
    await made.write(Operator(user_id="id-the-operator", level=level))
    return browser


def status(browser: Browser) -> int:
    """The status of the page that is shown."""
    assert browser.response is not None
    return browser.response.status_code
