"""Every state of every page in every language, scheme of colours and width: nothing hangs out, axe-core finds nothing.

A page is opened once for each language. Axe looks at its colours in the dark scheme and in English, since they depend on
neither language nor width (`test_access` sees the light ones), at all else on a phone in the language of longest texts:
between languages a page differs by its texts alone, and by the name of the language, which every page is asked for.
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
LOOKED_AT: Final = {ENGLISH: DARK, PSEUDO: PHONE}
"""where axe looks at a page"""


@pytest.mark.full
@pytest.mark.parametrize("language", [*LANGUAGES, PSEUDO], ids=lambda each: each.tag)
@pytest.mark.parametrize("state", STATES)
def test_nothing_hangs_out_and_axe_finds_nothing_in_any_appearance(
    developer_beholder: Beholder, state: str, language: Language
) -> None:
    page = developer_beholder.look(state, replace(PHONE, language=language))
    assert page.evaluate("document.documentElement.lang") == language.tag
    found = []
    for window in WINDOWS:
        shown_as(page, window)
        found += [f"{window.name}: {each}" for each in page.evaluate(OUTSIDE)]
        if LOOKED_AT.get(language) is window:
            found += [f"{window.name}: {each}" for each in complaints(page, colours=language is ENGLISH)]
    assert not found, listed(found)
