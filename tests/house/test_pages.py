"""No page escapes the tests of looks and access: each view and each template has a state that is shown to them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING

import msgspec

import corpid.web
import corpid_dev.web
from corpid.web.pages.components import Component
from tests.browser import component_states
from tests.browser.states import STATES
from tests.house.source import KIT, SOURCE, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEMPLATES = tuple(source / "web" / "templates" for source in (SOURCE, KIT))
SHARED = {"base.html"}


def views() -> set[type]:
    """Every record below a package's web that names its template."""
    found = set()
    modules = [
        *pkgutil.walk_packages(corpid.web.__path__, "corpid.web."),
        *pkgutil.walk_packages(corpid_dev.web.__path__, "corpid_dev.web."),
    ]
    for module in modules:
        for one in vars(importlib.import_module(module.name)).values():
            if isinstance(one, type) and issubclass(one, msgspec.Struct) and isinstance(vars(one).get("template"), str):
                found.add(one)
    assert len(found) > 50, "views are no longer records"
    return found


def test_every_view_has_a_state_in_which_it_is_looked_at() -> None:
    missing = {each for each in views() if not issubclass(each, Component)} - {type(state) for state in STATES.values()}
    assert not missing, listed(sorted(f"{one.__module__}.{one.__qualname__}" for one in missing))


def shown_templates(part: object) -> Iterator[str]:
    """The templates of a page and of its components."""
    yield part.template  # type: ignore[attr-defined]
    for each in getattr(part, "parts", ()):
        if isinstance(each, Component):
            yield from shown_templates(each)


def _components(shown: object) -> Iterator[type]:
    """The components of a page, and those within them."""
    if isinstance(shown, Component):
        yield type(shown)
    if isinstance(shown, tuple):
        within: Iterable[object] = shown
    else:
        within = (getattr(shown, each) for each in getattr(shown, "__struct_fields__", ()))
    for each in within:
        yield from _components(each)


def test_every_component_is_in_the_gallery() -> None:
    """docs/architecture.md, "One page": somebody who looks for one finds what there is."""
    shown = {each for state in component_states.STATES.values() for each in _components(state)}
    there = {each for each in views() if issubclass(each, Component)}
    assert there - shown == set()


def test_every_template_has_a_state_in_which_it_is_looked_at() -> None:
    there = {
        path.relative_to(folder).as_posix()
        for folder in TEMPLATES
        for path in folder.rglob("*.html")
        if not path.name.startswith("_")
    }
    missing = there - SHARED - {template for state in STATES.values() for template in shown_templates(state)}
    assert not missing, listed(sorted(missing))


def test_what_cannot_be_undone_always_stands_beside_a_way_back() -> None:
    """docs/accessibility.md: Cancel is visible and plainly different."""
    actions = re.compile(r'<div class="actions">(.*?)</div>', re.DOTALL)
    every = [path for folder in TEMPLATES for path in folder.rglob("*.html")]
    found = [block for path in every for block in actions.findall(path.read_text())]
    destroying = [block for block in found if "button-danger" in block]
    assert destroying
    way_back = re.compile(r'<a class="button button-quiet" href=|parts\.back_button\(')
    without = [block for block in destroying if not way_back.search(block)]
    assert not without, listed(without)
