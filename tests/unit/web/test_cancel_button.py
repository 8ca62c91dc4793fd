"""Cancel follows the button that continues, on every page that has it (docs/accessibility.md)."""

from __future__ import annotations

import re
from typing import Final

from corpid.web.pages.rendering import Renderer
from corpid.web.pages.views import Problem
from tests.browser.states import STATES
from tests.house.source import listed

ROW: Final = re.compile(
    r'<div class="actions(?: kept)?">\s*<button class="button(?: button-secondary)?"[^>]*>[^<]*</button>\s*'
    r'<button class="button button-quiet" type="submit" form="cancel">Cancel</button>\s*</div>'
)
WITHOUT_SCRIPT: Final = re.compile(
    r'</form>\s*<div class="actions">\s*'
    r'<button class="button button-quiet" type="submit" form="cancel">Cancel</button>\s*</div>'
)
"""after the hidden form of a passkey; the style sheet hides it as soon as that form is shown"""
NOTHING_CONTINUES: Final = {"choose-nothing"}


def test_cancel_is_in_the_row_of_the_main_button() -> None:
    found = {name: view for name, view in STATES.items() if view.frame.cancel and not isinstance(view, Problem)}
    assert found
    renderer = Renderer(added="corpid_dev")
    misplaced = [name for name, view in found.items() if not is_in_its_row(name, renderer.render(view).decode())]
    assert not misplaced, listed(misplaced)


def is_in_its_row(name: str, page: str) -> bool:
    """Whether each button of a page that says Cancel is where it belongs."""
    buttons = page.count('form="cancel">')
    if name in NOTHING_CONTINUES:
        return buttons == 1
    shown_by_script = 'class="passkey"' in page and 'name="code"' not in page and 'name="password"' not in page
    return (len(ROW.findall(page)), len(WITHOUT_SCRIPT.findall(page)), buttons) == (1, buttons - 1, 1 + shown_by_script)
