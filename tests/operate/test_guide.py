"""The commands of docs/operate.md, as they are written: from nothing to a node, its upgrade, and the way back.

Replaced are directories, addresses and passwords, the service's user (nobody), and systemctl (by a function that starts
the unit's command). Left out is what belongs to other machines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests import engines
from tests.house.source import ROOT, documents
from tests.machine import free_port
from tests.web.processes import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE: Final = documents()["docs/operate.md"]
SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
USER: Final = "nobody"
SERVICE: Final = (
    "runuser -u {user} -- env CORPID_CONFIG={root}/etc/corpid/corpid.toml CORPID_DATA_DIR={root}/var/lib/corpid"
)
PRELUDE: Final = """
set -eu
cd {checkout}
PATH={root}/usr/local/sbin:$PATH
VERSION={version}
useradd() {{ :; }}
systemctl() {{
    case "$*" in
        *corpid-dump.timer | *corpid-doctor.timer | daemon-reload) ;;
        "start corpid-dump") {dump} ;;
        "restart corpid" | "enable --now corpid")
            if [ -e {root}/pid ]; then kill $(cat {root}/pid); while kill -0 $(cat {root}/pid) 2>/dev/null; do sleep 0.1; done; fi
            {serve} >>{root}/log 2>&1 &
            echo $! >{root}/pid ;;
        *) echo "not expected: systemctl $*"; exit 1 ;;
    esac
}}
"""

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user"),
    pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="the system has no Python that every user can read"),
]


def blocks(heading: str, language: str = "sh") -> list[str]:
    """The code blocks of a section."""
    [section] = [part for part in re.split(r"(?m)^## ", GUIDE) if part.startswith(heading)]
    return re.findall(rf"^```{language}\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Machine:
    """A directory in which the guide is followed, and what its text is replaced by."""

    root: Path
    replaced: dict[str, str]

    def own(self, text: str) -> str:
        """A text of the guide with this machine's names in it."""
        for shipped, own in self.replaced.items():
            text = text.replace(shipped, own)
        return text

    def run(self, *commands: str, version: str) -> str:
        """Run blocks of the guide in one shell; what they print."""
        unit = (ROOT / "deploy" / "corpid-dump.service").read_text(encoding="utf-8")
        [environment] = re.findall(r"(?m)^Environment=(PG.+)$", unit)
        [dump] = re.findall(r"(?m)^ExecStart=(.+)$", unit)
        service = SERVICE.format(user=USER, root=self.root)
        prelude = PRELUDE.format(
            checkout=self.root / "checkout",
            root=self.root,
            version=version,
            dump=self.own(f"runuser -u {USER} -- env {environment} {dump}"),
            serve=f"{service} {self.root}/opt/corpid/current/bin/corpid serve",
        )
        script = prelude + "\n".join(self.own(command) for command in commands)
        done = subprocess.run(
            ["sh"], input=script, capture_output=True, text=True, check=False, timeout=300, cwd=self.root
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def running(self) -> str:
        """The version whose Python the service runs."""
        process = (self.root / "pid").read_text().strip()
        [child] = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        [version] = re.findall(rf"{self.root}/opt/corpid/(\w+)/bin/python", Path(f"/proc/{child}/cmdline").read_text())
        return str(version)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """With the directories that a Debian has, engines, and a copy of this checkout."""
    root = Path(tempfile.mkdtemp(prefix="corpid-guide-"))
    root.chmod(0o755)
    for name in ("opt/corpid", "etc/systemd/system", "usr/local/sbin", "usr/local/bin", "var/lib", "var/backups"):
        (root / name).mkdir(parents=True)
    checkout = root / "checkout"
    checkout.mkdir()
    for name in ("deploy", "src", "requirements"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("*.*"), ROOT / "LICENSE"):
        if path.is_file():
            shutil.copy(path, checkout)
    shutil.copytree(ROOT / "examples", checkout / "examples", ignore=shutil.ignore_patterns("node_modules"))
    port, metrics = free_port(), free_port()
    with _engines() as (database, transient):
        address, _, name = database.removeprefix("postgresql://corpid@").partition("/")
        replaced = {
            "$(git describe --tags --always)": "$VERSION",
            "-u corpid": f"-u {USER}",
            "-o corpid -g corpid": f"-o {USER} -g nogroup",
            "-o root -g corpid": "-o root -g nogroup",
            "corpid:corpid /": f"{USER}:nogroup /",
            "root:corpid /": "root:nogroup /",
            "@10.0.0.21/corpid": f"@{address}/{name}",
            "10.0.0.21:5432:corpid:": f"127.0.0.1:{address.partition(':')[2]}:{name}:",
            "PGHOST=10.0.0.21": f"PGHOST=127.0.0.1 PGPORT={address.partition(':')[2]}",
            "PGDATABASE=corpid": f"PGDATABASE={name}",
            "redis://corpid:$TRANSIENT_PASSWORD@10.0.0.22:6379": transient,
            "10.0.0.11:8080": f"127.0.0.1:{port}",
            "port = 8080": f"port = {port}",
            '"10.0.0.11:9464"': f'"127.0.0.1:{metrics}"',
            '"10.0.0.11"': '"127.0.0.1"',
            "drain_delay_seconds = 5": "drain_delay_seconds = 1",
            **{
                path: f"{root}{path}"
                for path in ("/opt/corpid", "/etc/corpid", "/etc/systemd", "/var/lib/corpid", "/var/backups/corpid")
            },
            "/usr/local/": f"{root}/usr/local/",
        }
        command = checkout / "deploy" / "corpid-command"
        command.write_text(Machine(root, replaced).own(command.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            yield Machine(root, replaced)
        finally:
            if (root / "pid").exists():
                os.kill(int((root / "pid").read_text()), signal.SIGTERM)
            shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _engines() -> Iterator[tuple[str, str]]:
    with engines.postgresql() as database, engines.redis() as transient:
        yield database, transient


def test_a_new_operator_gets_from_nothing_to_a_node_upgrades_it_and_goes_back(machine: Machine) -> None:
    """docs/operate.md, steps 1 and 4 to 8, "Upgrades, and the way back"."""
    etc = machine.root / "etc" / "corpid"
    install, users, check = blocks("1. ")
    assert machine.run(install, users, check, version="v1").strip().endswith(_version())
    secrets, _copy, compare = blocks("4. ")
    machine.run(secrets, compare, version="v1")
    assert {path.name: path.stat().st_mode & 0o777 for path in etc.iterdir()} == dict.fromkeys(
        ("sealing.key", "database.url", "transient.url", "pgpass"), 0o600
    )

    [settings] = blocks("5. ", "toml")
    (etc / "corpid.toml").write_text(machine.own(settings), encoding="utf-8")
    machine.run(*blocks("5. "), *blocks("6. "), version="v1")

    directory, assignments = blocks("7. ", "yaml")
    (etc / "directory.yaml").write_text(directory, encoding="utf-8")
    (etc / "books.jwks.json").write_text(json.dumps(KEYS.public()), encoding="utf-8")
    people, client = blocks("7. ")
    assert "https://login.example.org/" in machine.run(people, client, version="v1")
    (etc / "directory.yaml").write_text(directory + assignments, encoding="utf-8")
    machine.run("corpid apply directory.yaml", version="v1")

    serve, doctor, daily = blocks("8. ")
    assert '"status":"ready"' in machine.run(serve, version="v1").replace(" ", "")
    assert ".dump" in machine.run(doctor, daily, version="v1")

    installed, migrated, switched, back, contracted = blocks("Upgrades")
    assert machine.run(installed, migrated, version="v2").split()
    assert machine.running() == "v1"
    machine.run(switched, version="v2")
    assert machine.running() == "v2"
    machine.run(back, version="v2")
    assert machine.running() == "v1"
    machine.run(switched, version="v2")
    assert machine.running() == "v2"
    machine.run(contracted, version="v2")


def _version() -> str:
    from corpid import __version__

    return __version__


def test_a_python_that_the_services_user_cannot_read_is_noticed_at_the_end_of_step_1(machine: Machine) -> None:
    """docs/operate.md, step 1: below a directory of another user alone."""
    install, users, check = blocks("1. ")
    hidden = machine.root / "home" / "python"
    hidden.mkdir(parents=True)
    shutil.copy(SYSTEM_PYTHON.resolve(), hidden / "python3")
    hidden.parent.chmod(0o700)
    needless = ("pip", "hatchling", "corpid.web")
    only = "\n".join(line for line in install.splitlines() if not any(word in line for word in needless))
    only = only.replace(str(SYSTEM_PYTHON), str(hidden / "python3")).replace("-m venv", "-m venv --without-pip")
    program = "printf '#!/opt/corpid/v1/bin/python\\n' >/opt/corpid/v1/bin/corpid; chmod +x /opt/corpid/v1/bin/corpid"
    told = machine.run(only, users, program, f"{check.strip()} 2>&1 || true", version="v1")
    assert "Permission denied" in told
