"""Arrival of a sign-in held by its browser, and its errors (D15, D34)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corpid.flows.authentication import completion
from corpid.flows.oauth import held_arrivals
from corpid.rules.oauth import parameters
from corpid.texts import phrase
from corpid.web.authentication.page_context import client_frame
from corpid.web.context import ARRIVE
from corpid.web.http.requests import arrival_cookie, cookie, form_bytes
from corpid.web.pages import errors
from corpid.web.pages.errors import ErrorContext
from corpid.web.pages.layout import Frame, Link

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.oauth.records import Client
    from corpid.web.context import WebContext


async def land(
    request: Request, web: WebContext, context: RequestContext, interaction_id: str, action: str
) -> Response | None:
    """Store a sign-in that its browser holds (D15, D34).

    It arrives in a cookie, or in a form if it is too long for one. Returns a page if storing failed and the browser has
    to try again.
    """
    provider = web.provider
    held = arrival_cookie(request, provider)
    posted = action == ARRIVE and request.method == "POST"
    if posted:
        held = parameters.parse(await form_bytes(request), {ARRIVE}).get(ARRIVE)
    if held is None or not held_arrivals.is_of(held, interaction_id):
        return None
    sent = cookie(request, provider)
    found = await held_arrivals.brought(context, interaction_id, cookie=sent, held=held)
    if found is not None:
        browser, arrival = found
        client = await completion.registered(context, arrival.interaction.request)
        try:
            await provider.registry_cache.refuse_maintenance(context.now)
            await held_arrivals.store(context, browser, arrival)
        except Exception as error:  # noqa: BLE001 - the requesting client is known here
            return failed(request, web, client, arrival.interaction, error, reload=posted)
    request.scope["state"]["landed"] = True
    return None


def met(url: str, frame: Frame) -> ErrorContext:
    """Return the error context of a sign-in whose page can be reopened."""
    return ErrorContext(frame=frame, back=Link(url=url, text=phrase("Open the page again")), goes_on=True)


def failed(
    request: Request,
    web: WebContext,
    client: Client,
    interaction: Interaction,
    error: Exception,
    *,
    reload: bool = False,
) -> Response:
    """Return the error page of a sign-in that can continue.

    `reload` says that only the same form can continue it. Source: D16
    """
    around = replace(client_frame(web, client, interaction), under_way=True)
    return errors.as_page(
        request, error, web.renderer, ErrorContext(frame=around) if reload else met(around.here, around)
    )
