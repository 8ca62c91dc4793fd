"""What the documents tell a reader to do can be done."""

from __future__ import annotations

import ast
import json
import re
import textwrap
import tomllib
from typing import TYPE_CHECKING, Any, Final

import yaml

from corpid import __version__
from corpid.rules.authentication.sign_in import InteractionOutcome
from corpid.web.authentication.endpoints import STEPS
from tests.cli.conftest import program
from tests.house.source import ROOT, SOURCE, documents, listed, shown_commands

if TYPE_CHECKING:
    from collections.abc import Callable

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\[[^\]]*\]\(([^)#:\s]*)#([^)\s]+)\)")


def complaint(line: str, command: Any) -> str | None:
    """What a command line names that the program does not have; None if it has everything."""
    words = re.split(r"\s[|>&;]", line)[0].split()[1:]
    while hasattr(command, "commands") and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        if words[0] not in command.commands:
            return f"{line}: no command '{words[0]}'"
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    named = {word.split("=")[0].strip("[]") for word in words if word.startswith(("--", "[--"))}
    unknown = named - options - {"--help"}
    return f"{line}: no option {sorted(unknown)}" if unknown else None


def test_documents_show_only_commands_that_exist() -> None:
    corpid = program()
    shown = [(path, line) for path, text in documents().items() for line in shown_commands(text, "corpid")]
    assert shown
    wrong = [(path, words) for path, line in shown if (words := complaint(line, corpid))]
    assert not wrong, listed(wrong)


def test_documents_show_only_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    shown = [
        (path, word)
        for path, text in documents().items()
        for line in shown_commands(text, "make")
        for word in line.split()[1:2]
        if "=" not in word
    ]
    assert shown
    wrong = [(path, word) for path, word in shown if word not in targets]
    assert not wrong, listed(wrong)


def test_every_link_of_a_document_leads_somewhere() -> None:
    broken = [
        (path, target)
        for path, text in documents().items()
        for target in LINK.findall(text)
        if "://" not in target and not target.startswith("mailto:")
        if not ((ROOT / path).parent / target).exists()
    ]
    assert not broken, listed(broken)


READERS: Final[dict[str, Callable[[str], object]]] = {
    "json": json.loads,
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


def test_every_code_sample_can_be_read() -> None:
    samples = [
        (path, language, textwrap.dedent(code))
        for path, text in documents().items()
        for language, code in re.findall(r"^ *```(\w+)\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
        if language in READERS
    ]
    assert len(samples) > 10
    wrong = []
    for path, language, code in samples:
        try:
            READERS[language](code)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises
            wrong.append((path, language, code[:80], str(error)))
    assert not wrong, listed(wrong)


def test_every_picture_is_shown_and_described() -> None:
    shown = [
        ((ROOT / path).parent / picture, words)
        for path, text in documents().items()
        for words, picture in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text)
    ]
    pictures = {path for path, _ in shown}
    assert not [path.name for path, words in shown if not words]
    assert not [path.name for path in (ROOT / "docs" / "images").iterdir() if path not in pictures]


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_anchor_of_a_link_is_a_heading() -> None:
    texts = documents()
    broken = [
        (path, f"{target}#{anchor}")
        for path, text in texts.items()
        for target, anchor in ANCHOR.findall(text)
        if (page := (ROOT / path).parent / target if target else ROOT / path).suffix == ".md"
        if anchor not in anchors(page.read_text(encoding="utf-8"))
    ]
    assert not broken, listed(broken)


def test_every_file_that_the_architecture_names_is_there() -> None:
    """docs/architecture.md names files relative to src/corpid, to src for the developer kit, or to the root."""
    spans = re.findall(r"`([\w.-]+(?:/[\w.-]*)*)`", documents()["docs/architecture.md"])
    named = [span for span in spans if "/" in span or re.search(r"\.(py|toml|md)$", span)]
    assert len(named) > 50
    missing = [name for name in named if not any((folder / name).exists() for folder in (ROOT, SOURCE, SOURCE.parent))]
    assert not missing, listed(missing)


def test_every_constant_that_a_page_for_maintainers_names_is_there() -> None:
    """`STEPS`, `_ENDINGS`: a table that was renamed is looked for in vain."""
    pages = {path: documents()[path] for path in ("docs/architecture.md", "docs/states.md")}
    named = [(path, name) for path, text in pages.items() for name in re.findall(r"`(_?[A-Z][A-Z_]{4,})`", text)]
    words = {name for path in SOURCE.rglob("*.py") for name in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    assert named
    missing = [(path, name) for path, name in named if name not in words]
    assert not missing, listed(missing)


def test_every_python_file_that_a_document_names_is_there() -> None:
    """Documents name files in full or by their last part; a file that moved or joined another is named anew."""
    there = {
        path.name
        for folder in ("src", "tests", "benchmarks", "scripts", "examples")
        for path in (ROOT / folder).rglob("*.py")
    }
    named = [
        (path, name) for path, text in documents().items() for name in re.findall(r"`(?:[\w.-]+/)*([\w-]+\.py)`", text)
    ]
    assert len(named) > 100
    missing = [(path, name) for path, name in named if name not in there]
    assert not missing, listed(missing)


def test_the_states_tell_every_step_of_a_sign_in_and_how_it_ends() -> None:
    """docs/states.md, "Transitions": one row at least for each POST, and for each outcome (D15)."""
    _, _, table = documents()["docs/states.md"].partition("## Transitions")
    rows = [line.split("|") for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    events, states = " ".join(row[2] for row in rows), " ".join(row[1] + row[3] for row in rows)
    untold = [f"`{step}`" for step in STEPS if f"`{step}`" not in events]
    untold += [f"`{outcome.name}`" for outcome in InteractionOutcome if f"`{outcome.name}`" not in states]
    assert not untold, listed(untold)


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{__version__}]" in documents()["CHANGELOG.md"]


def test_decisions_are_numbered_without_a_gap_and_have_the_form_of_a_record() -> None:
    """docs/decisions/README.md says what a record holds."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for path in records:
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert headings == ["Question", "Decision", "Why", "What follows"], path.name
