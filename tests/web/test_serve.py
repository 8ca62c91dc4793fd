"""Every setting of docs/settings.md in a `corpid serve` that really runs, and what it refuses to start with."""

from __future__ import annotations

import gc
import json
import re
import socket
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid_dev.relying_party import people
from tests.cli.conftest import Terminal, empty_terminal, terminal
from tests.logs import log_left_alone
from tests.machine import free_port, key_file
from tests.web.processes import DIRECTORY, RINA, Running, command, serving
from tests.web.test_tls import trusting, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpid_dev.relying_party.browser import Browser, HtmlPage
    from corpid_dev.relying_party.relying_party import RelyingParty

__all__ = ["empty_terminal", "terminal"]


@pytest.fixture
def filled(terminal: Terminal) -> Path:
    """A directory whose `data` knows a person with two entities and a relying party."""
    terminal.done("apply", "--development", terminal.file(json.dumps(DIRECTORY)))
    return terminal.folder


@pytest.fixture
def in_this_process() -> Iterator[None]:
    """For a server that does not start: it leaves the log to others, and the port that it had bound."""
    with log_left_alone():
        yield
    gc.collect()


# --- what settings do --------------------------------------------------------------------------


def addresses(page: HtmlPage) -> set[str]:
    """Every address of our own on a page."""
    actions = {form.action for form in page.forms}
    refresh = {page.refresh[1]} if page.refresh else set()
    return {address for address in {*actions, *refresh, *(target for target, _ in page.links)} if "://" not in address}


@pytest.mark.full
async def test_under_a_path_every_page_and_every_endpoint_works(filled: Path) -> None:
    """D32: exactly the paths of the specification, under any base_url; DPoP's htu as well (D7)."""
    with serving(filled, path="/idp", session_seconds="600") as running:
        async with running.parties() as (rp, browser):
            rp.scope = "openid authinfo user.name"
            where = await rp.begin()
            assert where.startswith(f"{running.base_url}/mga/sps/oauth/oauth20/authorize?")
            await browser.open(where)
            person = replace(RINA)
            for _ in range(6):
                if browser.left is not None:
                    break
                assert browser.response is not None
                assert all(address.startswith("/idp/") for address in addresses(browser.page)), addresses(browser.page)
                await everything_loads(running, browser)
                await people.answer_page(browser, person, "A1")
            assert browser.left is not None
            tokens = await rp.redeem(browser.left)
            assert (await rp.userinfo("POST"))["sub"] == tokens.id_token["sub"]
            assert [cookie.path for cookie in browser.http.cookies.jar] == ["/"]
            for path in ("/", "/sign-out"):
                assert (await rp.http.get(running.base_url + path)).status_code == 200
            assert (await rp.http.get(running.origin + "/userinfo")).status_code == 404
            assert (await rp.http.get(running.origin + "/healthz")).status_code == 200


async def everything_loads(running: Running, browser: Browser) -> None:
    """Style sheets, scripts and images of the page that is shown."""
    assert browser.response is not None
    files = set(re.findall(r'(?:href|src)="([^"]*/static/[^"]+)"', browser.response.text))
    assert any(file.endswith(".css") for file in files)
    for file in sorted(files):
        assert file.startswith("/idp/static/")
        answer = await browser.http.get(running.origin + file)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)


@pytest.mark.full
async def test_each_setting_reaches_what_it_is_about(filled: Path) -> None:
    """D10, D23, D30, D35, D47; RFC 9207; RFC 9449 §8."""
    settings = {
        "name": "Example Login", "acr_prefix": "urn:example:loa:", "return_iss": "true", "dpop_nonces": "true",
        "session_seconds": "600", "timezone": "Asia/Singapore", "allowed_hosts": "login.example",
        "trusted_proxies": "127.0.0.0/8",
    }  # fmt: skip
    with serving(filled, **settings) as running:
        async with running.parties() as (rp, browser):
            metadata = await rp.discover()
            assert metadata["name"] == "Example Login"
            assert metadata["acr_values_supported"][0].startswith("urn:example:loa:")
            assert metadata["authorization_response_iss_parameter_supported"] is True
            callback = await sign_in(rp, browser)
            assert f"iss=http%3A%2F%2Flocalhost%3A{running.base_url.rpartition(':')[2]}" in callback
            url = metadata["token_endpoint"]
            code = rp.callback(callback)
            refused = await rp.token(code)
            assert (refused.status_code, refused.json()["error"]) == (400, "use_dpop_nonce")
            proof = rp.proof("POST", url, nonce=refused.headers["dpop-nonce"])
            answer = await rp.token(code, headers={"DPoP": proof})
            assert answer.status_code == 200
            identity = (await rp.believe(answer)).id_token
            assert identity["acr"].startswith("urn:example:loa:")
            again = await push(rp)
            await browser.open(again)
            assert people.step_of(browser) == "entity"
            assert "Singapore Standard Time" in browser.page.text
            assert "Example Login" in (browser.response.text if browser.response else "")
            hosts = {"login.example": 200, "login.example:99": 200, "other.example": 421}
            for host, status in hosts.items():
                named = await rp.http.get(metadata["jwks_uri"], headers={"Host": host, "X-Forwarded-For": "192.0.2.9"})
                assert named.status_code == status
        assert {"192.0.2.9", "127.0.0.1"} <= {line["address"] for line in running.lines() if line["event"] == "request"}


async def push(rp: RelyingParty) -> str:
    """Begin where DPoP proofs need a nonce."""
    url = (await rp.discover())["pushed_authorization_request_endpoint"]
    rp.restart()
    refused = await rp.push()
    answer = await rp.push(headers={"DPoP": rp.proof("POST", url, nonce=refused.headers["dpop-nonce"])})
    rp.sign_in.request_uri = answer.json()["request_uri"]
    return rp.authorization_url()


async def sign_in(rp: RelyingParty, browser: Browser) -> str:
    return await people.sign_in(browser, await push(rp), replace(RINA), "A1")


def test_the_log_holds_no_lines_below_its_level(tmp_path: Path) -> None:
    with serving(tmp_path, log_level="warning") as running:
        assert httpx.get(f"{running.base_url}/readyz", trust_env=False).status_code == 200
        assert [line["event"] for line in running.lines()] == ["draining"]


def test_it_speaks_tls_itself(tmp_path: Path) -> None:
    """D52, D36."""
    certificate, key = write_pair(tmp_path)
    with serving(tmp_path, scheme="https", tls_certificate=str(certificate), tls_key=str(key)) as running:
        answer = httpx.get(f"{running.base_url}/", verify=trusting(certificate), trust_env=False)
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.full
@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_database_of_ones_own_is_migrated_by_hand_and_opened_with_ones_own_key(terminal: Terminal, way: str) -> None:
    """D43."""
    tmp_path = terminal.folder
    file = key_file(tmp_path / "sealing")
    text = (tmp_path / "sealing").read_text(encoding="ascii")
    key = {"key_encryption_key_file": file} if way == "file" else {"key_encryption_key": text}
    own = {"database_url": f"sqlite:///{tmp_path / 'own.db'}", **key}
    with terminal.given(own):
        terminal.done("migrate")
    with serving(tmp_path, **own) as running:
        assert httpx.get(f"{running.base_url}/readyz", trust_env=False).status_code == 200
    assert not (tmp_path / "data" / "sealing.key").exists()


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "corpid.toml").write_text('name = "From the file"\nsession_seconds = 6000\nport = 1', encoding="utf-8")
    with serving(tmp_path) as running:
        assert "From the file" in httpx.get(f"{running.base_url}/", trust_env=False).text


# --- what it refuses ---------------------------------------------------------------------------


def newer_database(terminal: Terminal) -> None:
    terminal.done("migrate")
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = 'later'")
        database.execute("UPDATE deployment SET value = 'later' WHERE name = 'schema_serves_since'")


OWN = "sqlite:///own.db"
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "a setting that is not one": ({"session_seconds": "soon"}, "CORPID_SESSION_SECONDS: 'soon' cannot be used"),
    "a certificate that is not there": (
        {"base_url": "https://idp.example", "tls_certificate": "c.pem", "tls_key": "k.pem"}, "c.pem",
    ),
    "no key for one's own database": ({"database_url": OWN}, "CORPID_KEY_ENCRYPTION_KEY_FILE is not set"),
    "a key file that is not there": (
        {"database_url": OWN, "key_encryption_key_file": "gone"}, "the key-encryption key file gone does not exist",
    ),
    "a key that is no key": ({"key_encryption_key": "short"}, "CORPID_KEY_ENCRYPTION_KEY"),
    "a database that is not there": (
        {"database_url": OWN, "key_encryption_key_file": "key"}, "does not exist: run `corpid migrate`",
    ),
    "a database that is none": ({"data_dir": "broken"}, "cannot be opened: file is not a database"),
    "an address that is another machine's": ({"host": "192.0.2.1"}, "cannot listen on 192.0.2.1"),
    "a folder that cannot be made": ({"data_dir": "/proc/nowhere"}, "/proc/nowhere"),
    "a newer database": ({"data_dir": "data"}, "was migrated by a newer CorpID"),
}  # fmt: skip


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize(("settings", "says"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_to_start_in_one_sentence(terminal: Terminal, settings: dict[str, str], says: str) -> None:
    if settings.get("data_dir") == "data":
        newer_database(terminal)
    key_file(terminal.folder / "key")
    (terminal.folder / "broken").mkdir()
    (terminal.folder / "broken" / "corpid.sqlite").write_text("this is a letter to my aunt\n" * 200, encoding="utf-8")
    with terminal.given({"port": str(free_port()), **settings}):
        refused = terminal.run("serve")
    assert isinstance(refused.exception, SystemExit), refused.exception
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert says in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_it_refuses_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command(tmp_path, "serve", port=str(port))
    assert refused.returncode == 1
    assert (
        refused.stderr
        == f"Error: port {port} on 127.0.0.1 is taken by another program: stop it, or set another port (CORPID_PORT)\n"
    )


def test_a_port_of_the_metrics_that_is_taken_is_told_by_its_own_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command(tmp_path, "serve", port=str(free_port()), metrics_address=f"127.0.0.1:{port}")
    assert refused.returncode == 1
    assert f"port {port} on 127.0.0.1 is taken" in refused.stderr
    assert "(CORPID_METRICS_ADDRESS)" in refused.stderr
    assert "CORPID_PORT" not in refused.stderr
