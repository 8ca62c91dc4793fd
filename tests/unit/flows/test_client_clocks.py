"""Leads of clients' clocks: what was spent before a loss is never accepted after it (D67, docs/decisions/0026)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from corpid.flows.oauth import dpop
from corpid.flows.oauth.client_clocks import ClockSkews
from corpid.flows.operations.process_reports import Registration
from corpid.flows.request_context import Provider, request_context
from corpid.rules.data_loss import (
    CHECKED_SECONDS,
    KNOWN_AFTER_SECONDS,
    LARGEST_RECORDED,
    LARGEST_SKEW,
    PERIOD_SECONDS,
    DataLoss,
)
from corpid.rules.directory.records import Change
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.rules.oauth.client_assertion import Assertion
from corpid.rules.oauth.errors import InvalidClient, OAuthError, TemporarilyUnavailable
from corpid.stores.data_loss import forget
from corpid.stores.sql.statements import Statement
from corpid.stores.sql.tables import client_clocks as client_clocks_table
from tests.adapters.opened import sqlite
from tests.memory_store import MemoryTransientStore
from tests.tiers import first_or_full
from tests.unit.flows.opened import EVENT, provider_at
from tests.unit.flows.opened import NOW as STARTED
from tests.unit.flows.test_usage import client
from tests.world.clock import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.rules.server_processes import ServerProcess

NOTICED = 3
"""seconds until every process has noticed a loss"""
LONG = 45
"""seconds after which everybody may sign in again"""
NOW = STARTED + 1000
AGO = NOW - KNOWN_AFTER_SECONDS - 100


@dataclass
class Engine:
    """An engine's clock, its store, and what it says of the last loss."""

    clock: Clock
    store: MemoryTransientStore

    def lost(self) -> tuple[Engine, float]:
        """The engine after it lost everything now, and until when processes may still write to the previous one."""
        until = self.clock.now + NOTICED
        loss = DataLoss(name=f"{until}", reject_issued_before=until + CLOCKS_APART_SECONDS, spent_until=until)
        return Engine(self.clock, MemoryTransientStore(loss=loss, clock=self.clock)), until


class Nodes:
    """Processes of one deployment; each is given the engine that it sees, and may have a clock that is off."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.clock = Clock(AGO)
        self.engine = Engine(self.clock, MemoryTransientStore(clock=self.clock))
        self.known = [ClockSkews(provider.registry, provider.node.version) for _ in range(2)]
        self.made = 0

    async def begin(self) -> None:
        registry = self.provider.registry
        await registry.directory.write([Change(None, client("rp0")), Change(None, client("rp1"))], EVENT)
        await registry.client_clocks.begin(now=AGO)

    def dated(self, skew: float, client_id: str = "rp0") -> Assertion:
        """An assertion of a client whose clock is ahead by this."""
        self.made += 1
        return Assertion(
            client_id=client_id, jti=f"{self.made}", issued_at=self.clock.now + skew, has_iat=True,
            remember_seconds=600, lifetime=60, names_endpoint=False,
        )  # fmt: skip

    async def send(self, assertion: Assertion, node: int = 0, *, engine: Engine | None = None, off: float = 0) -> None:
        """Raises what the node answers, unless it accepts it."""
        seen = self.engine if engine is None else engine
        at = replace(
            self.provider,
            transient=seen.store,
            client_clocks=self.known[node],
            clock=lambda: self.clock.now + off,
        )
        context = await request_context(at, request_id="r", address="192.0.2.1")
        skew = await at.client_clocks.record_skew(assertion, at.transient)
        async with at.transient.batch(context.now) as batch:
            await dpop.spend_proof_and_assertion(context, batch, None, assertion, skew)

    async def is_accepted(self, assertion: Assertion, node: int = 0, **how: float) -> bool:
        try:
            await self.send(assertion, node, **how)  # type: ignore[arg-type]
        except OAuthError:
            return False
        return True


@asynccontextmanager
async def two_nodes(path: Path) -> AsyncIterator[Nodes]:
    async with provider_at(path) as provider:
        nodes = Nodes(provider)
        await nodes.begin()
        yield nodes


async def sign_ins(nodes: Nodes, skew: float) -> list[Assertion]:
    """A sign-in now and then until NOW, the last ones at either node; some are late."""
    sent = []
    for at in (AGO + 10, NOW - 100, *(NOW - 40 + second for second in range(41))):
        nodes.clock.now = at
        for node, off, late in ((0, 8, 0), (1, -8, 0), (0, 8, 0.4), (1, 0, 3)):
            assertion = nodes.dated(skew - late)
            await nodes.send(assertion, node, off=off)
            sent.append(assertion)
    return sent


@pytest.mark.parametrize("skew", first_or_full([-60, -59.6, -3.5, 0, 5, 25, 29.9, LARGEST_SKEW], first=LARGEST_SKEW))
async def test_an_assertion_that_was_spent_before_a_loss_is_never_accepted_after_it(
    tmp_path: Path, skew: float
) -> None:
    """Every captured assertion is sent again at every second, to nodes whose clocks are off."""
    async with two_nodes(tmp_path) as nodes:
        captured = await sign_ins(nodes, skew)
        before = nodes.engine
        nodes.engine, until = before.lost()
        while nodes.clock.now < until + LONG:
            if nodes.clock.now <= until:  # one node has not noticed yet, and even sees a faster clock
                captured.append(nodes.dated(min(skew + 4, LARGEST_SKEW)))
                await nodes.send(captured[-1], 1, engine=before)
            for number, assertion in enumerate(captured):
                with pytest.raises(TemporarilyUnavailable):
                    await nodes.send(assertion, number % 2, off=8 if number % 3 else -8)
            nodes.clock.pass_(1)


@pytest.mark.parametrize("skew", [-60, -59.6, -3.5, 0, 5, 25, 29.9])
async def test_a_client_whose_clock_is_known_signs_in_within_ten_seconds_and_is_told_when(
    tmp_path: Path, skew: float
) -> None:
    """D67: Retry-After is the truth: what is made then is accepted, what is made a second earlier is not."""
    async with two_nodes(tmp_path) as nodes:
        await sign_ins(nodes, skew)
        nodes.engine, _ = nodes.engine.lost()
        lost_at = nodes.clock.now
        with pytest.raises(TemporarilyUnavailable) as told:
            await nodes.send(nodes.dated(skew), 1)
        nodes.clock.now = lost_at + told.value.retry_after - 1
        assert not await nodes.is_accepted(nodes.dated(skew), 1)
        nodes.clock.pass_(1)
        assert nodes.clock.now <= lost_at + 10
        for node in (0, 1):
            assertion = nodes.dated(skew)
            await nodes.send(assertion, node)
            with pytest.raises(InvalidClient, match="already used"):
                await nodes.send(assertion, 1 - node)


async def test_a_client_without_a_record_waits_for_the_largest_lead(tmp_path: Path) -> None:
    """It may have had any that is counted."""
    async with two_nodes(tmp_path) as nodes:
        nodes.clock.now = NOW
        nodes.engine, until = nodes.engine.lost()
        nodes.clock.now = until + LARGEST_SKEW
        assert not await nodes.is_accepted(nodes.dated(0, "rp1"))
        nodes.clock.pass_(1)
        assert await nodes.is_accepted(nodes.dated(0, "rp1"))


async def test_a_record_that_is_younger_than_three_minutes_proves_nothing(tmp_path: Path) -> None:
    """Another process may still rely on a record that was lost."""
    async with two_nodes(tmp_path) as nodes:
        nodes.clock.now = NOW - KNOWN_AFTER_SECONDS + NOTICED + 1
        await nodes.send(nodes.dated(0))
        nodes.clock.now = NOW
        nodes.engine, until = nodes.engine.lost()
        nodes.clock.now = until + 10
        assert not await nodes.is_accepted(nodes.dated(0))


@pytest.mark.parametrize(
    "how", ["the database lost something", "a process of another version", "a node whose clock is wrong"]
)
async def test_records_that_may_be_incomplete_prove_nothing(tmp_path: Path, how: str) -> None:
    """After a takeover or a restore records may be missing; an older version makes none."""
    async with two_nodes(tmp_path) as nodes:
        provider = nodes.provider
        await sign_ins(nodes, 0)
        if how == "a process of another version":
            other = replace_version(provider, "0.0.9")
            await provider.registry.server_processes.note(other)
        elif how == "a node whose clock is wrong":
            await nodes.send(nodes.dated(LARGEST_RECORDED + 1, "rp1"), off=12)
        else:
            await provider.registry.client_clocks.begin(now=NOW - 60)
        nodes.engine, until = nodes.engine.lost()
        nodes.clock.now = until + CLOCKS_APART_SECONDS + 29
        assert not await nodes.is_accepted(nodes.dated(0))
        nodes.clock.pass_(1)
        assert await nodes.is_accepted(nodes.dated(0))


async def test_a_client_that_dates_far_ahead_at_a_node_that_is_ahead_makes_nobody_wait_whose_clock_is_known(
    tmp_path: Path,
) -> None:
    """It does so again and again: its own wait is that of before, and that of clients without a record (D67)."""
    async with two_nodes(tmp_path) as nodes:
        captured = await sign_ins(nodes, 0)
        for ago in range(100, -1, -5):
            nodes.clock.now = NOW - ago
            hostile = [nodes.dated(skew, "rp1") for skew in (LARGEST_SKEW + 1, LARGEST_SKEW + 7, LARGEST_RECORDED)]
            for assertion in hostile:
                await nodes.send(assertion, off=9.9)
        assert await nodes.provider.registry.client_clocks.recorded_since() == AGO
        nodes.engine, until = nodes.engine.lost()
        accepted: dict[str, float] = {}
        while nodes.clock.now < until + LONG:
            for assertion in (*captured, *hostile):
                assert not await nodes.is_accepted(assertion, off=9.9)
            for each in ("rp0", "rp1", "rp2"):
                if await nodes.is_accepted(nodes.dated(0, each), 1):
                    accepted.setdefault(each, nodes.clock.now - until)
            nodes.clock.pass_(1)
        assert accepted["rp0"] == 1
        assert accepted["rp1"] == accepted["rp2"] == CLOCKS_APART_SECONDS + 30


async def test_a_client_that_was_removed_may_have_had_a_larger_lead(tmp_path: Path) -> None:
    """Its record went with it; one of the same name proves nothing until that skew is past."""
    async with two_nodes(tmp_path) as nodes:
        directory = nodes.provider.registry.directory
        nodes.clock.now = NOW - 1
        captured = nodes.dated(LARGEST_RECORDED, "rp1")
        await nodes.send(captured, off=9.9)
        await directory.write([Change(client("rp1"), None)], EVENT)
        await directory.write([Change(None, client("rp1"))], EVENT)
        nodes.clock.now = NOW
        nodes.engine, until = nodes.engine.lost()
        while nodes.clock.now < until + LONG:
            assert not await nodes.is_accepted(captured, 1, off=9.9)
            nodes.clock.pass_(1)


def replace_version(provider: Provider, version: str) -> ServerProcess:
    return structs.replace(provider.node.process, process_id="other", version=version, seen_at=int(NOW) - 60)


async def test_a_lead_is_on_disk_before_the_assertion_is_spent(tmp_path: Path) -> None:
    """A process may die between the two; without the record nothing is spent."""
    async with two_nodes(tmp_path) as nodes:
        nodes.clock.now = NOW - 1
        await nodes.send(nodes.dated(2))

        class Failing:
            async def record_skew(self, *_: object) -> None:
                raise StoreUnavailable("the database does not answer")

        working, nodes.known[0] = nodes.known[0], Failing()  # type: ignore[call-overload]
        assertion = nodes.dated(7)
        with pytest.raises(StoreUnavailable):
            await nodes.send(assertion)
        nodes.known[0] = working
        await working.record_skew(assertion, nodes.engine.store)
        stored = await nodes.provider.registry.client_clocks.find("rp0")
        assert stored is not None
        assert stored.lead == 7
        await nodes.send(assertion)


async def test_a_lead_that_is_recorded_costs_no_statement_for_a_while(tmp_path: Path) -> None:
    """Afterwards it is looked up again: a record that was lost meanwhile is made again."""
    async with sqlite(tmp_path) as stores:
        registry = stores.registry
        await registry.directory.write([Change(None, client("rp0"))], EVENT)
        clocks = ClockSkews(registry, "1")
        await clocks.record("rp0", 3, NOW)
        async with stores.database.transaction():
            await stores.database.run(Statement(client_clocks_table.delete()), {})
        await clocks.record("rp0", 3, NOW + CHECKED_SECONDS - 1)
        assert await registry.client_clocks.find("rp0") is None
        await clocks.record("rp0", 2, NOW + CHECKED_SECONDS)
        await clocks.record("rp0", 5, NOW + CHECKED_SECONDS + 1)
        stored = await registry.client_clocks.find("rp0")
        assert stored is not None
        assert stored.lead == 5
        await clocks.record("rp0", -4, NOW + PERIOD_SECONDS)
        stored = await registry.client_clocks.find("rp0")
        assert stored is not None
        assert (stored.lead, stored.lead_before) == (-4, 5)


async def test_a_process_that_starts_alone_or_sees_another_version_begins_the_records(tmp_path: Path) -> None:
    """A version that records nothing may have served until then."""
    async with provider_at(tmp_path) as provider:
        registry, own = provider.registry, provider.node.process
        begun = registry.client_clocks.recorded_since
        for each in await registry.server_processes.list_all():
            await registry.server_processes.remove(each.process_id)
        await Registration(registry, own).round(now=NOW)
        assert await begun() == NOW
        later = Registration(registry, structs.replace(own, process_id="second"))
        await later.round(now=NOW + 60)
        assert await begun() == NOW
        await registry.server_processes.note(replace_version(provider, "0.0.9"))
        await later.round(now=NOW + 120)
        assert await begun() == NOW + 120


async def test_whatever_ends_sessions_begins_the_records(tmp_path: Path) -> None:
    """A restore and a takeover: records of the time before may be missing."""
    async with sqlite(tmp_path) as stores:
        async with stores.database.transaction():
            await forget(stores.database, now=NOW)
        assert await stores.registry.client_clocks.recorded_since() == NOW
