"""The container of deploy/Containerfile, built as shipped and run by Debian's podman."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import CURRENT
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from tests import containers
from tests.interop.node_process import NODE
from tests.machine import free_port
from tests.testing.test_command import CALLBACK, directory, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.containers import Engine

pytestmark = [pytest.mark.interop, pytest.mark.long_build, pytest.mark.timeout(600)]
PASSWORD, SECRET = "a long word for a container", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine with the image."""
    with containers.engine() as found:
        containers.build(found)
        yield found


@pytest.fixture(scope="module")
def keys() -> RelyingPartyKeys:
    return RelyingPartyKeys.generate()


def written(path: Path, content: dict[str, Any]) -> Path:
    """A file that every user of a container may read."""
    path.write_text(json.dumps(content))
    path.chmod(0o644)
    return path


async def test_serve_runs_read_only_without_root_and_a_person_signs_in(
    engine: Engine, keys: RelyingPartyKeys, tmp_path: Path
) -> None:
    """docs/operate.md, "In containers": health, a sign-in, SIGTERM; the volume is all that is written to."""
    content = directory(keys)
    content["users"]["mei"] |= {"password": PASSWORD, "totp_secret": SECRET}
    file, port = written(tmp_path / "directory.json", content), free_port()
    issuer = f"http://localhost:{port}"
    environment = {"CORPID_BASE_URL": issuer, "CORPID_PORT": str(port), "CORPID_DEVELOPER_MODE": "true"}
    options = [option for name, value in environment.items() for option in ("--env", f"{name}={value}")]

    async def story() -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            rp = RelyingParty(
                client_id="rp", issuer=issuer, http=http, interface=CURRENT, redirect_uri=CALLBACK, keys=keys
            )
            mei = Person(user_name="mei", password=PASSWORD, totp_secret=SECRET)
            await rp.redeem(await people.sign_in(Browser(http), await rp.begin(), mei))
            return await rp.userinfo()

    with engine.running(
        *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", *options),
        *("--publish", f"127.0.0.1:{port}:{port}", "--volume", f"{file}:/directory.json:ro", containers.IMAGE),
    ) as serving:
        serving.wait_for('"listening"')
        assert serving.is_healthy()
        assert serving.do("id", "-u") == "10001"
        assert serving.try_to("touch", "/opt/corpid/written") != 0
        serving.do("corpid", "apply", "--development", "/directory.json")
        assert "Applicant" in str(await story())
        assert serving.do("ls", "-l", "/var/lib/corpid/sealing.key").startswith("-rw-------")
        assert serving.stop() == 0
        assert '"stopped"' in serving.log


def test_tests_of_another_language_have_a_provider_with_their_own_directory(
    engine: Engine, keys: RelyingPartyKeys, tmp_path: Path
) -> None:
    """docs/testing.md, "In a container": one line of JSON, a sign-in with its address, nothing without the key (D66)."""
    file, port = written(tmp_path / "directory.json", directory(keys)), free_port()
    with engine.running(
        *("--read-only", "--env", f"CORPID_PORT={port}", "--publish", f"127.0.0.1:{port}:{port}"),
        *("--volume", f"{file}:/directory.json:ro", containers.DEVELOPER_IMAGE, "testing", "/directory.json"),
    ) as provider:
        provider.wait_for('"sign_ins"')
        said = json.loads(provider.printed.splitlines()[0])
        assert said["issuer"] == f"http://localhost:{port}"
        assert provider.is_healthy()
        without_key, *_ = said["sign_ins"].partition("?")
        for url in (f"{said['issuer']}/developer", without_key):
            assert httpx.post(url, json={}, trust_env=False).status_code == 404
        # the same inside, where every connection is from loopback
        ask = f"import http.client; c = http.client.HTTPConnection('localhost', {port}); c.request('POST', '/developer/sign-ins')"
        assert provider.do("python", "-c", f"{ask}; print(c.getresponse().status)") == "404"
        assert "Applicant" in str(asyncio.run(signed_in(said, keys)))
        assert provider.stop() == 0


def test_the_example_for_node_passes_against_a_container(engine: Engine, tmp_path: Path) -> None:
    """docs/testing.md: with CORPID_IMAGE, and nothing of CorpID on the machine but the image."""
    environment = {**engine.as_docker(tmp_path), "CORPID_IMAGE": containers.DEVELOPER_IMAGE}
    example: list[str | Path] = [NODE, "--test", containers.ROOT / "examples" / "node" / "rp.test.mjs"]
    tests = subprocess.run(example, env=environment, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "pass 3" in tests.stdout


def test_the_demo_runs_on_the_machines_own_network_for_this_machine_alone(engine: Engine) -> None:
    """docs/relying-parties.md, "In a container": loopback alone, so that no key is needed (D66); a whole sign-in; SIGTERM."""
    port = free_port()
    shared = ("--read-only", "--cap-drop", "ALL", "--network", "host", containers.DEVELOPER_IMAGE, "demo")
    with engine.running(*shared, "--port", str(port)) as demo:
        demo.wait_for("Stop with Ctrl-C")
        issuer = re.search(r"Issuer .*(http://localhost:\d+)", demo.printed)
        assert issuer is not None
        page = httpx.get(f"{issuer[1]}/developer", follow_redirects=True, trust_env=False)
        assert page.status_code == 200
        assert "Developer mode" in page.text
        assert demo.do("id", "-u") == "10001"
        demo.do("corpid", "demo", "--check")
        assert demo.stop() == 0
