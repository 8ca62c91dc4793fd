"""Reports of `corpid doctor`, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.diagnostics import Finding

_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def print_text(url: str, findings: Sequence[Finding]) -> None:
    """The report, for people."""
    output.line((url, "bold"))
    width = max((len(finding.about) for finding in findings), default=0)
    for finding in findings:
        colour, indented = _COLOURS[finding.verdict], " " * (width + 10)
        output.line((finding.verdict.ljust(7), colour), f" {finding.about.ljust(width)}  {finding.seen}")
        if finding.change:
            output.line(indented, finding.change)
    verdicts = [finding.verdict for finding in findings]
    counts = [counted(verdicts.count(each), each) for each in ("problem", "warning")]
    output.say(f"{', '.join(counts)}, {verdicts.count('ok')} ok.")


def counted(number: int, noun: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_json(url: str, findings: Sequence[Finding]) -> None:
    """The report, for machines."""
    output.as_json({"url": url, "findings": findings})
