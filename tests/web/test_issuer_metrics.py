"""The label `issuer` of the metrics that count requests: there where a deployment has several issuers (D62)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
from argon2.profiles import CHEAPEST

from corpid import app, settings
from corpid.outbound.passwords import Argon2Passwords
from corpid.web.telemetry.metrics import Metrics
from tests.web.test_metrics import Scraped

if TYPE_CHECKING:
    from pathlib import Path

FIRST, OLD = "http://localhost:8080", "http://localhost:8080/old"


async def scraped(folder: Path, *tables: dict[str, object]) -> Scraped:
    chosen = settings.load(data_dir=folder, base_url=FIRST, developer_mode=True, issuers=tables)
    metrics = Metrics(issuers=bool(tables))
    hashing = Argon2Passwords(threads=1, profile=CHEAPEST)
    async with app.create(chosen, passwords=hashing, metrics=metrics) as application:
        transport = httpx.ASGITransport(app=application.asgi)
        async with httpx.AsyncClient(transport=transport) as http:
            for url in (f"{FIRST}/.well-known/keys", f"{OLD}/.well-known/keys", f"{OLD}/nothing", f"{FIRST}/healthz"):
                await http.get(url)
            await http.get(FIRST, headers={"host": "elsewhere.example"})
        return Scraped((await metrics.text()).decode())


def of(metric: str, found: Scraped) -> dict[tuple[str, ...], float]:
    """The series of one metric by their labels' values, in the order of the labels' names."""
    return {tuple(labels): value for (name, *labels), value in found.items() if name == metric}


def test_requests_are_counted_for_each_issuer(tmp_path: Path) -> None:
    """D62: what is no issuer's has none."""
    found = asyncio.run(scraped(tmp_path, {"id": "old", "base_url": OLD, "generations": ["legacy"]}))
    assert of("corpid_requests_total", found) == {
        ("/.well-known/keys", "first", "2xx", ""): 1,
        ("/.well-known/keys", "old", "2xx", ""): 1,
        ("other", "old", "4xx", "invalid_request"): 1,
        ("/healthz", "", "2xx", ""): 1,
        ("other", "", "4xx", "misdirected_request"): 1,
    }
    assert of("corpid_refusals_total", found) == {
        ("stranger", "other", "invalid_request", "old", "path_unknown"): 1,
        ("stranger", "other", "misdirected_request", "", "host_unknown"): 1,
    }
    assert {labels[:2] for labels in of("corpid_request_seconds_count", found)} >= {
        ("/.well-known/keys", "first"), ("/.well-known/keys", "old"), ("/healthz", ""),
    }  # fmt: skip


def test_with_one_issuer_there_is_no_such_label(tmp_path: Path) -> None:
    """D62: a single issuer's series stay what they were."""
    assert "issuer" not in asyncio.run(scraped(tmp_path)).labels
