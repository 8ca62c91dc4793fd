"""Registering, reading and switching off clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory.apply import PlanWithNames
from corpid.flows.directory.entities import ADDS, addition, carried_out, one_change, prepared_entry
from corpid.flows.directory.finding import FIRST_CHARACTER, LAST
from corpid.flows.directory.write import Refused, audit_event, switch_record
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.plan import Change, Plan
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.apply import ApplyResult
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.actors import Actor
    from corpid.rules.oauth.client_registration import Rules
    from corpid.stores.sql.registry import Registry


async def add_client(
    registry: Registry,
    passwords: Passwords,
    client_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: Rules = PLAIN_RULES,
    dry_run: bool = False,
) -> tuple[Client, ApplyResult]:
    """Register a client, unless `dry_run`.

    `members` as in a directory file, `rules` of the deployment. Returns it with remarks on its keys and name.

    Raises write.Refused with every fault, access.Forbidden, Conflict, StoreUnavailable. Spec 1, D27, D38
    """
    adding = await addition(registry, passwords, Client, "clients", client_id, members, new_user_id=str, rules=rules)
    await refuse_api_client(registry, client_id)
    applied = await carried_out(registry, adding.prepared, actor=actor, verbs=ADDS, dry_run=dry_run)
    return adding.record, applied


async def refuse_api_client(registry: Registry, client_id: str) -> None:
    """Refuse an identifier that a client of the admin API has.

    Raises write.Refused. Source: D59
    """
    if await registry.api_clients.get(client_id) is not None:
        raise Refused(
            phrase(
                "the client {client} exists already, as a client of the admin API: take another identifier",
                client=client_id,
            )
        )


async def client(registry: Registry, client_id: str, *, actor: Actor) -> Client:
    """One client. Raises write.Refused when there is none, access.Forbidden, StoreUnavailable. Spec 1"""
    authorise(actor, "read", Object(kind="client"))
    found = await registry.clients.get(client_id)
    if found is None:
        raise Refused(f"there is no client {client_id!r}: `corpid client list` shows those that there are")
    return found


async def clients(registry: Registry, *, actor: Actor) -> list[Client]:
    """Every client, by identifier. Raises access.Forbidden, StoreUnavailable. Spec 1"""
    authorise(actor, "read", Object(kind="client"))
    return sorted(await registry.clients.list_all(), key=lambda each: each.client_id)


async def page_of_clients(
    registry: Registry, *, search: str = "", after: str = "", limit: int, actor: Actor
) -> list[Client]:
    """At most `limit` clients whose identifier begins with `search`, by identifier.

    They come after the one named `after`. Raises access.Forbidden, StoreUnavailable. Source: Spec 1
    """
    authorise(actor, "read", Object(kind="client"))
    first = max(search, after + FIRST_CHARACTER if after else "")
    return await registry.clients.named(first=first, until=search + LAST, limit=limit)


async def update_client(
    registry: Registry,
    passwords: Passwords,
    client_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: Rules = PLAIN_RULES,
    was: Client | None = None,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of a client.

    `members` as in a directory file, None for those that keep their value; `was` is the client that this was decided
    on.

    A running server follows within 5 s. Raises write.Refused with every fault, when there is no such client or no
    member is named, access.Forbidden, Conflict, StoreUnavailable. Spec 1, D27, D38, docs/directory.md
    """
    await client(registry, client_id, actor=actor)
    if all(value is None for value in members.values()):
        raise Refused("nothing was named to change: `corpid client update --help` lists what can be")
    prepared = await prepared_entry(registry, passwords, "clients", client_id, members, new_user_id=str, rules=rules)
    return await carried_out(registry, prepared, actor=actor, verbs=frozenset({"change"}), dry_run=dry_run, was=was)


async def switch_client(
    registry: Registry, client_id: str, *, enabled: bool, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Enable or disable a client; a running server follows within 5 s.

    Raises write.Refused when there is none or nothing would change, access.Forbidden, StoreUnavailable. D50
    """
    found = await client(registry, client_id, actor=actor)
    becomes = switch_record(found, phrase("client {name}", name=client_id), enabled=enabled)
    change = Change(verb="change", kind="client", key=(client_id,), was=found, becomes=becomes)
    return await one_change(registry, change, actor=actor, dry_run=dry_run)


async def remove_client(registry: Registry, client_id: str, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
    """Remove a client, with its counts of usage.

    A running server follows within 5 s. Raises write.Refused when there is none, access.Forbidden, StoreUnavailable.
    Source: D50
    """
    found = await client(registry, client_id, actor=actor)
    change = Change(verb="remove", kind="client", key=(client_id,), was=found)
    prepared = PlanWithNames(plan=Plan(changes=(change,)), user_names={})
    return await carried_out(registry, prepared, actor=actor, verbs=frozenset({"remove"}), dry_run=dry_run)


async def drop_keys(registry: Registry, client_id: str, *, actor: Actor) -> None:
    """Drop the keys fetched from a client's jwks_uri.

    A running server follows within 5 s. Raises write.Refused if there is no such client or its keys are in its
    record, access.Forbidden, StoreUnavailable. Source: D27
    """
    found = await client(registry, client_id, actor=actor)
    authorise(actor, "write", Object(kind="client"))
    if found.jwks_uri is None:
        raise Refused(f"the keys of {client_id} stand in its record: replace them with `corpid client update`")
    event = msgspec.structs.replace(audit_event(actor, AuditAction.CLIENT_DROP_KEYS, client_id), client_id=client_id)
    await registry.clients.drop_fetched_key_set(client_id, event)
