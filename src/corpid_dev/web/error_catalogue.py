"""The catalogue of reasons for refusals, as a page of developer mode (D28, D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, get_args

from corpid.rules.oauth.refusals import ErrorCode, Reason
from corpid.texts import phrase
from corpid.web.pages.layout import BARE, Frame, PageView
from corpid.web.pages.responses import page_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.texts import Phrase
    from corpid.web.context import WebContext


class ErrorCatalogue(PageView, frozen=True, kw_only=True):
    """Every reason under the first of its errors, with an anchor."""

    template: ClassVar[str] = "error_catalogue.html"
    heading: ClassVar[Phrase] = phrase("For developers")

    errors_and_reasons: tuple[tuple[str, tuple[Reason, ...]], ...]
    frame: Frame = BARE


def catalogue(frame: Frame = BARE) -> ErrorCatalogue:
    """The view of every declared reason."""
    by_error = (
        (error, tuple(each for each in Reason if each.value.errors[0] == error)) for error in get_args(ErrorCode)
    )
    return ErrorCatalogue(
        frame=frame, errors_and_reasons=tuple((error, reasons) for error, reasons in by_error if reasons)
    )


async def page(request: Request, web: WebContext) -> Response:
    frame = BARE if web.developer is None else Frame(up=web.developer.up)
    return page_response(request, web.renderer, catalogue(frame))
