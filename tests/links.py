"""The links of pages, followed as a person would."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def all_followed(browser: Browser, base: str) -> set[str]:
    """Follow every link below an address from page to page; each has to be answered with a page. The paths."""
    seen, left = set[str](), [base]
    while left:
        url = left.pop()
        await browser.open(url, site="none")
        assert browser.response is not None
        assert browser.response.status_code == 200, url
        for target, _ in browser.page.links:
            found = urljoin(browser.url, target).partition("#")[0]
            path = urlsplit(found).path
            if found.startswith(f"{base}/") and path not in seen and not path.endswith("/sign-out"):
                seen.add(path)
                left.append(found)
    return seen
