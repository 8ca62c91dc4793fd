"""The documentation as a site: each page is there, whole, and every link of it leads somewhere inside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin, urlsplit
from zipfile import ZipFile

import pytest

from corpid import __version__
from scripts import documentation
from tests.house.source import ROOT, listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.full

FOREIGN: Final = {"https", "http", "mailto"}


class Links(HTMLParser):
    """What a page of HTML leads to, what it loads, and its own anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        elif tag in {"link", "script", "img", "iframe", "source"}:
            self.loaded += [
                found[name] for name in ("href", "src") if name in found and found.get("rel") != "canonical"
            ]


@pytest.fixture(scope="module")
def site() -> Path:
    assert documentation.main() == 0
    return documentation.SITE / __version__


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}


def test_every_document_is_a_page_of_one_chapter(site: Path) -> None:
    named = [page for pages in documentation.chapters().values() for page in pages]
    documents = {page.relative_to(documentation.DOCS).as_posix() for page in documentation.DOCS.rglob("*.md")}
    assert len(named) == len(set(named))
    assert documents - set(named) == {page for page in documents if page.startswith("decisions/")}
    assert all((site / documentation.address(page) / "index.html").exists() for page in documents)


def test_every_page_is_there_as_markdown_and_in_the_summary_for_programs(site: Path) -> None:
    summary = (site / "llms.txt").read_text(encoding="utf-8")
    for _, target in re.findall(r"- \[([^\]]+)\]\(([^)]+)\): .+\.", summary):
        assert (site / target).read_text(encoding="utf-8").startswith("# "), target
    assert summary.count("\n- ") == sum(map(len, documentation.chapters().values()))


def _broken(site: Path, pages: dict[Path, Links]) -> Iterator[str]:
    for page, links in pages.items():
        here = "/" + page.relative_to(site).as_posix().removesuffix("index.html")
        for target in (*links.targets, *links.loaded):
            if urlsplit(target).scheme in FOREIGN | {"data"}:
                continue
            path, anchor = urlsplit(urljoin(here, target)).path, urlsplit(target).fragment
            found = site / unquote(path).lstrip("/")
            found = found / "index.html" if found.is_dir() else found
            if not found.exists() or (anchor and found in pages and unquote(anchor) not in pages[found].anchors):
                yield f"{here}: {target}"


def test_every_link_of_the_site_leads_to_a_page_and_an_anchor_of_it(site: Path, pages: dict[Path, Links]) -> None:
    assert len(pages) > 40
    broken = list(_broken(site, pages))
    assert not broken, listed(broken)


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Links]) -> None:
    loaded = {target for links in pages.values() for target in links.loaded if urlsplit(target).scheme in FOREIGN}
    assert not loaded


def test_the_versions_that_are_there_are_offered(site: Path) -> None:
    """With the newest first, to which the first page leads."""
    offered = json.loads((site.parent / "versions.json").read_text(encoding="utf-8"))
    assert {each["version"] for each in offered} == {each.name for each in site.parent.iterdir() if each.is_dir()}
    assert f'url={offered[0]["version"]}/"' in (site.parent / "index.html").read_text(encoding="utf-8")


def test_what_is_linked_to_outside_the_documents_lies_next_to_them(site: Path) -> None:
    assert (site / "files/examples/python/rp.py").read_bytes() == (ROOT / "examples/python/rp.py").read_bytes()
    assert (site / "files/examples/themes.zip").stat().st_size > 1000
    names = ZipFile(site / "files/examples/bruno.zip").namelist()
    assert "current/2 par.bru" in names
    assert not [name for name in names if "keys.json" in name]
