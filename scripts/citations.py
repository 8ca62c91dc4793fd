"""Citations of docs/specification: what its headings define, and what the project's files cite.

A citation is `Spec 4.1`, `D18` or `R-12.2`, or, of a heading without a number, `Spec "Side by side"`. Lists and ranges count for each of
their numbers: `Spec 4.1, 4.3`, `Spec 7.1 to 7.3`, `D44-D46`. docs/specification/README.md explains them to readers.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
SPECIFICATION: Final = ROOT / "docs" / "specification"
_FOLDERS: Final = ("src", "tests", "docs", "examples", "scripts", "benchmarks")
_SUFFIXES: Final = frozenset({".css", ".go", ".html", ".java", ".js", ".md", ".mjs", ".py", ".toml", ".yaml"})
_FOREIGN: Final = frozenset({"node_modules", ".venv", "lib", "__pycache__"})
_ABOUT_CITATIONS: Final = frozenset({"scripts/citations.py", "tests/house/test_citations.py"})
"""files whose citations are examples"""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_HEADING: Final = re.compile(rf"^#+ (?:({_NUMBER})|(D[1-9]\d*|R-{_NUMBER}))? ?(.*)$", re.MULTILINE)
_CHAPTERS: Final = re.compile(rf"\bSpec ({_NUMBER}(?:(?:, | to |-){_NUMBER}\b)*)")
_WORDS: Final = re.compile(r'\bSpec "([^"]+)"')
_DECISIONS: Final = re.compile(r"(?<![\w:.])D([1-9]\d?)\b(?:(?:-| to )D([1-9]\d?)\b)?")
_FACTS: Final = re.compile(rf"(?<![\w-])R-({_NUMBER})(?![\w-])")
_RANGE: Final = re.compile(rf"({_NUMBER})(?: to |-)({_NUMBER})")


def defined(text: str) -> list[str]:
    """What the headings of a file of the specification define, as it is cited."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [
        f"Spec {chapter}" if chapter else row or f'Spec "{title}"' for chapter, row, title in _HEADING.findall(bare)
    ]


def definitions() -> Counter[str]:
    """How often each citation is defined in docs/specification."""
    return Counter(
        each for path in sorted(SPECIFICATION.glob("*.md")) for each in defined(path.read_text(encoding="utf-8"))
    )


def cited(text: str) -> set[str]:
    """What a text cites, one by one."""
    joined = re.sub(r"\s+(?:#:? |// |\* )?\s*", " ", text)
    found = {f'Spec "{title}"' for title in _WORDS.findall(joined)}
    for numbers in _CHAPTERS.findall(joined):
        found |= {f"Spec {number}" for part in numbers.split(", ") for number in _numbers(part)}
    for first, last in _DECISIONS.findall(joined):
        found |= {f"D{number}" for number in range(int(first), int(last or first) + 1)}
    return found | {f"R-{match[1]}" for match in _FACTS.finditer(joined) if not _is_quoted(joined, match)}


def _numbers(part: str) -> Iterator[str]:
    """The number, or those of a range within one chapter."""
    ends = _RANGE.fullmatch(part)
    if ends is None:
        yield part
        return
    chapter, _, first = ends[1].rpartition(".")
    for number in range(int(first), int(ends[2].rpartition(".")[2]) + 1):
        yield f"{chapter}.{number}" if chapter else str(number)


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """A string of its own, such as the registration number "R-77"."""
    return text[match.start() - 1 : match.start()] == '"' == text[match.end() : match.end() + 1]


@cache
def citations() -> dict[str, list[str]]:
    """Each citation with the files, relative to the project, that have it."""
    found: dict[str, list[str]] = {}
    for path in files():
        for each in cited((ROOT / path).read_text(encoding="utf-8")):
            found.setdefault(each, []).append(path)
    return found


def files() -> Iterator[str]:
    """The files, relative to the project, in which citations are looked for."""
    for top in _FOLDERS:
        for folder, inside, names in os.walk(ROOT / top):
            inside[:] = sorted(set(inside) - _FOREIGN)
            relative = Path(folder).relative_to(ROOT)
            paths = {(relative / name).as_posix() for name in names if Path(name).suffix in _SUFFIXES}
            yield from sorted(paths - _ABOUT_CITATIONS)


def uncited() -> list[str]:
    """The numbers of docs/specification that nothing outside it cites."""
    used = {
        each for each, paths in citations().items() if any(not path.startswith("docs/specification/") for path in paths)
    }
    return [each for each in definitions() if each not in used and '"' not in each]
