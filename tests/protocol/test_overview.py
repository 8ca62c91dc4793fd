"""The overview of a deployment: who reads it, and what it gathers (D49, D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from msgspec.structs import replace

from corpid.flows.operations import signing_keys
from corpid.flows.operations.overview import (
    ClientHealth,
    CountOfClient,
    CountOfRefusals,
    Overview,
    client_health,
    overview,
)
from corpid.rules.directory.access import (
    ANONYMOUS,
    Actor,
    CommandLine,
    DeploymentOperator,
    EntityAdministrator,
    Forbidden,
)
from corpid.rules.directory.records import AdministratorLevel, OperatorLevel
from corpid.rules.hourly_counts import PERIODS, Period
from corpid.rules.limits import DAY, KEY_PUBLISHED_BEFORE_USE_SECONDS
from corpid.rules.server_processes import GONE_SECONDS
from corpid.rules.signing_keys import KEPT_SECONDS
from tests.api.calling import calling
from tests.protocol.test_refusal_reasons import line_of

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

OPS = CommandLine(by="tests@here")


@pytest.fixture
def world(worlds: Worlds) -> World:
    """One of its own: what earlier tests did waits in the memory of a shared one."""
    return worlds.fresh(name="Overview")


def seen(world: World, actor: Actor = OPS, period: Period = "7d") -> Overview:
    world.run(world.provider.counters.flush(world.provider.registry))
    return world.run(overview(world.provider, actor, now=world.clock.now, period=period))


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
            world.run(client_health(registry, actor, world.client(), "7d", now=now, zone=zone))


@pytest.mark.parametrize("period", PERIODS)
def test_sign_ins_and_refusals_are_in_every_series_and_by_client_and_reason(worlds: Worlds, period: Period) -> None:
    world = worlds.fresh(name="Overview")
    world.tokens()
    reason = line_of(world.push(response_mode="fragment"))["reason"]
    stranger = line_of(world.push(client_assertion="e30.e30.e30", client_id="nobody"))["reason"]
    traffic = seen(world, period=period).traffic
    last = traffic.points[-1]
    assert (traffic.period, last.sign_ins, last.refusals) == (period, 1, 2)
    assert [(each.client_id, each.sign_ins, each.refusals) for each in traffic.clients] == [
        ("rp-1", 1, 1),
        ("", 0, 1),
    ]
    assert set(traffic.reasons) == {CountOfRefusals(reason=each, count=1) for each in (reason, stranger)}
    assert traffic.clients[0].name == world.client().name
    assert traffic.clients[1] == CountOfClient(client_id="", name="", sign_ins=0, refusals=1)


def test_a_client_has_its_last_sign_in_its_traffic_and_its_refusals_by_reason(world: World) -> None:
    """D53: of no other client."""
    registry, zone = world.provider.registry, world.provider.policy.timezone
    world.registers("rp-2")

    def health(client_id: str) -> ClientHealth:
        seen(world)
        client = world.run(registry.clients.get(client_id))
        assert client is not None
        return world.run(client_health(registry, OPS, client, "30d", now=world.clock.now, zone=zone))

    begun = int(world.clock.now)
    world.tokens()
    signed_in = world.clock.now
    world.clock.now += 60
    reason = line_of(world.push(response_mode="fragment"))["reason"]
    found = health("rp-1")
    assert begun <= (found.last_sign_in or 0) <= signed_in
    assert (found.traffic.points[-1].sign_ins, found.traffic.points[-1].refusals) == (1, 1)
    assert found.traffic.reasons == (CountOfRefusals(reason=reason, count=1),)
    assert (health("rp-2").last_sign_in, health("rp-2").traffic.reasons) == (None, ())


def test_a_client_that_is_refused_more_often_than_it_signs_people_in_fails(world: World) -> None:
    world.registers("rp-2")
    world.tokens()
    world.push(response_mode="fragment")
    assert seen(world).this_week.failing == ()
    world.push(response_mode="fragment")
    found = seen(world)
    assert [(each.client_id, each.refusals) for each in found.this_week.failing] == [("rp-1", 2)]
    assert (found.this_week.sign_ins, found.this_week.refusals, found.last_week.refusals) == (1, 2, 0)
    world.clock.now += 7 * DAY
    found = seen(world)
    assert (found.this_week.refusals, found.last_week.sign_ins, len(found.last_week.failing)) == (0, 1, 1)


def test_what_was_a_week_ago_is_only_in_the_longer_series(world: World) -> None:
    world.tokens()
    seen(world)
    world.clock.now += 8 * DAY
    week, month = seen(world).traffic, seen(world, period="30d").traffic
    assert sum(each.sign_ins for each in week.points) == 0
    assert sum(each.sign_ins for each in month.points) == 1
    assert (week.clients, len(month.clients)) == ((), 1)


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
    assert found["traffic"]["points"][-1]["sign_ins"] == 1
    assert found["traffic"]["clients"][0]["client_id"] == "rp-1"
    assert calling(world).get("/overview?period=30d").json()["traffic"]["period"] == "30d"
    assert calling(world).get("/overview?period=1y").status_code == 400
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
