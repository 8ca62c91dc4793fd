"""Readiness of this process (D49), and maintenance of the deployment (D50)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.write import audit_event
from corpid.ports import StoreUnavailable
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.provider import Provider
    from corpid.ports import Registry
    from corpid.rules.directory.actors import Actor

ASKED_EVERY_SECONDS: Final = 1


class NotReady(Exception):
    """The process is not ready; `part` is the failing part."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part


class Readiness:
    """Asks everything that a request needs, once a second at most.

    Probes in between share the answer.

    A store can be read while it takes no writes, since it is full or a copy; so each gets a small write.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider: Final = provider
        self._asked: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")

    async def check(self) -> float:
        """Return the end of a recovery, if everything answers.

        That is the last moment at which callers may be told to wait because data was lost, epoch seconds; 0.0 if they
        are not. Raises NotReady for the first part that does not answer. Source: D49, D67
        """
        now = self._provider.clock()
        asked = self._asked
        if asked is None or (asked.done() and not 0 <= now - self._asked_at < ASKED_EVERY_SECONDS):
            asked = self._asked = asyncio.create_task(_ask(self._provider))
            asked.add_done_callback(_note)
            self._asked_at = now
        await asyncio.shield(asked)
        return recovering_until(self._provider)


def recovering_until(provider: Provider) -> float:
    """The end of a recovery from a data loss, epoch seconds.

    It is 0.0 if there is none. Until then proofs and assertions that may have been spent before the loss are not accepted. Source: D67
    """
    end = provider.transient.loss.ends_at
    return end if provider.clock() < end else 0.0


class RecoveryNotice:
    """Reporter of a data loss, when it begins and when it ends."""

    def __init__(self, provider: Provider, begun: Callable[[float], None], over: Callable[[], None]) -> None:
        """`begun` is given the end of the recovery, epoch seconds."""
        self._provider: Final = provider
        self._begun: Final = begun
        self._over: Final = over
        self._reported = ""
        """the name of the loss whose recovery was reported to begin"""

    def look(self) -> None:
        """Report what has changed since the last look. Source: D67"""
        name, until = self._provider.transient.loss.name, recovering_until(self._provider)
        if until and name != self._reported:
            self._reported = name
            self._begun(until)
        elif self._reported and not until:
            self._reported = ""
            self._over()


def _note(asked: asyncio.Task[None]) -> None:
    """Retrieve a result whose caller may have gone."""
    if not asked.cancelled():
        asked.exception()


async def _ask(provider: Provider) -> None:
    parts: tuple[tuple[str, Callable[[Provider], Awaitable[None]]], ...] = (
        ("database", _database),
        ("short-lived state", _transient),
        ("signing keys", _keys),
    )
    for part, asked in parts:
        try:
            await asked(provider)
        except NotReady:
            raise
        except Exception as error:
            raise NotReady(part, str(error) if isinstance(error, StoreUnavailable) else type(error).__name__) from error


async def _database(provider: Provider) -> None:
    await provider.registry.deployment.ready()


async def _transient(provider: Provider) -> None:
    engine_time = await provider.transient.engine_time()
    if engine_time is not None:
        apart = provider.clock() - engine_time
        if abs(apart) > CLOCKS_APART_SECONDS:
            raise NotReady(
                "clock",
                f"{abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} the engine's; set the time of this machine",
            )
    await provider.transient.ready(now=provider.clock())


async def _keys(provider: Provider) -> None:
    await provider.signing_keys.at(provider.clock())


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
