"""Load on a running provider, and what it cost: CPU from outside, latency at the client, answers judged."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from httptools import HttpParserError

from benchmarks.http_client import Client
from benchmarks.steps import Step, Wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.provider import Provider
    from benchmarks.relying_party import Flow

PROBLEMS_ENOUGH = 20


class Hopeless(Exception):
    """So much went wrong that measuring on has no use."""


@dataclass(slots=True, kw_only=True)
class Cost:
    """What some requests, or whole flows, cost."""

    count: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    """seconds of each that went well"""
    body_bytes: int = 0
    """the longest answer"""

    def add(self, other: Cost) -> None:
        """Put another batch of the same to it."""
        self.count += other.count
        self.cpu_seconds += other.cpu_seconds
        self.wall_seconds += other.wall_seconds
        self.latencies += other.latencies
        self.body_bytes = max(self.body_bytes, other.body_bytes)

    def figures(self) -> dict[str, float]:
        """CPU ms each, requests a second, and milliseconds of latency."""
        ordered = sorted(self.latencies) or [0.0]
        return {
            "count": self.count,
            "cpu_ms": round(1000 * self.cpu_seconds / max(1, self.count), 4),
            "per_second": round(self.count / self.wall_seconds, 1) if self.wall_seconds else 0.0,
            "p50_ms": round(1000 * statistics.median(ordered), 3),
            "p99_ms": round(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 3),
            "bytes": self.body_bytes,
        }


class Load:
    """So many kept connections to a provider, and everything that went wrong on them."""

    def __init__(self, provider: Provider, issuer: str, connections: int) -> None:
        self._provider = provider
        self._clients = [Client(issuer) for _ in range(connections)]
        self.problems: Counter[str] = Counter()

    @property
    def client(self) -> Client:
        """One of the connections, for requests that are not measured."""
        return self._clients[0]

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients:
            client.close()

    async def run(
        self, flows: Sequence[Flow], steps: Sequence[Step], *, connections: int | None = None
    ) -> tuple[Cost, dict[str, Cost]]:
        """All steps of each flow in order, `connections` flows at a time (all): the flows' cost, and each step's.

        A flow's latency is the sum of its answers'; the CPU time belongs to the flows, not to single steps.
        """
        whole, parts = Cost(), {step.name: Cost() for step in steps}
        waiting = iter([flow for flow in flows if not flow.failed])
        cpu, wall = self._provider.cpu_seconds(), time.perf_counter()
        workers = self._clients[:connections]
        await asyncio.gather(*(self._work(client, waiting, steps, whole, parts) for client in workers))
        whole.wall_seconds = time.perf_counter() - wall
        whole.cpu_seconds = self._provider.cpu_seconds() - cpu
        whole.body_bytes = max(part.body_bytes for part in parts.values())
        return whole, parts

    async def _work(
        self, client: Client, waiting: Iterator[Flow], steps: Sequence[Step], whole: Cost, parts: dict[str, Cost]
    ) -> None:
        for flow in waiting:
            whole.count += 1
            try:
                spent = sum([await _take(client, flow, step, parts[step.name]) for step in steps])
            except (Wrong, OSError, TimeoutError, HttpParserError, ValueError, KeyError) as error:
                flow.failed = True
                self.note(error)
            else:
                whole.latencies.append(spent)

    def note(self, error: Exception) -> None:
        """Remember what went wrong. Raises Hopeless."""
        text = str(error) if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"
        self.problems[text] += 1
        if self.problems.total() >= PROBLEMS_ENOUGH or not self._provider.alive():
            raise Hopeless(text)


async def _take(client: Client, flow: Flow, step: Step, cost: Cost) -> float:
    request = step.request(flow)
    cost.count += 1
    begun = time.perf_counter()
    answer = await client.send(request)
    spent = time.perf_counter() - begun
    step.accept(flow, answer)
    cost.latencies.append(spent)
    cost.body_bytes = max(cost.body_bytes, len(answer.body))
    return spent
