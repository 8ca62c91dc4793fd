"""One table names every engine; settings, doctor, traces and the contract suite read it (stores.engines)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corpid import app, engines, settings
from corpid.cli.doctor import local_checks
from corpid.rules.transient import EngineCondition
from corpid.stores.transient import (
    ENGINE_TYPES,
    EngineType,
    OpenedStore,
    OrderlyStops,
    TransientEngine,
    engine_type,
    transient_engine,
    transient_engines,
)
from corpid.web.telemetry.spans import Spans
from tests.adapters.transient_stores import STORES, WITH_CLOCK, WITHOUT_CLOCK
from tests.memory_store import MemoryTransientStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


URL = "shelf://somewhere"


class ShelfStore(MemoryTransientStore):
    """Dictionaries that outlive their opening."""

    lineages: ClassVar[list[str]] = ["first"]
    rejected: ClassVar[list[tuple[float, str]]] = []
    closed: ClassVar[list[str]] = []

    @property
    def store_identity(self) -> str:
        return self.lineages[-1]

    def reject_before(self, moment: float, *, store_identity: str) -> None:
        self.rejected.append((moment, store_identity))

    async def close(self) -> None:
        self.closed.append(URL)


class Shelf(TransientEngine):
    """An engine that only this file knows."""

    store: ClassVar = ShelfStore()

    def __init__(self, url: str) -> None:
        assert url == URL

    async def open(self, *, clock: Callable[[], float], stops: OrderlyStops) -> OpenedStore:
        return self.store

    async def describe(self) -> list[EngineCondition]:
        return [EngineCondition(verdict="warning", seen="the shelf is dusty", change="Change: dust it.")]


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> type[Shelf]:
    """Its line in the table, which is all that CorpID is told of it."""
    line = EngineType(
        title="Shelf", telemetry_name="shelf", prefixes=("shelf://",), url=URL, transient=f"{__name__}:Shelf"
    )
    monkeypatch.setattr("corpid.stores.transient.ENGINE_TYPES", [*ENGINE_TYPES, line])
    for name, empty in {"lineages": ["first"], "rejected": [], "closed": []}.items():
        monkeypatch.setattr(ShelfStore, name, empty)
    monkeypatch.setattr(Shelf, "store", ShelfStore())
    return Shelf


def test_a_line_in_the_table_is_all_that_settings_need(shelf: type[Shelf]) -> None:
    """What is refused names it, too."""
    assert settings.load(transient_url=URL).transient_url == URL
    with pytest.raises(settings.SettingsError, match=URL):
        settings.load(transient_url="memcached://memory")


async def test_a_line_in_the_table_is_all_that_opening_needs(shelf: type[Shelf], tmp_path: Path) -> None:
    """D67: other data than before refuses what was issued before it; the same data does not."""
    options = settings.load(transient_url=URL, data_dir=tmp_path)

    for store_identity in ("first", "second", "second"):
        ShelfStore.lineages.append(store_identity)
        async with engines.open_stores(options, time.time) as opened:
            assert opened.transient is shelf.store
    moments = [moment for moment, _ in ShelfStore.rejected]
    assert [store_identity for _, store_identity in ShelfStore.rejected] == ["first", "second", "second"]
    assert moments[0] == 0.0
    assert moments[1] == moments[2] > time.time() - 5
    assert ShelfStore.closed == [URL] * 3


def test_a_line_in_the_table_is_all_that_the_doctor_needs(shelf: type[Shelf], tmp_path: Path) -> None:
    """It is found under the title in the table, with what the engine says of itself."""
    found = {each.about: each for each in local_checks.check_node(settings.load(transient_url=URL, data_dir=tmp_path))}
    assert found["Shelf"].verdict == "warning"
    assert found["Shelf"].seen == "The shelf is dusty."
    assert found["Shelf"].change == "Change: dust it."
    assert found["engines"].seen.startswith("Shelf together with SQLite")


async def test_a_line_in_the_table_is_all_that_traces_need(shelf: type[Shelf], tmp_path: Path) -> None:
    """D48: `db.system.name` of its batches is the name in the table."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("test"))

    async with app.create(settings.load(transient_url=URL, data_dir=tmp_path), spans=spans) as application:
        with spans.child("request", {}):
            async with application.provider.transient.batch(time.time()) as batch:
                await batch.put("code", b"k" * 32, b"", 60)
    systems = {span.name: (span.attributes or {}).get("db.system.name") for span in exporter.get_finished_spans()}
    assert systems["transient.batch"] == "shelf"


@pytest.mark.parametrize("engine", ENGINE_TYPES, ids=lambda engine: engine.title)
def test_the_contract_suite_runs_every_engine_of_the_table(engine: EngineType) -> None:
    """An engine that nobody holds to the contract of TransientStore cannot be named."""
    assert engine.title.lower() in STORES


def test_the_contract_suite_knows_of_every_store_which_clock_it_reads() -> None:
    """A store that stood in neither list would be left out of every test of lifetimes."""
    assert sorted((*WITHOUT_CLOCK, *WITH_CLOCK)) == sorted(STORES)


@pytest.mark.parametrize("store_identity", ["", "two words"])
async def test_a_lineage_that_could_not_be_read_again_is_refused(
    shelf: type[Shelf], store_identity: str, tmp_path: Path
) -> None:
    """TransientEngine: with a space it would be another store at every start, and refuse everything of before."""
    ShelfStore.lineages.append(store_identity)

    try:
        with pytest.raises(ValueError, match="a name without spaces"):
            async with app.create(settings.load(transient_url=URL, data_dir=tmp_path)):
                pass
    finally:
        ShelfStore.lineages.pop()


@pytest.mark.parametrize("engine", transient_engines(), ids=lambda engine: engine.title)
def test_an_engine_that_the_table_names_can_be_made_without_being_opened(engine: EngineType) -> None:
    """The module and class of its line exist; its own example is one of its URLs."""
    assert engine_type(engine.url) is engine
    assert type(transient_engine(engine.url)).__name__ == engine.transient.partition(":")[2]


def test_a_url_of_no_engine_is_refused_without_being_repeated() -> None:
    """It may hold a password."""
    with pytest.raises(ValueError, match="no engine") as refused:
        engine_type("memcached://user:secret@memory")
    assert "secret" not in str(refused.value)
