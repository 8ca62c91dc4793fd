"""The interface of transient stores, and the table of their engines.

The table is by URL scheme; settings, doctor, metrics and traces read it. Another engine takes its own module with a
TransientEngine, a line here, a line in tests/adapters/transient_stores.py, and its part of docs/reliability.md.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from corpid.rules.failures import OrderlyStopRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from corpid.rules.data_loss import DataLoss
    from corpid.rules.transient import EngineCondition, PipelinedVerb


class TransientBatch(Protocol):
    """The verbs, inside one batch. Keys are hashes made by `flows.namespaces`."""

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None: ...
    async def get(self, kind: str, key: bytes) -> bytes | None: ...
    async def take(self, kind: str, key: bytes) -> bytes | None:
        """Get and delete, atomically."""

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """True for the first only, until it expires."""

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        """Raise a counter and return it.

        The first raise starts its lifetime. `by` may be below zero, never zero.
        """

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        """As `count`, if the number is not needed.

        Like a `put`, it may travel with the next verb or with the end of the batch.
        """

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        """Carry out independent verbs in one pipeline.

        The results are those of the verbs alone, in the same order. No two name the same place.
        """

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        """Raise several counters by one, each once, in one pipeline.

        A place is kind, key and lifetime in seconds. Keys are hashes, so that two kinds never have the same one.
        """


class TransientStore(Protocol):
    """The transient store: entries that live for minutes."""

    @property
    def loss(self) -> DataLoss:
        """The last data loss; what may have been spent before is refused."""

    def batch(self, now: float) -> AbstractAsyncContextManager[TransientBatch]:
        """Several verbs together.

        Leaving it with an OAuthError commits what was spent. Nothing but verbs of the stores is awaited inside. Raises
        StoreUnavailable.
        """

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """Read a value outside a batch."""

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        """Read several values outside a batch, in one pipeline.

        A place is kind and key.
        """

    async def engine_time(self) -> float | None:
        """Epoch seconds by the clock that decides expiry.

        None if that is the `now` of each call (D49). Raises StoreUnavailable.
        """

    def engine_time_at_least(self) -> float | None:
        """A lower bound of the engine's time, epoch seconds, without asking it.

        None if the registry's data is lost together with this store's: then nothing recorded there helps after a loss.
        Source: docs/decisions/0026
        """

    async def ready(self, *, now: float) -> None:
        """Write something small that ends soon, on every node.

        Raises StoreUnavailable if one takes no writes (D49).
        """

    async def sweep(self, *, now: float) -> int:
        """Remove some expired entries, and return their number.

        Repeated calls find them all. Correctness never depends on it.
        """


class OpenedStore(TransientStore, Protocol):
    """A TransientStore as an engine opened it."""

    @property
    def store_identity(self) -> str:
        """The name of the data that is there.

        It has no spaces and stays the same while the data does. Data that was begun while no process ran has another
        name.
        """

    def reject_before(self, moment: float, *, store_identity: str) -> None:
        """Refuse anything issued before a time, in epoch seconds.

        0.0: nothing was issued before the store identity began (D49, D67).
        """

    async def close(self) -> None:
        """Let go of the engine. Nothing may be used afterwards."""


class OrderlyStops(Protocol):
    """Notes of orderly stops of an engine, kept outside it.

    A marker in the engine, written last, has the name of a stop. Each proves once that nothing was lost. Every method
    raises StoreUnavailable. Source: D67
    """

    async def begin(self, name: str, *, store_identity: str) -> None:
        """Note that the marker of this name is about to be written.

        Ends every other stop.
        """

    async def confirm(self, name: str, *, store_identity: str) -> bool:
        """Note that the marker was written, over data that was whole.

        False if the stop was ended meanwhile.
        """

    async def end(self, name: str, *, store_identity: str) -> bool:
        """End a confirmed stop of the store in use.

        True for the first only, who may use what the marker proves.
        """

    async def void(self) -> None:
        """End every stop, before data begins that no marker knows."""


class TransientEngine(Protocol):
    """An engine for a TransientStore, made from a URL of `ENGINE_TYPES`."""

    async def open(self, *, clock: Callable[[], float], stops: OrderlyStops) -> OpenedStore:
        """Connect, in the event loop that will use it.

        Until `reject_before` is called the store refuses all that was issued before the engine's data began. Raises
        StoreUnavailable with a sentence for the operator.
        """

    async def describe(self) -> Sequence[EngineCondition]:
        """Look at every node without opening it, and change nothing.

        Empty if the database's own checks report it.
        """

    async def close_for_restart(self, stops: OrderlyStops, *, name: str, seconds: int) -> None:  # noqa: ARG002 - for those that can
        """Refuse all use, so that a restart provably loses nothing.

        It opens by itself after the restart, or after `seconds` without one. Raises OrderlyStopRefused,
        StoreUnavailable. Source: D67
        """
        raise OrderlyStopRefused("this engine cannot prove that it lost nothing: a restart is a loss of data")

    async def open_again(self, stops: OrderlyStops) -> bool:  # noqa: ARG002 - for those that can
        """Undo `close_for_restart` in an engine that was not restarted.

        False if that was a loss of data. Raises OrderlyStopRefused, StoreUnavailable. Source: D67
        """
        raise OrderlyStopRefused("this engine cannot be closed")


class EngineType(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an engine before it is opened."""

    title: str
    telemetry_name: str
    """`db.system.name` of its spans"""
    prefixes: tuple[str, ...]
    """how its URLs may begin"""
    url: str
    """an example, for messages"""
    tls_prefix: str = ""
    """the scheme of a URL with TLS, if it differs from the example's; for messages"""
    is_database: bool = False
    """it stores lasting data, and short-lived data unless another engine is named for that"""
    has_pool: bool = False
    """a process holds a bounded number of connections to it, `database_connections`"""
    is_local: bool = False
    """it runs in the processes that use it, which are on one machine and have one clock"""
    transient: str = ""
    """`module:class` of its TransientEngine, made from the URL; named and not imported, since a driver is
    loaded by those who use it"""


ENGINE_TYPES: Final = [
    EngineType(
        title="PostgreSQL", telemetry_name="postgresql", prefixes=("postgresql://", "postgres://"), is_database=True,
        url="postgresql://USER:PASSWORD@HOST/NAME", has_pool=True,
    ),
    EngineType(
        title="SQLite", telemetry_name="sqlite", prefixes=("sqlite:///",), is_database=True, url="sqlite:///PATH",
        is_local=True,
    ),
    EngineType(
        title="LMDB", telemetry_name="lmdb", prefixes=("lmdb:///",), url="lmdb:///DIRECTORY", is_local=True,
        transient="corpid.stores.lmdb:LmdbEngine",
    ),
    EngineType(
        title="Redis", telemetry_name="redis", prefixes=("redis://", "rediss://"), url="redis://HOST:PORT",
        tls_prefix="rediss://", transient="corpid.stores.valkey.transient:ValkeyEngine",
    ),
    EngineType(  # it speaks as Redis does, and so its spans call it
        title="Valkey", telemetry_name="redis", prefixes=("valkey://", "valkeys://"), url="valkey://HOST:PORT",
        tls_prefix="valkeys://", transient="corpid.stores.valkey.transient:ValkeyEngine",
    ),
]  # fmt: skip


def databases() -> list[EngineType]:
    """Those that `database_url` may name."""
    return [each for each in ENGINE_TYPES if each.is_database]


def transient_engines() -> list[EngineType]:
    """Those that `transient_url` may name."""
    return [each for each in ENGINE_TYPES if each.transient]


def find_engine(url: str, types: Iterable[EngineType]) -> EngineType | None:
    """The engine of a URL; None if none of these is."""
    return next((each for each in types if url.startswith(each.prefixes)), None)


def engine_type(url: str) -> EngineType:
    """The engine of a URL that the settings have taken.

    Raises ValueError for another, without repeating it.
    """
    if found := find_engine(url, ENGINE_TYPES):
        return found
    raise ValueError("no engine has such a URL: see stores.transient.ENGINE_TYPES")


def transient_engine(url: str) -> TransientEngine:
    """The engine that a `transient_url` names, not opened yet.

    Raises ValueError if none does.
    """
    engine: TransientEngine = resolve_name(engine_type(url).transient)(url)
    return engine


def transient_urls() -> str:
    """The values `transient_url` may have, for messages: `redis://HOST:PORT or …`."""
    found = transient_engines()
    return f"{_either(each.url for each in found)}, {_either(each.tls_prefix for each in found if each.tls_prefix)} for TLS"


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
