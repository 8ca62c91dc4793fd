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
    request: Request, at: PageContext[OwnVisit], use: Callable[[], Awaitable[Response]], *, start: str
) -> Response:
    """Use a form unless it was sent before.

    A repeated one waits for the first for up to three seconds, then redirects to the page to which that led; if the
    first takes longer, it gets a page that links to `start`. If the first failed, or was answered with something else
    than a redirect, the form can be sent again. Raises what `use` raises, StoreUnavailable. Source: D15, D73
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


async def _first(at: PageContext[OwnVisit], use: Callable[[], Awaitable[Response]]) -> Response:
    try:
        answer = await use()
    except Exception:  # a cancelled one may have changed something
        await own_sessions.release_form(at.context, at.visit, at.page, at.form)
        raise
    led_to = answer.headers.get("Location")
    if led_to:
        await own_sessions.save_form(at.context, at.visit, at.page, at.form, led_to)
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
