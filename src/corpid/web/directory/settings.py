"""The settings of an organisation in the portal (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.directory.access_review import load_review_state
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import APPROVALS, ENTITY_STATUSES
from corpid.texts import phrase
from corpid.web.directory import access_review, administrators, provisioning_tokens, requests
from corpid.web.directory.page_context import SETTINGS, PortalContext, PortalPage, frame, portal_path
from corpid.web.pages.components import Facts, Heading, LinkList, Page, Paragraph
from corpid.web.pages.layout import Link
from corpid.web.sites import Section

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.pages.components import Value
    from corpid.web.pages.views import View


async def show_settings(at: PortalContext) -> View:
    """The settings of the entity that they act for."""
    entity, level = at.entity, at.actor.level

    def link(page: str, name: Phrase) -> Link:
        return Link(url=portal_path(at.web, page), text=name)

    links: list[tuple[Link, Value]] = [
        (link(administrators.ADMINISTRATORS, phrase("Administrators")), phrase("Who manages people and access here"))
    ]
    if level == "owner":
        links.append((link(requests.SETTING, phrase("Approvals")), APPROVALS[entity.approvals]))
    if level != "sub_administrator":
        state = await load_review_state(at.registry, at.actor, entity.entity_id)
        said = await access_review.describe_state(at, state)
        links.append((link(access_review.REVIEW, access_review.HEADING), said))
    if level == "owner":
        purpose = phrase("For the system of your organisation that keeps people up to date here")
        links.append((link(provisioning_tokens.TOKENS, provisioning_tokens.HEADING), purpose))
    facts: list[tuple[Phrase, Value]] = [
        (phrase("Name"), entity.name),
        (NUMBERS[entity.type], entity.registration_number),
    ]
    if entity.status:
        facts.append((phrase("Status in the register"), ENTITY_STATUSES[entity.status]))
    if level != "owner":
        facts.append((phrase("What needs approval"), APPROVALS[entity.approvals]))
    return Page(
        frame=frame(at, section=SETTINGS),
        heading=phrase("Settings"),
        parts=(
            LinkList(links=tuple(links)),
            Heading(text=phrase("Organisation")),
            Facts(facts=tuple(facts)),
            Paragraph(
                text=phrase("If something here is wrong, ask the operator of this service to correct it."), look="hint"
            ),
        ),
    )


SECTION: Final = Section[PortalContext](pages={SETTINGS: PortalPage(view=show_settings)})
