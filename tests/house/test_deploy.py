"""What lies under deploy/ speaks of the program as it is."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from corpid.flows.operations.readiness import PARTS
from corpid.rules.oauth import discovery, errors
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Reason
from corpid.settings import KNOWN, Settings
from corpid.web import routes
from corpid.web.telemetry.metrics import Metrics
from tests.cli.conftest import program
from tests.house.source import KIT, ROOT, documents, listed, modules
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
    metrics._ready.labels("database")
    metrics.task("invitations", failing=False)
    metrics._mail_pause.labels("invitations")
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
    codes = {each.code for each in _error_classes() if hasattr(each, "code")}
    names: dict[tuple[str, str], Any] = {
        ("corpid_refusals_total", "reason"): {reason.code for reason in Reason},
        ("corpid_refusals_total", "error"): codes,
        ("corpid_requests_total", "reason"): codes,
        ("corpid_requests_total", "endpoint"): table,
        ("corpid_request_seconds_bucket", "endpoint"): table,
        ("corpid_ready", "part"): PARTS,
    }
    wrong = []
    for expression in expressions():
        for metric, selected in re.findall(r"(corpid_\w+)\{([^}]*)\}", expression):
            for label, operator, text in re.findall(r"(\w+)(=~|!~|!=|=)\"([^\"]*)\"", selected):
                for value in text.split("|") if "~" in operator else [text]:
                    known = names.get((metric, label))
                    found = known is None or any(re.fullmatch(value, name) for name in known)
                    wrong += [] if found or not value else [f"{metric}{{{label}{operator}{value}}}"]
    assert discovery.TOKEN_PATH in table
    assert not wrong, listed(wrong)


def test_the_alert_of_401_counts_every_error_with_that_status_that_callers_do_not_resolve_themselves() -> None:
    """RFC 9449 §8: a request for a nonce is answered by libraries."""
    [rule] = [each for each in _rules() if each["alert"] == "CorpidUnauthorizedBurst"]
    codes = frozenset(each.code for each in _error_classes() if each.status == 401) - {errors.UseDPoPNonce.code}
    assert {frozenset(found.split("|")) for found in re.findall(r"error=~\"([^\"]*)\"", rule["expr"])} == {codes}


def test_each_alert_says_what_to_do_and_names_its_section_of_the_runbook() -> None:
    for rule in _rules():
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        assert rule["annotations"]["runbook"] == f"runbook.md#{rule['alert'].lower()}"


def test_every_alert_has_its_section_in_the_runbook_and_the_other_way_round() -> None:
    """docs/runbook.md: what people notice, where to look, what to do."""
    [alerts] = re.findall(r"(?ms)^## Alerts\n(.*?)^## ", documents()["docs/runbook.md"])
    sections = dict(re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^### |\Z)", alerts))
    assert set(sections) == {rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]}
    wrong = [name for name, text in sections.items() if "**People notice**" not in text or "**Do**" not in text]
    assert not wrong, listed(wrong)


def test_every_panel_and_event_that_the_runbook_names_exists() -> None:
    text = documents()["docs/runbook.md"]
    panels = {panel["title"] for panel in DASHBOARD["panels"]}
    named = [name for span in re.findall(r"panels? (\*[^.;\n]+)", text) for name in re.findall(r"\*([^*]+)\*", span)]
    assert len(named) > 20
    assert [name for name in named if name not in panels] == []
    source = "\n".join(module.text for module in modules())
    events = [name for span in re.findall(r"[Ee]vents? (`[^;.\n]+)", text) for name in re.findall(r"`(\w+)`", span)]
    assert len(events) > 15
    assert [name for name in events if f'"{name}"' not in source and f"_{name}" not in source] == []


def _error_classes() -> list[type[errors.OAuthError]]:
    found = vars(errors).values()
    return [each for each in found if isinstance(each, type) and issubclass(each, errors.OAuthError)]


def _rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


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
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM)", text, flags=re.MULTILINE | re.DOTALL))
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", stages["build"], flags=re.MULTILINE)
    assert copied == ["${PACKAGES}", "src/corpid"]
    assert stages["build-developer"].rstrip().endswith("-m corpid.web.pages corpid_dev"), (
        "its templates are compiled, too"
    )
    assert text.endswith("\nFROM run\nCOPY --from=build /opt/corpid /opt/corpid\n"), "production is the default"
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    kit = tomllib.loads((KIT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    examples = {name.removeprefix("../../") for name in kit["force-include"]}
    assert sent == {"LICENSE", "requirements/*.txt", "src/corpid", "src/corpid_dev", *examples}
    packages = re.findall(r"PACKAGES=(\S+)", text)
    assert packages == ["requirements/tracing.txt", "requirements/runtime.txt"]
    assert all((ROOT / path).exists() for path in packages)
    assert re.findall(r"^USER (.+)$", text, flags=re.MULTILINE) == ["10001:10001"]
    assert "--require-hashes" in text
    assert not re.search(r"(ARG|ENV)[^\n]*(KEY|SECRET|PASSWORD|TOKEN)", text)


def test_the_service_may_read_what_tells_of_a_power_loss() -> None:
    """docs/reliability.md: without the machine's boot id, what was lost would not be noticed."""
    directives = [line for line in FILES["corpid.service"].splitlines() if not line.startswith("#")]
    assert "NoNewPrivileges=yes" in directives
    assert not any(line.startswith("ProcSubset=") for line in directives)


def test_stopping_may_take_as_long_as_the_settings_say() -> None:
    found = re.search(r"^TimeoutStopSec=(\d+)$", FILES["corpid.service"], flags=re.MULTILINE)
    assert found is not None
    longest = sum(Settings.model_fields[name].default for name in ("drain_seconds", "drain_delay_seconds"))
    assert int(found[1]) > longest
