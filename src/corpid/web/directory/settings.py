"""The settings of an organisation in the portal (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.directory.access_review import load_review_state
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import APPROVALS, ENTITY_STATUSES
from corpid.texts import phrase
from corpid.web.directory import access_review, administrators, provisioning_tokens, requests
from corpid.web.directory.page_context import SETTINGS, PortalContext, PortalPage, frame, portal_path
from corpid.web.pages.layout import PageView, ViewPart
from corpid.web.sites import Section

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.pages.views import View


class SettingLine(ViewPart, frozen=True, kw_only=True):
    """A page of settings, and its state."""

    url: str
    name: Phrase
    state: Phrase


class Settings(PageView, frozen=True, kw_only=True):
    """The settings that the reader may open, and the organisation's record."""

    template: ClassVar[str] = "manage/settings.html"
    heading: ClassVar[Phrase] = phrase("Settings")

    lines: tuple[SettingLine, ...]
    facts: tuple[tuple[Phrase, Phrase | str], ...]


async def show_settings(at: PortalContext) -> View:
    """The settings of the entity that they act for."""
    entity, level = at.entity, at.actor.level

    def line(page: str, name: Phrase, state: Phrase) -> SettingLine:
        return SettingLine(url=portal_path(at.web, page), name=name, state=state)

    lines = [
        line(
            administrators.ADMINISTRATORS,
            administrators.Administrators.heading,
            phrase("Who manages people and access here"),
        )
    ]
    if level == "owner":
        lines.append(line(requests.SETTING, phrase("Approvals"), APPROVALS[entity.approvals]))
    if level != "sub_administrator":
        state = await load_review_state(at.registry, at.actor, entity.entity_id)
        lines.append(
            line(
                access_review.REVIEW,
                access_review.AccessReview.heading,
                await access_review.describe_state(at, state),
            )
        )
    if level == "owner":
        lines.append(
            line(
                provisioning_tokens.TOKENS,
                provisioning_tokens.Tokens.heading,
                phrase("For the system of your organisation that keeps people up to date here"),
            )
        )
    facts: list[tuple[Phrase, Phrase | str]] = [
        (phrase("Name"), entity.name),
        (NUMBERS[entity.type], entity.registration_number),
    ]
    if entity.status:
        facts.append((phrase("Status in the register"), ENTITY_STATUSES[entity.status]))
    if level != "owner":
        facts.append((phrase("What needs approval"), APPROVALS[entity.approvals]))
    return Settings(frame=frame(at, section=SETTINGS), lines=tuple(lines), facts=tuple(facts))


SECTION: Final = Section[PortalContext](pages={SETTINGS: PortalPage(view=show_settings)})
