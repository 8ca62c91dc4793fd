"""`corpid export`: the directory as a file, without secrets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.export import entry_text, user_text
from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.sections import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from corpid.ports import Registry
    from corpid.rules.directory.records import Record

_HEADER = "# A CorpID directory. It holds no passwords and no TOTP secrets; applying it leaves those unchanged.\n"


async def export(registry: Registry, *, actor: Actor) -> AsyncIterator[str]:
    """The text of a directory file, piece by piece.

    Applying it again changes nothing.

    Passwords, their hashes and TOTP secrets are never read. Sections without records are left out.
    Raises access.Forbidden, StoreUnavailable. Source: docs/directory.md
    """
    for kind in KINDS:
        authorise(actor, "read", Object(kind=kind))
    yield _HEADER
    async for piece in _section(registry, "entities", Entity, {}):
        yield piece
    async for piece in _section(registry, "services", Service, {}):
        yield piece
    names = {user.user_id: user.user_name async for user in registry.directory.scan(User)}
    async for piece in _users(registry):
        yield piece
    async for piece in _section(registry, "assignments", Assignment, names):
        yield piece
    async for piece in _third_party(registry, names):
        yield piece
    heading = "\nclients:\n"
    for client in await registry.clients.all():
        yield heading + entry_text("clients", client, {})
        heading = ""


async def _section(
    registry: Registry, name: str, kind: type[Record], user_names: Mapping[str, str]
) -> AsyncIterator[str]:
    title = name.rpartition(".")[2]
    heading = f"\n{title}:\n" if title == name else f"  {title}:\n"
    async for record in registry.directory.scan(kind):
        yield heading + entry_text(name, record, user_names)
        heading = ""


async def _users(registry: Registry) -> AsyncIterator[str]:
    held: defaultdict[str, list[Membership]] = defaultdict(list)
    async for membership in registry.directory.scan(Membership):
        held[membership.user_id].append(membership)
    heading = "\nusers:\n"
    async for user in registry.directory.scan(User):
        yield heading + user_text(user, held[user.user_id])
        heading = ""


async def _third_party(registry: Registry, user_names: Mapping[str, str]) -> AsyncIterator[str]:
    heading = "\nthird_party:\n"
    for name, kind in (("third_party.grants", ThirdPartyGrant), ("third_party.assignments", ThirdPartyAssignment)):
        async for piece in _section(registry, name, kind, user_names):
            yield heading + piece
            heading = ""
