"""Alice in the portal, where she administers entities, and what surrounds her there."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin

from corpid.rules.directory.records import Administrator, AdministratorLevel
from tests.sign_in.world import FORM, World

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

ACME, BANYAN = "200000001A", "200000002A"


def portal(made: World, page: str = "") -> str:
    return f"{made.base}/manage" + (f"/{page}" if page else "")


async def appoint(
    made: World,
    entity_id: str = ACME,
    *,
    level: AdministratorLevel = "owner",
    who: str = "alice",
    services: tuple[str, ...] = (),
) -> None:
    """Give a person a level at an entity."""
    await made.write(Administrator(user_id=f"id-{who}", entity_id=entity_id, level=level, services=services))


async def in_portal(made: World, page: str = "", *, who: str = "alice") -> Browser:
    """A new browser, signed in to the portal, at one of its pages. A code is good once: time passes first."""
    browser = await made.browser()
    made.clock.pass_(60)
    await browser.open(portal(made, page), site="none")
    await made.factors(browser, made.people[who])
    return browser


async def go(made: World, browser: Browser, page: str = "") -> str:
    """Open a page of the portal; the heading that is shown then."""
    await browser.open(portal(made, page), site="none")
    return browser.page.heading


async def follow(made: World, browser: Browser, text: str) -> None:
    """Open the link with this text."""
    target = next(target for target, shown in browser.page.links if shown == text)
    await browser.open(urljoin(made.base, target), site="none")


async def send(
    made: World, browser: Browser, page: str, /, *, site: str | None = "same-origin", **fields: str
) -> httpx.Response:
    """Post a form to a page of the portal as it is, following nothing."""
    sent = {"Content-Type": FORM, **({"Sec-Fetch-Site": site} if site else {})}
    return await browser.http.post(portal(made, page), content=urlencode(fields), headers=sent)
