"""The example themes in Chromium, under the policy that every page has (D36, docs/theming.md).

`make pictures` writes those of the document to docs/images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.web.pages.rendering import Renderer
from corpid.web.pages.theme import read
from tests.browser.gallery import OUTSIDE, Appearance, Beholder, complaints, served
from tests.house.source import ROOT, listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.full

EXAMPLES = ROOT / "examples" / "themes"
PROVIDERS = {"agency": "Business Register", "bank": "Alder & Vale", "harbour": "Harbour sign-in"}
LOADED = """() => [...document.querySelectorAll(".masthead img, .illustration img")].map(
    each => each.naturalWidth > 0 && each.checkVisibility() ? each.currentSrc.match(/theme-[a-z_]+/)[0] : null)"""
DECODED = "() => Promise.all([...document.images].map(each => each.decode()))"
ACCENT = "() => getComputedStyle(document.querySelector('.button:not(.button-quiet)')).backgroundColor"
PICTURES = {
    "agency": ["logo", "illustration"],
    "bank": ["logo", "wordmark", "illustration"],
    "harbour": ["logo", "illustration"],
}
ACCENTS = {
    ("agency", "light"): "rgb(10, 47, 107)",
    ("agency", "dark"): "rgb(169, 201, 255)",
    ("bank", "light"): "rgb(90, 20, 48)",
    ("bank", "dark"): "rgb(240, 195, 207)",
    ("harbour", "light"): "rgb(11, 81, 87)",
    ("harbour", "dark"): "rgb(143, 220, 214)",
}


@pytest.fixture(scope="module", params=sorted(PROVIDERS))
def example(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def beholder(chromium: Browser, example: str) -> Iterator[Beholder]:
    renderer = Renderer(name=PROVIDERS[example], added="corpid_dev", theme=read(EXAMPLES / example))
    with served(renderer) as address:
        yield Beholder(browser=chromium, address=address)


def test_every_example_is_looked_at() -> None:
    assert {each.name for each in EXAMPLES.iterdir()} == set(PROVIDERS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_and_pictures_are_those_of_the_theme(beholder: Beholder, example: str, scheme: str) -> None:
    page = beholder.look("sign-in", Appearance(scheme=scheme))
    page.evaluate(DECODED)
    dark = "_dark" if scheme == "dark" else ""
    assert page.evaluate(LOADED) == [f"theme-{name}{dark}" for name in PICTURES[example]]
    assert page.evaluate(ACCENT) == ACCENTS[example, scheme]
    found = complaints(page)
    assert not found, listed(found)


@pytest.mark.parametrize("width", [320, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["code", "choose", "consent", "account"])
def test_axe_finds_nothing_on_the_pages_of_a_theme(beholder: Beholder, state: str, scheme: str, width: int) -> None:
    page = beholder.look(state, Appearance(scheme=scheme, width=width, height=800))
    picture = page.locator(".illustration")
    assert picture.count() == (state != "account")
    found = [*complaints(page), *page.evaluate(OUTSIDE)]
    assert not found, listed(found)


def test_a_phone_does_not_load_the_illustration(beholder: Beholder) -> None:
    page = beholder.look("consent", Appearance(width=375, height=667))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload(wait_until="networkidle")
    assert any("theme-logo" in each for each in asked)
    assert not any("theme-illustration" in each for each in asked)
    assert not page.locator(".illustration").is_visible()


def test_the_document_has_its_pictures(beholder: Beholder, example: str, pictures: Path) -> None:
    page = beholder.look("sign-in", Appearance(width=1120, height=720))
    page.evaluate(DECODED)
    page.screenshot(path=pictures / f"theme-{example}.png")
