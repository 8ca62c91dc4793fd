"""Clients, also those of the admin API: registered, read, changed, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.apply import ADDS, ApplyResult, carry_out, prepare_addition
from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.write import Refused, audit_event
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.document import read_api_client_members
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.plan import Plan
from corpid.rules.directory.records import Change, Service
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.client_registration import (
    PLAIN_RULES,
    RegistrationError,
    RegistrationRules,
    public_key_set,
    register_api_client,
)
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.stores.sql.registry import Registry

_KEY_MEMBERS: Final = {"jwks": "jwks_uri", "jwks_uri": "jwks"}
"""naming one takes the other away (D27)"""
_MOST_SERVICES: Final = 1000


async def add_client(
    registry: Registry,
    passwords: Passwords,
    client_id: str,
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: RegistrationRules = PLAIN_RULES,
    dry_run: bool = False,
) -> tuple[Client, ApplyResult]:
    """Register a client, unless `dry_run`.

    `members` as in a directory file, `rules` of the deployment. Returns it with remarks on its keys and name.

    Raises write.Refused with every fault, access.Forbidden, Conflict, StoreUnavailable. Spec 1, D27, D38
    """
    client, prepared = await prepare_addition(registry, passwords, Client, client_id, members, rules=rules)
    await refuse_api_client(registry, client_id)
    applied = await carry_out(registry, prepared, actor=actor, verbs=ADDS, dry_run=dry_run)
    return client, applied


async def refuse_api_client(registry: Registry, client_id: str) -> None:
    """Refuse an identifier that a client of the admin API has.

    Raises write.Refused. Source: D59
    """
    if await registry.api_clients.get(client_id) is not None:
        raise Refused(
            phrase(
                "the identifier {client} is taken by a client of the admin API: choose another one",
                client=client_id,
            )
        )


async def find_client(registry: Registry, client_id: str, *, actor: Actor) -> Client:
    """One client. Raises write.Refused when there is none, access.Forbidden, StoreUnavailable. Spec 1"""
    authorise(actor, "read", Object(kind="client"))
    found = await registry.clients.get(client_id)
    if found is None:
        raise Refused(f"there is no client {client_id!r}: `corpid client list` shows those that there are")
    return found


async def find_any_client(registry: Registry, client_id: str, *, actor: Actor) -> Client | RegisteredApiClient:
    """One client of either kind.

    Raises write.Refused when there is none, access.Forbidden, StoreUnavailable. Source: Spec 1, D59
    """
    found = await registry.clients.get(client_id) if is_storable(client_id) else None
    found_api = await find_api_client(registry, client_id, actor=actor) if found is None else None
    return found_api or await find_client(registry, client_id, actor=actor)


async def list_clients(registry: Registry, *, actor: Actor) -> list[Client]:
    """Every client, by identifier. Raises access.Forbidden, StoreUnavailable. Spec 1"""
    authorise(actor, "read", Object(kind="client"))
    return sorted(await registry.clients.list_all(), key=lambda each: each.client_id)


async def list_services(registry: Registry, *, actor: Actor) -> list[Service]:
    """The services whose roles a client can read, at most 1,000.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="service"))
    return await registry.lists.find(SERVICES, limit=_MOST_SERVICES)


async def list_clients_of_service(registry: Registry, service_id: str, *, actor: Actor) -> list[Client]:
    """Clients that use a service, by identifier.

    Raises access.Forbidden, StoreUnavailable. Source: R-20, D53
    """
    return [each for each in await list_clients(registry, actor=actor) if service_id in each.services]


async def drop_keys(registry: Registry, client_id: str, *, actor: Actor) -> None:
    """Drop the fetched keys of a client of either kind.

    A running server follows within 5 s. Raises write.Refused if there is no such client or its keys are in its
    record, access.Forbidden, StoreUnavailable. Source: D27
    """
    found = await find_any_client(registry, client_id, actor=actor)
    of_api = isinstance(found, RegisteredApiClient)
    thing = Object(kind="API client" if of_api else "client", entity_id=getattr(found, "entity_id", ""))
    authorise(actor, "write", thing)
    if found.jwks_uri is None:
        raise Refused(f"the keys of {client_id} stand in its record: replace them with `corpid client update`")
    event = replace(audit_event(actor, AuditAction.CLIENT_DROP_KEYS, client_id), client_id=client_id)
    kept = registry.api_clients if of_api else registry.clients
    await kept.drop_fetched_key_set(client_id, replace(event, entity_id=thing.entity_id))


async def find_api_client(registry: Registry, client_id: str, *, actor: Actor) -> RegisteredApiClient | None:
    """One client of the API, None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D59
    """
    authorise(actor, "read", Object(kind="API client"))
    return await registry.api_clients.get(client_id) if is_storable(client_id) else None


async def add_api_client(
    registry: Registry,
    client_id: str,
    members: Mapping[str, object],
    *,
    entity_id: str,
    actor: Actor,
    rules: RegistrationRules,
    now: float,
    dry_run: bool = False,
) -> tuple[RegisteredApiClient, ApplyResult]:
    """Register a client of the API, unless `dry_run`.

    `members` are texts, None for those not given; `entity_id` is empty for a client that is bound to none. Returns it
    with remarks on its keys. Raises Refused with every fault, access.Forbidden, Conflict, StoreUnavailable.
    Source: D27, D59
    """
    fields = _read_fields(client_id, members)
    if await find_api_client(registry, client_id, actor=actor) or await registry.clients.get(client_id):
        raise Refused(f"the client {client_id} exists already: change it with `corpid client update`")
    if entity_id:
        await find_entity(registry, entity_id, actor=actor)
    lacking = [name for name in ("name", "scopes") if name not in fields]
    if lacking:
        raise Refused(f"the client {client_id} is new and lacks {', '.join(lacking)}")
    record = RegisteredApiClient(client_id=client_id, entity_id=entity_id, created_at=int(now), **fields)  # type: ignore[arg-type]
    warnings = _check_registration(record, rules)
    change = Change(None, record)
    added = await _write_one_change(registry, change, actor=actor, dry_run=dry_run, remarks=warnings)
    return record, added


async def update_api_client(
    registry: Registry,
    client: RegisteredApiClient,
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: RegistrationRules,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of a client of the API.

    `members` are texts, None for those that keep their value. A running server follows within 5 s. Raises Refused with
    every fault, access.Forbidden, Conflict, StoreUnavailable. Source: D27, D50, D59
    """
    fields = _read_fields(client.client_id, members)
    becomes = replace(client, **fields)
    warnings = _check_registration(becomes, rules)
    if becomes == client:
        remarks = tuple(FileProblem(0, remark) for remark in warnings)
        return ApplyResult(differences=(), warnings=remarks, written=False)
    change = Change(client, becomes)
    return await _write_one_change(registry, change, actor=actor, dry_run=dry_run, remarks=warnings)


async def _write_one_change(
    registry: Registry, change: Change, *, actor: Actor, dry_run: bool, remarks: Iterable[str] = ()
) -> ApplyResult:
    plan = Plan(changes=(change,), warnings=tuple(FileProblem(0, remark) for remark in remarks))
    return await carry_out(registry, plan, actor=actor, verbs=frozenset({change.verb}), dry_run=dry_run)


def _read_fields(client_id: str, members: Mapping[str, object]) -> dict[str, object]:
    """The members as they are stored. Raises Refused with every fault."""
    fields, reasons = read_api_client_members(client_id, members)
    if reasons:
        raise Refused("; ".join(reasons))
    if fields.keys() >= _KEY_MEMBERS.keys():
        raise Refused("name either jwks or jwks_uri, not both")
    if "jwks" in fields:
        fields["jwks"] = public_key_set(str(fields["jwks"]))
    return fields | {_KEY_MEMBERS[name]: None for name in _KEY_MEMBERS if name in fields}


def _check_registration(client: RegisteredApiClient, rules: RegistrationRules) -> Sequence[str]:
    try:
        return register_api_client(client, rules)
    except RegistrationError as error:
        raise Refused(str(error)) from None
