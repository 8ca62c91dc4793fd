"""Every state of every page in every language, scheme of colours and width: axe-core finds nothing, nothing hangs out.

A page is opened once for each language, and axe looks at it once: at its colours in the dark scheme and in one language,
since they depend on neither language nor width (`test_access` sees the light ones), at all else on a phone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO
from tests.browser.gallery import OUTSIDE, Appearance, complaints, shown_as
from tests.browser.states import STATES
from tests.house.source import listed

if TYPE_CHECKING:
    from corpid.web.pages.translations import Language
    from tests.browser.gallery import Beholder

WINDOWS: Final = [Appearance(scheme=scheme, width=width) for scheme, width in product(("light", "dark"), (320, 1100))]
PHONE: Final = WINDOWS[0]
DARK: Final = WINDOWS[-1]


@pytest.mark.full
@pytest.mark.parametrize("language", [*LANGUAGES, PSEUDO], ids=lambda each: each.tag)
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_in_any_appearance(developer_beholder: Beholder, state: str, language: Language) -> None:
    page = developer_beholder.look(state, replace(WINDOWS[0], language=language))
    found = []
    for window in WINDOWS:
        shown_as(page, window)
        outside = page.evaluate(OUTSIDE)
        seen = []
        if window is (DARK if language is ENGLISH else PHONE):
            seen = complaints(page, colours=language is ENGLISH)
        found += [f"{window.name}: {each}" for each in (*outside, *seen)]
    assert not found, listed(found)
