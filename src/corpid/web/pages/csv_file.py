"""Tables for spreadsheets, in which no cell is a formula."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full-width forms
"""beginnings of a formula in a spreadsheet; full-width forms, if its language is Japanese"""


class CsvFile:
    """Rows as CSV (RFC 4180)."""

    def __init__(self) -> None:
        self._text: Final = io.StringIO()
        self._rows: Final = csv.writer(self._text)

    def write(self, cells: Iterable[str]) -> None:
        """Add a row."""
        self._rows.writerow([_safe(each) for each in cells])

    def response(self, name: str) -> Response:
        """The file as a download called `name`.csv."""
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"}
        # The mark tells spreadsheets that it is UTF-8.
        return Response(("\ufeff" + self._text.getvalue()).encode(), 200, headers, "text/csv; charset=utf-8")


def _safe(text: str) -> str:
    """A cell that is no formula: an apostrophe precedes one."""
    return f"'{text}" if text.startswith(_FORMULA) else text
