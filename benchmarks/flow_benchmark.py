"""The whole flow and each of its endpoints, beside the cryptographic floor of the same run."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from benchmarks import engines, floor, steps, verification
from benchmarks.generations import CURRENT, GENERATIONS, Generation
from benchmarks.load import Cost
from benchmarks.relying_party import Flow, open_key
from benchmarks.stage import Cpus, Stage, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


WHOLE, ALONE = "whole flow", "whole flow, one at a time"
BATCH = 400
"""flows that go through a phase together, well within their 60 seconds"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a run."""

    flows: int = 1000
    repetitions: int = 3
    connections: int = 16
    sessions: int = 64
    warm_up: int = 300
    alone: int = 200
    floor_seconds: float = 0.05
    """CPU time of each round of each operation of the floor"""
    sample: int = 40
    """flows of each part whose tokens are verified"""
    engines: str = engines.SQLITE
    """one of engines.NAMES"""
    transient_url: str = ""
    """of any engine that CorpID knows, instead of what goes with `engines`"""
    workers: int = 1
    generations: tuple[str, ...] = tuple(GENERATIONS)
    """names; the first is reported in detail"""


async def measure(plan: Plan, cpus: Cpus, say: Callable[[str], None]) -> dict[str, Any]:
    """Everything, as a document; `valid` says whether every answer was right. Raises provider.NotStarted, load.Hopeless.

    The document is that of the first generation, and has those of all under `generations`.
    """
    measured = {}
    for name in plan.generations:
        say(f"starting the provider of {name} on {engines.title(plan.engines, plan.transient_url)}")
        with engines.started(plan.engines, plan.transient_url) as settings:
            measured[name] = await _measured(plan, GENERATIONS[name], cpus, say, settings)
    problems: Counter[str] = Counter()
    for name, one in measured.items():
        problems.update(
            {problem if name == CURRENT.name else f"{name}: {problem}": n for problem, n in one["problems"].items()}
        )
    return {
        **measured[plan.generations[0]],
        "valid": all(one["valid"] for one in measured.values()),
        "problems": dict(problems),
        "generations": measured,
    }


async def _measured(
    plan: Plan, generation: Generation, cpus: Cpus, say: Callable[[str], None], settings: Mapping[str, str]
) -> dict[str, Any]:
    async with opened(
        cpus, connections=plan.connections, settings=settings, workers=plan.workers, generation=generation
    ) as stage:
        say(f"signing in {plan.sessions} browsers")
        cookies = cycle(await stage.sign_in(plan.sessions))
        run = Run(stage, plan, cookies)
        await run.whole(plan.warm_up, plan.connections)
        repetitions = []
        for number in range(1, plan.repetitions + 1):
            say(f"repetition {number} of {plan.repetitions}")
            items = floor.measure(generation, plan.floor_seconds)
            repetitions.append(_with_floor(items, await run.repetition()))
        return {
            "valid": not stage.load.problems,
            "problems": dict(stage.load.problems),
            "verified_flows": run.verified,
            "peak_memory_mib": round(stage.provider.peak_memory_mib(), 1),
            "repetitions": repetitions,
            **_medians(repetitions),
        }


class Run:
    """The parts of a repetition."""

    def __init__(self, stage: Stage, plan: Plan, cookies: Iterator[str]) -> None:
        self._stage, self._plan, self._cookies = stage, plan, cookies
        self._generation = stage.maker.endpoints.generation
        self.parts = (*(step.name for step in steps.of_a_flow(stage.maker)), WHOLE)
        """names of what is measured many at a time"""
        self.verified = 0

    async def repetition(self) -> dict[str, Any]:
        """Phases, then whole flows, and whole flows one at a time."""
        parts = await self._phases()
        whole, _ = await self.whole(self._plan.flows, self._plan.connections)
        alone, alone_parts = await self.whole(self._plan.alone, 1)
        return {
            "parts": {name: cost.figures() for name, cost in {**parts, WHOLE: whole, ALONE: alone}.items()},
            "alone": {name: _latency_only(cost) for name, cost in alone_parts.items()},
        }

    async def whole(self, count: int, connections: int) -> tuple[Cost, dict[str, Cost]]:
        """Flows from beginning to end, so many at a time."""
        total, parts = Cost(), {step.name: Cost() for step in steps.of_a_flow(self._stage.maker)}
        for size in _batches(count):
            flows = await self._made(size)
            for flow in flows:
                flow.signer = open_key(flow.proof_key)
            cost, step_costs = await self._stage.load.run(
                flows, steps.of_a_flow(self._stage.maker), connections=connections
            )
            total.add(cost)
            for name, step_cost in step_costs.items():
                parts[name].add(step_cost)
            self._check(flows, count)
        return total, parts

    async def _phases(self) -> dict[str, Cost]:
        """Every flow's PAR, then every flow's authorize, and so on."""
        every = steps.of_a_flow(self._stage.maker)
        first_resource = self._generation.resources[0].name
        parts = {step.name: Cost() for step in every}
        for size in _batches(self._plan.flows):
            flows = await self._made(size)
            for step in every:
                if step.name == first_resource:
                    await self._stage.workshop.prepare_resources([flow for flow in flows if not flow.failed])
                cost, _ = await self._stage.load.run(flows, (step,))
                parts[step.name].add(cost)
            self._check(flows, self._plan.flows)
        return parts

    async def _made(self, count: int) -> list[Flow]:
        flows = await self._stage.workshop.flows(count)
        for flow in flows:
            flow.cookie = next(self._cookies)
        return flows

    def _check(self, flows: list[Flow], of: int) -> None:
        self.verified += self._stage.check(flows, -(-self._plan.sample * len(flows) // of))
        try:
            verification.all_differ([flow for flow in flows if not flow.failed], self._generation)
        except steps.Wrong as wrong:
            self._stage.load.note(wrong)


def _batches(count: int) -> list[int]:
    return [min(BATCH, count - start) for start in range(0, count, BATCH)]


def _with_floor(items: list[floor.Item], repetition: dict[str, Any]) -> dict[str, Any]:
    least = floor.milliseconds(items)
    return {
        "floor": [item._asdict() for item in items],
        "floor_ms": round(least, 4),
        **repetition,
        "ratio": round(repetition["parts"][WHOLE]["cpu_ms"] / least, 3),
    }


def _latency_only(cost: Cost) -> dict[str, float]:
    figures = cost.figures()
    return {name: figures[name] for name in ("count", "p50_ms", "p99_ms")}


def _medians(repetitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure over the repetitions."""

    def of(group: str) -> dict[str, Any]:
        return {
            name: {
                figure: statistics.median(each[group][name][figure] for each in repetitions)
                for figure in repetitions[0][group][name]
            }
            for name in repetitions[0][group]
        }

    median = of("parts")
    for name, figures in median.items():
        seen = [each["parts"][name]["cpu_ms"] for each in repetitions]
        figures |= {"cpu_ms_least": min(seen), "cpu_ms_most": max(seen)}
    return {
        "parts": median,
        "alone": of("alone"),
        "floor": [
            {**first, "microseconds": statistics.median(each["floor"][at]["microseconds"] for each in repetitions)}
            for at, first in enumerate(repetitions[0]["floor"])
        ],
        "floor_ms": statistics.median(each["floor_ms"] for each in repetitions),
        "ratio": statistics.median(each["ratio"] for each in repetitions),
    }
