"""Lists of own pages: sorting heads, and CSV (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from corpid.flows.directory.lists import read_all
from corpid.texts import Phrase, phrase
from corpid.web.pages.components import Column
from corpid.web.pages.responses import CsvFile
from corpid.web.pages.translations import translator_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Iterable, Mapping

    from starlette.responses import Response

    from corpid.flows.directory.lists import ListPage
    from corpid.web.sites import PageContext

T = TypeVar("T")

SORT: Final = "sort"
"""the parameter of the order"""
MOST_DOWNLOADED: Final = 10_000
"""lines of a downloaded list"""
_NOT_ALL: Final = phrase("This file is not complete. Narrow the list, and download again.")
"""the last line of a file that stops before the list does"""


def read_sort(given: Mapping[str, str], orders: Container[str]) -> str:
    """The order in an address; empty if it is none of `orders`.

    After a minus it is backwards. Source: D83
    """
    sort = given.get(SORT, "")
    return sort if sort.removeprefix("-") in orders else ""


def sorting_column(
    at: PageContext[Any],
    page: str,
    heading: Phrase,
    name: str,
    sort: str,
    kept: Mapping[str, str],
    *,
    narrow: Literal["", "end", "hidden"] = "",
) -> Column:
    """A head that sorts the list, or reverses its order. Source: D83"""
    address = at.path(page, **kept, **{SORT: f"-{name}" if sort == name else name})
    if sort.removeprefix("-") != name:
        return Column(heading, address, narrow=narrow)
    return Column(heading, address, "descending" if sort.startswith("-") else "ascending", narrow)


async def export_list(
    at: PageContext[Any],
    name: str,
    columns: Iterable[Phrase | str],
    read: Callable[[str, int], Awaitable[ListPage[T]]],
    line: Callable[[T], Iterable[str]],
    *,
    at_once: int,
) -> Response:
    """A list as CSV (RFC 4180), bounded in lines.

    The last line says so if there are more. Source: D83
    """
    say = translator_of(at.visit.user.language)
    file, left = CsvFile(), MOST_DOWNLOADED
    file.write(say.say(each) if isinstance(each, Phrase) else each for each in columns)
    async for each in read_all(read, most=MOST_DOWNLOADED + 1, at_once=at_once):
        if not left:
            file.write([say.say(_NOT_ALL)])
            break
        file.write(say.say(value) if isinstance(value, Phrase) else value for value in line(each))
        left -= 1
    return file.response(name)
