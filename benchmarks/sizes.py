"""Bytes in PostgreSQL and Redis: of each row on a large database, and of each sign-in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import redis.asyncio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncpg

_TABLES = "SELECT relname AS name, pg_total_relation_size(relid) AS bytes FROM pg_stat_user_tables WHERE schemaname = 'public'"
LEAST_ROWS = 1000
"""of a table whose bytes a row are told: with fewer, half-empty pages would count"""


@dataclass(slots=True)
class Entries:
    """Short-lived entries of one kind that a sign-in leaves behind."""

    count: int = 0
    bytes: int = 0
    byte_seconds: float = 0.0
    """bytes times the seconds until they expire: what one sign-in a second keeps in use"""
    seconds: float = field(default=0.0)
    """the longest life"""


async def measure(
    connection: asyncpg.Connection, transient_url: str, sign_in: Callable[[], Awaitable[None]], count: int
) -> dict[str, Any]:
    """Bytes of each row, rows and entries of each of `count` sign-ins, as a document.

    `connection` is to the database that is measured; nobody else signs in meanwhile.
    """
    async with redis.asyncio.Redis.from_url(transient_url.replace("valkey://", "redis://")) as engine:
        rows, keys = await _rows(connection), {key async for key in engine.scan_iter(count=1000)}
        for _ in range(count):
            await sign_in()
        grown = Counter(await _rows(connection))
        grown.subtract(rows)
        entries: dict[str, Entries] = {}
        async for key in engine.scan_iter(count=1000):
            if key not in keys:
                await _add(engine, key, entries)
    sizes = {one["name"]: one["bytes"] for one in await connection.fetch(_TABLES)}
    rows = await _rows(connection)
    return {
        "users": rows["users"],
        "sign_ins": count,
        "bytes_a_row": {name: round(sizes[name] / rows[name]) for name in sorted(rows) if rows[name] >= LEAST_ROWS},
        "rows_a_sign_in": {name: round(more / count, 2) for name, more in sorted(grown.items()) if more > 0},
        "entries_a_sign_in": {
            kind: {
                "count": round(one.count / count, 2),
                "bytes": round(one.bytes / count),
                "seconds": round(one.seconds),
                "bytes_at_one_a_second": round(one.byte_seconds / count),
            }
            for kind, one in sorted(entries.items())
        },
    }


async def _rows(connection: asyncpg.Connection) -> dict[str, int]:
    names = [one["name"] for one in await connection.fetch(_TABLES)]
    return {name: await connection.fetchval(f'SELECT count(*) FROM "{name}"') for name in names}


async def _add(engine: redis.asyncio.Redis, key: bytes, entries: dict[str, Entries]) -> None:
    """Count an entry, if it is still there and expires."""
    parts = key.split(b":")  # corpid:{part}:epoch:kind:key; the store's own keys have no kind
    if len(parts) < 5:
        return
    size, milliseconds = await engine.memory_usage(key), await engine.pttl(key)
    if size is None or milliseconds < 0:
        return
    one = entries.setdefault(parts[3].decode(), Entries())
    one.count += 1
    one.bytes += size
    one.byte_seconds += size * milliseconds / 1000
    one.seconds = max(one.seconds, milliseconds / 1000)
