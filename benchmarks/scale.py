"""A whole sign-in on a large database beside the same on a small one: both on one PostgreSQL, in turn."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import argon2
import asyncpg

from benchmarks import admin_api, directory_lists, engines, fill, many_entities, provisioning, sizes, statements, steps
from benchmarks.directory_lists import Places
from benchmarks.driver_hook import Walk, people, sign_in
from benchmarks.fill import Size
from benchmarks.http_client import Jar
from benchmarks.relying_party import Flow, Keys, generate_key, registration
from benchmarks.scale_report import LARGE, LEAST, SMALL
from benchmarks.stage import Cpus, Stage, opened
from corpid.flows.operations.audit_seals import Sealer
from corpid.rules.directory.access import CommandLine
from corpid.stores.encryption_at_rest import SecretCipher, key_from_file
from corpid.stores.sql.open import open_postgresql

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from tests.engines import PostgresServer

BLOCK = 10
"""sign-ins on one database before the other has its turn"""


@dataclass(slots=True, kw_only=True)
class Side:
    """One of the two databases with its provider, and what each of its blocks cost."""

    name: str
    size: Size
    database: str
    settings: Mapping[str, str]
    filled_seconds: float
    mebibytes: float
    stage: Stage
    blocks: list[dict[str, float]] = field(default_factory=list)
    """milliseconds of each sign-in: CPU of the loop, CPU with the password's hash, by the clock"""
    next_person: int = 0

    async def block(self, count: int, *, measured: bool = True) -> None:
        """So many sign-ins, one after the other, each of somebody else. Raises steps.Wrong."""
        flows = await self.stage.workshop.flows(count)
        before = self.stage.provider.clocks()
        for flow in flows:
            await self.sign_in(flow)
        spent = self.stage.provider.clocks() - before
        self.stage.check(flows, 2)
        if measured:
            self.blocks.append(spent.milliseconds(count))

    async def sign_in(self, flow: Flow) -> None:
        """A whole sign-in, of the next person. Raises steps.Wrong."""
        # People far from each other, so that nobody finds the pages of the one before.
        number = self.next_person * 7919 % self.size.users
        self.next_person += 1
        client = self.stage.load.client
        await self.stage.push(flow)
        walk = Walk(client.fetch, Jar(), steps.authorization_url(self.stage.maker, flow))
        await sign_in(walk, fill.user_name(number))
        await walk.submit(entity=fill.own_entities(number, self.size)[0])
        await self.stage.leave(walk, flow)
        await self.stage.finish(flow)

    def figures(self) -> dict[str, Any]:
        """Its size, and the medians of its blocks."""
        medians = {name: round(statistics.median(one[name] for one in self.blocks), 4) for name in self.blocks[0]}
        of = self.size
        return {
            "users": of.users,
            "entities": of.entities,
            "memberships": of.memberships,
            "assignments": of.assignments,
            "clients": of.clients,
            "many": of.many,
            "filled_seconds": round(self.filled_seconds, 1),
            "mebibytes": round(self.mebibytes, 1),
            **medians,
        }


async def measure(
    server: PostgresServer, share: float, sign_ins: int, cpus: Cpus, say: Callable[[str], None]
) -> dict[str, Any]:
    """Fill both, sign in on both in turn; a document. Raises provider.NotStarted, load.Hopeless, steps.Wrong."""
    counting = await asyncpg.connect(server.dsn())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(counting.close)
        made = [await _filled(server, stack, name, of, say) for name, of in ((SMALL, LEAST), (LARGE, share))]
        sides = [await stack.enter_async_context(_side(one, cpus)) for one in made]
        for side in sides:
            await _seal(server, side)
        say(f"{sign_ins} sign-ins on each, in turn")
        for side in sides:
            await side.block(BLOCK, measured=False)
        counts = {side.name: statements.Count(counting, side.database) for side in sides}
        for count in counts.values():
            await count.begin()
        for number in range(-(-sign_ins // BLOCK)):
            for side in sides if number % 2 else reversed(sides):
                await counts[side.name].note(0)
                await side.block(min(BLOCK, sign_ins))
                await counts[side.name].note(min(BLOCK, sign_ins))
        for count in counts.values():
            await count.note(0)
        flows = len(sides[0].blocks) * min(BLOCK, sign_ins)
        asked = {name: count.document() for name, count in counts.items()}
        small, large = sides
        return {
            "sign_ins": flows,
            "databases": {side.name: {**side.figures(), **asked[side.name]} for side in sides},
            "ratio": _ratio(small, large),
            "read_whole": statements.read_whole(server, large.database, asked[LARGE]["statements"]),
            "many": {side.name: await _many(side, max(2, sign_ins // 10)) for side in sides},
            "directory": await _directory(server, sides, counting, max(BLOCK, flows)),
            "provisioning": {side.name: await _provisioning(server, side, max(BLOCK, flows // 2)) for side in sides},
            "sizes": await _sizes(server, large, max(BLOCK, flows // 2)),
            "valid": not any(side.stage.load.problems for side in sides),
            "problems": dict(small.stage.load.problems + large.stage.load.problems),
        }


async def measure_sizes(
    server: PostgresServer, share: float, sign_ins: int, cpus: Cpus, say: Callable[[str], None]
) -> dict[str, Any]:
    """Bytes of rows and sign-ins alone, on the large database. Raises provider.NotStarted, load.Hopeless, steps.Wrong."""
    async with AsyncExitStack() as stack:
        made = await _filled(server, stack, LARGE, share, say)
        side = await stack.enter_async_context(_side(made, cpus))
        await _seal(server, side)
        await side.block(BLOCK)
        return {
            "sizes": await _sizes(server, side, sign_ins),
            "valid": not side.stage.load.problems,
            "problems": dict(side.stage.load.problems),
        }


async def _sizes(server: PostgresServer, side: Side, sign_ins: int) -> dict[str, Any]:
    """What a row and a sign-in take in both engines."""
    connection = await asyncpg.connect(server.dsn(side.database))
    try:
        block = partial(side.block, 1, measured=False)
        return await sizes.measure(connection, side.settings["CORPID_TRANSIENT_URL"], block, sign_ins)
    finally:
        await connection.close()


async def _filled(
    server: PostgresServer, stack: AsyncExitStack, name: str, share: float, say: Callable[[str], None]
) -> dict[str, Any]:
    size = Size.of(share)
    say(f"filling the {name} database: {size.users:,} users, {size.assignments:,} assignments")
    database = await asyncio.to_thread(stack.enter_context, server.migrated())
    settings = stack.enter_context(engines.settings(server, database)) | provisioning.UNLIMITED
    begun = time.monotonic()
    stores = await open_postgresql(server.dsn(database), _cipher(settings), time.time)
    try:
        await fill.fill(stores, server.dsn(database), size, argon2.PasswordHasher().hash(people.PASSWORD), _jwks())
    finally:
        await stores.close()
    return {
        "name": name,
        "size": size,
        "database": database,
        "settings": settings,
        "filled_seconds": time.monotonic() - begun,
        "mebibytes": int(server.sql("SELECT pg_database_size(current_database())", database)) / 2**20,
    }


async def _seal(server: PostgresServer, side: Side) -> None:
    """Seal what was filled in, which a server would otherwise do beside the first sign-ins."""
    stores = await open_postgresql(server.dsn(side.database), _cipher(side.settings), time.time)
    try:
        sealer = Sealer(stores.registry, lambda _: None)
        await sealer.seal_all(CommandLine(by="benchmark"), now=time.time())
    finally:
        await stores.close()


def _cipher(settings: Mapping[str, str]) -> SecretCipher:
    return SecretCipher(key_from_file(Path(settings["CORPID_KEY_ENCRYPTION_KEY_FILE"])))


def _jwks() -> str:
    keys = Keys(signing=generate_key(), encryption=generate_key())
    return json.dumps(registration(keys, "https://op.example")["jwks"])


@asynccontextmanager
async def _side(made: dict[str, Any], cpus: Cpus) -> AsyncIterator[Side]:
    async with opened(cpus, connections=1, settings=made["settings"]) as stage:
        yield Side(**made, stage=stage)


def _ratio(small: Side, large: Side) -> float:
    """CPU on the large one by CPU on the small one, the median of blocks that stood side by side."""
    pairs = zip(small.blocks, large.blocks, strict=True)
    return round(statistics.median(there["loop_ms"] / here["loop_ms"] for here, there in pairs), 3)


async def _directory(
    server: PostgresServer, sides: Sequence[Side], counting: asyncpg.Connection, rounds: int
) -> dict[str, Any]:
    """What lists and changes of the directory cost, as commands and as a portal make them."""
    places = {side.name: Places(size=side.size) for side in sides}
    databases = {side.name: (server.dsn(side.database), _cipher(side.settings), places[side.name]) for side in sides}
    imported = {name: await directory_lists.crowded(*given) for name, given in databases.items()}
    portals = {}
    for side in sides:
        key = await admin_api.register(*databases[side.name][:2])
        portals[side.name] = admin_api.Portal(side.stage, key, counting, side.database), places[side.name]
        await _seal(server, side)
    commands = await directory_lists.figures(databases, rounds)
    calls = await admin_api.figures(portals, rounds)
    return {
        "rounds": rounds,
        "crowd": {name: one.crowd for name, one in places.items()},
        "import_ms": imported,
        "commands": commands,
        "api": calls,
        "read_whole": statements.read_whole(server, sides[-1].database, portals[LARGE][0].asked),
    }


async def _provisioning(server: PostgresServer, side: Side, sign_ins: int) -> dict[str, Any]:
    """What a sign-in costs beside a client of SCIM."""
    dsn, cipher = server.dsn(side.database), _cipher(side.settings)
    return await provisioning.figures(dsn, cipher, side.stage, side.sign_in, size=side.size, sign_ins=sign_ins)


async def _many(side: Side, arrivals: int) -> dict[str, Any]:
    """Somebody with a session and thousands of entities: what the steps of an arrival cost."""
    chosen = fill.entity_id(side.size.many // 2)
    _, _, figures = await many_entities.person(side.stage, people.many_entities(side.size.many), chosen, arrivals)
    return {"entities": side.size.many, "steps": figures}
