"""Readiness of this process (D49), and maintenance of the deployment (D50)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.write import audit_event
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.request_context import Provider
    from corpid.stores.sql.registry import Registry

ASKED_EVERY_SECONDS: Final = 1
WATCHED_EVERY_SECONDS: Final = 5
"""between two questions of a process that nobody probes"""
DATABASE: Final = "database"
TRANSIENT: Final = "short-lived state"
CLOCK: Final = "clock"
KEYS: Final = "signing keys"
PARTS: Final = (DATABASE, TRANSIENT, CLOCK, KEYS)
"""everything that a request needs, as /readyz and the log name it"""


class NotReady(Exception):
    """The process is not ready; `part` is the failing part."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


class Readiness:
    """Asks everything that a request needs, once a second at most.

    Probes in between share the answer.

    A store can be read while it takes no writes, since it is full or a copy; so each gets a small write.
    """

    def __init__(self, provider: Provider, changed: Callable[[str, str], None] = lambda _part, _reason: None) -> None:
        """`changed` is given a part and its reason to fail.

        The reason is empty if the part works again.
        """
        self._provider: Final = provider
        self._changed: Final = changed
        self._asked: asyncio.Task[Mapping[str, str]] | None = None
        self._asked_at = float("-inf")
        self._known: Mapping[str, str] = dict.fromkeys(PARTS, "")
        self._suspected: Final = asyncio.Event()

    async def check(self) -> float:
        """Return the end of a recovery, if everything answers.

        That is the last moment at which callers may be told to wait because data was lost, epoch seconds; 0.0 if they
        are not. Raises NotReady for the first part that does not answer. Source: D49, D67
        """
        for part, reason in (await self.parts()).items():
            if reason:
                raise NotReady(part, reason)
        return recovering_until(self._provider)

    async def parts(self) -> Mapping[str, str]:
        """Why each part fails, in the order of PARTS.

        Empty for one that works, and for one that cannot be seen because another fails: the clock without an engine to
        compare it with, the keys without their database. Source: D49
        """
        now = self._provider.clock()
        asked = self._asked
        if asked is None or (asked.done() and not 0 <= now - self._asked_at < ASKED_EVERY_SECONDS):
            asked = self._start(now)
        return await asyncio.shield(asked)

    @property
    def last_answer(self) -> Mapping[str, str]:
        """The last answer of `parts`, without asking. Source: D49"""
        return self._known

    def suspect(self) -> None:
        """Let `watch` ask soon, since a store has failed a request."""
        self._suspected.set()

    async def watch(self) -> None:
        """Ask as long as the process runs, though nobody probes it.

        Every five seconds, and within a second of a suspicion. Source: D49
        """
        while True:
            with suppress(TimeoutError):  # `asyncio.wait_for` loses a cancellation that comes together with the event
                async with asyncio.timeout(WATCHED_EVERY_SECONDS):
                    await self._suspected.wait()
            if not self._suspected.is_set():
                await self.parts()
                continue
            # What was answered before the suspicion says nothing about it.
            self._suspected.clear()
            under_way = self._asked is not None and not self._asked.done()
            await (self.parts() if under_way else asyncio.shield(self._start(self._provider.clock())))
            await asyncio.sleep(ASKED_EVERY_SECONDS)

    def _start(self, now: float) -> asyncio.Task[Mapping[str, str]]:
        self._asked, self._asked_at = asyncio.create_task(self._ask()), now
        return self._asked

    async def _ask(self) -> Mapping[str, str]:
        lasting, short_lived = await asyncio.gather(_lasting(self._provider), _short_lived(self._provider))
        failing = dict(found for found in (lasting, short_lived) if found is not None)
        before, self._known = self._known, {part: failing.get(part, "") for part in PARTS}
        for part, reason in self._known.items():
            if bool(reason) != bool(before[part]):
                self._changed(part, reason)
        return self._known


def recovering_until(provider: Provider) -> float:
    """The end of a recovery from a data loss, epoch seconds.

    It is 0.0 if there is none. Until then proofs and assertions that may have been spent before the loss are not
    accepted. Source: D67
    """
    end = provider.transient.loss.ends_at
    return end if provider.clock() < end else 0.0


async def _lasting(provider: Provider) -> tuple[str, str] | None:
    """The failing one of database and signing keys, and the reason."""
    try:
        await provider.registry.deployment.ready()
    except Exception as error:  # noqa: BLE001 - whatever it is, the process is not ready
        return DATABASE, _reason(error)
    try:
        await provider.signing_keys.keys_at(provider.clock())
    except StoreUnavailable as error:
        return DATABASE, _reason(error)
    except Exception as error:  # noqa: BLE001
        return KEYS, _reason(error)
    return None


async def _short_lived(provider: Provider) -> tuple[str, str] | None:
    """The failing one of short-lived state and clock, and the reason."""
    try:
        engine_time = await provider.transient.engine_time()
        apart = 0.0 if engine_time is None else provider.clock() - engine_time
        if abs(apart) > CLOCKS_APART_SECONDS:
            direction = "ahead of" if apart > 0 else "behind"
            return CLOCK, f"{abs(apart):.0f} s {direction} the engine's; set the time of this machine"
        await provider.transient.ready(now=provider.clock())
    except Exception as error:  # noqa: BLE001 - whatever it is, the process is not ready
        return TRANSIENT, _reason(error)
    return None


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, StoreUnavailable) else type(error).__name__


async def maintenance(registry: Registry, *, actor: Actor) -> bool:
    """Return whether maintenance is on.

    Raises access.Forbidden, StoreUnavailable. Source: Spec 7, D59
    """
    authorise(actor, "read", Object(kind="deployment"))
    return await registry.deployment.maintenance()


async def switch_maintenance(registry: Registry, *, on: bool, actor: Actor) -> None:
    """Switch maintenance on or off; running servers follow within 5 s.

    Raises access.Forbidden, StoreUnavailable. Source: Spec 7, D50
    """
    authorise(actor, "write", Object(kind="deployment"))
    action = AuditAction.MAINTENANCE_ON if on else AuditAction.MAINTENANCE_OFF
    await registry.deployment.set_maintenance(on, audit_event(actor, action, ""))
