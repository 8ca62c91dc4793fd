"""deploy/compose.yaml: what it mounts exists, what it sets is a setting, and nothing in it is secret or root."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from corpid import settings
from corpid_dev.hosting import FIRST_PORT
from tests.cli.conftest import program
from tests.house.source import ROOT
from tests.house.test_documents import complaint

if TYPE_CHECKING:
    from pathlib import Path

DEPLOY = ROOT / "deploy"
FILE = DEPLOY / "compose.yaml"
DEMO = DEPLOY / "compose.demo.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = {name: service for name, service in SERVICES.items() if "corpid" in service["image"]}
URL = "https://login.example.org"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What compose-secrets writes; only root can give files away."""
    script = (DEPLOY / "compose-secrets").read_text(encoding="utf-8")
    copy = tmp_path / "compose-secrets"
    copy.write_text("chown() { :; }\n" + script)
    folder = tmp_path / "secrets"
    done = subprocess.run(["sh", copy, URL, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = subprocess.run(["sh", copy, URL, folder], capture_output=True, text=True, check=False)
    assert (again.returncode, "nothing was changed" in again.stderr) == (1, True)
    return folder


def test_every_file_that_it_names_exists_or_is_written_by_compose_secrets(secrets: Path) -> None:
    assert {each["file"] for each in COMPOSE["secrets"].values()} == {
        f"./secrets/{path.name}" for path in secrets.iterdir() if path.is_file()
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in secrets.rglob("*"))
    used = {name for service in SERVICES.values() for name in service["secrets"]}
    assert used == COMPOSE["secrets"].keys()
    volumes = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert volumes == {"./secrets/tls", *COMPOSE["volumes"]}
    for service in OWN.values():
        assert (FILE.parent / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_its_settings_are_those_of_docs_operate_with_the_names_of_its_services(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL, Valkey without eviction, own TLS, a key that is a file, nothing relaxed."""
    monkeypatch.setenv("CORPID_CONFIG", str(secrets / "corpid.toml"))
    for name, value in OWN["serve"]["environment"].items():
        if name != "CORPID_CONFIG":
            monkeypatch.setenv(name, value)
    chosen = settings.load()
    password = (secrets / "database.password").read_text()
    assert chosen.database_url == f"postgresql://corpid:{password}@database/corpid"
    assert chosen.transient_url.endswith("@valkey:6379")
    assert {"database", "valkey"} < SERVICES.keys()
    assert (chosen.base_url, chosen.developer_mode) == (URL, False)
    assert str(chosen.key_encryption_key_file) == "/run/secrets/sealing.key"
    assert [volume.split(":")[1] for volume in OWN["serve"]["volumes"]] == [str(chosen.tls_certificate.parent)]  # type: ignore[union-attr]
    assert SERVICES["serve"]["ports"][0].endswith(f":{chosen.port}")
    given = tomllib.loads((secrets / "corpid.toml").read_text())["transient_url"]
    configured = (secrets / "valkey.conf").read_text()
    assert given.split(":")[2].partition("@")[0] in configured
    assert "maxmemory-policy noeviction" in configured
    documented = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    [acl] = re.findall(r"user corpid on >\S+ (.*)", configured)
    assert acl in documented


def test_no_service_is_root_writes_its_image_or_holds_a_secret() -> None:
    image = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service.get("user", "999:999") == "999:999", name
        assert ("user" in service) != (name in OWN), name
        set_here = service.get("environment", {})
        assert [
            each for each in set_here if re.search("PASSWORD|SECRET|KEY", each) and not each.endswith("_FILE")
        ] == []
    assert "\nUSER 10001:10001\n" in image
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["serve"]


def test_its_commands_exist_and_each_waits_for_what_it_needs() -> None:
    corpid = program()
    for service in OWN.values():
        assert not complaint(" ".join(["corpid", *service["command"]]), corpid)
    assert SERVICES["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert SERVICES["serve"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"},
        "valkey": {"condition": "service_healthy"},
    }
    assert all("healthcheck" in service for name, service in SERVICES.items() if name != "migrate")
    assert SERVICES["migrate"]["restart"] == "no"


def test_stopping_may_take_as_long_as_the_settings_say() -> None:
    longest = sum(settings.Settings.model_fields[name].default for name in ("drain_seconds", "drain_delay_seconds"))
    assert int(SERVICES["serve"]["stop_grace_period"].removesuffix("s")) > longest


def test_the_demo_is_for_this_machine_alone() -> None:
    """D66: it shares the machine's network, where it listens on loopback, and publishes nothing.

    Its image has the developer kit, which production's has not.
    """
    [demo] = yaml.safe_load(DEMO.read_text(encoding="utf-8"))["services"].values()
    assert complaint(" ".join(["corpid", *demo["command"]]), program()) is None
    assert (demo["network_mode"], "ports" in demo, demo["read_only"]) == ("host", False, True)
    assert demo["environment"] == {"CORPID_PORT": str(FIRST_PORT)}
    assert demo["build"] == {**OWN["serve"]["build"], "target": "developer"}
    assert demo["image"] != OWN["serve"]["image"]


@pytest.mark.parametrize("file", [FILE, DEMO], ids=lambda path: path.name)
def test_a_tool_for_compose_files_accepts_it(file: Path) -> None:
    """Against the schema of the Compose specification that the tool has in it."""
    tools = (["docker", "compose"], ["docker-compose"])
    found = [tool for tool in tools if shutil.which(tool[0])]
    working = [
        tool for tool in found if not subprocess.run([*tool, "version"], capture_output=True, check=False).returncode
    ]
    if not working:
        pytest.skip("neither docker compose nor docker-compose is installed")
    done = subprocess.run(
        [*working[0], "--file", file, "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
