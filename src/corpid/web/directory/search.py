"""Search in the portal (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from corpid.flows.directory.search import names_in_request, search_entity
from corpid.rules.directory.change_texts import title_changes
from corpid.rules.directory.words import find_reasons
from corpid.texts import Phrase, phrase
from corpid.web.directory import requests, third_parties
from corpid.web.directory.access_list import ACCESS
from corpid.web.directory.page_context import SEARCH, PortalContext, PortalPage
from corpid.web.directory.people import PEOPLE, PERSON
from corpid.web.pages.components import Cell, Paragraph, Part, Value, View, count_found, state_label, table
from corpid.web.sites import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.flows.directory.approvals import Request
    from corpid.flows.directory.grants import Authorisation
    from corpid.flows.directory.lists import ListPage
    from corpid.flows.directory.members import MemberSummary
    from corpid.rules.directory.records import Service

    T = TypeVar("T")
    _Row: TypeAlias = Callable[[PortalContext, T, Sequence[str]], tuple[Value, ...]]

_EACH: Final = 10
"""records of a kind"""
_CHARACTERS: Final = 100


async def show_search(at: PortalContext) -> View:
    """The page of a search, by kind."""
    text = at.query.get(SEARCH, "").strip()[:_CHARACTERS]
    found = await search_entity(at.registry, at.actor, at.entity, text, now=at.context.now, limit=_EACH)

    def show(kind: Phrase, page: ListPage[T], headings: tuple[Phrase, ...], row: _Row[T]) -> Part:
        rows = (row(at, each, found.words) for each in page.found)
        return table(count_found(kind, page.total), headings, rows) if page.found else None

    parts = (
        show(phrase("People"), found.people, (phrase("Name"), phrase("User name"), phrase("State")), _person),
        at.link(PEOPLE, phrase("Show all people who match"), q=text) if found.people.after else None,
        show(phrase("Services"), found.services, (phrase("Service"), phrase("Role")), _service),
        show(phrase("Third parties"), found.authorisations, third_parties.COLUMNS, _third_party),
        show(phrase("Requests"), found.requests, requests.COLUMNS, _request),
    )
    nothing = (
        phrase("Nothing found. Search for words of people, third parties, services or requests, in any order.")
        if text
        else phrase("Enter what you search for in the field above.")
    )
    heading = phrase("Search: {text}", text=text) if text else phrase("Search")
    return at.build_page(heading, *(parts if any(parts) else (Paragraph(nothing, look="empty"),)))


def _person(at: PortalContext, each: MemberSummary, asked: Sequence[str]) -> tuple[Value, ...]:
    member = each.member
    hidden = member.membership.user_name, member.membership.email or member.user.email
    why = find_reasons(asked, f"{member.name_alone} {member.identity}", hidden)
    link = at.link(f"{PERSON}/{member.membership.membership_id}", member.name_alone)
    return Cell(values=(link,), notes=why), member.identity, state_label(member.state)


def _service(at: PortalContext, each: Service, asked: Sequence[str]) -> tuple[Value, ...]:
    roles = tuple(at.link(ACCESS, role, each.name, service=each.service_id, role=role) for role in each.roles)
    why = find_reasons(asked, " ".join((each.name, *each.roles)), (each.description,))
    link = at.link(ACCESS, each.name, service=each.service_id)
    return Cell(values=(link,), notes=why), Cell(values=roles) if roles else None


def _third_party(at: PortalContext, each: Authorisation, _: Sequence[str]) -> tuple[Value, ...]:
    return third_parties.row(at, each)


def _request(at: PortalContext, each: Request, asked: Sequence[str]) -> tuple[Value, ...]:
    """The row of a request, with names that its title leaves out."""
    shown, *others = requests.row(at, each)
    title = title_changes(each.changes, each.names)
    hidden = (*names_in_request(each), *([phrase("Requested by {name}", name=each.requester)] if each.own else ()))
    why = find_reasons(asked, f"{title} {each.record.reason} {'' if each.own else each.requester}", hidden)
    return Cell(values=(shown,), notes=why), *others


SECTION: Final = Section[PortalContext](
    name=SEARCH,
    pages={SEARCH: PortalPage(view=show_search)},
    filters=frozenset({SEARCH}),
)
