"""The page of every reason for a refusal, and its search (D28, D66)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.refusals import Reason
from corpid_dev.web.documents import ErrorCatalogue, catalogue
from corpid_dev.web.paths import CATALOGUE_PATH
from tests.developer.scene import demo_world
from tests.sign_in.world import BASE


def found(view: ErrorCatalogue) -> set[Reason]:
    return {reason for _, reasons in view.errors_and_reasons for reason in reasons}


@pytest.mark.parametrize("query", [Reason.CODE_EXPIRED.code, "EXPIRED  code", "invalid_grant expired"])
def test_a_reason_is_found_by_its_code_its_error_and_words_in_any_order(query: str) -> None:
    assert Reason.CODE_EXPIRED in found(catalogue(query=query))
    assert Reason.CANCELLED not in found(catalogue(query=query))


def test_without_a_query_every_reason_is_there_and_with_another_none() -> None:
    assert found(catalogue()) == set(Reason)
    assert found(catalogue(query="certificate pinning")) == set()


async def test_the_search_is_a_form_that_needs_no_script() -> None:
    """The query is in the address, and is text on the page."""
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(f"{BASE}{CATALOGUE_PATH}")
        assert f"{len(Reason)} reasons" in browser.page.text
        answer = await browser.http.get(CATALOGUE_PATH, params={"query": "<b>"}, headers={"Accept": "text/html"})
        assert "0 reasons" in answer.text
        assert "<q>&lt;b&gt;</q>" in answer.text
