"""What the pages of a sign-in weigh: HTML, style sheet and scripts, as a browser loads them for the first time."""

from __future__ import annotations

import gzip
from typing import Final

import pytest

from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH
from tests.browser.gallery import Appearance, Beholder
from tests.browser.states import STATES

WEIGHTS: Final = {
    "sign-in": (73_615, 21_317),
    "sign-in-again": (73_921, 21_623),
    "code": (70_543, 19_919),
    "code-passkey": (73_927, 21_629),
    "choose": (71_170, 20_546),
    "consent": (70_338, 19_714),
}
"""state → bytes of all, and bytes that are sent, on 2026-12-01: files are compressed then, pages never are"""
ROOM: Final = 1.02
LOADED: Final = """() => performance.getEntriesByType("resource")
    .map(each => new URL(each.name).pathname).filter(path => /^\\/static\\/.*\\.(css|js)$/.test(path))"""


@pytest.mark.parametrize("state", WEIGHTS)
def test_a_page_of_a_sign_in_is_not_heavier_than_it_was(beholder: Beholder, state: str) -> None:
    """A page that needs more says why where it raises its number."""
    loaded = {path.removeprefix("/static/") for path in beholder.look(state, Appearance()).evaluate(LOADED)}
    assert any(each.endswith(".css") for each in loaded)
    assert any(each.endswith(".js") for each in loaded)
    renderer = Renderer()
    page, files = len(renderer.render(STATES[state], ENGLISH)), [renderer.static_file(each)[0] for each in loaded]
    weight = page + sum(map(len, files)), page + sum(len(gzip.compress(each, mtime=0)) for each in files)
    assert all(now <= was * ROOM for now, was in zip(weight, WEIGHTS[state], strict=True)), weight
