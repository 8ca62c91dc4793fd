"""Repeated forms, as by a double click, are used once (D15, D73).

A repeated form leads to the result of the first one until its session accepts another form, since that result may then
no longer be true. A form that was not accepted has changed nothing, so it is tried again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.flows.account import own_sessions
from corpid.flows.account.own_sessions import FormClaim
from corpid.texts import phrase
from corpid.web.pages.layout import BARE, Link
from corpid.web.pages.responses import page_response, see_other
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.web.sites import PageContext

_LOOKS: Final = 15
"""how often a repeated form looks for the result of the first"""
_LOOK_SECONDS: Final = 0.2


async def submit_once(
    request: Request,
    at: PageContext[SelfServiceRequest],
    use: Callable[[], Awaitable[tuple[Response, bool]]],
    *,
    start: str,
) -> Response:
    """Use a form unless it was accepted before.

    `use` returns the answer, and whether the form was accepted. A repeated one waits for the first for up to three
    seconds, then redirects to the page to which that led; if the first takes longer, it gets a page that links to
    `start`. Raises what `use` raises, StoreUnavailable. Source: D15, D73
    """
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_LOOK_SECONDS)
        claim = await own_sessions.claim_form(at.context, at.visit, at.page, at.form)
        if isinstance(claim, FormClaim):
            return await _claimed(at, claim, use)
        if claim:
            return see_other(claim)
    return page_response(request, at.web.renderer, _still_running(start), status=409)


async def _claimed(
    at: PageContext[SelfServiceRequest], claim: FormClaim, use: Callable[[], Awaitable[tuple[Response, bool]]]
) -> Response:
    try:
        answer, accepted = await use()
    except Exception:  # a cancelled one may have changed something
        await own_sessions.release_form(at.context, claim)
        raise
    led_to = answer.headers.get("Location")
    if accepted and led_to:
        await own_sessions.save_form(at.context, at.visit, claim, led_to)
    else:
        await own_sessions.release_form(at.context, claim)
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
