"""Sessions, and ending those of a person together with their links.

A transaction that touches several of a person's rows takes them in one order, so that no two wait for each other: the
person, the credentials, then the sessions, then the links, and of these two each by its key.
Source: D30, D44, D46
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import sqlalchemy as sa

from corpid.rules.authentication.records import Credentials, Session, SessionFactors
from corpid.rules.limits import BROWSER_NAMES
from corpid.stores import milliseconds
from corpid.stores.sql.audit import Audit, AuditedPart
from corpid.stores.sql.columns import (
    ExpiringRows,
    belongs_to_person,
    columns,
    is_live,
    record_table,
    text_parameter,
)
from corpid.stores.sql.mappers import CREDENTIALS, Kinds
from corpid.stores.sql.statements import Database, Part, Statement, by_shape, insert, parameters, upsert
from corpid.stores.sql.tables import browser_names, credentials, email_changes, links, passkeys, sessions, users

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEvent

_SESSIONS: Final = record_table(sessions, Session)
_SESSION_END: Final = len(_SESSIONS.columns)
_OWNED: Final = sa.and_(passkeys.c.credential_id == sa.bindparam("passkey"), passkeys.c.user_id == users.c.user_id)


class LockedRows(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions and links of a person, locked until this transaction ends."""

    sessions: frozenset[str]
    """identifiers; some may have expired"""
    links: frozenset[str]
    """hashes"""


_LOCK_SESSIONS: Final = Statement(lambda: _locked(sessions.c.session_id))
_LOCK_LINKS: Final = Statement(lambda: _locked(links.c.link_hash))
_END_SESSIONS: Final = Statement(
    lambda: sa.delete(sessions).where(
        belongs_to_person(sessions),
        sessions.c.session_id != sa.bindparam("but_session"),
        sessions.c.browser_id != sa.bindparam("but_browser"),
    )
)
_END_LINKS: Final = Statement(lambda: sa.delete(links).where(belongs_to_person(links)))
_END_EMAIL_CHANGE: Final = Statement(lambda: sa.delete(email_changes).where(belongs_to_person(email_changes)))


class SignOuts(Part):
    """Signing a person out, inside the caller's transaction."""

    async def lock(self, user_id: str) -> LockedRows:
        """Lock a person's sessions and links; credentials, if touched, are locked first."""
        return LockedRows(
            sessions=await self._keys(_LOCK_SESSIONS, user_id),
            links=await self._keys(_LOCK_LINKS, user_id),
        )

    async def end_sessions(self, user_id: str, *, but_session: str = "", but_browser: str = "") -> None:
        """End a person's locked sessions, with two exceptions.

        `but_session`, and those of `but_browser`.
        """
        values = {"user_id": user_id, "but_session": but_session, "but_browser": but_browser}
        await self._database.run(_END_SESSIONS, values)

    async def end_links(self, user_id: str) -> None:
        """End a person's locked links."""
        await self._database.run(_END_LINKS, {"user_id": user_id})

    async def end_email_change(self, user_id: str) -> None:
        """End a person's waiting change of address, locked with the person."""
        await self._database.run(_END_EMAIL_CHANGE, {"user_id": user_id})

    async def _keys(self, locked: Statement, user_id: str) -> frozenset[str]:
        return frozenset(key for (key,) in await self._database.rows(locked, {"user_id": user_id}))


class PeoplePart(AuditedPart):
    """A part that changes people, and may sign them out."""

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        super().__init__(database, audit)
        self._kinds: Final = kinds
        self._sign_outs: Final = sign_outs


def _locked(key: sa.Column[str]) -> sa.Select[Any]:
    return sa.select(key).where(belongs_to_person(key.table)).order_by(key).with_for_update()


@Statement
def insert_unless_there() -> sa.Executable:
    """Insert a row to lock, also for a person without one."""
    return insert(credentials).values(parameters(CREDENTIALS.written)).on_conflict_do_nothing()


@Statement
def _person_now() -> sa.Select[Any]:
    """Select a person's current state for comparison.

    The parameters are `user_id` and `passkey`. The columns are whether the person is enabled, the number of their
    passkeys of that id, and the credentials.
    """
    owned = sa.select(sa.func.count()).select_from(passkeys).where(_OWNED).scalar_subquery()
    return (
        sa.select(users.c.enabled, owned, *columns(credentials, CREDENTIALS))
        .join_from(users, credentials, credentials.c.user_id == users.c.user_id, isouter=True)
        .where(belongs_to_person(users))
    )


def _select_person_locked(passkey: bool) -> sa.Select[Any]:
    """Select and lock the rows of `_person_now`.

    No row if the credentials, or the passkey if one is given, are missing. The passkey is locked too, not counted:
    whoever waits for a lock reads the locked rows again, and nothing else.
    """
    found = sa.select(users.c.enabled, sa.literal(int(passkey)), *columns(credentials, CREDENTIALS)).join_from(
        users, credentials, credentials.c.user_id == users.c.user_id
    )
    if passkey:
        found = found.join(passkeys, _OWNED)
    locked = (users, credentials, passkeys) if passkey else (users, credentials)
    return found.where(belongs_to_person(users)).with_for_update(read=True, of=locked)


_person_locked: Final = by_shape(_select_person_locked)


@by_shape
def _put_if_as_stored(passkey: bool) -> sa.Insert:
    """Store a session if its person's factors are as they were stored.

    The person must be enabled. `seen_hash` and `seen_secret` are the stored values that were loaded. The person and the
    factors are locked, so that a change of them finds the session.
    """
    row = [sa.cast(sa.bindparam(name), sessions.c[name].type).label(name) for name in _SESSIONS.written]
    locked = _select_person_locked(passkey).with_only_columns(*row)
    same = (
        users.c.enabled,
        credentials.c.password_hash.is_not_distinct_from(text_parameter("seen_hash")),
        credentials.c.totp_secret.is_not_distinct_from(text_parameter("seen_secret")),
    )
    return sa.insert(sessions).from_select(list(_SESSIONS.written), locked.where(*same))


_THIS: Final = sessions.c.session_id == sa.bindparam("session_id")
_GET: Final = _SESSIONS.query(lambda found: found.where(_THIS, is_live(sessions)))
_OF_PERSON: Final = _SESSIONS.query(
    lambda found: found.where(belongs_to_person(sessions), is_live(sessions)).order_by(
        sessions.c.auth_time.desc(), sessions.c.session_id
    )
)
_PUT: Final = Statement(_SESSIONS.upsert)
_END: Final = Statement(lambda: sa.delete(sessions).where(_THIS))
_USE: Final = Statement(lambda: sa.update(sessions).where(_THIS).values(seen_at=sa.bindparam("at")))
_USE_FOR: Final = Statement(
    lambda: sa.update(sessions).where(_THIS).values(seen_at=sa.bindparam("at"), entity_id=sa.bindparam("chosen"))
)
_OWN_NAMES: Final = belongs_to_person(browser_names)
_NAMES: Final = Statement(lambda: sa.select(browser_names.c.browser_key, browser_names.c.name).where(_OWN_NAMES))
_PUT_NAME: Final = Statement(lambda: upsert(browser_names, tuple(browser_names.c.keys())))
_REMOVE_NAME: Final = Statement(
    lambda: sa.delete(browser_names).where(_OWN_NAMES, browser_names.c.browser_key == text_parameter("browser_key"))
)


@Statement
def _cut_names() -> sa.Executable:
    latest = browser_names.c.named_at.desc(), browser_names.c.browser_key
    old = sa.select(browser_names.c.browser_key).where(_OWN_NAMES).order_by(*latest).offset(BROWSER_NAMES)
    return sa.delete(browser_names).where(_OWN_NAMES, browser_names.c.browser_key.in_(old))


@Statement
def _with_factors() -> sa.Executable:
    owned = sa.select(sa.func.count()).select_from(passkeys).where(_OWNED).scalar_subquery()
    people = sessions.join(users, users.c.user_id == sessions.c.user_id)
    return (
        sa.select(*columns(sessions, _SESSIONS), owned, *columns(credentials, CREDENTIALS))
        .select_from(people.outerjoin(credentials, credentials.c.user_id == users.c.user_id))
        .where(_THIS, is_live(sessions))
    )


class Sessions(PeoplePart, ExpiringRows):
    """Signed-in browsers; listed and ended."""

    table = sessions

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        super().__init__(database, audit, kinds, sign_outs)
        self._secret: Final = kinds[Credentials].codec

    async def get(self, session_id: str, *, now: float) -> Session | None:
        """Live while now < expires_at, by the engine's clock if any.

        Source: D49
        """
        return await _GET.one(self._database, session_id=session_id, now=milliseconds(now))

    async def with_factors(self, session_id: str, *, passkey: str, now: float) -> SessionFactors | None:
        """A session, and its person's factors now.

        `passkey` is the id of a credential, or empty. Source: D50
        """
        asked = {"session_id": session_id, "passkey": passkey, "now": milliseconds(now)}
        row = await self._database.row(_with_factors, asked)
        if row is None:
            return None
        session, owned, stored = _SESSIONS.decode(row[:_SESSION_END]), row[_SESSION_END], row[_SESSION_END + 1 :]
        held = Credentials(user_id=session.user_id) if stored[0] is None else self._secret.decode(stored)
        return SessionFactors(session=session, credentials=held, owns_passkey=owned > 0)

    async def list_for_user(self, user_id: str, *, now: float) -> list[Session]:
        """The live sessions of a person, the latest first."""
        return await _OF_PERSON.every(self._database, user_id=user_id, now=milliseconds(now))

    async def put(self, session: Session) -> None:
        """Raises MissingReference for a removed user."""
        await self._database.write(_PUT, _SESSIONS.encode(session))

    async def put_if_unchanged(
        self, session: Session, seen: Credentials, *, passkey: str = "", stored_secret: str | None = None
    ) -> bool:
        """Store the session of a new sign-in if `is_unchanged` holds.

        One statement, if the factors are there as they were stored: `stored_secret`, that of the account that was
        loaded, saves decrypting it again. Otherwise they are compared, and the person and their credentials are locked
        until the transaction ends. Returns False if it does not hold. A later change of that person finds the session
        and can end it. Source: D50
        """
        secret = None if seen.totp_secret is None else stored_secret
        as_stored = {"passkey": passkey, "seen_hash": seen.password_hash, "seen_secret": secret}
        put = _put_if_as_stored(bool(passkey))
        if await self._database.write(put, _SESSIONS.encode(session) | as_stored) == 1:
            return True
        lock = _person_locked(bool(passkey))
        async with self._database.transaction():
            held = await self._is_as_seen(lock, seen, passkey)
            if held is None and await self.is_unchanged(seen, passkey=passkey):
                # A person without password and app may have no credentials that could be locked.
                await self._database.run(
                    insert_unless_there,
                    self._secret.encode(Credentials(user_id=seen.user_id)),
                )
                held = await self._is_as_seen(lock, seen, passkey)
            if not held:
                return False
            await self._database.run(_PUT, _SESSIONS.encode(session))
        return True

    async def is_unchanged(self, seen: Credentials, *, passkey: str = "") -> bool:
        """Return whether a person is enabled and has the same factors.

        They are compared with the factors that were seen, and with the passkey of this id, if one is given.
        """
        return bool(await self._is_as_seen(_person_now, seen, passkey))

    async def _is_as_seen(self, look: Statement, seen: Credentials, passkey: str) -> bool | None:
        """None if nothing was found."""
        row = await self._database.row(look, {"user_id": seen.user_id, "passkey": passkey})
        if row is None:
            return None
        enabled, owned, *stored = row
        found = Credentials(user_id=seen.user_id) if stored[0] is None else self._secret.decode(stored)
        return bool(enabled) and found.factors == seen.factors and (not passkey or owned > 0)

    async def end(self, session_id: str, event: AuditEvent) -> bool:
        """End a session; False if it had ended before."""
        async with self._database.transaction():
            ended = await self._database.run(_END, {"session_id": session_id}) == 1
            await self._audit.write(event)
        return ended

    async def use(self, session_id: str, *, at: int, entity_id: str | None = None) -> bool:
        """Note the last use of a session, and its chosen entity.

        An ended one stays ended: False.
        """
        statement = _USE if entity_id is None else _USE_FOR
        return await self._database.write(statement, {"session_id": session_id, "at": at, "chosen": entity_id}) == 1

    async def end_all(self, user_id: str, event: AuditEvent, *, but_browser: str = "") -> None:
        """End every session of a person, except those of one browser."""
        async with self._database.transaction():
            await self._sign_outs.lock(user_id)
            await self._sign_outs.end_sessions(user_id, but_browser=but_browser)
            await self._audit.write(event)

    async def browser_names(self, user_id: str) -> dict[str, str]:
        """The names that a person gave their browsers, by key."""
        rows = await self._database.rows(_NAMES, {"user_id": user_id})
        return {str(key): str(name) for key, name in rows}

    async def name_browser(self, user_id: str, browser_key: str, name: str, event: AuditEvent, *, at: int) -> None:
        """Name a browser of a person; an empty name takes it away.

        Of more than `BROWSER_NAMES` the oldest go.
        """
        values = {"user_id": user_id, "browser_key": browser_key}
        async with self._database.transaction():
            if name:
                await self._database.run(_PUT_NAME, {**values, "name": name, "named_at": at})
                await self._database.run(_cut_names, {"user_id": user_id})
            else:
                await self._database.run(_REMOVE_NAME, values)
            await self._audit.write(event)
