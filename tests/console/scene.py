"""Alice in the console, where she operates the deployment, and what surrounds her there."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from corpid.rules.directory.records import Operator
from tests.sign_in.world import FORM

if TYPE_CHECKING:
    import httpx

    from corpid.rules.directory.records import OperatorLevel
    from corpid.sandbox.browser import Browser
    from tests.sign_in.world import World

OPTIONS = {"operators_need_passkey": False}
"""settings with which a password and a code are enough"""


def console(made: World, page: str = "") -> str:
    return f"{made.base}/console" + (f"/{page}" if page else "")


async def in_console(made: World, page: str = "", *, level: OperatorLevel = "operator") -> Browser:
    """A new browser in which Alice is signed in to the console, at one of its pages. A code is good once: time passes first."""
    await made.write(Operator(user_id="id-alice", level=level))
    browser = await made.browser()
    made.clock.pass_(60)
    await browser.open(console(made, page), site="none")
    await made.factors(browser, made.people["alice"])
    return browser


async def go(made: World, browser: Browser, page: str = "") -> str:
    """Open a page of the console; the heading that is shown then."""
    await browser.open(console(made, page), site="none")
    return browser.page.heading


async def send(
    made: World, browser: Browser, page: str, /, *, site: str | None = "same-origin", **fields: str
) -> httpx.Response:
    """Post a form to a page of the console as it is, following nothing."""
    sent = {"Content-Type": FORM, **({"Sec-Fetch-Site": site} if site else {})}
    return await browser.http.post(console(made, page), content=urlencode(fields), headers=sent)


def status(browser: Browser) -> int:
    """The status of the page that is shown."""
    assert browser.response is not None
    return browser.response.status_code
