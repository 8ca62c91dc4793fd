"""What a screen reader is given of a page: the accessibility tree, and `make snapshots`, which writes one for every state.

Playwright writes the tree with roles, names, states and order. Chromium's own tree adds what such a text leaves out: which
element has the focus, what describes a field, and which regions are announced when they change.

A snapshot is of the page before anybody touches it, in English, with what is folded opened. The states have fixed names and
times, and the window a fixed time zone, so nothing in it differs from one run to the next; addresses are left out, since
they are not read aloud.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.gallery import Appearance, Beholder, served
from tests.browser.stage import FLAGS, HEADLESS_SHELL
from tests.browser.states import STATES
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path


SNAPSHOTS: Final = ROOT / "tests" / "browser" / "snapshots"
PLAIN: Final = Appearance()
UNFOLD: Final = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
KEY: Final = re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])")
"""a signing key's identifier, another one in each run"""
ADDRESS: Final = re.compile(r"^ *- /url: .*\n", re.MULTILINE)
REFERENCES: Final = re.compile(r"\b6b49[0-9a-f]{12}\b")
"""of requests to a seeded provider, whose last digits differ from run to run"""
SECRETS: Final = re.compile(r"\b[a-z2-7]{4}(?:-[a-z2-7]{4}){3}\b|\b[A-Z2-7]{4}(?: [A-Z2-7]{4}){7}\b")
"""recovery codes, and the key of an app"""
CHILDLESS: Final = re.compile(r"^( *)(- .*):\n(?!\1  )", re.MULTILINE)
"""a line that promises lines below it, where none are left"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An element as assistive technology is told of it."""

    role: str
    name: str
    description: str
    properties: dict[str, Any]

    def __str__(self) -> str:
        return f'{self.role} "{self.name}"' if self.name else self.role


def nodes(page: Page) -> list[Node]:
    """Chromium's own accessibility tree in reading order, without the text of elements."""
    session = page.context.new_cdp_session(page)
    found = {each["nodeId"]: each for each in session.send("Accessibility.getFullAXTree")["nodes"]}
    session.detach()
    ordered, waiting = [], [next(iter(found))]
    while waiting:
        each = found[waiting.pop()]
        waiting += reversed([child for child in each.get("childIds", ()) if child in found])
        role = str(each.get("role", {}).get("value", ""))
        if not each["ignored"] and role not in ("StaticText", "InlineTextBox"):
            properties = {one["name"]: one["value"].get("value") for one in each.get("properties", ())}
            name, description = (str(each.get(key, {}).get("value") or "") for key in ("name", "description"))
            ordered.append(Node(role=role, name=name, description=description, properties=properties))
    return ordered


def tree(page: Page) -> str:
    """The page's roles, names, states and order, without addresses and references."""
    written = page.locator("body").aria_snapshot() + "\n"
    return REFERENCES.sub(
        "REFERENCE", KEY.sub("KEY", SECRETS.sub("SECRET", CHILDLESS.sub(r"\1\2\n", ADDRESS.sub("", written))))
    )


def opened(beholder: Beholder, state: str) -> Page:
    """Open the page of a state, with everything unfolded and the focus where it belongs."""
    page = beholder.look(state, PLAIN)
    if getattr(STATES[state], "errors", ()):
        # autofocus comes with the first picture that the browser makes of the page
        expect(page.locator(".error-summary")).to_be_focused()
    page.evaluate(UNFOLD)
    return page


def snapshot(page: Page, all_nodes: list[Node]) -> str:
    """The YAML text of what is heard on an opened page with these nodes."""
    read_only = [str(each) for each in all_nodes if each.properties.get("readonly")]
    described = [f"{each}: {each.description}" for each in all_nodes if each.description]
    announced = [f"{each} ({each.properties['live']})" for each in all_nodes if "live" in each.properties]
    # the document itself has the focus, too, where an element of it has
    focused = [str(each) for each in all_nodes[1:] if each.properties.get("focused")]
    head = {
        "title": page.title(),
        "focus": focused,
        "read only": read_only,
        "descriptions": described,
        "live regions": announced,
    }
    shown = {key: value for key, value in head.items() if value}
    return yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=1000) + "tree:\n" + tree(page)


def path(state: str) -> Path:
    """Where a state's snapshot is kept."""
    return SNAPSHOTS / f"{state}.yaml"


def main() -> int:
    """Write them all again, and remove those that have no state."""
    SNAPSHOTS.mkdir(exist_ok=True)
    changed = 0
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=HEADLESS_SHELL, args=FLAGS)
        beholder = Beholder(browser=browser, address=address)
        for state in STATES:
            page = opened(beholder, state)
            now = snapshot(page, nodes(page))
            if not path(state).exists() or path(state).read_text(encoding="utf-8") != now:
                path(state).write_text(now, encoding="utf-8")
                changed += 1
        browser.close()
    for left in set(SNAPSHOTS.glob("*.yaml")) - {path(state) for state in STATES}:
        left.unlink()
        changed += 1
    sys.stdout.write(f"{len(STATES)} snapshots, {changed} changed: {SNAPSHOTS.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
