"""The names of spans, which dashboards and alerts of operators know (docs/observability.md)."""

from __future__ import annotations

from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING

from corpid.outbound.passwords import Passwords
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.open import open_sqlite
from corpid.stores.transient import TransientBatch, TransientStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.stores.sql.registry import Registry

NAMES = Path(__file__).with_name("span_names.txt")
AMONG_PARTS = {"audit.record_change", "notices.add"}
"""what one part of the registry calls of another, which is no span"""


def names(registry: Registry) -> Iterator[str]:
    """Part and method of each call that `corpid.web.telemetry.spans` makes a span."""
    traced = [
        *((name, type(getattr(registry, name))) for name in registry.part_names()),
        ("transient", TransientStore),
        ("transient", TransientBatch),
        ("passwords", Passwords),
    ]
    for part, kind in traced:
        for method, _ in getmembers(kind, iscoroutinefunction):
            if not method.startswith("_"):
                yield f"{part}.{method}"


async def test_a_span_changes_its_name_on_purpose_only(tmp_path: Path) -> None:
    """A method of a store that is renamed renames a span: the changelog says so, and the list here follows."""
    stores = await open_sqlite(tmp_path / "corpid.db", SecretCipher(bytes(32)), lambda: 0.0, migrate=True)
    found = sorted(set(names(stores.registry)) - AMONG_PARTS)
    await stores.close()
    assert found == NAMES.read_text(encoding="utf-8").split()
