"""`python -m benchmarks`: measure CorpID and print Markdown; exit status 1 if any answer was wrong."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks import engines, flow_benchmark, many_entities, report, scale_report, sign_ins_report, start, workers
from benchmarks.flow_benchmark import Plan
from benchmarks.generations import GENERATIONS
from benchmarks.load import Hopeless
from benchmarks.people import COUNT
from benchmarks.provider import NotStarted
from benchmarks.stage import Cpus
from benchmarks.steps import Wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
SIZES, CAPACITY = "sizes", DOCUMENT.with_name("capacity.md")
FULL = Plan()
QUICK = Plan(flows=200, repetitions=1, sessions=8, warm_up=50, alone=50, floor_seconds=0.001, sample=20)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 flows once, 8 browsers: a look, not a measurement")
    parser.add_argument("--engines", choices=engines.NAMES, help="what keeps the state (sqlite; --sign-in: both)")
    parser.add_argument(
        "--transient-url", metavar="URL", help="a running store for what lives for minutes, by the scheme of its URL"
    )
    parser.add_argument(
        "--generation",
        choices=GENERATIONS,
        action="append",
        dest="generations",
        help="only this one, may be repeated; the first is reported in detail (all)",
    )
    parser.add_argument("--workers", type=_count, help=f"processes that serve (default {FULL.workers})")
    parser.add_argument("--flows", type=_count, help=f"flows of each part (default {FULL.flows})")
    parser.add_argument("--repetitions", type=_count, help=f"default {FULL.repetitions}")
    parser.add_argument(
        "--connections",
        type=_count,
        help=f"requests in flight (default {FULL.connections}); with --and-one-worker, for each worker",
    )
    parser.add_argument("--sessions", type=_people, help=f"browsers that sign in (default {FULL.sessions})")
    parser.add_argument("--warm-up", type=_count, help=f"flows that are not measured (default {FULL.warm_up})")
    parser.add_argument("--alone", type=_count, help=f"flows one at a time (default {FULL.alone})")
    parser.add_argument(
        "--and-one-worker",
        action="store_true",
        help="measure one worker and several (--workers, at least 2) in turn, in the same places",
    )
    _add_others(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured there")
    parser.add_argument(
        "--markdown",
        type=Path,
        nargs="?",
        const=DOCUMENT,
        metavar="FILE",
        help="put the tables into this document's marked section (docs/benchmarks.md; bytes: docs/capacity.md)",
    )
    return parser


def _add_others(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--many-entities",
        type=_count,
        nargs="?",
        const=5000,
        metavar="N",
        help="instead: a person with N entities (5000), and what the pages weigh",
    )
    parser.add_argument(
        "--sign-in", action="store_true", help="instead: whole sign-ins of each kind with their pages, on both engines"
    )
    parser.add_argument(
        "--start", action="store_true", help="instead: what a start on an existing store costs, in CPU, memory, modules"
    )
    parser.add_argument(
        "--compare-with",
        type=Path,
        metavar="CHECKOUT",
        help="of --sign-in and --start: the same with another commit, which has a .venv",
    )
    parser.add_argument(
        "--scale",
        type=_share,
        nargs="?",
        const=1.0,
        metavar="SHARE",
        help="instead: whole sign-ins on a large PostgreSQL database beside a small one; 1 (the default) is a "
        "million users, 0.01 a look",
    )
    parser.add_argument("--sizes", action="store_true", help="of --scale: only what rows and sign-ins take in bytes")
    parser.add_argument(
        "--sign-ins", type=_count, help=f"of --scale, on each database (default {scale_report.SIGN_INS})"
    )


def _count(text: str) -> int:
    if not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError("from 1 to 100000")
    return int(text)


def _people(text: str) -> int:
    if not 1 <= int(text) <= COUNT:
        raise argparse.ArgumentTypeError(f"from 1 to {COUNT}")
    return int(text)


def _share(text: str) -> float:
    if not scale_report.LEAST <= float(text) <= 1:
        raise argparse.ArgumentTypeError(f"from {scale_report.LEAST} to 1")
    return float(text)


def _plan(chosen: argparse.Namespace) -> Plan:
    names = (
        "engines",
        "transient_url",
        "generations",
        "workers",
        "flows",
        "repetitions",
        "connections",
        "sessions",
        "warm_up",
        "alone",
    )
    given = {name: value for name in names if (value := getattr(chosen, name)) is not None}
    if chosen.generations:
        given["generations"] = tuple(dict.fromkeys(chosen.generations))
    return replace(QUICK if chosen.quick else FULL, **given)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _measure(chosen: argparse.Namespace, cpus: Cpus) -> tuple[dict[str, Any], dict[str, str]]:
    """What was measured, and its tables by the section of the documents that they belong to."""
    if chosen.scale is not None:
        result = {"machine": report.machine(cpus), **_scale(chosen, cpus)}
        compared = {} if chosen.sizes else {"scale": scale_report.table(result)}
        return result, {**compared, SIZES: scale_report.sizes_table(result)}
    if chosen.sign_in:
        return _sign_ins(chosen, cpus)
    if chosen.start:
        started = start.measure(
            chosen.repetitions or start.STARTS, chosen.compare_with and chosen.compare_with.resolve(), cpus, _say
        )
        return {"machine": report.machine(cpus), **started}, {"start": start.table(started)}
    if chosen.many_entities is not None:
        arrivals = chosen.flows or (20 if chosen.quick else 100)
        measured = uvloop.run(many_entities.measure(chosen.many_entities, arrivals, cpus, _say))
        result = {"machine": report.machine(cpus), **measured}
        return result, {"many entities": report.many_entities_table(result)}
    plan = _plan(chosen)
    if chosen.and_one_worker:
        plan = replace(plan, workers=max(2, plan.workers))
        result = {"machine": report.machine(cpus), **uvloop.run(workers.measure(plan, cpus, _say))}
        conditions = report.conditions(result, placed="load and engines on one")
        return result, {f"workers on {plan.engines}": workers.table(result, plan, conditions)}
    measured = uvloop.run(flow_benchmark.measure(plan, cpus, _say))
    result = {"machine": report.machine(cpus, plan.workers), **measured}
    return result, {report.section(plan): report.flow_table(result, plan)}


def _sign_ins(chosen: argparse.Namespace, cpus: Cpus) -> tuple[dict[str, Any], dict[str, str]]:
    from benchmarks import sign_ins  # noqa: PLC0415 - brings CorpID's own code, as in _scale

    names = (chosen.engines,) if chosen.engines else tuple(engines.NAMES)
    found = [
        uvloop.run(sign_ins.measure(name, chosen.compare_with and chosen.compare_with.resolve(), cpus, _say))
        for name in names
    ]
    problems = {problem: times for one in found for problem, times in one["problems"].items()}
    result = {"machine": report.machine(cpus), "valid": not problems, "problems": problems, "engines": found}
    return result, {f"sign-ins on {one['engines']}": sign_ins_report.table(result, one) for one in found}


def _scale(chosen: argparse.Namespace, cpus: Cpus) -> dict[str, Any]:
    """In a scope of its own, so that the engine stops and its files go however this ends."""
    from benchmarks import scale  # noqa: PLC0415 - brings CorpID's own code, which no other measurement may need

    with engines.postgresql() as server:
        measure = scale.measure_sizes if chosen.sizes else scale.measure
        return uvloop.run(measure(server, chosen.scale, chosen.sign_ins or scale_report.SIGN_INS, cpus, _say))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    chosen = _parser().parse_args(arguments)
    # As Ctrl-C, which cancels the work: an exception from here could come to lie in a callback that drops it.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    cpus = Cpus.of_this_machine()
    if cpus.load is not None:
        os.sched_setaffinity(0, {cpus.load})
    try:
        result, tables = _measure(chosen, cpus)
    except (NotStarted, Hopeless, Wrong) as problem:
        _say(f"INVALID: {problem}")
        return 1
    print("\n\n".join([*tables.values(), report.verdict(result)]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if chosen.markdown and result["valid"]:
        for section, table in tables.items():
            is_capacity = section == SIZES and chosen.markdown == DOCUMENT
            report.put_into(CAPACITY if is_capacity else chosen.markdown, section, table)
    return 0 if result["valid"] else 1


if __name__ == "__main__":
    sys.exit(main())
