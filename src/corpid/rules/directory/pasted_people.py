"""People to invite, pasted as lines of text (D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.rules.directory.member_details import InvalidDetails, MemberDetails, check_details
from corpid.rules.directory.names import fold_text
from corpid.texts import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Fault: TypeAlias = Literal["no address", "address", "name", "repeated"]

_SEPARATORS: Final = re.compile(r"[,;\t]")
_NEXT_PERSON: Final = re.compile(r"(?<=>)\s*[,;]\s*")
"""between two of several people on one line, as mail programs copy them"""
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019 "


class PastedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person as read from a line, or its fault."""

    line: int
    """from 1, empty lines counted"""
    text: str
    details: MemberDetails | None = None
    fault: Fault | None = None
    remedy: Phrase | None = None
    """of an invisible character"""
    first_line: int = 0
    """of a repeated address"""


def read(text: str) -> tuple[PastedPerson, ...]:
    """Read people from lines; empty lines are skipped.

    A line is `Name <e-mail>`, `e-mail`, `name, e-mail` or `e-mail, name`, also with a semicolon or a tab. Source: D60
    """
    return tuple(_without_repeated([_person(number, part) for number, part in _parts(text)]))


def _parts(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        for part in _NEXT_PERSON.split(line):
            if part.strip(" \t,;"):
                yield number, part.strip(" \t,;")


def _person(number: int, text: str) -> PastedPerson:
    name, email = _split(text)
    if not email:
        return PastedPerson(line=number, text=text, fault="no address")
    try:
        return PastedPerson(line=number, text=text, details=check_details(MemberDetails(name=name, email=email)))
    except InvalidDetails as error:
        fault: Fault = "name" if any(member == "name" for member, _ in error.faults) else "address"
        return PastedPerson(line=number, text=text, fault=fault, remedy=next(iter(error.remedies.values()), None))


def _split(text: str) -> tuple[str, str]:
    """Name and address of a line; both may be empty."""
    if text.endswith(">"):
        name, _, email = text.rpartition("<")
        return name.strip(_QUOTES), email.strip("> ")
    fields = [each.strip(_QUOTES) for each in _SEPARATORS.split(text)]
    addresses = [each for each in fields if "@" in each]
    if not addresses and "@" in text:
        return "", text
    email = addresses[0] if addresses else ""
    return " ".join(each for each in fields if each and each != email), email


def _without_repeated(people: Sequence[PastedPerson]) -> Iterator[PastedPerson]:
    lines: dict[str, int] = {}
    for each in people:
        address = fold_text(each.details.email) if each.details is not None else ""
        if address in lines:
            yield PastedPerson(line=each.line, text=each.text, fault="repeated", first_line=lines[address])
            continue
        if address:
            lines[address] = each.line
        yield each
