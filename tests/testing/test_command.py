"""`corpid testing`: a provider for tests in any language (docs/testing.md)."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid_dev.relying_party.interfaces import CURRENT
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.relying_party.verification import Callback
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLBACK, HARBOUR = "http://127.0.0.1:8000/callback", "209900042K"


def directory(keys: RelyingPartyKeys) -> dict[str, Any]:
    """People and a relying party in one file."""
    return {
        "entities": {HARBOUR: {"type": "UEN", "name": "Example Harbour", "country": "SG", "status": "Registered"}},
        "services": {"HARBOUR-PERMIT": {"name": "Harbour permits", "roles": ["Applicant"]}},
        "users": {"mei": {"name": "Mei Example", "memberships": [HARBOUR]}},
        "assignments": [{"user": "mei", "entity": HARBOUR, "service": "HARBOUR-PERMIT", "role": "Applicant"}],
        "clients": {
            "rp": {
                "name": "RP",
                "redirect_uris": [CALLBACK],
                "jwks": keys.public(),
                "scopes": ["openid", *CURRENT.scopes],
                "services": ["HARBOUR-PERMIT"],
            }
        },
    }


@contextmanager
def started(*arguments: str | Path, **environment: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """The command as tests of another language start it: what it says, and its process."""
    command = [sys.executable, "-m", "corpid", "testing", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield json.loads(line), process
        finally:
            process.terminate()


async def signed_in(
    said: dict[str, Any], keys: RelyingPartyKeys, *, verify: ssl.SSLContext | bool = True
) -> dict[str, Any]:
    """What userinfo says at the end of a sign-in without a browser."""
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=verify) as http:
        rp = RelyingParty(
            client_id="rp", issuer=said["issuer"], http=http, interface=CURRENT, redirect_uri=CALLBACK, keys=keys
        )
        order = {"authorize_url": await rp.begin(), "user": "mei", "entity": HARBOUR}
        answer = await http.post(said["sign_ins"], json=order)
        assert answer.status_code == 200, answer.text
        await rp.redeem(Callback(answer.json()["callback_url"]))
        return await rp.userinfo()


@pytest.mark.full
def test_a_person_of_the_file_signs_in_by_the_address_that_it_prints(tmp_path: Path) -> None:
    """D66; settings of the shell do not reach it, its log goes to stderr, and SIGTERM ends it."""
    keys, file = RelyingPartyKeys.generate(), tmp_path / "directory.json"
    file.write_text(json.dumps(directory(keys)))
    database = "postgresql://nobody@127.0.0.1:1/none"
    port = str(free_port())
    with started(file, CORPID_PORT=port, CORPID_DATABASE_URL=database) as (said, process):
        assert said["issuer"] == f"http://localhost:{port}"
        [person] = said["people"]
        assert (person["user_name"], person["entities"]) == ("mei", [HARBOUR])
        assert "Applicant" in str(asyncio.run(signed_in(said, keys)))
        process.send_signal(signal.SIGTERM)
        printed, log = process.communicate(timeout=60)
    assert (process.returncode, printed) == (0, "")
    assert "simulated" in [json.loads(line).get("detail") for line in log.splitlines()]


@pytest.mark.full
def test_with_tls_it_prints_the_authority_and_its_file(tmp_path: Path) -> None:
    """D52: the text is for a container, from which the file is not read."""
    keys, file = RelyingPartyKeys.generate(), tmp_path / "directory.json"
    file.write_text(json.dumps(directory(keys)))
    with started(file, "--tls") as (said, _):
        assert said["issuer"].startswith("https://localhost:")
        assert said["sign_ins"].startswith(f"{said['issuer']}/")
        assert Path(said["ca_file"]).read_text() == said["ca"]
        trusted = ssl.create_default_context(cadata=said["ca"])
        assert "Applicant" in str(asyncio.run(signed_in(said, keys, verify=trusted)))


@pytest.mark.full
def test_where_others_can_reach_it_the_key_is_needed_from_everywhere() -> None:
    """D66: in a container even a forwarded connection from loopback shows nothing of who sent it."""
    with started("--listen", "0.0.0.0", "--generation", "current,legacy") as (said, _):
        without_key, *_ = said["sign_ins"].partition("?")
        assert httpx.post(without_key, json={}, trust_env=False).status_code == 404
        assert httpx.post(said["sign_ins"], json={}, trust_env=False).status_code == 400
        assert "rina" in [each["user_name"] for each in said["people"]]
        client = {"client_id": "x", "name": "X", "redirect_uris": [CALLBACK], "jwks_uri": "http://127.0.0.1:1/jwks"}
        refused = httpx.post(said["sign_ins"].replace("/sign-ins?", "/clients?"), json=client, trust_env=False)
        assert refused.status_code == 400, "the rules for addresses of key sets hold there (D27)"
        assert "jwks_uri" in [fault["member"] for fault in refused.json()["faults"]], refused.text


@pytest.mark.full
@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("entities: {X: {nmae: y}}", (), "directory.yaml:1: 'nmae'"),
        ("{}", ("--generation", "newest"), "choose from legacy, "),
        ("{}", ("--preset", "none"), "public-service"),
        ("{}", ("--listen", "192.0.2.1", "--port", "8400"), "192.0.2.1"),
    ],
)
def test_what_cannot_start_says_why_in_a_sentence(
    tmp_path: Path, content: str, arguments: tuple[str, ...], sentence: str
) -> None:
    file = tmp_path / "directory.yaml"
    file.write_text(content)
    command: list[str | Path] = [sys.executable, "-m", "corpid", "testing", *arguments, file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
