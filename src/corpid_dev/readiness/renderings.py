"""The readiness report as a page, as JSON and as JUnit XML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from corpid.rules.characters import printable
from corpid_dev.readiness.observation import Verdict
from corpid_dev.readiness.report import address

if TYPE_CHECKING:
    from corpid_dev.readiness.report import Report, Result

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
