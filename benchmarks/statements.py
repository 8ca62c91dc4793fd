"""What a database was asked, as PostgreSQL itself counts it (pg_stat_statements)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import plans

if TYPE_CHECKING:
    import asyncpg

    from tests.engines import PostgresServer

GROWING = frozenset({"users", "credentials", "entities", "memberships", "assignments", "clients", "sessions", "audit"})
"""tables whose rows are as many as people, entities, clients or sign-ins are"""
_COUNTED = """
SELECT query, sum(calls)::bigint AS calls, sum(total_exec_time) AS milliseconds
FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)
GROUP BY query ORDER BY 2 DESC, 1
"""
_FORGET = "SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = $1"
_PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


async def forget(connection: asyncpg.Connection, database: str) -> None:
    """Count from nothing again."""
    await connection.execute(_FORGET, database)


async def counted(connection: asyncpg.Connection, database: str, flows: int) -> dict[str, Any]:
    """What so many flows asked of a database. A statement that ran less than once in each is no part of a flow: it
    filled a cache of five seconds, or ran beside the flows."""
    rows = await connection.fetch(_COUNTED, database)
    found = [
        {"query": row["query"], "each": row["calls"] // flows, "calls": row["calls"], "ms": row["milliseconds"]}
        for row in rows
    ]
    return {
        "statements": found,
        "each": sum(one["each"] for one in found),
        "ms_each": round(sum(one["ms"] for one in found) / flows, 4),
    }


def read_whole(server: PostgresServer, database: str, statements: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The growing tables that one of these statements reads from beginning to end, by statement."""
    found = {}
    for statement in statements:
        query = statement["query"]
        if query.startswith(_PLANNED):
            steps = server.sql(plans.explaining(query), database)
            found[query] = sorted(plans.read_whole(steps) & GROWING)
    return {query: tables for query, tables in found.items() if tables}
