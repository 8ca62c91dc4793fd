"""The tables of account, portal and console: one declaration for one name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid.web.account import endpoints as account
from corpid.web.context import UPLOAD_PAGES
from corpid.web.directory import endpoints as portal
from corpid.web.operations import endpoints as console

if TYPE_CHECKING:
    from collections.abc import Iterator

SITES: dict[str, Any] = {"account": account._SITE, "portal": portal._SITE, "console": console._SITE}


@pytest.mark.parametrize("name", SITES)
def test_pages_and_changes_of_a_site_have_names_of_their_own(name: str) -> None:
    """docs/architecture.md, "One declaration": a second one would hide the first without a word."""
    site = SITES[name]
    for kind in ("pages", "changes"):
        counted = Counter(each for section in site.sections for each in getattr(section, kind))
        assert [each for each, number in counted.items() if number > 1] == []


def test_pages_that_take_a_file_are_those_whose_body_may_be_large() -> None:
    """D81."""
    pages = {name: page for section in SITES["portal"].sections for name, page in section.pages.items()}
    assert {name for name, page in pages.items() if page.upload} == set(UPLOAD_PAGES)


_NOT_KEPT: Final = frozenset({"entity", "invited"})
"""whom a sign-in leads back to, and the number in a sentence on what was just changed"""


def _read(folder: Path) -> Iterator[str]:
    """The names in `….query.get("name")`, `….query["name"]` and `"name" in ….query`."""
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[ast.Constant(value=str(name)), *_]):
                    pass
                case ast.Subscript(value=of, slice=ast.Constant(value=str(name))):
                    pass
                case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()], comparators=[of]):
                    pass
                case _:
                    continue
            if ast.unparse(of).rpartition(".")[2] == "query":
                yield name


@pytest.mark.parametrize(("name", "folder"), [("portal", portal), ("console", console), ("account", account)])
def test_what_a_page_reads_from_its_address_stays_in_another_language(name: str, folder: Any) -> None:
    """docs/accessibility.md: a link to another language leads to the same page, with its search and filters."""
    declared = {each for section in SITES[name].sections for each in section.filters}
    read = set(_read(Path(folder.__file__).parent))
    assert read - declared - _NOT_KEPT == set()
    assert name == "account" or "after" in read
