"""Whether this process can answer requests, and if not, what is missing (D49)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.ports import StoreUnavailable
from corpid.protocol.limits import CLOCKS_APART_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.provider import Provider


class NotReady(Exception):
    """`part` is what is missing, in a word or two."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part


async def check(provider: Provider) -> None:
    """Ask everything that a request needs. Raises NotReady for the first that does not answer as it has to. D49"""
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
    if engine_time is None:
        return
    apart = provider.clock() - engine_time
    if abs(apart) > CLOCKS_APART_SECONDS:
        raise NotReady(
            "clock",
            f"{abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} the engine's; set the time of this machine",
        )


async def _keys(provider: Provider) -> None:
    await provider.own_keys.ring(provider.clock())
