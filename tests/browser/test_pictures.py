"""The pictures of docs/portal.md and docs/console.md, which `make pictures` writes to docs/images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.gallery import Appearance

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.gallery import Beholder

LAPTOP: Final = Appearance(width=1100, height=720)
PHONE: Final = Appearance(width=375, height=667)
SHOWN: Final = {
    "portal-home": LAPTOP,
    "portal-people": LAPTOP,
    "portal-person": PHONE,
    "portal-access-role": LAPTOP,
    "portal-access-confirm": LAPTOP,
    "portal-request": LAPTOP,
    "portal-third-party": LAPTOP,
    "portal-review": LAPTOP,
    "console-overview": LAPTOP,
    "console-client": LAPTOP,
    "console-keys": LAPTOP,
    "console-audit": LAPTOP,
}


@pytest.mark.full
@pytest.mark.parametrize("state", SHOWN)
def test_the_guide_has_its_pictures(beholder: Beholder, state: str, pictures: Path) -> None:
    beholder.look(state, SHOWN[state]).screenshot(path=pictures / f"{state}.png", full_page=True)
