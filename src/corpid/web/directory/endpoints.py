"""Endpoints of the portal: its table of pages, and the first ones.

These are home, the choice of the entity, and access that ends. Source: D53, D54
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.authentication.entity_selection import QUERY_CHARACTERS
from corpid.flows.directory import portal
from corpid.flows.directory.access_review import load_review_state
from corpid.flows.directory.notice_texts import REVIEW_OF
from corpid.flows.directory.undo import keep_for_undo, may_undo, undo_changes
from corpid.flows.directory.write import RequestDetails
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.entity_choice import NUMBERS, search_words
from corpid.rules.directory.member_details import shown_name
from corpid.rules.directory.records import ENTITY_STATUSES
from corpid.texts import counted, phrase
from corpid.web.directory import (
    access,
    access_review,
    administrators,
    history,
    people,
    person,
    provisioning_tokens,
    requests,
    settings,
    third_parties,
    third_party_terms,
)
from corpid.web.directory.page_context import (
    ENTITY,
    ORGANISATION,
    PortalContext,
    PortalPage,
    admit,
    await_change,
    bare_frame,
    choosing,
    frame,
    next_page,
    portal_path,
    remembered,
    saved_or_requested,
    section_link,
)
from corpid.web.own_pages import forbidden_page, serve
from corpid.web.pages.components import Page, Paragraph
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart, pager_of
from corpid.web.pages.responses import see_other
from corpid.web.pages.views import Choice, ChooseEntity, Problem
from corpid.web.sites import (
    EntryRefused,
    FormResult,
    Section,
    SeeOther,
    Site,
    SiteUndo,
    await_found,
    first_page,
    ways_out,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.directory.portal import PortalRequest
    from corpid.rules.directory.queries import EntityTotals
    from corpid.rules.directory.records import EntityStatus
    from corpid.texts import Phrase
    from corpid.web import sites
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View


_ENDING: Final = "ending"
_UNDO: Final = "undo"
_REASON: Final = phrase("To undo a change that was made a moment ago")
"""for the approver, if undoing it needs approval by now"""
_SOON_DAYS: Final = 30
_RECENT: Final = 5
"""changes on the home page"""
_PAGE: Final = 50
_STATUS: Final[Mapping[EntityStatus, Phrase]] = {
    "Deregistered": phrase(
        "The register says that this organisation is deregistered. Services may no longer accept it."
    ),
    "Withdrawn": phrase(
        "The register says that the registration of this organisation is withdrawn. Services may no longer accept it."
    ),
}


class Home(PageView, frozen=True, kw_only=True):
    """The home page of an entity's portal."""

    template: ClassVar[str] = "manage/home.html"
    heading: ClassVar[Phrase] = phrase("Home")

    give: str = ""
    """the address on which access is given"""
    invite: str = ""
    """the address on which people are invited; empty for those who invite nobody"""
    warning: Phrase | None = None
    """the status of the entity, if services may refuse it"""
    first_steps: tuple[Link, ...] = ()
    """of an entity with nobody but the reader"""
    lines: tuple[Link, ...] = ()
    changes: tuple[history.HistoryRow, ...] | None = None
    """the last ones; None for those who do not see the history"""
    history: str = ""


class EndingRow(ViewPart, frozen=True, kw_only=True):
    """A role that ends soon."""

    name: str
    url: str
    role: str
    service: str
    until: date


class EndingList(PageView, frozen=True, kw_only=True):
    """The roles that end within thirty days, the soonest first."""

    template: ClassVar[str] = "manage/ending.html"
    heading: ClassVar[Phrase] = phrase("Access that ends soon")

    days: int = _SOON_DAYS
    rows: tuple[EndingRow, ...]
    pager: Pager


async def show_home(at: PortalContext) -> View:
    """The home page of the entity that they act for."""
    first, last = _soon(at)
    found = await portal.load_home_numbers(at.registry, at.actor, first=first, last=last)
    sees_all = at.actor.level != "sub_administrator"
    alone = found.people <= 1 and sees_all
    return Home(
        frame=frame(at),
        give=portal_path(at.web, "access/new"),
        invite=portal_path(at.web, "invite") if sees_all else "",
        warning=_STATUS.get(at.entity.status),
        first_steps=_first_steps(at) if alone else (),
        lines=(*(await _review(at) if sees_all else ()), *_lines(at, found, sees_all=sees_all)),
        changes=await history.list_recent(at, most=_RECENT) if sees_all else None,
        history=portal_path(at.web, history.HISTORY),
    )


def _soon(at: PortalContext) -> tuple[str, str]:
    """Today, and the last of the days that follow."""
    return at.context.today, (at.context.day + timedelta(days=_SOON_DAYS)).isoformat()


def _first_steps(at: PortalContext) -> tuple[Link, ...]:
    steps = [
        Link(url=portal_path(at.web, "invite"), text=phrase("Invite the people who should act for your organisation.")),
        Link(url=portal_path(at.web, "access/new"), text=phrase("Give each of them access to the services they need.")),
    ]
    if at.actor.level == "owner":
        appoint = phrase("Appoint a second owner, so that your organisation never depends on one person.")
        steps.append(Link(url=portal_path(at.web, "administrators/appoint"), text=appoint))
    return tuple(steps)


def _lines(at: PortalContext, totals: EntityTotals, *, sees_all: bool) -> tuple[Link, ...]:
    ending = _ending(totals.ending) if sees_all else phrase("Access at your services that ends within 30 days")
    texts = {"people": _people(totals.people), _ENDING: ending, "requests": _requests(at.visit)}
    if sees_all:
        texts["third-parties"] = (
            counted(
                totals.offers,
                "{count} offer to act for another organisation waits for you.",
                "{count} offers to act for other organisations wait for you.",
            )
            if totals.offers
            else phrase("No offer to act for another organisation waits for you.")
        )
    return tuple(Link(url=portal_path(at.web, page), text=text) for page, text in texts.items())


async def _review(at: PortalContext) -> tuple[Link, ...]:
    """The access review, if it is due or under way (D57)."""
    state = await load_review_state(at.registry, at.actor, at.entity.entity_id)
    review = state.review
    if review is None or not (review.began_at or review.due_at <= at.context.now):
        return ()
    text = (
        phrase(
            "The access review is under way: {kept} of {count} people looked at.", kept=state.kept, count=state.people
        )
        if review.began_at
        else phrase("The yearly access review is due.")
    )
    return (Link(url=portal_path(at.web, "access-review"), text=text),)


def _requests(found: PortalRequest) -> Phrase:
    if found.more_requests:
        return phrase("More than {count} requests wait. See which of them wait for you.", count=portal.MOST_REQUESTS)
    if found.requests:
        return counted(found.requests, "{count} request waits for you.", "{count} requests wait for you.")
    return phrase("No request waits for you.")


def _people(count: int) -> Phrase:
    if count >= portal.MOST_COUNTED_PEOPLE:
        return phrase("At least {count} people belong to your organisation.", count=count)
    return counted(count, "{count} person belongs to your organisation.", "{count} people belong to your organisation.")


def _ending(count: int) -> Phrase:
    if not count:
        return phrase("Nobody's access ends within 30 days.")
    return counted(count, "{count} role ends within 30 days.", "{count} roles end within 30 days.")


async def show_ending_roles(at: PortalContext) -> View:
    """The roles that end within thirty days, fifty to a page."""
    first, last = _soon(at)
    after = at.query.get("after", "")
    found = await await_found(
        portal.list_expiring_roles(at.registry, at.actor, first=first, last=last, after=after, limit=_PAGE)
    )
    here = portal_path(at.web, _ENDING)
    return EndingList(
        frame=frame(at, up=section_link(at, "")),
        rows=tuple(
            EndingRow(
                name=shown_name(each.membership, each.user),
                url=portal_path(at.web, f"person/{each.membership.membership_id}"),
                role=each.row.role,
                service=each.service.name,
                until=date.fromisoformat(each.row.end_date),
            )
            for each in found.found
        ),
        pager=pager_of(here, {}, came=bool(after), after=found.after, searched_on=0 < len(found.found) < _PAGE),
    )


async def show_choice(at: PortalContext) -> View | Response:
    """The choice of the entity, or of another one than before. Source: D54"""
    visit = at.visit
    if visit.entity is not None and not visit.several:
        return see_other(portal_path(at.web, next_page(at)))
    mine = await portal.list_administered(at.context, at.visit.user.user_id)
    if not mine:
        return Problem(
            frame=bare_frame(at),
            heading=phrase("You do not administer an organisation"),
            paragraphs=(
                phrase("You are signed in as {name}.", name=at.visit.user.name),
                phrase("This part is for people who manage who may act for their organisation."),
                phrase("If you should have this access, ask an owner of your organisation."),
            ),
            back=first_page(at.web, "account"),
            others=ways_out(at.web, "manage"),
        )
    query = at.query.get("query", at.form.get("query", ""))[:QUERY_CHARACTERS]
    words = search_words(query)
    found = [
        each for each in mine if all(word in f"{each.name} {each.registration_number}".casefold() for word in words)
    ]
    here = portal_path(at.web, ORGANISATION)
    return ChooseEntity(
        frame=frame(at, section=ORGANISATION) if visit.entity else bare_frame(at),
        action=portal_path(at.web, choosing(next_page(at))),
        search_action=here,
        choices=tuple(
            Choice(
                id=each.entity_id,
                name=each.name,
                number=each.registration_number,
                number_name=NUMBERS[each.type],
                status=ENTITY_STATUSES[each.status] if each.status else None,
                preselected=each == visit.entity,
            )
            for each in found
        ),
        total=len(found),
        query=query,
    )


async def choose_entity(at: PortalContext) -> FormResult:
    """Choose the entity that was sent. Raises InvalidInput, StaleStep. Source: D54"""
    await portal.choose_entity(at.context, at.visit, at.form.get("entity", ""))
    return FormResult("", next_page(at))


async def show_undo(at: PortalContext) -> View:
    """The reason why nothing was undone. Raises SeeOther if nothing was tried."""
    if not at.errors:
        raise SeeOther("")
    return Page(
        frame=frame(at, up=section_link(at, "")),
        heading=phrase("The last change was not undone"),
        parts=(Paragraph(text=phrase("Open the record, and change it there.")),),
    )


async def undo(at: PortalContext) -> FormResult:
    """Undo the last change, or request that. Raises InvalidInput. Source: D80"""
    try:
        asking = RequestDetails(str(_REASON), at.context.now, at.provider.new_id())
        request = await await_change(undo_changes(at.context, at.visit.session.session_id, at.actor, asking))
    finally:
        at.actor.written.clear()
    return saved_or_requested(request, FormResult("undone", ""))


async def _keep_for_undo(at: PortalContext) -> None:
    if at.visit.actor is not None:
        await keep_for_undo(at.context, at.visit.session.session_id, at.actor, at.actor.written)


async def _offers_undo(at: PortalContext) -> bool:
    return at.visit.actor is not None and await may_undo(at.context, at.visit.session.session_id, at.actor)


SECTION: Final = Section[PortalContext](
    pages={
        "": PortalPage(view=show_home),
        _ENDING: PortalPage(view=show_ending_roles),
        ORGANISATION: PortalPage(view=show_choice, submit=choose_entity, field="entity"),
        _UNDO: PortalPage(view=show_undo, submit=undo, fresh=True),
    },
    changes={"undone": phrase("The last change is undone.")},
    fields=frozenset({"entity", "query"}),
    filters=frozenset({"after", "query"}),
)


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
        SECTION,
        settings.SECTION,
        administrators.SECTION,
        access_review.SECTION,
        provisioning_tokens.SECTION,
        history.SECTION,
        requests.SECTION,
        third_parties.SECTION,
        third_party_terms.OFFERS_SECTION,
        third_party_terms.PEOPLE_SECTION,
        access.SECTION,
        people.SECTION,
        person.SECTION,
    ),
    context=PortalContext,
    arrive=_arrive,
    admit=admit,
    remembered=remembered,
    undo=SiteUndo(page=_UNDO, keep=_keep_for_undo, is_offered=_offers_undo),
    keeps=True,
)


async def manage(request: Request, web: WebContext) -> Response:
    """Every address of the portal (D53, D54)."""
    return await serve(_SITE, request, web)
