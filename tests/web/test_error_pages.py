"""Errors of account, portal and console on a real server: words of their own, and a way back (D16, D28, D32)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.rules.oauth.errors import InvalidRequest, OAuthError, ServerError, TemporarilyUnavailable, TooManyRequests
from corpid.rules.oauth.refusals import Reason
from corpid.web.pages.errors import ErrorContext, problem
from corpid_dev.relying_party.browser import parse
from tests.web.processes import DIRECTORY, Running, command, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SITES = {
    "account": "Your account",
    "manage": "Back to portal home",
    "console": "Back to console home",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: Path = tmp_path_factory.mktemp("errors")
    (directory / "directory.json").write_text(json.dumps(DIRECTORY), encoding="utf-8")
    made = command(directory, "apply", "--development", "directory.json")
    assert made.returncode == 0, made.stderr
    with serving(directory) as found:
        yield found


@pytest.mark.full
@pytest.mark.parametrize("site", SITES)
def test_an_address_without_a_page_leads_to_the_first_page(site: str, running: Running) -> None:
    """D32."""
    answer = httpx.get(f"{running.base_url}/{site}/no-such-page", headers={"Accept": "text/html"}, trust_env=False)
    page = parse(answer.text)
    assert (answer.status_code, page.heading) == (404, "Page not found")
    assert (f"/{site}", SITES[site]) in page.links


@pytest.mark.parametrize("site", SITES)
def test_a_form_of_another_site_is_refused_in_words_of_its_own(site: str, running: Running) -> None:
    """D35."""
    sent = {**FORM, "Sec-Fetch-Site": "cross-site"}
    answer = httpx.post(f"{running.base_url}/{site}", content="a=b", headers=sent, trust_env=False)
    page = parse(answer.text)
    assert (answer.status_code, page.heading) == (400, "This form cannot be used any more")
    assert (f"/{site}", SITES[site]) in page.links


@pytest.mark.parametrize(
    ("error", "heading"),
    [
        (ServerError(Reason.UNFORESEEN, "x"), "Something went wrong"),
        (TemporarilyUnavailable(Reason.BUSY, "x"), "Please try again in a moment"),
        (TooManyRequests(Reason.RATE_LIMIT_OF_ADDRESS, "x"), "Too many requests"),
        (InvalidRequest(Reason.FORM_OF_ANOTHER_BROWSER, "x"), "This form cannot be used any more"),
        (InvalidRequest(Reason.STEP_UNKNOWN, "x"), "This page cannot be shown"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_no_page_of_account_portal_or_console_speaks_of_a_sign_in(error: OAuthError, heading: str) -> None:
    """D16: no service waits there."""
    shown = problem(error, ErrorContext(own_page=True), "reference")
    assert shown.heading == heading
    assert not [each for each in shown.paragraphs if "service you came from" in each]
