"""The settings of an organisation in the portal (D53)."""

from __future__ import annotations

from typing import Final

from corpid.flows.directory import approvals
from corpid.flows.directory.access_review import load_review_state
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import APPROVALS, ENTITY_STATUSES
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.directory import access_review, administrators, provisioning_tokens
from corpid.web.directory.page_context import APPROVALS_SETTING, SETTINGS, PortalContext, PortalPage
from corpid.web.pages.components import Facts, Form, Heading, Link, LinkList, Paragraph, Radios, Value, View
from corpid.web.sites import FormResult, NotFound, Section


async def show_settings(at: PortalContext) -> View:
    """The settings of the entity that they act for."""
    entity, level = at.entity, at.actor.level

    links: list[tuple[Link, Value]] = [
        (at.link(administrators.ADMINISTRATORS, phrase("Administrators")), phrase("Who manages people and access here"))
    ]
    if level == "owner":
        links.append((at.link(APPROVALS_SETTING, phrase("Approvals")), APPROVALS[entity.approvals]))
    if level != "sub_administrator":
        state = await load_review_state(at.registry, at.actor, entity.entity_id)
        said = await access_review.describe_state(at, state)
        links.append((at.link(access_review.REVIEW, access_review.HEADING), said))
    if level == "owner":
        purpose = phrase("For the system of your organisation that keeps people up to date here")
        links.append((at.link(provisioning_tokens.TOKENS, provisioning_tokens.HEADING), purpose))
    facts: list[tuple[Phrase, Value]] = [
        (phrase("Name"), entity.name),
        (NUMBERS[entity.type], entity.registration_number),
    ]
    if entity.status:
        facts.append((phrase("Status in the register"), ENTITY_STATUSES[entity.status]))
    if level != "owner":
        facts.append((phrase("What needs approval"), APPROVALS[entity.approvals]))
    return at.build_page(
        phrase("Settings"),
        LinkList(links=tuple(links)),
        Heading(phrase("Organisation")),
        Facts(tuple(facts)),
        Paragraph(phrase("If something here is wrong, ask the operator of this service to correct it."), look="hint"),
    )


async def show_setting(at: PortalContext) -> View:
    """The entity's choice of which changes need approval; for owners."""
    if at.actor.level != "owner":
        raise NotFound
    lower = phrase("Only if you reduce approval: that itself needs approval.")
    return at.build_page(
        phrase("Which changes need approval"),
        phrase(
            "A change that needs approval takes effect when another administrator has approved it. After 14 days "
            "without a decision it expires."
        ),
        Form(
            parts=(
                Radios(
                    name="approvals",
                    legend=phrase("What needs approval"),
                    hint=phrase("This needs at least two people who can approve: owners or administrators."),
                    options=tuple((value, text, None) for value, text in APPROVALS.items()),
                    value=at.form.get("approvals", at.entity.approvals),
                ),
            ),
            reason=None if at.entity.approvals == "none" else lower,
            button=phrase("Save"),
        ),
    )


async def save_setting(at: PortalContext) -> FormResult:
    """Change which changes need approval, or request it. Raises InvalidInput. Source: D55"""
    if at.actor.level != "owner":
        raise NotFound
    chosen = next((value for value in APPROVALS if value == at.form.get("approvals", "")), None)
    if chosen is None:
        raise InvalidInput(phrase("Choose one of these."), field="approvals")
    if chosen == at.entity.approvals:
        return FormResult("", SETTINGS)
    if await approvals.lacks_approvers(at.registry, at.entity, chosen):
        raise InvalidInput(
            phrase("At least two people are needed who can approve: appoint another owner or administrator first."),
            field="approvals",
        )
    at.reason(needed=approvals.lowers_approvals(at.entity, chosen))
    return await at.submit_changes(
        [approvals.plan_choice(at.entity, chosen)], FormResult("approvals-changed", SETTINGS)
    )


SECTION: Final = Section[PortalContext](
    name=SETTINGS,
    pages={
        SETTINGS: PortalPage(view=show_settings),
        APPROVALS_SETTING: PortalPage(view=show_setting, submit=save_setting, fresh=True),
    },
    fields=frozenset({"reason", "approvals"}),
    changes={"approvals-changed": phrase("The approval setting changes.")},
)
