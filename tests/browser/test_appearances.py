"""Every state of every page in every language, scheme of colours and width: nothing hangs out, axe-core finds nothing.

A page is opened once for each language, and seen narrow and light, then wide and dark: a scheme changes colours alone
(tests/unit/web/test_static_files.py). Axe looks at it in one language: between languages a page differs by its texts
alone, and by the name of the language, which every page is asked for. There it looks at the colours of the dark scheme
(`test_access` sees the light ones), which do not depend on width, and at all else on a phone, with the longest texts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from corpid.web.pages.translations import LANGUAGES, PSEUDO
from tests.browser.gallery import OUTSIDE, Appearance, Beholder, Rules, complaints, shown_as
from tests.browser.states import STATES
from tests.house.source import listed

PHONE: Final = Appearance(width=320)
DARK: Final = Appearance(scheme="dark", width=1100)
LOOKED_AT: Final[dict[Appearance, Rules]] = {PHONE: "all but colours", DARK: "colours"}
"""windows, and what axe looks at in each"""


@pytest.mark.full
@pytest.mark.parametrize("state", STATES)
def test_nothing_hangs_out_and_axe_finds_nothing_in_any_appearance(developer_beholder: Beholder, state: str) -> None:
    found = []
    for language in (*LANGUAGES, PSEUDO):
        page = developer_beholder.look(state, replace(PHONE, language=language))
        assert page.evaluate("document.documentElement.lang") == language.tag
        size = page.viewport_size
        # first as the page before left the window
        for window in sorted(LOOKED_AT, key=lambda each: size is None or each.width != size["width"]):
            shown_as(page, window)
            seen = [*page.evaluate(OUTSIDE), *(complaints(page, LOOKED_AT[window]) if language is PSEUDO else [])]
            found += [f"{replace(window, language=language).name}: {each}" for each in seen]
    assert not found, listed(found)
