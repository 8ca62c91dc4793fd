"""Provisioning of an entity: tokens of SCIM clients, and groups (D60).

A group is a role at a service that needs no parameters and that the entity may use. Its members are those who have the
role for the whole entity and without a reference: other rows of the role do not belong to the group, and never change.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.write import Refused, cut_parts, read_pages, write_changes, write_parts
from corpid.rules.directory.access import Actor, Object, ProvisioningToken, authorise
from corpid.rules.directory.provisioning_tokens import (
    LONGEST_LIFE_DAYS,
    MOST_TOKENS,
    USE_WRITTEN_SECONDS,
    RegisteredProvisioningToken,
    token_hash,
    token_name,
)
from corpid.rules.directory.records import Assignment, Change, Entity, GroupRole, Membership, Precondition, Service
from corpid.rules.directory.role_forms import is_open_to
from corpid.rules.limits import DAY
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

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
        seen = [Precondition(Entity, entity.key, entity)]
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


MOST_CHANGES: Final = 1000
"""members that one change of a group adds and removes"""
_PAGE: Final = 1000
_AT_ONCE: Final = 100
"""changes of a transaction; other requests run between two of them"""
_SHOWN: Final = 3
"""unknown members that a refusal names"""


class UnknownMembers(Exception):
    """No members of the entity have these identifiers."""


async def list_groups(registry: Registry, *, actor: ProvisioningToken) -> list[GroupRole]:
    """The groups of the actor's entity.

    Raises access.Forbidden, StoreUnavailable. Source: R-20, D60
    """
    authorise(actor, "read", Object(kind="service"))
    authorise(actor, "read", Object(kind="entity", entity_id=actor.entity_id))
    entity = await registry.directory.find(Entity, actor.entity_id)
    if entity is None:
        return []
    return [
        GroupRole(service_id=service.service_id, role=role)
        async for service in registry.directory.scan(Service)
        if is_open_to(service, entity) and not service.parameters and service.sub_entity != "mandatory"
        for role in service.roles
    ]


async def list_group_members(
    registry: Registry, group: GroupRole, *, today: str, most: int, actor: ProvisioningToken
) -> list[str]:
    """The identifiers of a group's members, at most so many.

    Raises access.Forbidden, StoreUnavailable. Source: D23, D60
    """
    rows = await _read_rows(registry, group, today=today, most=most, actor=actor)
    memberships = await registry.directory.read(Membership, [(row.user_id, row.entity_id) for row in rows])
    return sorted(membership.membership_id for membership in memberships.values())


async def list_groups_of_member(
    registry: Registry, membership: Membership, *, today: str, actor: ProvisioningToken
) -> frozenset[GroupRole]:
    """The groups that a member of the entity belongs to.

    Raises access.Forbidden, StoreUnavailable. Source: D60
    """
    _authorise(actor, membership.entity_id)
    where = {"user_id": membership.user_id, "entity_id": membership.entity_id}
    rows = await registry.directory.page(Assignment, where, limit=_PAGE)
    return frozenset(GroupRole(service_id=row.service_id, role=row.role) for row in rows if _is_as_such(row, today))


async def change_group(
    registry: Registry,
    group: GroupRole,
    *,
    add: Collection[str],
    remove: Collection[str],
    replaced: bool,
    today: str,
    actor: ProvisioningToken,
    still: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Give a role to members, and take it from others.

    `add` and `remove` are identifiers of memberships. With `replaced`, every member who is not in `add` loses the role.
    Adding a member who has it, or removing one who does not, changes nothing. Many changes are written in several
    transactions: after a conflict in one of them, the same request again does the rest.
    `still` raises if the actor's right has ended, and is awaited between two of them.
    Raises UnknownMembers, Refused for too many at once, access.Forbidden (also if it needs approval), Conflict,
    StoreUnavailable. Source: D55, D60
    """
    _authorise(actor, actor.entity_id)
    wanted = await _find_memberships(registry, add, actor=actor)
    leaving = await _find_memberships(registry, remove, actor=actor)
    held: dict[tuple[str, ...], Assignment] = {}
    if replaced:
        rows = await _read_rows(registry, group, today="", most=MOST_CHANGES + len(wanted) + 1, actor=actor)
        held = {row.key: row for row in rows}
    keys = {(each.user_id, each.entity_id, group.service_id, group.role, "", "") for each in (*wanted, *leaving)}
    held |= await registry.directory.read(Assignment, keys - held.keys())
    stay = {each.user_id for each in wanted}
    go = {each.user_id for each in leaving} | ({key[0] for key in held} if replaced else set())
    changes = [
        *(_plan_role(each, group, held, today) for each in wanted),
        *(Change(row, None) for key, row in held.items() if key[0] in go - stay),
    ]
    made = [change for change in changes if change is not None]
    if len(made) > MOST_CHANGES:
        raise Refused(f"this gives or takes a role more than {MOST_CHANGES:,} times: change the group in several steps")
    parts = cut_parts(made, _AT_ONCE)
    async for number, _ in write_parts(registry, actor, parts, batch=actor.request_id):
        if still is not None and number < len(parts):
            await still()


def _plan_role(
    membership: Membership, group: GroupRole, held: dict[tuple[str, ...], Assignment], today: str
) -> Change | None:
    """The change that gives a role; None if the member has it.

    A role that has ended is given again, without an end.
    """
    row = Assignment(
        user_id=membership.user_id, entity_id=membership.entity_id, service_id=group.service_id, role=group.role
    )
    was = held.get(row.key)
    if was is not None and was.end_date >= today:
        return None
    return Change(was, row)


async def _find_memberships(
    registry: Registry, membership_ids: Iterable[str], *, actor: ProvisioningToken
) -> list[Membership]:
    wanted = list(dict.fromkeys(membership_ids))
    found = await registry.provisioning.memberships(actor.entity_id, wanted)
    known = {each.membership_id for each in found}
    unknown = [each for each in wanted if each not in known]
    if unknown:
        named = ", ".join(unknown[:_SHOWN])
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise UnknownMembers(f"there is no user {named}{more} in this entity")
    return found


async def _read_rows(
    registry: Registry, group: GroupRole, *, today: str, most: int, actor: ProvisioningToken
) -> list[Assignment]:
    """The rows of a group's members by key, at most so many.

    `today` empty: also those that have ended.
    """
    _authorise(actor, actor.entity_id)
    where = {"entity_id": actor.entity_id, "service_id": group.service_id, "role": group.role}
    found: list[Assignment] = []
    async for rows in read_pages(registry.directory, Assignment, where, at_once=_PAGE):
        found += (row for row in rows if _is_as_such(row, today))
        if len(found) >= most:
            break
        await asyncio.sleep(0)
    return found[:most]


def _is_as_such(row: Assignment, today: str) -> bool:
    """Return whether a row belongs to a group and has not ended (D23)."""
    return not row.sub_entity and not row.ref and row.end_date >= today


def _authorise(actor: ProvisioningToken, entity_id: str) -> None:
    authorise(actor, "read", Object(kind="assignment", entity_id=entity_id, parameters=False))
