"""Walks through the portal: links by their text, and the token of a page's form."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

from tests.sign_in.world import form_of

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def follow(browser: Browser, text: str) -> None:
    """Follow the first link with this text in it."""
    target = next(target for target, name in browser.page.links if text in name)
    await browser.open(urljoin(browser.url, target), site="same-origin")


def token(browser: Browser) -> dict[str, str]:
    """The token of the page's first form that posts, and nothing else."""
    return {"form_token": form_of(browser, "form_token")["form_token"]}
