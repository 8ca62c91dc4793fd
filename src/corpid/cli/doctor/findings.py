"""Findings of `corpid doctor`: observations and remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.cli import output
from corpid.rules.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["ok", "warning", "problem"]

_MOST: Final = 2000
"""characters of one text"""
_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "bold red"}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    `about` names it and is unique in a report. `change` is empty if all is well, or if `seen` names the remedy.
    """

    about: str
    verdict: Verdict
    seen: str
    change: str = ""


def ok(about: str, seen: str) -> Finding:
    """As it should be."""
    return Finding(about=about, verdict="ok", seen=plain(seen))


def warning(about: str, seen: str, change: str) -> Finding:
    """It works, but not well, or cannot be judged from here."""
    return Finding(about=about, verdict="warning", seen=plain(seen), change=plain(change))


def problem(about: str, seen: str, change: str = "") -> Finding:
    """Something does not work, or is not safe.

    `change` is empty if the observation says what to do.
    """
    return Finding(about=about, verdict="problem", seen=plain(seen), change=plain(change))


def plain(text: str) -> str:
    """One printable line of bounded length, for text from other parties."""
    return printable(text if len(text) <= _MOST else f"{text[:_MOST]}...")


def sentence(error: object) -> str:
    """The text of an error as a sentence.

    Settings and addresses stay as they are.
    """
    text = str(error).rstrip(".")
    first, space, rest = text.partition(" ")
    begun = f"{first.capitalize() if first.isalpha() and first.islower() else first}{space}{rest}"
    return begun if begun.endswith("?") else f"{begun}."


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
