"""Files that commands read, and their output.

The only module of this layer that prints. Whatever it is given goes through `printable`: much of it was said by relying
parties, by people, or by the author of a file. rich is loaded for the first line; a server has none.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn, TypeAlias

import msgspec

from corpid.rules.characters import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from corpid.rules.directory.differences import Difference

Part: TypeAlias = "str | tuple[str, str]"
"""a text, or a text and its style"""
Lines: TypeAlias = "str | tuple[str, ...]"
"""one line, or several; a line end within one is escaped"""

_COLUMN_CELLS: Final = 18
"""on a terminal, of a column that is not the last"""
MAX_FILE_BYTES: Final = 65536
_QUIET_ZONE: Final = 4
"""modules around a QR code (ISO/IEC 18004)"""
_HALF_BLOCKS: Final = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}
"""the light half of two modules, by whether the upper and the lower one is dark"""
_COLOURS: Final = {"+": "green", "~": "yellow", "-": "red"}
_WORDS: Final = (("+", "added"), ("~", "changed"), ("-", "removed"))
DIRECTORY_BYTES: Final = 256 << 20
"""of a file, which is about a million people; what it says takes many times as much memory"""
_READ_BYTES: Final = 1 << 20


def fail(*sentences: str) -> NoReturn:
    """Report an error on stderr and end with exit code 1."""
    import typer  # noqa: PLC0415 - a server starts without it

    complain(*sentences)
    raise typer.Exit(1)


def complain(*sentences: str, label: str = "Error:") -> None:
    """Report an error on stderr, one sentence a line."""
    first, *further = sentences
    line((label, "bold red"), " ", first, error=True)
    for sentence in further:
        line(sentence, error=True)


def read_file(file: Path) -> tuple[bytes, str]:
    """The content and name of a regular file or standard input."""
    if str(file) == "-":
        return _bounded(sys.stdin.buffer, "standard input"), "standard input"
    try:
        _refuse_another_kind(file, file.stat())  # a device may do something when it is opened
        # It may be another file by now: opening a FIFO without a writer would block.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            _refuse_another_kind(file, os.fstat(opened.fileno()))
            return _bounded(opened, str(file)), str(file)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")


def _refuse_another_kind(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"
        fail(f"{file} is {what}: name a regular file, or write - and send the directory to standard input")


def _bounded(opened: BinaryIO, name: str) -> bytes:
    content = bytearray()
    while piece := opened.read(_READ_BYTES):
        content += piece
        if len(content) > DIRECTORY_BYTES:
            fail(f"{name} is larger than {DIRECTORY_BYTES >> 20} MiB: apply it in parts, a section or some people each")
    return bytes(content)


def text_of(file: Path, *, expected: str) -> str:
    """The text of a file of at most 64 KiB.

    `expected` says in words what it should be.
    """
    try:
        with file.open("rb") as opened:
            octets = opened.read(MAX_FILE_BYTES + 1)
        text = octets.decode()
    except (OSError, ValueError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or f'it is not {expected}'}")
    if len(octets) > MAX_FILE_BYTES:
        fail(f"{file} is larger than {MAX_FILE_BYTES // 1024} KiB: it is not {expected}")
    return text


def say(sentence: str) -> None:
    """One line for a person; markup in it is not interpreted."""
    line(sentence)


def warn(sentence: str) -> None:
    """A remark on stderr."""
    line(("Note:", "yellow"), " ", sentence, error=True)


def line(*parts: Part, error: bool = False) -> None:
    """One line of parts in their styles, never broken; `error`: on stderr."""
    _console(error=error).print(_text(*parts), soft_wrap=True)


def qr_code(text: str) -> None:
    """A QR code of half blocks, light on dark in every terminal.

    A line instead if the terminal is too narrow for it, or has no such characters. Source: ISO/IEC 18004
    """
    console = _console()
    import segno  # noqa: PLC0415 - few commands draw a code

    rows = [bytes(row) for row in segno.make_qr(text, error="l").matrix_iter(border=_QUIET_ZONE)]
    if (console.is_terminal and console.width < len(rows[0])) or not console.encoding.lower().startswith("utf"):
        say("(A QR code would be here in a wider terminal with UTF-8.)")
        return
    pairs = zip(rows[::2], [*rows[1::2], bytes(len(rows[0]))][: len(rows[::2])], strict=True)
    for upper, lower in pairs:
        line(("".join(_HALF_BLOCKS[pair] for pair in zip(upper, lower, strict=True)), "bright_white on black"))


def document(text: str, *, error: bool = False) -> None:
    """A text of several lines to be saved, such as a file.

    `error`: on stderr.
    """
    (sys.stderr if error else sys.stdout).write(printable_lines(text))


def as_json(value: object) -> None:
    """One JSON document on stdout."""
    compact = printable(msgspec.json.encode(value).decode(), escape=_escaped_in_json)
    print(msgspec.json.format(compact, indent=2))


def json_lines(values: Iterable[object]) -> None:
    """One JSON document a line on stdout."""
    for value in values:
        print(printable(msgspec.json.encode(value).decode(), escape=_escaped_in_json))


def aligned(rows: Iterable[tuple[str, str, str]]) -> None:
    """One line a row, its columns aligned.

    On a terminal a line ends at its width; in a file or pipe nothing is cut.
    """
    from rich.text import Text  # noqa: PLC0415 - see above

    console = _console()
    texts = [tuple(map(_text, row)) for row in rows]
    most = _COLUMN_CELLS if console.is_terminal else sys.maxsize
    widths = [min(max(text.cell_len for text in column), most) for column in zip(*texts, strict=True)]
    for *cells, last in texts:
        shown = Text()
        for cell, width in zip(cells, widths, strict=False):
            cell.truncate(width, overflow="ellipsis", pad=True)
            shown = shown.append_text(cell).append("  ")
        shown.append_text(last)
        if console.is_terminal:
            shown.truncate(console.width, overflow="ellipsis")
        console.print(shown, soft_wrap=True)


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[Lines | Text]], *, unbroken: bool = False
) -> None:
    """A table for people.

    `unbroken`: no cell but the first of a row is ever broken.
    """
    from rich.table import Table  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415

    shown = Table(title=_text(title), title_justify="left", title_style="bold")
    for position, heading in enumerate(headings):
        shown.add_column(heading, overflow="fold", no_wrap=unbroken and position > 0)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else _cell(cell) for cell in row))
    _console().print(shown)


def styled(text: str, style: str) -> Text:
    """A cell of a table, in a style."""
    return _text((text, style))


def members(title: str, values: Mapping[str, Lines]) -> None:
    """The members of one record, one unbroken line each, for copying."""
    say(title)
    width = max(map(len, values))
    for name, value in values.items():
        label = name
        for each in _lines(value):
            say(f"  {label.ljust(width)}  {each}")
            label = ""


def differences(found: Sequence[Difference], *, done: bool) -> None:
    """Print changes, made or planned, with a count at the end."""
    for one in found:
        line((f"{one.sign} {one.subject}", _COLOURS[one.sign]))
        for member in one.members:
            line(f"    {member}")
    signs = [one.sign for one in found]
    counts = ", ".join(f"{signs.count(sign)} {word}" for sign, word in _WORDS if sign in signs)
    say(f"{'Done' if done else 'Would be'}: {counts}." if counts else "Nothing to change.")


def _console(*, error: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - see above

    return Console(stderr=error, highlight=False, emoji=False)


def _text(*parts: Part) -> Text:
    """The one way of a text to the terminal."""
    from rich.text import Text  # noqa: PLC0415 - see above

    return Text.assemble(
        *(printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts)
    )


def _cell(value: Lines) -> Text:
    from rich.text import Text  # noqa: PLC0415 - see above

    return Text("\n").join(map(_text, _lines(value)))


def _lines(value: Lines) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ("",)


def _escaped_in_json(character: str) -> str:
    """A character of a JSON string as UTF-16 code units.

    Outside of strings JSON is ASCII. Source: RFC 8259 §7
    """
    octets = character.encode("utf-16-be")
    return "".join(f"\\u{octets[at : at + 2].hex()}" for at in range(0, len(octets), 2))
