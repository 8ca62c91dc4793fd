"""Commands and settings of a registered client: copied, they run (D66)."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Final

import msgspec
import pytest
import yaml

from corpid.rules.directory.document import parse
from corpid.rules.oauth.generations import CURRENT, LEGACY
from corpid.rules.oauth.records import Client
from corpid.web.pages.snippets import EXAMPLES, SCOPES, Example, curl_with, snippets
from corpid_dev.web.clients import order
from tests.developer.scene import demo_world
from tests.developer.test_clients import CLIENTS, SHOP
from tests.house.source import ROOT
from tests.sign_in.world import BASE

ISSUER: Final = "http://localhost:8400"
SHOP_CLIENT: Final = Client(
    client_id="shop",
    name="Shop's",
    redirect_uris=("https://shop.example/cb", "http://127.0.0.1:8499/callback"),
    jwks=json.dumps(SHOP["jwks"]),
    scopes=SCOPES[True],
    services=("PERMITS",),
)
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.file)


def text_of(title: str, client: Client = SHOP_CLIENT) -> str:
    return next(each.text for each in snippets(client, ISSUER, CURRENT) if each.title == title)


def variables(text: str) -> dict[str, str]:
    """The variables that a command is run with."""
    words = shlex.split(text.replace("\\\n", ""))
    return dict(each.split("=", 1) for each in words if re.match(r"[A-Z_]+=", each))


@each_example
def test_an_example_is_run_with_the_variables_that_its_file_reads(example: Example) -> None:
    """D66: each is one that the file names, with this client's value."""
    source = (ROOT / "examples" / example.folder / example.file).read_text()
    given = variables(text_of(example.title))
    assert given == {
        "ISSUER": ISSUER, "CLIENT_ID": "shop", "PORT": "8499", "KEYS": "keys.json", "GENERATION": "current",
    }  # fmt: skip
    for name in given:
        assert re.search(rf"\b{name}\b", source), name


@each_example
def test_its_commands_are_those_of_the_guide(example: Example) -> None:
    """docs/relying-parties.md: each line stands there, too."""
    guide = (ROOT / "docs" / "relying-parties.md").read_text()
    for line in filter(None, [*example.prepare.splitlines(), example.run]):
        assert line in guide, line
    source = (ROOT / "examples" / example.folder / example.file).read_text()
    assert str(example.port) in source


@each_example
def test_an_example_requests_no_scope_that_a_snippet_does_not_ask_for(example: Example) -> None:
    """D66: the note about missing scopes is complete."""
    source = (ROOT / "examples" / example.folder / example.file).read_text()
    named = re.findall(r"\b(?:user|entity)\.[a-z_.]+(?=[ '\"])", source)
    assert {each for each in named if each.startswith(("user.name", "entity.basic"))} <= set(SCOPES[True])


def test_what_an_example_lacks_is_said() -> None:
    """D66: its redirect URI, its scopes, its private keys."""
    client = msgspec.structs.replace(
        SHOP_CLIENT,
        redirect_uris=("https://shop.example/cb",),
        scopes=("openid",),
        jwks=None,
        jwks_uri="https://a.example/j",
    )
    node = snippets(client, ISSUER, CURRENT)[0]
    assert "http://127.0.0.1:8410/callback, too" in node.note
    assert "authinfo" in node.note
    assert "private keys" in node.note
    assert snippets(SHOP_CLIENT, ISSUER, CURRENT)[0].note == ""


def test_the_metadata_names_the_algorithms_of_the_keys() -> None:
    """RFC 7591 §2, OpenID Connect Registration 1.0 §2."""
    found = json.loads(text_of("Another library: client metadata"))
    assert (found["issuer"], found["client_id"]) == (ISSUER, "shop")
    assert (found["token_endpoint_auth_signing_alg"], found["id_token_encrypted_response_alg"]) == (
        "ES256", "ECDH-ES+A256KW",
    )  # fmt: skip


def test_the_directory_file_registers_the_same_client() -> None:
    """docs/directory.md."""
    text = text_of("Directory file (YAML)")
    document = parse(text.encode(), "")
    fields = document.entries["client"]["shop",].fields
    assert (fields["name"], fields["redirect_uris"]) == ("Shop's", SHOP_CLIENT.redirect_uris)
    assert yaml.safe_load(text)["clients"]["shop"]["jwks"] == SHOP["jwks"]


async def test_the_order_registers_the_same_client() -> None:
    """D66: what the shell gives curl is accepted, and changes nothing."""
    words = shlex.split(order(SHOP_CLIENT, BASE, curl_with(None)).text)
    assert CLIENTS in words
    body = json.loads(words[words.index("-d") + 1])

    async with demo_world() as made:
        http = await made.http()
        assert [(await http.post(CLIENTS, json=body)).status_code for _ in range(2)] == [201, 200]
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert msgspec.structs.replace(found, jwks=None) == msgspec.structs.replace(SHOP_CLIENT, jwks=None)


def test_curl_has_every_parameter_of_the_push() -> None:
    """Spec 4.1: what a client makes anew for each sign-in is a variable."""
    text = text_of("curl")
    for name in (*CURRENT.required_parameters, "client_assertion", "code_challenge", "redirect_uri"):
        assert f'"{name}=' in text
    assert f"{ISSUER}/request " in text
    legacy = next(each.text for each in snippets(SHOP_CLIENT, ISSUER, LEGACY) if each.title == "curl")
    assert "client_assertion" not in legacy
    assert "user.name" not in legacy


def test_a_shell_runs_nothing_of_a_redirect_uri() -> None:
    """RFC 3986 allows $, ( and ), so they can be registered."""
    uri = "https://shop.example/cb?$(id)&a='b'&c=!d;e"
    text = text_of("curl", msgspec.structs.replace(SHOP_CLIENT, redirect_uris=(uri,)))
    push = "curl -s " + text.rpartition("curl -s ")[2]
    program = f'STATE=s NONCE=n; curl() {{ printf "%s\\0" "$@"; }}; {push}'
    ran = subprocess.run(["/bin/bash", "-c", program], capture_output=True, check=True, text=True)
    words = ran.stdout.split("\0")
    assert f"redirect_uri={uri}" in words
    assert "state=s" in words
