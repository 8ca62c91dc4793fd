"""The Bruno collections: as the declarations have them, and a whole sign-in with each at a running provider."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from corpid.rules.oauth.generations import GENERATIONS
from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.interfaces import INTERFACES
from scripts.reference import bruno
from scripts.reference.endpoints import endpoints
from tests.interop.node_process import NODE
from tests.reference import recording
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.reference.recording import Recorder

pytestmark = pytest.mark.full

BLOCK = re.compile(r"^([\w:-]+) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
RUNNER = """
const { script, variables, environment, folder, res, now } = JSON.parse(process.argv[1])
Date.now = () => now * 1000
const printed = []
const bru = { getVar: (name) => variables[name], getEnvVar: (name) => environment[name], cwd: () => folder,
              setVar: (name, value) => { variables[name] = value } }
const requireLocal = require('node:module').createRequire(folder + '/')
console.log = (text) => printed.push(text)
new Function('require', 'bru', 'res', script)(requireLocal, bru, res)
process.stdout.write(JSON.stringify({ variables, printed }))
"""


def blocks(text: str) -> dict[str, str]:
    return dict(BLOCK.findall(text))


def pairs(block: str) -> dict[str, str]:
    """Those that are switched on."""
    lines = [line.strip() for line in block.splitlines()]
    parts = [line.partition(":") for line in lines if line and not line.startswith("~")]
    return {name: value.strip() for name, _, value in parts}


class Collection:
    """A collection in a folder of its own, sent as Bruno sends it."""

    def __init__(self, name: str, folder: Path, now: Callable[[], float], **environment: str) -> None:
        shutil.copytree(bruno.FOLDER / name, folder, dirs_exist_ok=True)
        self.folder, self.now = folder, now
        shown = pairs(blocks((folder / "environments" / "demo.bru").read_text())["vars"])
        self.environment = {**shown, **environment}
        self.variables: dict[str, Any] = {}
        self.printed: list[str] = []

    def script(self, block: str | None, res: dict[str, Any] | None = None) -> None:
        if block is None:
            return
        told = {"script": block, "variables": self.variables, "environment": self.environment,
                "folder": str(self.folder), "res": res, "now": self.now()}  # fmt: skip
        ran = subprocess.run([NODE, "-e", RUNNER, json.dumps(told)], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        answer = json.loads(ran.stdout)
        self.variables, self.printed = answer["variables"], answer["printed"]

    def filled(self, text: str) -> str:
        known = {**self.environment, **self.variables}
        return re.sub(r"\{\{(\w+)\}\}", lambda found: str(known[found[1]]), text)

    async def send(self, name: str, http: httpx.AsyncClient) -> httpx.Response:
        [file] = [path for path in self.folder.glob("*.bru") if path.stem.endswith(f" {name}")]
        parts = blocks(file.read_text())
        await asyncio.to_thread(self.script, parts.get("script:pre-request"))
        method = "post" if "post" in parts else "get"
        form = {key: self.filled(value) for key, value in pairs(parts.get("body:form-urlencoded", "")).items()}
        headers = {key: self.filled(value) for key, value in pairs(parts.get("headers", "")).items()}
        url = self.filled(pairs(parts[method])["url"])
        answer = await http.request(method, url, headers=headers, data=form or None)
        is_json = "json" in answer.headers.get("content-type", "")
        seen = {"status": answer.status_code, "body": answer.json() if is_json else answer.text}
        await asyncio.to_thread(self.script, parts.get("script:post-response"), seen)
        return answer


def test_the_collections_are_as_the_declarations_have_them() -> None:
    """`make tables` writes them."""
    made = bruno.files()
    stale = [str(path) for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert not stale, f"{stale}: run `make tables`"
    known = {path for name in GENERATIONS for path in (bruno.FOLDER / name).rglob("*") if path.is_file()}
    assert {path for path in known if not path.name.startswith("keys.json")} == set(made)


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_endpoint_and_parameter_is_in_the_collection(name: str) -> None:
    for endpoint in endpoints(GENERATIONS[name]):
        [file] = [path for path in (bruno.FOLDER / name).glob("*.bru") if path.stem.endswith(f" {endpoint.name}")]
        text = file.read_text(encoding="utf-8")
        for parameter in endpoint.parameters:
            assert bool(re.search(rf"^  ~?{parameter.name}: ", text, re.MULTILINE)) is not parameter.refused, (
                parameter.name
            )


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
async def test_a_sign_in_with_the_collection_reaches_every_endpoint(name: str, tmp_path: Path) -> None:
    """Spec 3: from the request to the resources, with keys that the collection makes."""

    async def sign_in(recorder: Recorder) -> None:
        issuer = recorder.issuer
        collection = Collection(name, tmp_path, recorder.now, issuer=issuer)
        await asyncio.to_thread(collection.script, "require('./corpid.js').keys(bru.cwd())")
        await recorder.register(
            collection.environment["client_id"], collection.environment["redirect_uri"],
            json.loads((tmp_path / "keys.json.public").read_text()),
        )  # fmt: skip
        sent: dict[str, httpx.Response] = {}
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            for endpoint in endpoints(GENERATIONS[name]):
                sent[endpoint.name] = await collection.send(endpoint.name, http)
                if endpoint.name == "authorize":
                    [url] = collection.printed
                    callback = await recorder.visit(url)
                    assert callback.state == collection.variables["state"]
                    collection.environment["code"] = dict(callback.carried()["query"])["code"]
        for endpoint in endpoints(GENERATIONS[name]):
            expected = 303 if endpoint.name == "authorize" else endpoint.success.status
            assert sent[endpoint.name].status_code == expected, (endpoint.name, sent[endpoint.name].text)
        assert sent["token"].json()["token_type"] == GENERATIONS[name].scheme
        resource = sent[GENERATIONS[name].resources[0].name]
        claims = resource.json() if "json" in resource.headers["content-type"] else jwt.peek(resource.text)[1]
        assert claims is not None and claims["aud"] == "bruno-rp"
        assert urlsplit(claims["iss"]).netloc == urlsplit(issuer).netloc

    async with recording.recorder(INTERFACES[name]) as recorder:
        await sign_in(recorder)
