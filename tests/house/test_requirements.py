"""What is installed is what was reviewed: pinned, hashed, from wherever the installer is told to look."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from tests.house.source import KIT, ROOT

FILES = ("runtime", "tracing", "developer", "build", "dev", "tools")


def requirements(name: str) -> dict[str, tuple[str, int]]:
    """Package → its version and how many hashes it has."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    pinned = {}
    for row in rows:
        match = re.fullmatch(r"([a-z0-9._-]+)==(\S+)( ;[^-]+)?((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", row)
        assert match, f"requirements/{name}.txt: not a pinned and hashed requirement: {row[:80]}"
        pinned[match[1]] = (match[2], match[4].count("--hash"))
    return pinned


@pytest.mark.parametrize("name", FILES)
def test_every_requirement_is_pinned_and_hashed_and_names_no_host(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert requirements(name)
    assert "//" not in text
    assert " @ " not in text


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    dev = requirements("dev")
    for shipped in ("runtime", "tracing", "developer"):
        assert {name: pin for name, pin in requirements(shipped).items() if dev.get(name) != pin} == {}


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    def names(rows: list[str]) -> set[str]:
        return {re.split(r"[^A-Za-z0-9._-]", row)[0].lower() for row in rows}

    assert names(project["project"]["dependencies"]) <= requirements("runtime").keys()
    kit = tomllib.loads((KIT / "pyproject.toml").read_text(encoding="utf-8"))
    assert names(kit["project"]["dependencies"]) - {"corpid"} <= requirements("developer").keys()
    assert requirements("runtime").items() <= requirements("developer").items()
    for extra, rows in project["project"]["optional-dependencies"].items():
        assert names(rows) <= requirements(extra).keys()
        assert requirements("runtime").items() <= requirements(extra).items()
    for group, rows in project["dependency-groups"].items():
        assert names([row for row in rows if isinstance(row, str)]) <= requirements(group).keys()


def test_locks_of_node_packages_have_hashes_and_name_no_host() -> None:
    """`make lock` writes them with omit-lockfile-registry-resolved."""
    for path in [path for path in ROOT.rglob("package-lock.json") if "node_modules" not in path.parts]:
        packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
        fetched = {name: package for name, package in packages.items() if name and not package.get("link")}
        assert [name for name, package in fetched.items() if "resolved" in package] == []
        assert [name for name, package in fetched.items() if not package.get("integrity")] == []


@pytest.mark.parametrize("folder", ["java", "libraries/spring"])
def test_libraries_of_the_java_examples_have_hashes_and_their_build_names_no_host(folder: str) -> None:
    """scripts/fetch-jars compares them before anything runs."""
    java = ROOT / "examples" / folder
    rows = (java / "dependencies.sha256").read_text(encoding="utf-8").splitlines()
    assert rows
    assert [row for row in rows if not re.fullmatch(r"[0-9a-f]{64}  [\w.-]+\.jar", row)] == []
    assert "//" not in (java / "pom.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["go", "libraries/go"])
def test_modules_of_the_go_examples_have_hashes_and_come_from_nowhere_else(folder: str) -> None:
    go = ROOT / "examples" / folder
    module = (go / "go.mod").read_text(encoding="utf-8")
    sums = (go / "go.sum").read_text(encoding="utf-8")
    required = re.findall(r"^\t(\S+ v\S+)", module, flags=re.MULTILINE)
    assert required
    assert [each for each in required if f"{each} h1:" not in sums] == []
    assert "replace" not in module


def test_crates_of_the_rust_example_have_hashes_and_come_from_the_registry_alone() -> None:
    lock = tomllib.loads((ROOT / "examples" / "libraries" / "rust" / "Cargo.lock").read_text(encoding="utf-8"))
    fetched = [package for package in lock["package"] if package["name"] != "rp"]
    assert fetched
    assert {package["source"].partition("+")[0] for package in fetched} == {"registry"}
    assert [package["name"] for package in fetched if not re.fullmatch(r"[0-9a-f]{64}", package["checksum"])] == []
