"""Every command asks who acts before it writes (SECURITY.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid.cli.records import NOUNS
from corpid.flows.directory import access_review, apply, clients, lists, people
from corpid.flows.directory.people import load_person
from corpid.flows.directory.single_records import add_record, find_record, remove_record, set_enabled, update_record
from corpid.flows.operations import signing_keys
from corpid.flows.operations.buffers import list_refusals
from corpid.rules.directory.access import Forbidden, Person
from corpid.rules.directory.lists import (
    ADMINISTRATORS,
    API_CLIENTS,
    ASSIGNMENTS,
    CLIENTS,
    ENTITIES,
    GRANTS,
    OPERATORS,
    SERVICES,
    THIRD_PARTY_ASSIGNMENTS,
    USERS,
)
from corpid.rules.directory.lists import MEMBERS as MEMBER_LIST
from tests.cli.conftest import Terminal, at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from corpid.engines import Stores
    from corpid.rules.directory.document import Kind

PASSWORD = "harbour lights at dawn"
SOMEBODY = Person("5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10")
PAGE: dict[str, Any] = {"search": "", "after": "", "limit": 5}
MEMBERS: dict[str, object] = {"type": "UEN", "country": "SG", "name": "Alpha"}
CLIENT: dict[str, object] = {
    "name": "RP", "redirect_uris": ["https://rp.example/"], "jwks_uri": "https://rp.example/jwks",
}  # fmt: skip
FILE = b"entities: {B2: {type: UEN, country: SG, name: Beta}}"


NAMES: dict[Kind, dict[str, str | None]] = {
    "client": {"client_id": "rp"},
    "entity": {"entity_id": "A1"},
    "service": {"service_id": "X"},
    "user": {"user_name": "rina"},
    "membership": {"user": "rina", "entity": "A1"},
    "administrator": {"user": "rina", "entity": "A1"},
    "operator": {"user": "rina"},
    "assignment": {"user": "rina", "entity": "A1", "service": "X"},
    "grant": {
        "client_entity": "A1",
        "third_party": "B2",
        "service": "X",
        "role": None,
        "sub_entity": None,
        "ref": None,
    },
}
"""of one record of each kind"""
ADDED: dict[Kind, dict[str, str | None]] = {"entity": {"entity_id": "B2"}, "service": {"service_id": "Y"}}


async def exported(stores: Stores) -> list[str]:
    return [piece async for piece in apply.export_directory(stores.registry, actor=SOMEBODY)]


COMMANDS: dict[str, Callable[[Stores], Awaitable[object]]] = {
    "apply": lambda s: apply.apply_document(
        s.registry, s.passwords, FILE, file="f", actor=SOMEBODY, new_user_id=str, prune=True
    ),
    "export": exported,
    "client add": lambda s: clients.add_client(s.registry, s.passwords, "rp2", CLIENT, actor=SOMEBODY),
    "client list": lambda s: lists.list_records(s.registry, SOMEBODY, CLIENTS, limit=5),
    "client list --api": lambda s: lists.list_records(s.registry, SOMEBODY, API_CLIENTS, limit=5),
    "client show": lambda s: clients.find_client(s.registry, "rp", actor=SOMEBODY),
    "client drop-keys": lambda s: clients.drop_keys(s.registry, "rp", actor=SOMEBODY),
    "client refusals": lambda s: list_refusals(s.registry, "rp", actor=SOMEBODY),
    "key rewrap": lambda s: signing_keys.rewrap(s.registry, SOMEBODY),
    "entity list": lambda s: lists.list_records(s.registry, SOMEBODY, ENTITIES, limit=5),
    "entity list --name": lambda s: lists.list_records(s.registry, SOMEBODY, ENTITIES, order="name", search="A", limit=5),
    "entity show": lambda s: lists.find_entity(s.registry, "A1", actor=SOMEBODY),
    "entity review": lambda s: access_review.load_review_state(s.registry, SOMEBODY, "A1"),
    "service list": lambda s: lists.list_records(s.registry, SOMEBODY, SERVICES, limit=5),
    "service show": lambda s: lists.find_service(s.registry, "X", actor=SOMEBODY),
    "role list": lambda s: lists.list_with_records(s.registry, SOMEBODY, ASSIGNMENTS, {}, limit=5),
    "administrator list": lambda s: lists.list_with_records(s.registry, SOMEBODY, ADMINISTRATORS, {}, limit=5),
    "operator list": lambda s: lists.list_with_records(s.registry, SOMEBODY, OPERATORS, {}, limit=5),
    "third-party list": lambda s: lists.list_records(s.registry, SOMEBODY, GRANTS, limit=5),
    "third-party list --people": lambda s: lists.list_with_records(s.registry, SOMEBODY, THIRD_PARTY_ASSIGNMENTS, {}, limit=5),
    "user list": lambda s: lists.list_records(s.registry, SOMEBODY, USERS, limit=5),
    "user list --entity": lambda s: lists.list_with_records(s.registry, SOMEBODY, MEMBER_LIST, {"entity": "A1"}, limit=5),
    "user show": lambda s: load_person(s.registry, SOMEBODY, "rina", limit=5, now=s.clock()),
    "user add": lambda s: people.add_user(
        s.registry, s.passwords, "ravi", {"name": "Ravi"}, password=PASSWORD, totp_secret="A" * 32, new_user_id=lambda: "u", actor=SOMEBODY
    ),
    "user add --dry-run": lambda s: add_record(
        s.registry, s.passwords, "user", {"user_name": "ravi"}, {"name": "Ravi"}, actor=SOMEBODY, dry_run=True
    ),
    "user reset-password": lambda s: people.reset_password(s.registry, s.passwords, "rina", PASSWORD, actor=SOMEBODY),
    "user reset-factors": lambda s: people.reset_factors(s.registry, "rina", "A" * 32, actor=SOMEBODY),
    "user unlock": lambda s: people.unlock_user(s.registry, s.transient, "i", "rina", actor=SOMEBODY, now=s.clock()),
}  # fmt: skip


async def change_each(verb: str, kind: Kind, stores: Stores) -> None:
    """What a generated command does."""
    names, registry, passwords = NAMES[kind], stores.registry, stores.passwords
    match verb:
        case "show":
            await find_record(registry, SOMEBODY, kind, names)
        case "add":
            members = MEMBERS if kind == "entity" else {"name": "Added"} if kind == "service" else {"level": "owner"}
            await add_record(registry, passwords, kind, {**names, **ADDED.get(kind, {})}, members, actor=SOMEBODY)
        case "update":
            await update_record(registry, passwords, kind, names, {"name": "Other"}, actor=SOMEBODY)
        case "remove":
            await remove_record(registry, kind, names, actor=SOMEBODY)
        case _:
            await set_enabled(registry, kind, names, enabled=False, actor=SOMEBODY)


for name, noun in NOUNS.items():
    for verb in sorted({*noun.texts} - {"list", "enable"}):
        COMMANDS[f"corpid {name} {verb}"] = partial(change_each, verb, noun.kind)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A database with an entity, a person and a client; every test leaves it as it was."""
    with at(tmp_path_factory.mktemp("authority")) as terminal:
        fill(terminal)
        yield terminal


@pytest.fixture(scope="module")
def before(filled: Terminal) -> str:
    """What the database holds before any command."""
    return filled.done("export")


def fill(terminal: Terminal) -> None:
    terminal.done("entity", "add", "A1", "--name", "Alpha")
    terminal.done("user", "add", "rina", "--name", "Rina", "--with-factors")
    terminal.done(
        "client",
        "add",
        "rp",
        "--name",
        "RP",
        "--redirect-uri",
        "https://rp.example/",
        "--jwks-uri",
        "https://rp.example/j",
    )


async def forbidden(command: str, stores: Stores) -> None:
    with pytest.raises(Forbidden):
        await COMMANDS[command](stores)
    assert len(await stores.registry.audit.entries()) == 4


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_whoever_is_no_operator_is_refused_and_nothing_is_written(filled: Terminal, before: str, command: str) -> None:
    filled.look(partial(forbidden, command))
    assert filled.done("export") == before
