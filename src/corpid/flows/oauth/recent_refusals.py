"""Recent refusals of each client: noted in memory, written at intervals."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.names import is_storable
from corpid.rules.failures import StoreUnavailable

if TYPE_CHECKING:
    from corpid.rules.directory.actors import Actor
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.stores.sql.registry import Registry

KEPT: Final[dict[bool, int]] = {False: 100, True: 20}
"""refusals kept of each client: those of requests that it made, and those of requests that only claim to be its"""
CLIENTS: Final = 1000
"""clients of each kind whose refusals wait to be written: strangers can claim any number"""
_LONGEST_CLAIM: Final = 256
"""characters of a claimed identifier; a stranger could fill the memory with longer ones"""

_Ring: TypeAlias = "deque[ClientRefusal]"


class RecentRefusals:
    """Refusals of this process that are not written yet.

    They are lost if the process dies.
    """

    def __init__(self) -> None:
        self._rings: dict[bool, dict[str, _Ring]] = {False: {}, True: {}}

    def note(self, refusal: ClientRefusal) -> None:
        """Note a refusal; the latest ones of each client are kept.

        Claimed ones have a place of their own, so that strangers push nothing out, and what cannot be an identifier is
        not noted. Source: D28
        """
        if refusal.claimed and (len(refusal.client_id) > _LONGEST_CLAIM or not is_storable(refusal.client_id)):
            return
        rings = self._rings[refusal.claimed]
        if refusal.client_id not in rings and len(rings) >= CLIENTS:
            return
        rings.setdefault(refusal.client_id, deque(maxlen=KEPT[refusal.claimed])).append(refusal)

    async def flush(self, registry: Registry) -> None:
        """Write the refusals.

        If the store cannot be reached, they are kept for the next flush. Source: D28
        """
        for claimed, rings in self._rings.items():
            for client_id in list(rings):
                ring = rings.pop(client_id)
                try:
                    await registry.client_refusals.add(list(ring), kept=KEPT[claimed])
                except BaseException as error:
                    self._take_back(rings, client_id, ring)
                    if isinstance(error, StoreUnavailable):
                        return
                    raise
                # On SQLite nothing else waits, and there may be a thousand clients.
                await asyncio.sleep(0)

    def _take_back(self, rings: dict[str, _Ring], client_id: str, earlier: _Ring) -> None:
        later = rings.pop(client_id, ())
        rings[client_id] = deque((*earlier, *later), maxlen=earlier.maxlen)


async def refusals_of(registry: Registry, client_id: str, *, actor: Actor) -> list[ClientRefusal]:
    """The recent refusals of a client, the latest first.

    Those of the last seconds may be missing. Raises access.Forbidden, StoreUnavailable. Source: D28
    """
    authorise(actor, "read", Object(kind="client"))
    return await registry.client_refusals.list_for_client(client_id)
