"""The JSON Schemas and TypeScript types of answers: packaged, and served in developer mode only (D66)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from corpid import settings
from corpid.rules.oauth.generations import GENERATIONS
from corpid_dev.relying_party.interfaces import CURRENT
from corpid_dev.web.documents import FILES
from scripts import tables
from tests.interop.node_process import NODE
from tests.reference import recording
from tests.tiers import first_or_full
from tests.world.clock import Clock
from tests.world.provider import RunningProvider, copied, started, template, temporary_directory

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

PATH = "/developer/schemas/"


def test_the_packaged_files_are_as_the_declarations_have_them() -> None:
    """`make tables` writes them."""
    made = tables.schemas()
    stale = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert not stale, f"{stale}: run `make tables`"
    assert {path.name for path in made} == set(FILES)


@pytest.mark.parametrize("name", GENERATIONS)
def test_each_schema_is_valid_and_every_definition_is_reachable(name: str) -> None:
    document = json.loads(FILES[f"{name}.json"][0])
    jsonschema_rs.meta.validate(document)
    for definition in document["$defs"]:
        jsonschema_rs.Draft202012Validator({**document, "$ref": f"#/$defs/{definition}"})


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
def test_the_types_are_typescript(name: str, tmp_path: Path) -> None:
    """Node's own parser takes them, and nothing but types is in them."""
    file = tmp_path / "types.ts"
    file.write_bytes(FILES[f"{name}.d.ts"][0])
    script = "const m = require('node:module'); process.stdout.write(m.stripTypeScriptTypes(require('node:fs').readFileSync(process.argv[1], 'utf8')))"
    result = subprocess.run([NODE, "--no-warnings", "-e", script, file], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rest = [line for line in result.stdout.splitlines() if line.strip() and not line.startswith(("//", "/**"))]
    assert not rest


async def test_they_are_served_in_developer_mode() -> None:
    async with recording.recorder(CURRENT) as recorder:
        party = recorder.party()
        listed = (await party.http.get(party.issuer + PATH)).json()["files"]
        assert listed == sorted(FILES)
        for name in listed:
            answer = await party.http.get(f"{party.issuer}{PATH}{name}")
            assert (answer.status_code, answer.content) == (200, FILES[name][0])
            assert answer.headers["cache-control"] == "no-store"
        assert (await party.http.get(f"{party.issuer}{PATH}other.json")).status_code == 404
        without_slash = await party.http.get(party.issuer + PATH.rstrip("/"))
        assert (without_slash.status_code, without_slash.headers["location"]) == (303, PATH)


async def test_a_browser_gets_pages_that_lead_to_every_file_request_and_object() -> None:
    """D66: a page for each generation, on which no link leads nowhere."""
    async with recording.recorder(CURRENT) as recorder:
        party = recorder.party()
        headers = {"Accept": "text/html"}
        listed = (await party.http.get(party.issuer + PATH, headers=headers)).text
        assert all(f'href="{PATH}{name}"' in listed for name in (*FILES, *GENERATIONS))
        for name in GENERATIONS:
            page = (await party.http.get(f"{party.issuer}{PATH}{name}", headers=headers)).text
            document = json.loads(FILES[f"openapi-{name}.json"][0])
            assert all(
                f"{method.upper()} {path}</code>" in page for path, some in document["paths"].items() for method in some
            )
            anchors = re.findall(r' id="([^"]+)"', page)
            assert set(document["components"]["schemas"]) <= set(anchors)
            assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
            assert len(anchors) == len(set(anchors))


@pytest.mark.parametrize("path", [PATH, f"{PATH}current.json", "/developer/schemas", "/developer/"])
async def test_outside_developer_mode_there_is_nothing(path: str) -> None:
    """D66: no header opens it either."""
    chosen = settings.load(
        data_dir=copied(template(), temporary_directory()),
        base_url="https://op.example",
        trusted_proxies=("10.0.0.1",),
    )
    async with started(RunningProvider, chosen, clock=Clock()) as running:
        http = running.connect()
        headers: dict[str, Any] = {"X-Forwarded-For": "127.0.0.1", "X-Developer-Mode": "true"}
        answers: list[httpx.Response] = [await http.get(path), await http.get(path, headers=headers)]
        assert [answer.status_code for answer in answers] == [404, 404]


@pytest.mark.full
def test_nothing_of_it_is_imported_before_it_is_asked_for() -> None:
    """D66."""
    code = "import sys, corpid.app, corpid.web.routes; sys.exit('corpid_dev.web.documents' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
