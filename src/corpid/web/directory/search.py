"""Search in the portal (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.search import search_entity
from corpid.texts import phrase
from corpid.web.directory import requests, third_parties
from corpid.web.directory.access_list import ACCESS
from corpid.web.directory.member_texts import state_label
from corpid.web.directory.page_context import SEARCH, PortalContext, PortalPage
from corpid.web.directory.people import PEOPLE, PERSON
from corpid.web.pages.components import Cell, Paragraph, Part, Value, table
from corpid.web.sites import Section

if TYPE_CHECKING:
    from corpid.flows.directory.members import MemberSummary
    from corpid.rules.directory.records import Service
    from corpid.web.pages.views import View

_EACH: Final = 10
"""records of a kind"""
_CHARACTERS: Final = 100


async def show_search(at: PortalContext) -> View:
    """The page of a search, by kind."""
    text = at.query.get(SEARCH, "").strip()[:_CHARACTERS]
    found = await search_entity(at.registry, at.actor, at.entity, text, now=at.context.now, limit=_EACH)
    name = phrase("Name")
    tables: tuple[Part, ...] = (
        table(
            phrase("People"),
            (name, phrase("User name"), phrase("State")),
            (_person(at, each) for each in found.people.found),
        )
        if found.people.found
        else None,
        at.link(PEOPLE, phrase("Show all people who match"), q=text) if found.people.after else None,
        table(phrase("Services"), (phrase("Service"), phrase("Role")), (_service(at, each) for each in found.services))
        if found.services
        else None,
        table(
            phrase("Third parties"),
            third_parties.COLUMNS,
            (third_parties.row(at, each) for each in found.authorisations),
        )
        if found.authorisations
        else None,
        table(phrase("Requests"), requests.COLUMNS, (requests.row(at, each) for each in found.requests))
        if found.requests
        else None,
    )
    nothing = (
        phrase("Nothing found. Search for words of people, third parties, services or requests, in any order.")
        if text
        else phrase("Enter what you search for in the field above.")
    )
    heading = phrase("Search: {text}", text=text) if text else phrase("Search")
    return at.build_page(heading, *(tables if any(tables) else (Paragraph(nothing, look="empty"),)))


def _person(at: PortalContext, each: MemberSummary) -> tuple[Value, ...]:
    member = each.member
    link = at.link(f"{PERSON}/{member.membership.membership_id}", member.name_alone)
    return link, member.identity, state_label(member.state)


def _service(at: PortalContext, each: Service) -> tuple[Value, ...]:
    roles = tuple(at.link(ACCESS, role, each.name, service=each.service_id, role=role) for role in each.roles)
    return at.link(ACCESS, each.name, service=each.service_id), Cell(values=roles) if roles else None


SECTION: Final = Section[PortalContext](
    name=SEARCH,
    pages={SEARCH: PortalPage(view=show_search)},
    filters=frozenset({SEARCH}),
)
