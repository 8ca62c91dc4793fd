"""Reports of this process: itself to the deployment, changes to its log.

Each process looks for itself, so its log says since when it knows. Source: D42, D49, D50, D67
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.operations.readiness import recovering_until
from corpid.rules.data_loss import may_not_record
from corpid.rules.server_processes import KEPT_SECONDS, VERSION, ServerProcess, differences, live

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.flows.operations.signing_keys import SigningKeys
    from corpid.flows.request_context import Provider
    from corpid.stores.sql.registry import Registry

    Report = Callable[[str, str], None]


class KeyReporter:
    """Reporter of signing keys that begin to sign or are revoked."""

    def __init__(self, registry: Registry, keys: Sequence[SigningKeys], report: Report) -> None:
        """`keys`: those of each issuer; the first ones are reported."""
        self._registry: Final = registry
        self._keys: Final = keys
        self._report: Final = report
        self._active = ""
        self._known: frozenset[str] = frozenset()
        self._revoked: frozenset[str] | None = None

    async def report_changes(self, *, now: float) -> None:
        """Read the keys again, and report what has changed.

        Called every second, so that a process knows of a change within one. Raises StoreUnavailable, ValueError if no
        key may sign. Source: D42
        """
        stored = await self._registry.keys.list_all()
        ring, *_ = [each.use(stored, now).ring for each in self._keys]
        revoked, known = self._keys[0].revoked, frozenset(ring.by_kid)
        if self._revoked is not None:
            for kid in sorted(known - self._known):
                self._report("signing_key_published", f"{kid} is published, and does not sign yet")
            if ring.active.kid != self._active:
                self._report("signing_key_used", f"{ring.active.kid} signs in place of {self._active}")
            for kid in sorted(revoked - self._revoked):
                self._report("signing_key_revoked", f"tokens signed by {kid} are refused within seconds")
        self._active, self._known, self._revoked = ring.active.kid, known, revoked


class MaintenanceReporter:
    """Reporter of maintenance, when it begins and ends."""

    def __init__(self, provider: Provider, report: Report) -> None:
        self._provider: Final = provider
        self._report: Final = report
        self._on = False

    async def report_changes(self, *, now: float) -> None:
        """Report what has changed since the last look. Raises StoreUnavailable. Source: D50"""
        on = await self._provider.registry_cache.maintenance(now)
        if on != self._on:
            self._on = on
            detail = "sign-ins are refused until `corpid maintenance off`" if on else "sign-ins are possible again"
            self._report("maintenance_on" if on else "maintenance_off", detail)


class SettingsReporter:
    """Reporter of settings that processes begin or cease to differ in."""

    def __init__(self, provider: Provider, report: Report) -> None:
        self._processes: Final = provider.registry.server_processes
        self._report: Final = report
        self._differing: frozenset[str] = frozenset()

    async def report_changes(self, *, now: float) -> None:
        """Report what has changed since the last look.

        Another version is no such difference: it is one on purpose, during an upgrade. Raises StoreUnavailable.
        Source: D43, D49
        """
        found = differences(live(await self._processes.list_all(), now=now))
        found.pop(VERSION, None)
        for name in sorted(found.keys() - self._differing):
            values = (f"{value!r} at {', '.join(each.name for each in those)}" for value, those in found[name].items())
            self._report("settings_differ", f"{name}: {'; '.join(values)}")
        for name in sorted(self._differing - found.keys()):
            self._report("settings_agree", name)
        self._differing = frozenset(found)


class RecoveryReporter:
    """Reporter of a data loss, when it begins and when it ends."""

    def __init__(self, provider: Provider, begun: Callable[[float], None], over: Callable[[], None]) -> None:
        """`begun` is given the end of the recovery, epoch seconds."""
        self._provider: Final = provider
        self._begun: Final = begun
        self._over: Final = over
        self._reported = ""
        """the name of the loss whose recovery was reported to begin"""

    def report_changes(self) -> None:
        """Report what has changed since the last look. Source: D67"""
        name, until = self._provider.transient.loss.name, recovering_until(self._provider)
        if until and name != self._reported:
            self._reported = name
            self._begun(until)
        elif self._reported and not until:
            self._reported = ""
            self._over()


class Registration:
    """Notes that this process lives, and removes old rows.

    No request waits for it.
    """

    def __init__(self, registry: Registry, process: ServerProcess) -> None:
        self._processes: Final = registry.server_processes
        self._clocks: Final = registry.client_clocks
        self._process: Final = process
        self._is_new = True

    async def round(self, *, now: float) -> None:
        """Note this process. Raises StoreUnavailable. Source: D49"""
        # Begin the records of clients' clocks, if skews may be missing. A process of another version serves, or none
        # of this one did when this one started. docs/decisions/0026
        others = live(await self._processes.list_all(), now=now)
        begins = self._is_new and (not others or await self._clocks.recorded_since() is None)
        if begins or may_not_record(others, self._process.version, now=now):
            await self._clocks.begin(now=now)
        await self._processes.note(msgspec.structs.replace(self._process, seen_at=int(now)))
        await self._processes.remove_old(before=int(now) - KEPT_SECONDS)
        self._is_new = False

    async def end(self) -> None:
        """Remove this process, which stops. Raises StoreUnavailable. Source: D49"""
        await self._processes.remove(self._process.process_id)
