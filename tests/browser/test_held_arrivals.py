"""A legacy request in a browser that was never here, as Chromium really takes cookies and sends forms (D15, D34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.stage import Stage, Visitor, shows, staged, with_and_without_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


pytestmark = pytest.mark.full

LONG_STATE: Final = "s" * 2048


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The oldest generation, whose requests are queries."""
    with staged(generations=("legacy",)) as made:
        yield made


def begin(stage: Stage, **parameters: str) -> str:
    """The URL of a request that is all in its query."""

    async def asked() -> str:
        rp = await stage.world.relying_party("rp1", **parameters)
        rp.redirect_uri = stage.callback
        return await rp.begin()

    return stage.wait_for(asked())


def through(visitor: Visitor, page: Page) -> dict[str, str]:
    """From the first page to the relying party."""
    shows(page, "Sign in")
    assert "?" not in page.url
    visitor.password(page)
    visitor.code(page)
    visitor.entity(page)
    return visitor.back(page)


@with_and_without_script
def test_the_first_visit_ends_at_the_relying_party_and_one_cookie_stays(visitor: Visitor, stage: Stage) -> None:
    """D34: also where the page is reloaded, and left and come back to."""
    page = visitor.tab()
    page.goto(begin(stage))
    shows(page, "Sign in")
    assert [cookie["name"] for cookie in visitor.context.cookies(page.url)] == ["corpid"]
    page.reload()
    page.goto(f"{stage.world.base}/")
    page.go_back()
    assert "code" in through(visitor, page)


@with_and_without_script
def test_a_request_that_is_too_long_for_a_cookie_goes_by_a_form(
    visitor: Visitor, stage: Stage, request: pytest.FixtureRequest
) -> None:
    """D34: a script sends it, or a button does."""
    page = visitor.tab()
    page.goto(begin(stage, state=LONG_STATE))
    if "no script" in request.node.name:
        shows(page, "One moment")
        page.get_by_role("button", name="Continue").click()
    assert through(visitor, page)["state"] == LONG_STATE


@with_and_without_script
def test_two_tabs_with_two_requests_are_two_sign_ins(visitor: Visitor, stage: Stage) -> None:
    """D34: one with the long form, too."""
    pages = [visitor.tab() for _ in range(3)]
    for page, url in zip(pages, [begin(stage), begin(stage), begin(stage, state=LONG_STATE)], strict=True):
        page.goto(url)
    assert len({page.url for page in pages}) == 3
    for page in pages:
        page.reload()
        shows(page, "Sign in")
    assert "code" in through(visitor, pages[1])
