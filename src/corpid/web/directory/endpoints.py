"""Endpoints of the portal: its table of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory import portal
from corpid.flows.directory.notice_texts import REVIEW_OF
from corpid.rules.directory.access import Forbidden
from corpid.texts import phrase
from corpid.web.directory import (
    access,
    access_review,
    administrators,
    history,
    home,
    people,
    person,
    provisioning_tokens,
    requests,
    third_parties,
    third_party_offers,
    third_party_people,
)
from corpid.web.directory.page_context import (
    ENTITY,
    ORGANISATION,
    PortalContext,
    admit,
    choosing,
    portal_path,
    remembered,
)
from corpid.web.own_pages import forbidden_page, serve
from corpid.web.pages.layout import Link
from corpid.web.sites import EntryRefused, SeeOther, Site, ways_out

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.directory.portal import PortalRequest
    from corpid.web import sites
    from corpid.web.context import WebContext


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> PortalRequest:
    # A link of somebody else's does not choose, only a sign-in that came back for a change (D54).
    wanted = at.query.get(ENTITY, "") if at.again else ""
    try:
        visit = await portal.admit_to_entity(at.context, at.visit, wanted=wanted, choosing=at.page == ORGANISATION)
    except Forbidden as forbidden:
        back = Link(url=portal_path(at.web, ORGANISATION), text=phrase("Change organisation"))
        raise EntryRefused(forbidden_page(forbidden, back, ways_out(at.web, "manage"))) from None
    if visit.entity is None and at.page != ORGANISATION:
        of = at.query.get(REVIEW_OF, "")
        raise SeeOther(choosing(f"{at.page}?{REVIEW_OF}={of}" if of else at.page))
    return visit


_SITE: Final = Site(
    purpose="manage",
    sections=(
        home.SECTION,
        administrators.SECTION,
        access_review.SECTION,
        provisioning_tokens.SECTION,
        history.SECTION,
        requests.SECTION,
        third_parties.SECTION,
        third_party_offers.SECTION,
        third_party_people.SECTION,
        access.SECTION,
        people.SECTION,
        person.SECTION,
    ),
    context=PortalContext,
    arrive=_arrive,
    admit=admit,
    remembered=remembered,
    keeps=True,
)


async def manage(request: Request, web: WebContext) -> Response:
    """Every address of the portal (D53, D54)."""
    return await serve(_SITE, request, web)
