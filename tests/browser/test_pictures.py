"""The pictures of docs/portal.md, docs/console.md and docs/inspector.md, which `make pictures` writes to docs/images.

Those of the portal are taken in the demo, where everybody can go to the same pages; those of the console show what a new demo has
not seen yet: days of traffic, and refusals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.administration_tour import portal_stops
from tests.browser.gallery import Appearance, Beholder
from tests.browser.test_demo import demonstrated

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page


LAPTOP: Final = Appearance(width=1100, height=900)
OF_THE_CONSOLE: Final = ("console-overview", "console-client", "console-keys", "console-audit", "console-reference")
OF_THE_PORTAL: Final = {
    "portal-home", "portal-people", "portal-person", "portal-role", "portal-summary", "portal-access", "portal-review",
    "portal-request", "portal-third-parties", "portal-history",
}  # fmt: skip


def keep(page: Page, path: Path) -> None:
    """A picture of the page without its foot and without the banner of developer mode, at most one screen and a half high."""
    page.evaluate("document.querySelectorAll('aside, .foot').forEach(each => each.remove())")
    height = min(1_350, int(page.evaluate("document.documentElement.scrollHeight")))
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": LAPTOP.width, "height": height})


@pytest.mark.full
@pytest.mark.parametrize("state", OF_THE_CONSOLE)
def test_the_guide_of_the_console_has_its_pictures(beholder: Beholder, state: str, pictures: Path) -> None:
    keep(beholder.look(state, LAPTOP), pictures / f"{state}.png")


@pytest.mark.full
def test_the_guide_of_the_inspector_has_its_pictures(beholder: Beholder, pictures: Path) -> None:
    keep(beholder.look("inspector-refused", LAPTOP), pictures / "inspector-refused.png")


@pytest.mark.full
def test_the_guide_of_the_portal_has_its_pictures(
    chromium: Browser, pictures: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with demonstrated(tmp_path_factory.mktemp("demo")) as printed, chromium.new_context(**LAPTOP.options) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        taken = set()
        for stop in portal_stops(page, printed):
            if stop in OF_THE_PORTAL:
                keep(page, pictures / f"{stop}.png")
                taken.add(stop)
        assert taken == OF_THE_PORTAL
