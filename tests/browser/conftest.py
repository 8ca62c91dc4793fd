"""One Chromium for all tests that a process runs, one provider for those of a file; a fresh profile for each test.

A flow without script is that of the simulated browser in tests/sign_in, tests/enrolment and tests/account, which has none;
Chromium goes through the first sign-in and the enrolment without script, and shows what only a browser does (reload, Back,
double clicks, arrivals from elsewhere). The other flows are seen in Chromium without script in `make test-full`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from corpid.web.pages.rendering import Renderer
from corpid_dev.web.paths import CATALOGUE_PATH
from tests.browser.gallery import Beholder, served
from tests.browser.stage import FLAGS, HEADLESS_SHELL, Stage, Visitor, staged

if TYPE_CHECKING:
    from collections.abc import Iterator


LARGEST_PICTURE = 300_000
"""bytes, in a document"""
PATIENCE_MILLISECONDS = 15_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="package")  # Playwright's loop runs in this thread until its end
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=HEADLESS_SHELL, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def beholder(chromium: Browser) -> Iterator[Beholder]:
    """Pages without a provider, in a tab for each appearance."""
    with served() as address:
        yield Beholder(browser=chromium, address=address)


@pytest.fixture(scope="module")
def developer_beholder(chromium: Browser) -> Iterator[Beholder]:
    """The same pages in developer mode, which have everything that the others have."""
    with served(Renderer(developer_mode=True, catalogue_path=CATALOGUE_PATH, added="corpid_dev")) as address:
        yield Beholder(browser=chromium, address=address)


@pytest.fixture
def pictures(tmp_path: Path) -> Iterator[Path]:
    """The folder that pictures of the documents are written to: docs/images with SCREENSHOTS=docs/images."""
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    yield folder
    made = list(folder.glob("*.png"))
    assert made
    assert not [each.name for each in made if not 10_000 < each.stat().st_size < LARGEST_PICTURE]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


@pytest.fixture
def visitor(chromium: Browser, stage: Stage, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """A new profile; `indirect` parameters are options of the context. Its console must have stayed silent (D36)."""
    with chromium.new_context(**getattr(request, "param", {})) as context:
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        made = Visitor(context=context, stage=stage)
        yield made
        assert made.complaints == []
