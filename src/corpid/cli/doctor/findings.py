"""Reports of `corpid doctor`, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.cli import output
from corpid.rules.diagnostics import Finding, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "bold red", "not looked at": "cyan"}
_WIDTH: Final = max(map(len, _COLOURS))


class SkippedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that could not be made, and why."""

    about: str
    verdict: Literal["not_looked_at"] = "not_looked_at"
    seen: str
    change: str = ""


Reported = Finding | SkippedCheck


def not_looked_at(about: str, reason: str) -> SkippedCheck:
    """Not known from here; `reason` says what to do about it. Source: D49"""
    return SkippedCheck(about=about, seen=plain(reason))


def print_text(url: str, findings: Sequence[Reported]) -> None:
    """The report, for people.

    What was not looked at comes last, by reason.
    """
    output.line((url, "bold"))
    looked_at = [each for each in findings if isinstance(each, Finding)]
    width = max((len(finding.about) for finding in looked_at), default=0)
    for finding in looked_at:
        colour, indented = _COLOURS[finding.verdict], " " * (width + _WIDTH + 3)
        output.line((finding.verdict.ljust(_WIDTH), colour), f" {finding.about.ljust(width)}  {finding.seen}")
        if finding.change:
            output.line(indented, finding.change)
    reasons: dict[str, list[str]] = {}
    for each in findings:
        if isinstance(each, SkippedCheck):
            reasons.setdefault(each.seen, []).append(each.about)
    for reason, about in reasons.items():
        output.line(("not looked at", _COLOURS["not looked at"]), f" {', '.join(about)}")
        output.line(" " * (_WIDTH + 1), reason)
    output.say(summary(findings))


def summary(findings: Sequence[Reported]) -> str:
    """`0 problems, 1 warning, 2 not looked at, 20 ok.`"""
    verdicts = [finding.verdict for finding in findings]
    counts = [counted(verdicts.count(each), each) for each in ("problem", "warning")]
    unseen = verdicts.count("not_looked_at")
    return f"{', '.join(counts)}, {unseen} not looked at, {verdicts.count('ok')} ok."


def counted(number: int, noun: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_json(url: str, findings: Sequence[Reported]) -> None:
    """The report, for machines."""
    output.as_json({"url": url, "findings": findings})
