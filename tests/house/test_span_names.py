"""The names of spans, which dashboards and alerts of operators know (docs/observability.md)."""

from __future__ import annotations

from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING

from corpid import ports

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = Path(__file__).with_name("span_names.txt")


def names() -> Iterator[str]:
    """Part and method of each call that `corpid.web.telemetry.spans` makes a span."""
    stores = {name: vars(ports.Registry)[name].fget.__annotations__["return"] for name in ports.REGISTRY_PARTS}
    traced = [
        *stores.items(),
        ("transient", "TransientStore"),
        ("transient", "TransientBatch"),
        ("passwords", "Passwords"),
    ]
    for part, port in traced:
        for method, _ in getmembers(getattr(ports, port), iscoroutinefunction):
            yield f"{part}.{method}"


def test_a_span_changes_its_name_on_purpose_only() -> None:
    """A method of a store that is renamed renames a span: the changelog says so, and the list here follows."""
    assert sorted(set(names())) == NAMES.read_text(encoding="utf-8").split()
