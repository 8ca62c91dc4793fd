"""Registering, reading, changing and removing clients of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.apply import ApplyResult
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.write import Refused, audit_event, switch_record
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory import api_clients as rules_of_members
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import ApiClient
from corpid.rules.directory.changes import Delete, Precondition, Upsert
from corpid.rules.directory.differences import Difference, members_changed, members_set
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import Problem
from corpid.rules.directory.records import Entity
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.client_registration import RegistrationError, public_key_set, register_api_client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.directory.actors import Actor
    from corpid.rules.oauth.client_registration import Rules
    from corpid.stores.sql.registry import Registry

_KEY_MEMBERS: Final = {"jwks": "jwks_uri", "jwks_uri": "jwks"}
"""naming one takes the other away (D27)"""


async def find(registry: Registry, client_id: str, *, actor: Actor) -> RegisteredApiClient | None:
    """One client of the API, None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D59
    """
    authorise(actor, "read", Object(kind="API client"))
    return await registry.api_clients.get(client_id) if is_storable(client_id) else None


async def api_clients(registry: Registry, *, actor: Actor) -> list[RegisteredApiClient]:
    """Every client of the API, by identifier. Raises access.Forbidden, StoreUnavailable. Source: D59"""
    authorise(actor, "read", Object(kind="API client"))
    return await registry.api_clients.list_all()


async def acting_api_client(registry: Registry, client_id: str) -> tuple[ApiClient, Precondition] | None:
    """Return a client of the API as it may act now.

    It has every scope that it may ask for; with a guard of that. None if it is gone or disabled, or the entity that it
    is bound to is. Raises StoreUnavailable. Source: D50, D55, D59
    """
    client = await registry.api_clients.get(client_id)
    if client is None or not client.enabled:
        return None
    bound_to = (client.entity_id,)
    entity = (await registry.directory.read(Entity, [bound_to])).get(bound_to) if client.entity_id else None
    if client.entity_id and (entity is None or not entity.enabled):
        return None
    actor = ApiClient(client_id=client_id, scopes=frozenset(client.scopes), entity_id=client.entity_id)
    return actor, Precondition(RegisteredApiClient, client.key, client)


async def add_api_client(
    registry: Registry,
    client_id: str,
    members: Mapping[str, object],
    *,
    entity_id: str,
    actor: Actor,
    rules: Rules,
    now: float,
    dry_run: bool = False,
) -> tuple[RegisteredApiClient, ApplyResult]:
    """Register a client of the API, unless `dry_run`.

    `members` are texts, None for those not given; `entity_id` is empty for a client that is bound to none. Returns it
    with remarks on its keys. Raises Refused with every fault, access.Forbidden, Conflict, StoreUnavailable.
    Source: D27, D59
    """
    fields = _fields(client_id, members)
    if await find(registry, client_id, actor=actor) is not None or await registry.clients.get(client_id) is not None:
        raise Refused(f"the client {client_id} exists already: change it with `corpid client update`")
    if entity_id:
        await entity_named(registry, entity_id, actor=actor)
    lacking = [name for name in ("name", "scopes") if name not in fields]
    if lacking:
        raise Refused(f"the client {client_id} is new and lacks {', '.join(lacking)}")
    record = RegisteredApiClient(client_id=client_id, entity_id=entity_id, created_at=int(now), **fields)  # type: ignore[arg-type]
    warnings = tuple(Problem(0, remark) for remark in _registered(record, rules))
    if not dry_run:
        await _write(registry, actor, AuditAction.API_CLIENT_ADD, None, record)
    added = Difference(sign="+", subject=_described(record), members=tuple(members_set(record, record.key)))
    return record, ApplyResult(differences=(added,), warnings=warnings, written=not dry_run)


async def update_api_client(
    registry: Registry,
    client: RegisteredApiClient,
    members: Mapping[str, object],
    *,
    actor: Actor,
    rules: Rules,
    dry_run: bool = False,
) -> ApplyResult:
    """Change members of a client of the API.

    `members` are texts, None for those that keep their value. A running server follows within 5 s. Raises Refused with
    every fault, access.Forbidden, Conflict, StoreUnavailable. Source: D27, D50, D59
    """
    fields = _fields(client.client_id, members)
    if not fields:
        raise Refused("nothing was named to change: `corpid client update --help` lists what can be")
    becomes = replace(client, **fields)
    warnings = tuple(Problem(0, remark) for remark in _registered(becomes, rules))
    if becomes == client:
        return ApplyResult(differences=(), warnings=warnings, written=False)
    if not dry_run:
        await _write(registry, actor, AuditAction.API_CLIENT_UPDATE, client, becomes)
    return ApplyResult(differences=(_changed(client, becomes),), warnings=warnings, written=not dry_run)


async def switch_api_client(
    registry: Registry, client: RegisteredApiClient, *, enabled: bool, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Enable or disable a client of the API, unless `dry_run`.

    A running server follows within 5 s. Its tokens are refused while it is disabled. Raises Refused when nothing would
    change, access.Forbidden, Conflict, StoreUnavailable. Source: D50, D59
    """
    becomes = switch_record(client, _described(client), enabled=enabled)
    action = AuditAction.API_CLIENT_ENABLE if enabled else AuditAction.API_CLIENT_DISABLE
    if not dry_run:
        await _write(registry, actor, action, client, becomes)
    return ApplyResult(differences=(_changed(client, becomes),), warnings=(), written=not dry_run)


async def remove_api_client(
    registry: Registry, client: RegisteredApiClient, *, actor: Actor, dry_run: bool = False
) -> ApplyResult:
    """Remove a client of the API, and with it its tokens.

    A running server follows within 5 s. Raises access.Forbidden, Conflict, StoreUnavailable. Source: D50, D59
    """
    if not dry_run:
        await _write(registry, actor, AuditAction.API_CLIENT_REMOVE, client, None)
    gone = Difference(sign="-", subject=_described(client))
    return ApplyResult(differences=(gone,), warnings=(), written=not dry_run)


async def drop_api_client_keys(registry: Registry, client: RegisteredApiClient, *, actor: Actor) -> None:
    """Drop the keys fetched from a jwks_uri.

    A running server follows within 5 s. Raises Refused if its keys are in its record, access.Forbidden,
    StoreUnavailable. Source: D27
    """
    if client.jwks_uri is None:
        raise Refused(f"the keys of {client.client_id} stand in its record: replace them with `corpid client update`")
    authorise(actor, "write", Object(kind="API client", entity_id=client.entity_id))
    await registry.api_clients.drop_fetched_key_set(
        client.client_id, _event(actor, AuditAction.CLIENT_DROP_KEYS, client)
    )


def _changed(was: RegisteredApiClient, becomes: RegisteredApiClient) -> Difference:
    return Difference(sign="~", subject=_described(was), members=tuple(members_changed(was, becomes)))


def _described(client: RegisteredApiClient) -> str:
    return f"API client {client.client_id}"


def _fields(client_id: str, members: Mapping[str, object]) -> dict[str, object]:
    """The members as they are stored. Raises Refused with every fault."""
    try:
        fields = rules_of_members.read(client_id, members)
    except rules_of_members.MembersRefused as error:
        raise Refused("; ".join(error.reasons)) from None
    if fields.keys() >= _KEY_MEMBERS.keys():
        raise Refused("name either jwks or jwks_uri, not both")
    if "jwks" in fields:
        fields["jwks"] = public_key_set(str(fields["jwks"]))
    return fields | {_KEY_MEMBERS[name]: None for name in _KEY_MEMBERS if name in fields}


def _registered(client: RegisteredApiClient, rules: Rules) -> tuple[str, ...]:
    try:
        return register_api_client(client, rules)
    except RegistrationError as error:
        raise Refused(str(error)) from None


def _event(actor: Actor, action: AuditAction, client: RegisteredApiClient) -> AuditEvent:
    event = audit_event(actor, action, client.client_id)
    return replace(event, client_id=client.client_id, entity_id=client.entity_id)


async def _write(
    registry: Registry,
    actor: Actor,
    action: AuditAction,
    was: RegisteredApiClient | None,
    becomes: RegisteredApiClient | None,
) -> None:
    """Authorise and write a change, unless the record has changed meanwhile."""
    record = becomes or was
    assert record is not None  # noqa: S101 - one of the two is there
    authorise(actor, "write" if becomes else "delete", Object(kind="API client", entity_id=record.entity_id))
    event = _event(actor, action, record)
    change = Upsert(becomes, event) if becomes is not None else Delete(record, event)
    await registry.directory.write([Precondition(RegisteredApiClient, record.key, was), change])
