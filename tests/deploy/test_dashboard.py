"""The dashboard, by Grafana's own types, and its queries by Prometheus's parser."""

from __future__ import annotations

import copy
import json
import warnings
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.deploy.prometheus import promtool
from tests.house.test_deploy import DASHBOARD, expressions

with warnings.catch_warnings():
    # There is a second form, which Grafana before 12 does not read; every version reads this one.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)
COLUMNS = 24
"""of Grafana's grid"""
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    plugins.register_default_plugins()


def faults(dashboard: dict[str, Any]) -> list[str]:
    """What Grafana's types do not know, or do not allow."""
    loaded = Dashboard.from_json(copy.deepcopy(dashboard))
    return [*lost(dashboard, json.loads(JSONEncoder().encode(loaded)), ""), *wrong(loaded, "")]


def lost(written: Any, kept: Any, place: str) -> Iterator[str]:
    """Members that are gone, or others, once the dashboard has been loaded."""
    if isinstance(written, dict) and isinstance(kept, dict):
        for name in written:
            yield from lost(written[name], kept.get(name), f"{place}/{name}")
    elif isinstance(written, list) and isinstance(kept, list) and len(written) == len(kept):
        for number, pair in enumerate(zip(written, kept, strict=True)):
            yield from lost(*pair, f"{place}/{number}")
    elif written != kept:
        yield place


def wrong(loaded: Any, place: str) -> Iterator[str]:
    """Members whose value has another type."""
    if isinstance(loaded, list | dict):
        for name, value in loaded.items() if isinstance(loaded, dict) else enumerate(loaded):
            yield from wrong(value, f"{place}/{name}")
    elif type(loaded).__module__.startswith("grafana_foundation_sdk.models"):
        for name, hint in get_type_hints(type(loaded)).items():
            value = getattr(loaded, name, None)
            try:
                adapter = TypeAdapter[Any](hint, config=STRICT)
                # Only from JSON is a text, or a number, also the member of an enumeration.
                scalar = isinstance(value, str | int | float)
                adapter.validate_json(json.dumps(value)) if scalar else adapter.validate_python(value)
            except ValidationError:
                yield f"{place}/{name}"
            yield from wrong(value, f"{place}/{name}")


def test_grafana_knows_every_member_of_the_dashboard() -> None:
    assert faults(DASHBOARD) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"refersh": "30s"}, "/refersh"),
        ({"refresh": 30}, "/refresh"),
        ({"panels": [{**DASHBOARD["panels"][0], "gridPos": {"x": "0", "y": 0, "w": 1, "h": 1}}]}, "/panels/0/grid_pos/x"),
        ({"panels": [{**DASHBOARD["panels"][0], "target": []}]}, "/panels/0/target"),
    ],
)  # fmt: skip
def test_a_mistake_would_be_found(change: dict[str, Any], place: str) -> None:
    assert place in faults({**DASHBOARD, **change})


def test_panels_have_an_id_of_their_own_a_description_and_room() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["description"]
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= COLUMNS
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.full
def test_prometheus_parses_every_query(tmp_path: Path) -> None:
    """As rules that record; Grafana puts in the variables."""
    queries = [text for text in expressions() if not text.startswith("label_values")]
    rules = [
        {"record": f"query:{number}", "expr": text.replace("$__rate_interval", "1m").replace("$instance", ".*")}
        for number, text in enumerate(queries)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    checked = promtool("check", "rules", file)
    assert (checked.returncode, checked.stderr) == (0, "")
