"""The deployment in the console: overview and maintenance (D50, D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.operations import overview as flow
from corpid.flows.operations import readiness
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.oauth.errors import reason_of
from corpid.rules.server_processes import VERSION
from corpid.texts import Phrase, phrase
from corpid.web.operations.clients import client_path
from corpid.web.operations.keys import STATES
from corpid.web.operations.page_context import (
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    path_if_allowed,
    question,
    section_link,
)
from corpid.web.pages.charts import of_traffic
from corpid.web.pages.components import Label
from corpid.web.pages.layout import PageView, ViewPart
from corpid.web.sites import FormResult, Section

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.flows.operations.migration_report import ClientUse
    from corpid.flows.operations.overview import EngineStates
    from corpid.rules.diagnostics import Finding
    from corpid.web.pages.charts import Chart
    from corpid.web.pages.views import View

MOST: Final = 20
"""clients, and reasons, of a table"""
MAINTENANCE: Final = "maintenance"
_SWITCH: Final = "switch-maintenance"


class ClientCount(ViewPart, frozen=True, kw_only=True):
    """A client's sign-ins and refusals."""

    name: str
    """empty: requests that name no registered client"""
    url: str
    sign_ins: int
    refusals: int


class ReasonCount(ViewPart, frozen=True, kw_only=True):
    reason: str
    cause: str
    count: int


class SigningKeyRow(ViewPart, frozen=True, kw_only=True):
    kid: str
    state: Phrase
    signs_from: datetime | None
    retired: datetime | None


class ProcessLine(ViewPart, frozen=True, kw_only=True):
    host: str
    number: int
    address: str
    version: str
    started: datetime
    seen: datetime
    live: bool
    answers: bool
    odd_version: bool
    odd_settings: tuple[tuple[str, str], ...]
    """name and value of those that most processes have otherwise"""


class EngineLine(ViewPart, frozen=True, kw_only=True):
    """A part that the server uses, and its state."""

    name: Phrase
    engine: str
    state: Label


class Overview(PageView, frozen=True, kw_only=True):
    template: ClassVar[str] = "console/overview.html"
    heading: ClassVar[Phrase] = phrase("Overview")

    maintenance: bool
    findings: tuple[Finding, ...]
    week: tuple[Chart, Chart]
    quarter: tuple[Chart, Chart]
    clients: tuple[ClientCount, ...]
    """of 90 days, those with the most refusals first"""
    reasons: tuple[ReasonCount, ...]
    """of 7 days, the most frequent first"""
    keys: tuple[SigningKeyRow, ...]
    keys_page: str
    ending: tuple[tuple[ClientUse, str], ...]
    """with the page of the client"""
    not_ready: str
    """the part of the server that fails; empty: everything answers"""
    engines: tuple[EngineLine, ...]
    processes: tuple[ProcessLine, ...]


class Maintenance(PageView, frozen=True, kw_only=True):
    template: ClassVar[str] = "console/maintenance.html"
    heading: ClassVar[Phrase] = phrase("Maintenance")

    on: bool
    switch: str
    """the page that switches it; empty for those who may not"""


async def show_overview(at: ConsoleContext) -> View:
    """The overview of the deployment. Raises access.Forbidden."""
    zone = at.provider.policy.timezone
    found = await flow.overview(at.provider, at.actor, now=at.context.now, rules=at.web.client_rules)
    return Overview(
        frame=frame(at),
        maintenance=found.maintenance,
        findings=found.findings,
        week=of_traffic(found.week.points, "hour", name="week", zone=zone),
        quarter=of_traffic(found.quarter.points, "day", name="quarter", zone=zone),
        clients=tuple(
            [
                ClientCount(
                    name=each.name or each.client_id,
                    url=client_path(at, each.client_id) if each.name else "",
                    sign_ins=each.sign_ins,
                    refusals=each.refusals,
                )
                for each in found.quarter.clients[:MOST]
            ]
        ),
        reasons=tuple(
            ReasonCount(reason=each.reason, cause=reason_of(each.reason).value.cause, count=each.count)
            for each in found.week.reasons[:MOST]
        ),
        keys=tuple(
            SigningKeyRow(
                kid=each.kid,
                state=STATES[each.state],
                signs_from=at.moment(each.signs_from) if each.signs_from else None,
                retired=at.moment(each.retired_at) if each.retired_at else None,
            )
            for each in found.keys
            if each.state not in {"revoked", "retired"}
        ),
        keys_page=console_path(at.web, "keys"),
        ending=tuple((each, client_path(at, each.client_id)) for each in found.ending[:MOST]),
        not_ready=found.engines.not_ready,
        engines=_list_engines(found.engines),
        processes=tuple(
            ProcessLine(
                host=each.host,
                number=each.number,
                address=each.address,
                version=each.version,
                started=at.moment(each.started_at),
                seen=at.moment(each.seen_at),
                live=each.live,
                answers=each.answers,
                odd_version=VERSION in each.differs_in,
                odd_settings=tuple((name, each.settings.get(name, "")) for name in each.differs_in if name != VERSION),
            )
            for each in found.processes
        ),
    )


def _list_engines(found: EngineStates) -> tuple[EngineLine, ...]:
    answers, failing = Label(phrase("Answers")), Label(phrase("Does not answer"), "error")
    mail = Label(phrase("Sends")) if found.sends_mail else Label(phrase("Off"), "warning")
    return (
        EngineLine(
            name=phrase("Database"), engine=found.database, state=failing if found.not_ready == "database" else answers
        ),
        EngineLine(
            name=phrase("Short-lived state"),
            engine=found.transient,
            state=failing if found.not_ready == "short-lived state" else answers,
        ),
        EngineLine(name=phrase("E-mail"), engine="SMTP" if found.sends_mail else "", state=mail),
    )


async def show_maintenance(at: ConsoleContext) -> View:
    """The state of maintenance. Raises access.Forbidden."""
    return Maintenance(
        frame=frame(at, section=MAINTENANCE),
        on=await readiness.maintenance(at.registry, actor=at.actor),
        switch=path_if_allowed(at, _SWITCH),
    )


async def show_switch(at: ConsoleContext) -> View:
    """The question before maintenance is switched. Raises access.Forbidden."""
    on = await readiness.maintenance(at.registry, actor=at.actor)
    if on:
        heading, button = phrase("Turn maintenance off?"), phrase("Turn maintenance off")
        consequences = (phrase("People can sign in again."), phrase("Every running server follows within 5 seconds."))
    else:
        heading, button = phrase("Turn maintenance on?"), phrase("Turn maintenance on")
        consequences = (
            phrase("While maintenance is on, nobody can sign in except to this console."),
            phrase("Clients are asked to try again later. Every running server follows within 5 seconds."),
        )
    return question(
        at,
        MAINTENANCE,
        section_link(at, MAINTENANCE),
        heading,
        consequences,
        button,
        destroys=not on,
        decision="off" if on else "on",
    )


async def switch_maintenance(at: ConsoleContext) -> FormResult:
    """Switch maintenance on or off, as the button said.

    Raises InvalidInput, StaleStep, access.Forbidden.
    """
    if at.form.get("decision") not in {"on", "off"}:
        raise StaleStep
    is_on = at.form.get("decision") == "on"
    await readiness.switch_maintenance(at.registry, on=is_on, actor=actor_with_reason(at))
    return FormResult("maintenance-on" if is_on else "maintenance-off", MAINTENANCE)


SECTION: Final = Section[ConsoleContext](
    pages={
        "": ConsolePage(view=show_overview),
        MAINTENANCE: ConsolePage(view=show_maintenance),
        _SWITCH: ConsolePage(
            view=show_switch, submit=switch_maintenance, leads_to=MAINTENANCE, fresh=True, needs=("write", "deployment")
        ),
    },
    fields=frozenset({"decision", REASON}),
    changes={"maintenance-on": phrase("Maintenance is on."), "maintenance-off": phrase("Maintenance is off.")},
)
