"""Endpoints of the portal: its table of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account import own_sessions
from corpid.flows.account.own_sessions import FORM_SECONDS
from corpid.flows.directory import portal
from corpid.web.directory import home, organisation
from corpid.web.directory.page_context import ENTITY, ORGANISATION, PortalContext, remembered
from corpid.web.own_pages import Elsewhere, Site, serve

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import OwnVisit
    from corpid.web import own_pages
    from corpid.web.context import WebContext


async def _arrive(at: own_pages.PageContext[OwnVisit]) -> PortalContext:
    visit = await portal.arrived(at.context, at.visit, wanted=at.query.get(ENTITY, ""))
    if visit.entity is None and at.page != ORGANISATION:
        raise Elsewhere(ORGANISATION)
    return PortalContext(
        web=at.web,
        context=at.context,
        visit=visit,
        page=at.page,
        query=at.query,
        saved=at.saved,
        again=at.again,
    )


async def _open(at: PortalContext) -> PortalContext:
    own_sessions.require_recent(at.context, at.visit, seconds=FORM_SECONDS)
    return at


async def _still_open(at: PortalContext) -> PortalContext:
    own_sessions.require_recent(at.context, at.visit)
    return at


async def _extend(at: PortalContext) -> None:
    await own_sessions.use(at.context, at.visit)


_SITE: Final = Site(
    purpose="manage",
    sections=(home.SECTION, organisation.SECTION),
    arrive=_arrive,
    open=_open,
    still_open=_still_open,
    extend=_extend,
    remembered=remembered,
    keeps=True,
)


async def manage(request: Request, web: WebContext) -> Response:
    """Every address of the portal (D53, D54)."""
    return await serve(_SITE, request, web)
