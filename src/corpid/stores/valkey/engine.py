"""Redis or Valkey as the engine that `transient_url` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.ports import EngineCondition, StoreUnavailable, TransientEngine
from corpid.stores.valkey.examination import examine
from corpid.stores.valkey.transient import open_valkey

if TYPE_CHECKING:
    from corpid.ports import Clock, TransientStore
    from corpid.stores.valkey.examination import ExaminedValkey
    from corpid.stores.valkey.transient import ValkeyTransientStore

_PLENTY: Final = 0.8
"""of maxmemory"""


class ValkeyEngine(TransientEngine):
    """A ports.TransientEngine for the URLs that `open_valkey` takes."""

    def __init__(self, url: str) -> None:
        self._url: Final = url
        self._store: ValkeyTransientStore | None = None

    async def open(self, *, clock: Clock) -> TransientStore:
        self._store = await open_valkey(self._url, clock=clock)
        return self._store

    @property
    def lineage(self) -> str:
        """The lineage of the store's epoch."""
        return self._opened.lineage

    def reject_before(self, moment: float, *, lineage: str) -> None:
        self._opened.reject_before(moment, lineage=lineage)

    async def describe(self) -> list[EngineCondition]:
        """One condition for each primary."""
        try:
            return [_condition(each) for each in await examine(self._url)]
        except StoreUnavailable as error:
            return [_condition(error)]

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    @property
    def _opened(self) -> ValkeyTransientStore:
        if self._store is None:
            raise RuntimeError("ValkeyEngine.open comes first")
        return self._store


def _condition(found: ExaminedValkey | StoreUnavailable) -> EngineCondition:
    if isinstance(found, StoreUnavailable):
        return EngineCondition(verdict="problem", seen=str(found))
    kept = (
        "appendonly file" if found.appends else f"snapshots (save {found.saves})" if found.saves else "no persistence"
    )
    seen = (
        f"{found.engine} {found.version} at {found.place}, noeviction, {kept}: when it restarts, sign-ins that "
        "are under way begin again, and for about 45 s callers make new proofs."
    )
    if found.last_save_failed:
        change = "Change: look at its log; it may stop taking writes (stop-writes-on-bgsave-error)."
        return EngineCondition(verdict="problem", seen=f"{seen} Its last snapshot failed.", change=change)
    if found.most and found.used > _PLENTY * found.most:
        full = f"{seen} It is {found.used / found.most:.0%} full."
        return EngineCondition(verdict="warning", seen=full, change="Change: raise its maxmemory.")
    return EngineCondition(verdict="ok", seen=seen)
