"""The shipped alerts in a real Prometheus, while real engines of a real CorpID are away (two workers, answering as one)."""

from __future__ import annotations

import base64
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid.rules.oauth import discovery
from tests.deploy.prometheus import PrometheusServer
from tests.deploy.test_prometheus import RULES
from tests.engines import PostgresServer, RedisServer
from tests.machine import free_port
from tests.web.processes import serving
from tests.web.test_workers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

WAIT_SECONDS = 180
"""for an alert, on a busy machine"""
AUTHORIZE = f"{discovery.AUTHORIZATION_PATH}?client_id=nobody"


@dataclass(frozen=True, kw_only=True)
class Watched:
    postgresql: PostgresServer
    valkey: RedisServer
    origin: str
    prometheus: PrometheusServer

    def firing(self) -> set[tuple[str, str]]:
        """The alerts that fire, each with the part or the endpoint that it names."""
        return {
            (labels["alertname"], labels.get("part", labels.get("endpoint", "")))
            for labels in (alert["labels"] for alert in self.prometheus.ask("alerts")["alerts"] if alert["state"] == "firing")
        }  # fmt: skip

    def fires(self, *alerts: tuple[str, str]) -> None:
        wait(lambda: self.firing() >= set(alerts))

    def is_quiet(self) -> None:
        wait(lambda: not self.firing())


def wait(holds: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.5)


@contextmanager
def asking(url: str, **options: Any) -> Iterator[None]:
    """Somebody asks for this address again and again, as long as the context lasts."""
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(trust_env=False, timeout=30) as http:
            while not over.wait(0.2):
                http.get(url, **options)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    metrics = f"127.0.0.1:{free_port()}"
    with (
        PostgresServer() as postgresql,
        RedisServer(program="valkey") as valkey,
        serving(
            tmp_path_factory.mktemp("node"),
            developer_mode="true",
            database_url=postgresql.dsn(),
            transient_url=valkey.url,
            key_encryption_key=base64.b64encode(bytes(32)).decode(),
            migrate_on_start="true",
            metrics_address=metrics,
            workers="2",
            log_level="error",
        ) as running,
        PrometheusServer(metrics, RULES) as prometheus,
    ):
        until(lambda: len(prometheus.value("corpid_ready == 1")) == 4)
        yield Watched(postgresql=postgresql, valkey=valkey, origin=running.origin, prometheus=prometheus)


def test_valkey_that_is_stopped_and_comes_back_without_its_data(watched: Watched) -> None:
    watched.is_quiet()
    watched.valkey.stop()
    watched.fires(("CorpidNotReady", "short-lived state"))
    watched.valkey.start()
    watched.fires(("CorpidDataLost", ""))
    watched.is_quiet()


def test_postgresql_that_is_killed_under_load(watched: Watched) -> None:
    watched.is_quiet()
    with asking(f"{watched.origin}{AUTHORIZE}"):
        watched.postgresql.crash()
        watched.fires(("CorpidNotReady", "database"), ("CorpidMostRequestsFail", ""))
        watched.postgresql.start()
        wait(lambda: not watched.firing() & {("CorpidNotReady", "database"), ("CorpidMostRequestsFail", "")})
    watched.is_quiet()


def test_a_burst_of_401(watched: Watched) -> None:
    userinfo = httpx.get(f"{watched.origin}{discovery.DISCOVERY_PATH}", trust_env=False).json()["userinfo_endpoint"]
    watched.is_quiet()
    with asking(userinfo, headers={"Authorization": "DPoP forged", "DPoP": "forged"}):
        watched.fires(("CorpidUnauthorizedBurst", userinfo.removeprefix(watched.origin)))
    watched.is_quiet()
