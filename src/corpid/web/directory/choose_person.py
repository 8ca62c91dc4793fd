"""The choice of a person, for every page that is about one (D53, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.directory import members
from corpid.flows.directory.members import MemberFilter
from corpid.texts import Phrase
from corpid.web.directory.member_texts import STATES
from corpid.web.directory.page_context import portal_path
from corpid.web.directory.writing import await_page
from corpid.web.pages.access_texts import LEVELS
from corpid.web.pages.layout import Pager, PageView, ViewPart, pager_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.flows.directory.members import Member
    from corpid.web.directory.page_context import PortalContext
    from corpid.web.pages.layout import Frame, Link

FIND: Final = "find"
"""the parameter of what is searched for"""
AFTER: Final = "after"
"""the parameter of the place at which the list goes on"""
PERSON_CHOSEN: Final = "person"
"""the parameter that names the chosen membership"""
_PER_PAGE: Final = 25


class PersonChoice(ViewPart, frozen=True, kw_only=True):
    """A person in the list, and what leads on."""

    url: str
    """empty: they cannot be chosen"""
    name: str
    user_name: str
    tags: tuple[Phrase, ...] = ()
    why_not: Phrase | None = None


class ChoosePerson(PageView, frozen=True, kw_only=True):
    """The choice of a person, by search."""

    template: ClassVar[str] = "manage/choose_person.html"

    heading: Phrase
    action: str
    kept: tuple[tuple[str, str], ...] = ()
    """hidden fields: name and value"""
    find: str
    asked: Phrase
    lead: Phrase | None = None
    found: tuple[PersonChoice, ...]
    pager: Pager
    refused: Phrase | None = None
    """why the choice would be of no use"""
    links: tuple[Link, ...] = ()
    notes: tuple[Phrase, ...] = ()


async def choose_person(
    at: PortalContext,
    page: str,
    to: Callable[[Member], str | Phrase],
    *,
    frame: Frame,
    heading: Phrase,
    asked: Phrase,
    kept: tuple[tuple[str, str], ...] = (),
    lead: Phrase | None = None,
    links: tuple[Link, ...] = (),
) -> ChoosePerson:
    """The choice of a person on a page.

    `to` gives the address that a person leads to, or why they cannot be chosen. Raises NotFound for a place that is in
    no list. Source: D53, D61
    """
    find, after = at.query.get(FIND, "").strip(), at.query.get(AFTER, "")
    found = await await_page(
        members.list_members(
            at.context.provider.registry, MemberFilter(search=find), actor=at.actor, after=after, limit=_PER_PAGE
        )
    )
    here = portal_path(at.web, page)
    same = {**dict(kept), **({FIND: find} if find else {})}
    people = []
    for each in found.found:
        leads = to(each.member)
        people.append(
            PersonChoice(
                url="" if isinstance(leads, Phrase) else leads,
                name=each.member.name_alone,
                user_name=each.member.identity,
                tags=_tags(each.member, each.level),
                why_not=leads if isinstance(leads, Phrase) else None,
            )
        )
    return ChoosePerson(
        frame=frame,
        errors=at.errors,
        heading=heading,
        action=here,
        kept=kept,
        find=find,
        asked=asked,
        lead=lead,
        found=tuple(people),
        pager=pager_of(
            here, same, came=bool(after), after=found.after, name=AFTER, searched_on=len(people) < _PER_PAGE
        ),
        links=links,
        notes=at.notes,
    )


def _tags(found: Member, level: str) -> tuple[Phrase, ...]:
    levels = tuple(text for name, text in LEVELS.items() if name == level)
    return levels if found.state == "active" else (STATES[found.state], *levels)
