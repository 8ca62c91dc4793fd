"""The readiness check as a demo's own pages start it (D66)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from corpid_dev.developer_api import NotDone
from corpid_dev.flows.readiness_runs import CaseRow, RunError, RunRequest, RunResults, clip_text
from corpid_dev.readiness import report as renderings
from corpid_dev.readiness.cases import CASES
from corpid_dev.readiness.driver import Options, check
from corpid_dev.readiness.report import ReadinessError, Report
from corpid_dev.readiness.visitor import Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from corpid_dev.readiness.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """A runner that asks the developer API of its own demo.

    It opens whatever address is asked for, so only a demo that nobody else reaches has one.
    """

    cases: Sequence[Case] = tuple(CASES.values())
    tls: SSLContext | None = None
    """trusts the demo's own authority, too; None: the usual ones alone"""

    async def __call__(self, asked: RunRequest, progress: Callable[[str], None]) -> RunResults:
        """Check a relying party. Raises RunError."""
        options = Options(
            url=asked.url,
            developer=asked.issuer,
            user=asked.user,
            entity=asked.entity,
            marker=marker_of(asked.signed_in),
            cases=self.cases,
            tls=self.tls,
        )
        try:
            report = await check(options, progress=progress)
        except (NotDone, ReadinessError) as error:
            raise RunError(str(error)) from None
        return outcome_of(report)


def marker_of(signed_in: str) -> Marker | None:
    """The sign of a session, by address or by text."""
    if not signed_in:
        return None
    is_address = signed_in.startswith(("/", "http://", "https://"))
    return Marker(url=signed_in) if is_address else Marker(text=signed_in)


def outcome_of(report: Report) -> RunResults:
    """A report as rows and files, what needs work first."""
    ranked = sorted(report.results, key=lambda each: renderings.ORDER.index(each.verdict))
    return RunResults(
        sentence=report.sentence(),
        rows=tuple(
            CaseRow(
                verdict=each.verdict.value,
                case=each.case.id,
                title=each.case.title,
                seen=clip_text(each.finding.seen),
                fix=each.case.fix,
            )
            for each in ranked
        ),
        files=MappingProxyType(
            {
                "html": renderings.html(report),
                "json": renderings.json(report),
                "xml": renderings.junit(report),
            }
        ),
    )
