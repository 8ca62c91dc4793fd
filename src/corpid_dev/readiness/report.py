"""The readiness report as records, and as JSON.

The readiness report as a page, as JSON and as JUnit XML.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from corpid.rules.characters import printable
from corpid_dev.readiness.observation import Call, Finding, Observation, Verdict

if TYPE_CHECKING:
    from corpid_dev.readiness.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case, and what became of it."""

    case: Case
    finding: Finding
    observation: Observation
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The verdict that the finding gives."""
        return self.finding.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results for one relying party."""

    url: str
    issuer: str
    client_id: str
    marker: str
    """how a session was recognised"""
    user: str
    at: float
    seconds: float
    results: tuple[Result, ...]

    @property
    def failed(self) -> bool:
        """True if a case failed."""
        return any(each.verdict is Verdict.FAILED for each in self.results)

    @property
    def when(self) -> datetime:
        """The start of the check, in UTC."""
        return datetime.fromtimestamp(self.at, UTC).replace(microsecond=0)

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of cases with each verdict."""
        found = Counter(each.verdict for each in self.results)
        return {verdict: found[verdict] for verdict in Verdict}

    def sentence(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count)

    @property
    def ranked(self) -> list[Result]:
        """The results, what needs work first."""
        return sorted(self.results, key=lambda each: ORDER.index(each.verdict))

    def file(self, kind: str) -> str:
        """The report as html, json or xml."""
        return {"html": html, "json": json, "xml": junit}[kind](self)

    def members(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "relying_party": self.url,
            "issuer": self.issuer,
            "client_id": self.client_id,
            "session_recognised_by": self.marker,
            "user": self.user,
            "at": self.when.isoformat(),
            "seconds": round(self.seconds, 3),
            "summary": {verdict.value.replace(" ", "_"): count for verdict, count in self.counts.items()},
            "cases": [_result(each) for each in self.results],
        }


def _result(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "id": case.id,
        "title": case.title,
        "verdict": result.verdict.value.replace(" ", "_"),
        "seen": result.finding.seen,
        "fix": case.fix,
        "sources": [{"name": each.name, "url": each.url} for each in case.sources],
        "seconds": round(result.seconds, 3),
        "pages": [
            {"url": address(page.url), "status": page.status, "heading": page.heading, "session": page.session}
            for sign_in in result.observation.sign_ins
            for page in (*((sign_in.login,) if sign_in.login else ()), *sign_in.pages)
        ],
        "calls": [_call(each) for each in result.observation.calls],
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "exchange": call.exchange_id,
        "endpoint": call.endpoint,
        "status": call.status,
        "error": call.error,
        "orders": list(call.orders),
    }


def address(url: str) -> str:
    """A URL without its query, which may hold a code."""
    return url.partition("?")[0].partition("#")[0]


SUITE: Final = "corpid rp-check"
ORDER: Final = (Verdict.FAILED, Verdict.WARNED, Verdict.NOT_JUDGED, Verdict.PASSED)
"""of the page's sections: what needs work comes first"""
HEADINGS: Final = {
    Verdict.FAILED: "Failed",
    Verdict.WARNED: "Worth a look",
    Verdict.NOT_JUDGED: "Could not be judged",
    Verdict.PASSED: "Passed",
}


def html(report: Report) -> str:
    """One file without scripts, and without requests to anybody."""
    environment = Environment(
        loader=PackageLoader("corpid_dev", "demo/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["address"] = address
    sections = [
        (verdict, HEADINGS[verdict], [each for each in report.results if each.verdict is verdict]) for verdict in ORDER
    ]
    return environment.get_template("readiness.html").render(report=report, sections=sections)


def json(report: Report) -> str:
    """Everything in the report, as JSON."""
    return msgspec.json.format(msgspec.json.encode(report.members()), indent=2).decode() + "\n"


def junit(report: Report) -> str:
    """The format that continuous integration reads; one test for each case."""
    counts = report.counts
    numbers = {
        "tests": str(len(report.results)),
        "failures": str(counts[Verdict.FAILED]),
        "errors": "0",
        "skipped": str(counts[Verdict.NOT_JUDGED]),
        "time": f"{report.seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", numbers)
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": SUITE, **numbers, "timestamp": report.when.replace(tzinfo=None).isoformat()}
    )
    for each in report.results:
        _test(suite, each)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _test(suite: ElementTree.Element, result: Result) -> None:
    case = result.case
    test = ElementTree.SubElement(
        suite, "testcase", {"classname": SUITE, "name": f"{case.id}: {case.title}", "time": f"{result.seconds:.3f}"}
    )
    seen = printable(result.finding.seen)
    match result.verdict:
        case Verdict.FAILED:
            failure = ElementTree.SubElement(test, "failure", {"message": seen, "type": case.id})
            failure.text = f"How to fix: {case.fix}\nSource: {'; '.join(each.name for each in case.sources)}"
        case Verdict.NOT_JUDGED:
            ElementTree.SubElement(test, "skipped", {"message": seen})
        case Verdict.WARNED:
            ElementTree.SubElement(test, "system-out").text = f"Worth a look: {seen}. {case.fix}"
        case Verdict.PASSED:
            pass
