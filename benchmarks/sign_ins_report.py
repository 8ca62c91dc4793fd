"""Whole sign-ins, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import engines
from benchmarks.report import conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

THIS, OTHER = "this commit", "the other commit"
_STEPS_OF = "password and app, one entity"
"""the kind whose requests are listed"""
_SPENT = ("CPU ms", "with the hash", "by the clock")


def table(result: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """The kinds of sign-ins on one pair of engines; then the requests of one of them."""
    sides = one["sides"]
    counted = list(next(iter(sides[THIS].values()))["counts"])
    heads = [name + _before(title) for title in sides for name in (*_SPENT, *counted)]
    compared = ["CPU by CPU before"] if OTHER in sides else []
    caption = (
        f"{engines.NAMES[one['engines']]}; {one['sign_ins']} sign-ins of each kind, one at a time (medians); "
        f"{conditions(dict(result))}."
    )
    lines = [
        caption,
        "",
        f"| from authorize to the callback | {' | '.join([*heads, *compared])} |",
        f"|{'---|' * (1 + len(heads) + len(compared))}",
    ]
    for kind in sides[THIS]:
        cells = [cell for side in sides.values() for cell in _cells(side[kind], counted)]
        if compared:
            cells.append(f"**{sides[THIS][kind]['loop_ms'] / sides[OTHER][kind]['loop_ms']:.2f}**")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_requests(sides)])


def _before(title: str) -> str:
    return "" if title == THIS else " before"


def _cells(figures: Mapping[str, Any], counted: list[str]) -> list[str]:
    spent = f"**{figures['loop_ms']:.2f}**", f"{figures['cpu_ms']:.1f}", f"{figures['wall_ms']:.0f}"
    return [*spent, *(str(figures["counts"][name]) for name in counted)]


def _requests(sides: Mapping[str, Any]) -> list[str]:
    asked = {title: side[_STEPS_OF]["requests"] for title, side in sides.items()}
    heads = " | ".join(f"CPU ms{_before(title)}" for title in sides)
    rows = []
    for name in asked[THIS]:
        cells = (f"{requests[name]['loop_ms']:.2f}" if name in requests else "" for requests in asked.values())
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return [f"| {_STEPS_OF}: request | {heads} |", f"|{'---|' * (1 + len(sides))}", *rows]
