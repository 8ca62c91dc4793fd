"""`corpid migrate`: what it says before, while and after it changes the database (docs/upgrades.md)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from corpid.stores.sql import migration, schema
from tests import engines
from tests.machine import free_port, key_file
from tests.upgrades.later import MIGRATIONS
from tests.web.processes import command

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def oldest(terminal: Terminal) -> None:
    """A database that lacks every migration, as far as a plan looks."""
    terminal.done("migrate")
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (migration.OLDEST,))


def test_a_plan_names_every_step_and_changes_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    oldest(terminal)
    said = terminal.done("migrate", "--plan")
    assert "0041" in said
    assert "the tables users, entities and memberships against readers and writers, for a moment" in said
    assert "Nothing was changed." in said
    assert "Servers of the previous version may keep running." in said
    assert terminal.done("migrate", "--plan") == said


def test_a_plan_is_told_to_machines_as_json(terminal: Terminal) -> None:
    oldest(terminal)
    plan = json.loads(terminal.done("migrate", "--plan", "--json"))
    assert (plan["schema"], plan["now"][0]["revision"], plan["now"][0]["phase"], plan["later"]) == (
        "0040",
        "0041",
        "expand",
        [],
    )


def test_json_alone_is_refused_before_anything_is_done(empty_terminal: Terminal) -> None:
    """It is a form of the plan; whoever leaves that out may have meant either."""
    assert "`corpid migrate --plan --json`" in empty_terminal.refused("migrate", "--json")
    assert not (empty_terminal.folder / "data").exists()


def test_a_plan_of_contract_is_of_what_that_would_do(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    terminal.done("migrate")
    monkeypatch.setattr(migration, "LOCATIONS", [*migration.LOCATIONS, MIGRATIONS])
    usual, all_of_it = terminal.done("migrate", "--plan"), terminal.done("migrate", "--plan", "--contract")
    assert "corpid migrate --contract: once no server of the previous version is running" in usual
    assert "Servers of the previous version may keep running." in usual
    assert f"corpid migrate --contract: {terminal.folder}" in all_of_it
    assert "No server of the previous version may be running." in all_of_it
    assert "9004" in all_of_it
    plan = json.loads(terminal.done("migrate", "--plan", "--contract", "--json"))
    assert [step["revision"] for step in plan["now"]] == ["9001", "9002", "9003", "9004"]
    assert plan["later"] == []


def test_an_empty_postgresql_is_planned_without_a_word_of_who_may_serve(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    with engines.postgresql() as database_url:
        monkeypatch.setenv("CORPID_DATABASE_URL", database_url)
        said = terminal.done("migrate", "--plan")
    assert "Every table of an empty database" in said
    assert "\n\n" not in said
    assert "the version before" not in said


@pytest.mark.full
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_name_is_refused_by_every_command(terminal: Terminal, encoding: str) -> None:
    """Before anything is made in it, and with the line that makes another (docs/operate.md, 2)."""
    server, name = engines.postgresql_server(), f"corpid_{encoding.lower()}"
    server.sql(f"CREATE DATABASE {name} ENCODING {encoding} TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'")
    chosen = {"database_url": server.dsn(name), "key_encryption_key_file": key_file(terminal.folder / "sealing.key")}
    with terminal.given(chosen):
        refused = [terminal.refused("migrate"), terminal.refused("migrate", "--plan")]
        found = {each["about"]: each for each in json.loads(terminal.run("doctor", "--json").stdout)["findings"]}
    refused.append(command(terminal.folder, "serve", port=str(free_port()), migrate_on_start="true", **chosen).stderr)
    assert found["database"]["verdict"] == "problem"
    for said in (*refused, found["database"]["seen"]):
        assert f"has the encoding {encoding}" in said.replace("\n", " ")
        assert "createdb -E UTF8 -T template0" in said.replace("\n", " ")
    assert server.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace", name) == "0"
    server.sql(f"DROP DATABASE {name}")


def test_a_database_that_needs_nothing_is_told_so(empty_terminal: Terminal) -> None:
    said = empty_terminal.done("migrate")
    assert f"{schema.find_head()}: done (expand: Every table of an empty database)" in said
    assert said.endswith("has the schema of this version.\n")
    assert "needs no migration" in empty_terminal.done("migrate", "--plan")
    assert "done" not in empty_terminal.done("migrate", "--contract")


def test_a_plan_for_a_database_that_is_not_there_says_how_to_make_it(empty_terminal: Terminal) -> None:
    assert "run `corpid migrate` to make it" in empty_terminal.refused("migrate", "--plan")


def test_settings_that_cannot_be_used_are_told_in_a_sentence(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPID_PORT", "none")
    for arguments in (["migrate"], ["migrate", "--plan"]):
        assert "CORPID_PORT" in terminal.refused(*arguments)
