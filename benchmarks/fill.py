"""A database as large as a nation's: rows as CorpID's own adapters write them, sent by COPY."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from benchmarks import people
from corpid.engines import new_user_id
from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials, Session
from corpid.rules.directory.records import Assignment, Entity, Membership, Service, User
from corpid.rules.oauth.records import Client
from corpid.stores.sql import tables
from corpid.stores.sql.columns import Codec, record_codec
from corpid.stores.sql.mappers import record_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import msgspec

    from corpid.stores.sql.open import SqlStores

USERS, ENTITIES, CLIENTS, SERVICES = 1_000_000, 200_000, 10_000, 300
ASSIGNMENTS_EACH = 5
ENTITIES_EACH = 2
MANY = 5000
_DAY = 86_400


class PastSignIn(AuditEvent, frozen=True, kw_only=True):
    """A sign-in as the audit tells it; the database numbers it."""

    at: int


_OTHERS: dict[type, tuple[Any, Codec[Any]]] = {
    Session: (tables.sessions, record_codec(Session)),
    PastSignIn: (tables.audit, record_codec(PastSignIn)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many of each; every user has two entities and five assignments, one user has `many` entities, one in ten a
    session; and every user has signed in before."""

    users: int
    entities: int
    clients: int
    services: int = SERVICES

    @classmethod
    def of(cls, share: float) -> Size:
        """So much of the full size."""
        return cls(users=int(USERS * share), entities=int(ENTITIES * share), clients=int(CLIENTS * share))

    @property
    def many(self) -> int:
        return min(MANY, self.entities)

    @property
    def memberships(self) -> int:
        return self.users * ENTITIES_EACH + self.many

    @property
    def sessions(self) -> int:
        return self.users // 10

    @property
    def assignments(self) -> int:
        return self.users * ASSIGNMENTS_EACH + self.many


def user_name(number: int) -> str:
    """The name that user `number` signs in with."""
    return f"person-{number:07}"


def own_entities(number: int, size: Size) -> list[str]:
    """The entities of user `number`."""
    first = number * ENTITIES_EACH
    return [entity_id((first + each) % size.entities) for each in range(ENTITIES_EACH)]


def entity_id(number: int) -> str:
    """The identifier of entity `number`."""
    return f"E{number:07}"


async def fill(stores: SqlStores, dsn: str, size: Size, password_hash: str, jwks: str) -> None:
    """Write all of it into an empty database with the current schema, and let the planner count it."""
    known = record_types(stores.cipher)
    connection = await asyncpg.connect(dsn)
    try:
        with _progress() as progress:
            for record, count, records in _everything(size, password_hash, jwks):
                table, codec = _OTHERS.get(record) or (known[record].table, known[record].codec)
                # What refers to what is right by construction; triggers write the words of these three (D83).
                role = "origin" if record in {User, Entity, Membership} else "replica"
                await connection.execute(f"SET session_replication_role = {role}")
                rows = _rows(codec, progress.track(records, total=count, description=table.name))
                columns = codec.written
                if record is Membership:  # no trigger copies the person's user name meanwhile
                    at = columns.index("user_id")
                    columns, rows = (*columns, "person_name_key"), ((*row, _name(row[at])) for row in rows)
                await connection.copy_records_to_table(table.name, records=rows, columns=columns)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def _progress() -> Progress:
    columns = ("{task.description:>12}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _rows(codec: Codec[Any], records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    columns, encode = codec.written, codec.encode
    for record in records:
        row = encode(record)
        yield tuple([row[column] for column in columns])


def _everything(
    size: Size, password_hash: str, jwks: str
) -> Iterator[tuple[type[msgspec.Struct], int, Iterator[msgspec.Struct]]]:
    """Each kind of record, how many there are, and all of them; nothing refers to what comes later."""
    yield Client, size.clients, _clients(size, jwks)
    yield Entity, size.entities, map(_entity, range(size.entities))
    yield User, size.users + 1, (User(user_id=user_id(name), user_name=name, name=name) for name in _names(size))
    yield Service, size.services + 1, _services(size)
    yield Credentials, size.users + 1, (_credentials(name, password_hash) for name in _names(size))
    yield Membership, size.memberships, _memberships(size)
    yield Assignment, size.assignments, _assignments(size)
    yield Session, size.sessions, map(_session, range(size.sessions))
    yield PastSignIn, size.users, map(_past_sign_in, range(size.users))


def _names(size: Size) -> Iterator[str]:
    yield people.many_entities(size.many)
    yield from map(user_name, range(size.users))


def user_id(name: str) -> str:
    """The identifier of the user who signs in with this name."""
    return f"id-{name}"


def _name(user_id: str) -> str:
    return user_id.removeprefix("id-")


def _clients(size: Size, jwks: str) -> Iterator[Client]:
    for number in range(size.clients):
        uri = f"https://rp-{number}.example/callback"
        yield Client(
            client_id=client_id(number),
            name=f"Relying party {number}",
            redirect_uris=(uri,),
            jwks=jwks,
            scopes=("openid", "authinfo"),
            services=(people.SERVICE, service(number)),
        )


def _entity(number: int) -> Entity:
    found = entity_id(number)
    return Entity(
        entity_id=found,
        type="UEN",
        registration_number=f"{number:08}K",
        country="SG",
        name=f"Company {number} Pte. Ltd.",
        status="Registered",
    )


def client_id(number: int) -> str:
    """The identifier of relying party `number`."""
    return f"rp-{number:05}"


def service(number: int) -> str:
    """The identifier of a service at which one in a hundred has a role."""
    return f"S{number % SERVICES:03}"


def _services(size: Size) -> Iterator[Service]:
    roles = ("Maker", "Checker")
    yield Service(service_id=people.SERVICE, name="Benchmark", roles=roles)
    for number in range(size.services):
        yield Service(service_id=service(number), name=f"Service {number}", roles=roles)


def _credentials(name: str, password_hash: str) -> Credentials:
    return Credentials(user_id=user_id(name), password_hash=password_hash, totp_secret=people.totp_secret(name))


def _session(number: int) -> Session:
    """Of a browser that is signed in."""
    now = int(time.time())
    return Session(
        session_id=f"session-{number:07}",
        user_id=user_id(user_name(number)),
        browser_id=f"browser-{number:07}",
        auth_time=now,
        amr=("pwd", "otp-totp"),
        level=2,
        expires_at=now + _DAY,
    )


def _past_sign_in(number: int) -> PastSignIn:
    """Yesterday's."""
    return PastSignIn(
        actor=f"user:{user_id(user_name(number))}",
        action="sign_in.complete",
        client_id=client_id(0),
        entity_id=entity_id(number),
        at=int(time.time()) - _DAY,
    )


def _memberships(size: Size) -> Iterator[Membership]:
    many = user_id(people.many_entities(size.many))
    yield from (_membership(many, entity_id(number)) for number in range(size.many))
    for number in range(size.users):
        user = user_id(user_name(number))
        yield from (_membership(user, entity) for entity in own_entities(number, size))


def _membership(user: str, entity: str) -> Membership:
    return Membership(user_id=user, entity_id=entity, membership_id=new_user_id())


def _assignments(size: Size) -> Iterator[Assignment]:
    """Of each user: two roles for one service at the first entity, three for others at the second."""
    many = user_id(people.many_entities(size.many))
    for number in range(size.many):
        yield Assignment(user_id=many, entity_id=entity_id(number), service_id=people.SERVICE, role="Maker")
    for number in range(size.users):
        user = user_id(user_name(number))
        first, second = own_entities(number, size)
        for role in ("Maker", "Checker"):
            yield Assignment(user_id=user, entity_id=first, service_id=people.SERVICE, role=role)
        for other in range(ASSIGNMENTS_EACH - 2):
            yield Assignment(user_id=user, entity_id=second, service_id=service(number + other), role="Maker")
