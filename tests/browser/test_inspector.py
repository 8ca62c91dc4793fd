"""The inspector in a browser, in the demo that runs (D66)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from msgspec.structs import replace

from corpid.web.pages.rendering import Renderer
from corpid_dev.flows.readiness_runs import Run, RunState
from tests.browser.developer_states import CHECKED, READINESS, REPORT
from tests.browser.gallery import served
from tests.browser.states import STATES
from tests.browser.test_demo import demonstrated
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demonstrated(tmp_path_factory.mktemp("demo")) as printed:
        found = re.search(r"http://localhost:\d+", printed)
        assert found, printed
        yield found[0]


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with chromium.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        context.set_default_timeout(15_000)
        yield context.new_page()


def test_a_request_appears_by_itself_and_the_focus_stays(page: Page, issuer: str) -> None:
    """D66: by server-sent events, under the strict policy; a link that has the focus keeps it."""
    page.goto(f"{issuer}/developer/traffic")
    page.get_by_text("Following: new requests appear by themselves.").wait_for()
    httpx.get(f"{issuer}/userinfo", trust_env=False)
    first = page.get_by_role("link", name=re.compile("^.?.?Userinfo refused, 401"))
    first.wait_for()
    first.focus()
    httpx.get(f"{issuer}/userinfo", headers={"Authorization": "Bearer x"}, trust_env=False)
    page.locator(".sign-ins > li").nth(1).wait_for()
    assert page.evaluate("document.activeElement.closest('.sign-ins') !== null")
    assert page.get_by_text("Failed check: The scheme is the token_type").is_visible()


def test_the_command_is_copied(page: Page, issuer: str) -> None:
    """D66: all of it, as it stands there."""
    httpx.get(f"{issuer}/userinfo", headers={"Authorization": "Basic eA=="}, trust_env=False)
    page.goto(f"{issuer}/developer/traffic")
    page.locator(".steps a").first.click()
    page.get_by_text("As a curl command").click()
    page.get_by_role("button", name="Copy as curl").click()
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#command").text_content()
    assert copied.startswith(f"curl -i {issuer}/userinfo")
    assert "authorization: Basic eA==" in copied


def test_without_a_script_the_list_is_a_page_to_reload(chromium: Browser, issuer: str) -> None:
    """D66: and it says so."""
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        httpx.get(f"{issuer}/.well-known/keys", trust_env=False)
        page.goto(f"{issuer}/developer/traffic?view=requests")
        assert "Reload the page to see new requests." in page.content()
        assert page.get_by_role("link", name="Key set").first.is_visible()
        page.get_by_role("link", name="Key set").first.click()
        assert page.get_by_text("It passed every check.").is_visible()
        assert not page.get_by_role("button", name="Copy as curl").is_visible()


@pytest.mark.parametrize("script", first_or_full([True, False]), ids=["script", "no script"])
def test_the_readiness_report_moves_by_itself_from_the_first_line_to_the_results(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch, script: bool
) -> None:
    """D66: by the script, and where none runs by loading again."""
    run = Run(asked=CHECKED)
    monkeypatch.setitem(STATES.views, "readiness-under-way", replace(READINESS, run=run))
    with (
        served(Renderer(developer_mode=True, added="corpid_dev")) as address,
        chromium.new_context(java_script_enabled=script) as context,
    ):
        page = context.new_page()
        page.goto(f"{address}/en/readiness-under-way")
        page.get_by_role("heading", name="The check is running").wait_for()
        run.progress("PASSED baseline")
        page.get_by_text("PASSED baseline").wait_for()
        run.report, run.state = REPORT, RunState.DONE
        page.get_by_role("heading", name="Results").wait_for()


def test_the_catalogue_of_errors_is_searched_while_a_developer_types(page: Page, issuer: str) -> None:
    """D28, D66: the contents follow, and lead to the reason."""
    page.goto(f"{issuer}/developer/errors")
    page.get_by_label("Search by code or by words").fill("expired assertion")
    page.get_by_text("1 reason with").wait_for()
    page.get_by_role("link", name="assertion_expired").click()
    assert page.url.endswith("#assertion_expired")
