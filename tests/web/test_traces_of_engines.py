"""What is told of the engines behind a traced request, and that being told of changes nothing."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corpid import app, settings
from corpid.rules.oauth.errors import InvalidGrant
from corpid.rules.oauth.refusals import Reason
from corpid.web.telemetry.spans import Spans
from tests import engines
from tests.machine import key_file

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.stores.transient import TransientStore

pytestmark = pytest.mark.full

KIND, KEY = "proof", secrets.token_bytes(32)


async def refused_after_it_was_spent(transient: TransientStore) -> None:
    async with transient.batch(time.time()) as batch:
        assert await batch.add(KIND, KEY, 60)
        raise InvalidGrant(Reason.CODE_UNKNOWN, "after it was spent")


async def used(exporter: InMemorySpanExporter, **chosen: Any) -> set[tuple[Any, ...]]:
    """Spend something within a traced request that refuses, and find it spent; (name, engine, kind) of each span."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("test"))
    async with app.create(settings.load(**chosen), spans=spans) as application:
        registry, transient = application.provider.registry, application.provider.transient
        with spans.child("request", {}):
            await registry.deployment.ready()
            with pytest.raises(InvalidGrant):
                await refused_after_it_was_spent(transient)
            assert await registry.clients.get("nobody") is None
        told = exporter.get_finished_spans()
        async with transient.batch(time.time()) as batch:
            assert not await batch.add(KIND, KEY, 60)
        assert exporter.get_finished_spans() == told
    return {
        (span.name, *((span.attributes or {}).get(name) for name in ("db.system.name", "corpid.kind"))) for span in told
    }


def expected(lasting: str, short: str) -> set[tuple[Any, ...]]:
    return {
        ("request", None, None),
        ("deployment.ready", lasting, None),
        ("clients.get", lasting, None),
        ("transient.batch", short, None),
        ("transient.add", short, KIND),
    }


def test_on_sqlite_and_lmdb_what_was_spent_stays_spent_and_is_told(tmp_path: Path) -> None:
    """docs/architecture.md, "One-time use": a batch that ends with a refusal commits."""
    told = asyncio.run(used(InMemorySpanExporter(), data_dir=tmp_path))
    assert told == expected("sqlite", "lmdb")


def test_on_postgresql_and_redis_what_was_spent_stays_spent_and_is_told(tmp_path: Path) -> None:
    """As on SQLite; outside of a traced request nothing is told."""
    with engines.postgresql(migrated=True) as database, engines.redis() as short:
        chosen = {
            "database_url": database,
            "transient_url": short,
            "key_encryption_key_file": key_file(tmp_path / "key"),
        }
        told = asyncio.run(used(InMemorySpanExporter(), data_dir=tmp_path, **chosen))
    assert told == expected("postgresql", "redis")
