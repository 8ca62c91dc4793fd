"""The console's overview: what the deployment does, and what needs attention (D53)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from corpid.flows.operations import overview as flow
from corpid.rules.oauth.errors import reason_of
from corpid.texts import Phrase, phrase
from corpid.web.operations.keys import STATES
from corpid.web.operations.page_context import ConsoleContext, Page, console_path, frame
from corpid.web.own_pages import Section
from corpid.web.pages.charts import of_traffic
from corpid.web.pages.layout import PageView

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from corpid.flows.operations.migration_report import ClientUse
    from corpid.flows.operations.overview import Engines, Traffic
    from corpid.rules.diagnostics import Finding
    from corpid.web.pages.charts import Chart
    from corpid.web.pages.views import View

MOST: Final = 20
"""clients, and reasons, of a table"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCount:
    """A client's sign-ins and refusals."""

    name: str
    """empty: requests that name no registered client"""
    url: str
    sign_ins: int
    refusals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """The refusals for one reason."""

    reason: str
    cause: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShown:
    """A signing key and its dates."""

    kid: str
    state: Phrase
    signs_from: datetime
    retired: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(PageView):
    """The overview of the deployment."""

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
    keys: tuple[KeyShown, ...]
    keys_page: str
    ending: tuple[tuple[ClientUse, str], ...]
    """with the page of the client"""
    engines: Engines
    started: datetime
    saved: Phrase | None = None


async def overview(at: ConsoleContext) -> View:
    """The overview of the deployment. Raises access.Forbidden."""
    zone = at.context.provider.policy.timezone
    found = await flow.overview(at.context.provider, at.actor, now=at.context.now, rules=at.web.client_rules)
    return Overview(
        frame=frame(at),
        maintenance=found.maintenance,
        findings=found.findings,
        week=of_traffic(found.week.points, "hour", name="week", zone=zone),
        quarter=of_traffic(found.quarter.points, "day", name="quarter", zone=zone),
        clients=tuple(_clients(at, found.quarter)),
        reasons=tuple(
            ReasonCount(reason=each.reason, cause=reason_of(each.reason).value.cause, count=each.count)
            for each in found.week.reasons[:MOST]
        ),
        keys=tuple(
            KeyShown(
                kid=each.kid,
                state=STATES[each.state],
                signs_from=at.moment(each.signs_from),
                retired=at.moment(each.retired_at) if each.retired_at else None,
            )
            for each in found.keys
            if each.state not in {"revoked", "retired"}
        ),
        keys_page=console_path(at.web, "keys"),
        ending=tuple((each, _client_page(at, each.client_id)) for each in found.ending[:MOST]),
        engines=found.engines,
        started=at.moment(found.engines.started_at),
        saved=at.saved,
    )


def _clients(at: ConsoleContext, traffic: Traffic) -> Sequence[ClientCount]:
    return [
        ClientCount(
            name=each.name or each.client_id,
            url=_client_page(at, each.client_id) if each.name else "",
            sign_ins=each.sign_ins,
            refusals=each.refusals,
        )
        for each in traffic.clients[:MOST]
    ]


def _client_page(at: ConsoleContext, client_id: str) -> str:
    return console_path(at.web, f"client/{quote(client_id, safe='')}")


SECTION: Final = Section[ConsoleContext](pages={"": Page(view=overview)})
