"""`corpid client`, `corpid user` and `corpid entity`: the first hour, and emergencies."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid import __version__, cli, settings
from corpid.flows import namespaces
from corpid.rules.authentication.passwords import COMMAND_LINE
from tests.cli.conftest import Terminal, program

if TYPE_CHECKING:
    from corpid.engines import Stores
    from corpid.rules.audit import AuditEntry
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.directory.records import User

ENTITY = "entities: {A1: {type: UEN, country: SG, name: Alpha, status: Registered}}"
CLIENT = ("client", "add", "rp", "--name", "RP", "--redirect-uri", "https://rp.example/cb")


async def person(stores: Stores) -> tuple[User, Credentials]:
    user = await stores.registry.directory.user_by_name("test.person")
    assert user is not None
    return user, await stores.registry.factors.credentials(user.user_id)


async def events(stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.entries()


def value(output: str, name: str) -> str:
    [line] = [line for line in output.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).strip()


def test_a_client_is_added_listed_shown_disabled_and_enabled(terminal: Terminal) -> None:
    told = terminal.done(*CLIENT, "--jwks-uri", "https://rp.example/jwks")
    assert value(told, "client_id") == "rp"
    assert value(told, "Discovery").endswith("/.well-known/openid-configuration")
    [listed] = json.loads(terminal.done("client", "list", "--json"))
    assert listed["redirect_uris"] == ["https://rp.example/cb"]
    terminal.done("client", "disable", "rp")
    assert json.loads(terminal.done("client", "show", "rp", "--json"))["enabled"] is False
    assert "disabled" in terminal.done("client", "list")
    assert "already disabled" in terminal.refused("client", "disable", "rp")
    terminal.done("client", "enable", "rp")
    assert value(terminal.done("client", "show", "rp"), "enabled") == "true"
    assert [event.action for event in terminal.look(events)] == ["client.add", "client.disable", "client.enable"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((*CLIENT,), "exactly one of jwks and jwks_uri"),
        ((*CLIENT, "--jwks-uri", "http://rp.example/jwks"), "begin with https://"),
        ((*CLIENT, "--jwks", "missing.json"), "missing.json cannot be read"),
        ((*CLIENT, "--jwks-uri", "https://rp.example/jwks", "--redirect-uri", "https://u@rp.example/"), "user name or password"),
        ((*CLIENT, "--jwks-uri", "https://rp.example/jwks", "--service", "NONE"), "there is no service 'NONE'"),
        (("client", "show", "nobody"), "there is no client 'nobody'"),
        (("user", "disable", "nobody"), "there is no user 'nobody'"),
        (("user", "disable", "no body"), "U+0020"),
        (("user", "add", "x", "--name", "X", "--entity", "NONE"), "there is no entity 'NONE'"),
        (("entity", "disable", "NONE"), "there is no entity 'NONE'"),
        (("entity", "add", "C1", "--name", "C", "--type", "NON-UEN"), "lacks registration_number"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_clear_sentence(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in terminal.refused(*arguments)
    assert terminal.look(events) == []


def test_a_client_is_added_once(terminal: Terminal) -> None:
    terminal.done(*CLIENT, "--jwks-uri", "https://rp.example/jwks")
    refused = terminal.refused(*CLIENT, "--jwks-uri", "https://rp.example/jwks")
    assert "exists already: change it with `corpid client update`" in refused


async def fits(password: Any, held: Any, stores: Stores) -> bool:
    return await stores.passwords.verify(held.password_hash, password, source=COMMAND_LINE)


def test_a_person_gets_a_password_and_a_secret_that_are_shown_once(terminal: Terminal) -> None:
    """D44, D45: 160 bits."""
    terminal.done("apply", terminal.file(ENTITY))
    told = terminal.done("user", "add", "Test.Person", "--name", "Test Person", "--entity", "A1", "--with-factors")
    password, secret = value(told, "Password"), value(told, "TOTP secret")
    _, held = terminal.look(person)
    assert (len(password) >= 12, len(secret)) == (True, 32)
    assert held.totp_secret == secret
    assert f"secret={secret}" in value(told, "For authenticator apps")

    assert terminal.look(partial(fits, password, held))
    assert "exists already" in terminal.refused("user", "add", "test.person", "--name", "Another")
    assert terminal.look(person)[1] == held


def test_the_help_of_every_command_fills_the_lines_of_the_terminal() -> None:
    """No line ends where that of the source did."""
    subjects = program().commands.values()
    helps = [command.help for each in subjects for command in getattr(each, "commands", {"": each}).values()]
    assert len(helps) > 30
    assert all(text and "\n" not in text.replace("\n\n", "") for text in helps)


def test_no_option_is_broken_in_the_help_of_a_terminal_of_80_columns(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be copied whole cannot be typed; the commands of the directory."""
    monkeypatch.setenv("COLUMNS", "80")
    for subject in ("user", "entity", "service", "role", "administrator", "third-party"):
        for name, command in program().commands[subject].commands.items():
            words = terminal.done(subject, name, "--help").split()
            options = {each for parameter in command.params for each in parameter.opts if each.startswith("--")}
            assert options <= set(words), f"{subject} {name}"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The list is made without loading them."""
    listed = {name: each.help for name, each in cli.find_commands().items()}
    assert listed == {name: cli.load_command(name).help.partition("\n\n")[0] for name in listed}


def test_the_line_of_a_subject_names_each_of_its_commands() -> None:
    """The line is written by hand, since no subject is loaded for the list."""
    for name, subject in program().commands.items():
        listed = set(re.findall(r"[\w-]+", cli.find_commands()[name].help)) if name in cli.find_commands() else set()
        assert set(getattr(subject, "commands", ())) <= listed, name


def test_a_person_is_helped_back_in_and_switched_off(terminal: Terminal) -> None:
    terminal.done("user", "add", "test.person", "--name", "Test Person", "--with-factors")
    user, before = terminal.look(person)
    terminal.done("user", "reset-password", "TEST.PERSON")
    told = terminal.done("user", "reset-factors", "test.person")
    _, reset = terminal.look(person)
    assert reset.password_hash != before.password_hash
    assert reset.totp_secret == value(told, "TOTP secret") != before.totp_secret
    assert (reset.password_set_by, reset.totp_set_by) == ("operator", "operator")
    terminal.done("user", "disable", "test.person")
    assert terminal.look(person)[0].enabled is False
    terminal.done("user", "enable", "test.person")
    assert terminal.look(person)[0] == user
    assert [event.action for event in terminal.look(events)] == [
        "user.add", "credentials.add", "user.reset_password", "user.reset_factors", "user.disable", "user.enable",
    ]  # fmt: skip


async def miss(key: Any, stores: Stores) -> int:
    async with stores.transient.batch(stores.clock()) as batch:
        return await batch.count(namespaces.ATTEMPTS.name, key, namespaces.ATTEMPTS.seconds)


async def counted(key: Any, stores: Stores) -> bytes | None:
    return await stores.transient.get(namespaces.ATTEMPTS.name, key, now=stores.clock())


def test_unlocking_ends_the_delay_of_an_account(terminal: Terminal) -> None:
    """D47."""
    terminal.done("user", "add", "test.person", "--name", "Test Person", "--with-factors")

    key = namespaces.ATTEMPTS.entry(settings.load().base_url, "account", "test.person").key

    assert [terminal.look(partial(miss, key)), terminal.look(partial(miss, key))] == [1, 2]
    terminal.done("user", "unlock", "test.person")
    assert terminal.look(partial(counted, key)) is None


def test_an_entity_is_added_disabled_and_enabled(terminal: Terminal) -> None:
    terminal.done("entity", "add", "A1", "--name", "Alpha")
    assert "exists already" in terminal.refused("entity", "add", "A1", "--name", "Alpha")
    terminal.done("entity", "disable", "A1")
    assert "already disabled" in terminal.refused("entity", "disable", "A1")
    terminal.done("entity", "enable", "A1")
    assert [event.action for event in terminal.look(events)] == ["entity.add", "entity.disable", "entity.enable"]


def test_a_mixed_script_name_is_remarked_on(terminal: Terminal) -> None:
    """D51."""
    result = terminal.run("entity", "add", "A1", "--name", "\u0410lpha")
    assert result.exit_code == 0
    assert "mixes scripts" in result.stderr


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_the_version_is_printed_whichever_way_it_is_asked_for(terminal: Terminal, asked: str) -> None:
    """GNU Coding Standards §4.8: what a package manager and a script ask first."""
    assert terminal.done(asked).strip() == __version__
