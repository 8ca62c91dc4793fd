"""The demo's own pages: axe-core finds nothing, light and dark, wide and narrow; with an e-mail, a result and a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.demo_tour import stops
from tests.browser.gallery import complaints
from tests.browser.test_demo import demonstrated, link
from tests.house.source import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

LOOKS = (("light", 1100), ("dark", 320))
"""scheme, and width in CSS pixels"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demonstrated(tmp_path_factory.mktemp("demo")) as printed:
        yield link(printed)


def holds(page: Page) -> None:
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        found = complaints(page)
        assert not found, page.url + listed(found)
        # blocks of code scroll by themselves, the page does not
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.full
def test_axe_finds_nothing_on_the_pages_of_the_demo(demo: str, chromium: Browser) -> None:
    """WCAG 2.2 AA."""
    with chromium.new_context() as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        for _ in stops(page, demo):
            holds(page)
