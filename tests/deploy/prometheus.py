"""A real Prometheus, from Debian's package, on a port and in a directory of its own."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import httpx
import yaml

from tests import engines

if TYPE_CHECKING:
    from pathlib import Path

_PROMETHEUS: Final = shutil.which("prometheus")
_PROMTOOL: Final = shutil.which("promtool")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool and wait for it."""
    program = engines._required(_PROMTOOL, "Prometheus")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


class PrometheusServer(engines._Server):
    """Scrapes one address every second, as the job corpid, and evaluates rules."""

    def __init__(self, scraped: str, rules: Path) -> None:
        self._program: Final = engines._required(_PROMETHEUS, "Prometheus")
        super().__init__()
        self._configuration: Final = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "corpid", "static_configs": [{"targets": [scraped]}]}],
        }

    def ask(self, path: str, **parameters: str) -> Any:
        """What its API says; nothing but success."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}"
        answer = httpx.get(url, params=parameters, trust_env=False).json()
        assert (answer["status"], answer.get("warnings")) == ("success", None), (parameters, answer)
        return answer["data"]

    def value(self, query: str) -> list[Any]:
        """The series of an expression at this moment, each with its labels and value."""
        found: list[Any] = self.ask("query", query=query)["result"]
        return found

    def _launch(self) -> subprocess.Popen[bytes]:
        file = self.directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(self._configuration), encoding="utf-8")
        place = (f"--web.listen-address=127.0.0.1:{self.port}", f"--storage.tsdb.path={self.directory / 'data'}")
        return self._run([self._program, f"--config.file={file}", "--log.level=warn", *place])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/-/ready", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False
