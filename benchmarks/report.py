"""What was measured, as Markdown for people and documents."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING, Any

import cryptography
from cryptography.hazmat.backends.openssl import backend

from benchmarks import engines, steps
from benchmarks.flow_benchmark import ALONE, WHOLE, Plan
from benchmarks.generations import GENERATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.stage import Cpus


TARGETS = {engines.SQLITE: 2.5, engines.POSTGRES: 3.0}
"""of the ratio of a flow's CPU to the floor of the same run"""
TARGET_WITHOUT_AUTHORIZE = 2.5
"""of the same ratio in phases, on PostgreSQL and Redis"""


def machine(cpus: Cpus, workers: int = 1) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "cpus": len(cpus.every),
        "pinned": cpus.serving(workers) != cpus.every,
        "python": platform.python_version(),
        "cryptography": cryptography.__version__,
        "openssl": backend.openssl_version_text(),
    }


def conditions(result: dict[str, Any], *, placed: str = "server on one, load on another") -> str:
    """The machine, and where what was `placed` if anything was pinned."""
    on = result["machine"]
    pinned = placed if on["pinned"] else "not pinned"
    return f"{on['cpus']} CPUs ({pinned}), Python {on['python']}, cryptography {on['cryptography']} ({on['openssl']})"


def flow_table(result: dict[str, Any], plan: Plan) -> str:
    """The flow and its endpoints, the floor, and the ratio of the two."""
    parts, alone = result["parts"], {**result["alone"], WHOLE: result["parts"][ALONE]}
    phases = sum(parts[name]["cpu_ms"] for name in result["alone"])
    straight = phases - parts[steps.AUTHORIZE]["cpu_ms"]
    serving = "one process" if plan.workers == 1 else f"{plan.workers} workers"
    caption = (
        f"{engines.title(plan.engines, plan.transient_url)}, {serving}; {plan.generations[0]}, {plan.flows:,} flows, "
        f"{plan.repetitions} times (medians), {plan.connections} at a time, "
        f"{plan.sessions} signed-in browsers; {conditions(result)}."
    )
    heads = (
        f"| {plan.connections} at a time | server CPU ms | least | most | requests/s | p50 ms | p99 ms "
        "| one at a time: p50 ms | p99 ms |"
    )
    judged = ""
    if plan.engines == engines.POSTGRES:
        judged = f", {_judged(straight / result['floor_ms'], TARGET_WITHOUT_AUTHORIZE)}"
    outcome = (
        f"CPU of a flow: **{parts[WHOLE]['cpu_ms']:.2f} ms** (its endpoints in phases add up to {phases:.2f}; one at a "
        f"time {parts[ALONE]['cpu_ms']:.2f}). Floor: {result['floor_ms']:.3f} ms. **Ratio: {result['ratio']:.2f}**, "
        f"{_judged(result['ratio'], TARGETS[plan.engines])}. Without authorize, which signs and verifies nothing, in "
        f"phases: {straight:.2f} ms, {straight / result['floor_ms']:.2f} times the floor{judged}. Peak memory: "
        f"{result['peak_memory_mib']:.0f} MiB."
    )
    rows = [_flow_row(name, parts[name], alone[name]) for name in (*result["alone"], WHOLE)]
    return "\n".join(
        [
            *(caption, "", heads, "|---|---|---|---|---|---|---|---|---|", *rows, "", outcome, ""),
            *(*_floor_table(result), "", *_generations_table(result)),
        ]
    )


def _judged(ratio: float, target: float) -> str:
    return f"target {target}: {'met' if ratio <= target else 'not met'}"


def _generations_table(result: dict[str, Any]) -> list[str]:
    """A row for each generation, with the floor of its own cryptography."""
    heads = ("generation", "PAR", "authorize", "token", "resources", "whole flow: CPU ms", "least", "most", "floor ms", "ratio",
             "one at a time: CPU ms", "p50 ms")  # fmt: skip
    return [
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
        *(_generation_row(name, one) for name, one in result["generations"].items()),
    ]


def _generation_row(name: str, one: dict[str, Any]) -> str:
    parts, generation = one["parts"], GENERATIONS[name]
    whole, alone = parts[WHOLE], parts[ALONE]
    push = f"{parts[steps.PAR]['cpu_ms']:.3f}" if generation.pushed else "none"
    resources = " + ".join(f"{parts[each.name]['cpu_ms']:.3f}" for each in generation.resources)
    return (
        f"| {name} | {push} | {parts[steps.AUTHORIZE]['cpu_ms']:.3f} | {parts[steps.TOKEN]['cpu_ms']:.3f} | {resources} "
        f"| {whole['cpu_ms']:.3f} | {whole['cpu_ms_least']:.3f} | {whole['cpu_ms_most']:.3f} | {one['floor_ms']:.3f} "
        f"| {one['ratio']:.2f} | {alone['cpu_ms']:.3f} | {alone['p50_ms']:.2f} |"
    )


def section(plan: Plan) -> str:
    """The section of the document that a flow's tables belong to."""
    if plan.transient_url:
        return f"flow on {engines.title(plan.engines, plan.transient_url)}, workers {plan.workers}"
    return "flow" if plan.engines == engines.SQLITE else f"flow on {plan.engines}, workers {plan.workers}"


def _flow_row(name: str, figures: dict[str, float], alone: dict[str, float]) -> str:
    return (
        f"| {name} | {figures['cpu_ms']:.3f} | {figures['cpu_ms_least']:.3f} | {figures['cpu_ms_most']:.3f} "
        f"| {figures['per_second']:,.0f} | {figures['p50_ms']:.2f} | {figures['p99_ms']:.2f} "
        f"| {alone['p50_ms']:.2f} | {alone['p99_ms']:.2f} |"
    )


def _floor_table(result: dict[str, Any]) -> list[str]:
    rows = [(each["what"], each["times"], each["microseconds"]) for each in result["floor"]]
    return [
        "| floor: cryptography alone | times | us each | us |",
        "|---|---|---|---|",
        *(f"| {what} | {times} | {each:.1f} | {times * each:.1f} |" for what, times, each in rows),
        f"| **a flow** | | | **{1000 * result['floor_ms']:.0f}** |",
    ]


def many_entities_table(result: dict[str, Any]) -> str:
    """A person with few entities beside one with many; then the weight of the pages."""
    few, many = result["persons"]
    heads = [f"{person['entities']:,} entities" for person in (few, many)]
    lines = [
        f"One at a time, with a session; {conditions(result)}.",
        "",
        f"| step | {heads[0]}: CPU ms | p50 ms | p99 ms | bytes | {heads[1]}: CPU ms | p50 ms | p99 ms | bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in few["steps"]:
        cells = [_cells(person["steps"][name]) for person in (few, many)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| page or file | bytes |", "|---|---|"]
    lines += [f"| {name} | {weight:,} |" for name, weight in result["page_bytes"].items()]
    return "\n".join(lines)


def _cells(figures: dict[str, float]) -> str:
    return f"{figures['cpu_ms']:.3f} | {figures['p50_ms']:.2f} | {figures['p99_ms']:.2f} | {figures['bytes']:.0f}"


def verdict(result: dict[str, Any]) -> str:
    """Whether the numbers mean anything."""
    if result["valid"]:
        return "valid: every answer was checked, and right"
    wrong = "\n".join(f"- {times} times: {problem}" for problem, times in result["problems"].items())
    return f"INVALID, the numbers mean nothing:\n{wrong}"


def put_into(document: Path, section: str, table: str) -> None:
    """Replace what stands in a section of a document: `<!-- numbers: flow -->` ... `<!-- /numbers -->`."""
    text = document.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- numbers: {section} -->\n).*?(<!-- /numbers -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{document} has no section <!-- numbers: {section} --> … <!-- /numbers -->")
    document.write_text(pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text), encoding="utf-8")
