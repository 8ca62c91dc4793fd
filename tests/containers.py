"""Containers for tests, with Debian's podman and without a registry: the base image is made of Debian's packages.

Where no container can run, tests are skipped and say why, also in CI: a sandbox may forbid namespaces or cgroups,
which no package changes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
RELEASE: Final = "trixie"
"""whose Python is 3.13, as in deploy/Containerfile"""
BASE: Final = "localhost/corpid-test-base"
IMAGE: Final = "localhost/corpid-test"
DEVELOPER_IMAGE: Final = "localhost/corpid-dev-test"
_PACKAGES: Final = "python3,python3-venv,python-is-python3,ca-certificates"
_AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"
# Few open files and processes: the default is more than a sandbox may give.
_LIMITS: Final = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
_PATIENCE_SECONDS: Final = 300


class Engine:
    """Podman with a storage of its own, which is removed at the end."""

    def __init__(self, folder: Path, runtime: str) -> None:
        self.folder: Final = folder
        storage = ("--root", folder / "storage", "--runroot", folder / "run")
        own = ("--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", runtime)
        self._command: Final = ("podman", *storage, *own)

    def try_to(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Give podman a command."""
        return subprocess.run(
            [*self._command, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )

    def do(self, *words: str | Path, cwd: Path | None = None) -> str:
        """Give podman a command that must succeed; what it prints."""
        done = self.try_to(*words, cwd=cwd)
        assert done.returncode == 0, f"podman {' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    @contextmanager
    def running(self, *words: str | Path) -> Iterator[Container]:
        """A container of what `podman run` is given, until the context ends."""
        number = self.do("run", "--detach", *_LIMITS, *words)
        try:
            yield Container(self, number)
        finally:
            self.try_to("rm", "--force", "--volumes", "--time", "1", number)

    def as_docker(self, folder: Path) -> dict[str, str]:
        """Variables of a shell in which `docker` is this engine."""
        program = folder / "docker"
        command = shlex.join(map(str, self._command))
        program.write_text(f'#!/bin/sh\nverb=$1; shift\nexec {command} "$verb" {shlex.join(_LIMITS)} "$@"\n')
        program.chmod(0o755)
        return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

    def end(self) -> None:
        """Remove everything, mounts first."""
        self.try_to("rm", "--all", "--force", "--time", "1")
        self.try_to("rmi", "--all", "--force")
        shutil.rmtree(self.folder, ignore_errors=True)


class Container:
    """A container that was started."""

    def __init__(self, engine: Engine, number: str) -> None:
        self._engine: Final = engine
        self._number: Final = number

    def do(self, *words: str) -> str:
        """Run a command in it."""
        return self._engine.do("exec", self._number, *words)

    def try_to(self, *words: str) -> int:
        """Run a command in it; its exit status."""
        return self._engine.try_to("exec", self._number, *words).returncode

    @property
    def printed(self) -> str:
        """Its standard output so far."""
        return self._engine.try_to("logs", self._number).stdout

    @property
    def log(self) -> str:
        """Its standard output and errors so far."""
        done = self._engine.try_to("logs", self._number)
        return done.stdout + done.stderr

    def wait_for(self, text: str) -> None:
        """Wait until it has printed this."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.log:
            assert self._state["Running"], self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.2)

    def is_healthy(self) -> bool:
        """Return whether the health check of its image passes now."""
        return self._engine.try_to("healthcheck", "run", self._number).returncode == 0

    def stop(self) -> int:
        """Stop it as an operator does, with the image's signal; its exit status."""
        self._engine.do("stop", "--time", "60", self._number)
        return int(self._state["ExitCode"])

    @property
    def _state(self) -> dict[str, Any]:
        [found] = json.loads(self._engine.do("inspect", self._number))
        return dict(found["State"])


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine that has the base image, if one can work here."""
    missing = [name for name in ("podman", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no containers here: {' and '.join(missing)} missing (`make interop` says more)")
    folder = Path(tempfile.mkdtemp(prefix="corpid-containers-"))
    made = [Engine(folder, runtime) for runtime in ("crun", "runc") if shutil.which(runtime, path=_PATH)]
    try:
        _import_base(made, folder)
        tried = [(each, each.try_to("run", "--rm", *_LIMITS, BASE, "true")) for each in made]
        works = next((each for each, done in tried if done.returncode == 0), None)
        if works is None:
            reasons = "; ".join(done.stderr.strip() for _, done in tried)
            pytest.skip(f"no container can run here: {reasons or 'neither crun nor runc is installed'}")
        yield works
    finally:
        for each in made[:1]:
            each.end()
        shutil.rmtree(folder, ignore_errors=True)


_PATH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _import_base(made: list[Engine], folder: Path) -> None:
    archive = folder / "base.tar"
    command: list[str | Path] = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={_PACKAGES}",
        RELEASE,
        archive,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)
    if done.returncode != 0:
        pytest.skip(f"no base image can be made of Debian's packages here: {done.stderr.strip()[-500:]}")
    for each in made[:1]:
        imported = each.try_to("import", "--quiet", archive, BASE)
        if imported.returncode != 0:
            pytest.skip(f"podman does not work here: {imported.stderr.strip()}")
    archive.unlink()


def build(engine: Engine) -> None:
    """Build the images from deploy/Containerfile as shipped, from the registry of packages that pip has here."""
    pip = engine.folder / "pip.conf"
    shown = subprocess.run(
        [ROOT / ".tools" / "bin" / "python", "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    chosen = dict(re.findall(r"^(?:global|install|:env:)\.([\w-]+)='(.*)'$", shown, re.MULTILINE))
    chosen.pop("find-links", None)
    mounts = ["--volume", f"{pip}:/etc/pip.conf:ro"]
    if Path(_AUTHORITIES).exists():
        chosen["cert"] = _AUTHORITIES
        mounts += ["--volume", f"{_AUTHORITIES}:{_AUTHORITIES}:ro"]
    pip.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in chosen.items()))
    for named in (("--tag", IMAGE), ("--target", "developer", "--tag", DEVELOPER_IMAGE)):
        engine.do(
            *("build", "--format", "docker", "--isolation", "oci", "--network", "host", *_LIMITS, *mounts),
            *("--build-arg", f"PYTHON={BASE}", "--file", "deploy/Containerfile", *named, "."),
            cwd=ROOT,
        )
