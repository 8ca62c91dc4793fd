"""Records of any kind: read by key, scanned, and written in transactions."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import sqlalchemy as sa

from corpid.rules.audit_actions import INVITED_PERSON, AuditAction
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.actors import SYSTEM
from corpid.rules.directory.changes import (
    Accept,
    AccessUnder,
    Change,
    ChangedMeanwhile,
    Conflict,
    Delete,
    LastOwnerInvariant,
    LastOwnerRemoved,
    MemberNameTaken,
    NameRefused,
    Precondition,
    RolesUnder,
    SignOut,
    Upsert,
)
from corpid.rules.directory.invitations import CARRIED, placeholder, shown_invitation
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    DeletionRequest,
    Membership,
    Operator,
    Record,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.sources import ABSENT, UNKNOWN, SourcedRecord, sources_after
from corpid.rules.directory.third_parties import without_grant
from corpid.stores.sql.codecs import columns
from corpid.stores.sql.directory_tables import (
    administrators,
    memberships,
    operators,
    users,
)
from corpid.stores.sql.mappers import MEMBERSHIPS, PAGE, user_name_key
from corpid.stores.sql.member_names import account_named, is_account_name, namesakes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from corpid.rules.directory.changes import Change, Written
    from corpid.rules.directory.sources import Sources
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.mappers import Kinds, RecordType
    from corpid.stores.sql.sessions import SignOuts
    from corpid.stores.sql.statements import Database

_MEANWHILE: Final = "something that this rests on was changed at the same moment: try again"
CHANGES_AT_ONCE: Final = 200
"""changes of one transaction: a few milliseconds"""
_READS_AT_ONCE: Final = 200
R = TypeVar("R", bound="Record")
W = TypeVar("W", bound="Record | Client")
_SORTED_AT_ONCE: Final = 5000
"""changes that are put in order without a thread"""
_OF_PERSON: Final = (User, Membership, Administrator, Operator, Assignment, ThirdPartyAssignment, DeletionRequest)
"""kinds whose key begins with the person"""


_FULL_OPERATORS: Final = operators.c.level == "operator"
_OWNERS: Final = sa.and_(
    administrators.c.level == "owner", administrators.c.entity_id == sa.bindparam("entity_id", type_=sa.Text)
)


def _locked_operators() -> sa.Select[Any]:
    found = sa.select(operators.c.user_id).where(_FULL_OPERATORS)
    return found.order_by(operators.c.user_id).with_for_update()


def _able_operator() -> sa.Select[Any]:
    return sa.select(operators.c.user_id).join(users).where(_FULL_OPERATORS, users.c.enabled).limit(1)


def _locked_owners() -> sa.Select[Any]:
    found = sa.select(administrators.c.user_id).where(_OWNERS)
    return found.order_by(administrators.c.user_id).with_for_update()


def _able_owner() -> sa.Select[Any]:
    chain = administrators.join(memberships).join(users, users.c.user_id == administrators.c.user_id)
    able = sa.and_(memberships.c.enabled, users.c.enabled)
    return sa.select(administrators.c.user_id).select_from(chain).where(_OWNERS, able).limit(1)


_PARTIES: Final = ("client_entity_id", "entity_id", "service_id")
"""of a grant, and of the roles under it"""
_MEMBER: Final = ("user_id", "entity_id")


def _with_same(known: RecordType, names: Sequence[str]) -> sa.Select[Any]:
    """Values of these columns → records that have them."""
    same = (known.table.c[name] == sa.bindparam(name, type_=sa.Text) for name in names)
    return sa.select(*columns(known.table, known.codec)).where(*same)


def _moved(table: sa.Table) -> sa.Update:
    """`waiting`, `entity`, `person` → the rows of a membership, of another person."""
    rows = table.c.user_id == sa.bindparam("waiting"), table.c.entity_id == sa.bindparam("entity")
    return sa.update(table).where(*rows).values(user_id=sa.bindparam("person"))


def _vacated() -> sa.Update:
    """`waiting`, `entity` → a membership without what is unique."""
    this = memberships.c.user_id == sa.bindparam("waiting"), memberships.c.entity_id == sa.bindparam("entity")
    return sa.update(memberships).where(*this).values(membership_id="", user_name_key="", external_id="")


def _joins_or_is_renamed(was: Written | None, becomes: Membership | User) -> bool:
    """Return whether another account user name counts at an entity."""
    if isinstance(becomes, Membership):
        return was is None and not becomes.invited
    return isinstance(was, User) and was.user_name != becomes.user_name


class DirectoryRecords:
    """Reading and writing of every kind of record."""

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._kinds: Final = kinds
        self._sign_outs: Final = sign_outs
        self._locked_operators: Final = database.prepare(_locked_operators)
        self._able_operator: Final = database.prepare(_able_operator)
        self._locked_owners: Final = database.prepare(_locked_owners)
        self._able_owner: Final = database.prepare(_able_owner)
        self._grants: Final = database.prepare(partial(_with_same, kinds[ThirdPartyGrant], _PARTIES))
        self._roles_under: Final = database.prepare(partial(_with_same, kinds[ThirdPartyAssignment], _PARTIES))
        self._vacate: Final = database.prepare(_vacated)
        self._namesakes: Final = database.prepare(namesakes)
        self._account_named: Final = database.prepare(account_named)
        self._carried: Final = [(kind, database.prepare(partial(_with_same, kinds[kind], _MEMBER))) for kind in CARRIED]
        self._move: Final = [database.prepare(partial(_moved, kinds[kind].table)) for kind in CARRIED]

    async def read(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], R]:
        """The records with these keys.

        Those that do not exist are left out. Lets others run now and then.
        """
        known = self._kinds[kind]
        found: dict[tuple[str, ...], R] = {}
        for number, key in enumerate(keys, start=1):
            row = await self._database.row(known.one, dict(zip(known.keys, key, strict=True)))
            if row is not None:
                found[key] = known.codec.decode(row)
            if number % _READS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    async def sourced(self, kind: type[W], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], SourcedRecord[W]]:
        """The records with these keys, and where they come from (D65)."""
        known = self._kinds[kind]
        found: dict[tuple[str, ...], SourcedRecord[W]] = {}
        for number, key in enumerate(keys, start=1):
            row = await self._database.row(known.sourced, dict(zip(known.keys, key, strict=True)))
            if row is not None:
                found[key] = SourcedRecord(record=known.decoded(row), sources=known.sources_of(row))
            if number % _READS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    async def scan(self, kind: type[R]) -> AsyncIterator[R]:
        """Every record of a kind, by key.

        Page by page; concurrent writes may or may not be seen.
        """
        async for found in self.scan_sourced(kind):
            yield found.record

    async def scan_sourced(self, kind: type[W]) -> AsyncIterator[SourcedRecord[W]]:
        """Every record of a kind, by key, and where it comes from (D65)."""
        known = self._kinds[kind]
        rows = await self._database.rows(known.first_page, {"limit": PAGE})
        while rows:
            for row in rows:
                yield SourcedRecord(record=known.decoded(row), sources=known.sources_of(row))
            after = dict(zip(known.keys, rows[-1][-len(known.keys) :], strict=True))
            rows = await self._database.rows(known.next_page, after | {"limit": PAGE}) if len(rows) == PAGE else []

    async def write(
        self,
        changes: Sequence[Change],
        event: AuditEvent | None = None,
        within: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Write changes, each with its audit event in the same transaction.

        Removals come first, then records in the order of their references; the order of `changes` does not matter.
        Administrators and operators are removed last, so that others can take their place. Anything that a removed
        record carried (an entity's memberships, a membership's roles) is removed with it.

        More than 200 changes are written in several short transactions. `event` is about all of them and is written
        with the last one; `within` is awaited there, and what it raises undoes that one. Raises Conflict (NameTaken,
        NameRefused, MissingReference), naming the record, ChangedMeanwhile and LastOwnerRemoved: the changes of earlier
        transactions stay. Source: D57
        """
        many = len(changes) > _SORTED_AT_ONCE
        parts = await asyncio.to_thread(self._parts, changes) if many else self._parts(changes)
        for part in parts[:-1]:
            started = time.monotonic()
            async with self._database.transaction():
                await self._write(part)
            # SQLite has no queue for writers: others need a gap between two writes.
            await asyncio.sleep(time.monotonic() - started)
        async with self._database.transaction():
            await self._write(parts[-1])
            if event is not None:
                await self._audit.write(event)
            if within is not None:
                await within()

    def _parts(self, changes: Sequence[Change]) -> list[list[Change]]:
        """Return the changes of each transaction, at least one transaction.

        A sign-out goes with the last change of its person, and roles end when every grant of the same parties is
        written. What was seen is looked at in the first transaction that changes anything of its person, else in the
        first of all, and somebody has to remain after each.
        """
        of_records = [change for change in changes if isinstance(change, Upsert | Delete)]
        of_records.sort(key=self._order)
        starts = range(0, max(1, len(of_records)), CHANGES_AT_ONCE)
        parts: list[list[Change]] = [[*of_records[start : start + CHANGES_AT_ONCE]] for start in starts]
        last = {
            change.record.user_id: number // CHANGES_AT_ONCE
            for number, change in enumerate(of_records)
            if isinstance(change.record, User | Credentials)
        }
        grants = {
            change.record.key[:3]: number // CHANGES_AT_ONCE
            for number, change in enumerate(of_records)
            if isinstance(change.record, ThirdPartyGrant)
        }
        first: dict[str, int] = {}
        for number, each in enumerate(of_records):
            first.setdefault(getattr(each.record, "user_id", ""), number // CHANGES_AT_ONCE)
        for change in changes:
            if isinstance(change, SignOut):
                parts[last.get(change.user_id, -1)].append(change)
            elif isinstance(change, LastOwnerInvariant):
                for part in parts:
                    part.append(change)
            elif isinstance(change, Accept):
                parts[0].append(change)
            elif isinstance(change, Precondition):
                parts[first.get(change.key[0], 0) if change.kind in _OF_PERSON else 0].append(change)
            elif isinstance(change, RolesUnder):
                parts[grants[change.grant.key[:3]]].append(change)
            elif isinstance(change, AccessUnder):
                parts[first[change.invited.user_id]].append(change)
        return parts

    def _order(self, change: Upsert | Delete) -> tuple[int, int]:
        rank = self._kinds[type(change.record)].rank
        if isinstance(change, Delete):
            return (2, -rank) if isinstance(change.record, Administrator | Operator) else (0, -rank)
        return (1, rank)

    async def _write(self, changes: Sequence[Change]) -> None:
        seen = [change for change in changes if isinstance(change, Precondition)]
        await self._check_seen(seen)
        guarded = [
            change for change in changes if isinstance(change, LastOwnerInvariant) and await self._is_held(change)
        ]
        await self._apply_all(changes, {(each.kind, each.key) for each in seen if each.record is None})
        for further in changes:
            if isinstance(further, RolesUnder):
                await self._end_roles(further)
            elif isinstance(further, AccessUnder):
                await self._end_access(further)
            elif isinstance(further, Accept):
                await self._accept(further)
        for remains in guarded:
            if not await self._somebody(remains):
                raise LastOwnerRemoved(
                    f"the entity {remains.entity_id} would have no owner who can act: appoint another one first"
                    if remains.entity_id
                    else "no operator who can act would remain: appoint another one first"
                )

    async def _check_seen(self, seen: list[Precondition]) -> None:
        """Lock the records that were read, in one order, and compare."""
        for each in sorted(seen, key=lambda each: (self._kinds[each.kind].rank, each.key)):
            known = self._kinds[each.kind]
            row = await self._database.row(known.locked, dict(zip(known.keys, each.key, strict=True)))
            if (None if row is None else known.decoded(row)) != each.record:
                raise ChangedMeanwhile(_MEANWHILE)

    async def _is_held(self, remains: LastOwnerInvariant) -> bool:
        """Lock those with every right; True if one of them can act.

        The second statement sees what others wrote before the lock was given.
        """
        locked = self._locked_owners if remains.entity_id else self._locked_operators
        await self._database.rows(locked, {"entity_id": remains.entity_id})
        return await self._somebody(remains)

    async def _somebody(self, remains: LastOwnerInvariant) -> bool:
        able = self._able_owner if remains.entity_id else self._able_operator
        return await self._database.row(able, {"entity_id": remains.entity_id}) is not None

    async def _apply_all(self, changes: Sequence[Change], absent: set[tuple[type, tuple[str, ...]]]) -> None:
        """Apply changes.

        `absent` are records that were looked for and not found, which no lock can keep so.
        """
        for change in changes:
            if isinstance(change, SignOut):
                await self._sign_out(change.user_id)
            if not isinstance(change, Upsert | Delete):
                continue
            try:
                await self._apply(change, absent)
            except ChangedMeanwhile:
                raise
            except Conflict as conflict:
                key = self._kinds[type(change.record)].key(change.record)
                raise type(conflict)(f"{type(change.record).__name__} {'/'.join(key.values())}: {conflict}") from None

    async def _end_roles(self, under: RolesUnder) -> None:
        """End roles that no other accepted grant allows.

        Whoever gives a role holds its grant until it is written, so that each of them is seen here.
        """
        grant = under.grant
        between = dict(zip(("client_entity_id", "entity_id", "service_id"), grant.key[:3], strict=True))
        kinds = self._kinds[ThirdPartyGrant], self._kinds[ThirdPartyAssignment]
        others = [kinds[0].codec.decode(row) for row in await self._database.rows(self._grants, between)]
        rows = [kinds[1].codec.decode(row) for row in await self._database.rows(self._roles_under, between)]
        ended = without_grant(grant, others, rows)
        if ended and under.planned:
            raise ChangedMeanwhile(_MEANWHILE)
        for row in ended:
            detail = under.event.detail | await self._invited_person(row.key[:2])
            event = msgspec.structs.replace(under.event, object="/".join(row.key), detail=detail)
            await self._apply(Delete(row, event), set())

    async def _invited_person(self, key: tuple[str, ...]) -> dict[str, str]:
        """The detail of an event about somebody who is invited (D68)."""
        row = await self._database.row(self._kinds[Membership].one, dict(zip(_MEMBER, key, strict=True)))
        invited = None if row is None else MEMBERSHIPS.decode(row)
        return {INVITED_PERSON: shown_invitation(invited)} if invited is not None and invited.invited else {}

    async def _end_access(self, under: AccessUnder) -> None:
        """End level and roles of an invitation.

        Whoever gives one of them holds the invitation as it was read, so that each of them is seen here.
        """
        person = {"user_id": under.invited.user_id, "entity_id": under.invited.entity_id}
        for kind, carried in self._carried:
            for row in await self._database.rows(carried, person):
                record = self._kinds[kind].codec.decode(row)
                event = msgspec.structs.replace(
                    under.events[kind],
                    object="/".join(record.key),
                    other_entity_id=getattr(record, "client_entity_id", ""),
                )
                await self._apply(Delete(record, event), set())

    async def _compare_names(self, was: Written | None, becomes: Written, event: AuditEvent | None) -> None:
        """Keep user names that an entity wrote apart from those of accounts (D68)."""
        if isinstance(becomes, Membership) and getattr(was, "user_name", "") != becomes.user_name:
            await self._refuse_account_name(becomes)
        if isinstance(becomes, Membership | User) and _joins_or_is_renamed(was, becomes):
            await self._clear_namesakes(becomes.user_id, event)

    async def _refuse_account_name(self, becomes: Membership) -> None:
        """Refuse a user name that is the account's of another member."""
        try:
            name = user_name_key(becomes.user_name)
        except NameRefused:
            return  # no account has it
        other = {"user_id": becomes.user_id, "entity_id": becomes.entity_id, "name": name}
        if await self._database.row(self._account_named, other) is not None:
            raise MemberNameTaken("user_name: it is the account of another member of this entity")

    async def _clear_namesakes(self, user_id: str, by: AuditEvent | None) -> None:
        """Clear other members' user names that equal a person's.

        The entity wrote theirs, and cannot write that of an account.
        """
        known = self._kinds[User]
        found = await self._database.row(known.one, {"user_id": user_id})
        name = "" if found is None else known.codec.decode(found).user_name
        for row in await self._database.rows(self._namesakes, {"user_id": user_id, "name": fold_text(name)}):
            other = MEMBERSHIPS.decode(row)
            if not is_account_name(other.user_name, name):
                continue  # e.g. gross, which folds as groß does
            event = AuditEvent(
                actor=by.actor if by is not None else SYSTEM,
                action=AuditAction.MEMBERSHIP_UPDATE,
                object="/".join(other.key),
                entity_id=other.entity_id,
                request_id=by.request_id if by is not None else "",
                detail={"cleared": "user_name"},
            )
            await self._apply(Upsert(msgspec.structs.replace(other, user_name=""), event), set())

    async def _accept(self, change: Accept) -> None:
        """Move an invited membership, locked against new references."""
        known, person = self._kinds[Membership], self._kinds[User]
        invited, becomes = change.invited, change.becomes
        row = await self._database.row(known.locked_alone, known.key(invited))
        if row is None or known.decoded(row) != invited:
            raise ChangedMeanwhile(_MEANWHILE)
        values = {"waiting": invited.user_id, "entity": invited.entity_id, "person": becomes.user_id}
        await self._database.run(self._vacate, values)
        moved = known.codec.encode(becomes) | known.encoded_sources(known.sources_of(row))
        if await self._database.run(known.insert, moved) == 0:
            raise ChangedMeanwhile(_MEANWHILE)
        for move in self._move:
            await self._database.run(move, values)
        await self._database.run(person.delete, {"user_id": invited.user_id})
        await self._audit.record_change(change.event, invited, becomes)
        await self._clear_namesakes(becomes.user_id, change.event)

    async def _stored(self, change: Upsert | Delete) -> tuple[Written | None, Sources]:
        """The record that a change replaces, locked, and its sources.

        What a plan has read may be older: if it had other sources then, nothing is written.
        """
        kind = self._kinds[type(change.record)]
        is_alone = isinstance(change, Delete) and change.seen is not None
        row = await self._database.row(kind.locked_alone if is_alone else kind.locked, kind.key(change.record))
        sources = ABSENT if row is None else kind.sources_of(row)
        is_gone = row is None and isinstance(change, Delete)
        if change.seen is not None and change.seen != sources and not is_gone:
            raise ChangedMeanwhile(_MEANWHILE)
        return (None if row is None else kind.decoded(row)), sources

    async def _sign_out(self, user_id: str) -> None:
        await self._sign_outs.lock(user_id)
        await self._sign_outs.end_sessions(user_id)
        await self._sign_outs.end_links(user_id)
        await self._sign_outs.end_email_change(user_id)

    async def _apply(self, change: Upsert | Delete, absent: set[tuple[type, tuple[str, ...]]]) -> None:
        kind = self._kinds[type(change.record)]
        key, event = kind.key(change.record), change.event
        looked = event is not None or change.seen is not None
        was, sources = await self._stored(change) if looked else (None, UNKNOWN)
        if isinstance(change, Delete):
            for look in kind.referring if change.seen is not None else ():
                if await self._database.row(look, key) is not None:
                    raise ChangedMeanwhile(_MEANWHILE)  # it would go with this one, and nobody decided so
            await self._database.run(kind.delete, key)
        else:
            row = kind.codec.encode(change.record)
            is_new = (type(change.record), tuple(key.values())) in absent
            if event is not None:
                sources = sources_after(event.actor, was, change.record, sources, change.taken)
            if is_new or event is not None:
                row |= kind.encoded_sources(sources)
            if is_new and isinstance(change.record, Membership) and change.record.invited:
                await self._add_placeholder(change.record)
            found = await self._database.run(kind.statement(is_new=is_new, sourced=event is not None), row)
            if is_new and found == 0:
                raise ChangedMeanwhile(_MEANWHILE)
            await self._end_email_change(was, change.record)
            if looked:
                await self._compare_names(was, change.record, event)
        if event is not None:
            await self._audit.record_change(event, was, change.record if isinstance(change, Upsert) else None)

    async def _end_email_change(self, was: Written | None, becomes: Written) -> None:
        """End a waiting change if somebody else writes another address.

        It would wait again once the former address is written back. Of who is disabled the sign-out ends it, in the
        order of locks.
        """
        if isinstance(was, User) and isinstance(becomes, User) and becomes.enabled and was.email != becomes.email:
            await self._sign_outs.end_email_change(becomes.user_id)

    async def _add_placeholder(self, invited: Membership) -> None:
        """Add the placeholder of an invitation."""
        person = self._kinds[User]
        row = person.codec.encode(placeholder(invited)) | person.encoded_sources(UNKNOWN)
        if await self._database.run(person.insert, row) == 0:
            raise ChangedMeanwhile(_MEANWHILE)
