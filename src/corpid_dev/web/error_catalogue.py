"""The catalogue of reasons for refusals, as a page of developer mode (D28, D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, get_args

from corpid.rules.oauth.refusals import ErrorCode, Reason
from corpid.texts import phrase
from corpid.web.pages.layout import BARE, Frame, PageView
from corpid.web.pages.responses import page_response
from corpid_dev.web.paths import CATALOGUE_PATH

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.texts import Phrase
    from corpid.web.context import WebContext

_QUERY_CHARACTERS: Final = 200


class ErrorCatalogue(PageView, frozen=True, kw_only=True):
    """Reasons under the first of their errors, with an anchor. Field: query."""

    template: ClassVar[str] = "error_catalogue.html"
    heading: ClassVar[Phrase] = phrase("Catalogue of errors")

    here: str
    query: str = ""
    errors_and_reasons: tuple[tuple[str, tuple[Reason, ...]], ...]
    frame: Frame = BARE

    @property
    def count(self) -> int:
        """The number of reasons that are shown."""
        return sum(len(reasons) for _, reasons in self.errors_and_reasons)


def catalogue(frame: Frame = BARE, *, here: str = CATALOGUE_PATH, query: str = "") -> ErrorCatalogue:
    """The view of the declared reasons.

    With a query of those in which its words stand, in any order.
    """
    words = query.casefold().split()
    by_error = (
        (error, tuple(each for each in Reason if each.value.errors[0] == error and _has_words(each, words)))
        for error in get_args(ErrorCode)
    )
    found = tuple((error, reasons) for error, reasons in by_error if reasons)
    return ErrorCatalogue(frame=frame, here=here, query=query, errors_and_reasons=found)


def _has_words(reason: Reason, words: list[str]) -> bool:
    value = reason.value
    text = " ".join((reason.code, *value.errors, value.cause, value.acts, value.remedy)).casefold()
    return all(word in text for word in words)


async def page(request: Request, web: WebContext) -> Response:
    """The catalogue, or what of it was searched for."""
    frame = BARE if web.developer is None else Frame(up=web.developer.up)
    query = request.query_params.get("query", "")[:_QUERY_CHARACTERS].strip()
    return page_response(request, web.renderer, catalogue(frame, here=web.base_path + CATALOGUE_PATH, query=query))
