"""Factors, links, code guesses, and waiting changes of e-mail addresses (D44, D45, D46, D61).

Each transaction locks the person first, then sessions and links, then the change of address (`sessions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from corpid.rules.authentication.records import (
    Credentials,
    EmailChange,
    FactorChange,
    FactorLink,
    Passkey,
    PersonFactors,
)
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory.members import Members, compare_members, merge_members
from corpid.rules.directory.records import Account, Conflict, NameRefused, User
from corpid.rules.directory.sources import sources_after
from corpid.rules.directory.words import words_of
from corpid.stores.sql.audit import Audit, AuditedPart, RecordedChange
from corpid.stores.sql.columns import (
    LIMIT,
    belongs_to_person,
    columns,
    integer_parameter,
    record_table,
)
from corpid.stores.sql.mappers import CREDENTIALS, KINDS, USERS, Kinds, fold_user_name
from corpid.stores.sql.sessions import PeoplePart, SignOuts, insert_unless_there
from corpid.stores.sql.statements import Database, Query, Row, Statement, insert, parameters, upsert
from corpid.stores.sql.tables import (
    audit,
    code_guesses,
    credentials,
    email_changes,
    links,
    passkey_offers,
    passkeys,
    recovery_codes,
    users,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.rules.audit import AuditEvent

EmailChangeEnd: TypeAlias = Literal["changed", "dropped", "gone"]
"""the new address is in effect; it is not, since person or address are no longer as they were; somebody else finished
or undid the change"""
_EMAIL_CHANGES: Final = record_table(email_changes, EmailChange)
_PASSKEYS: Final = record_table(passkeys, Passkey)
_LINKS: Final = record_table(links, FactorLink)
_GUESSES: Final = record_table(code_guesses, CodeGuesses)
_USER_END: Final = len(USERS.columns)
_CREDENTIALS_END: Final = _USER_END + len(CREDENTIALS.columns)
_GUESSES_END: Final = _CREDENTIALS_END + len(_GUESSES.columns)
_PASSKEYS_START: Final = _GUESSES_END + 3
_SECRET_PLACE: Final = CREDENTIALS.columns.index(credentials.c.totp_secret.name)
_GUESSES_COMPARED: Final = ("factors", "guesses", "paused_until")


_THIS_PASSKEY: Final = passkeys.c.credential_id == sa.bindparam("credential_id")
_OWN_PASSKEY: Final = sa.and_(_THIS_PASSKEY, belongs_to_person(passkeys))
_THIS_LINK: Final = links.c.link_hash == sa.bindparam("link_hash")
_OF_BROWSER: Final = sa.and_(belongs_to_person(code_guesses), code_guesses.c.browser == sa.bindparam("browser"))


class _FactorsChanged(Exception):
    """Something changed since it was read: undo the whole change."""


_ACCOUNT: Final = Statement(lambda: _select_account().where(belongs_to_person(users)))
_ACCOUNT_BY_NAME: Final = Statement(lambda: _select_account().where(users.c.user_name_key == sa.bindparam("name")))
_ACCOUNT_BY_PASSKEY: Final = Statement(
    lambda: _select_account().where(
        users.c.user_id == sa.select(passkeys.c.user_id).where(_THIS_PASSKEY).correlate(None).scalar_subquery()
    )
)
_PASSKEY: Final = _PASSKEYS.query(lambda found: found.where(_THIS_PASSKEY))
_PASSKEYS_OF_PERSON: Final = _PASSKEYS.query(
    lambda found: found.where(belongs_to_person(passkeys)).order_by(passkeys.c.created_at, passkeys.c.credential_id)
)
_ADD_PASSKEY: Final = Statement(_PASSKEYS.insert)
_REMOVE_PASSKEY: Final = Statement(lambda: sa.delete(passkeys).where(_OWN_PASSKEY))
_REMOVE_PASSKEYS: Final = Statement(lambda: sa.delete(passkeys).where(belongs_to_person(passkeys)))
_RENAME_PASSKEY: Final = Statement(
    lambda: sa.update(passkeys).where(_OWN_PASSKEY).values(name=sa.bindparam("new_name"))
)
_DECLINE_PASSKEY: Final = Statement(lambda: upsert(passkey_offers, ("user_id", "declined_at")))
_CODES_LEFT: Final = Statement(
    lambda: sa.select(sa.func.count()).select_from(recovery_codes).where(belongs_to_person(recovery_codes))
)
_TAKE_CODE: Final = RecordedChange(
    lambda: sa.delete(recovery_codes).where(
        belongs_to_person(recovery_codes), recovery_codes.c.code_hash == sa.bindparam("code_hash")
    )
)
_DROP_CODES: Final = Statement(lambda: sa.delete(recovery_codes).where(belongs_to_person(recovery_codes)))
_ADD_CODE: Final = Statement(lambda: insert(recovery_codes).values(parameters(("user_id", "code_hash"))))
_LINKS_OF_PERSON: Final = _LINKS.query(lambda found: found.where(belongs_to_person(links)).order_by(links.c.purpose))
_LINK: Final = _LINKS.query(lambda found: found.where(_THIS_LINK))
_KEEP_LINK: Final = Statement(_LINKS.upsert)
_DROP_LINK: Final = Statement(lambda: sa.delete(links).where(_THIS_LINK))
_DROP_LINKS: Final = Statement(
    lambda: sa.delete(links).where(
        belongs_to_person(links),
        links.c.purpose == sa.bindparam("purpose"),
        links.c.link_hash != sa.bindparam("spared"),
    )
)


class Factors(PeoplePart):
    """People's factors, and the links for setting them."""

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        super().__init__(database, audit, kinds, sign_outs)
        self._credentials: Final = kinds[Credentials]

    async def account(self, user_id: str, *, browser: str = "") -> Account | None:
        """Load a person with all data for signing in, in one statement.

        The result is None for unknown people. `browser` is the key that guesses at codes are counted by
        (`CodeGuesses.browser`). Raises EncryptionError when the key-encryption key is another one.
        """
        rows = await self._database.rows(_ACCOUNT, {"user_id": user_id, "browser": browser})
        return self._found(rows, browser) if rows else None

    async def account_by_name(self, user_name: str) -> Account | None:
        """Load the same by user name, compared after PRECIS mapping.

        The guesses are those of unknown browsers. The result is None for a text that cannot be a user name; the query
        is made all the same. Source: D51
        """
        try:
            name = fold_user_name(user_name)
        except NameRefused:
            name = ""
        rows = await self._database.rows(_ACCOUNT_BY_NAME, {"name": name, "browser": ""})
        return self._found(rows, "") if rows else None

    async def account_by_passkey(self, credential_id: str) -> Account | None:
        """The same by a passkey that is theirs."""
        rows = await self._database.rows(_ACCOUNT_BY_PASSKEY, {"credential_id": credential_id, "browser": ""})
        return self._found(rows, "") if rows else None

    def _found(self, rows: list[Row], browser: str) -> Account:
        first = rows[0]
        user = USERS.decode(first[:_USER_END])
        stored, counted = first[_USER_END:_CREDENTIALS_END], first[_CREDENTIALS_END:_GUESSES_END]
        owned = [row[_PASSKEYS_START:] for row in rows if row[_PASSKEYS_START] is not None]
        codes, signed_in, declined_at = first[_GUESSES_END:_PASSKEYS_START]
        return Account(
            user=user,
            held=PersonFactors(
                credentials=Credentials(user_id=user.user_id)
                if stored[0] is None
                else self._credentials.codec.decode(stored),
                passkeys=tuple(map(_PASSKEYS.decode, owned)),
                codes=codes,
            ),
            guesses=CodeGuesses(user_id=user.user_id, browser=browser)
            if counted[0] is None
            else _GUESSES.decode(counted),
            signed_in_before=bool(signed_in),
            stored_secret=stored[_SECRET_PLACE],
            passkey_declined_at=declined_at or 0,
        )

    async def credentials(self, user_id: str) -> Credentials:
        """A person's password and app.

        Neither if none is stored, or for unknown people. Raises EncryptionError when the key-encryption key is another
        one.
        """
        row = await self._database.row(self._credentials.one, {"user_id": user_id})
        if row is None:
            return Credentials(user_id=user_id)
        found: Credentials = self._credentials.codec.decode(row)
        return found

    async def raise_totp_step(self, user_id: str, step: int, event: AuditEvent) -> bool:
        """Raise the last accepted step in one conditional statement.

        False if it was not lower (D45). The event is written for a step that was accepted.
        """
        return await _raise_step.run(self._database, self._audit, {"user_id": user_id, "step": step}, event)

    async def rehash(self, user_id: str, old_hash: str, new_hash: str) -> bool:
        """Replace a password hash by a stronger one of the same password.

        False if it is no longer the old one.
        """
        return await self._database.write(_rehash, {"user_id": user_id, "old": old_hash, "new": new_hash}) == 1

    async def passkey(self, credential_id: str) -> Passkey | None:
        return await _PASSKEY.one(self._database, credential_id=credential_id)

    async def passkeys(self, user_id: str) -> list[Passkey]:
        """The oldest first."""
        return await _PASSKEYS_OF_PERSON.every(self._database, user_id=user_id)

    async def use_passkey(self, used: Passkey, before: Passkey, event: AuditEvent) -> bool:
        """Write the counter and moment of a use, in one statement.

        False if the counter is not what it was (D46).
        """
        values = {
            "credential_id": used.credential_id, "before": before.sign_count,
            "after": used.sign_count, "shown_at": used.used_at, "in_sync": used.synced,
        }  # fmt: skip
        return await _use_passkey.run(self._database, self._audit, values, event)

    async def rename_passkey(self, passkey: Passkey, event: AuditEvent) -> bool:
        """Rename a passkey, found by its id and owner.

        False if there is none (D46).
        """
        values = {"user_id": passkey.user_id, "credential_id": passkey.credential_id, "new_name": passkey.name}
        async with self._database.transaction():
            was = await self.passkey(passkey.credential_id)
            written = await self._database.run(_RENAME_PASSKEY, values) == 1
            if written and was is not None:
                await self._audit.record_change(event, was, msgspec.structs.replace(was, name=passkey.name))
        return written

    async def decline_passkey(self, user_id: str, *, at: int) -> None:
        """Write when a person last declined a passkey, in epoch seconds.

        Raises MissingReference for a removed person. Source: D46
        """
        await self._database.write(_DECLINE_PASSKEY, {"user_id": user_id, "declined_at": at})

    async def recovery_codes_left(self, user_id: str) -> int:
        row = await self._database.row(_CODES_LEFT, {"user_id": user_id})
        return int(row[0]) if row else 0

    async def take_recovery_code(self, user_id: str, code_hash: str, event: AuditEvent) -> bool:
        """Spend a code; True for the first only (D45)."""
        return await _TAKE_CODE.run(self._database, self._audit, {"user_id": user_id, "code_hash": code_hash}, event)

    async def change(self, change: FactorChange, event: AuditEvent) -> bool:
        """Write a person's change of factors, atomically.

        False if the credentials are no longer as they were, the session has ended, the link was spent before, the
        passkey is known, or one of the conditions on how many there are does not hold.
        """
        try:
            async with self._database.transaction():
                await self._audit.write(event, members=await self._change(change))
        except (_FactorsChanged, Conflict):
            return False
        return True

    async def _change(self, change: FactorChange) -> Members:
        user_id = change.after.user_id
        was = await self._lock(change)
        held = await self.passkeys(user_id) if change.remove_passkey or change.remove_passkeys else []
        codes = {}
        await self._database.run(self._credentials.upsert, self._credentials.codec.encode(change.after))
        if change.end_sessions_but is not None:
            await self._sign_outs.end_sessions(user_id, but_session=change.end_sessions_but)
        await self._sign_outs.end_links(user_id)
        if not change.session_id:
            # By a link, or from an operator: perhaps an answer to a theft, and then the new address is the thief's.
            await self._sign_outs.end_email_change(user_id)
        if change.add_passkey is not None:
            await self._database.run(_ADD_PASSKEY, _PASSKEYS.encode(change.add_passkey))
        if change.remove_passkey:
            owned = {"user_id": user_id, "credential_id": change.remove_passkey}
            await self._exactly_one(_REMOVE_PASSKEY, owned)
        if change.remove_passkeys:
            await self._database.run(_REMOVE_PASSKEYS, {"user_id": user_id})
        if change.passkey_remains or change.passkeys_at_most:
            # Check the remaining passkeys. Of two concurrent changes the second sees the first, since both write the
            # credentials.
            number = len(await self.passkeys(user_id))
            if number < change.passkey_remains or 0 < change.passkeys_at_most < number:
                raise _FactorsChanged
        if change.recovery_codes is not None:
            codes["before"] = await self._database.run(_DROP_CODES, {"user_id": user_id})
            codes["after"] = len(change.recovery_codes)
            for code_hash in change.recovery_codes:
                await self._database.run(_ADD_CODE, {"user_id": user_id, "code_hash": code_hash})
        gone = [each for each in held if change.remove_passkeys or each.credential_id == change.remove_passkey]
        return merge_members(
            compare_members(was, change.after),
            _members("recovery_codes", codes),
            _members("passkeys", _passkeys_recorded(gone, change.add_passkey), personal=True),
        )

    async def _lock(self, change: FactorChange) -> Credentials:
        """Lock the rows a change starts from, in the order of `sign_outs`."""
        user_id, codec = change.after.user_id, self._credentials.codec
        await self._database.run(insert_unless_there, codec.encode(Credentials(user_id=user_id)))
        row = await self._database.row(_lock_credentials, {"user_id": user_id})
        stored: Credentials | None = None if row is None else codec.decode(row)
        if stored is None or stored.factors != change.before.factors:
            raise _FactorsChanged
        locked = await self._sign_outs.lock(user_id)
        if change.session_id and change.session_id not in locked.sessions:
            raise _FactorsChanged
        if change.spend_link and change.spend_link not in locked.links:
            raise _FactorsChanged
        return stored

    async def _exactly_one(self, statement: Statement, values: dict[str, str]) -> None:
        if await self._database.run(statement, values) != 1:
            raise _FactorsChanged

    async def keep_link(self, link: FactorLink, event: AuditEvent, *, spared: str = "") -> None:
        """Store a link.

        Those of the same person and purpose end, except for the one with the hash `spared`. Raises MissingReference for
        a removed user.
        """
        async with self._database.transaction():
            earlier = {"user_id": link.user_id, "purpose": link.purpose, "spared": spared}
            await self._database.run(_DROP_LINKS, earlier)
            await self._database.run(_KEEP_LINK, _LINKS.encode(link))
            await self._audit.record_change(event, None, link)

    async def drop_link(self, link: FactorLink, event: AuditEvent) -> None:
        """Remove a link, if it is still there."""
        async with self._database.transaction():
            if await self._database.run(_DROP_LINK, {"link_hash": link.link_hash}):
                await self._audit.write(event)

    async def link(self, link_hash: str) -> FactorLink | None:
        """An unspent link; it may have expired."""
        return await _LINK.one(self._database, link_hash=link_hash)

    async def links_of(self, user_id: str) -> list[FactorLink]:
        """Return a person's unspent links, by purpose; some may have expired."""
        return await _LINKS_OF_PERSON.every(self._database, user_id=user_id)


_GUESSES_OF_BROWSER: Final = _GUESSES.query(lambda found: found.where(_OF_BROWSER))
_GUESSES_OF_PERSON: Final = _GUESSES.query(
    lambda found: found.where(belongs_to_person(code_guesses)).order_by(code_guesses.c.browser)
)
_FORGET: Final = Statement(lambda: sa.delete(code_guesses).where(_OF_BROWSER))
_FORGET_ALL: Final = Statement(lambda: sa.delete(code_guesses).where(belongs_to_person(code_guesses)))


class CodeGuessCounts(AuditedPart):
    """Code guesses of a person, by browser or group of browsers.

    Source: D45
    """

    async def get(self, user_id: str, browser: str) -> CodeGuesses:
        """The count; zero guesses if none is stored."""
        found = await _GUESSES_OF_BROWSER.one(self._database, user_id=user_id, browser=browser)
        return found or CodeGuesses(user_id=user_id, browser=browser)

    async def list_for_user(self, user_id: str) -> list[CodeGuesses]:
        """Every count of a person."""
        return await _GUESSES_OF_PERSON.every(self._database, user_id=user_id)

    async def replace(self, seen: CodeGuesses, after: CodeGuesses) -> bool:
        """Replace a count, in one conditional statement.

        False if it is no longer the one that was read. Raises MissingReference for a removed person.
        """
        compared = {
            "seen_factors": seen.factors, "seen_guesses": seen.guesses, "seen_paused_until": seen.paused_until,
        }  # fmt: skip
        return await self._database.write(_replacement, _GUESSES.encode(after) | compared) == 1

    async def forget(self, user_id: str, browser: str) -> None:
        await self._database.write(_FORGET, {"user_id": user_id, "browser": browser})

    async def forget_all(self, user_id: str, event: AuditEvent | None = None) -> None:
        """Forget every count of a person; the event is written with it."""
        async with self._database.transaction():
            await self._database.run(_FORGET_ALL, {"user_id": user_id})
            if event is not None:
                await self._audit.write(event)


def _decode_standing(row: Row) -> EmailChange | None:
    """The change of a row of `_with_person`, if it stands."""
    *stored, enabled, email = row
    change = _EMAIL_CHANGES.decode(stored)
    return change if change.stands(enabled=enabled, email=email) else None


_PERSON: Final = KINDS[User]
_CHANGE_OF_PERSON: Final = Query(lambda: _with_person(email_changes.c.user_id), _decode_standing)
_CHANGE_BY_LINK: Final = Query(lambda: _with_person(email_changes.c.link_hash), _decode_standing)
_ADD_CHANGE: Final = Statement(lambda: _EMAIL_CHANGES.insert().on_conflict_do_nothing())
_TAKE_CHANGE: Final = Statement(
    lambda: sa.delete(email_changes).where(
        email_changes.c.user_id == sa.bindparam("user_id"), email_changes.c.link_hash == sa.bindparam("link_hash")
    )
)
_DUE_CHANGES: Final = _EMAIL_CHANGES.query(
    lambda found: (
        found.where(email_changes.c.effective_at <= integer_parameter("now"))
        .order_by(email_changes.c.effective_at, email_changes.c.user_id)
        .limit(LIMIT)
    )
)
_SET_EMAIL: Final = Statement(
    lambda: (
        sa.update(users)
        .where(users.c.user_id == sa.bindparam("user"))
        .values(
            email=sa.bindparam("new"),
            words=sa.bindparam("found_by"),
            source=sa.bindparam("by"),
            member_sources=sa.bindparam("since"),
        )
    )
)


class EmailChanges(PeoplePart):
    """Waiting changes of addresses, at most one for a person.

    One that no longer stands has no effect. It ends with a new password or second factor by a link or from an operator,
    and when the person is disabled or removed.
    """

    async def find(self, user_id: str) -> EmailChange | None:
        """The change of a person that stands."""
        return await _CHANGE_OF_PERSON.one(self._database, user_id=user_id)

    async def by_link(self, link_hash: str) -> EmailChange | None:
        """The change that stands and that this link undoes."""
        return await _CHANGE_BY_LINK.one(self._database, link_hash=link_hash)

    async def begin(self, change: EmailChange, event: AuditEvent, *, session_id: str) -> bool:
        """Store a change, and end the person's other sessions.

        False if the session has ended, the address is no longer the old one, or another change waits; nothing is
        written then. Of two at once, the second waits for the person's lock.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not self._stands(change, row):
                return False
            locked = await self._sign_outs.lock(change.user_id)
            if session_id not in locked.sessions or not await self._store(change):
                return False
            await self._sign_outs.end_sessions(change.user_id, but_session=session_id)
            was: User = _PERSON.decode(row)
            await self._audit.record_change(event, was, msgspec.structs.replace(was, email=change.new_email))
        return True

    async def _store(self, change: EmailChange) -> bool:
        """Store a change, in place of one that no longer stands."""
        if await self.find(change.user_id) is None:
            await self._sign_outs.end_email_change(change.user_id)
        return await self._database.run(_ADD_CHANGE, _EMAIL_CHANGES.encode(change)) == 1

    async def undo(self, change: EmailChange, event: AuditEvent, *, but_session: str = "") -> bool:
        """Remove a waiting change, and end the person's sessions and links.

        Except one session. False if it was finished or undone before; nothing is written then.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not self._stands(change, row):
                return False
            locked = await self._sign_outs.lock(change.user_id)
            if (but_session and but_session not in locked.sessions) or not await self._taken(change):
                return False
            await self._sign_outs.end_sessions(change.user_id, but_session=but_session)
            await self._sign_outs.end_links(change.user_id)
            was: User = _PERSON.decode(row)
            await self._audit.record_change(event, msgspec.structs.replace(was, email=change.new_email), was)
        return True

    async def due(self, *, now: float, limit: int) -> list[EmailChange]:
        """Changes whose time has come, the earliest first."""
        return await _DUE_CHANGES.every(self._database, now=int(now), limit=limit)

    async def finish(self, change: EmailChange, event: AuditEvent) -> EmailChangeEnd:
        """Remove a waiting change, and write the address if it stands.

        The event has the outcome `refused` if it does not.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not await self._taken(change):
                return "gone"
            if not self._stands(change, row):
                await self._audit.write(msgspec.structs.replace(event, outcome="refused"))
                return "dropped"
            was: User = _PERSON.decode(row)
            becomes = msgspec.structs.replace(was, email=change.new_email)
            sources = _PERSON.encode_sources(sources_after(event.actor, was, becomes, _PERSON.decode_sources(row)))
            values = {
                "user": change.user_id, "new": change.new_email, "found_by": words_of(becomes),
                "by": sources["source"], "since": sources["member_sources"],
            }  # fmt: skip
            await self._database.run(_SET_EMAIL, values)
            await self._audit.record_change(event, was, becomes)
        return "changed"

    async def _locked(self, change: EmailChange) -> Row | None:
        return await self._database.row(_PERSON.locked, {"user_id": change.user_id})

    def _stands(self, change: EmailChange, row: Row) -> bool:
        user: User = _PERSON.decode(row)
        return change.stands(enabled=user.enabled, email=user.email)

    async def _taken(self, change: EmailChange) -> bool:
        key = {"user_id": change.user_id, "link_hash": change.link_hash}
        return await self._database.run(_TAKE_CHANGE, key) == 1


@RecordedChange
def _raise_step() -> sa.Update:
    """The check and the change are one statement."""
    step = integer_parameter("step")
    lower = credentials.c.totp_last_step < step
    return sa.update(credentials).where(belongs_to_person(credentials), lower).values(totp_last_step=step)


@Statement
def _rehash() -> sa.Update:
    same = credentials.c.password_hash == sa.bindparam("old")
    return sa.update(credentials).where(belongs_to_person(credentials), same).values(password_hash=sa.bindparam("new"))


@RecordedChange
def _use_passkey() -> sa.Update:
    """A conditional update: of two uses at once, one succeeds.

    The counter read before is part of the condition.
    """
    as_looked_at = passkeys.c.sign_count == sa.bindparam("before")
    new: dict[str, Any] = {
        "sign_count": sa.bindparam("after"),
        "used_at": sa.bindparam("shown_at"),
        "synced": sa.bindparam("in_sync"),
    }
    return sa.update(passkeys).where(_THIS_PASSKEY, as_looked_at).values(new)


@Statement
def _lock_credentials() -> sa.Select[Any]:
    found = sa.select(*columns(credentials, CREDENTIALS))
    return found.where(belongs_to_person(credentials)).with_for_update()


def _select_account() -> sa.Select[Any]:
    """Select a person with all data for signing in.

    The columns are user, credentials, guesses (or nulls), the number of recovery codes left, whether the person has
    signed in, when they did not want a passkey (or null), and one passkey (or nulls). There is one row for each
    passkey, or a single one without.
    """
    owner = users.c.user_id
    codes = sa.select(sa.func.count()).select_from(recovery_codes).where(recovery_codes.c.user_id == owner)
    completed = audit.c.action == sa.literal_column("'sign_in.complete'")
    signed_in = sa.exists().where(audit.c.actor == sa.literal_column("'user:'") + owner, completed)
    declined = sa.select(passkey_offers.c.declined_at).where(passkey_offers.c.user_id == owner)
    counted = sa.and_(code_guesses.c.user_id == owner, code_guesses.c.browser == sa.bindparam("browser"))
    rows = users.outerjoin(credentials, credentials.c.user_id == owner).outerjoin(code_guesses, counted)
    return (
        sa.select(
            *columns(users, USERS), *columns(credentials, CREDENTIALS), *columns(code_guesses, _GUESSES),
            codes.scalar_subquery(), signed_in, declined.scalar_subquery(), *columns(passkeys, _PASSKEYS),
        )
        .select_from(rows.outerjoin(passkeys, passkeys.c.user_id == owner))
        .order_by(passkeys.c.created_at, passkeys.c.credential_id)
    )  # fmt: skip


def _members(name: str, states: Mapping[str, object], *, personal: bool = False) -> Members:
    """A member that is no column, by its states before and after."""
    if not states:
        return Members()
    return Members(
        before={name: states["before"]},
        after={name: states["after"]},
        personal=frozenset({name} if personal else ()),
    )


def _passkeys_recorded(removed: Sequence[Passkey], added: Passkey | None) -> dict[str, object]:
    if not removed and added is None:
        return {}
    after = [] if added is None else [compare_members(None, added).after]
    return {"before": [compare_members(passkey, None).before for passkey in removed], "after": after}


@Statement
def _replacement() -> sa.Executable:
    """A conditional update: of two guesses at once, one must retry.

    The count read before is part of the condition.
    """
    statement = _GUESSES.insert()
    changed = {name: statement.excluded[name] for name in _GUESSES.written if not code_guesses.c[name].primary_key}
    as_seen = (
        code_guesses.c[name] == sa.bindparam(f"seen_{name}", type_=code_guesses.c[name].type)
        for name in _GUESSES_COMPARED
    )
    return statement.on_conflict_do_update(
        index_elements=list(code_guesses.primary_key), set_=changed, where=sa.and_(*as_seen)
    )


def _with_person(key: sa.Column[str]) -> sa.Select[tuple[object, ...]]:
    people = email_changes.join(users, users.c.user_id == email_changes.c.user_id)
    found = sa.select(*columns(email_changes, _EMAIL_CHANGES), users.c.enabled, users.c.email).select_from(people)
    return found.where(key == sa.bindparam(key.name))
