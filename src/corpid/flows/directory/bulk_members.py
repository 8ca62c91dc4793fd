"""Changes of many members at once: suspended, restored, ended (D81)."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.lists import read_all
from corpid.flows.directory.member_changes import plan_removals, translate_refusals
from corpid.flows.directory.members import list_members, load_member, preview_change
from corpid.flows.directory.write import Refused, cut_parts, write_parts
from corpid.rules.directory.queries import Member
from corpid.rules.directory.records import Change, ChangeRequest
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from corpid.flows.directory.lists import ListPage
    from corpid.flows.directory.members import MemberFilter, MemberSummary
    from corpid.flows.directory.write import RequestDetails
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.rules.directory.records import Membership
    from corpid.stores.sql.registry import Registry

MemberAction: TypeAlias = Literal["suspend", "restore", "end"]
MOST_SELECTED: Final = 500
"""members that are changed at once: the page that asks looks at each of them"""
_PAGE: Final = 100


class LeftOut(msgspec.Struct, frozen=True):
    """A selected member whom the action does not change."""

    member: Member
    refusal: str
    """the reason of a condition (`access`); empty: the action does not fit the member's state"""


class BulkPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of an action on selected members."""

    members: tuple[Member, ...]
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
    registry: Registry, selected: Sequence[Member], action: MemberAction, *, actor: EntityAdministrator
) -> BulkPreview:
    """The members whom an action changes or leaves out.

    Every member is authorised. Raises StoreUnavailable. Source: D81
    """
    members: list[Member] = []
    left_out: list[LeftOut] = []
    waits = False
    for each in selected:
        membership = each.membership
        if action != "end" and (membership.enabled is (action == "restore") or membership.invited):
            left_out.append(LeftOut(each, ""))
            continue
        possible = await preview_change(registry, membership, actor=actor, end=action != "restore")
        if possible.refusal:
            left_out.append(LeftOut(each, possible.refusal))
        else:
            members.append(each)
            waits = waits or possible.needs_approval
        await asyncio.sleep(0)  # SQLite has answered within this task: others have their turn
    digest = sha256(msgspec.json.encode([(action, each.membership) for each in members])).hexdigest()
    return BulkPreview(members=tuple(members), left_out=tuple(left_out), needs_approval=waits, digest=digest)


async def change_members(
    registry: Registry,
    members: Sequence[Member],
    action: MemberAction,
    *,
    actor: EntityAdministrator,
    asking: RequestDetails,
) -> BulkOutcome:
    """Suspend, restore or end members, or request it.

    A hundred are one transaction or one request, all or nothing; after a part that is refused nothing more is changed.
    Raises what the first part is refused with, as `member_changes.submit_switch`. Source: D81
    """

    def becomes(membership: Membership) -> Membership | None:
        changed = replace(membership, enabled=action == "restore", changed_at=int(asking.now))
        return None if action == "end" else changed

    async def plan_ends(part: Sequence[Change]) -> list[Change]:
        return [row for each in part for row in await plan_removals(registry, each.record)]

    parts = cut_parts([Change(each.membership, becomes(each.membership)) for each in members])
    writing = write_parts(
        registry, actor, parts, batch=actor.request_id, asking=asking, guarded=True,
        along=plan_ends if action == "end" else None,
    )  # fmt: skip
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
