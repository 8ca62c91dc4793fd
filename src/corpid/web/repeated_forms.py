"""Repeated forms, as by a double click, are used once (D15)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.flows.account import own_sessions
from corpid.texts import phrase
from corpid.web.pages.layout import BARE, Link
from corpid.web.pages.responses import page_response, see_other
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import OwnVisit
    from corpid.web.sites import PageContext

_LOOKS: Final = 15
"""how often a repeated form looks for the result of the first"""
_LOOK_SECONDS: Final = 0.2


async def once(
    request: Request, at: PageContext[OwnVisit], use: Callable[[], Awaitable[tuple[Response, bool]]], *, start: str
) -> Response:
    """Use a form unless it was sent within the last minute.

    `use` returns its answer, and True if it changed something; if it did not, or failed, the form can be sent again.
    A repeated one waits for the first for up to three seconds, then redirects to the same page; if the first takes
    longer, it gets a page that links to `start`. Raises what `use` raises, StoreUnavailable.
    Source: D15, DESIGN "One-time means one statement"
    """
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_LOOK_SECONDS)
        led_to = await own_sessions.claim_form(at.context, at.visit, at.page, at.form)
        if led_to is None:
            return await _first(at, use)
        if led_to:
            return see_other(led_to)
    return page_response(request, at.web.renderer, _still_running(start), status=409)


async def _first(at: PageContext[OwnVisit], use: Callable[[], Awaitable[tuple[Response, bool]]]) -> Response:
    try:
        answer, has_changed = await use()
    except Exception:  # a cancelled one may have changed something
        await own_sessions.release_form(at.context, at.visit, at.page, at.form)
        raise
    if has_changed:
        await own_sessions.save_form(at.context, at.visit, at.page, at.form, answer.headers["Location"])
    else:
        await own_sessions.release_form(at.context, at.visit, at.page, at.form)
    return answer


def _still_running(start: str) -> Problem:
    return Problem(
        frame=BARE,
        heading=phrase("Your form is still being worked on"),
        paragraphs=(
            phrase("It was sent twice, and the first one is not finished yet."),
            phrase("Wait a moment, then look whether it is done before you send it again."),
        ),
        back=Link(url=start, text=phrase("Go to the start page")),
    )
