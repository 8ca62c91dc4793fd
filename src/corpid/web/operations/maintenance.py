"""Maintenance in the console: nobody signs in while it is on (Spec 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.operations import readiness
from corpid.flows.operations.console import may
from corpid.rules.authentication.sign_in import StaleStep
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import ConsoleContext, Page, console_path, frame
from corpid.web.own_pages import Saved, Section
from corpid.web.pages.layout import FormView

if TYPE_CHECKING:
    from corpid.web.pages.views import View

MAINTENANCE: Final = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance(FormView):
    """The state of maintenance and its switch.

    Field: decision (on, off).
    """

    template: ClassVar[str] = "console/maintenance.html"
    heading: ClassVar[Phrase] = phrase("Maintenance")

    on: bool
    may_switch: bool
    saved: Phrase | None = None
    notes: tuple[Phrase, ...] = ()


async def maintenance(at: ConsoleContext) -> View:
    """The state of maintenance. Raises access.Forbidden."""
    return Maintenance(
        frame=frame(at, section=MAINTENANCE),
        action=console_path(at.web, MAINTENANCE),
        on=await readiness.maintenance(at.context.provider.registry, actor=at.actor),
        may_switch=may(at.actor, "write", "deployment"),
        saved=at.saved,
        notes=at.notes,
        errors=at.errors,
    )


async def switch(at: ConsoleContext) -> Saved:
    """Switch maintenance on or off, as the button said. Raises StaleStep, access.Forbidden."""
    if at.form.get("decision") not in {"on", "off"}:
        raise StaleStep
    is_on = at.form.get("decision") == "on"
    await readiness.switch_maintenance(at.context.provider.registry, on=is_on, actor=at.actor)
    at.context.provider.registry_cache.drop()
    return Saved("maintenance-on" if is_on else "maintenance-off", MAINTENANCE)


SECTION: Final = Section[ConsoleContext](
    pages={MAINTENANCE: Page(view=maintenance, submit=switch, leads_to=MAINTENANCE, fresh=True)},
    fields=frozenset({"decision"}),
    changes={
        "maintenance-on": phrase("Maintenance is on."),
        "maintenance-off": phrase("Maintenance is off."),
    },
)
