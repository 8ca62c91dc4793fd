"""Clients of an ending generation or exception, and the changes each needs."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.oauth import deprecated_usage
from corpid.rules.oauth.client_registration import PLAIN_RULES, RegistrationRules, pushed_for, used_generations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.oauth.deprecated_usage import UseCount
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client
    from corpid.stores.sql.registry import Registry


class DeprecatedUse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a client did and that is refused one day.

    `last_at` in epoch seconds.
    """

    habit: str
    refused: str
    """what that is, in words"""
    count: int
    last_at: int


class ClientUse(msgspec.Struct, frozen=True, kw_only=True):
    """One client's use of an ending generation, or of an ending exception."""

    client_id: str
    name: str
    generation: str
    successor: str | None
    """None: the generation stays, and what ends is that assertions may name an endpoint as aud (D64)"""
    allowed: bool
    """its record names the generation, or a last day of the exception"""
    last_day: str | None
    """YYYY-MM-DD, the last one on which it may use the generation or the exception"""
    days_left: int | None
    """from today: 0 on the last day, negative afterwards"""
    passed: bool
    lists_successor: bool
    reaches_successor: bool
    """one of its issuers serves the successor; where there is one issuer this is not asked (D62)"""
    uses: int
    """sign-ins that were counted"""
    last_at: int | None
    """of the last one, epoch seconds"""
    habits: tuple[DeprecatedUse, ...]


_Counts: TypeAlias = "Mapping[str, UseCount]"


async def report(
    registry: Registry,
    *,
    actor: Actor,
    generations: Mapping[str, Generation],
    today: str,
    rules: RegistrationRules = PLAIN_RULES,
) -> list[ClientUse]:
    """Clients that name or have used something deprecated.

    Generations and exceptions that end. `today` is YYYY-MM-DD. `rules` are those of the deployment's clients. Ordered
    by client, generations first. Raises access.Forbidden, StoreUnavailable. Source: Spec "Generations", D8, D64
    """
    authorise(actor, "read", Object(kind="client"))
    counts = await registry.usage.list_all()
    return uses_of(await registry.clients.list_all(), counts, generations=generations, today=today, rules=rules)


async def report_of(
    registry: Registry,
    client: Client,
    *,
    actor: Actor,
    generations: Mapping[str, Generation],
    today: str,
    rules: RegistrationRules,
) -> list[ClientUse]:
    """The same of one client, without reading the others.

    Raises access.Forbidden, StoreUnavailable. Source: Spec "Generations", D8, D64
    """
    authorise(actor, "read", Object(kind="client"))
    return uses_of([client], await registry.usage.list_all(), generations=generations, today=today, rules=rules)


def uses_of(
    clients: Iterable[Client],
    every: Iterable[UseCount],
    *,
    generations: Mapping[str, Generation],
    today: str,
    rules: RegistrationRules,
) -> list[ClientUse]:
    """The report on these clients. Source: Spec "Generations", D8, D64"""
    counted: defaultdict[tuple[str, str], dict[str, UseCount]] = defaultdict(dict)
    for one in every:
        counted[one.client_id, one.generation][one.habit] = one
    ending = [(each, generations[each.successor]) for each in generations.values() if each.ends and each.successor]
    staying = [each for each in generations.values() if each.endpoint_audience and not each.ends]
    found = []
    for client in clients:
        for generation, successor in ending:
            counts, allowed = counted[client.client_id, generation.name], generation.name in client.generations
            if allowed or counts:
                reaches = len(rules.issuers) == 1 or successor in pushed_for(client, rules)
                use = _client_use(client, generation, counts, client.legacy_until, today, successor, allowed=allowed)
                listed = not client.generations or successor.name in client.generations
                found.append(msgspec.structs.replace(use, lists_successor=listed, reaches_successor=reaches))
        for generation in staying:
            counts = counted[client.client_id, generation.name]
            allowed = client.endpoint_audience_until is not None and generation in used_generations(client, rules)
            if allowed or deprecated_usage.AUDIENCES.intersection(counts):
                last_day = client.endpoint_audience_until
                found.append(_client_use(client, generation, counts, last_day, today, None, allowed=allowed))
    return found


def _client_use(
    client: Client,
    generation: Generation,
    counts: _Counts,
    last_day: str | None,
    today: str,
    successor: Generation | None,
    *,
    allowed: bool,
) -> ClientUse:
    days_left = None if last_day is None else (date.fromisoformat(last_day) - date.fromisoformat(today)).days
    sign_ins = counts.get(deprecated_usage.SIGN_IN)
    return ClientUse(
        client_id=client.client_id,
        name=client.name,
        generation=generation.name,
        successor=successor.name if successor is not None else None,
        allowed=allowed,
        last_day=last_day,
        days_left=days_left,
        passed=days_left is not None and days_left < 0,
        lists_successor=True,
        reaches_successor=True,
        uses=sign_ins.count if sign_ins else 0,
        last_at=sign_ins.last_at if sign_ins else None,
        habits=tuple(
            DeprecatedUse(
                habit=name,
                refused=deprecated_usage.sentence(name, successor or generation),
                count=one.count,
                last_at=one.last_at,
            )
            for name, one in sorted(counts.items())
            if name != deprecated_usage.SIGN_IN
        ),
    )
