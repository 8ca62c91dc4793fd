"""The list of an entity's people (D53, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, get_args
from urllib.parse import urlencode

from corpid.flows.directory import members, role_assignment
from corpid.flows.directory.lists import ListPage as FoundPage
from corpid.flows.directory.members import MemberFilter
from corpid.flows.directory.write import Refused
from corpid.rules.directory.queries import MemberState
from corpid.texts import counted, phrase
from corpid.web.directory.access import PERSON
from corpid.web.directory.member_texts import STATES
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.people_views import People, PersonRow
from corpid.web.pages.access_texts import LEVELS
from corpid.web.pages.layout import Pager
from corpid.web.sites import Section

if TYPE_CHECKING:
    from corpid.flows.directory.members import MemberSummary
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

PEOPLE: Final = "people"
INVITE: Final = "invite"
INVITED: Final = "invited"
"""the parameter of how many were invited, and the key of that change"""
_SHOWN: Final = 50
_SEARCH: Final = "q"
_CHARACTERS: Final = 100


async def people(at: PortalContext) -> View:
    """The people of the entity, a page of fifty."""
    registry, query = at.context.provider.registry, at.query
    services = await role_assignment.list_services(registry, at.actor, at.entity)
    state, service = query.get("state", ""), query.get("service", "")
    wanted = MemberFilter(
        search=query.get(_SEARCH, "").strip()[:_CHARACTERS],
        state=cast("MemberState", state) if state in get_args(MemberState) else "",
        service_id=service if service in {each.service_id for each in services} else "",
    )
    try:
        page = await members.list_members(registry, wanted, actor=at.actor, after=query.get("after", ""), limit=_SHOWN)
    except Refused:  # no place of this list
        page = FoundPage(found=())
    filters = {_SEARCH: wanted.search, "state": wanted.state, "service": wanted.service_id}
    first = _address(at, filters)
    return People(
        frame=frame(at, section=PEOPLE),
        action=portal_path(at.web, PEOPLE),
        people=tuple(_listed(at, each) for each in page.found),
        pager=Pager(
            first=first if query.get("after") else "",
            next=_address(at, {**filters, "after": page.after}) if page.after else "",
        ),
        search=wanted.search,
        state=wanted.state,
        states=(("", phrase("Any")), *STATES.items()),
        service=wanted.service_id,
        services=(("", phrase("Any")), *((each.service_id, each.name) for each in services)),
        narrowed=any(filters.values()),
        partial=bool(page.after) and len(page.found) < _SHOWN,
        everybody=portal_path(at.web, PEOPLE),
        invite=portal_path(at.web, INVITE) if members.may_invite(at.actor) else None,
        own_services=at.actor.level == "sub_administrator",
        saved=_saved(at),
    )


def _address(at: PortalContext, values: dict[str, str]) -> str:
    query = urlencode({name: value for name, value in values.items() if value})
    return portal_path(at.web, PEOPLE) + (f"?{query}" if query else "")


def _listed(at: PortalContext, each: MemberSummary) -> PersonRow:
    member = each.member
    return PersonRow(
        url=portal_path(at.web, f"{PERSON}/{member.membership.membership_id}"),
        name=member.name_alone,
        user_name=member.identity,
        email=member.email,
        state=member.state,
        state_text=STATES[member.state],
        level=LEVELS[each.level] if each.level else None,
        roles=each.roles,
    )


def _saved(at: PortalContext) -> Phrase | None:
    """The change just made, with the number of those invited."""
    number = at.query.get(INVITED, "")
    if at.saved is None or not (number.isascii() and number.isdigit() and len(number) < len("1000")):
        return at.saved
    return counted(int(number), "{count} person has been invited.", "{count} people have been invited.")


SECTION: Final = Section[PortalContext](
    pages={PEOPLE: PortalPage(view=people)}, filters=frozenset({_SEARCH, "state", "service", "after"})
)
