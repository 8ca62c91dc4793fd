"""The choice of the entity that a person administers (D54)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.entity_selection import QUERY_CHARACTERS
from corpid.flows.directory import portal
from corpid.rules.directory.entity_choice import NUMBERS, STATUSES, search_words
from corpid.texts import phrase
from corpid.web.directory.page_context import (
    ORGANISATION,
    PortalContext,
    PortalPage,
    bare_frame,
    choosing,
    frame,
    next_page,
    portal_path,
)
from corpid.web.pages.responses import see_other
from corpid.web.pages.views import Choice, ChooseEntity, Problem
from corpid.web.sites import FormResult, Section, first_page, ways_out

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.directory.records import Entity
    from corpid.web.pages.views import View


async def organisation(at: PortalContext) -> View | Response:
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
    found = [each for each in mine if all(word in _searched(each) for word in words)]
    here = portal_path(at.web, ORGANISATION)
    return ChooseEntity(
        frame=frame(at, section=ORGANISATION) if visit.entity else bare_frame(at),
        action=portal_path(at.web, choosing(next_page(at))),
        search_action=here,
        choices=tuple(_choice(each, chosen=each == visit.entity) for each in found),
        total=len(found),
        query=query,
        errors=at.errors,
    )


async def choose(at: PortalContext) -> FormResult:
    """Choose the entity that was sent. Raises InvalidInput, StaleStep. Source: D54"""
    await portal.choose_entity(at.context, at.visit, at.form.get("entity", ""))
    return FormResult("", next_page(at))


def _searched(entity: Entity) -> str:
    return f"{entity.name} {entity.registration_number}".casefold()


def _choice(entity: Entity, *, chosen: bool) -> Choice:
    return Choice(
        id=entity.entity_id,
        name=entity.name,
        number=entity.registration_number,
        number_name=NUMBERS[entity.type],
        status=STATUSES[entity.status] if entity.status else None,
        preselected=chosen,
    )


SECTION: Final = Section[PortalContext](
    pages={ORGANISATION: PortalPage(view=organisation, submit=choose, field="entity")},
    fields=frozenset({"entity", "query"}),
    filters=frozenset({"query"}),
)
