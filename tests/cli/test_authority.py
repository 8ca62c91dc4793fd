"""Every command asks who acts before it writes (SECURITY.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.directory import (
    access_review,
    apply,
    appointments,
    clients,
    entities,
    finding,
    lists,
    member_changes,
    people,
)
from corpid.flows.directory.person_records import load_person
from corpid.flows.directory.role_assignment import RoleFilter, add_role, remove_role
from corpid.flows.operations import signing_keys
from corpid.flows.operations.buffers import list_refusals
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.actors import Person
from corpid.rules.directory.lists import ENTITIES, GRANTS, SERVICES, USERS
from tests.cli.conftest import at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

PASSWORD = "harbour lights at dawn"
SOMEBODY = Person("5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10")
PAGE: dict[str, Any] = {"search": "", "after": "", "limit": 5}
MEMBERS: dict[str, object] = {"type": "UEN", "country": "SG", "name": "Alpha"}
CLIENT: dict[str, object] = {
    "name": "RP", "redirect_uris": ["https://rp.example/"], "jwks_uri": "https://rp.example/jwks",
}  # fmt: skip
FILE = b"entities: {B2: {type: UEN, country: SG, name: Beta}}"


async def exported(stores: Stores) -> list[str]:
    return [piece async for piece in apply.export_directory(stores.registry, actor=SOMEBODY)]


COMMANDS: dict[str, Callable[[Stores], Awaitable[object]]] = {
    "apply": lambda s: apply.apply_document(
        s.registry, s.passwords, FILE, file="f", actor=SOMEBODY, new_user_id=str, prune=True
    ),
    "export": exported,
    "client add": lambda s: clients.add_client(s.registry, s.passwords, "rp2", CLIENT, actor=SOMEBODY),
    "client update": lambda s: clients.update_client(s.registry, s.passwords, "rp", CLIENT, actor=SOMEBODY),
    "client list": lambda s: clients.list_clients(s.registry, actor=SOMEBODY),
    "client show": lambda s: clients.find_client(s.registry, "rp", actor=SOMEBODY),
    "client disable": lambda s: clients.switch_client(s.registry, "rp", enabled=False, actor=SOMEBODY),
    "client drop-keys": lambda s: clients.drop_keys(s.registry, "rp", actor=SOMEBODY),
    "client refusals": lambda s: list_refusals(s.registry, "rp", actor=SOMEBODY),
    "key rewrap": lambda s: signing_keys.rewrap(s.rewrap, SOMEBODY),
    "entity add": lambda s: entities.add_entity(s.registry, s.passwords, "B2", MEMBERS, actor=SOMEBODY),
    "entity disable": lambda s: entities.switch_entity(s.registry, "A1", enabled=False, actor=SOMEBODY),
    "entity update": lambda s: entities.update_entity(s.registry, s.passwords, "A1", MEMBERS, actor=SOMEBODY),
    "entity list": lambda s: lists.list_records(s.registry, SOMEBODY, ENTITIES, limit=5),
    "entity list --name": lambda s: lists.list_records(s.registry, SOMEBODY, ENTITIES, order="name", search="A", limit=5),
    "entity show": lambda s: finding.find_entity(s.registry, "A1", actor=SOMEBODY),
    "entity review": lambda s: access_review.load_review_state(s.registry, SOMEBODY, "A1"),
    "service list": lambda s: lists.list_records(s.registry, SOMEBODY, SERVICES, limit=5),
    "service show": lambda s: finding.find_service(s.registry, "X", actor=SOMEBODY),
    "role list": lambda s: lists.list_roles(s.registry, SOMEBODY, lists.ListFilter(), after="", limit=5),
    "role add": lambda s: add_role(s.registry, s.passwords, "rina", "A1", "X", {}, actor=SOMEBODY),
    "role remove": lambda s: remove_role(
        s.registry, RoleFilter(user="rina", entity="A1", service="X"), actor=SOMEBODY
    ),
    "membership add": lambda s: member_changes.add_membership(s.registry, s.passwords, "rina", "A1", actor=SOMEBODY),
    "membership remove": lambda s: member_changes.remove_membership(s.registry, "rina", "A1", actor=SOMEBODY),
    "membership disable": lambda s: member_changes.switch_membership(
        s.registry, s.passwords, "rina", "A1", enabled=False, actor=SOMEBODY
    ),
    "administrator list": lambda s: lists.list_administrators(s.registry, SOMEBODY, lists.ListFilter(), after="", limit=5),
    "administrator add": lambda s: appointments.set_administrator(
        s.registry, s.passwords, "rina", "A1", {"level": "owner"}, actor=SOMEBODY
    ),
    "administrator remove": lambda s: appointments.remove_administrator(s.registry, "rina", "A1", actor=SOMEBODY),
    "operator list": lambda s: appointments.list_operators(s.registry, actor=SOMEBODY),
    "operator add": lambda s: appointments.set_operator(s.registry, s.passwords, "rina", "auditor", actor=SOMEBODY),
    "operator remove": lambda s: appointments.remove_operator(s.registry, "rina", actor=SOMEBODY),
    "third-party list": lambda s: lists.list_records(s.registry, SOMEBODY, GRANTS, limit=5),
    "third-party list --people": lambda s: lists.list_roles(
        s.registry, SOMEBODY, lists.ListFilter(), after="", limit=5, third_party=True
    ),
    "user list": lambda s: lists.list_records(s.registry, SOMEBODY, USERS, limit=5),
    "user list --entity": lambda s: lists.list_members(s.registry, SOMEBODY, "A1", **PAGE),
    "user show": lambda s: load_person(s.registry, SOMEBODY, "rina", limit=5, now=s.clock()),
    "user add": lambda s: people.add_user(
        s.registry, s.passwords, "ravi", {"name": "Ravi"}, password=PASSWORD, totp_secret="A" * 32, new_user_id=lambda: "u", actor=SOMEBODY
    ),
    "user add --dry-run": lambda s: people.preview_addition(
        s.registry, s.passwords, "ravi", {"name": "Ravi"}, new_user_id=str, actor=SOMEBODY
    ),
    "user reset-password": lambda s: people.reset_password(s.registry, s.passwords, "rina", PASSWORD, actor=SOMEBODY),
    "user reset-factors": lambda s: people.reset_factors(s.registry, "rina", "A" * 32, actor=SOMEBODY),
    "user disable": lambda s: people.switch_user(s.registry, "rina", enabled=False, actor=SOMEBODY),
    "user unlock": lambda s: people.unlock_user(s.registry, s.transient, "i", "rina", actor=SOMEBODY, now=s.clock()),
}  # fmt: skip


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
