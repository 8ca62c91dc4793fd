"""Maintenance in the console: nobody signs in while it is on (Spec 7, D50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.operations import readiness
from corpid.rules.authentication.sign_in import StaleStep
from corpid.texts import Phrase, phrase
from corpid.web.operations.confirm import question
from corpid.web.operations.page_context import ConsoleContext, ConsolePage, console_path, frame, path_if_allowed
from corpid.web.operations.reasons import REASON, acting
from corpid.web.pages.layout import Link, PageView
from corpid.web.sites import FormResult, Section

if TYPE_CHECKING:
    from corpid.web.pages.views import View

MAINTENANCE: Final = "maintenance"
_SWITCH: Final = "switch-maintenance"


class Maintenance(PageView, frozen=True, kw_only=True):
    """The state of maintenance."""

    template: ClassVar[str] = "console/maintenance.html"
    heading: ClassVar[Phrase] = phrase("Maintenance")

    on: bool
    switch: str
    """the page that switches it; empty for those who may not"""
    saved: Phrase | None = None


async def maintenance(at: ConsoleContext) -> View:
    """The state of maintenance. Raises access.Forbidden."""
    return Maintenance(
        frame=frame(at, section=MAINTENANCE),
        on=await readiness.maintenance(at.context.provider.registry, actor=at.actor),
        switch=path_if_allowed(at, _SWITCH),
        saved=at.saved,
    )


async def switch(at: ConsoleContext) -> View:
    """The question before maintenance is switched. Raises access.Forbidden."""
    on = await readiness.maintenance(at.context.provider.registry, actor=at.actor)
    if on:
        heading, button = phrase("Turn maintenance off?"), phrase("Turn maintenance off")
        consequences = (
            phrase("People can sign in again."),
            phrase("Every running server follows within 5 seconds."),
        )
    else:
        heading, button = phrase("Turn maintenance on?"), phrase("Turn maintenance on")
        consequences = (
            phrase("While maintenance is on, nobody can sign in except to this console."),
            phrase("Clients are asked to try again later. Every running server follows within 5 seconds."),
        )
    return question(
        at,
        MAINTENANCE,
        Link(url=console_path(at.web, MAINTENANCE), text=Maintenance.heading),
        heading,
        consequences,
        button,
        destroys=not on,
        decision="off" if on else "on",
    )


async def save_switch(at: ConsoleContext) -> FormResult:
    """Switch maintenance on or off, as the button said.

    Raises InvalidInput, StaleStep, access.Forbidden.
    """
    if at.form.get("decision") not in {"on", "off"}:
        raise StaleStep
    is_on = at.form.get("decision") == "on"
    await readiness.switch_maintenance(at.context.provider.registry, on=is_on, actor=acting(at))
    at.context.provider.registry_cache.drop()
    return FormResult("maintenance-on" if is_on else "maintenance-off", MAINTENANCE)


SECTION: Final = Section[ConsoleContext](
    pages={
        MAINTENANCE: ConsolePage(view=maintenance),
        _SWITCH: ConsolePage(
            view=switch, submit=save_switch, leads_to=MAINTENANCE, fresh=True, needs=("write", "deployment")
        ),
    },
    fields=frozenset({"decision", REASON}),
    changes={
        "maintenance-on": phrase("Maintenance is on."),
        "maintenance-off": phrase("Maintenance is off."),
    },
)
