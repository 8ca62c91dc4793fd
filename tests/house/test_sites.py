"""The tables of account, portal and console: one declaration for one name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from corpid.web.account import endpoints as account
from corpid.web.directory import endpoints as portal
from corpid.web.operations import endpoints as console

SITES: dict[str, Any] = {"account": account._SITE, "portal": portal._SITE, "console": console._SITE}


@pytest.mark.parametrize("name", SITES)
def test_pages_and_changes_of_a_site_have_names_of_their_own(name: str) -> None:
    """DESIGN, "One declaration": a second one would hide the first without a word."""
    site = SITES[name]
    for kind in ("pages", "changes"):
        counted = Counter(each for section in site.sections for each in getattr(section, kind))
        assert [each for each, number in counted.items() if number > 1] == []
