"""Who still uses a generation that ends, and what each has to change before it does."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from corpid.directory.access import Actor, Object, authorise
from corpid.protocol import habits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.ports import Registry, UseCount
    from corpid.protocol.generations import Generation
    from corpid.protocol.records import Client


class HabitUse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a client did and the successor refuses; `last_at` in epoch seconds."""

    habit: str
    refused: str
    """what that is, in words"""
    count: int
    last_at: int


class ClientUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one client has to do with one generation that ends."""

    client_id: str
    name: str
    generation: str
    successor: str
    allowed: bool
    """its record names the generation"""
    last_day: str | None
    """YYYY-MM-DD, the last one on which it may use the generation"""
    days_left: int | None
    """from today: 0 on the last day, negative afterwards"""
    passed: bool
    lists_successor: bool
    uses: int
    """sign-ins that were counted"""
    last_at: int | None
    """of the last one, epoch seconds"""
    habits: tuple[HabitUse, ...]


_Counts: TypeAlias = "Mapping[str, UseCount]"


async def report(
    registry: Registry, *, actor: Actor, generations: Mapping[str, Generation], today: str
) -> list[ClientUse]:
    """Every client that names a generation that ends, or has used one; `today` is YYYY-MM-DD, as end dates are.

    Ordered by client. Raises access.Forbidden, StoreUnavailable. Source: decisions.md "Generations", D8
    """
    authorise(actor, "read", Object(kind="client"))
    counted: defaultdict[tuple[str, str], dict[str, UseCount]] = defaultdict(dict)
    for one in await registry.usage.all():
        counted[one.client_id, one.generation][one.habit] = one
    ending = [(each, generations[each.successor]) for each in generations.values() if each.ends and each.successor]
    return [
        _client_use(client, generation, successor, counted[client.client_id, generation.name], today)
        for client in await registry.clients.all()
        for generation, successor in ending
        if generation.name in client.generations or (client.client_id, generation.name) in counted
    ]


def _client_use(
    client: Client, generation: Generation, successor: Generation, counts: _Counts, today: str
) -> ClientUse:
    days_left = _days(today, client.legacy_until)
    sign_ins = counts.get(habits.SIGN_IN)
    return ClientUse(
        client_id=client.client_id,
        name=client.name,
        generation=generation.name,
        successor=successor.name,
        allowed=generation.name in client.generations,
        last_day=client.legacy_until,
        days_left=days_left,
        passed=days_left is not None and days_left < 0,
        lists_successor=not client.generations or successor.name in client.generations,
        uses=sign_ins.count if sign_ins else 0,
        last_at=sign_ins.last_at if sign_ins else None,
        habits=tuple(
            HabitUse(habit=name, refused=habits.sentence(name, successor), count=one.count, last_at=one.last_at)
            for name, one in sorted(counts.items())
            if name != habits.SIGN_IN
        ),
    )


def _days(today: str, last_day: str | None) -> int | None:
    return None if last_day is None else (date.fromisoformat(last_day) - date.fromisoformat(today)).days
