"""The table of engines, by URL scheme.

Settings, doctor, metrics and traces read this.

Another engine for what lives for minutes takes its own module with a TransientEngine and a line here, a
line in tests/adapters/transient_stores.py, and its part of docs/reliability.md.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.stores.transient import TransientEngine


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
        transient="corpid.stores.lmdb.transient:LmdbEngine",
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
    raise ValueError("no engine has such a URL: see stores.engines.ENGINE_TYPES")


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
