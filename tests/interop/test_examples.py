"""What all examples do as they stand in `examples/`, against a provider on real sockets."""

from __future__ import annotations

import re
import shlex
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid.rules.data_loss import KNOWN_AFTER_SECONDS
from corpid_dev.relying_party.interfaces import CURRENT, LEGACY, Interface
from tests.engines import RedisServer
from tests.interop.dishonest import pushed_with
from tests.interop.examples import EXAMPLES, KINDS, ROLES, Example, example, of_kind, run_documented
from tests.interop.running import PATIENCE, Provider, provider
from tests.interop.stock_clients import write_keys
from tests.tiers import first_or_full
from tests.web.test_workers import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    SettledClient = Callable[[str], Example]

ONE_OF_EACH = {"request", "userinfo", "authorization-info"}
"""what only one generation asks"""
MATRIX: list[tuple[str, str, dict[str, Any]]] = [
    ("ES256", "ECDH-ES+A256KW", {}),
    ("ES384", "ECDH-ES+A128KW", {"id_token_encryption_enc": "A256GCM"}),
    ("ES512", "ECDH-ES+A192KW", {"sector": "government"}),
    ("ES256", "ECDH-ES+A256KW", {"subject": "entity"}),
]
"""the client's signing algorithm, its key encryption algorithm, and how it is registered"""
NESTED_USERINFO = ("node", "ES256", "ECDH-ES+A256KW", {"userinfo_encryption_enc": "A256GCM"})
"""openid-client decrypts userinfo by itself"""

pytestmark = pytest.mark.usefixtures("honest")


each_language_or_one = pytest.mark.parametrize("language", [of_kind(each, full=each != "node") for each in KINDS])
"""`make test` runs one of them"""


@each_language_or_one
def test_a_newcomer_follows_the_guide_and_a_person_signs_in(running: Provider, tmp_path: Path, language: str) -> None:
    """docs/relying-parties.md, word for word: make keys, register, run it, sign in."""
    make, add = documented_commands()
    run_documented(make, running, tmp_path)
    with example(language, running.issuer, tmp_path / "keys.json", "node-rp-" + language) as client:
        own = {"node-rp": client.client_id, "http://127.0.0.1:8410/callback": client.redirect_uri}
        run_documented([own.get(word, word) for word in add], running, tmp_path)
        person = running.newcomer()
        assert client.sign_in(person).tells(person.name, "209900042K", *ROLES)


def documented_commands() -> list[list[str]]:
    """The two commands of the guide that make keys and register the example."""
    guide = (EXAMPLES.parent / "docs" / "relying-parties.md").read_text()
    found = re.findall(r"^corpid (client (?:.*\\\n)*.*)", guide, re.MULTILINE)
    return [shlex.split(each.replace("\\\n", "")) for each in found[:2]]


@pytest.mark.full
@each_language_or_one
def test_a_client_moves_from_legacy_to_current_as_it_stands(
    serving: Callable[..., Provider], tmp_path: Path, language: str
) -> None:
    """R-1: the same client_id, keys and redirect URI; one setting of the relying party."""
    running = serving(CURRENT, LEGACY)
    keys, client_id = write_keys(tmp_path / "keys.json"), f"{language}-mover"
    with example(language, running.issuer, keys, client_id, GENERATION="legacy") as client:
        both = {"generations": ["current", "legacy"], "legacy_until": "2099-12-31"}
        running.register(client.client_id, client.redirect_uri, client.jwks, **both)
        person = running.newcomer()
        assert client.sign_in(person).tells(person.name, "209900042K", *ROLES)
        assert [name for name, _ in running.wire.exchanges if name in ONE_OF_EACH] == ["authorization-info"]
    running.wire.honest()
    with example(language, running.issuer, keys, client_id, PORT=client.home.rsplit(":", 1)[1]) as moved:
        person = running.newcomer()
        assert moved.sign_in(person).tells(person.name, "209900042K", *ROLES)
        assert [name for name, _ in running.wire.exchanges if name in ONE_OF_EACH] == ["request", "userinfo"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("language", "signing", "encryption", "members"),
    [
        *(of_kind(language, *row, full=language != "python") for language in KINDS for row in MATRIX),
        NESTED_USERINFO,
    ],
)
def test_every_algorithm_and_shape_is_understood(
    running: Provider, tmp_path: Path, language: str, signing: str, encryption: str, members: dict[str, Any]
) -> None:
    """D1, D8, D21, D22."""
    person = running.newcomer()
    client_id = "-".join([language, signing, *map(str, members.values())])
    keys = write_keys(tmp_path / "keys.json", signing, encryption)
    with example(language, running.issuer, keys, client_id) as client:
        running.register(client.client_id, client.redirect_uri, client.jwks, **members)
        assert client.sign_in(person).tells(person.name, "209900042K", *ROLES)


@pytest.mark.full
@each_language_or_one
@pytest.mark.parametrize("generation", first_or_full([CURRENT, LEGACY]), ids=lambda each: each.name)
def test_with_the_preset_of_the_public_service_every_example_signs_in(
    serving: Callable[..., Provider], tmp_path: Path, language: str, generation: Interface
) -> None:
    """D71: header members that it may not know; userinfo is registered as the examples read it, as `corpid rp-new` does."""
    running = serving(preset="public-service")
    members: dict[str, Any] = {"userinfo_encryption_enc": "none", "stringified_blocks": False}
    if generation is LEGACY:
        members |= {"generations": ["legacy"], "legacy_until": "2099-12-31"}
    keys, client_id = write_keys(tmp_path / "keys.json"), f"{language}-{generation.name}-preset"
    with example(language, running.issuer, keys, client_id, GENERATION=generation.name) as client:
        running.register(client.client_id, client.redirect_uri, client.jwks, **members)
        person = running.newcomer()
        assert client.sign_in(person).tells(person.name, *ROLES)


@each_language_or_one
def test_cancel_leads_back_to_a_page_that_says_so(settled_client: SettledClient, language: str) -> None:
    """D17."""
    shown = settled_client(language).cancel()
    assert shown.status == 403
    assert "access_denied" in shown.text


@pytest.mark.full
@pytest.mark.parametrize("language", [of_kind("python", full=False), *map(of_kind, ("node", "go", "java"))])
def test_cancel_is_no_fault_of_the_program_and_leaves_no_traceback(
    running: Provider, tmp_path: Path, language: str
) -> None:
    """D17: what it prints is short; it is read to its end."""
    with example(language, running.issuer, tmp_path / "keys.json", f"{language}-cancelled") as client:
        running.register(client.client_id, client.redirect_uri, client.jwks)
        assert client.cancel().status == 403
    assert len(client.printed) <= 3, "\n".join(client.printed)


@pytest.mark.full
@each_language_or_one
def test_a_refused_push_is_explained_to_the_developer(
    running: Provider, settled_client: SettledClient, language: str
) -> None:
    """D28: the provider's own words reach the page."""
    client = settled_client(language)
    running.wire.requests["request"] = pushed_with("scope", "openid everything")
    shown = client.sign_in(running.newcomer())
    assert shown.status == 403
    assert "invalid_scope" in shown.text
    assert "everything" in shown.text


@pytest.mark.full
@pytest.mark.parametrize(
    ("language", "asked_at_userinfo"),
    [of_kind("node", [200]), *(of_kind(each, [401, 200]) for each in ("python", "joserfc", "go", "java"))],
)
def test_nonces_of_the_server_are_taken_up_without_help(
    tmp_path: Path, language: str, asked_at_userinfo: list[int]
) -> None:
    """RFC 9449 §8, §9; D7: refused once, and then the client sends what it was told.

    One library knows that both servers are one, the other asks each.
    """
    (tmp_path / "rp").mkdir()
    with (
        provider(tmp_path / "provider", dpop_nonces=True) as demanding,
        example(language, demanding.issuer, tmp_path / "rp" / "keys.json", "nonces") as client,
    ):
        demanding.register(client.client_id, client.redirect_uri, client.jwks)
        assert client.sign_in(demanding.newcomer()).tells(*ROLES)
        statuses = {
            name: [status for each, status in demanding.wire.exchanges if each == name]
            for name in ("request", "userinfo")
        }
        assert statuses == {"request": [400, 201], "userinfo": asked_at_userinfo}


@pytest.mark.full
@pytest.mark.timeout(180)
@pytest.mark.parametrize("language", ["node", "python"])
def test_after_a_loss_of_data_a_sign_in_needs_no_help(tmp_path: Path, language: str) -> None:
    """D67: 503 at first; then the library answers `use_dpop_nonce` by itself, long before proofs pass without a nonce."""
    (tmp_path / "rp").mkdir()
    with (
        RedisServer() as server,
        provider(tmp_path / "provider", transient_url=server.url) as losing,
        example(language, losing.issuer, tmp_path / "rp" / "keys.json", "loss") as client,
    ):
        losing.register(client.client_id, client.redirect_uri, client.jwks)
        assert client.sign_in(losing.newcomer()).tells(*ROLES)
        clock_is_known_for_long(losing)
        server.command("FLUSHALL")
        until(lambda: "recovering" in state(losing))
        losing.wire.exchanges.clear()
        person = losing.newcomer()
        until(lambda: client.sign_in(person).status == 200)
        statuses = {
            name: [status for each, status in losing.wire.exchanges if each == name] for name in ("request", "token")
        }
        assert statuses["request"][-2:] == [400, 201]
        assert set(statuses["request"][:-2]) <= {503}
        assert statuses["token"][-1] == 200


def state(running: Provider) -> dict[str, Any]:
    """What /readyz says."""
    answer = httpx.get(f"{running.issuer}/readyz", trust_env=False)
    document: dict[str, Any] = answer.json()
    return document


def clock_is_known_for_long(running: Provider) -> None:
    """As if the record of the client's clock had been there before the last three minutes."""
    earlier = time.time() - 2 * KNOWN_AFTER_SECONDS
    with closing(sqlite3.connect(running.data_dir / "corpid.sqlite", timeout=PATIENCE)) as database, database:
        assert database.execute("UPDATE client_clocks SET since = ?", (earlier,)).rowcount == 1
        database.execute("UPDATE deployment SET value = ? WHERE name = 'client_clocks_since'", (repr(earlier),))
