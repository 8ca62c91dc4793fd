"""The alert rules and the dashboard, by Prometheus itself: what its own tool says, and what it finds in a scrape."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.rules.diagnostics import OLD_KEY_DAYS
from tests.deploy.prometheus import PrometheusServer, promtool
from tests.house.source import ROOT
from tests.house.test_deploy import DASHBOARD, expressions
from tests.machine import free_port
from tests.web.processes import Running, command, serving
from tests.web.served import served
from tests.web.test_traces import key_set, signs_in, with_keys_at
from tests.web.test_workers import until

if TYPE_CHECKING:
    from pathlib import Path

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"


@pytest.mark.full
def test_the_alert_rules_are_what_prometheus_understands_and_fire_when_they_should() -> None:
    checked = promtool("check", "rules", RULES)
    assert (checked.returncode, checked.stderr) == (0, "")
    tested = promtool("test", "rules", ROOT / "tests" / "deploy" / "alerts_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_test() -> None:
    names = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    tests = (ROOT / "tests" / "deploy" / "alerts_test.yml").read_text(encoding="utf-8")
    assert len(names) > 5
    assert [name for name in names if name not in tests] == []


def test_an_old_signing_key_is_told_by_the_alert_when_the_doctor_tells_it() -> None:
    [days] = re.findall(r'key="active"}\) > (\d+) \* 86400', RULES.read_text(encoding="utf-8"))
    assert int(days) == OLD_KEY_DAYS > 365, "a year is what docs/operate.md asks for"


@pytest.mark.full
def test_every_panel_shows_something_and_every_rule_evaluates_on_a_scrape_of_the_real_thing(tmp_path: Path) -> None:
    """Two workers, asked as one; a key set by URL, a refusal, and a signing key that waits for its turn."""
    metrics = f"127.0.0.1:{free_port()}"
    with served(key_set) as keys:
        with_keys_at(f"http://127.0.0.1:{keys.port}/keys", tmp_path)
        assert command(tmp_path, "key", "rotate", developer_mode="true").returncode == 0
        with (
            serving(tmp_path, developer_mode="true", metrics_address=metrics, workers="2") as running,
            PrometheusServer(metrics, RULES) as prometheus,
        ):
            busy(running, prometheus)
            panels = {panel["title"]: panel["targets"] for panel in DASHBOARD["panels"]}
            empty = [
                title for title, targets in panels.items() for each in targets if not shown(prometheus, each["expr"])
            ]
            assert empty == []
            names = {name for text in expressions() for name in re.findall(r"corpid_\w+", text)}
            assert [name for name in sorted(names) if not prometheus.value(name)] == []
            until(lambda: all(rule["lastEvaluation"] > "1" for rule in rules(prometheus)))
            assert [rule for rule in rules(prometheus) if (rule["health"], rule.get("lastError")) != ("ok", None)] == []


def busy(running: Running, prometheus: PrometheusServer) -> None:
    """A sign-in between two scrapes, and refusals until Prometheus has seen both."""
    until(lambda: prometheus.value("corpid_build_info"))
    asyncio.run(signs_in(running))

    def seen() -> bool:
        refused = httpx.post(f"{running.base_url}/mga/sps/oauth/oauth20/token", trust_env=False)
        assert refused.status_code == 400
        grown = ('corpid_requests_total{reason!=""}', "corpid_client_key_fetch_seconds_count")
        return all(prometheus.value(f"increase({name}[1m]) > 0") for name in grown)

    until(seen)


def shown(prometheus: PrometheusServer, expression: str) -> list[object]:
    """What a panel shows of every node: numbers, not NaN."""
    asked = expression.replace("$instance", ".*").replace("$__rate_interval", "1m")
    return [series for series in prometheus.value(asked) if series["value"][1] != "NaN"]


def rules(prometheus: PrometheusServer) -> list[dict[str, str]]:
    return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
