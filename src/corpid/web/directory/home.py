"""The portal's home page: a sentence for each section (D53)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.directory import access_review, portal
from corpid.flows.directory.write import Refused
from corpid.rules.directory.names import shown_name
from corpid.texts import counted, phrase
from corpid.web.directory import history
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart, pager_of
from corpid.web.sites import NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.portal import ExpiringRole, HomeNumbers
    from corpid.rules.directory.records import EntityStatus
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

_ENDING: Final = "ending"
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
    saved: Phrase | None = None


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


async def home(at: PortalContext) -> View:
    """The home page of the entity that they act for."""
    registry, actor = at.context.provider.registry, at.actor
    first, last = _soon(at)
    found = await portal.load_home_numbers(registry, actor, first=first, last=last)
    sees_all = actor.level != "sub_administrator"
    alone = found.totals.people <= 1 and sees_all
    return Home(
        frame=frame(at),
        saved=at.saved,
        give=portal_path(at.web, "access/new"),
        invite=portal_path(at.web, "invite") if sees_all else "",
        warning=_STATUS.get(at.entity.status),
        first_steps=_first_steps(at) if alone else (),
        lines=(*(await _review(at) if sees_all else ()), *_lines(at, found, sees_all=sees_all)),
        changes=await history.recent(at, most=_RECENT) if sees_all else None,
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


def _lines(at: PortalContext, found: HomeNumbers, *, sees_all: bool) -> tuple[Link, ...]:
    totals = found.totals
    ending = _ending(totals.ending) if sees_all else phrase("Access at your services that ends within 30 days")
    texts = {
        "people": _people(totals.people),
        _ENDING: ending,
        "requests": _requests(found),
    }
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
    state = await access_review.current(at.context.provider.registry, at.actor, at.entity.entity_id)
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


def _requests(found: HomeNumbers) -> Phrase:
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


async def ending(at: PortalContext) -> View:
    """The roles that end within thirty days, fifty to a page."""
    first, last = _soon(at)
    after = at.query.get("after", "")
    try:
        found = await portal.list_expiring_roles(
            at.context.provider.registry, at.actor, first=first, last=last, after=after, limit=_PAGE
        )
    except Refused:  # a place that is none
        raise NotFound from None
    here = portal_path(at.web, _ENDING)
    return EndingList(
        frame=frame(at, up=Link(url=portal_path(at.web), text=Home.heading)),
        rows=tuple(_ending_row(at, each) for each in found.found),
        pager=pager_of(here, {}, came=bool(after), after=found.after, searched_on=0 < len(found.found) < _PAGE),
    )


def _ending_row(at: PortalContext, each: ExpiringRole) -> EndingRow:
    return EndingRow(
        name=shown_name(each.membership, each.user),
        url=portal_path(at.web, f"person/{each.membership.membership_id}"),
        role=each.row.role,
        service=each.service.name,
        until=date.fromisoformat(each.row.end_date),
    )


SECTION: Final = Section[PortalContext](
    pages={"": PortalPage(view=home), _ENDING: PortalPage(view=ending)}, filters=frozenset({"after"})
)
