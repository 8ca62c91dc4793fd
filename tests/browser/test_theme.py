"""The example theme in Chromium, under the policy that every page has (D36, docs/theming.md).

With SCREENSHOTS=docs/images the picture of the document is written there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpid.web.pages.rendering import Renderer
from corpid.web.pages.theme import read
from tests.browser.gallery import Appearance, Beholder, served
from tests.browser.test_access import complaints
from tests.house.source import ROOT, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.full

ACCENT = "() => getComputedStyle(document.querySelector('.button:not(.button-quiet)')).backgroundColor"
LOADED = "() => { const logo = document.querySelector('.logo'); return [logo.naturalWidth > 0, logo.currentSrc]; }"
LARGEST_PICTURE = 200_000


@pytest.fixture(scope="module")
def beholder(chromium: Browser) -> Iterator[Beholder]:
    renderer = Renderer(name="Harbour sign-in", theme=read(ROOT / "examples" / "theme"))
    with served(renderer) as address:
        yield Beholder(browser=chromium, address=address)


@pytest.mark.parametrize(
    ("scheme", "accent", "logo"),
    [("light", "rgb(15, 92, 77)", "theme-logo."), ("dark", "rgb(143, 224, 200)", "theme-logo_dark.")],
)
def test_colours_and_logo_are_those_of_the_theme(beholder: Beholder, scheme: str, accent: str, logo: str) -> None:
    page = beholder.look("sign-in", Appearance(scheme=scheme))
    assert page.evaluate(ACCENT) == accent
    loaded, source = page.evaluate(LOADED)
    assert loaded
    assert logo in source
    assert page.get_by_role("link", name="Help and telephone numbers").is_visible()
    found = complaints(page)
    assert not found, listed(found)


def test_the_document_has_its_picture(beholder: Beholder, tmp_path: Path) -> None:
    path = Path(os.environ.get("SCREENSHOTS", tmp_path)) / "theme.png"
    page = beholder.look("sign-in", Appearance(width=620, height=1250))
    page.screenshot(path=path)
    assert 10_000 < path.stat().st_size < LARGEST_PICTURE
