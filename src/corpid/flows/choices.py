"""Which entities a person can choose for a client (D17, D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.directory.choice import usable

if TYPE_CHECKING:
    from corpid.directory.choice import Choice
    from corpid.flows.provider import Provider
    from corpid.protocol.records import Client


async def choices(provider: Provider, user_id: str, client: Client, *, now: float) -> list[Choice]:
    """Every entity of a person, each with whether and why not it can be used at this client (D17)."""
    services = await provider.live.services(client.services, now) if client.services else []
    found = await provider.live.choices(user_id, now)
    return [usable(entity, membership, services) for entity, membership in found]
