"""Tables (CSV) and pasted lines of people: members, their roles, invitations.

Tables are read as spreadsheets save and copy them: in UTF-8, or in UTF-16 with a byte order mark; commas, semicolons or
tabs separate, or what a first line `sep=;` says. Lines may end as on Windows, Unix or old Macs. Source: RFC 4180, D74, D81
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from corpid.rules.directory.document import NOUNS, OWN_FACTORS, SECTIONS, TEST, DirectoryDocument, from_nodes
from corpid.rules.directory.memberships import InvalidDetails, check_details
from corpid.rules.directory.names import fold_text, without_marks
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.records import MemberDetails
from corpid.rules.readers import Items, Node, Pairs, Scalar, unknown_field, unrounded
from corpid.texts import Phrase, phrase

_SEPARATOR: Final = re.compile(r'"?sep=([,;\t|])"?')
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
PARAMETER: Final = "parameter:"
"""begins the column of a parameter"""
ACCESS_COLUMNS: Final = ("user_name", "name", "email", "service", "role", "sub_entity", "start_date", "end_date")
_NEEDED_OF_ACCESS: Final = ("user_name",)
MOST_ACCESS_LINES: Final = 100
MOST_TYPED: Final = 20_000
"""characters of a table that is pasted or uploaded"""
_MEMBER_COLUMNS: Final = MemberDetails.__struct_fields__
_NEEDED_OF_MEMBERS: Final = ("user_name", "name")
_USER_NAME: Final = "user_name"
_OTHERWISE: Final = OWN_FACTORS | {"id", "enabled", "memberships", TEST}
PERSON_COLUMNS: Final = (_USER_NAME, *(name for name in SECTIONS["users"].keys if name not in _OTHERWISE))
"""the columns about a person"""
NEEDED_PERSON_COLUMNS: Final = (_USER_NAME, *(name for name, key in SECTIONS["users"].keys.items() if key.needed))
PastedFault: TypeAlias = Literal["no address", "address", "name", "repeated"]
_SEPARATORS: Final = re.compile(r"[,;\t]")
_PEOPLE_COLUMNS: Final = frozenset({"name", "email", "e-mail", ""})
_NEXT_PERSON: Final = re.compile(r"(?<=>)\s*[,;]\s*")
"""between two of several people on one line, as mail programs copy them"""
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019 "


class AccessLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table; an empty cell says nothing."""

    line: int
    cells: dict[str, str]
    """column → text, of COLUMNS"""
    parameters: dict[str, str]
    """name → value"""


class PastedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person as read from a line, or its fault."""

    line: int
    """from 1, empty lines counted"""
    text: str
    details: MemberDetails | None = None
    fault: PastedFault | None = None
    remedy: Phrase | None = None
    """of an invisible character"""
    first_line: int = 0
    """of a repeated address"""


def parse_people(content: bytes, file: str, *, entity_id: str) -> DirectoryDocument:
    """Read a table of an entity's people as a document.

    Each row is read as the entry of a user in a directory file would be, by the same rules, and keeps its line.
    The columns `user_name` and `name` are needed; an empty cell says nothing. `file` names it in errors. Raises
    DirectoryError with every problem found. Source: RFC 4180, docs/directory.md
    """
    problems: list[FileProblem] = []
    entries: list[tuple[Scalar, Node]] = []
    for line, cells in read_table(
        content, file, problems, noun=NOUNS["user"], known=PERSON_COLUMNS, needed=NEEDED_PERSON_COLUMNS
    ):
        entries.append(_person_entry(line, cells, entity_id))
    users = Pairs(1, tuple(entries))
    return from_nodes(Pairs(1, ((Scalar(1, "users", plain=True), users),)), file, problems)


def _person_entry(line: int, cells: dict[str, str], entity_id: str) -> tuple[Scalar, Node]:
    stated = {name: cell for name, cell in cells.items() if name != _USER_NAME and cell}
    members: list[tuple[Scalar, Node]] = [
        (Scalar(line, name, plain=True), Scalar(line, cell, plain=False)) for name, cell in stated.items()
    ]
    acts_for = Items(line, (Scalar(line, entity_id, plain=True),))
    members.append((Scalar(line, "memberships", plain=True), acts_for))
    return Scalar(line, cells[_USER_NAME], plain=False), Pairs(line, tuple(members))


def parse_members(content: bytes, file: str) -> list[tuple[int, MemberDetails]]:
    """Return the details of each row of a table, with its line.

    `file` names it in errors. Raises DirectoryError with every problem found. Source: RFC 4180, D60, D61
    """
    problems: list[FileProblem] = []
    found: list[tuple[int, MemberDetails]] = []
    for line, cells in read_table(
        content, file, problems, noun=NOUNS["user"], known=_MEMBER_COLUMNS, needed=_NEEDED_OF_MEMBERS
    ):
        try:
            unrounded(cells.get("external_id", ""))
            found.append((line, check_details(MemberDetails(**cells))))
        except ValueError as error:
            problems.append(FileProblem(line, f"external_id: {error}"))
        except InvalidDetails as error:
            problems += [FileProblem(line, f"{member}: {sentence}") for member, sentence in error.faults]
    for member in ("user_name", "external_id"):
        lines: dict[str, int] = {}
        for line, details in found:
            value = getattr(details, member)
            key = fold_text(value) if member == "user_name" else value
            if key and lines.setdefault(key, line) != line:
                problems.append(FileProblem(line, f"{member}: the same as in line {lines[key]}"))
    if problems:
        raise DirectoryError(file, problems)
    return found


def parse_access(text: str) -> list[AccessLine]:
    """Return the lines of a table.

    Raises DirectoryError with every problem. Source: RFC 4180, D55
    """
    problems: list[FileProblem] = []
    found = [
        AccessLine(
            line=line,
            cells={name: cell for name, cell in cells.items() if name in ACCESS_COLUMNS},
            parameters={
                name.removeprefix(PARAMETER): cell for name, cell in cells.items() if name not in ACCESS_COLUMNS
            },
        )
        for line, cells in read_table(
            text.encode(),
            "",
            problems,
            noun=NOUNS["assignment"],
            known=ACCESS_COLUMNS,
            needed=_NEEDED_OF_ACCESS,
            prefix=PARAMETER,
        )
    ]
    problems += [
        FileProblem(each.line, phrase("Enter the user name of the person."))
        for each in found
        if not each.cells["user_name"]
    ]
    if len(found) > MOST_ACCESS_LINES:
        problems.append(
            FileProblem(
                found[MOST_ACCESS_LINES].line,
                phrase("Enter at most {most} lines at once.", most=MOST_ACCESS_LINES),
            )
        )
    if not found and not problems:
        problems.append(FileProblem(1, phrase("There are no lines below the names of the columns.")))
    if problems:
        raise DirectoryError("", problems)
    return found


def decode_table(content: bytes) -> str:
    """The text of a file.

    Raises UnicodeDecodeError for what is none, such as a workbook. Source: D81
    """
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = content.decode(encoding)
    if (place := text.find("\0")) >= 0:
        raise UnicodeDecodeError(encoding, content, place, place + 1, "NUL")
    return text


def read_pasted_people(text: str) -> tuple[PastedPerson, ...]:
    """Read people from lines; empty lines are skipped.

    A line is `Name <e-mail>`, `e-mail`, `name, e-mail` or `e-mail, name`, also with a semicolon or a tab. A first line
    may name these columns. Source: D60, D81
    """
    return tuple(_without_repeated([_read_person(number, part) for number, part in _split_people(text)]))


def _split_people(text: str) -> Iterator[tuple[int, str]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if lines and {each.strip(_QUOTES).lower() for each in _SEPARATORS.split(lines[0][1])} <= _PEOPLE_COLUMNS:
        del lines[0]
    for number, line in lines:
        for part in _NEXT_PERSON.split(line):
            if part.strip(" \t,;"):
                yield number, part.strip(" \t,;")


def _read_person(number: int, text: str) -> PastedPerson:
    name, email = _split_person(text)
    if not email:
        return PastedPerson(line=number, text=text, fault="no address")
    try:
        return PastedPerson(line=number, text=text, details=check_details(MemberDetails(name=name, email=email)))
    except InvalidDetails as error:
        fault: PastedFault = "name" if any(member == "name" for member, _ in error.faults) else "address"
        return PastedPerson(line=number, text=text, fault=fault, remedy=next(iter(error.remedies.values()), None))


def _split_person(text: str) -> tuple[str, str]:
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


def read_table(
    content: bytes,
    file: str,
    problems: list[FileProblem],
    *,
    noun: str,
    known: Sequence[str],
    needed: Sequence[str],
    prefix: str = "",
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a table with its line numbers and cells by column.

    `noun` is what a row is about. The first line names the columns, in capital or small letters: each is one of `known`, or begins with `prefix`.
    Empty rows, and columns with neither name nor cell, are skipped. Problems are added to `problems`, also of the first
    line, after which there are no rows. Raises DirectoryError if the content is no text. Source: RFC 4180, D74
    """
    try:
        text = decode_table(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DirectoryError(file, [FileProblem(line, "the file is not UTF-8 text: save it as CSV UTF-8")]) from None
    rows = _rows(text, problems)
    first, header = next(rows, (1, []))
    columns = [_column(name, known, prefix) for name in header]
    problems += [FileProblem(first, reason) for reason in _header_problems(columns, known, needed, prefix, noun)]
    for line, cells in rows if not problems else ():
        named, rest = cells[: len(columns)], cells[len(columns) :]
        if len(named) < len(columns) or any(rest):
            problems.append(
                FileProblem(line, f"this line has {len(cells)} cells, the first line has {len(columns)} columns")
            )
        elif any(cell for cell, name in zip(named, columns, strict=True) if not name):
            problems.append(FileProblem(line, "this line has a cell in a column without a name"))
        else:
            yield line, {name: cell for name, cell in zip(columns, named, strict=True) if name}


def _rows(text: str, problems: list[FileProblem]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with its line number."""
    first = _LINE_END.split(text.lstrip("\r\n "), maxsplit=1)[0]
    separator = _SEPARATOR.fullmatch(first.strip(" "))
    delimiter = (
        separator[1] if separator else "\t" if "\t" in first else ";" if ";" in first and "," not in first else ","
    )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for number, cells in enumerate(reader):
            stated = [without_marks(cell).strip() for cell in cells]
            if any(stated) and not (separator and number == 0):
                yield line, stated
            line = reader.line_num + 1
    except csv.Error as error:
        problems.append(FileProblem(line, f"not valid CSV: {error}"))


def _column(name: str, known: Sequence[str], prefix: str) -> str:
    """The name of a known column; another one as written."""
    if prefix and name.lower().startswith(prefix):
        return prefix + name[len(prefix) :].strip()
    return name.lower() if name.lower() in known else name


def _header_problems(
    columns: Sequence[str], every: Sequence[str], needed: Sequence[str], prefix: str, noun: str
) -> list[str]:
    unknown = [
        unknown_field(name, every, noun)
        for name in columns
        if name and name not in every and not (prefix and name.startswith(prefix))
    ]
    twice = [f"the column {name} occurs twice" for name in dict.fromkeys(columns) if name and columns.count(name) > 1]
    lacking = [name for name in needed if name not in columns]
    known = f"the possible columns are {', '.join(every)}"
    missing = [f"the first line lacks {', '.join(lacking)}: {known}"] if lacking else []
    return [*unknown, *twice, *missing]


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full-width forms
"""beginnings of a formula in a spreadsheet, which an apostrophe precedes; full-width forms, if its language is Japanese"""


class CsvRows:
    """Rows as CSV (RFC 4180)."""

    def __init__(self) -> None:
        self._text: Final = io.StringIO()
        self._rows: Final = csv.writer(self._text)

    def write(self, cells: Iterable[str]) -> None:
        """Add a row."""
        self._rows.writerow([f"'{each}" if each.startswith(_FORMULA) else each for each in cells])

    def take(self) -> bytes:
        """The rows that were added since."""
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        return text.encode()
