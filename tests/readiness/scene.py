"""A demo in a thread of its own, and the readiness check of a relying party against it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.readiness.cases import BASELINE, CASES
from corpid_dev.readiness.driver import Options, check
from tests import quick_start
from tests.interop.demonstration import demonstrated
from tests.readiness import broken_rp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpid_dev.demo.demo import Demo
    from corpid_dev.readiness.report import Report
    from corpid_dev.readiness.visitor import Marker
    from corpid_dev.relying_party.interfaces import Interface
    from tests.readiness.broken_rp import RelyingParty

PATIENCE: Final = 90.0
USER, ENTITY = "rina", "209900042K"


@dataclass(frozen=True, kw_only=True)
class RunningDemo:
    """A demo that answers on real sockets."""

    demo: Demo
    directory: Path

    @property
    def issuer(self) -> str:
        return self.demo.issuer

    def corpid(self, *words: str) -> None:
        """Run a command of the operator against the demo's directory, as docs/relying-parties.md says."""
        environment = {
            **os.environ,
            "CORPID_DATA_DIR": str(self.directory / "provider"),
            "CORPID_BASE_URL": self.issuer,
            "CORPID_GENERATIONS": self.demo.registration.interface.name,
            "CORPID_DEVELOPER_MODE": "true",
        }
        program = Path(sys.executable).with_name("corpid")
        quick_start.run((program, *words), env=environment, capture_output=True, timeout=PATIENCE, check=True)

    def apply(self, document: dict[str, Any]) -> None:
        file = self.directory / "applied.json"
        file.write_text(json.dumps(document))
        self.corpid("apply", str(file))

    def checked(self, url: str, only: Iterable[str] = CASES, *, marker: Marker | None = None, **options: Any) -> Report:
        """The report of a relying party that begins its login at this URL."""
        cases = [CASES[case_id] for case_id in dict.fromkeys((BASELINE.id, *only))]
        chosen = Options(
            url=url, developer=self.issuer, user=USER, entity=ENTITY, marker=marker, cases=cases, **options
        )
        return asyncio.run(check(chosen, progress=print))


@contextmanager
def demo(directory: Path, interface: Interface) -> Iterator[RunningDemo]:
    """A demo of one generation, on free ports."""
    with demonstrated(directory, interface=interface) as made:
        yield RunningDemo(demo=made, directory=directory)


def verdicts(report: Report) -> dict[str, str]:
    """What became of each case, without those that passed."""
    return {each.case.id: f"{each.verdict}: {each.finding.seen}" for each in report.results if each.verdict != "passed"}


@contextmanager
def broken(running: RunningDemo, **more: Any) -> Iterator[RelyingParty]:
    """A relying party that is registered at the demo, and has any one defect."""
    with broken_rp.running(issuer=running.issuer) as made:
        document = made.registration("HARBOUR-PERMIT")
        document["clients"][made.client_id] |= more
        running.apply(document)
        yield made
