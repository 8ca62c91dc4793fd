"""`corpid demo`: one command gives a provider and a relying party that work together.

The check runs as its own process, as a person would start it, over real sockets on free ports.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpid.sandbox import check as checking
from corpid.sandbox import demo_directory
from corpid.sandbox.demo import running
from corpid.sandbox.demo_directory import DemoError
from corpid.sandbox.example_directory import ExampleDirectory

SECONDS = 120
COMMAND = (str(Path(sys.executable).with_name("corpid")), "demo")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    finished = subprocess.run(
        (*COMMAND, "--check", "--json"), capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert not any(home.iterdir()), "a check keeps nothing in the person's home"
    parsed: dict[str, Any] = json.loads(finished.stdout)
    return parsed


def scenario(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in report["scenarios"] if one["name"] == name)


def names(scenario: dict[str, Any]) -> set[str]:
    return {check["name"] for check in scenario["checks"]}


def test_every_scenario_checks_out(report: dict[str, Any]) -> None:
    assert report["ok"] is True
    assert [one["name"] for one in report["scenarios"]] == [
        "one entity, every claim", "one of several entities", "third party", "cancel", "the demo RP's own pages",
    ]  # fmt: skip
    assert all(one["ok"] and not one["problem"] for one in report["scenarios"])
    assert all(check["passed"] for one in report["scenarios"] for check in one["checks"])


def test_the_provider_is_on_localhost_and_each_person_is_used_once(report: dict[str, Any]) -> None:
    """D34: the provider on a host name of its own, since ports do not separate cookies."""
    assert report["issuer"].startswith("http://localhost:")
    persons = [one["person"] for one in report["scenarios"] if one["person"]]
    assert len(persons) == len(set(persons)) == 4


@pytest.mark.parametrize("name", ["one entity, every claim", "one of several entities", "third party"])
def test_a_sign_in_is_verified_from_the_push_to_userinfo(report: dict[str, Any], name: str) -> None:
    """Every signature, decryption, nonce, at_hash and claim (Spec 2.4, 2.5; D2, D20-D23)."""
    assert names(scenario(report, name)) >= {
        "callback: state",
        "ID token: decryption",
        "ID token: signature",
        "ID token: nonce",
        "ID token: at_hash",
        "ID token: aud",
        "access token: signature",
        "access token: typ",
        "access token: cnf.jkt",
        "userinfo: signature",
        "userinfo: sub as in the ID token",
        "directory: the person's attributes",
        "directory: the entity's attributes",
        "directory: roles in auth_info",
        "directory: roles in tp_auth_info",
    }


def test_a_code_used_twice_is_refused_and_kills_its_token(report: dict[str, Any]) -> None:
    """D18."""
    assert names(scenario(report, "one entity, every claim")) >= {
        "code used again: refused", "code used again: its token is dead",
    }  # fmt: skip


def test_cancel_leads_back_with_access_denied(report: dict[str, Any]) -> None:
    """D17."""
    seen = {check["name"]: check["seen"] for check in scenario(report, "cancel")["checks"]}
    assert seen["cancel: error"] == "access_denied"


def test_only_one_demo_uses_a_data_directory(tmp_path: Path) -> None:
    with (
        demo_directory.held(tmp_path / "demo", fresh=False),
        pytest.raises(DemoError, match="a demo is running"),
        demo_directory.held(tmp_path / "demo", fresh=True),
    ):
        pass


def test_fresh_empties_a_demos_directory_and_nothing_else(tmp_path: Path) -> None:
    own = tmp_path / "demo"
    with demo_directory.held(own, fresh=False):
        (own / "provider").mkdir()
        (own / "provider" / "corpid.sqlite").write_text("old")
        (own / "outside").symlink_to(tmp_path)
    with demo_directory.held(own, fresh=True):
        assert [entry.name for entry in own.iterdir()] == [demo_directory.MARK]
    assert tmp_path.is_dir()
    foreign = tmp_path / "letters"
    foreign.mkdir()
    (foreign / "dear.txt").write_text("keep me")
    with pytest.raises(DemoError, match="not a demo's data directory"), demo_directory.held(foreign, fresh=True):
        pass
    assert (foreign / "dear.txt").read_text() == "keep me"


def test_the_data_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert demo_directory.default() == tmp_path / "corpid" / "demo"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert demo_directory.default() == tmp_path / "home" / ".local" / "share" / "corpid" / "demo"


def test_a_provider_that_says_anything_but_the_directory_fails_the_check(tmp_path: Path) -> None:
    """The check compares with another directory than the applied one: each scenario says what differs."""

    async def outcomes() -> dict[str, Any]:
        async with running(tmp_path, first_port=0) as demo:
            sections: dict[str, Any] = copy.deepcopy(dict(demo.directory.sections))
            for row in (*sections["assignments"], *sections["third_party"]["assignments"]):
                row["end_date"] = "9998-12-31"
            for entity in sections["entities"].values():
                entity["name"] += " (another)"
            other = dataclasses.replace(demo, directory=ExampleDirectory(sections))
            return checking.report(other, await checking.run(other))

    report = asyncio.run(outcomes())
    assert report["ok"] is False
    failed = {one["name"]: one["problem"] for one in report["scenarios"] if not one["ok"]}
    assert set(failed) == {"one entity, every claim", "one of several entities", "third party"}
    assert all(problem.startswith("directory: the entity's attributes: expected") for problem in failed.values())
