"""What lies under deploy/ speaks of the program as it is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from corpid.rules.oauth import discovery, errors
from corpid.rules.oauth.generations import GENERATIONS
from corpid.settings import Settings
from corpid.settings.secret_files import KNOWN
from corpid.web import routes
from corpid.web.telemetry.metrics import Metrics
from tests.cli.conftest import program
from tests.house.source import ROOT, listed
from tests.house.test_documents import complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY = ROOT / "deploy"
FILES = {path.relative_to(DEPLOY).as_posix(): path.read_text(encoding="utf-8") for path in DEPLOY.rglob("*.*")}
FILES["Containerfile"] = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
ALERTS = yaml.safe_load(FILES["prometheus/alerts.yml"])
DASHBOARD = json.loads(FILES["grafana/corpid.json"])
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def expressions() -> Iterator[str]:
    """Every PromQL expression."""
    for group in ALERTS["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["query"]["query"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query")


def exported() -> dict[str, set[str]]:
    """Name of a series → names of its labels."""
    metrics = Metrics()
    metrics.request("/", 400, "invalid_request", 0.001, "parameter_missing")
    metrics._keys.labels("active")
    found: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.name.startswith(family.name) and sample.name.removeprefix(family.name) in SUFFIXES[family.type]:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_alerts_and_dashboard_name_only_metrics_and_labels_that_exist() -> None:
    series = exported()
    wrong = []
    for expression in expressions():
        for name, _, selected in re.findall(r"(corpid_\w+)(\{([^}]*)\})?", expression):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selected)) - {"instance", "job"}
            if not labels <= series.get(name, set()) or name not in series:
                wrong.append(f"{name}{{{selected}}}")
        for by in re.findall(r"by \(([^)]*)\)", expression):
            known = {label for labels in series.values() for label in labels} | {"instance"}
            wrong += [by] if set(by.replace(" ", "").split(",")) - known else []
    assert not wrong, listed(wrong)


def test_the_dashboard_shows_every_metric() -> None:
    text = "\n".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    families = [family.name for family in Metrics().registry.collect()]
    assert families
    assert [name for name in families if name not in text] == []


def test_alerts_name_only_endpoints_and_reasons_that_exist() -> None:
    """A rule about a name that no request ever has would never fire."""
    table = [route.path for route in routes.table(tuple(GENERATIONS.values()))] + ["/healthz", "/readyz"]
    codes = {each.code for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "code")}
    wrong = []
    for expression in expressions():
        for label, operator, value in re.findall(r"(endpoint|reason)(=~|!~|!=|=)\"([^\"]*)\"", expression):
            names: Any = table if label == "endpoint" else codes
            found = any(re.fullmatch(value, name) for name in names) if "~" in operator else value in names
            wrong += [] if found or not value else [f"{label}{operator}{value}"]
    assert discovery.TOKEN_PATH in table
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("name", FILES)
def test_only_settings_that_exist_are_named(name: str) -> None:
    known = {f"CORPID_{field.upper()}" for field in KNOWN} | {"CORPID_CONFIG"}
    assert set(re.findall(r"CORPID_[A-Z_]+", FILES[name])) <= known


def test_only_commands_that_exist_are_run() -> None:
    corpid = program()
    units = "\n".join(text for name, text in FILES.items() if name.endswith(".service"))
    lines = re.findall(r"^ExecStart\w*=\S*/(corpid .+)$", units, flags=re.MULTILINE)
    entry, command = (
        json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", FILES["Containerfile"], re.MULTILINE)
    )
    assert entry[1:] == ["-m", "corpid"]
    lines.append(" ".join(["corpid", *command]))
    lines += re.findall(r"`(corpid [^`]+)`", "\n".join(FILES.values()))
    assert len(lines) >= 3
    wrong = [words for line in lines if (words := complaint(line, corpid))]
    assert not wrong, listed(wrong)


def test_the_container_has_no_secret_and_no_root() -> None:
    text = FILES["Containerfile"]
    copied = re.findall(r"^COPY (?!--from)(\S+)", text, flags=re.MULTILINE)
    assert copied == ["${PACKAGES}", "src/corpid", "examples/directory.yaml"]
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert {"requirements/*.txt", *copied[1:]} <= sent
    packages = re.findall(r"PACKAGES=(\S+)", text)
    assert packages == ["requirements/tracing.txt", "requirements/runtime.txt"]
    assert all((ROOT / path).exists() for path in packages)
    assert re.findall(r"^USER (.+)$", text, flags=re.MULTILINE) == ["10001:10001"]
    assert "--require-hashes" in text
    assert not re.search(r"(ARG|ENV)[^\n]*(KEY|SECRET|PASSWORD|TOKEN)", text)


def test_the_service_may_read_what_tells_of_a_power_loss() -> None:
    """DESIGN "What each engine promises": without the machine's boot id, what was lost would not be noticed."""
    directives = [line for line in FILES["corpid.service"].splitlines() if not line.startswith("#")]
    assert "NoNewPrivileges=yes" in directives
    assert not any(line.startswith("ProcSubset=") for line in directives)


def test_stopping_may_take_as_long_as_the_settings_say() -> None:
    found = re.search(r"^TimeoutStopSec=(\d+)$", FILES["corpid.service"], flags=re.MULTILINE)
    assert found is not None
    longest = sum(Settings.model_fields[name].default for name in ("drain_seconds", "drain_delay_seconds"))
    assert int(found[1]) > longest
