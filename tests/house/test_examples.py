"""Examples of a relying party stay short enough to read at once."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = {
    "node/rp.mjs": 149,
    "python/rp.py": 149,
    "python/plain_rp.py": 149,
    "java/RelyingParty.java": 149,
    "go/main.go": 167,
}
"""each is one file; no Go library does DPoP, pushed requests or private_key_jwt for it"""


@pytest.mark.parametrize(("name", "most"), MOST_LINES.items())
def test_an_example_is_one_short_file(name: str, most: int) -> None:
    """docs/relying-parties.md."""
    lines = (EXAMPLES / name).read_text().splitlines()
    assert len(lines) <= most
    assert max(len(line.expandtabs(2)) for line in lines) <= 130


def test_the_folder_of_each_language_has_one_program() -> None:
    """docs/relying-parties.md: other files of Python are tests or other subjects."""
    assert [path.name for path in (EXAMPLES / "node").glob("*.mjs")] == ["rp.mjs"]
    assert [path.name for path in (EXAMPLES / "go").glob("*.go")] == ["main.go"]
    assert [path.name for path in (EXAMPLES / "java").glob("*.java")] == ["RelyingParty.java"]
