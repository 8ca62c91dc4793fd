"""What signing in costs on a large database beside a small one, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.report import conditions

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL, LARGE = "small", "large"
LEAST = 0.001
"""of the full size; the small database"""
SIGN_INS = 200
"""on each database, unless another number is asked for"""
WITHIN = 0.10

_ROWS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("users", lambda one: f"{one['users']:,}"),
    ("entities", lambda one: f"{one['entities']:,}"),
    ("memberships", lambda one: f"{one['memberships']:,}"),
    ("assignments", lambda one: f"{one['assignments']:,}"),
    ("clients", lambda one: f"{one['clients']:,}"),
    ("size, MiB", lambda one: f"{one['mebibytes']:,.0f}"),
    ("filled in, s", lambda one: f"{one['filled_seconds']:,.0f}"),
    ("**CorpID's CPU for a sign-in, ms**", lambda one: f"**{one['loop_ms']:.2f}**"),
    ("the same with the password's hash, ms", lambda one: f"{one['cpu_ms']:.1f}"),
    ("statements on PostgreSQL for a sign-in", lambda one: f"{one['each']}"),
    ("time in PostgreSQL for a sign-in, ms", lambda one: f"{one['ms_each']:.2f}"),
    ("both together, ms", lambda one: f"{_together(one):.2f}"),
    ("a sign-in by the clock, ms", lambda one: f"{one['wall_ms']:.1f}"),
)


def _together(one: dict[str, Any]) -> float:
    """CorpID's CPU and the time in PostgreSQL; what a password costs comes on top of both, and is the same."""
    return float(one["loop_ms"]) + float(one["ms_each"])


def table(result: dict[str, Any]) -> str:
    """Both databases beside each other, the verdict, and the person with many entities."""
    small, large = (result["databases"][name] for name in (SMALL, LARGE))
    rows = [f"| {name} | {shown(small)} | {shown(large)} |" for name, shown in _ROWS]
    return "\n".join(
        [
            f"{result['sign_ins']} sign-ins on each database in turn, one at a time (medians); {conditions(result)}.",
            "",
            "| | small | large |",
            "|---|---|---|",
            *rows,
            "",
            verdict(result),
            "",
            *_many(result["many"]),
            "",
            *_directory(result["directory"]),
            "",
            *_provisioning(result["provisioning"]),
        ]
    )


def verdict(result: dict[str, Any]) -> str:
    """Whether a sign-in costs the same on both."""
    small, large = (result["databases"][name] for name in (SMALL, LARGE))
    ratio, both = result["ratio"], _together(large) / _together(small)
    held, held_both = ("within" if abs(one - 1) <= WITHIN else "NOT within" for one in (ratio, both))
    asked = "as many statements" if large["each"] == small["each"] else "ANOTHER NUMBER of statements"
    whole = result["read_whole"]
    indexed = "every statement by index" if not whole else f"WHOLE TABLES READ by {len(whole)} statements"
    return (
        f"CorpID's CPU, large by small: **{ratio:.3f}**, {held} {WITHIN:.0%}; {asked}, {indexed}. "
        f"With the time in PostgreSQL: **{both:.3f}**, {held_both} {WITHIN:.0%}."
    )


def _many(many: dict[str, Any]) -> list[str]:
    small, large = many[SMALL], many[LARGE]
    heads = " | ".join(f"{one['entities']:,} entities: CPU ms | p50 ms" for one in (small, large))
    lines = [f"| with a session | {heads} |", "|---|---|---|---|---|"]
    for name in small["steps"]:
        cells = (f"{one['steps'][name]['cpu_ms']:.2f} | {one['steps'][name]['p50_ms']:.2f}" for one in (small, large))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _directory(directory: dict[str, Any]) -> list[str]:
    small, large = directory[SMALL], directory[LARGE]
    heads = " | ".join(f"{one['crowd']:,} people in the largest entity: p50 ms" for one in (small, large))
    steps = {"a person imported": (small["import_ms"], large["import_ms"])}
    steps |= {name: (small["steps"][name], large["steps"][name]) for name in small["steps"]}
    rows = [f"| {name} | {here:.2f} | {there:.2f} |" for name, (here, there) in steps.items()]
    return [f"| lists, searches, changes | {heads} |", "|---|---|---|", *rows]


_BESIDE: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("people added through SCIM meanwhile", lambda one: f"{one['post_beside']['count']:,}"),
    ("sign-ins meanwhile", lambda one: f"{one['sign_in_beside']['count']:,}"),
    ("a person added, alone: CPU of the loop", lambda one: f"{one['post']['cpu_ms']:.2f}"),
    ("the same: p50", lambda one: f"{one['post']['p50_ms']:.2f}"),
    ("a person added, beside sign-ins: p50", lambda one: f"{one['post_beside']['p50_ms']:.2f}"),
    ("a sign-in, alone: CPU of the loop", lambda one: f"{one['sign_in']['cpu_ms']:.2f}"),
    ("the same: p50", lambda one: f"{one['sign_in']['p50_ms']:.1f}"),
    ("the same: p99", lambda one: f"{one['sign_in']['p99_ms']:.1f}"),
    ("**a sign-in beside SCIM: p50**", lambda one: f"**{one['sign_in_beside']['p50_ms']:.1f}**"),
    ("the same: p99", lambda one: f"{one['sign_in_beside']['p99_ms']:.1f}"),
    ("its p50 by that of a sign-in alone", lambda one: f"{one['slower']:.2f}"),
    ("CPU of the loop for both, by what they cost alone", lambda one: f"{one['cpu_ratio']:.2f}"),
)


def _provisioning(beside: dict[str, Any]) -> list[str]:
    small, large = beside[SMALL], beside[LARGE]
    rows = [f"| {name} | {shown(small)} | {shown(large)} |" for name, shown in _BESIDE]
    return [
        "| sign-ins beside a client of SCIM, each one after the other: ms | small | large |",
        "|---|---|---|",
        *rows,
    ]
