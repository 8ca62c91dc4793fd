"""The overview of a deployment, for operators.

Sign-ins and refusals, keys, generations that end, engines, and what `corpid doctor` would find. Not checked here, since
a server must not do it for a page or cannot see it: what `corpid doctor` asks through the proxy, who connects to a
node, its key-encryption key, the database's version and waiting migrations, and the condition of Redis or Valkey.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.oauth.client_keys import list_certificates
from corpid.flows.operations import audit, signing_keys
from corpid.flows.operations.migration_report import ClientUse, uses_of
from corpid.flows.operations.readiness import NotReady, Readiness
from corpid.rules import diagnostics
from corpid.rules import signing_keys as key_rules
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.diagnostics import Finding
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.hourly_counts import COMPLETED, LatestUse, Period, Point, list_beginnings, series
from corpid.rules.limits import DAY, HOUR
from corpid.rules.oauth.client_registration import PLAIN_RULES, RegistrationRules
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import Client
from corpid.rules.server_processes import ServerProcess, find_differing, is_live, live
from corpid.rules.signing_keys import KeyDate, ProviderKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from zoneinfo import ZoneInfo

    from corpid.flows.request_context import Provider
    from corpid.stores.sql.registry import Registry

_READ_AT_ONCE_SECONDS: Final = 7 * DAY
"""of counters by client and reason: 20 ms on SQLite with 70 busy clients"""


class CountOfClient(msgspec.Struct, frozen=True, kw_only=True):
    """Sign-ins and refusals of a client over a period."""

    client_id: str
    """empty: refusals of requests that name no registered client"""
    name: str
    """empty for a client that is no longer registered, or unknown"""
    sign_ins: int
    refusals: int


class CountOfRefusals(msgspec.Struct, frozen=True, kw_only=True):
    """Refusals for one reason over a period."""

    reason: str
    """its code in the catalogue of refusals"""
    count: int


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Completed sign-ins and refusals of a period."""

    period: Period
    points: tuple[Point, ...]
    clients: tuple[CountOfClient, ...]
    """those with the most refusals first, then with the most sign-ins"""
    reasons: tuple[CountOfRefusals, ...]
    """the most frequent first"""


class Week(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of 7 days."""

    sign_ins: int
    refusals: int
    failing: tuple[CountOfClient, ...]
    """registered clients with more refusals than sign-ins, those with the most refusals first"""


class ClientHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-ins and refusals of one client."""

    last_sign_in: int | None
    """epoch seconds; None: the audit has none"""
    traffic: Traffic


class ClientState(msgspec.Struct, frozen=True, kw_only=True):
    """A client of a list, and how it fares."""

    client: Client
    latest: LatestUse
    certificates: tuple[tuple[str, int], ...]
    """kid and end, as in `ClientKeyReport`"""
    uses: tuple[ClientUse, ...]
    """of what its record allows and ends"""


class SigningKeyDates(msgspec.Struct, frozen=True, kw_only=True):
    """A signing key without its secret."""

    kid: str
    state: str
    signs_from: int | None
    """nothing for a standby key, and for one that ended before its date"""
    retired_at: int | None


class EngineStates(msgspec.Struct, frozen=True, kw_only=True):
    """The process that was asked, and what it uses."""

    version: str
    host: str
    started_at: int
    workers: int
    database: str
    transient: str
    sends_mail: bool
    not_ready: str
    """the failing part, as /readyz names it; empty: everything answers"""


class ProcessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A serving process, as it has registered itself."""

    host: str
    number: int
    """that of its system"""
    address: str
    """on which it listens"""
    version: str
    started_at: int
    seen_at: int
    """when it was last known to live; once a minute"""
    live: bool
    """false: it has not been seen for minutes, and did not stop in order"""
    answers: bool
    """whether it is the one that was asked"""
    settings: dict[str, str]
    """those that every process must share, without secrets"""
    differs_in: tuple[str, ...]
    """`version` and settings in which it differs from most processes"""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The overview of a deployment."""

    at: int
    """epoch seconds"""
    maintenance: bool
    traffic: Traffic
    """of the period that was asked for"""
    this_week: Week
    """the last 7 days, by full hours"""
    last_week: Week
    """the 7 days before"""
    keys: tuple[SigningKeyDates, ...]
    key_dates: tuple[KeyDate, ...]
    ending: tuple[ClientUse, ...]
    """clients on a generation or an exception that ends, those that end first at the beginning, without a last day
    last"""
    engines: EngineStates
    processes: tuple[ProcessSummary, ...]
    """those of this version or a later one, of the last day"""
    findings: tuple[Finding, ...]
    """problems first, then warnings"""


async def overview(
    provider: Provider, actor: Actor, *, now: float, period: Period = "7d", rules: RegistrationRules = PLAIN_RULES
) -> Overview:
    """Gather the overview.

    `period` is that of its series; `rules` are those of the deployment's clients. Raises access.Forbidden, StoreUnavailable. Source: D49, D53
    """
    for kind in ("deployment", "client", "key"):
        authorise(actor, "read", Object(kind=kind))
    registry, zone = provider.registry, provider.policy.timezone
    clients, keys = await registry.clients.list_all(), await signing_keys.stored_keys(registry)
    today = datetime.fromtimestamp(now, zone).date().isoformat()
    uses = uses_of(clients, await registry.usage.list_all(), generations=GENERATIONS, today=today, rules=rules)
    names = {client.client_id: client.name for client in clients}
    registered = await registry.server_processes.list_all()
    until = int(now) // HOUR * HOUR + HOUR
    return Overview(
        at=int(now),
        maintenance=await registry.deployment.maintenance(),
        traffic=await _traffic(registry, period, names, now=now, zone=zone),
        this_week=await _week(registry, until, names),
        last_week=await _week(registry, until - 7 * DAY, names),
        keys=tuple(
            SigningKeyDates(
                kid=key.kid,
                state=key_rules.state(key, now),
                signs_from=key_rules.signs_from(key),
                retired_at=key_rules.retires_at(key),
            )
            for key in keys
        ),
        key_dates=tuple(key_rules.next_dates(keys, now=now)),
        ending=tuple(sorted(uses, key=lambda use: (use.last_day is None, use.last_day or "", use.client_id))),
        engines=await _engines(provider),
        processes=_processes(registered, provider.node.process.process_id, now=now),
        findings=tuple(await _findings(provider, clients, keys, registered, now=now, today=today)),
    )


async def client_health(
    registry: Registry, actor: Actor, client: Client, period: Period, *, now: float, zone: ZoneInfo
) -> ClientHealth:
    """The last sign-in of a client, and its traffic.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    query = AuditQuery(client_id=client.client_id, actions=(AuditAction.SIGN_IN_COMPLETE,))
    last = await audit.read_part(registry, query, limit=1, actor=actor)
    authorise(actor, "read", Object(kind="client"))
    names = {client.client_id: client.name}
    return ClientHealth(
        last_sign_in=next((each.at for each in last.entries), None),
        traffic=await _traffic(registry, period, names, now=now, zone=zone, client_id=client.client_id),
    )


async def client_states(
    registry: Registry, actor: Actor, clients: Sequence[Client], *, now: float, today: str, rules: RegistrationRules
) -> tuple[ClientState, ...]:
    """The states of the clients of a page, in one statement.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    authorise(actor, "read", Object(kind="client"))
    latest = await registry.clients.latest_uses([each.client_id for each in clients], hour=int(now) // HOUR * HOUR)
    return tuple(
        ClientState(
            client=each,
            latest=latest[each.client_id],
            certificates=tuple(list_certificates(each.jwks or latest[each.client_id].jwks or "")),
            uses=tuple(uses_of([each], (), generations=GENERATIONS, today=today, rules=rules)),
        )
        for each in clients
        if each.client_id in latest
    )


async def _traffic(
    registry: Registry,
    period: Period,
    names: dict[str, str],
    *,
    now: float,
    zone: ZoneInfo,
    client_id: str | None = None,
) -> Traffic:
    beginnings = list_beginnings(period, now=now, zone=zone)
    since, until = beginnings[0] // HOUR * HOUR, int(now) // HOUR * HOUR + HOUR
    counts = await registry.hourly_counts.totals(since=since, until=until, client_id=client_id)
    sums = await _sums(registry, since, until, client_id)
    reasons = Counter[str]()
    for (_, reason), count in sums.items():
        if reason != COMPLETED:
            reasons[reason] += count
    return Traffic(
        period=period,
        points=series(counts, beginnings),
        clients=_of_clients(sums, names),
        reasons=tuple(CountOfRefusals(reason=reason, count=count) for reason, count in reasons.most_common()),
    )


async def _week(registry: Registry, until: int, names: dict[str, str]) -> Week:
    """The 7 days before a full hour."""
    found = _of_clients(await _sums(registry, until - 7 * DAY, until), names)
    return Week(
        sign_ins=sum(each.sign_ins for each in found),
        refusals=sum(each.refusals for each in found),
        failing=tuple(each for each in found if each.name and each.refusals > each.sign_ins),
    )


async def _sums(registry: Registry, since: int, until: int, client_id: str | None = None) -> Counter[tuple[str, str]]:
    """The sums by client and reason, read a part at a time.

    On SQLite a statement keeps every other request waiting.
    """
    sums = Counter[tuple[str, str]]()
    for begin in range(since, until, _READ_AT_ONCE_SECONDS):
        end = min(begin + _READ_AT_ONCE_SECONDS, until)
        for each in await registry.hourly_counts.by_client_and_reason(since=begin, until=end, client_id=client_id):
            sums[each.client_id, each.reason] += each.count
        await asyncio.sleep(0)
    return sums


def _of_clients(sums: Counter[tuple[str, str]], names: dict[str, str]) -> tuple[CountOfClient, ...]:
    sign_ins, refusals = Counter[str](), Counter[str]()
    for (client_id, reason), count in sums.items():
        (sign_ins if reason == COMPLETED else refusals)[client_id] += count
    found = [
        CountOfClient(
            client_id=client_id,
            name=names.get(client_id, ""),
            sign_ins=sign_ins[client_id],
            refusals=refusals[client_id],
        )
        for client_id in {**sign_ins, **refusals}
    ]
    return tuple(sorted(found, key=lambda each: (-each.refusals, -each.sign_ins, each.client_id)))


async def _engines(provider: Provider) -> EngineStates:
    node, not_ready = provider.node, ""
    try:
        await Readiness(provider).check()
    except NotReady as error:
        not_ready = error.part
    return EngineStates(
        version=node.version,
        host=node.host,
        started_at=node.started_at,
        workers=node.workers,
        database=node.database,
        transient=node.transient,
        sends_mail=provider.mail.works,
        not_ready=not_ready,
    )


def _processes(registered: Sequence[ServerProcess], asked: str, *, now: float) -> tuple[ProcessSummary, ...]:
    others = find_differing(live(registered, now=now))
    return tuple(
        ProcessSummary(
            host=each.host,
            number=each.number,
            address=each.address,
            version=each.version,
            started_at=each.started_at,
            seen_at=each.seen_at,
            live=is_live(each, now=now),
            answers=each.process_id == asked,
            settings=each.settings,
            differs_in=others.get(each.process_id, ()),
        )
        for each in registered
    )


async def _findings(
    provider: Provider,
    clients: list[Client],
    keys: list[ProviderKey],
    registered: list[ServerProcess],
    *,
    now: float,
    today: str,
) -> list[Finding]:
    """The findings of `corpid doctor` that a server can make.

    Without those of what is well.
    """
    registry, node = provider.registry, provider.node
    in_life = [(key.kid, key.active_from, key.retired_at) for key in keys if key.revoked_at is None]
    named = [(client.client_id, client.issuers) for client in clients if client.issuers]
    waiting, oldest = await registry.invitations.count_waiting()
    found = [
        *node.findings,
        *diagnostics.pkce(clients, node.generations, today=today),
        *diagnostics.unknown_issuers(named, node.generations),
        diagnostics.signing_keys(in_life, now=now),
        diagnostics.audit_seals(await _unsealed_since(registry), now=now),
        diagnostics.invitation_emails(waiting, oldest, sends=node.sends_mail, now=now),
        *diagnostics.processes(registered, now=now),
    ]
    return [each for verdict in ("problem", "warning") for each in found if each.verdict == verdict]


async def _unsealed_since(registry: Registry) -> int | None:
    """The moment of the oldest unsealed entry of the audit."""
    last = await registry.seals.last()
    for entry in await registry.audit.entries(after=last.last if last else 0, limit=1):
        return entry.at
    return None
