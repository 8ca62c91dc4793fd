"""docs/directory.md and examples/ stay in step with what a file may hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpid.jose.encryption import CONTENT_ENCRYPTIONS
from corpid.jose.keys import WRAPS
from corpid.rules.directory.document import SECTIONS, parse
from corpid.rules.oauth.client_registration import USERINFO_ALGS, USERINFO_ENCS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS
from scripts import tables

if TYPE_CHECKING:
    from collections.abc import Collection

ROOT = Path(__file__).parents[4]
REFERENCE = (ROOT / "docs" / "directory.md").read_text(encoding="utf-8").partition("## Reference")[2]


def documented(section: str) -> set[str]:
    """The keys in the tables below the heading of a section."""
    part = re.split(r"\n### ", REFERENCE)
    [text] = [each for each in part if each.startswith(f"`{section}`")]
    names = (row.split("|")[1] for row in text.splitlines() if row.startswith("| `"))
    return {name for cell in names for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("section", [name for name in SECTIONS if "." not in name])
def test_the_reference_names_every_key_and_no_other(section: str) -> None:
    assert documented(section) == set(SECTIONS[section].keys)


def test_the_table_of_a_client_is_as_its_declarations_have_it() -> None:
    """`make tables` writes it."""
    page = (ROOT / "docs" / "directory.md").read_text(encoding="utf-8")
    assert tables.written(page, tables.client_members()) == page


def test_the_tables_of_other_records_are_as_their_declarations_have_them() -> None:
    """`make tables` writes them."""
    page = (ROOT / "docs" / "directory.md").read_text(encoding="utf-8")
    assert all(f"<!-- keys of {name} -->" in page for name in SECTIONS if "." not in name and name != "clients")
    assert tables.with_fields(page) == page


@pytest.mark.parametrize(("file", "kind"), [("scim.md", "scim"), ("directory.md", "keys")])
def test_the_pages_on_scim_and_tables_name_every_detail_of_a_member(file: str, kind: str) -> None:
    """`make tables` writes them."""
    page = (ROOT / "docs" / file).read_text(encoding="utf-8")
    assert f"<!-- {kind} of details -->" in page
    assert tables.with_details(page) == page


@pytest.mark.parametrize("part", ["third_party.grants", "third_party.assignments"])
def test_the_reference_names_the_keys_of_third_parties(part: str) -> None:
    own = set(SECTIONS[part].keys) - set(SECTIONS["assignments"].keys)
    assert own <= documented("third_party")


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("generations", GENERATIONS),
        ("id_token_encryption_alg", WRAPS),
        ("id_token_encryption_enc", CONTENT_ENCRYPTIONS),
        ("userinfo_signing_alg", CLIENT_MEMBERS["userinfo_signing_alg"].words),
        ("userinfo_encryption_enc", USERINFO_ENCS),
        ("userinfo_encryption_alg", USERINFO_ALGS),
    ],
)
def test_a_file_may_name_and_the_reference_names_all_that_can_be_registered(key: str, known: Collection[str]) -> None:
    """D21, D22: the directory's law knows no cryptography, so these words stand there again."""
    [row] = [line for line in REFERENCE.splitlines() if line.startswith(f"| `{key}`")]
    for word in known:
        assert f"`{word}`" in row
        value = f"[{word}]" if key == "generations" else word
        assert parse(f"clients: {{rp: {{{key}: {value}}}}}".encode(), "f.yaml").entries_of("client")


@pytest.mark.parametrize("name", ["directory.yaml", "many-entities.yaml"])
def test_the_examples_can_be_read(name: str) -> None:
    content = (ROOT / "examples" / name).read_bytes()
    document = parse(content, name, plain_passwords=True)
    assert max(len(document.entries_of(kind)) for kind in ("membership", "entity")) >= 6
