"""The overview of a deployment: who reads it, and what it gathers (D49, D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from msgspec.structs import replace

from corpid.flows.operations import signing_keys
from corpid.flows.operations.overview import CountOfClient, CountOfRefusals, overview, series
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.actors import ANONYMOUS, CommandLine, DeploymentOperator, EntityAdministrator
from corpid.rules.directory.records import OperatorLevel
from corpid.rules.limits import DAY, KEY_PUBLISHED_BEFORE_USE_SECONDS
from corpid.rules.server_processes import GONE_SECONDS
from corpid.rules.signing_keys import KEPT_SECONDS
from tests.api.calling import calling
from tests.protocol.test_refusal_reasons import line_of

if TYPE_CHECKING:
    from corpid.flows.operations.overview import Overview
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import AdministratorLevel
    from tests.protocol.provider import World, Worlds

OPS = CommandLine(by="tests@here")


@pytest.fixture
def world(worlds: Worlds) -> World:
    """One of its own: what earlier tests did waits in the memory of a shared one."""
    return worlds.fresh(name="Overview")


def seen(world: World, actor: Actor = OPS) -> Overview:
    world.run(world.provider.counters.flush(world.provider.registry))
    return world.run(overview(world.provider, actor, now=world.clock.now))


@pytest.mark.parametrize("level", get_args(OperatorLevel))
def test_operators_of_every_level_read_it(world: World, level: OperatorLevel) -> None:
    """D53."""
    actor = DeploymentOperator(user_id="u1", level=level, auth_time=world.clock.now - 7200, now=world.clock.now)
    assert seen(world, actor).keys


@pytest.mark.parametrize("level", ["owner", "administrator"])
def test_nobody_else_does(world: World, level: AdministratorLevel) -> None:
    """D53: an entity's administrators see their entity."""
    now, registry, zone = world.clock.now, world.provider.registry, world.provider.policy.timezone
    owner = EntityAdministrator(
        user_id="u1",
        entity_id="E1",
        level=level,
        services=(),
        alone=False,
        auth_time=now,
        now=now,
    )
    for actor in (owner, ANONYMOUS):
        with pytest.raises(Forbidden):
            seen(world, actor)
        with pytest.raises(Forbidden):
            world.run(series(registry, actor, "7 days", now=now, zone=zone))


def test_sign_ins_and_refusals_are_in_both_series_and_by_client_and_reason(world: World) -> None:
    world.tokens()
    reason = line_of(world.push(response_mode="fragment"))["reason"]
    stranger = line_of(world.push(client_assertion="e30.e30.e30", client_id="nobody"))["reason"]
    found = seen(world)
    for traffic in (found.week, found.quarter):
        last = traffic.points[-1]
        assert (last.sign_ins, last.refusals) == (1, 2)
        assert [(each.client_id, each.sign_ins, each.refusals) for each in traffic.clients] == [
            ("rp-1", 1, 1),
            ("", 0, 1),
        ]
        assert set(traffic.reasons) == {CountOfRefusals(reason=each, count=1) for each in (reason, stranger)}
    assert found.week.clients[0].name == world.client().name
    assert found.week.clients[1] == CountOfClient(client_id="", name="", sign_ins=0, refusals=1)


def test_a_series_can_be_of_one_client_or_reason(world: World) -> None:
    world.tokens()
    reason = line_of(world.push(response_mode="fragment"))["reason"]
    seen(world)
    registry, now, zone = world.provider.registry, world.clock.now, world.provider.policy.timezone

    def last(client_id: str | None = None, reason: str | None = None) -> tuple[int, int]:
        found = world.run(series(registry, OPS, "90 days", now=now, zone=zone, client_id=client_id, reason=reason))
        return found[-1].sign_ins, found[-1].refusals

    assert (last(), last("rp-1"), last("rp-1", reason), last("")) == ((1, 1), (1, 1), (0, 1), (0, 0))


def test_what_was_a_week_ago_is_only_in_the_longer_series(world: World) -> None:
    world.tokens()
    seen(world)
    world.clock.now += 8 * DAY
    found = seen(world)
    assert sum(each.sign_ins for each in found.week.points) == 0
    assert sum(each.sign_ins for each in found.quarter.points) == 1
    assert (found.week.clients, len(found.quarter.clients)) == ((), 1)


def test_the_dates_of_signing_keys_are_in_order_and_ahead(world: World) -> None:
    """D42."""
    assert seen(world).key_dates == ()
    now = int(world.clock.now)
    first, _ = seen(world).keys
    second = world.run(signing_keys.rotate(world.provider.registry, OPS, now=now))
    begins = now + KEY_PUBLISHED_BEFORE_USE_SECONDS
    dates = [(each.kid, each.what, each.at) for each in seen(world).key_dates]
    assert sorted(dates) == sorted(
        [
            (second.kid, "signs", begins),
            (first.kid, "retires", begins),
            (first.kid, "withdrawn", begins + KEPT_SECONDS),
        ]
    )
    assert [each[2] for each in dates] == sorted(each[2] for each in dates)


def test_a_client_on_a_generation_that_ends_is_counted_down(world: World) -> None:
    """Spec "Generations"."""
    world.registers("rp-2", generations=("legacy", "current"), legacy_until="2099-01-01")
    world.registers("rp-3", generations=("legacy", "current"), legacy_until="2098-01-01")
    ending = seen(world).ending
    assert [(each.client_id, each.last_day) for each in ending] == [("rp-3", "2098-01-01"), ("rp-2", "2099-01-01")]
    assert all(each.days_left and each.days_left > 0 for each in ending)


def test_it_has_what_the_doctor_would_find_problems_first_and_names_the_engines(world: World) -> None:
    world.registers("rp-2", issuers=("elsewhere",))
    world.clock.now += 500 * DAY
    found = seen(world)
    verdicts = [each.verdict for each in found.findings]
    assert verdicts == sorted(verdicts)
    assert {"issuers", "signing keys"} <= {each.about for each in found.findings}
    assert (found.engines.database, found.engines.transient, found.engines.not_ready) == ("SQLite", "LMDB", "")


def test_the_api_shows_it_to_a_client_with_both_scopes(world: World) -> None:
    """D59."""
    world.tokens()
    seen(world)
    found = calling(world).get("/overview").json()
    assert found["week"]["points"][-1]["sign_ins"] == 1
    assert found["week"]["clients"][0]["client_id"] == "rp-1"
    assert "secret" not in found["keys"][0]
    assert calling(world, "api-2", scopes=("operations",)).get("/overview").status_code == 403


def test_every_process_registers_itself_and_one_that_differs_is_marked_until_it_is_gone(world: World) -> None:
    """D43, D49."""
    processes, now = world.provider.registry.server_processes, world.clock.now
    own = world.provider.node.process
    world.run(processes.note(replace(own, seen_at=int(now))))
    other = replace(own, process_id="other", host="node2", version="99.0", started_at=own.started_at + 1)
    world.run(processes.note(replace(other, seen_at=int(now))))
    found = seen(world)
    assert {each.host: (each.live, each.answers, each.differs_in) for each in found.processes} == {
        own.host: (True, True, ()),
        "node2": (True, False, ("version",)),
    }
    assert "versions of the processes" in {each.about for each in found.findings}
    assert "key_encryption_key" in own.settings
    world.run(processes.note(replace(other, seen_at=int(now) - GONE_SECONDS - 1)))
    later = seen(world)
    assert [each.live for each in later.processes if each.host == "node2"] == [False]
    assert "versions of the processes" not in {each.about for each in later.findings}
