"""`corpid client migration`: who still uses a generation that ends (Spec "Generations")."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
import typer
from typer.testing import CliRunner

from corpid.cli.client import migration
from corpid.flows.operations.migration_report import report
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.access import Forbidden, Person
from corpid.rules.directory.records import Change
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

EVENT: Final = AuditEvent(actor="operator", action="test.change")
AT: Final = int(datetime(2026, 3, 1, 23, 30, tzinfo=UTC).timestamp())

app = typer.Typer()
app.command()(migration)


def day(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


def client(client_id: str, *generations: str, until: str | None = None) -> Client:
    return Client(
        client_id=client_id,
        name=f"Name of {client_id}",
        redirect_uris=("https://rp.example/cb",),
        jwks='{"keys":[]}',
        generations=generations,
        legacy_until=until,
    )


def use(client_id: str, count: int, habit: str = "", generation: str = "legacy") -> UseCount:
    return UseCount(client_id=client_id, generation=generation, habit=habit, count=count, last_at=AT)


def keep(terminal: Terminal, clients: list[Client], counts: list[UseCount] | None = None) -> None:
    async def written(stores: Stores) -> None:
        await stores.registry.directory.write([Change(None, each) for each in clients], EVENT)
        await stores.registry.usage.add(counts or [])

    terminal.look(written)


def shown(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "300", "CORPID_TIMEZONE": "UTC"}).invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def reported() -> dict[str, dict[str, Any]]:
    return {each["client_id"]: each for each in json.loads(shown("--json"))}


def test_nobody_left_is_one_sentence(terminal: Terminal) -> None:
    keep(terminal, [client("a"), client("b", "current")], [use("a", 3, generation="current")])
    assert shown() == "No client may use legacy, and none has used it: it can be turned off.\n"
    assert json.loads(shown("--json")) == []


def test_clients_that_may_and_clients_that_did_are_told_with_their_end_and_use(terminal: Terminal) -> None:
    keep(
        terminal,
        [
            client("both", "current", "legacy", until=day(10)),
            client("gone", "current"),
            client("late", "legacy", until=day(-3)),
            client("never", "legacy", until=day(0)),
            client("new", "current"),
        ],
        [use("both", 12), use("gone", 2), use("late", 1), use("new", 5, generation="current")],
    )
    found = reported()
    assert list(found) == ["both", "gone", "late", "never"]
    told = ("uses", "last_at", "allowed", "days_left", "passed", "lists_successor")
    assert {name: tuple(each[member] for member in told) for name, each in found.items()} == {
        "both": (12, AT, True, 10, False, True),
        "gone": (2, AT, False, None, False, True),
        "late": (1, AT, True, -3, True, False),
        "never": (0, None, True, 0, False, False),
    }
    assert found["both"]["last_day"] == day(10)
    assert {(each["generation"], each["successor"]) for each in found.values()} == {("legacy", "current")}


def test_habits_come_with_what_the_successor_would_refuse(terminal: Terminal) -> None:
    habits = [use("a", 9), use("a", 4, "without_state"), use("a", 9, "assertion_lifetime")]
    keep(terminal, [client("a", "legacy", until=day(30))], habits)
    assert reported()["a"]["habits"] == [
        {
            "habit": "assertion_lifetime",
            "refused": "client assertions live longer than 120 s",
            "count": 9,
            "last_at": AT,
        },
        {"habit": "without_state", "refused": "requests have no state", "count": 4, "last_at": AT},
    ]


def test_the_table_says_who_when_how_often_until_when_and_what_to_change(terminal: Terminal) -> None:
    keep(
        terminal,
        [client("a", "legacy", until=day(30)), client("b", "legacy", until=day(-1)), client("c")],
        [use("a", 9), use("a", 4, "without_state"), use("c", 1)],
    )
    table = shown()
    for text in (
        "Last used (UTC)",
        "Name of a",
        "2026-03-01 23:30",
        day(30),
        "a: current would refuse this\n  requests have no state  4 times, last 2026-03-01 23:30\n",
        "\na: its record does not name current; add it to its generations\n",
        "never",
        "passed",
        "may not use it any more",
    ):
        assert text in table
    assert "None of them" not in table


def test_clients_that_may_and_never_did_are_told_as_such(terminal: Terminal) -> None:
    keep(terminal, [client("a", "legacy", until=day(30))])
    assert "None of them has used legacy yet" in shown()


@pytest.mark.parametrize(("served", "is_told"), [("fapi2", True), ("current", True), ("current,legacy", False)])
def test_a_deployment_that_does_not_serve_what_ends_says_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, served: str, *, is_told: bool
) -> None:
    keep(terminal, [client("a", "legacy", until=day(30))])
    monkeypatch.setenv("CORPID_GENERATIONS", served)
    result = CliRunner().invoke(app)
    assert ("This deployment does not serve legacy: its generations are" in result.stderr) is is_told
    assert "1" in result.stdout


async def ask(stores: Stores) -> None:
    await report(stores.registry, actor=Person(user_id="u"), generations=GENERATIONS, today=day(0))


def test_only_an_operator_reads_the_report(terminal: Terminal) -> None:
    with pytest.raises(Forbidden):
        terminal.look(ask)
