"""What code, tests and documents cite stands in docs/specification (docs/specification/README.md)."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

import pytest

from scripts.citations import citations, cited, defined, definitions, files, uncited
from tests.house.source import ROOT, listed, modules, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOCUMENT: Final = re.compile(
    r'\b((?:docs/[\w/-]+|SECURITY|CONTRIBUTING)\.md|docs/decisions/\d{4})(?:,? "([^"]+)"(?: and "([^"]+)")?)?'
)


def broken(text: str) -> Iterator[str]:
    """The documents of this project that a text names and that are not there, or lack the heading that it names."""
    for name, *headings in _DOCUMENT.findall(re.sub(r"\s+(?:# )?\s*", " ", text)):
        path = next(iter(ROOT.glob(name if name.endswith(".md") else f"{name}-*.md")), None)
        there = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path else []
        if path is None or not {each for each in headings if each}.issubset(there):
            yield f"{name} {headings}"


def cited_twice(docstring: str) -> set[str]:
    """What both the first paragraph of a docstring and its "Source:" cite."""
    text, _, sources = docstring.rpartition("Source:")
    return cited(text.partition("\n\n")[0]) & cited(sources) if text else set()


def test_every_citation_is_a_heading_of_the_specification() -> None:
    """A newcomer who reads a number in the code finds its rule."""
    there = definitions()
    found = citations()
    assert len(found) > 100
    wrong = [f"{each}: {', '.join(paths[:5])}" for each, paths in sorted(found.items()) if there[each] != 1]
    assert not wrong, f"cited, and not the heading of exactly one part of docs/specification: {listed(wrong)}"


def test_every_document_that_code_cites_is_there_with_its_heading() -> None:
    """`docs/architecture.md, "Layers"`, `docs/decisions/0007`; links of documents have tests of their own."""
    wrong = [
        f"{path}: {each}"
        for path in files()
        if not path.startswith("docs/")
        for each in broken((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not wrong, listed(wrong)


def test_no_docstring_cites_a_source_twice() -> None:
    """In its first sentence and after "Source:"."""
    twice = [
        f"{module.path}: {', '.join(sorted(both))}"
        for module in modules()
        for node in nodes(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (both := cited_twice(ast.get_docstring(node) or ""))
    ]
    assert not twice, listed(twice)


def test_a_source_that_is_cited_twice_is_seen() -> None:
    """Otherwise the test before would prove nothing."""
    assert cited_twice("Keys (D45).\n\nSource: D45, D46") == {"D45"}
    assert not cited_twice("Keys. Source: D45") and not cited_twice("Keys (D46).\n\nNot D45 alone. Source: D45")


@pytest.mark.parametrize(
    "text", [f"docs/{'none'}.md", f"docs/decisions/{9999}", f'docs/architecture.md,\n    "{"No such"} heading"']
)
def test_a_document_that_is_not_there_is_seen(text: str) -> None:
    """Otherwise the test before would prove nothing."""
    assert list(broken(text))
    assert not list(
        broken('docs/architecture.md, "Layers" and "Packages"; docs/decisions/0007; CONTRIBUTING.md, "Style"')
    )


def test_every_number_stands_once() -> None:
    twice = [each for each, count in definitions().items() if count > 1 and '"' not in each]
    assert not twice, listed(twice)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(RFC 9126 §2, Spec 4.1)", {"Spec 4.1"}),
        ("Spec 4.1, 4.3; D5", {"Spec 4.1", "Spec 4.3", "D5"}),
        ("Spec 2.3, 8; and Spec 5 rule 3", {"Spec 2.3", "Spec 8", "Spec 5"}),
        ("Spec 7.1 to 7.3, Spec 2.8-2.9", {"Spec 7.1", "Spec 7.2", "Spec 7.3", "Spec 2.8", "Spec 2.9"}),
        ("RFC 9449 §7, Spec\n    4.4, D22", {"Spec 4.4", "D22"}),
        ("# RFC 9449, Spec\n    # 4.4", {"Spec 4.4"}),
        ("D8, D64", {"D8", "D64"}),
        ("D18-D20 and D44 to D45", {"D18", "D19", "D20", "D44", "D45"}),
        ('"""R-12.2, R-1."""', {"R-12.2", "R-1"}),
        ('Spec "Side by side", Spec\n    "No downgrade"', {'Spec "Side by side"', 'Spec "No downgrade"'}),
        (f"D{99}, Spec 4.{99}, R-{99}", {f"D{99}", f"Spec 4.{99}", f"R-{99}"}),
    ],
)
def test_a_citation_is_seen_in_every_form(text: str, expected: set[str]) -> None:
    """Otherwise the first test would prove nothing."""
    assert cited(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'registration_number="R-77"',
        "FOR-1, R-x, R-1a, A-R-1",
        "D0, D123, ED25519, 0xD4, 1:D43, urn.D1, U+2D12, D1x",
        "this specification, the Spec, Spec of 2 pages",
        'a "quoted" word',
    ],
)
def test_what_only_looks_like_a_citation_is_none(text: str) -> None:
    assert not cited(text)


def test_an_unknown_number_is_no_heading() -> None:
    """So the first test fails for it."""
    assert not cited(f'D{99}, Spec 4.{99}, R-{99}, Spec "{"Side"} by nobody"') & set(definitions())


def test_a_heading_defines_its_number_or_its_words() -> None:
    text = "# 2 Resources\n\n## 2.1 Paths\n\n### D18 Codes\n\n## R-12.2 Claims\n\n## Side by side\n\n```\n# 3 no heading\n```\n"
    assert defined(text) == ["Spec 2", "Spec 2.1", "D18", "R-12.2", 'Spec "Side by side"']


def test_numbers_without_a_citation_are_reported() -> None:
    """`make report` prints them; a number of the specification may stand for itself."""
    assert set(uncited()) <= set(definitions())
