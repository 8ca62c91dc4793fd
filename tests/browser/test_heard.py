"""What a screen reader is given of every page in every state: as its snapshot says, and by rules that hold for all of them.

`make snapshots` writes the snapshots again (tests/browser/heard.py). A change of one is read by its reviewer in the way in
which it is heard: from the top to the bottom. `make test` hears one state of each page, `make test-full` all of them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.heard import SNAPSHOTS, Node, nodes, opened, path, snapshot
from tests.browser.states import PAGES_OR_FULL, STATES
from tests.house.source import listed

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.gallery import Beholder

pytestmark = pytest.mark.full

NAMED: Final = {
    "button",
    "checkbox",
    "heading",
    "image",
    "link",
    "navigation",
    "radio",
    "region",
    "searchbox",
    "textbox",
}
LANDMARKS: Final = {"banner": 1, "main": 1, "contentinfo": 1}
PRESSED: Final = """() => [...document.querySelectorAll("button")].filter(each => each.checkVisibility()).map(each => {
    const does = each.type === "submit" ? [each.form.action, ...new FormData(each.form, each)].join() : each.outerHTML;
    const description = each.getAttribute("aria-describedby");
    return [(each.ariaLabel ?? each.innerText) + (description ? ` (${document.getElementById(description).innerText})` : ""), does];
})"""
"""what each button is called, and what pressing it does"""


@pytest.fixture(scope="module", params=PAGES_OR_FULL)
def state(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(beholder: Beholder, state: str) -> Page:
    return opened(beholder, state)


@pytest.fixture(scope="module")
def heard(page: Page) -> list[Node]:
    return nodes(page)


def test_a_page_is_heard_as_its_snapshot_says(page: Page, heard: list[Node], state: str) -> None:
    """Roles, names, descriptions, states and order (WCAG 1.3.1, 1.3.2, 4.1.2)."""
    assert path(state).exists(), f"no snapshot of {state}: make snapshots"
    assert snapshot(page, heard) == path(state).read_text(encoding="utf-8"), (
        f"{state} is heard differently: read the difference, then make snapshots"
    )


def test_a_page_has_its_landmarks_one_heading_and_a_name_for_everything(heard: list[Node]) -> None:
    """WCAG 2.4.6, 4.1.2: each list of links to pages has a name of its own."""
    counted = Counter(each.role for each in heard)
    assert {role: counted[role] for role in LANDMARKS} == LANDMARKS
    lists = [each.name for each in heard if each.role == "navigation"]
    assert lists
    assert len(lists) == len(set(lists)), lists
    assert [each.properties["level"] for each in heard if each.role == "heading"].count(1) == 1
    nameless = [each.role for each in heard if each.role in NAMED and not each.name.strip()]
    assert not nameless, listed(nameless)


def test_what_does_different_things_has_different_names(page: Page, heard: list[Node]) -> None:
    """WCAG 2.4.4, 2.4.9."""
    leads = {(each.name, each.description, each.properties.get("url")) for each in heard if each.role == "link"}
    does = {tuple(each) for each in page.evaluate(PRESSED)}
    names = Counter([*(each[:2] for each in leads), *(each[0] for each in does)])
    ambiguous = [str(name) for name, count in names.items() if count > 1]
    assert not ambiguous, listed(ambiguous)


def test_an_error_has_the_focus_and_is_not_announced_a_second_time(heard: list[Node], state: str) -> None:
    """WCAG 3.3.1, 4.1.3: the summary is read since it has the focus, its field says it again when one gets there."""
    focused = [str(each) for each in heard[1:] if each.properties.get("focused")]
    assert not [str(each) for each in heard if each.properties.get("live") == "assertive"]
    errors = getattr(STATES[state], "errors", ())
    assert focused == (['group "There is a problem"'] if errors else [])
    for field, text in errors:
        said = [each for each in heard if str(text) in each.description]
        assert bool(said) == bool(field), f"no field says {text}"


def test_no_snapshot_is_left_without_a_state() -> None:
    left = {each.name for each in SNAPSHOTS.iterdir()} - {path(state).name for state in STATES}
    assert not left, listed(sorted(left))
