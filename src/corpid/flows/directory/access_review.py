"""The yearly access review of an entity.

A review begins with its first decision. It can be signed off once every member was kept with exactly what they may do
at that moment: people who were added or changed since are in the list again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows.directory.actors import assume_recent, check_still_acting, is_allowed
from corpid.flows.directory.lists import ListPage, cut_page, find_entity
from corpid.flows.directory.members import MemberFilter, list_members
from corpid.flows.directory.person_names import name_actors, read_names
from corpid.flows.directory.write import (
    Refused,
    RequestDetails,
    audit_event,
    authorise_changes,
    check_reason,
    read_pages,
    write_changes,
)
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory import access_review as rules
from corpid.rules.directory.access import Actor, EntityAdministrator, Object, authorise
from corpid.rules.directory.access_review import ACCESS_ACTIONS, AccessReview, ReviewDecision, ReviewedAccess
from corpid.rules.directory.lists import MEMBERS, MOST_COUNTED, ListTotal
from corpid.rules.directory.memberships import Member, name_invitation
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.records import (
    Administrator,
    AppointmentStatus,
    Assignment,
    Change,
    ChangeRequest,
    Membership,
    Precondition,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.words import has_words, searched_fields, words_of_search
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry

R = TypeVar("R", Assignment, ThirdPartyAssignment)

MOST_DECISIONS: Final = 100
"""people that one call keeps"""
_LOOKED_THROUGH: Final = 1000
"""members of an entity whose decisions are compared with their access whenever the list is read"""
_MOST_ROLES: Final = 1000
"""roles of one person for one entity"""
_MEMBERS_AT_ONCE: Final = 500
_ROLES_AT_ONCE: Final = 1000
_SHOWN: Final = 5
"""people that a refusal names"""
_ENTITIES_AT_ONCE: Final = 500
_DATES_SECONDS: Final = 86400.0
"""between two looks for entities without reviews"""
_NO_SUCH_MEMBER: Final = phrase("somebody in this list no longer belongs to the entity: fetch the list again")
_CHANGED: Final = "what somebody may do has changed since it was shown: look at it again"


class AccessChanged(Refused):
    """Somebody's access is no longer as it was shown."""


class NoOpenReview(Refused):
    """No access review is open."""


class ReviewIncomplete(Refused):
    """Somebody has not been reviewed with what they may do now."""


class ReviewState(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews of an entity, and how far the open one is."""

    review: AccessReview | None
    """None: it has none yet, since it got its first administrators less than a day ago"""
    people: int
    kept: int
    """people who were kept in the open review, or in the last one if none is open"""
    names: Mapping[str, str]
    """of those who began and who signed off, as `name_actors` has it"""


class ReviewedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person in a review, with their access and the decision."""

    user: User
    access: ReviewedAccess
    decision: ReviewDecision | None
    decided_by: str
    """as `name_actors` has it; empty without a decision"""
    reviewed: bool
    """whether the decision keeps exactly this"""
    seen: str
    """names what is shown here; to be handed back with the decision"""


class PeopleLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A page of people who are still to be reviewed."""

    page: ListPage[ReviewedPerson]
    any_left: bool
    """whether anybody of the entity is left, also on no page"""
    first: int = 0
    """the number of the first row; 0: not known"""
    with_access: int = 0
    """people on all pages of those with access; not counted in a large entity"""
    without_access: int = 0


class KeepDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A person whose access is to be kept as it was shown."""

    user_id: str
    seen: str


async def load_review_state(registry: Registry, actor: Actor, entity_id: str) -> ReviewState:
    """The reviews of an entity.

    Raises Refused if there is no such entity, access.Forbidden, StoreUnavailable. Source: docs/decisions/0022
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="access review", entity_id=entity_id))
    people, kept = await registry.access_reviews.counts(entity_id)
    review = await registry.access_reviews.find(entity_id)
    actors = (review.began_by, review.signed_off_by) if review else ()
    names = await name_actors(registry, entity_id, actors, reader=actor)
    return ReviewState(review=review, people=people, kept=kept, names=names)


def describe_review(entity_id: str, state: ReviewState) -> dict[str, object]:
    """The reviews of an entity, as API and command show them.

    Source: D68, docs/decisions/0022
    """
    review = state.review
    return {
        "entity": entity_id,
        "due_at": review.due_at if review else None,
        "began_at": (review.began_at or None) if review else None,
        "began_by": review.began_by if review else "",
        "began_by_name": str(state.names.get(review.began_by, "")) if review else "",
        "people": state.people,
        "kept": state.kept if review and review.began_at else 0,
        "signed_off_at": (review.signed_off_at or None) if review else None,
        "signed_off_by": review.signed_off_by if review else "",
        "signed_off_by_name": str(state.names.get(review.signed_off_by, "")) if review else "",
        "last_kept": review.kept if review else 0,
        "last_ended": review.ended if review else 0,
    }


async def list_reviewed_people(
    registry: Registry, actor: Actor, entity_id: str, *, unreviewed: bool, after: str, limit: int
) -> ListPage[ReviewedPerson]:
    """A page of an entity's people, with what they may do.

    `unreviewed` leaves out those who were kept; of a large entity, those who changed since come back when it is to be
    signed off. Raises Refused, access.Forbidden, StoreUnavailable. Source: docs/decisions/0022
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="access review", entity_id=entity_id))
    if not is_storable(after):
        raise Refused("after: this is no place in this list")
    is_open = await _is_open(registry, entity_id)
    if unreviewed and is_open:
        if not after and (await registry.access_reviews.counts(entity_id))[0] <= _LOOKED_THROUGH:
            await _look_through(registry, entity_id)
        found = await registry.access_reviews.undecided(entity_id, after=after, limit=limit + 1)
    else:
        stored = await registry.lists.find(MEMBERS, {"entity_id": entity_id}, after=(after,), limit=limit + 1)
        found = [(each.membership, each.user) for each in stored]
    page = cut_page(found, limit, [membership.membership_id for membership, _ in found])
    user_ids = [user.user_id for _, user in page.found]
    decisions = await registry.access_reviews.decisions(entity_id, user_ids) if is_open else {}
    names = await name_actors(registry, entity_id, [each.decided_by for each in decisions.values()], reader=actor)
    shown = []
    for membership, user in page.found:
        decision = decisions.get(user.user_id)
        decided_by = names[decision.decided_by] if decision else ""
        shown.append(_show_person(user, await _read_access(registry, membership), decision, decided_by))
    return ListPage(found=tuple(shown), after=page.after)


async def _is_open(registry: Registry, entity_id: str) -> bool:
    review = await registry.access_reviews.find(entity_id)
    return review is not None and bool(review.began_at)


def _show_person(
    user: User, access: ReviewedAccess, decision: ReviewDecision | None = None, decided_by: str = ""
) -> ReviewedPerson:
    return ReviewedPerson(
        user=user,
        access=access,
        decision=decision,
        decided_by=decided_by,
        reviewed=rules.is_reviewed(access, decision),
        seen=rules.digest(access),
    )


async def list_people_left(
    registry: Registry,
    actor: EntityAdministrator,
    wanted: MemberFilter,
    *,
    with_access: bool,
    after: str,
    before: str,
    limit: int,
) -> PeopleLeft:
    """A page of people still to be reviewed, by user name.

    Those with access, or those without. `after` and `before` are places of another page; one that is past the end means
    the last page. Those of a very large entity are not counted, and a page has those who fit among as many members.
    Raises Refused for an unknown place, access.Forbidden, StoreUnavailable. Source: D83, docs/decisions/0022
    """
    entity_id = actor.entity_id
    authorise(actor, "read", Object(kind="access review", entity_id=entity_id))
    is_open = await _is_open(registry, entity_id)
    if (await registry.access_reviews.counts(entity_id))[0] > MOST_COUNTED:
        members = await list_members(registry, wanted, actor=actor, after=after, before=before, limit=limit)
        users = [each.member.user.user_id for each in members.found]
        decisions = await registry.access_reviews.decisions(entity_id, users) if is_open else {}
        people = [
            _show_person(user, await _read_access(registry, each.member.membership), decisions.get(user.user_id))
            for each in members.found
            for user in [each.member.user]
        ]
        fitting = [each for each in people if not each.reviewed and each.access.is_any is with_access]
        any_left = not is_open or bool(await registry.access_reviews.undecided(entity_id, after="", limit=1))
        page = ListPage(found=tuple(fitting), after=members.after, before=members.before)
        return PeopleLeft(page=page, any_left=any_left)
    left, _ = await _look_through(registry, entity_id, is_open=is_open)
    words = words_of_search(wanted.search)
    found = sorted(
        (each for each in left if _fits(*each, wanted, words)),
        key=lambda each: (each[0].identity.casefold(), each[0].membership.membership_id),
    )
    listed = [(member, access) for member, access in found if access.is_any is with_access]
    end = _read_number(before) if before else len(listed)
    start = max(0, end - limit) if before else min(_read_number(after), max(0, (len(listed) - 1) // limit * limit))
    shown = listed[start : start + limit]
    page = ListPage(
        found=tuple(_show_person(member.user, access) for member, access in shown),
        after=str(start + limit) if start + limit < len(listed) else "",
        before=str(start) if start else "",
        total=ListTotal(count=len(listed)),
    )
    counts = len(listed), len(found) - len(listed)
    having, lacking = counts if with_access else counts[::-1]
    return PeopleLeft(page=page, any_left=bool(left), first=start + 1, with_access=having, without_access=lacking)


def _read_number(place: str) -> int:
    return int(place) if place.isascii() and place.isdigit() and len(place) <= len(str(MOST_COUNTED)) else 0


def _fits(member: Member, access: ReviewedAccess, wanted: MemberFilter, words: Sequence[str]) -> bool:
    membership = member.membership
    if (wanted.state and member.state != wanted.state) or (wanted.search.strip() and not words):
        return False
    if wanted.service_id and wanted.service_id not in {each.service_id for each in access.roles}:
        return False
    own = (getattr(membership, name) for name in searched_fields(Membership))
    return has_words(" ".join((member.identity, member.name_alone, member.email, *own)), words)


async def _read_access(registry: Registry, membership: Membership) -> ReviewedAccess:
    where = {"user_id": membership.user_id, "entity_id": membership.entity_id}
    return ReviewedAccess(
        membership=membership,
        administrator=await registry.directory.find(Administrator, *membership.key),
        roles=tuple(await registry.directory.page(Assignment, where, limit=_MOST_ROLES)),
        third_party_roles=tuple(await registry.directory.page(ThirdPartyAssignment, where, limit=_MOST_ROLES)),
    )


async def may_keep_own(registry: Registry, actor: EntityAdministrator) -> bool:
    """Return whether an actor may keep their own access.

    With a recent sign-in. Raises StoreUnavailable. Source: D54
    """
    administrators = await registry.directory.administrators(actor.entity_id)
    return is_allowed(
        assume_recent(actor), "write", _build_object(actor, actor.entity_id, actor.user_id, administrators)
    )


async def keep_access(
    registry: Registry, actor: Actor, entity_id: str, wanted: Sequence[KeepDecision], *, now: float
) -> AccessReview:
    """Keep people's access as it was shown.

    The first decision begins a review. Raises Refused if somebody's access is no longer as it was shown,
    access.Forbidden, ChangedMeanwhile, StoreUnavailable. Source: D54, D57
    """
    await find_entity(registry, entity_id, actor=actor)
    administrators = await registry.directory.administrators(entity_id)
    for each in wanted:
        authorise(actor, "write", _build_object(actor, entity_id, each.user_id, administrators))
    if not 1 <= len(wanted) <= MOST_DECISIONS:
        raise Refused(phrase("one call keeps 1 to {count} people", count=MOST_DECISIONS))
    held = await _check_as_shown(registry, entity_id, wanted)
    decisions = [
        ReviewDecision(
            entity_id=entity_id, user_id=each.user_id, decision="keep", seen=each.seen, decided_at=int(now),
            decided_by=actor.name,
        )
        for each in wanted
    ]  # fmt: skip
    events = [
        audit_event(
            actor,
            AuditAction.ACCESS_REVIEW_KEEP,
            f"{each.user_id}/{entity_id}",
            entity_id=entity_id,
            seen=each.seen,
            **name_invitation(membership),
        )
        for each, membership in zip(wanted, held, strict=True)
    ]
    guards = [Precondition(Membership, each.key, each) for each in held]
    return await _write_decisions(registry, actor, entity_id, decisions, events, now=now, guards=guards)


async def end_access(
    registry: Registry, actor: Actor, entity_id: str, user_id: str, asking: RequestDetails
) -> ChangeRequest | None:
    """End a person's membership, with their level and roles.

    As outside of a review: returns the request if it needs approval, until which the person stays in the list.
    `asking` is as in `write_changes`. Raises Refused, access.Forbidden, Conflict, StoreUnavailable.
    Source: D53, D54, D55
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "write", Object(kind="access review", entity_id=entity_id))
    membership = await registry.directory.find(Membership, user_id, entity_id)
    if membership is None:
        raise Refused(_NO_SUCH_MEMBER)
    changes = [Change(membership, None)]
    if (await authorise_changes(registry, actor, changes)).needing:
        check_reason(asking.reason)
    decision = ReviewDecision(
        entity_id=entity_id,
        user_id=user_id,
        decision="end",
        seen="",
        decided_at=int(asking.now),
        decided_by=actor.name,
    )
    await _write_decisions(registry, actor, entity_id, [decision], [], now=asking.now)
    return await write_changes(registry, actor, changes, asking=asking)


async def sign_off_review(registry: Registry, actor: Actor, entity_id: str, *, now: float) -> AccessReview:
    """Sign the open review off.

    Raises Refused if none is open or somebody was not kept with what they may do now (they are in the list again),
    access.Forbidden, ChangedMeanwhile if something changed at this moment, StoreUnavailable. Source: D54, D57
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "write", Object(kind="access review", entity_id=entity_id))
    review = await registry.access_reviews.find(entity_id)
    if review is None or not review.began_at:
        raise NoOpenReview("no access review is open: it begins with the first decision")
    settled = await registry.seals.settled_number()
    left, decisions = await _look_through(registry, entity_id)
    if left:
        some = [member.user.user_id for member, _ in left[:_SHOWN]]
        shown = ", ".join((await read_names(registry, entity_id, some)).values())
        further = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        raise ReviewIncomplete(f"these people have not been reviewed with what they may do now: {shown}{further}")
    _, kept = await registry.access_reviews.counts(entity_id)
    ended = len(decisions) - kept  # also of those who were kept first
    becomes = rules.signed_off(review, by=actor.name, kept=kept, ended=ended, now=now)
    event = audit_event(
        actor, AuditAction.ACCESS_REVIEW_SIGN_OFF, entity_id, entity_id=entity_id, kept=str(kept), ended=str(ended)
    )

    async def within() -> None:
        await registry.access_reviews.sign_off(review, becomes, actions=ACCESS_ACTIONS, after=settled)

    await registry.directory.write(await check_still_acting(registry, actor), event, within)
    return becomes


def _build_object(
    actor: Actor, entity_id: str, user_id: str, administrators: Sequence[AppointmentStatus[Administrator]]
) -> Object:
    """A person's access as the object of a decision."""
    others = any(
        each.enabled and each.record.approves and f"user:{each.record.user_id}" != actor.name for each in administrators
    )
    return Object(kind="access review", entity_id=entity_id, user_id=user_id, has_other_reviewer=others)


async def _check_as_shown(registry: Registry, entity_id: str, wanted: Sequence[KeepDecision]) -> list[Membership]:
    """Return the memberships of people whose access is as it was shown."""
    keys = [(each.user_id, entity_id) for each in wanted]
    held = await registry.directory.read(Membership, keys)
    for each, key in zip(wanted, keys, strict=True):
        if key not in held:
            raise AccessChanged(_NO_SUCH_MEMBER)
        if rules.digest(await _read_access(registry, held[key])) != each.seen:
            raise AccessChanged(_CHANGED)
    return [held[key] for key in keys]


async def _write_decisions(
    registry: Registry,
    actor: Actor,
    entity_id: str,
    decisions: Sequence[ReviewDecision],
    events: Sequence[AuditEvent],
    *,
    now: float,
    guards: Sequence[Precondition] = (),
) -> AccessReview:
    """Store decisions with their events, in one transaction, if `guards` still hold."""
    seen = await registry.access_reviews.find(entity_id)
    review = seen or rules.first(entity_id, now=now)
    if not review.began_at:
        review = rules.begin_review(review, by=actor.name, now=now)
        events = [audit_event(actor, AuditAction.ACCESS_REVIEW_BEGIN, entity_id, entity_id=entity_id), *events]

    async def within() -> None:
        await registry.access_reviews.decide(seen, review, decisions)
        for event in events:
            await registry.audit.write(event, now=now)

    await registry.directory.write([*await check_still_acting(registry, actor), *guards], None, within)
    return review


async def _look_through(
    registry: Registry, entity_id: str, *, is_open: bool = True
) -> tuple[list[tuple[Member, ReviewedAccess]], dict[str, ReviewDecision]]:
    """Compare every decision with the person's access now.

    Those that no longer fit are forgotten. Returns the people who are left to review, and the decisions that fit: none
    if no review is open.
    """
    decisions = await registry.access_reviews.all_decisions(entity_id) if is_open else {}
    levels = {each.record.user_id: each.record for each in await registry.directory.administrators(entity_id)}
    roles = await _read_roles(registry, Assignment, entity_id)
    third_party_roles = await _read_roles(registry, ThirdPartyAssignment, entity_id)
    left: list[tuple[Member, ReviewedAccess]] = []
    stale: list[ReviewDecision] = []
    after, more = "", True
    while more:
        found = await registry.lists.find(MEMBERS, {"entity_id": entity_id}, after=(after,), limit=_MEMBERS_AT_ONCE)
        for each in found:
            membership, user = each.membership, each.user
            access = ReviewedAccess(
                membership=membership,
                administrator=levels.get(user.user_id),
                roles=tuple(roles.get(user.user_id, ())),
                third_party_roles=tuple(third_party_roles.get(user.user_id, ())),
            )
            decision = decisions.get(user.user_id)
            if rules.is_reviewed(access, decision):
                continue
            left.append((each, access))
            if decision is not None and decision.decision == "keep":
                stale.append(decision)
        more = len(found) == _MEMBERS_AT_ONCE
        after = found[-1].membership.membership_id if found else ""
        await asyncio.sleep(0)
    if stale:
        await registry.access_reviews.forget(stale)
    forgotten = {each.user_id for each in stale}
    return left, {user_id: each for user_id, each in decisions.items() if user_id not in forgotten}


async def _read_roles(registry: Registry, kind: type[R], entity_id: str) -> dict[str, list[R]]:
    found: defaultdict[str, list[R]] = defaultdict(list)
    where = {"entity_id": entity_id}
    async for rows in read_pages(registry.directory, kind, where, at_once=_ROLES_AT_ONCE):
        for row in rows:
            found[row.user_id].append(row)
        await asyncio.sleep(0)
    return found


class ReviewDates:
    """The first dates of entities that have got administrators, once a day."""

    def __init__(self, registry: Registry) -> None:
        self._registry: Final = registry
        self._next_at = 0.0
        self._after = ""

    async def round(self, *, now: float) -> None:
        """Look at some entities.

        Raises StoreUnavailable. Source: docs/decisions/0022
        """
        if now < self._next_at:
            return
        found = await self._registry.access_reviews.unscheduled(after=self._after, limit=_ENTITIES_AT_ONCE)
        lacking = [rules.first(entity_id, now=now) for entity_id, lacks in found if lacks]
        if lacking:
            await self._registry.access_reviews.add(lacking)
        self._after = found[-1][0] if len(found) == _ENTITIES_AT_ONCE else ""
        if not self._after:
            self._next_at = now + _DATES_SECONDS
