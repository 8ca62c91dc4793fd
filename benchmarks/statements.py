"""What a database was asked, as PostgreSQL itself counts it (pg_stat_statements)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import plans

if TYPE_CHECKING:
    import asyncpg

    from tests.engines import PostgresServer

GROWING = frozenset(
    {"users", "credentials", "entities", "memberships", "assignments", "clients", "sessions", "audit", "audit_details"}
)
"""tables whose rows are as many as people, entities, clients or sign-ins are"""
_COUNTED = """
SELECT queryid, min(query) AS query, sum(calls)::bigint AS calls, sum(total_exec_time) AS milliseconds
FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)
GROUP BY queryid
"""
_ERROR = 2.0
"""calls by which the estimate of what is asked by the clock may be too high"""
_FORGET = "SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = $1"
_PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(slots=True)
class Asked:
    """How often a statement was executed, and for how long; in flows, and while nobody asked for anything."""

    query: str = ""
    """its text, in which constants may stand as parameters"""
    calls: int = 0
    milliseconds: float = 0.0
    idle_calls: int = 0


@dataclass(slots=True)
class Count:
    """What a database is asked from now on. Whatever a provider does by the clock is told apart from what flows ask."""

    connection: asyncpg.Connection
    database: str
    asked: dict[int, Asked] = field(default_factory=dict)
    """by PostgreSQL's identifier, not by text: after a reset the text has parameters for constants if a connection
    prepares the statement, and the constants themselves if it was prepared before"""
    flows: int = 0
    seconds: float = 0.0
    idle_seconds: float = 0.0
    _since: float = field(default_factory=time.monotonic)

    async def begin(self) -> None:
        """Count from nothing."""
        await self.connection.execute(_FORGET, self.database)
        self._since = time.monotonic()

    async def note(self, flows: int) -> None:
        """Add what was asked since the last note: by so many flows, or by nobody."""
        rows = await self.connection.fetch(_COUNTED, self.database)
        seconds = time.monotonic() - self._since
        await self.begin()
        self.flows += flows
        if flows:
            self.seconds += seconds
        else:
            self.idle_seconds += seconds
        for row in rows:
            one = self.asked.setdefault(row["queryid"], Asked(query=row["query"]))
            # Constants make a difference to plans: a partial index is of no use to a parameter.
            one.query = min(one.query, row["query"], key=plans.parameters)
            if flows:
                one.calls += row["calls"]
                one.milliseconds += row["milliseconds"]
            else:
                one.idle_calls += row["calls"]

    def document(self) -> dict[str, Any]:
        """What each flow asked. A statement that ran less than once in each is no part of a flow: it filled a cache of
        five seconds, or ran beside the flows."""
        found: list[dict[str, Any]] = [
            {"query": one.query, "each": self.each(one), "calls": one.calls, "ms": one.milliseconds}
            for one in sorted(self.asked.values(), key=lambda one: (-one.calls, one.query))
        ]
        return {
            "statements": found,
            "each": sum(one["each"] for one in found),
            "ms_each": round(sum(one["ms"] for one in found) / self.flows, 4),
        }

    def each(self, one: Asked) -> int:
        """How often a flow asks this, without what is asked every second, however long the flows took."""
        least = max(one.idle_calls - 1, 0) / self.idle_seconds if self.idle_seconds else 0.0
        by_the_clock = max(self.seconds * least - _ERROR, 0.0)
        return int(max(one.calls - by_the_clock, 0.0) // self.flows)


def read_whole(server: PostgresServer, database: str, statements: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The growing tables that one of these statements reads from beginning to end, by statement."""
    found = {}
    for statement in statements:
        query = statement["query"]
        if query.startswith(_PLANNED):
            steps = server.sql(plans.explaining(query), database)
            found[query] = sorted(plans.read_whole(steps) & GROWING)
    return {query: tables for query, tables in found.items() if tables}
