"""Flow costs of one worker and of several, in turn.

A flow's CPU depends on how many requests a worker handles at once, and on what else runs on its processors. So each
worker has as many requests in flight, whether it is alone or not, and one worker and several are both measured in two
places: on any processor, and on the server's processor.
"""

from __future__ import annotations

import statistics
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

from benchmarks import engines
from benchmarks.flow_benchmark import WHOLE, Plan, Run
from benchmarks.generations import GENERATIONS
from benchmarks.stage import Cpus, opened

if TYPE_CHECKING:
    from collections.abc import Callable


PLACES = ("any processor", "the server's processor")


async def measure(plan: Plan, cpus: Cpus, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure every side in turn; returns a document.

    Raises provider.NotStarted, load.Hopeless.
    """
    problems: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        runs = {}
        for place in PLACES[: 1 if cpus.server is None else None]:
            for workers in (1, plan.workers):
                loaded = replace(plan, connections=plan.connections * workers)
                say(f"starting {_title(workers)} on {place}, and signing in {plan.sessions} browsers")
                settings = stack.enter_context(engines.started(plan.engines, plan.transient_url))
                stage = await stack.enter_async_context(
                    opened(
                        cpus,
                        connections=loaded.connections,
                        settings=settings,
                        workers=workers,
                        generation=GENERATIONS[plan.generations[0]],
                        place=cpus.every if place == PLACES[0] else cpus.serving(1),
                    )
                )
                run = Run(stage, loaded, cycle(await stage.sign_in(plan.sessions)))
                await run.whole(plan.warm_up, loaded.connections)
                runs[place, workers] = stage, run
        measured: dict[tuple[str, int], list[dict[str, float]]] = {side: [] for side in runs}
        for number in range(1, plan.repetitions + 1):
            say(f"repetition {number} of {plan.repetitions}")
            for side, (_, run) in runs.items():
                parts = (await run.repetition())["parts"]
                measured[side].append({name: parts[name]["cpu_ms"] for name in run.parts})
        for stage, _ in runs.values():
            problems.update(stage.load.problems)
    return {
        "valid": not problems,
        "problems": dict(problems),
        "sides": [
            {"place": place, "workers": workers, "cpu_ms": _medians(found)}
            for (place, workers), found in measured.items()
        ],
    }


def _title(workers: int) -> str:
    return "one worker" if workers == 1 else f"{workers} workers"


def _medians(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def table(result: dict[str, Any], plan: Plan, conditions: str) -> str:
    """The results as a Markdown table."""
    sides = result["sides"]
    names = list(sides[0]["cpu_ms"])
    steps = [name for name in names if name != WHOLE]
    alone = {side["place"]: side["cpu_ms"] for side in sides if side["workers"] == 1}
    rows = []
    for side in sides:
        spent, one = side["cpu_ms"], alone[side["place"]]
        phases = sum(spent[name] for name in steps)
        compared = f"{phases / sum(one[name] for name in steps):.2f} | {spent[WHOLE] / one[WHOLE]:.2f}"
        cells = " | ".join(f"{spent[name]:.3f}" for name in steps)
        rows.append(
            f"| {_title(side['workers'])}, {side['place']} | {cells} | {phases:.3f} | {spent[WHOLE]:.3f} | {compared} |"
        )
    heads = ("CPU ms", *steps, "in phases", WHOLE, "phases, by one worker's", "whole, by one worker's")
    caption = (
        f"{engines.title(plan.engines, plan.transient_url)}; {plan.generations[0]}, {plan.flows:,} flows, "
        f"{plan.repetitions} times in turn (medians), {plan.connections} at a time for each worker, "
        f"{plan.sessions} signed-in browsers; {conditions}."
    )
    return "\n".join([caption, "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])
