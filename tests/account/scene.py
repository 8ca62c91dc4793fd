"""Alice at her account, and what surrounds her there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec.structs import replace

from tests.sign_in.factors import ALICE, use
from tests.sign_in.world import FORM, World, shown_again

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser
    from tests.authenticator import Authenticator

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def account(made: World, page: str = "") -> str:
    return f"{made.base}/account" + (f"/{page}" if page else "")


async def at_account(
    made: World, page: str = "", *, who: str = "alice", key: Authenticator | None = None, agent: str = AGENT
) -> Browser:
    """A new browser, signed in to the account, at one of its pages. A code is good once: time passes first."""
    browser = await made.browser()
    browser.http.headers["User-Agent"] = agent
    made.clock.pass_(60)
    await browser.open(account(made, page), site="none")
    if key is None:
        await made.factors(browser, made.people[who])
    else:
        await use(made, browser, key)
    return browser


async def reachable(made: World) -> None:
    """Give Alice an e-mail address."""
    await made.write(replace(await made.provider.registry.directory.user(ALICE), email="alice@example.com"))


async def go(made: World, browser: Browser, page: str = "") -> str:
    """Open a page of the account; the heading that is shown then."""
    await browser.open(account(made, page), site="none")
    return browser.page.heading


async def send(
    made: World, browser: Browser, page: str, /, *, site: str | None = "same-origin", **fields: str
) -> httpx.Response:
    """Post a form to a page of the account as it is, following nothing."""
    sent = {"Content-Type": FORM, **({"Sec-Fetch-Site": site} if site else {})}
    return await browser.http.post(account(made, page), content=urlencode(fields), headers=sent)


async def rejected(browser: Browser, answer: httpx.Response) -> httpx.Response:
    """The page of the account that shows a form again."""
    assert "?entered=" in answer.headers["location"]
    return await shown_again(browser, answer)


def hidden(browser: Browser) -> dict[str, str]:
    """The token and the step that the forms of the shown page carry."""
    form = next(form for form in browser.page.forms if "form_token" in form.names())
    return {each.name: each.value for each in form.controls if each.name in {"form_token", "step"}}


async def sessions(made: World, user_id: str = "id-alice") -> list[Any]:
    found: list[Any] = await made.provider.registry.sessions.list_for_user(user_id, now=made.clock())
    return found
