"""What Prometheus is told on an address of its own, and what it is never told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from argon2.profiles import CHEAPEST
from prometheus_client.parser import text_string_to_metric_families

from corpid import __version__, app, settings
from corpid.flows.operations import signing_keys
from corpid.outbound.destinations import HttpClientError
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.directory.access import CommandLine
from corpid.web.http import server
from corpid.web.http.addresses import OwnHosts
from corpid.web.http.requests import trace_id
from corpid.web.telemetry import metrics as told
from corpid.web.telemetry.metrics import GaugeSources, Metrics
from tests import quick_start
from tests.web.test_middleware import answering, asked, lines, logged, shell  # noqa: F401
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    import io
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TOKEN = "/mga/sps/oauth/oauth20/token"
VALID = f"00-{TRACE}-00f067aa0ba902b7-01"


class Scraped(dict[tuple[str, ...], float]):
    """(name, label values in the order of their names …) → value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.labels: set[str] = set()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.labels |= sample.labels.keys()
                self[sample.name, *(value for _, value in sorted(sample.labels.items()))] = sample.value


class Running:
    """A provider and its metrics, each on a port of its own."""

    def __init__(self, http: httpx.AsyncClient, scraper: httpx.AsyncClient, application: app.Application) -> None:
        self.http = http
        self.scraper = scraper
        self.application = application

    async def scrape(self) -> Scraped:
        answer = await self.scraper.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        return Scraped(answer.text)


@asynccontextmanager
async def running(folder: Path, **watched: Any) -> AsyncIterator[Running]:
    public, private = server.bind("127.0.0.1", 0), server.bind("127.0.0.1", 0)
    origin = f"http://127.0.0.1:{public[0].getsockname()[1]}"
    chosen = settings.load(data_dir=folder, base_url=origin, developer_mode=True)
    hashing = Argon2Passwords(threads=1, profile=CHEAPEST)
    async with app.create(chosen, passwords=hashing) as application:
        metrics = Metrics()
        metrics.watched = GaugeSources(clock=time.time, signing_keys=application.provider.signing_keys, **watched)
        application.asgi.observe(metrics.request)
        provider = server.Server(application.asgi, drain_seconds=0)
        await provider.start(public)
        scraped = f"http://127.0.0.1:{private[0].getsockname()[1]}"
        async with (
            told.serve_metrics(metrics, private),
            httpx.AsyncClient(base_url=origin, trust_env=False) as http,
            httpx.AsyncClient(base_url=scraped, trust_env=False) as scraper,
        ):
            yield Running(http, scraper, application)
        provider.force()
        await provider.stop()


@pytest.fixture(scope="module")
def left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Running]]:
    """A provider for tests that only read, and the loop that it runs in."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        made = runner.run(stack.enter_async_context(running(tmp_path_factory.mktemp("read"))))
        yield runner, made
        runner.run(stack.aclose())


async def test_a_scrape_tells_endpoints_outcomes_reasons_latency_and_keys(tmp_path: Path) -> None:
    async with running(tmp_path, hashing=lambda: 3, hashing_limit=65, pool=lambda: 2, pool_limit=10) as made:
        await made.http.get("/.well-known/keys")
        await made.http.get("/.well-known/keys")
        await made.http.post("/mga/sps/oauth/oauth20/token", data={"client_id": "secret-client"})
        await made.http.get("/healthz")
        found = await made.scrape()
        assert found["corpid_requests_total", "/.well-known/keys", "2xx", ""] == 2
        assert found["corpid_requests_total", TOKEN, "4xx", "invalid_request"] == 1
        assert found["corpid_refusals_total", "stranger", TOKEN, "invalid_request", "parameter_missing"] == 1
        assert found["corpid_requests_total", "/healthz", "2xx", ""] == 1
        assert found["corpid_request_seconds_count", "/.well-known/keys"] == 2
        assert found["corpid_hashing_pending",] == 3
        assert found["corpid_hashing_limit",] == 65
        assert found["corpid_database_connections_in_use",] == 2
        assert found["corpid_database_connections_limit",] == 10
        assert found["corpid_build_info", __version__] == 1
        assert found["corpid_signing_key_start_timestamp_seconds", "next"] == 0
        active = found["corpid_signing_key_start_timestamp_seconds", "active"]
        key = await signing_keys.rotate(
            made.application.provider.registry, CommandLine(by="lee@node1"), now=time.time()
        )
        made.application.provider.signing_keys._looked_at = float("-inf")
        found = await made.scrape()
        assert found["corpid_signing_key_start_timestamp_seconds", "next"] == key.active_from
        assert found["corpid_signing_key_start_timestamp_seconds", "active"] == active


async def test_a_scrape_tells_each_part_and_waits_for_no_engine_that_hangs(tmp_path: Path) -> None:
    """D49: an engine that hangs leaves the last answer, until there is another one."""
    answers = {"database": "", "short-lived state": "it refuses", "clock": "", "signing keys": ""}

    hangs, goes_on = False, asyncio.Event()

    async def parts() -> dict[str, str]:
        if hangs:
            await goes_on.wait()
        return answers

    async with running(tmp_path, parts=parts) as made:
        found = await made.scrape()
        assert {part: found["corpid_ready", part] for part in answers} == {
            "database": 1, "short-lived state": 0, "clock": 1, "signing keys": 1,
        }  # fmt: skip
        answers["database"], hangs = "it hangs", True
        assert (await made.scrape())["corpid_ready", "database"] == 1
        goes_on.set()
        assert (await made.scrape())["corpid_ready", "database"] == 0


async def test_no_label_tells_who_asked_or_for_what(tmp_path: Path) -> None:
    """Whatever callers make up, there are no more series than routes, outcomes and codes."""
    async with running(tmp_path) as made:
        for number in range(20):
            await made.http.get(f"/made-up-{number}/secret-path")
            await made.http.get(f"/sign-in/secret-path-{number}")
            await made.http.get("/mga/sps/oauth/oauth20/authorize", params={"client_id": f"secret-client-{number}"})
        found = await made.scrape()
        assert "secret" not in found.text
        assert "made-up" not in found.text
        assert found["corpid_requests_total", "other", "4xx", "invalid_request"] == 20
        assert sum(name == "corpid_requests_total" for name, *_ in found) == 3
        assert found.labels == {"endpoint", "outcome", "reason", "error", "client", "le", "key", "version"}


def test_reasons_beyond_the_expected_number_count_as_one() -> None:
    metrics = Metrics()
    for number in range(200):
        metrics.request("/token", 400, f"reason_{number}", 0.001)
    found = Scraped(asyncio.run(metrics.text()).decode())
    assert found["corpid_requests_total", "/token", "4xx", "other"] == 136
    assert found["corpid_request_seconds_count", "/token"] == 200


async def test_the_provider_itself_serves_no_metrics_and_their_address_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        assert (await made.http.get("/metrics")).status_code == 404
        for path in ("/", "/.well-known/openid-configuration", "/healthz", "/metrics/"):
            assert (await made.scraper.get(path)).status_code == 404
        assert (await made.scraper.post("/metrics")).status_code == 404
        assert (await made.scraper.head("/metrics")).content == b""


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "10.0.0.1:{port}",
                                  "127.0.0.1:{port}.rebound.example", "", "[::1]:{port}"])  # fmt: skip
def test_under_another_host_name_there_are_no_metrics(
    left_running: tuple[asyncio.Runner, Running], host: str, method: str
) -> None:
    """D35: a page whose name is made to resolve to this machine reads them otherwise (DNS rebinding)."""
    runner, made = left_running
    named = host.format(port=made.scraper.base_url.port)
    answer = runner.run(made.scraper.request(method, "/metrics", headers={"Host": named}))
    assert answer.status_code == 421
    assert "corpid_" not in answer.text


@pytest.mark.parametrize(
    ("address", "allowed", "host", "reached", "fine"),
    [
        ("", (), "10.0.0.11:9464", ("10.0.0.11", 9464), True),
        ("0.0.0.0:9464", (), "10.0.0.11:9464", ("10.0.0.11", 9464), True),
        ("0.0.0.0:9464", (), "node1.internal:9464", ("10.0.0.11", 9464), False),
        ("0.0.0.0:9464", ("node1.internal",), "Node1.Internal:9464", ("10.0.0.11", 9464), True),
        ("0.0.0.0:9464", ("node1.internal:9464",), "node1.internal:9465", ("10.0.0.11", 9464), False),
        ("node1.internal:9464", (), "node1.internal:9464", ("10.0.0.11", 9464), True),
        ("node1.internal:9464", (), "node1.internal", ("10.0.0.11", 9464), False),
        ("node1.internal:80", (), "node1.internal", ("10.0.0.11", 80), True),
        ("127.0.0.1:9464", (), "localhost:9464", ("127.0.0.1", 9464), True),
        ("10.0.0.11:9464", (), "localhost:9464", ("10.0.0.11", 9464), False),
        ("[::1]:9464", (), "[::1]:9464", ("::1", 9464), True),
        ("::1:9464", (), "localhost:9464", ("::1", 9464), True),
        ("[2001:db8::1]:80", (), "[2001:DB8::1]", ("2001:db8::1", 80), True),
        ("127.0.0.1:9464", (), "127.0.0.1:9464", None, True),
        ("", (), "", None, False),
        ("", (), "\xff" * 300, ("127.0.0.1", 9464), False),
    ],
)
def test_an_address_of_its_own_answers_to_its_own_names(
    address: str, allowed: tuple[str, ...], host: str, reached: tuple[str, int] | None, fine: bool
) -> None:
    """D35: as configured, as connected to, or as allowed; in any case of letters."""
    assert OwnHosts(address, allowed).allows(host.encode("latin-1"), reached) is fine


async def test_fetches_of_relying_parties_keys_are_counted_by_outcome() -> None:
    """D27: fetched, no key set, or not fetched at all; never from whom."""
    metrics = Metrics()
    key_set = json.dumps(rp_keys("rp-1").public()).encode()

    async def fetch(url: str) -> bytes:
        if url == "bad":
            raise HttpClientError("nobody answers")
        return key_set if url == "good" else b"<html>"

    counted = metrics.counting(fetch)
    assert await counted("good") == key_set
    assert await counted("html") == b"<html>"
    with pytest.raises(HttpClientError):
        await counted("bad")
    found = Scraped((await metrics.text()).decode())
    for outcome in ("fetched", "unusable", "failed"):
        assert found["corpid_client_key_fetches_total", outcome] == 1
    assert found["corpid_client_key_fetch_seconds_count",] == 3


def test_several_processes_answer_as_one(tmp_path: Path) -> None:
    """Whichever of them is asked, by the folder that they share; what one counted stays when it is gone."""
    program = """
import asyncio, os, sys
from corpid.web.telemetry.metrics import DIRECTORY_VARIABLE, Metrics, GaugeSources, worker_ended

class Keys:
    async def keys_at(self, now):
        raise ValueError("none")

metrics = Metrics(os.environ[DIRECTORY_VARIABLE])
number = int(sys.argv[1])

async def parts():
    return {"database": "away" if number == 2 else ""}

metrics.watched = GaugeSources(clock=float, signing_keys=Keys(), hashing=lambda: number, parts=parts)
for _ in range(number):
    metrics.request("/token", 200, "", 0.01)
asyncio.run(metrics.update_gauges())
print("ready", flush=True)
gone = int(input())
if gone:
    worker_ended(gone, os.environ[DIRECTORY_VARIABLE])
print(asyncio.run(metrics.text()).decode(), flush=True)
"""
    environment = {**os.environ, told.DIRECTORY_VARIABLE: str(tmp_path)}
    workers = [
        quick_start.Popen(
            [sys.executable, "-c", program, number],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in ("2", "3")
    ]  # fmt: skip
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        first, second = workers
        both = Scraped(first.communicate("0\n", timeout=60)[0])
        one = Scraped(second.communicate(f"{first.pid}\n", timeout=60)[0])
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    for found in (both, one):
        assert found["corpid_requests_total", "/token", "2xx", ""] == 5
        assert found["corpid_request_seconds_count", "/token"] == 5
    assert (both["corpid_hashing_pending",], one["corpid_hashing_pending",]) == (5, 3)
    assert (both["corpid_ready", "database"], one["corpid_ready", "database"]) == (0, 1), "0 if one of them is not"
    assert (both["corpid_workers_ended_total",], one["corpid_workers_ended_total",]) == (0, 1)
    assert not list(tmp_path.glob(f"*_{first.pid}.db")), "each file costs every scrape"


def test_a_file_that_another_process_is_creating_or_has_left_empty_stops_no_scrape(tmp_path: Path) -> None:
    """A file is empty until its process has written its size; one that was killed in between leaves it so."""
    program = """
import asyncio, os
from pathlib import Path
from corpid.web.telemetry.metrics import DIRECTORY_VARIABLE, Metrics, worker_ended

folder = Path(os.environ[DIRECTORY_VARIABLE])
metrics = Metrics(str(folder))
metrics.request("/token", 200, "", 0.01)

async def story():
    created = folder / "gauge_livesum_1.db"
    created.touch()
    scraping = asyncio.create_task(metrics.text())
    await asyncio.sleep(0.01)
    created.write_bytes((8).to_bytes(4, "little") + bytes(60))
    await scraping
    for name in ("counter_2.db", "histogram_2.db", "gauge_livesum_2.db"):
        (folder / name).touch()
    worker_ended(2, str(folder))
    return await metrics.text()

print(asyncio.run(story()).decode())
"""
    environment = {**os.environ, told.DIRECTORY_VARIABLE: str(tmp_path)}
    done = quick_start.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    found = Scraped(done.stdout)
    assert found["corpid_requests_total", "/token", "2xx", ""] == 1
    assert found["corpid_workers_ended_total",] == 1
    assert not list(tmp_path.glob("*_2.db"))


def test_a_request_that_belongs_to_a_trace_says_so_in_its_line(lines: io.BytesIO) -> None:  # noqa: F811
    """W3C Trace Context; the field is one of the closed list (D48)."""
    asked(shell(answering([])), headers={"traceparent": VALID})
    asked(shell(answering([])))
    asked(shell(answering([])), headers={"traceparent": "00-anything-else-01"})
    assert [line.get("trace_id") for line in logged(lines)] == [TRACE, None, None]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (VALID, TRACE),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-what-comes-later", TRACE),
        (f"00-{TRACE}-00f067aa0ba902b7-01-more", None),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7", None),
        (f" {VALID}", None),
        ("", None),
    ],
)
def test_only_a_valid_traceparent_names_a_trace(value: str, expected: str | None) -> None:
    """W3C Trace Context §3.2.2."""
    assert trace_id([value.encode()]) == expected


def test_two_traceparents_name_no_trace() -> None:
    """W3C Trace Context §3.2: whoever sees more than one ignores them."""
    assert trace_id([VALID.encode()] * 2) is None
