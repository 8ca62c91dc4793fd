"""Making of notices from the audit, ends, and due reviews.

Every process looks. A position in the store moves in the transaction that queues what was found, so that each occasion
makes its notices once. Nothing of this runs on the path of a request.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from corpid.flows.directory.approvals import build_request_object
from corpid.flows.directory.person_names import read_names
from corpid.rules.audit import INVITED_PERSON, AuditAction, AuditEntry, AuditQuery
from corpid.rules.directory import access_review
from corpid.rules.directory import notices as rules
from corpid.rules.directory.lists import LAST
from corpid.rules.directory.records import Assignment, ChangeRequest, ThirdPartyAssignment
from corpid.rules.limits import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import Provider
    from corpid.rules.directory.notices import QueuedNotice


Row: TypeAlias = Assignment | ThirdPartyAssignment

CHANGES: Final = "notices.changes"
"""the position in the audit"""
_ENDS: Final = "notices.ends"
_TOKENS: Final = "notices.tokens"
_NUMBERS_AT_ONCE: Final = 20_000
"""numbers of the audit that one statement looks through"""
_ENTRIES_AT_ONCE: Final = 50
_PARTS_AT_ONCE: Final = 50
_ROWS_AT_ONCE: Final = 100
"""roles of a part: on SQLite a sign-in of the same process waits for one"""
_TOKENS_AT_ONCE: Final = 500
_REVIEWS_AT_ONCE: Final = 100
_KINDS: Final[tuple[type[Row], ...]] = (Assignment, ThirdPartyAssignment)


class _Ends(msgspec.Struct, frozen=True, array_like=True):
    """The position in the roles that end."""

    after: str
    """the last day that is done"""
    until: str
    """the last day that is looked at; the same if nothing is left to do"""
    kind: int = 0
    """the number of the kind of role"""
    place: tuple[str, ...] = ()


class NoticeMaker:
    """The making of notices in one process."""

    def __init__(self, provider: Provider) -> None:
        self._provider: Final = provider
        self._registry: Final = provider.registry
        self._tokens_at = 0.0

    async def round(self) -> None:
        """Queue what has become due. Raises StoreUnavailable, Conflict."""
        now = self._provider.clock()
        for _ in range(_PARTS_AT_ONCE):
            if not await self._changes(now):
                break
            await asyncio.sleep(0)
        for _ in range(_PARTS_AT_ONCE):
            if not await self._ends(now):
                break
            await asyncio.sleep(0)
        if now >= self._tokens_at:
            for days in rules.TOKEN_ENDS_WITHIN_DAYS:
                await self._tokens(days, now)
                await asyncio.sleep(0)
            self._tokens_at = now + HOUR
        # Queue the notices of reviews that are due.
        for review in await self._registry.access_reviews.due(now=now, limit=_REVIEWS_AT_ONCE):
            again = access_review.is_again(review, now=now)
            found = rules.of_review(
                review.entity_id,
                review.due_at,
                await self._registry.directory.administrators(review.entity_id),
                again=again,
                now=now,
            )
            await self._registry.access_reviews.remind(review, access_review.note_reminder(review, now=now), found)
            await asyncio.sleep(0)
        await self._registry.notices.sweep(before=now - rules.KEPT_SECONDS)

    async def _changes(self, now: float) -> bool:
        """Look through some of the audit; False if nothing is left."""
        settled = await self._registry.seals.settled_number()
        seen = await self._registry.notices.position(CHANGES, first=str(settled))
        after = int(seen)
        last = min(settled, after + _NUMBERS_AT_ONCE)
        if last <= after:
            return False
        entries = await self._registry.audit.list_by_action(
            rules.WATCHED, after=after, last=last, limit=_ENTRIES_AT_ONCE
        )
        if len(entries) == _ENTRIES_AT_ONCE:
            last = entries[-1].number
        found: list[QueuedNotice] = []
        for entry in entries:
            if entry.at >= now - rules.OLDEST_CHANGE_SECONDS:
                found += await self._of_change(entry, now)
        return await self._registry.notices.queue(found, position=CHANGES, seen=seen, becomes=str(last))

    async def _of_change(self, entry: AuditEntry, now: float) -> list[QueuedNotice]:
        if rules.is_request(entry):
            return rules.of_request(entry, await self._approvers(entry, now))
        if rules.is_decision(entry):
            request = await self._request(entry.object)
            kind, _, user_id = request.requester.partition(":") if request else ("", "", "")
            return rules.of_request(entry, [user_id] if kind == "user" else [])
        if entry.action == AuditAction.APPROVAL_COMMENT:
            request = await self._request(entry.object)
            return rules.of_comment(entry, request) if request is not None else []
        own = rules.of_access(entry)
        found = [own] if own else []
        if rules.owner_change(entry) and not await self._is_new(entry):
            found += rules.of_owner(
                entry, await self._label(entry), await self._registry.directory.administrators(entry.entity_id)
            )
        return found

    async def _label(self, entry: AuditEntry) -> str:
        """The person of an entry; of an invitation, as at that time."""
        person = rules.person_of(entry)
        names = await read_names(self._registry, entry.entity_id, [person], former=[person])
        return entry.detail.get(INVITED_PERSON) or str(names.get(person, ""))

    async def _is_new(self, entry: AuditEntry) -> bool:
        """Return whether a file has just added the entity.

        Its first owners replace nobody.
        """
        if not entry.actor.startswith("file:"):
            return False
        query = AuditQuery(entity_id=entry.entity_id, actions=(AuditAction.ENTITY_ADD,), since=entry.at - DAY)
        return bool(await self._registry.audit.latest(query, limit=1))

    async def _approvers(self, entry: AuditEntry, now: float) -> list[str]:
        """People who may decide on a request.

        Administrators, else operators.
        """
        request = await self._request(entry.object)
        if request is None or request.state != "pending":
            return []
        thing = build_request_object(request, "approval")
        held = await self._registry.directory.administrators(request.entity_id)
        found = [
            each.record.user_id for each in held if each.enabled and rules.may_approve(each.record, thing, now=now)
        ]
        return found or [
            each.record.user_id
            for each in await self._registry.directory.operators("operator")
            if each.enabled and f"user:{each.record.user_id}" != request.requester
        ]

    async def _request(self, request_id: str) -> ChangeRequest | None:
        return await self._registry.directory.find(ChangeRequest, request_id)

    async def _ends(self, now: float) -> bool:
        """Look through some roles that end soon; False if none is left."""
        today = datetime.fromtimestamp(now, self._provider.policy.timezone).date()
        until = rules.last_day_told(today)
        seen = await self._registry.notices.position(_ENDS, first=_encode(_Ends(today.isoformat(), today.isoformat())))
        at = msgspec.json.decode(seen, type=_Ends)
        if at.after == at.until:
            if at.until >= until:
                return False
            at = _Ends(max(at.until, today.isoformat()), until)
        rows, becomes = await self._ending(_KINDS[at.kind], at)
        found = [rules.of_end(row, now=now) for row in rows]
        for entity_id, end_date in dict.fromkeys((row.entity_id, row.end_date) for row in rows):
            held = await self._registry.directory.administrators(entity_id)
            found += [rules.of_ends(end_date, each, now=now) for each in held if each.enabled and each.record.approves]
        return await self._registry.notices.queue(found, position=_ENDS, seen=seen, becomes=_encode(becomes))

    async def _ending(self, kind: type[Row], at: _Ends) -> tuple[list[Row], _Ends]:
        """Some roles of a kind, and the position after them."""
        place = at.place or (at.after, LAST, *("",) * (_KEY_PARTS[kind] - 1))
        rows = await self._registry.notices.ending(kind, until=at.until, place=place, limit=_ROWS_AT_ONCE)
        if len(rows) == _ROWS_AT_ONCE:
            return rows, msgspec.structs.replace(at, place=_find_place(rows[-1]))
        if at.kind + 1 < len(_KINDS):
            return rows, _Ends(at.after, at.until, at.kind + 1)
        return rows, _Ends(at.until, at.until)

    async def _tokens(self, days: int, now: float) -> None:
        """Queue notices of the tokens that have so many days left."""
        name = f"{_TOKENS}.{days}"
        seen = await self._registry.notices.position(name, first=str(int(now)))
        first, last = max(int(seen) + days * DAY, int(now)), int(now) + days * DAY
        if last <= first:
            return
        expiring = await self._registry.notices.expiring_tokens(after=first, until=last, limit=_TOKENS_AT_ONCE)
        done = expiring[-1].expires_at - days * DAY if len(expiring) == _TOKENS_AT_ONCE else int(now)
        found: list[QueuedNotice] = []
        for token in expiring:
            found += rules.of_token(
                token, days, await self._registry.directory.administrators(token.entity_id), now=now
            )
        await self._registry.notices.queue(found, position=name, seen=seen, becomes=str(done))


_KEY_PARTS: Final[Mapping[type[Row], int]] = {Assignment: 6, ThirdPartyAssignment: 7}


def _find_place(row: Row) -> tuple[str, ...]:
    """The place of a row in the order of last days."""
    user_id, entity_id, *rest = row.key
    return (row.end_date, entity_id, user_id, *rest)


def _encode(at: _Ends) -> str:
    return msgspec.json.encode(at).decode()
