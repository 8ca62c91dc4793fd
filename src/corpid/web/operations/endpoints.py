"""Endpoints of the console: its table of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.operations import console as flow
from corpid.flows.operations.console import ConsoleRequest, NeedsPasskey
from corpid.texts import phrase
from corpid.web.operations import audit, clients, deployment, entities, jobs, keys, levels, lookup, people, services
from corpid.web.operations.page_context import ConsoleContext, admit
from corpid.web.own_pages import serve
from corpid.web.pages.components import BARE
from corpid.web.pages.views import Problem
from corpid.web.sites import EntryRefused, Site, first_page, ways_out

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.web import sites
    from corpid.web.context import WebContext


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> ConsoleRequest:
    try:
        return await flow.admit_operator(at.context, at.visit, needs_passkey=at.web.operators_need_passkey)
    except NeedsPasskey:
        raise EntryRefused(
            Problem(
                frame=BARE,
                heading=phrase("Sign in with a passkey"),
                paragraphs=(
                    phrase("Operators sign in to the console with a passkey."),
                    phrase("If you have none yet, create one in your account. Then sign out and sign in again."),
                ),
                back=first_page(at.web, "account"),
                others=ways_out(at.web, "console"),
            )
        ) from None


_SITE: Final = Site(
    purpose="console",
    sections=(
        deployment.OVERVIEW,
        deployment.SECTION,
        entities.SECTION,
        people.SECTION,
        services.SECTION,
        clients.SECTION,
        keys.SECTION,
        audit.SECTION,
        jobs.SECTION,
        jobs.VERIFICATION,
        lookup.REFERENCES,
        lookup.SECTION,
        levels.SECTION,
    ),
    context=ConsoleContext,
    arrive=_arrive,
    admit=admit,
    in_maintenance=True,
    keeps=True,
)


async def console(request: Request, web: WebContext) -> Response:
    """Every address of the console (D53)."""
    return await serve(_SITE, request, web)
