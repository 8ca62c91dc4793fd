"""Provisioning tokens: add, list, remove, authenticate (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.write import Refused, write_changes
from corpid.rules.directory.access import Actor, Object, ProvisioningToken, authorise
from corpid.rules.directory.provisioning_tokens import (
    LONGEST_LIFE_DAYS,
    MOST_TOKENS,
    USE_WRITTEN_SECONDS,
    RegisteredProvisioningToken,
    token_hash,
    token_name,
)
from corpid.rules.directory.records import Change, Entity, Precondition
from corpid.rules.limits import DAY
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry


async def add_token(
    registry: Registry,
    entity_id: str,
    name: str,
    *,
    days: int,
    token: str,
    token_id: str,
    actor: Actor,
    now: float,
    dry_run: bool = False,
) -> RegisteredProvisioningToken:
    """Add a token of an entity that lasts `days`, unless `dry_run`.

    `token` is the secret (32 random bytes, base64url), of which the hash is stored; `name` says what it is for; `now`
    is in epoch seconds. Raises Refused, access.Forbidden, Conflict, StoreUnavailable. Source: D60
    """
    entity = await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "write", _object(entity_id))
    if not 1 <= days <= LONGEST_LIFE_DAYS:
        raise Refused(phrase("days: a token lasts 1 to {count} days", count=LONGEST_LIFE_DAYS))
    try:
        shown = token_name(name)
    except ValueError as error:
        raise Refused(f"name: {error}") from None
    held = await registry.provisioning.tokens(entity_id)
    if len(held) >= MOST_TOKENS:
        raise Refused(
            phrase(
                "{entity} has {count} tokens, which is the maximum: remove one that is no longer used",
                entity=entity_id,
                count=len(held),
            )
        )
    record = RegisteredProvisioningToken(
        token_id=token_id, entity_id=entity_id, name=shown, token_hash=token_hash(token), created_at=int(now),
        expires_at=int(now) + days * DAY, created_by=actor.name,
    )  # fmt: skip
    if not dry_run:
        seen = [Precondition(Entity, entity.key, entity), Precondition(RegisteredProvisioningToken, record.key, None)]
        await write_changes(registry, actor, [Change(None, record)], seen=seen)
    return record


async def list_tokens(registry: Registry, entity_id: str, *, actor: Actor) -> list[RegisteredProvisioningToken]:
    """Return the tokens of an entity, the oldest first; also expired ones.

    Raises Refused if there is no such entity, access.Forbidden, StoreUnavailable. Source: D60
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", _object(entity_id))
    return await registry.provisioning.tokens(entity_id)


async def remove_token(
    registry: Registry, entity_id: str, token_id: str, *, actor: Actor, dry_run: bool = False
) -> RegisteredProvisioningToken:
    """Remove a token of an entity, unless `dry_run`.

    Raises Refused if the entity has no such token, access.Forbidden, Conflict, StoreUnavailable. Source: D60
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "delete", _object(entity_id))
    held = await registry.provisioning.tokens(entity_id)
    record = next((each for each in held if each.token_id == token_id), None)
    if record is None:
        raise Refused(
            f"{entity_id} has no such token: `corpid provisioning-token list --entity {entity_id}` shows them"
        )
    if not dry_run:
        await write_changes(registry, actor, [Change(record, None)])
    return record


async def authenticate_token(registry: Registry, token: str, *, now: float) -> ProvisioningToken | None:
    """Return the actor of a token; None if it is not valid.

    A token is not valid if it is unknown, removed or expired, or if its entity is disabled. Its last use is stored at
    most once an hour. `now` is in epoch seconds. Raises StoreUnavailable. Source: D50, D60
    """
    known_by = token_hash(token)
    found = await registry.provisioning.token(known_by) if known_by else None
    if found is None:
        return None
    record, entity = found
    if now >= record.expires_at or not entity.enabled:
        return None
    since = int(now) - USE_WRITTEN_SECONDS
    if record.last_used_at <= since:
        await registry.provisioning.note_use(record.token_id, at=int(now), unless_since=since + 1)
    return ProvisioningToken(token_id=record.token_id, entity_id=record.entity_id)


async def is_valid_still(registry: Registry, actor: ProvisioningToken, *, now: float) -> bool:
    """Return whether the token of an admitted request holds still.

    It was not removed, has not expired, and its entity is enabled. `now` is in epoch seconds. Raises StoreUnavailable.
    Source: D50, D60
    """
    held = await registry.provisioning.tokens(actor.entity_id)
    if not any(each.token_id == actor.token_id and now < each.expires_at for each in held):
        return False
    found = await registry.directory.find(Entity, actor.entity_id)
    return found is not None and found.enabled


def _object(entity_id: str) -> Object:
    return Object(kind="provisioning token", entity_id=entity_id)
