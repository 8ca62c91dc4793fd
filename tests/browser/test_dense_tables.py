"""Tables of portal and console on a wide screen: rows of 40 px, and a head that stays."""

from __future__ import annotations

from typing import Final

import pytest

from tests.browser.gallery import Appearance, Beholder
from tests.browser.states import STATES
from tests.house.source import listed

LAPTOP: Final = Appearance(width=1280, height=500)
ROW: Final = 40
"""pixels of one with a single line"""
ROWS: Final = """() => {
    const lines = cell => {
        const range = document.createRange(), texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
        while (texts.nextNode()) {
            range.selectNodeContents(texts.currentNode);
            if (!texts.currentNode.parentElement.matches(".visually-hidden")) found.push(...range.getClientRects());
        }
        return found.filter(box => box.width && box.height);
    };
    return [...document.querySelectorAll(".managed .list tbody tr")].map(row => {
        const single = [...row.cells].map(lines).every(of => Math.max(...of.map(box => box.top)) < Math.min(...of.map(box => box.bottom)));
        return [single, row.getBoundingClientRect().height, row.innerText.slice(0, 60)];
    });
}"""
"""whether a row has one line, its height, its text"""
HEAD: Final = """() => {
    const table = document.querySelector(".managed .list"), row = table.tBodies[0].rows[Math.floor(table.rows.length / 2)];
    row.scrollIntoView({ block: "center" });
    return [scrollY, ...[...table.tHead.rows[0].cells].map(each => Math.round(each.getBoundingClientRect().top))];
}"""


def test_a_row_with_one_line_is_at_most_40_pixels_high(beholder: Beholder) -> None:
    """On every page with a table: text that wraps, and details below a name, make a row higher."""
    single = 0
    too_high = []
    for state in STATES:
        if state.startswith(("portal-", "console-")):
            rows = beholder.look(state, LAPTOP).evaluate(ROWS)
            single += sum(one for one, _, _ in rows)
            too_high += [f"{state}: {height} {text!r}" for one, height, text in rows if one and height > ROW]
    assert single
    assert not too_high, listed(too_high)


@pytest.mark.parametrize("state", ["console-audit", "console-levels"])
def test_the_head_of_a_table_stays_while_its_rows_scroll(beholder: Beholder, state: str) -> None:
    """D83: also that of a list that is longer than the window."""
    scrolled, *tops = beholder.look(state, LAPTOP).evaluate(HEAD)
    assert scrolled > 0
    assert set(tops) == {0}


def test_a_word_of_the_program_is_not_broken_in_a_wide_table(beholder: Beholder) -> None:
    """Although a long name stands in another column, which is broken."""
    page = beholder.look("console-entities", LAPTOP)
    words = page.locator(".managed .list td:not(:has(bdi)):not(.select)").evaluate_all(
        "all => all.filter(each => !each.innerText.trim().includes(' ')).map(each => {"
        " const range = document.createRange(); range.selectNodeContents(each);"
        " return new Set([...range.getClientRects()].filter(box => box.width > 1 && box.height < 22.5).map(box => box.top)).size; })"
    )
    assert words
    assert max(words) <= 1
