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
SHORT_LIVED = 2 * 86_400
"""seconds; what lives longer is there for each browser, not for each sign-in"""

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
    crowd, imported = directory["crowd"], directory["import_ms"]
    heads = " | ".join(f"{crowd[name]:,} people in the largest entity: p50 ms" for name in (SMALL, LARGE))
    rows = [
        f"| {name} | {one['items']} | {one[SMALL]['p50_ms']:.2f} | {one[LARGE]['p50_ms']:.2f} | {one['ratio']:.2f} |"
        for name, one in directory["commands"].items()
    ]
    return [
        f"| lists, searches, changes without HTTP | items | {heads} | large by small |",
        "|---|---|---|---|---|",
        f"| a person imported | | {imported[SMALL]:.2f} | {imported[LARGE]:.2f} | |",
        *rows,
        "",
        *_api(directory),
    ]


def _api(directory: dict[str, Any]) -> list[str]:
    calls = directory["api"]
    heads = " | ".join(f"{name}: p50 ms | CPU ms | PostgreSQL ms" for name in (SMALL, LARGE))
    rows = []
    for name, one in calls.items():
        cells = " | ".join(
            f"{one[side]['p50_ms']:.2f} | {one[side]['cpu_ms']:.2f} | {one[side]['database_ms']:.2f}"
            for side in (SMALL, LARGE)
        )
        rows.append(
            f"| {name} | {one['items']} | {cells} | {_work(one):.2f} | {one['ratio']:.2f} {_held(one['ratio'])} |"
        )
    whole = directory["read_whole"]
    indexed = "every statement by index" if not whole else f"WHOLE TABLES READ by {len(whole)} statements"
    ratios = "CPU and PostgreSQL, large by small | p50, large by small"
    by_clock = _all_held({name: one["ratio"] for name, one in calls.items()})
    by_work = _all_held({name: _work(one) for name, one in calls.items()})
    verdict = f"{len(calls)} kinds of calls, large by small: p50 **{by_clock}**"
    return [
        f"| the admin API through HTTP, {directory['rounds']} calls each | items | {heads} | {ratios} |",
        f"|{'---|' * 10}",
        *rows,
        "",
        f"{verdict}; CPU and PostgreSQL together {by_work}; {indexed}.",
    ]


def _work(one: dict[str, Any]) -> float:
    """CPU of the loop and time in PostgreSQL, large by small: what other work on the machine hardly changes."""
    small, large = (one[side]["cpu_ms"] + one[side]["database_ms"] for side in (SMALL, LARGE))
    return float(large / small)


def _all_held(ratios: dict[str, float]) -> str:
    beyond = [name for name, ratio in ratios.items() if _held(ratio) != _WITHIN]
    return f"all {_WITHIN}" if not beyond else f"NOT {_WITHIN}: {', '.join(beyond)}"


_WITHIN = f"within {WITHIN:.0%}"


def _held(ratio: float) -> str:
    """Whether the large database is slower by more than may be."""
    return _WITHIN if ratio <= 1 + WITHIN else f"NOT {_WITHIN}"


_BESIDE: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("people added through SCIM meanwhile", lambda one: f"{one['post_beside']['count']:,}"),
    ("sign-ins meanwhile", lambda one: f"{one['sign_in_beside']['count']:,}"),
    ("a person added, alone: CPU of the loop", lambda one: f"{one['post']['cpu_ms']:.2f}"),
    ("the same: p50", lambda one: f"{one['post']['p50_ms']:.2f}"),
    ("a person added, with sign-ins: p50", lambda one: f"{one['post_beside']['p50_ms']:.2f}"),
    ("a sign-in, alone: CPU of the loop", lambda one: f"{one['sign_in']['cpu_ms']:.2f}"),
    ("the same: p50", lambda one: f"{one['sign_in']['p50_ms']:.1f}"),
    ("the same: p99", lambda one: f"{one['sign_in']['p99_ms']:.1f}"),
    ("**a sign-in with SCIM: p50**", lambda one: f"**{one['sign_in_beside']['p50_ms']:.1f}**"),
    ("the same: p99", lambda one: f"{one['sign_in_beside']['p99_ms']:.1f}"),
    ("its p50 by that of a sign-in alone", lambda one: f"{one['slower']:.2f}"),
    ("CPU of the loop for both, by what they cost alone", lambda one: f"{one['cpu_ratio']:.2f}"),
)


def _provisioning(beside: dict[str, Any]) -> list[str]:
    small, large = beside[SMALL], beside[LARGE]
    rows = [f"| {name} | {shown(small)} | {shown(large)} |" for name, shown in _BESIDE]
    return [
        "| sign-ins with a client of SCIM, each one after the other: ms | small | large |",
        "|---|---|---|",
        *rows,
    ]


def sizes_table(result: dict[str, Any]) -> str:
    """Bytes in PostgreSQL and Redis."""
    measured = result["sizes"]
    each = measured["rows_a_sign_in"]
    rows = [f"| {name} | {size:,} | {each.get(name, 0):g} |" for name, size in measured["bytes_a_row"].items()]
    kinds = [
        f"| {kind} | {one['count']:g} | {one['bytes']:,} | {one['seconds']:,} | {one['bytes_at_one_a_second'] / 1024:,.0f} |"
        for kind, one in measured["entries_a_sign_in"].items()
    ]
    every = [one for one in measured["entries_a_sign_in"].values() if one["seconds"] <= SHORT_LIVED]
    bytes_each, steady = (sum(one[name] for one in every) for name in ("bytes", "bytes_at_one_a_second"))
    lines = [
        f"{measured['sign_ins']} sign-ins with {measured['users']:,} people in the database.",
        "",
        "| a table in PostgreSQL | bytes a row, indexes included | rows a sign-in |",
        "|---|---|---|",
        *rows,
        "",
        "| an entry in Redis | entries a sign-in | bytes a sign-in | seconds it lives | KiB in use at one sign-in a second |",
        "|---|---|---|---|---|",
        *kinds,
        f"| **all but remembered browsers** | | {bytes_each:,} | | {steady / 1024:,.0f} |",
    ]
    return "\n".join(lines)
