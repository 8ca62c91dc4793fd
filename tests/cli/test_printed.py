"""Nothing that is stored, read or typed does anything to the terminal of an operator; held for every command and field."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import FactorChange, Passkey
from corpid.rules.characters import printable
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.deprecated_usage import PAR_ENDPOINT_AUDIENCE, SIGN_IN, UseCount
from corpid.rules.oauth.records import Client
from corpid.rules.oauth.refusals import ClientRefusal
from tests.cli.conftest import Terminal, at, program
from tests.cli.hostile import TRICKS, filled, hostile, is_clean, key_set, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result

    from corpid.engines import Stores

CLIENT: Final = filled(Client, client_id=hostile("id"), jwks=key_set(), generations=("legacy", "current"),
    legacy_until="2027-03-31", endpoint_audience_until="2027-03-31")  # fmt: skip
USER: Final = filled(User, user_id="5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10", user_name="rina", placeholder=False)
ENTITY: Final = filled(Entity)
RECORDS: Final = (
    CLIENT,
    filled(Client, client_id="plain", jwks_uri=hostile("uri"), jwks=None, name=hostile("plain")),
    Client(
        client_id="sound",
        name=hostile("sound"),
        redirect_uris=("https://rp.example/",),
        jwks_uri="https://rp.example/jwks",
    ),
    USER,
    ENTITY,
    filled(Service),
    filled(Membership, user_id=USER.user_id, entity_id=ENTITY.entity_id, invited=False),
    filled(Administrator, user_id=USER.user_id, entity_id=ENTITY.entity_id, level="sub_administrator"),
    filled(Assignment, user_id=USER.user_id, entity_id=ENTITY.entity_id, service_id=filled(Service).service_id),
)
THIRD_PARTIES: Final = (
    filled(ThirdPartyGrant, client_entity_id=ENTITY.entity_id, entity_id=ENTITY.entity_id,
           service_id=filled(Service).service_id),
    filled(ThirdPartyAssignment, user_id=USER.user_id, client_entity_id=ENTITY.entity_id, entity_id=ENTITY.entity_id,
           service_id=filled(Service).service_id),
)  # fmt: skip
API_CLIENT: Final = filled(RegisteredApiClient, client_id="portal", jwks=key_set())
BETWEEN: Final = (ENTITY.entity_id, ENTITY.entity_id, filled(Service).service_id)
REQUESTED: Final = filled(
    ChangeRequest, entity_id=ENTITY.entity_id,
    changes=(Change(None, RECORDS[-1]),),
)  # fmt: skip
EVENT: Final = filled(AuditEvent)
KNOWN: Final = {
    ("client", "show"): (CLIENT.client_id,),
    ("client", "disable"): (CLIENT.client_id,),
    ("client", "enable"): (CLIENT.client_id,),
    ("client", "remove"): (CLIENT.client_id, "--dry-run"),
    ("client", "drop-keys"): (CLIENT.client_id,),
    ("client", "refusals"): (CLIENT.client_id,),
    ("client", "keys"): (f"new-keys{TRICKS}.json",),
    ("entity", "disable"): (ENTITY.entity_id,),
    ("entity", "enable"): (ENTITY.entity_id,),
    ("entity", "review"): (ENTITY.entity_id,),
    ("entity", "show"): (ENTITY.entity_id,),
    ("entity", "update"): (ENTITY.entity_id, "--name", hostile("name")),
    ("entity", "remove"): (ENTITY.entity_id, "--dry-run"),
    ("service", "show"): (filled(Service).service_id,),
    ("service", "add"): (hostile("service"), "--name", hostile("name"), "--role-description", hostile("role")),
    ("service", "update"): (filled(Service).service_id, "--parameter", hostile("parameter")),
    ("service", "remove"): (filled(Service).service_id, "--dry-run"),
    ("service", "disable"): (filled(Service).service_id, "--dry-run"),
    ("service", "enable"): (filled(Service).service_id,),
    ("role", "show"): ("rina", ENTITY.entity_id, filled(Service).service_id),
    ("role", "update"): ("rina", ENTITY.entity_id, filled(Service).service_id, "--parameter", hostile("parameter")),
    ("role", "add"): ("rina", ENTITY.entity_id, filled(Service).service_id, hostile("role")),
    ("role", "remove"): ("rina", ENTITY.entity_id, filled(Service).service_id, "--dry-run"),
    ("membership", "add"): ("rina", ENTITY.entity_id, "--dry-run"),
    ("membership", "remove"): ("rina", ENTITY.entity_id, "--dry-run"),
    ("membership", "disable"): ("rina", ENTITY.entity_id, "--dry-run"),
    ("membership", "enable"): ("rina", ENTITY.entity_id, "--dry-run"),
    ("membership", "show"): ("rina", ENTITY.entity_id),
    ("membership", "update"): ("rina", ENTITY.entity_id, "--department", hostile("department")),
    ("membership", "list"): ("--entity", ENTITY.entity_id),
    ("membership", "resend"): ("nobody",),
    ("membership", "invite"): (
        "--entity",
        ENTITY.entity_id,
        "--name",
        "Tan",
        "--email",
        "tan@harbour.example",
        "--dry-run",
    ),
    ("provisioning-token", "add"): ("--entity", ENTITY.entity_id, "--name", "HR"),
    ("provisioning-token", "list"): ("--entity", ENTITY.entity_id),
    ("provisioning-token", "remove"): ("t1", "--entity", ENTITY.entity_id),
    ("administrator", "add"): ("rina", ENTITY.entity_id, "owner", "--dry-run"),
    ("administrator", "show"): ("rina", ENTITY.entity_id),
    ("administrator", "update"): ("rina", ENTITY.entity_id, "--service", hostile("service")),
    ("administrator", "remove"): ("rina", ENTITY.entity_id, "--dry-run"),
    ("operator", "add"): ("rina", "auditor", "--dry-run"),
    ("operator", "show"): ("rina",),
    ("operator", "update"): ("rina", "--level", hostile("level")),
    ("operator", "remove"): ("rina", "--dry-run"),
    ("third-party", "show"): BETWEEN,
    ("third-party", "offer"): (*BETWEEN, hostile("role")),
    ("third-party", "accept"): (*BETWEEN, "--dry-run"),
    ("third-party", "decline"): (*BETWEEN, "--dry-run"),
    ("third-party", "end"): (*BETWEEN, "--dry-run"),
    ("approval", "show"): (REQUESTED.request_id,),
    ("approval", "approve"): (REQUESTED.request_id,),
    ("approval", "decline"): (REQUESTED.request_id,),
    ("user", "show"): ("rina",),
    ("user", "update"): ("rina", "--name", hostile("name"), "--dry-run"),
    ("user", "remove"): ("rina", "--dry-run"),
    ("user", "import"): ("people.csv", "--entity", ENTITY.entity_id),
    ("user", "invite"): ("rina",),
    ("user", "link"): ("rina", "--for", "password"),
    ("user", "factors"): ("rina",),
    ("user", "reset-password"): ("rina",),
    ("user", "reset-factors"): ("rina",),
    ("user", "disable"): ("rina",),
    ("user", "enable"): ("rina",),
    ("user", "unlock"): ("rina",),
    ("user", "erase"): (hostile("user"),),
    ("client", "add"): ("rp", "--name", "RP", "--redirect-uri", "https://rp.example/", "--jwks", "keys.json"),
    ("client", "update"): (CLIENT.client_id, "--name", hostile("name")),
    ("user", "add"): ("ravi", "--name", hostile("name")),
    ("entity", "add"): ("A1", "--name", hostile("name")),
    ("apply",): ("directory.yaml",),
    ("audit", "erase"): (hostile("user"),),
    ("backup",): (f"copy{TRICKS}",),
    ("restore",): (f"copy{TRICKS}",),
    ("key", "revoke"): (hostile("kid"),),
    ("key", "request-certificate"): (hostile("kid"),),
    ("key", "certify"): (hostile("kid"), "--remove"),
    ("doctor",): (f"http://127.0.0.1:9/{TRICKS}",),
    ("demo",): ("--data-dir", f"keys.json/{TRICKS}"),
    ("sandbox", "order"): ("error", f"endpoint={TRICKS}", "--developer", "http://127.0.0.1:9"),
    ("rp-new",): (f"rp{TRICKS}", "--language", "node", "--demo", f"http://127.0.0.1:9/{TRICKS}"),
    ("rp-check",): ("http://127.0.0.1:9/", "--developer", f"http://127.0.0.1:9/{TRICKS}"),
    ("serve",): (),
    ("testing",): (f"directory{TRICKS}.yaml",),
    ("migrate",): ("--plan",),
    ("maintenance", "after-restore"): (),
}
"""what a command is given besides nothing, to come as far as printing what is stored"""

SHOWN: Final = {
    ("client", "list"): "Client.name",
    ("client", "migration"): "Client.name",
    ("client", "refusals"): "ClientRefusal.detail",
    ("user", "factors"): "Passkey.name",
    ("user", "list"): "User.name",
    ("user", "show"): "User.name",
    ("entity", "list"): "Entity.name",
    ("entity", "show"): "Entity.name",
    ("service", "list"): "Service.name",
    ("service", "show"): "Service.name",
    ("role", "list"): "Assignment.role",
    ("role", "remove"): "Assignment.role",
    ("role", "show"): "Assignment.role",
    ("membership", "show"): "Membership.name",
    ("administrator", "show"): "Administrator.services",
    ("third-party", "show"): "ThirdPartyGrant.role",
    ("third-party", "list"): "ThirdPartyGrant.role",
    ("third-party", "accept"): "ThirdPartyGrant.role",
    ("third-party", "end"): "ThirdPartyGrant.role",
    ("approval", "list"): "ChangeRequest.requester",
    ("approval", "show"): "ChangeRequest.reason",
    ("administrator", "list"): "Administrator.services",
    ("administrator", "remove"): "Entity.entity_id",
    ("audit", "list"): "AuditEvent.actor",
}
"""a text that a table or a list shows, so that it is seen that it came so far"""


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the program with its words, whatever is added."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, each in command.commands.items():
        yield from leaves(each, (*path, name))


COMMANDS: Final = dict(leaves(program()))
PARAMETERS: Final = [
    pytest.param(path, parameter.name, marks=() if number == 0 else pytest.mark.full)
    for path, command in COMMANDS.items()
    for number, parameter in enumerate(each for each in command.params if each.name != "help")
]
"""of each command the first one, and the others in the long tests"""


@cache
def options(path: tuple[str, ...]) -> frozenset[str]:
    return frozenset(option for parameter in COMMANDS[path].params for option in parameter.opts)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A database in which every text is hostile; a host setting that nothing can listen on, so that nothing serves."""
    folder = tmp_path_factory.mktemp("printed")
    with at(folder) as made, made.given({"host": hostile("host"), "port": "1"}):
        made.look(fill)
        made.file("{}", "keys.json")
        made.file(f"clients: {{rp: {{name: {json.dumps(hostile('name'))}, jwks_uri: 'x'}}}}")
        yield made


async def fill(stores: Stores) -> None:
    directory, factors = stores.registry.directory, stores.registry.factors
    await directory.write([Change(None, record) for record in (*RECORDS, *THIRD_PARTIES, API_CLIENT, REQUESTED)], EVENT)
    before = await factors.credentials(USER.user_id)
    passkey = filled(Passkey, user_id=USER.user_id)
    assert await factors.change(FactorChange(before=before, after=before, add_passkey=passkey), EVENT)
    await stores.registry.usage.add(
        [
            filled(UseCount, client_id=CLIENT.client_id, generation=generation, habit=habit)
            for generation in CLIENT.generations
            for habit in (SIGN_IN, PAR_ENDPOINT_AUDIENCE, hostile("habit"))
        ]
    )
    await stores.registry.client_refusals.add([filled(ClientRefusal, client_id=CLIENT.client_id, at=1.0)], kept=1)


def run(terminal: Terminal, *arguments: str) -> Result:
    result = terminal.run(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert is_clean(result.stdout), result.stdout
    assert is_clean(result.stderr), result.stderr
    return result


@pytest.mark.full
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_whatever_is_stored_a_command_prints_nothing_that_a_terminal_obeys(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    """A command that is added and needs an argument needs a line in KNOWN, or the run ends before it prints."""
    monkeypatch.setenv("COLUMNS", "20000")
    result = run(terminal, *path, *KNOWN.get(path, ()))
    assert "Usage:" not in result.stderr, f"give {' '.join(path)} its arguments in KNOWN"
    assert result.output
    assert printable(hostile(SHOWN[path]) if path in SHOWN else "") in result.stdout
    if "--json" in options(path):
        run(terminal, *path, *KNOWN.get(path, ()), "--json")


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "name"), PARAMETERS, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_whatever_is_typed_a_refusal_does_nothing_to_the_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], name: str
) -> None:
    """Also file names, and what typer says of a value that it cannot read."""
    monkeypatch.setenv("COLUMNS", "20000")
    (parameter,) = [each for each in COMMANDS[path].params if each.name == name]
    given = list(KNOWN.get(path, ()))
    typed = f"keys.json/{TRICKS}"
    if parameter.param_type_name == "argument":
        given = [typed, *given[1:]]
    elif parameter.is_flag:
        given = [*given, f"{parameter.opts[0]}={typed}"]
    else:
        given = [*given, parameter.opts[0], typed]
    assert run(terminal, *path, *given).output


@pytest.mark.parametrize("arguments", [(TRICKS,), ("client", TRICKS), ("client", "list", TRICKS), (f"--{TRICKS}",)])
def test_a_command_that_does_not_exist_is_named_without_harm(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert run(terminal, *arguments).exit_code == 2


def test_every_field_of_a_client_is_shown_escaped(terminal: Terminal) -> None:
    texts = texts_of(CLIENT) - {CLIENT.client_id}
    assert len(texts) > 10
    listed = run(terminal, "client", "show", CLIENT.client_id)
    for text in texts:
        assert printable(text) in listed.stdout
    assert texts_of(json.loads(run(terminal, "client", "show", CLIENT.client_id, "--json").stdout)) >= texts
    assert "\\u001b" in listed.stdout or "\\x1b" in listed.stdout


@pytest.mark.parametrize("arguments", [("show", "portal"), ("list", "--api")])
def test_a_client_of_the_api_is_shown_escaped(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """D59: its name is a caller's text, and so are its keys."""
    monkeypatch.setenv("COLUMNS", "20000")
    for more in ((), ("--json",)):
        printed = run(terminal, "client", *arguments, *more).stdout
        assert "RegisteredApiClient.name" in printed


def test_every_field_of_an_audit_entry_comes_back_from_json_as_it_was(terminal: Terminal) -> None:
    printed = run(terminal, "audit", "list", "--json", "--last", "10000").stdout
    entries = [json.loads(line) for line in printed.splitlines()]
    found = [entry for entry in entries if entry["object"] == EVENT.object]
    assert texts_of(found[-1]) == texts_of(EVENT)


def test_an_export_is_clean_and_says_what_is_stored(terminal: Terminal) -> None:
    """YAML's own escapes: what is read back is what was stored."""
    printed = run(terminal, "export").stdout
    exported = yaml.safe_load(printed)
    for record in RECORDS:
        identifiers = {record.key[0]} if not isinstance(record, Client) else set()
        missing = texts_of(record) - texts_of(exported) - identifiers
        assert not {text for text in missing if not text.startswith(("Membership", "Passkey"))}, missing
    run(terminal, "export", "now.yaml")
    assert (terminal.folder / "now.yaml").read_text(encoding="utf-8") == printed


def test_an_export_is_a_file_of_its_owner_alone_also_if_others_could_read_the_one_before(terminal: Terminal) -> None:
    """It has names and identity numbers (docs/directory.md)."""
    for name, before in (("new.yaml", False), ("old.yaml", True)):
        file = terminal.folder / name
        if before:
            file.write_text("old")
            file.chmod(0o644)
        run(terminal, "export", name)
        assert (file.stat().st_mode & 0o777, file.read_text().startswith("old")) == (0o600, False)
    assert "cannot be written" in terminal.refused("export", "no-folder/now.yaml")


def test_differences_show_what_was_there_escaped(terminal: Terminal) -> None:
    file = terminal.file("clients: {sound: {name: Sound}}", "change.yaml")
    assert f"name: {printable(hostile('sound'))}" in run(terminal, "apply", file, "--dry-run").stdout


@pytest.mark.parametrize("name", ["\udcff\x1b[2J.yaml", "a\nFORGED.yaml"])
def test_a_file_name_is_escaped_in_what_is_said_of_it(terminal: Terminal, name: str) -> None:
    """Bytes that are no text, too: a file name may hold anything but / and NUL."""
    path = terminal.folder / name
    path.write_bytes(b"\xff")
    adding = ("client", "add", "x", "--name", "X", "--redirect-uri", "https://rp.example/", "--jwks")
    for arguments in (("apply",), ("restore",), ("backup",), adding, ("doctor", "--proxy")):
        assert printable(name) in run(terminal, *arguments, str(path)).stderr
