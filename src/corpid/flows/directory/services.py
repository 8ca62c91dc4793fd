"""Changes of services, and the clients that use one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.entities import carried_out, prepared_entry
from corpid.flows.directory.finding import LAST, service_named
from corpid.rules.directory.access import Object, authorise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.apply import ApplyResult
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import Service
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.registry import Registry

_AT_ONCE: Final = 200
_MOST: Final = 2000
"""clients that are looked through; deployments have hundreds"""


async def update_service(
    registry: Registry,
    passwords: Passwords,
    service_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    was: Service | None = None,
) -> ApplyResult:
    """Change members of a service.

    `members` as in a directory file, None for those that keep their value; `was` is the service that this was decided
    on. Raises Refused with every fault, or if there is no such service, access.Forbidden, Conflict, StoreUnavailable.
    Source: R-14.1, docs/directory.md
    """
    await service_named(registry, service_id, actor=actor)
    prepared = await prepared_entry(registry, passwords, "services", service_id, members, new_user_id=str)
    return await carried_out(registry, prepared, actor=actor, verbs=frozenset({"change"}), dry_run=False, was=was)


async def clients_of(registry: Registry, service_id: str, *, actor: Actor) -> tuple[list[Client], bool]:
    """Clients that use a service, by identifier.

    Of the first 2,000 clients; and whether there are others to look at. Raises access.Forbidden, StoreUnavailable.
    Source: R-20, D53
    """
    authorise(actor, "read", Object(kind="client"))
    found: list[Client] = []
    first = ""
    for _ in range(_MOST // _AT_ONCE):
        part = await registry.clients.named(first=first, until=LAST, limit=_AT_ONCE)
        found += [each for each in part if service_id in each.services]
        if len(part) < _AT_ONCE:
            return found, False
        first = part[-1].client_id + "\x01"
    return found, True
