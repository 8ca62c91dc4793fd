"""Changes of many members at once: suspended, restored, ended, given a role (D81)."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.actors import assume_recent
from corpid.flows.directory.lists import ListPage, read_all
from corpid.flows.directory.member_changes import translate_refusals
from corpid.flows.directory.members import MemberFilter, MemberSummary, list_members, load_member
from corpid.flows.directory.write import (
    Refused,
    RequestDetails,
    authorise_changes,
    check_changes,
    cut_parts,
    guard_records,
    write_parts,
)
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Precondition, StoreChange
from corpid.rules.directory.queries import Member
from corpid.rules.directory.records import Assignment, Change, ChangeRequest, Membership
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.stores.sql.registry import Registry

MemberSwitch: TypeAlias = Literal["suspend", "restore", "end"]
MemberAction: TypeAlias = MemberSwitch | Assignment
"""what is done with each member; a role, of nobody yet, is given"""
MOST_SELECTED: Final = 500
"""members that are changed at once: the page that asks looks at each of them"""
_PAGE: Final = 100


class LeftOut(msgspec.Struct, frozen=True):
    """A selected member whom the action does not change."""

    member: Member
    refusal: str
    """the reason of a condition (`access`)

    Empty: the action does not fit the member's state, or they have the role already.
    """


class BulkPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of an action on selected members."""

    members: tuple[Member, ...]
    changes: tuple[Change, ...]
    """of each of them"""
    left_out: tuple[LeftOut, ...]
    needs_approval: bool
    digest: str
    """of the members as they were read"""


class BulkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a change of many members."""

    done: int
    """members that were changed, or for whom that was requested"""
    requests: tuple[ChangeRequest, ...]
    stopped: Exception | None = None
    """what the next part was refused with"""


async def select_members(
    registry: Registry, membership_ids: Sequence[str], *, actor: EntityAdministrator
) -> list[Member]:
    """Load members of the actor's entity by membership.

    Raises UnknownMember, Refused if they are too many, access.Forbidden, StoreUnavailable. Source: D81
    """
    _limit(len(membership_ids))
    return [await load_member(registry, each, actor=actor) for each in membership_ids]


async def select_filtered(registry: Registry, wanted: MemberFilter, *, actor: EntityAdministrator) -> list[Member]:
    """Load every member that a filter finds.

    Raises Refused if they are too many, access.Forbidden, StoreUnavailable. Source: D81
    """

    def read(after: str, limit: int) -> Awaitable[ListPage[MemberSummary]]:
        return list_members(registry, wanted, actor=actor, after=after, limit=limit)

    found = [each.member async for each in read_all(read, most=MOST_SELECTED + 1, at_once=_PAGE)]
    _limit(len(found))
    return found


def _limit(count: int) -> None:
    if count > MOST_SELECTED:
        raise Refused(phrase("change at most {count} people at once: narrow the list", count=MOST_SELECTED))


async def preview_bulk(
    registry: Registry, selected: Sequence[Member], action: MemberAction, *, actor: EntityAdministrator, today: str
) -> BulkPreview:
    """The members whom an action changes or leaves out.

    Every member is authorised. `today` as in a record. Raises Refused if a role may be given to nobody,
    StoreUnavailable. Source: D81
    """
    members: list[Member] = []
    changes: list[Change] = []
    left_out: list[LeftOut] = []
    waits = False
    for each, change in zip(selected, await _plan(registry, selected, action, actor.now, today), strict=True):
        if change is None:
            left_out.append(LeftOut(each, ""))
            continue
        try:
            found = await authorise_changes(registry, assume_recent(actor), [change])
        except Forbidden as error:
            left_out.append(LeftOut(each, error.reason))
        else:
            members.append(each)
            changes.append(change)
            waits = waits or bool(found.needing)
        await asyncio.sleep(0)  # SQLite has answered within this task: others have their turn
    await check_changes(registry, actor, changes)
    digest = sha256(msgspec.json.encode([(action, each.membership) for each in members])).hexdigest()
    return BulkPreview(
        members=tuple(members), changes=tuple(changes), left_out=tuple(left_out), needs_approval=waits, digest=digest
    )


async def _plan(
    registry: Registry, selected: Sequence[Member], action: MemberAction, now: float, today: str
) -> list[Change | None]:
    """The change of each member; None if the action does not fit."""
    if isinstance(action, Assignment):
        rows = [replace(action, user_id=each.user.user_id) for each in selected]
        held = await registry.directory.read(Assignment, [row.key for row in rows])
        present = {key for key, row in held.items() if row.end_date >= today}
        return [None if row.key in present else Change(held.get(row.key), row) for row in rows]

    def switch(member: Member) -> Change | None:
        was = member.membership
        if action == "end":
            return Change(was, None)
        if was.invited or was.enabled is (action == "restore"):
            return None
        return Change(was, replace(was, enabled=not was.enabled, changed_at=int(now)))

    return [switch(each) for each in selected]


async def write_bulk(
    registry: Registry, preview: BulkPreview, *, actor: EntityAdministrator, asking: RequestDetails
) -> BulkOutcome:
    """Change many members as it was previewed, or request it.

    Each must be as the preview showed them, such as the address of an invitation. A hundred are one transaction or one
    request, all or nothing; after a part that is refused nothing more is changed. Roles and levels end with a
    membership. Raises what the first part is refused with, as `member_changes.submit_switch`. Source: D68, D81
    """
    shown = {
        each.membership.key: Precondition(Membership, each.membership.key, each.membership) for each in preview.members
    }

    def guard_shown(part: Sequence[Change]) -> list[StoreChange]:
        return [*guard_records(part), *(shown[each.key[:2]] for each in part)]

    parts = cut_parts(preview.changes)
    writing = write_parts(registry, actor, parts, batch=actor.request_id, asking=asking, seen=guard_shown)
    done = 0
    requests: list[ChangeRequest] = []
    try:
        with translate_refusals():
            async for number, request in writing:
                done += len(parts[number - 1])
                requests += [request] if request is not None else []
    except Exception as refused:
        if not done:
            raise
        return BulkOutcome(done=done, requests=tuple(requests), stopped=refused)
    return BulkOutcome(done=done, requests=tuple(requests))
