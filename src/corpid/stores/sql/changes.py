"""Changes of records, written in transactions with their audit events.

A write goes like this:

1. Records are sorted: removals first, then the others in the order of their references. Administrators and operators
   are removed last, so that others can take their place. Each 200 records are one transaction.
2. The other changes are conditions or consequences of these. The guard of each kind, in the table `GUARDS`, says which
   transactions it goes with.
3. In each transaction the guards lock what they rest on and check it, in the order of the table.
4. The records are written, each with its event.
5. The guards write what follows from that.
6. The guards confirm what must hold then.

A new kind of guard is a class and its line in the table.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import SYSTEM
from corpid.rules.directory.memberships import CARRIED, is_redirection, name_invitation, placeholder
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.records import (
    Accept,
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Conflict,
    DeletionRequest,
    LastOwnerInvariant,
    LastOwnerRemoved,
    MemberNameTaken,
    Membership,
    NameRefused,
    Operator,
    Precondition,
    RolesUnder,
    SignOut,
    Sources,
    StoreChange,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
    list_role_parts,
)
from corpid.rules.directory.sources import ABSENT, UNKNOWN, sources_after
from corpid.rules.directory.third_parties import without_grant
from corpid.stores.sql.columns import columns, select_columns, text_parameter
from corpid.stores.sql.mappers import KINDS, MEMBERSHIPS, Kinds, fold_user_name
from corpid.stores.sql.sessions import PeoplePart, SignOuts
from corpid.stores.sql.statements import Database, Statement, by_shape
from corpid.stores.sql.tables import administrators, links, memberships, operators, users

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.audit import Audit

CHANGES_AT_ONCE: Final = 200
"""records of one transaction: a few milliseconds"""
_SORTED_AT_ONCE: Final = 5000
"""changes that are sorted without a thread"""
_MEANWHILE: Final = "something that this rests on was changed at the same moment: try again"
_OF_PERSON: Final = (User, Membership, Administrator, Operator, Assignment, ThirdPartyAssignment, DeletionRequest)
"""kinds whose key begins with the person"""
_PARTIES: Final = ("client_entity_id", "entity_id", "service_id")
"""of a grant, and of the roles under it"""
_MEMBER: Final = ("user_id", "entity_id")
_ENDING: Final = {
    ThirdPartyAssignment: AuditAction.THIRD_PARTY_ASSIGNMENT_REMOVE,
    Assignment: AuditAction.ASSIGNMENT_REMOVE,
    Administrator: AuditAction.ADMINISTRATOR_REMOVE,
}

C = TypeVar("C")


class ChangeWriter(PeoplePart):
    """The writer of changes of every kind."""

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        super().__init__(database, audit, kinds, sign_outs)
        self._records: Final = RecordWriter(database, audit, kinds, sign_outs)
        self._guards: Final = {kind: guard(self._records) for kind, guard in GUARDS.items()}

    async def write(
        self,
        changes: Sequence[StoreChange],
        event: AuditEvent | None = None,
        within: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Write changes in any order, as this module says.

        Anything that a removed record carried (an entity's memberships, a membership's roles) is removed with it.
        `event` is about all of them and is written with the last transaction; `within` is awaited there, and what it
        raises undoes that one. Raises Conflict (NameTaken, NameRefused, MissingReference), naming the record,
        ChangedMeanwhile and LastOwnerRemoved: the changes of earlier transactions stay. Source: D57
        """
        many = len(changes) > _SORTED_AT_ONCE
        transactions = await asyncio.to_thread(self._sort, changes) if many else self._sort(changes)
        for transaction in transactions[:-1]:
            started = time.monotonic()
            async with self._database.transaction():
                await self._carry_out(transaction)
            # SQLite has no queue for writers: others need a gap between two writes.
            await asyncio.sleep(time.monotonic() - started)
        async with self._database.transaction():
            await self._carry_out(transactions[-1])
            if event is not None:
                await self._audit.write(event)
            if within is not None:
                await within()

    def _sort(self, changes: Sequence[StoreChange]) -> list[PlannedTransaction]:
        """Return the changes of each transaction, at least one transaction.

        A request is decided, and carried out, in one (D55).
        """
        records = sorted((each for each in changes if isinstance(each, Change)), key=self._rank)
        is_decision = any(isinstance(each.record, ChangeRequest) for each in records)
        at_once = max(1, len(records)) if is_decision else CHANGES_AT_ONCE
        starts = range(0, max(1, len(records)), at_once)
        transactions = [PlannedTransaction(records[start : start + at_once], self._guards.values()) for start in starts]
        schedule = Schedule(records, at_once)
        for change in changes:
            if (guard := self._guards.get(type(change))) is not None:
                for number in guard.choose_transactions(change, schedule):
                    transactions[number].guarded[guard].append(change)
        return transactions

    def _rank(self, change: Change) -> tuple[int, int]:
        rank = self._kinds[type(change.record)].rank
        if change.after is None:
            return (2, -rank) if isinstance(change.record, Administrator | Operator) else (0, -rank)
        return (1, rank)

    async def _carry_out(self, transaction: PlannedTransaction) -> None:
        for guard, guarded in transaction.guarded.items():
            for each in sorted(guarded, key=guard.lock_order):
                await guard.check(each, transaction)
        for change in transaction.records:
            await self._records.write(change, transaction.absent)
        for guard, guarded in transaction.guarded.items():
            for each in guarded:
                await guard.write(each)
        for guard, guarded in transaction.guarded.items():
            for each in guarded:
                await guard.confirm(each, transaction)


class PlannedTransaction:
    """The changes of one transaction, and what its guards find."""

    def __init__(self, records: Sequence[Change], guards: Iterable[Guard[Any]]) -> None:
        self.records: Final = records
        self.guarded: Final[dict[Guard[Any], list[Any]]] = {guard: [] for guard in guards}
        """changes of each guard, in the order of the table"""
        self.absent: Final[set[tuple[type, tuple[str, ...]]]] = set()
        """records that were looked for and not found, which no lock can keep so"""
        self.must_remain: Final[set[LastOwnerInvariant]] = set()
        """of those that were checked, the ones that held"""


class Schedule:
    """The transactions of records, by what the records have in common."""

    def __init__(self, records: Sequence[Change], at_once: int) -> None:
        self._records: Final = records
        self._at_once: Final = at_once
        self._spans: Final[dict[Callable[[KeyedRecord], Hashable], dict[Hashable, tuple[int, int]]]] = {}
        self.count: Final = max(1, -(-len(records) // at_once))

    def find_first(self, trait: Callable[[KeyedRecord], Hashable], value: Hashable) -> int:
        """The first transaction with such a record, else the first of all."""
        return self._find(trait).get(value, (0, 0))[0]

    def find_last(self, trait: Callable[[KeyedRecord], Hashable], value: Hashable) -> int:
        """The last transaction with such a record, else the last of all."""
        return self._find(trait).get(value, (0, self.count - 1))[1]

    def _find(self, trait: Callable[[KeyedRecord], Hashable]) -> dict[Hashable, tuple[int, int]]:
        if trait not in self._spans:
            spans: dict[Hashable, tuple[int, int]] = {}
            for place, change in enumerate(self._records):
                number, value = place // self._at_once, trait(change.record)
                spans[value] = spans.get(value, (number, 0))[0], number
            self._spans[trait] = spans
        return self._spans[trait]


class Guard(Generic[C]):
    """A kind of change that is a condition or consequence.

    The methods are called in this order, for every change of the kind. What a kind does not define does nothing.
    """

    def __init__(self, records: RecordWriter) -> None:
        self._records: Final = records
        self._database: Final = records.database
        self._kinds: Final = records.kinds

    def choose_transactions(self, change: C, schedule: Schedule) -> Iterable[int]:  # noqa: ARG002
        """The numbers of the transactions that the change goes with."""
        return (0,)

    def lock_order(self, change: C) -> tuple[Any, ...]:  # noqa: ARG002
        """The place of a change among those of its kind."""
        return ()

    async def check(self, change: C, transaction: PlannedTransaction) -> None:
        """Lock and check what the records rest on, before they are written."""

    async def write(self, change: C) -> None:
        """Write what follows from the records."""

    async def confirm(self, change: C, transaction: PlannedTransaction) -> None:
        """Raise Conflict unless everything holds that must hold in the end."""


class PreconditionGuard(Guard[Precondition]):
    """Records as a decision was made on them, locked and compared.

    A person's are looked at in the first transaction that changes anything of that person.
    """

    def choose_transactions(self, change: Precondition, schedule: Schedule) -> Iterable[int]:
        return (schedule.find_first(_get_person, change.key[0]) if change.kind in _OF_PERSON else 0,)

    def lock_order(self, change: Precondition) -> tuple[Any, ...]:
        return self._kinds[change.kind].rank, change.key

    async def check(self, change: Precondition, transaction: PlannedTransaction) -> None:
        kind = self._kinds[change.kind]
        row = await self._database.row(kind.locked, dict(zip(kind.keys, change.key, strict=True)))
        if (None if row is None else kind.decode(row)) != change.record:
            raise ChangedMeanwhile(_MEANWHILE)
        if change.record is None:
            transaction.absent.add((change.kind, change.key))


class LastOwnerGuard(Guard[LastOwnerInvariant]):
    """The last owner of an entity, or the last operator.

    If nobody could act before, nobody has to after. The look sees what others wrote before the lock was given.
    """

    def choose_transactions(self, change: LastOwnerInvariant, schedule: Schedule) -> Iterable[int]:  # noqa: ARG002
        return range(schedule.count)

    async def check(self, change: LastOwnerInvariant, transaction: PlannedTransaction) -> None:
        locked = _lock_owners if change.entity_id else _lock_operators
        await self._database.rows(locked, {"entity_id": change.entity_id})
        if await self._has_able(change):
            transaction.must_remain.add(change)

    async def confirm(self, change: LastOwnerInvariant, transaction: PlannedTransaction) -> None:
        if change in transaction.must_remain and not await self._has_able(change):
            raise LastOwnerRemoved(
                f"the entity {change.entity_id} would have no owner who can act: appoint another one first"
                if change.entity_id
                else "no operator who can act would remain: appoint another one first"
            )

    async def _has_able(self, change: LastOwnerInvariant) -> bool:
        able = _select_able_owner if change.entity_id else _select_able_operator
        return await self._database.row(able, {"entity_id": change.entity_id}) is not None


class SignOutGuard(Guard[SignOut]):
    """Sessions, links and waiting e-mail changes, ended with their person's last change."""

    def choose_transactions(self, change: SignOut, schedule: Schedule) -> Iterable[int]:
        return (schedule.find_last(_get_account_holder, change.user_id),)

    async def write(self, change: SignOut) -> None:
        sign_outs = self._records.sign_outs
        await sign_outs.lock(change.user_id)
        await sign_outs.end_sessions(change.user_id)
        await sign_outs.end_links(change.user_id)
        await sign_outs.end_email_change(change.user_id)


class RolesUnderGuard(Guard[RolesUnder]):
    """Roles that no other accepted grant allows, ended with their grant.

    They end when each grant of the same parties is written. Whoever gives a role holds its grant until it is written,
    so that each of them is seen here.
    """

    def choose_transactions(self, change: RolesUnder, schedule: Schedule) -> Iterable[int]:
        return (schedule.find_last(_get_parties, change.grant.key[:3]),)

    async def write(self, change: RolesUnder) -> None:
        parties = dict(zip(_PARTIES, change.grant.key[:3], strict=True))
        decode_grant, decode_role = (
            self._kinds[ThirdPartyGrant].codec.decode,
            self._kinds[ThirdPartyAssignment].codec.decode,
        )
        others = [
            decode_grant(row) for row in await self._database.rows(_select_same(ThirdPartyGrant, _PARTIES), parties)
        ]
        roles = [
            decode_role(row) for row in await self._database.rows(_select_same(ThirdPartyAssignment, _PARTIES), parties)
        ]
        ended = without_grant(change.grant, others, roles)
        if ended and change.planned:
            raise ChangedMeanwhile(_MEANWHILE)
        for role in ended:
            detail = change.event.detail | await self._describe_invited(role.key[:2])
            await self._records.delete(
                Change(role, None, replace(change.event, object="/".join(role.key), detail=detail))
            )

    async def _describe_invited(self, key: tuple[str, ...]) -> dict[str, str]:
        """The detail of an event about somebody who is invited (D68)."""
        row = await self._database.row(self._kinds[Membership].one, dict(zip(_MEMBER, key, strict=True)))
        invited = None if row is None else MEMBERSHIPS.decode(row)
        return name_invitation(invited) if invited is not None else {}


class AcceptGuard(Guard[Accept]):
    """An invited membership that moves, locked against new references."""

    async def write(self, change: Accept) -> None:
        known, person = self._kinds[Membership], self._kinds[User]
        invited, becomes = change.invited, change.becomes
        row = await self._database.row(known.locked_alone, known.key(invited))
        if row is None or known.decode(row) != invited:
            raise ChangedMeanwhile(_MEANWHILE)
        values = {"waiting": invited.user_id, "entity": invited.entity_id, "person": becomes.user_id}
        await self._database.run(_vacate_membership, values)
        moved = known.codec.encode(becomes) | known.encode_sources(known.decode_sources(row))
        if await self._database.run(known.insert, moved) == 0:
            raise ChangedMeanwhile(_MEANWHILE)
        for kind in CARRIED:
            await self._database.run(_move_rows(kind), values)
        await self._database.run(person.delete, {"user_id": invited.user_id})
        await self._records.audit.record_change(change.event, invited, becomes)
        await self._records.clear_namesakes(becomes.user_id, change.event)


GUARDS: Final[Mapping[type, type[Guard[Any]]]] = {
    Precondition: PreconditionGuard,
    LastOwnerInvariant: LastOwnerGuard,
    SignOut: SignOutGuard,
    RolesUnder: RolesUnderGuard,
    Accept: AcceptGuard,
}
"""in the order in which they lock, write and confirm"""


class RecordWriter:
    """The writer of one record with its event, inside a transaction."""

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        self.database: Final = database
        self.audit: Final = audit
        self.kinds: Final = kinds
        self.sign_outs: Final = sign_outs
        self._consequences: Final[Mapping[type, Callable[[Any, Any, AuditEvent | None], Awaitable[None]]]] = {
            Membership: self._follow_membership,
            User: self._follow_user,
        }

        self._endings: Final[Mapping[type, Callable[[Any, AuditEvent], Awaitable[None]]]] = {
            Membership: self._end_access,
            User: self._end_memberships,
        }
        """what ends with a record, each with an event"""

    async def write(self, change: Change, absent: set[tuple[type, tuple[str, ...]]]) -> None:
        """Write or remove a record; a conflict names it.

        `absent` are records that were looked for and not found.
        """
        kind = type(change.record)
        key = tuple(self.kinds[kind].key(change.record).values())
        try:
            if change.after is None:
                await self.delete(change)
            else:
                await self.upsert(change, is_new=(kind, key) in absent)
        except ChangedMeanwhile:
            raise
        except Conflict as conflict:
            raise type(conflict)(f"{kind.__name__} {'/'.join(key)}: {conflict}") from None

    async def delete(self, change: Change) -> None:
        """Remove a record; with known sources only if nothing refers to it."""
        kind = self.kinds[type(change.record)]
        key = kind.key(change.record)
        was, sources = await self._read_stored(change, kind.locked if change.seen is None else kind.locked_alone)
        if change.seen is not None:
            if was is not None and (change.before, change.seen) != (was, sources):
                raise ChangedMeanwhile(_MEANWHILE)
            for look in kind.referring:
                if await self.database.row(look, key) is not None:
                    raise ChangedMeanwhile(_MEANWHILE)  # it would go with this one, and nobody decided so
        if isinstance(change.record, Membership):
            await self.database.run(_outdate_links, key)
        if change.event is not None and (end := self._endings.get(type(was))) is not None:
            await end(was, change.event)
        await self.database.run(kind.delete, key)
        if change.event is not None and was is not None:
            await self.audit.record_change(change.event, was, None)

    async def upsert(self, change: Change, *, is_new: bool = False) -> None:
        """Write a record, and what follows from it alone."""
        record, event = change.record, change.event
        kind = self.kinds[type(record)]
        was, sources = await self._read_stored(change, kind.locked)
        if change.seen is not None and (change.before, change.seen) != (was, sources):
            raise ChangedMeanwhile(_MEANWHILE)
        row = kind.codec.encode(record)
        if event is not None:
            sources = sources_after(event.actor, was, record, sources, frozenset(change.taken))
        if is_new or event is not None:
            row |= kind.encode_sources(sources)
        if is_new and isinstance(record, Membership) and record.invited:
            await self._add_placeholder(record)
        found = await self.database.run(kind.statement(is_new=is_new, sourced=event is not None), row)
        if is_new and found == 0:
            raise ChangedMeanwhile(_MEANWHILE)
        if event is not None and isinstance(was, Membership) and is_redirection(was, record):
            await self._end_access(was, event)
        if _is_compared(change) and (follow := self._consequences.get(type(record))) is not None:
            await follow(was, record, event)
        if event is not None:
            await self.audit.record_change(event, was, record)

    async def _end_memberships(self, was: User, event: AuditEvent) -> None:
        """End the memberships of an account, each with an event."""
        for row in await self.database.rows(_select_same(Membership, ("user_id",)), {"user_id": was.user_id}):
            held = MEMBERSHIPS.decode(row)
            ended = replace(
                event, action=AuditAction.MEMBERSHIP_REMOVE, object="/".join(held.key), entity_id=held.entity_id
            )
            await self.delete(Change(held, None, ended))

    async def _end_access(self, was: Membership, event: AuditEvent) -> None:
        """End level and roles of a membership, each with an event.

        Whoever gives somebody invited a level or a role holds the invitation as it was read, so that each is seen here.
        """
        member = {"user_id": was.user_id, "entity_id": was.entity_id}
        for kind in CARRIED:
            for row in await self.database.rows(_select_same(kind, _MEMBER), member):
                record = self.kinds[kind].codec.decode(row)
                ended = replace(
                    event,
                    action=_ENDING[kind],
                    object="/".join(record.key),
                    other_entity_id=getattr(record, "client_entity_id", ""),
                    detail={**event.detail, **list_role_parts(record)},
                )
                await self.delete(Change(record, None, ended))

    async def _read_stored(self, change: Change, locked: Statement) -> tuple[KeyedRecord | None, Sources]:
        """The record that a change replaces, locked, and its sources.

        What a plan has read may be older: if it was another one then, or had other sources, nothing is written.
        """
        if not _is_compared(change):
            return None, UNKNOWN
        kind = self.kinds[type(change.record)]
        row = await self.database.row(locked, kind.key(change.record))
        return (None, ABSENT) if row is None else (kind.decode(row), kind.decode_sources(row))

    async def _add_placeholder(self, invited: Membership) -> None:
        person = self.kinds[User]
        row = person.codec.encode(placeholder(invited)) | person.encode_sources(UNKNOWN)
        if await self.database.run(person.insert, row) == 0:
            raise ChangedMeanwhile(_MEANWHILE)

    async def _follow_membership(self, was: Membership | None, becomes: Membership, event: AuditEvent | None) -> None:
        """Keep user names that an entity wrote apart from those of accounts (D68)."""
        if (was.user_name if was is not None else "") != becomes.user_name:
            await self._refuse_account_name(becomes)
        if was is None and not becomes.invited:
            await self.clear_namesakes(becomes.user_id, event)

    async def _follow_user(self, was: User | None, becomes: User, event: AuditEvent | None) -> None:
        """End a waiting change of address; clear namesakes.

        The change ends if somebody else writes another address, since it would wait again once the former address is
        written back. If the person is disabled, the sign-out ends it, in the order of locks.
        """
        if was is not None and becomes.enabled and was.email != becomes.email:
            await self.sign_outs.end_email_change(becomes.user_id)
        if was is not None and was.user_name != becomes.user_name:
            await self.clear_namesakes(becomes.user_id, event)

    async def _refuse_account_name(self, becomes: Membership) -> None:
        """Refuse a user name that is the account's of another member."""
        name = _name_account(becomes.user_name)
        if not name:
            return  # no account has it
        other = {"user_id": becomes.user_id, "entity_id": becomes.entity_id, "name": name}
        if await self.database.row(_select_account_named, other) is not None:
            raise MemberNameTaken("user_name: it is the account of another member of this entity")

    async def clear_namesakes(self, user_id: str, by: AuditEvent | None) -> None:
        """Clear other members' user names that equal a person's.

        The entity wrote theirs, and cannot write that of an account. Source: D68
        """
        known = self.kinds[User]
        found = await self.database.row(known.one, {"user_id": user_id})
        name = "" if found is None else known.codec.decode(found).user_name
        for row in await self.database.rows(_select_namesakes, {"user_id": user_id, "name": fold_text(name)}):
            other = MEMBERSHIPS.decode(row)
            if not _is_account_name(other.user_name, name):
                continue  # e.g. gross, which folds as groß does
            event = AuditEvent(
                actor=by.actor if by is not None else SYSTEM,
                action=AuditAction.MEMBERSHIP_UPDATE,
                object="/".join(other.key),
                entity_id=other.entity_id,
                request_id=by.request_id if by is not None else "",
                detail={"cleared": "user_name", **name_invitation(other)},
            )
            await self.upsert(Change(None, replace(other, user_name=""), event))


def _is_compared(change: Change) -> bool:
    """Return whether the stored record is read before it is replaced."""
    return change.event is not None or change.seen is not None


def _is_account_name(written: str, user_name: str) -> bool:
    """Return whether a written user name means the account of another."""
    return bool(user_name) and _name_account(written) == _name_account(user_name)


def _name_account(written: str) -> str:
    """The key of the account that has a user name.

    It is empty for none. Searches fold a name that no account can have, such as one in circled letters.
    """
    for each in (written, fold_text(written)):
        with suppress(NameRefused):
            return fold_user_name(each)
    return ""


def _get_person(record: KeyedRecord) -> str:
    return getattr(record, "user_id", "")


def _get_account_holder(record: KeyedRecord) -> str | None:
    return record.user_id if isinstance(record, User | Credentials) else None


def _get_parties(record: KeyedRecord) -> tuple[str, ...] | None:
    return record.key[:3] if isinstance(record, ThirdPartyGrant) else None


_FULL_OPERATORS: Final = operators.c.level == "operator"
_OWNERS: Final = sa.and_(administrators.c.level == "owner", administrators.c.entity_id == text_parameter("entity_id"))


@Statement
def _lock_operators() -> sa.Select[Any]:
    found = sa.select(operators.c.user_id).where(_FULL_OPERATORS)
    return found.order_by(operators.c.user_id).with_for_update()


@Statement
def _select_able_operator() -> sa.Select[Any]:
    return sa.select(operators.c.user_id).join(users).where(_FULL_OPERATORS, users.c.enabled).limit(1)


@Statement
def _outdate_links() -> sa.Update:
    """Make an administrator's links those of an earlier membership (D69)."""
    person, entity = text_parameter("user_id"), text_parameter("entity_id")
    return sa.update(links).where(links.c.user_id == person, links.c.entity_id == entity).values(created_at=-1)


@Statement
def _lock_owners() -> sa.Select[Any]:
    found = sa.select(administrators.c.user_id).where(_OWNERS)
    return found.order_by(administrators.c.user_id).with_for_update()


@Statement
def _select_able_owner() -> sa.Select[Any]:
    chain = administrators.join(memberships).join(users, users.c.user_id == administrators.c.user_id)
    able = sa.and_(memberships.c.enabled, users.c.enabled)
    return sa.select(administrators.c.user_id).select_from(chain).where(_OWNERS, able).limit(1)


@by_shape
def _select_same(kind: type, compared: tuple[str, ...]) -> sa.Select[Any]:
    """Values of the compared columns → records that have them."""
    known = KINDS[kind]
    same = (known.table.c[name] == text_parameter(name) for name in compared)
    return select_columns(known.table, known.codec.columns).where(*same)


@by_shape
def _move_rows(kind: type) -> sa.Update:
    """`waiting`, `entity`, `person` → the rows of a membership, of another person."""
    table = KINDS[kind].table
    rows = table.c.user_id == sa.bindparam("waiting"), table.c.entity_id == sa.bindparam("entity")
    return sa.update(table).where(*rows).values(user_id=sa.bindparam("person"))


@Statement
def _vacate_membership() -> sa.Update:
    """`waiting`, `entity` → a membership without what is unique."""
    this = memberships.c.user_id == sa.bindparam("waiting"), memberships.c.entity_id == sa.bindparam("entity")
    return sa.update(memberships).where(*this).values(membership_id="", user_name_key="", external_id="")


@Statement
def _select_namesakes() -> sa.Select[Any]:
    """`user_id`, `name` → members of the same entities with this written name.

    Locked, since they are written whole.
    """
    own, other = memberships.alias("own"), memberships.alias("other")
    same = other.c.entity_id == own.c.entity_id, other.c.user_id != own.c.user_id
    return (
        sa.select(*columns(other, MEMBERSHIPS))
        .select_from(own.join(other, sa.and_(*same)))
        .where(
            own.c.user_id == text_parameter("user_id"),
            sa.not_(own.c.invited),
            other.c.user_name_key == text_parameter("name"),
            other.c.user_name_key != sa.literal_column("''", sa.Text),  # its index has no other rows
        )
        .order_by(other.c.user_id, other.c.entity_id)
        .with_for_update(of=other)
    )


@Statement
def _select_account_named() -> sa.Select[Any]:
    """`user_id`, `entity_id`, `name` → another member whose account has this name."""
    same = memberships.c.entity_id == text_parameter("entity_id")
    named = memberships.c.person_name_key == text_parameter("name")
    another = memberships.c.user_id != text_parameter("user_id")
    return sa.select(memberships.c.user_id).where(same, named, another).limit(1)
