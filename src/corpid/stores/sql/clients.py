"""Clients of both kinds, and what is kept of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic

import msgspec
import sqlalchemy as sa

from corpid.rules.data_loss import ClientClock
from corpid.rules.directory.words import words_of
from corpid.rules.hourly_counts import UNKNOWN_CLIENT, CountOfReason, HourlyCount, LatestUse, Point
from corpid.rules.limits import HOUR
from corpid.rules.oauth.api_client import RegisteredApiClient, StoredResponse
from corpid.rules.oauth.consent import Consent
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.records import Client, FetchedKeySet
from corpid.rules.oauth.refusals import ClientRefusal
from corpid.stores import milliseconds
from corpid.stores.sql.audit import AuditedPart
from corpid.stores.sql.columns import (
    LIMIT,
    Codec,
    ExpiringRows,
    T,
    integer_parameter,
    is_live,
    record_codec,
    record_table,
    repeat_texts,
    select_columns,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.statements import Database, IsAmong, Part, Query, Statement, by_shape, insert, parameters, upsert
from corpid.stores.sql.tables import (
    COMPLETED_SIGN_IN,
    api_answers,
    api_client_key_sets,
    api_clients,
    audit,
    client_clocks,
    client_refusals,
    clients,
    consents,
    fetched_key_sets,
    generation_use,
    hourly_counts,
    memberships,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.dialects.sqlite import Insert

    from corpid.rules.audit import AuditEvent


_OF_CLIENTS: Final = ("client_id", "name", "enabled", "record")
"""columns of clients of either kind"""
_FETCHED: Final = record_codec(FetchedKeySet)
_USES: Final = record_table(generation_use, UseCount)
_CONSENTS: Final = record_table(consents, Consent)
_SWEPT_KEYS: Final = 100
"""expired keys that a new one removes"""
_RESPONSES: Final = msgspec.json.Decoder(StoredResponse)
_LISTED: Final = 50
_HOURS_OF_A_DAY: Final = 25
"""those that have ended, and the present one"""
_LIKE_SIGNS: Final = re.compile("[%_!]")
_REFUSALS: Final = record_table(client_refusals, ClientRefusal)
_REFUSED = client_refusals.c
_OF_CLIENT: Final = _REFUSED.client_id == sa.bindparam("client_id")
_CLOCKS: Final = record_table(client_clocks, ClientClock)
_CLOCK = client_clocks.c
_SINCE: Final = "client_clocks_since"
_LARGER_AT: Final = "client_clocks_larger_at"
_HOURLY: Final = record_table(hourly_counts, HourlyCount)
_HOUR = hourly_counts.c
_IS_REFUSAL: Final[sa.ColumnElement[bool]] = sa.literal_column("reason <> ''")


class _FormerClient(msgspec.Struct, frozen=True):
    """The renamed member, under its name in the previous version.

    That version reads and writes it.
    """

    token_endpoint_audience_until: str | None = None


def _client_text(client: Client) -> str:
    """A client's record.

    A renamed value is written under both names, for nodes of the previous version.
    """
    former = {"token_endpoint_audience_until": client.endpoint_audience_until}
    return msgspec.json.encode({**msgspec.to_builtins(client), **former}).decode()


def _clients() -> Codec[Client]:
    decoder, former = msgspec.json.Decoder(Client), msgspec.json.Decoder(_FormerClient)

    def decode(row: Sequence[Any]) -> Client:
        client, until = decoder.decode(row[0]), former.decode(row[0]).token_endpoint_audience_until
        return client if until is None else msgspec.structs.replace(client, endpoint_audience_until=until)

    return Codec(
        columns=("record",),
        written=(*_OF_CLIENTS, "words"),
        encode=lambda client: _client_row(client, _client_text(client)) | {"words": words_of(client)},
        decode=decode,
    )


def _api_clients() -> Codec[RegisteredApiClient]:
    decoder = msgspec.json.Decoder(RegisteredApiClient)
    return Codec(
        columns=("record",),
        written=_OF_CLIENTS,
        encode=lambda client: _client_row(client, msgspec.json.encode(client).decode()),
        decode=lambda row: decoder.decode(row[0]),
    )


def _client_row(client: Client | RegisteredApiClient, record: str) -> dict[str, Any]:
    return {"client_id": client.client_id, "name": client.name, "enabled": client.enabled, "record": record}


CLIENTS: Final = _clients()
API_CLIENTS: Final = _api_clients()


class _Statements(Generic[T]):
    """The statements of the clients of one kind."""

    def __init__(self, codec: Codec[T], table: sa.Table, key_sets: sa.Table) -> None:
        self.get: Final = Query(lambda: _select_one(table, codec.columns), codec.decode)
        self.all: Final = Query(lambda: _select_all(table, codec.columns), codec.decode)
        self.fetched: Final = Query(lambda: _select_one(key_sets, _FETCHED.columns), _FETCHED.decode)
        self.store: Final = Statement(lambda: upsert(key_sets, ("client_id", *_FETCHED.written)))
        self.drop: Final = Statement(lambda: _delete(key_sets))
        self.mentioning: Final = Statement(lambda: _clients_mentioning(table, key_sets))


class _Registered(AuditedPart, Generic[T]):
    """The clients of one kind. They are written through Directory.write."""

    _statements: _Statements[T]

    async def get(self, client_id: str) -> T | None:
        return await self._statements.get.one(self._database, client_id=client_id)

    async def list_all(self) -> list[T]:
        """In the order of identifiers."""
        return await self._statements.all.every(self._database)

    async def list_mentioning(self, key_id: str, *, limit: int) -> list[str]:
        """Identifiers of clients whose record or key set has this text.

        Every record is looked at. Of the keys the reader takes those whose `kid` it is.
        """
        literal = _LIKE_SIGNS.sub(lambda sign: f"!{sign[0]}", key_id)
        values = {"pattern": f"%{literal}%", "limit": limit}
        return [str(row[0]) for row in await self._database.rows(self._statements.mentioning, values)]

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        return await self._statements.fetched.one(self._database, client_id=client_id)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        """Raises MissingReference for a client that is gone."""
        async with self._database.transaction():
            await self._database.run(self._statements.store, {"client_id": client_id} | _FETCHED.encode(fetched))

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        async with self._database.transaction():
            was = await self.fetched_key_set(client_id)
            await self._database.run(self._statements.drop, {"client_id": client_id})
            await self._audit.record_change(event, was, None)


class Clients(_Registered[Client]):
    """Relying parties. They are written through Directory.write."""

    _statements = _Statements(CLIENTS, clients, fetched_key_sets)

    async def latest_uses(self, client_ids: Collection[str], *, hour: int) -> dict[str, LatestUse]:
        """The use of at most 50 clients, by identifier.

        Counts are those of the hour that begins at `hour` and the 24 before. Always the same statement: who is repeated
        is found once.
        """
        wanted = list(dict.fromkeys(client_ids))
        if not wanted:
            return {}
        values = repeat_texts("listed", wanted, _LISTED)
        hours = {f"hour_{number}": hour - number * HOUR for number in range(_HOURS_OF_A_DAY)}
        rows = await self._database.rows(select_latest_uses, {**values, **hours})
        return {str(row[0]): LatestUse(*row[1:]) for row in rows}


class ApiClients(_Registered[RegisteredApiClient]):
    """Clients of the admin API (D59); they are written through Directory.write."""

    _statements = _Statements(API_CLIENTS, api_clients, api_client_key_sets)


_LIST_USES: Final = _USES.query(lambda found: found.order_by(*generation_use.primary_key))


class Usage(Part):
    """Counters of clients' use of deprecated things, without their requests."""

    async def add(self, counts: Sequence[UseCount]) -> None:
        """Add to the counters, in one short transaction.

        In the order of keys, so that processes never deadlock. The later moment of each stays. Counts of a client that
        does not exist are dropped.
        """
        async with self._database.transaction():
            for one in sorted(counts, key=lambda each: (each.client_id, each.generation, each.habit)):
                await self._database.run(_use_added, _USES.encode(one))

    async def list_all(self) -> list[UseCount]:
        """In the order of client, generation and habit."""
        return await _LIST_USES.every(self._database)


_REMEMBERED: Final = _CONSENTS.query(
    lambda found: found.where(*_consent_named("user_id", "entity_id", "client_id", "issuer_id"), is_live(consents))
)
_CONSENTS_OF_PERSON: Final = _CONSENTS.query(
    lambda found: found.where(*_consent_named("user_id"), is_live(consents)).order_by(*consents.primary_key)
)
_WITHDRAW: Final = Statement(lambda: sa.delete(consents).where(*_consent_named("user_id", "entity_id", "client_id")))


class Consents(AuditedPart, ExpiringRows):
    """Remembered consents. They end with their membership and client (D29)."""

    table = consents

    async def find_remembered(
        self, user_id: str, entity_id: str, client_id: str, issuer_id: str, *, now: float
    ) -> list[Consent]:
        """The live consents for one person, entity, client and issuer.

        Live while now < expires_at, by the engine's clock if any (D49).
        """
        return await _REMEMBERED.every(
            self._database,
            user_id=user_id,
            entity_id=entity_id,
            client_id=client_id,
            issuer_id=issuer_id,
            now=milliseconds(now),
        )

    async def list_for_user(self, user_id: str, *, now: float) -> list[Consent]:
        """The live consents of a person, by entity and client."""
        return await _CONSENTS_OF_PERSON.every(self._database, user_id=user_id, now=milliseconds(now))

    async def give(self, consent: Consent, event: AuditEvent) -> bool:
        """Store a consent, or renew the one with the same scopes.

        False if the membership or the client does not exist; nothing is written then.
        """
        async with self._database.transaction():
            given = await self._database.run(_consent_given, _CONSENTS.encode(consent)) == 1
            if given:
                await self._audit.write(event)
        return given

    async def withdraw(self, user_id: str, entity_id: str, client_id: str, event: AuditEvent) -> bool:
        """Remove the consents for one person, entity and client.

        At every issuer. False if there was none; nothing is written then.
        """
        key = {"user_id": user_id, "entity_id": entity_id, "client_id": client_id}
        async with self._database.transaction():
            withdrawn = await self._database.run(_WITHDRAW, key) > 0
            if withdrawn:
                await self._audit.write(event)
        return withdrawn


_ANSWER: Final = api_answers.c
_THIS_KEY: Final = sa.and_(_ANSWER.client_id == sa.bindparam("client"), _ANSWER.key == sa.bindparam("named"))
_KEY_HAS_ENDED: Final = _ANSWER.expires_at <= sa.bindparam("now")
_GET_RESPONSE: Final = Statement(
    lambda: sa.select(_ANSWER.answer).where(_THIS_KEY, _ANSWER.expires_at > sa.bindparam("now"))
)
_SWEEP_KEYS: Final = Statement(
    lambda: sa.delete(api_answers).where(
        IsAmong(api_answers, sa.select(api_answers).where(_KEY_HAS_ENDED).limit(_SWEPT_KEYS))
    )
)
_END_KEY: Final = Statement(lambda: sa.delete(api_answers).where(_THIS_KEY, _KEY_HAS_ENDED))
_CLAIM_KEY: Final = Statement(
    lambda: (
        insert(api_answers).values(parameters(("client_id", "key", "answer", "expires_at"))).on_conflict_do_nothing()
    )
)
_PUT_RESPONSE: Final = Statement(lambda: sa.update(api_answers).where(_THIS_KEY).values(answer=sa.bindparam("given")))


class IdempotencyKeys(Part):
    """First responses by client and key, stored as long as repeatable."""

    async def get(self, client_id: str, key: str, *, now: float) -> StoredResponse | None:
        row = await self._database.row(_GET_RESPONSE, {"client": client_id, "named": key, "now": int(now)})
        return None if row is None else _RESPONSES.decode(row[0])

    async def claim(self, client_id: str, key: str, *, now: float, seconds: int) -> bool:
        """Claim a key inside a transaction; True for the first only.

        Waits for another transaction with this key. `now` in epoch seconds, `seconds` until the key may be used again.
        Also removes some expired keys.
        """
        await self._database.run(_SWEEP_KEYS, {"now": int(now)})
        await self._database.run(_END_KEY, {"client": client_id, "named": key, "now": int(now)})
        values = {"client_id": client_id, "key": key, "answer": "", "expires_at": int(now) + seconds}
        return await self._database.run(_CLAIM_KEY, values) == 1

    async def put(self, client_id: str, key: str, response: StoredResponse) -> None:
        """Store the response of a claimed key, in the same transaction."""
        text = msgspec.json.encode(response).decode()
        await self._database.run(_PUT_RESPONSE, {"client": client_id, "named": key, "given": text})


_REFUSALS_OF_CLIENT: Final = _REFUSALS.query(
    lambda found: found.where(_OF_CLIENT).order_by(_REFUSED.at.desc(), _REFUSED.request_id.desc())
)
_REFUSALS_OF_REQUEST: Final = _REFUSALS.query(
    lambda found: (
        found.where(
            # The key of the table, so that of each client only these moments are read.
            _REFUSED.client_id.in_(sa.select(clients.c.client_id)),
            _REFUSED.claimed.in_((sa.false(), sa.true())),
            _REFUSED.at >= sa.bindparam("since", type_=sa.Double),
            _REFUSED.at < sa.bindparam("until", type_=sa.Double),
            _REFUSED.request_id == text_parameter("request_id"),
        )
        .order_by(_REFUSED.client_id, _REFUSED.at)
        .limit(LIMIT)
    )
)


class ClientRefusals(Part):
    """The latest refusals of each client."""

    async def list_by_reference(self, reference: str, *, since: float, until: float, limit: int) -> list[ClientRefusal]:
        """The refusals of one request that are kept.

        From `since`, before `until`, in epoch seconds.
        """
        return await _REFUSALS_OF_REQUEST.every(
            self._database, request_id=reference, since=since, until=until, limit=limit
        )

    async def add(self, refusals: Sequence[ClientRefusal], *, kept: int) -> None:
        """Add refusals of one client, all claimed or none.

        One short transaction. Only the `kept` latest of them stay. Those of a client that does not exist are dropped,
        which costs one read: strangers name many.
        """
        if not refusals:
            return
        one = refusals[0]
        if await self._database.row(_REGISTERED, {"client_id": one.client_id}) is None:
            return
        async with self._database.transaction():
            for each in refusals:
                await self._database.run(_refusal_added, _REFUSALS.encode(each))
            of = {"client_id": one.client_id, "claimed": one.claimed, "kept": kept}
            await self._database.run(_surplus_refusals, of)

    async def list_for_client(self, client_id: str) -> list[ClientRefusal]:
        """Every refusal kept of a client, the latest first.

        Claimed ones stand among the others.
        """
        return await _REFUSALS_OF_CLIENT.every(self._database, client_id=client_id)


_SKEWS_OF_CLIENT: Final = _CLOCKS.query(lambda found: found.where(_CLOCK.client_id == sa.bindparam("client_id")))


class ClientSkews(Part):
    """The largest skew of each client (docs/decisions/0026)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._values: Final = NamedValues(database)

    async def find(self, client_id: str) -> ClientClock | None:
        """The records of a client; None if there are none."""
        return await _SKEWS_OF_CLIENT.one(self._database, client_id=client_id)

    async def note(self, client_id: str, *, skew: int, period: int, now: float) -> None:
        """Record a skew; a larger one of the same period stays.

        One statement, since several processes record at once. It is on disk when this returns. Nothing is recorded of a
        client that does not exist.
        """
        clock = ClientClock(since=now, period=period, lead=skew, lead_before=skew)
        await self._database.write(_skew_noted, {"client_id": client_id} | _CLOCKS.encode(clock))

    async def recorded_since(self) -> float | None:
        """Since when every skew is recorded, epoch seconds; None: unknown."""
        return await self._moment(_SINCE)

    async def note_larger(self, *, now: float) -> None:
        """Note a skew above that of clients without a record."""
        async with self._database.transaction():
            await self._values.put(_LARGER_AT, repr(now))

    async def larger_at(self) -> float | None:
        """When that was noted last, epoch seconds; None: never."""
        return await self._moment(_LARGER_AT)

    async def _moment(self, name: str) -> float | None:
        found = await self._values.get(name)
        return None if found is None else float(found)

    async def begin(self, *, now: float) -> None:
        """Begin the records: skews of the time before may be missing."""
        async with self._database.transaction():
            await begin_client_clocks(self._database, now=now)


async def begin_client_clocks(database: Database, *, now: float) -> None:
    """Begin the records: skews of the time before may be missing.

    Inside a transaction. docs/decisions/0026
    """
    await NamedValues(database).put(_SINCE, repr(now))


class HourlyCounts(Part):
    """Hourly counters, to which several processes add."""

    async def add(self, counts: Sequence[HourlyCount]) -> None:
        """Add to the counters, in one short transaction.

        Counts of clients that are not registered are added to those of UNKNOWN_CLIENT. The rows are written in the
        order of their keys, so that processes never deadlock.
        """
        known = {UNKNOWN_CLIENT: UNKNOWN_CLIENT}
        sums: dict[tuple[int, str, str], int] = {}
        for one in counts:
            if one.client_id not in known:
                row = await self._database.row(_REGISTERED, {"client_id": one.client_id})
                known[one.client_id] = UNKNOWN_CLIENT if row is None else one.client_id
            key = (one.hour, known[one.client_id], one.reason)
            sums[key] = sums.get(key, 0) + one.count
        async with self._database.transaction():
            for (hour, client_id, reason), count in sorted(sums.items()):
                written = HourlyCount(hour=hour, client_id=client_id, reason=reason, count=count)
                await self._database.run(_count_added, _HOURLY.encode(written))

    async def totals(self, *, since: int, until: int, client_id: str | None = None) -> list[Point]:
        """The hours that have counts, in order: from `since`, before `until`.

        Of all clients, or of one. One range of the primary key.
        """
        values = {"since": since, "until": until, "client_id": client_id}
        rows = await self._database.rows(_hourly_totals(client_id is not None), values)
        return [Point(begins_at=int(row[0]), sign_ins=int(row[1]) - int(row[2]), refusals=int(row[2])) for row in rows]

    async def by_client_and_reason(
        self, *, since: int, until: int, client_id: str | None = None
    ) -> list[CountOfReason]:
        """The sums of each client and reason: from `since`, before `until`.

        Of all clients, or of one. One range of the primary key.
        """
        values = {"since": since, "until": until, "client_id": client_id}
        rows = await self._database.rows(_sums(client_id is not None), values)
        return [CountOfReason(client_id=row[0], reason=row[1], count=int(row[2])) for row in rows]

    async def remove_oldest(self, *, before: int) -> int:
        """Remove the oldest hour's counts if it began before this moment.

        Returns the number of rows: those of one hour, so that the transaction is short. Called again and again, it
        removes all older ones.
        """
        return await self._database.write(_oldest_hour_removed, {"before": before})


def _select_one(table: sa.Table, names: tuple[str, ...]) -> sa.Select[Any]:
    return select_columns(table, names).where(table.c.client_id == sa.bindparam("client_id"))


def _select_all(table: sa.Table, names: tuple[str, ...]) -> sa.Select[Any]:
    return select_columns(table, names).order_by(table.c.client_id)


def _delete(key_sets: sa.Table) -> sa.Executable:
    return sa.delete(key_sets).where(key_sets.c.client_id == sa.bindparam("client_id"))


def _clients_mentioning(table: sa.Table, key_sets: sa.Table) -> sa.Executable:
    """`pattern`, `limit` → identifiers, in order."""
    pattern = text_parameter("pattern")
    found = sa.union(
        sa.select(table.c.client_id).where(table.c.record.like(pattern, escape="!")),
        sa.select(key_sets.c.client_id).where(key_sets.c.jwks.like(pattern, escape="!")),
    ).subquery()
    return sa.select(found.c.client_id).order_by(found.c.client_id).limit(LIMIT)


@Statement
def select_latest_uses() -> sa.Select[Any]:
    """Fifty clients, `hour_…` → client and the members of LatestUse.

    Each is a look-up by a key or an index: of the audit one entry is read, of the counters those of a day.
    """
    hours = [integer_parameter(f"hour_{number}") for number in range(_HOURS_OF_A_DAY)]
    of_day = _HOUR.client_id == clients.c.client_id, _HOUR.hour.in_(hours)
    count = sa.select(sa.func.coalesce(sa.func.sum(_HOUR["count"]), sa.literal_column("0"))).where(*of_day)
    last = (
        sa.select(audit.c.at)
        .where(audit.c.client_id == clients.c.client_id, sa.text("client_id <> ''"), sa.text(COMPLETED_SIGN_IN))
        .order_by(audit.c.number.desc())
        .limit(sa.literal_column("1"))
    )
    used = sa.select(sa.func.max(generation_use.c.last_at)).where(generation_use.c.client_id == clients.c.client_id)
    keys = sa.select(fetched_key_sets.c.jwks).where(fetched_key_sets.c.client_id == clients.c.client_id)
    found = (
        last,
        count.where(_HOUR.reason == sa.literal_column("''")),
        count.where(_HOUR.reason > sa.literal_column("''")),
        used,
        keys,
    )
    wanted = text_parameters("listed", _LISTED)
    return sa.select(clients.c.client_id, *(each.scalar_subquery() for each in found)).where(
        clients.c.client_id.in_(wanted)
    )


def _select_registered() -> sa.Select[Any]:
    """`client_id` → a row if there is such a relying party."""
    return sa.select(clients.c.client_id).where(clients.c.client_id == sa.bindparam("client_id"))


_REGISTERED: Final = Statement(_select_registered)


def _added_if_registered(table: sa.Table, names: Sequence[str]) -> Insert:
    """Insertion of a row, if its client exists."""
    values = (sa.bindparam(name, type_=table.c[name].type) for name in names)
    return insert(table).from_select(names, _select_registered().with_only_columns(*values))


@Statement
def _use_added() -> sa.Executable:
    """One row of a client that exists is inserted or added to.

    What a client that is gone counted is no row.
    """
    statement = _added_if_registered(generation_use, _USES.written)
    stored, new = generation_use.c, statement.excluded
    return statement.on_conflict_do_update(
        index_elements=list(generation_use.primary_key),
        set_={
            "count": stored["count"] + new["count"],
            "last_at": sa.case((stored.last_at > new.last_at, stored.last_at), else_=new.last_at),
        },
    )


def _consent_named(*names: str) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(consents.c[name] == sa.bindparam(name) for name in names)


@Statement
def _consent_given() -> sa.Executable:
    """Insert or renew a consent of a membership and client that exist.

    Both stay until the transaction ends.
    """
    row = [sa.cast(sa.bindparam(name), consents.c[name].type).label(name) for name in _CONSENTS.written]
    known: sa.Select[Any] = (
        sa.select(*row)
        .select_from(memberships.join(clients, clients.c.client_id == sa.bindparam("client_id")))
        .where(
            memberships.c.user_id == sa.bindparam("user_id"),
            memberships.c.entity_id == sa.bindparam("entity_id"),
        )
        .with_for_update(read=True, key_share=True, of=(memberships, clients))
    )
    statement = insert(consents).from_select(list(_CONSENTS.written), known)
    renewed = {name: statement.excluded[name] for name in ("given_at", "expires_at")}
    return statement.on_conflict_do_update(index_elements=list(consents.primary_key), set_=renewed)


@Statement
def _refusal_added() -> sa.Executable:
    """Insertion of a new row of a client that exists."""
    return _added_if_registered(client_refusals, _REFUSALS.written).on_conflict_do_nothing()


@Statement
def _surplus_refusals() -> sa.Executable:
    """`client_id`, `claimed`, `kept` → removal of all but the latest ones."""
    ring = sa.and_(_OF_CLIENT, _REFUSED.claimed == sa.bindparam("claimed", type_=sa.Boolean))
    place = (_REFUSED.at, _REFUSED.request_id)
    oldest_kept = (
        sa.select(*place)
        .where(ring)
        .order_by(_REFUSED.at.desc(), _REFUSED.request_id.desc())
        .limit(1)
        .offset(sa.bindparam("kept", type_=sa.Integer) - 1)
    )
    return sa.delete(client_refusals).where(ring, sa.tuple_(*place) < oldest_kept.scalar_subquery())


@Statement
def _skew_noted() -> sa.Executable:
    """Insertion of a client's row, or a raise of its skew.

    The larger skew stays. A later period keeps what the one before had. What was noted for an earlier period than the
    row's raises the row's.
    """
    statement = _added_if_registered(client_clocks, ("client_id", *_CLOCKS.written))
    new = statement.excluded
    is_later, follows = new.period > _CLOCK.period, new.period == _CLOCK.period + 1
    larger = sa.case((new.lead > _CLOCK.lead, new.lead), else_=_CLOCK.lead)
    return statement.on_conflict_do_update(
        index_elements=["client_id"],
        set_={
            "period": sa.case((is_later, new.period), else_=_CLOCK.period),
            "lead": sa.case((is_later, new.lead), else_=larger),
            "lead_before": sa.case((follows, _CLOCK.lead), (is_later, new.lead), else_=_CLOCK.lead_before),
        },
    )


@Statement
def _count_added() -> sa.Executable:
    """Insertion of a row, or addition to it."""
    statement = _HOURLY.insert()
    return statement.on_conflict_do_update(
        index_elements=list(hourly_counts.primary_key), set_={"count": _HOUR["count"] + statement.excluded["count"]}
    )


def _among_hours(of_client: bool) -> list[sa.ColumnElement[bool]]:
    within = [_HOUR.hour >= integer_parameter("since"), _HOUR.hour < integer_parameter("until")]
    return [*within, _HOUR.client_id == sa.bindparam("client_id")] if of_client else within


@by_shape
def _hourly_totals(of_client: bool) -> sa.Executable:
    """Hour, every count of it, and those of refusals."""
    refused = sa.func.sum(sa.case((_IS_REFUSAL, _HOUR["count"]), else_=sa.literal_column("0")))
    return (
        sa.select(_HOUR.hour, sa.func.sum(_HOUR["count"]), refused)
        .where(*_among_hours(of_client))
        .group_by(_HOUR.hour)
        .order_by(_HOUR.hour)
    )


@by_shape
def _sums(of_client: bool) -> sa.Executable:
    """Client, reason, and the sum of its counts."""
    return (
        sa.select(_HOUR.client_id, _HOUR.reason, sa.func.sum(_HOUR["count"]))
        .where(*_among_hours(of_client))
        .group_by(_HOUR.client_id, _HOUR.reason)
        .order_by(_HOUR.client_id, _HOUR.reason)
    )


@Statement
def _oldest_hour_removed() -> sa.Executable:
    oldest = sa.select(sa.func.min(_HOUR.hour)).scalar_subquery()
    return sa.delete(hourly_counts).where(_HOUR.hour == oldest, _HOUR.hour < integer_parameter("before"))
