"""Changes that need another administrator's approval, on both engines: one outcome, and a true history (D55)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import Refused, RequestDetails, check_changes, write_changes
from corpid.flows.directory.write import write_changes as write_as
from corpid.rules.audit import AuditEvent, AuditQuery
from corpid.rules.directory.access import (
    Actor,
    ApiClient,
    CommandLine,
    DeploymentOperator,
    EntityAdministrator,
    Forbidden,
    ProvisioningToken,
)
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Entity,
    LastOwnerRemoved,
    Membership,
    StoreChange,
)
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.stores.sql.audit_retention import RetentionPeriods
from tests.adapters.stored_records import BOOKS, TAN, write
from tests.adapters.test_acting_administrators import FIRM, NOW, PLAIN, role
from tests.adapters.test_administrators import LIM_OWNS, PEOPLE, RINA_OWNS, WAITS_SECONDS
from tests.adapters.test_third_parties import OPERATOR

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

DAY = 86400
STRICT = replace(FIRM, approvals="roles")
TAN_IS_MEMBER = Membership(user_id="u1", entity_id="E1", membership_id="u1 at E1")
EVERYBODY: tuple[KeyedRecord, ...] = (*PEOPLE, BOOKS, STRICT, PLAIN, TAN_IS_MEMBER, LIM_OWNS, RINA_OWNS)
"""Lim and Rina own E1, where a role of Tan's is asked for"""
GIVEN = role("u1")
EVENTS = {"declined": "approval.decline", "withdrawn": "approval.withdraw", "expired": "approval.expire"}
CLIENT = ApiClient(client_id="c", scopes=frozenset({"directory.read", "directory.write"}), entity_id="E1")
REGISTERED = RegisteredApiClient(
    client_id="c", name="C", scopes=("directory.read", "directory.write"), jwks="{}", entity_id="E1"
)
"""that client as it may act now"""


async def acting(stores: SqlStores, user_id: str, entity_id: str = "E1") -> EntityAdministrator:
    return await load_administrator(stores.registry, user_id, entity_id, auth_time=NOW, now=NOW)


async def asked(
    stores: SqlStores, change: Change = GIVEN, *, actor: Actor | None = None, number: int = 1
) -> ChangeRequest | None:
    """The request that Lim makes, or another one."""
    requester = actor or await acting(stores, "u2")
    return await write_changes(
        stores.registry, requester, [change], asking=RequestDetails("A new colleague", NOW, f"r{number}")
    )


async def request(stores: SqlStores, change: Change = GIVEN, *, actor: Actor | None = None) -> str:
    made = await asked(stores, change, actor=actor)
    assert made is not None
    return made.request_id


async def approved(stores: SqlStores, request_id: str, actor: Actor, *, now: float = NOW) -> ChangeRequest:
    return await approvals.approve_request(stores.registry, request_id, actor=actor, reason="Seen", now=now)


async def roles(stores: SqlStores) -> int:
    return len([row async for row in stores.registry.directory.scan(Assignment)])


async def history(stores: SqlStores) -> list[tuple[str, str]]:
    """Actor and action of what E1 reads, the earliest first."""
    found = await stores.registry.audit.latest(AuditQuery(entity_id="E1"), limit=50)
    return [(each.actor, each.action) for each in reversed(found) if each.actor != "operator"]


async def outcome(work: Awaitable[object]) -> bool:
    try:
        await work
    except (ChangedMeanwhile, LastOwnerRemoved, Refused, Forbidden):
        return False
    return True


def entity(was: Entity, becomes: Entity) -> Change:
    return Change(was, becomes)


@pytest.mark.parametrize(
    ("meanwhile", "done"), [({"invitation_sent_at": int(NOW)}, True), ({"email": "other@firm.example"}, False)]
)
async def test_sending_an_invitation_makes_no_request_stale_and_another_address_does(
    place: Place, meanwhile: dict[str, Any], *, done: bool
) -> None:
    """D55, D60: sending is nobody's decision."""
    invited = replace(TAN_IS_MEMBER, invited=True, email="tan@firm.example", invitation_sent_at=0)
    ending = Change(invited, None)

    async with place.opened() as stores:
        others = [each for each in EVERYBODY if getattr(each, "user_id", "") != "u1"]
        await write(stores, *others, replace(FIRM, approvals="all"), replace(TAN, placeholder=True), invited)
        made = await request(stores, ending)
        await write(stores, replace(invited, **meanwhile))
        assert await outcome(approved(stores, made, await acting(stores, "u3"))) is done


async def test_a_change_is_made_when_another_administrator_approves_it(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        before = await history(stores)
        with pytest.raises(Forbidden) as refused:
            await write_as(stores.registry, await acting(stores, "u2"), [GIVEN])
        assert refused.value.reason == "this needs the approval of another administrator"
        made = await request(stores)
        assert await roles(stores) == 0
        with pytest.raises(Forbidden) as refused:
            await approved(stores, made, await acting(stores, "u2"))
        assert refused.value.reason == "nobody can decide on their own request"
        done = await approved(stores, made, await acting(stores, "u3"))
        assert (done.state, done.decided_by, await roles(stores)) == ("approved", "user:u3", 1)
        assert (await history(stores))[len(before) :] == [
            ("user:u2", "approval.request"),
            ("user:u2", "assignment.add"),
            ("user:u3", "approval.approve"),
        ]
        [given] = [each for each in await stores.registry.audit.entries() if each.action == "assignment.add"]
        assert (given.detail["approval"], given.detail["approved_by"]) == (made, "user:u3")
        [role] = [each async for each in stores.registry.directory.scan_sourced(Assignment)]
        assert role.sources.record == "user:u2", "it is whose it was asked for, not whose who agreed (D65)"


@pytest.mark.parametrize("how", ["declined", "withdrawn", "expired"])
async def test_what_is_not_approved_changes_nothing(place: Place, how: str) -> None:
    """It ends once: afterwards nothing else is decided."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        made, registry = await request(stores), stores.registry
        lim, rina = await acting(stores, "u2"), await acting(stores, "u3")
        now = NOW
        if how == "declined":
            await approvals.decline_request(registry, made, actor=rina, reason="Not needed", now=NOW)
        elif how == "withdrawn":
            with pytest.raises(Forbidden):
                await approvals.withdraw_request(registry, made, actor=rina, reason="", now=NOW)
            with pytest.raises(Refused, match="one line"):
                await approvals.withdraw_request(registry, made, actor=lim, reason="two\nlines", now=NOW)
            await approvals.withdraw_request(registry, made, actor=lim, reason="", now=NOW)
        else:
            assert await approvals.expire_requests(registry, now=NOW + 14 * DAY - 1) == 0
            now = NOW + 14 * DAY
            with pytest.raises(Refused, match="older than 14 days"):
                await approved(stores, made, replace(rina, now=now, auth_time=now), now=now)
            assert await approvals.expire_requests(registry, now=now) == 1
        shown = await approvals.read_request(registry, rina, made, now=now)
        assert shown.state == how
        with pytest.raises(Refused):
            await approved(stores, made, rina)
        assert await roles(stores) == 0
        assert (await history(stores))[-1][1] == EVENTS[how]


@pytest.mark.parametrize("other", ["approve", "decline", "withdraw"])
async def test_of_two_decisions_at_once_one_is_made(place: Place, other: str) -> None:
    """Two approvers, an approver and the requester: the loser changes nothing, and no event says so."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, REGISTERED)
        made = await request(stores, actor=CLIENT)
        lim, rina = await acting(stores, "u2"), await acting(stores, "u3")
        second: Awaitable[object]
        if other == "approve":
            second = approved(stores, made, lim)
        elif other == "decline":
            second = approvals.decline_request(stores.registry, made, actor=lim, reason="No", now=NOW)
        else:
            second = approvals.withdraw_request(stores.registry, made, actor=CLIENT, reason="", now=NOW)
        results = await asyncio.gather(outcome(approved(stores, made, rina)), outcome(second))
        assert sorted(results) == [False, True]
        done = results[0] or other == "approve"
        assert await roles(stores) == (1 if done else 0)
        decisions = [action for _, action in await history(stores) if action.startswith("approval.")]
        assert decisions == ["approval.request", "approval.approve" if done else f"approval.{other}"]
        shown = await approvals.read_request(stores.registry, rina, made, now=NOW)
        assert (shown.state == "approved") is done


@pytest.mark.parametrize(
    ("since", "reason"),
    [
        (
            Change(LIM_OWNS, None),
            "the requester no longer has permission for this: you no longer administer this entity",
        ),
        (Change(None, replace(LIM_OWNS, level="sub_administrator")), "the requester no longer has permission for this"),
        (Change(Membership(user_id="u2", entity_id="E1"), None), "the requester no longer has permission for this"),
        (Change(None, GIVEN.after), "this was changed since it was requested"),
        (Change(None, replace(PLAIN, enabled=False)), "the rules no longer allow this"),
        (Change(None, replace(PLAIN, roles=("Checker",))), "the rules no longer allow this"),
        (Change(TAN_IS_MEMBER, None), "somebody has left: make a new request"),
        (Change(PLAIN, None), "the rules no longer allow this"),
    ],
    ids=[
        "level ended",
        "demoted",
        "membership ended",
        "given already",
        "service disabled",
        "role gone",
        "left",
        "service gone",
    ],
)
async def test_the_rules_are_asked_again_when_it_is_approved(place: Place, since: StoreChange, reason: str) -> None:
    """A request that is no longer right is refused, says why, and stays to be declined."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        made = await request(stores)
        await stores.registry.directory.write([since])
        before, rina = await roles(stores), await acting(stores, "u3")
        with pytest.raises(Refused) as refused:
            await approved(stores, made, rina)
        assert reason in refused.value.args[0]
        assert await roles(stores) == before
        await approvals.decline_request(stores.registry, made, actor=rina, reason="Too late", now=NOW)


async def test_an_invitation_to_an_entity_that_is_gone_by_then_is_not_approved(place: Place) -> None:
    """D55: an approval looks at all that its changes name, also where the request itself need not."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        invited = Membership(
            user_id="p9", entity_id="E1", membership_id="m9", invited=True, name="Nora", email="n@e.example"
        )
        current: dict[str, dict[object, object]] = {"entity": {}, "membership": {}}
        with pytest.raises(Refused, match="the rules no longer allow this"):
            await check_changes(stores.registry, await acting(stores, "u3"), [Change(None, invited)], current)  # type: ignore[arg-type]


async def test_a_service_that_is_disabled_at_the_same_moment_decides(postgresql: Place) -> None:
    """The approval waits for whoever disables it, and then gives nothing."""
    async with postgresql.opened() as stores:
        await write(stores, *EVERYBODY)
        made, rina = await request(stores), await acting(stores, "u3")
        async with stores.transient.batch(NOW):
            await write(stores, replace(PLAIN, enabled=False))
            late = asyncio.create_task(outcome(approved(stores, made, rina)))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late
        assert await roles(stores) == 0
        assert (await history(stores))[-1][1] == "approval.request"


async def test_a_record_that_is_changed_at_the_same_moment_is_not_overwritten(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        held = replace(GIVEN.after, end_date="2030-12-31")  # type: ignore[type-var]
        await write(stores, *EVERYBODY, held)  # type: ignore[arg-type]
        longer = Change(held, GIVEN.after)
        made, rina = await request(stores, longer), await acting(stores, "u3")
        async with stores.transient.batch(NOW):
            await write(stores, replace(held, end_date="2028-12-31"))  # type: ignore[type-var, arg-type]
            late = asyncio.create_task(outcome(approved(stores, made, rina)))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late
        assert [row.end_date async for row in stores.registry.directory.scan(Assignment)] == ["2028-12-31"]


async def test_a_right_that_ends_while_it_is_approved_gives_nothing(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        await write(stores, *EVERYBODY)
        made, rina = await request(stores), await acting(stores, "u3")
        async with stores.transient.batch(NOW):
            await stores.registry.directory.write([Change(LIM_OWNS, None)])
            late = asyncio.create_task(outcome(approved(stores, made, rina)))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late
        assert await roles(stores) == 0


async def test_a_client_that_is_disabled_while_its_request_is_approved_gets_nothing(postgresql: Place) -> None:
    async with postgresql.opened() as stores:
        await write(stores, *EVERYBODY, REGISTERED)
        made, rina = await request(stores, actor=CLIENT), await acting(stores, "u3")
        async with stores.transient.batch(NOW):
            await write(stores, replace(REGISTERED, enabled=False))
            late = asyncio.create_task(outcome(approved(stores, made, rina)))
            done, _ = await asyncio.wait({late}, timeout=WAITS_SECONDS)
            assert not done
        assert not await late
        assert await roles(stores) == 0


async def test_the_approver_has_the_right_to_the_change(place: Place) -> None:
    """D53, D55: a sub-administrator approves roles at the listed services; nobody their own; no client or token."""

    async def acting_elsewhere(stores: SqlStores) -> EntityAdministrator:
        await write(stores, replace(RINA_OWNS, entity_id="E2"))
        return await acting(stores, "u3", "E2")

    async with place.opened() as stores:
        helper = Administrator(user_id="u1", entity_id="E1", level="sub_administrator", services=("other",))
        await write(stores, *EVERYBODY, replace(PEOPLE[0], enabled=True), helper)
        made = await request(stores, role("u3"))
        for refused in (
            await acting(stores, "u1"),
            await acting(stores, "u3"),
            CLIENT,
            ProvisioningToken(token_id="t", entity_id="E1"),
            DeploymentOperator(user_id="u2", level="operator", auth_time=NOW, now=NOW),
            DeploymentOperator(user_id="u1", level="support", auth_time=NOW, now=NOW),
            replace(await acting(stores, "u3"), auth_time=NOW - 901),
            await acting_elsewhere(stores),
        ):
            with pytest.raises(Forbidden):
                await approved(stores, made, refused)
        assert await roles(stores) == 0


async def test_an_operator_approves_where_one_is_left_and_says_why(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        made = await request(stores)
        with pytest.raises(Refused, match="say why"):
            await approved(stores, made, CommandLine(by="lee@node1"))
        done = await approved(stores, made, OPERATOR)
        assert (done.decided_by, await roles(stores)) == ("command:lee@node1", 1)


async def test_lowering_approvals_needs_approval_and_turning_them_on_two_people(place: Place) -> None:
    """D55: nobody lowers them alone, and no entity locks itself up."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        lim = await acting(stores, "u2")
        lowered = entity(STRICT, FIRM)
        made = await request(stores, lowered)
        with pytest.raises(Forbidden):
            await asked(stores, entity(STRICT, replace(FIRM, name="Other")))
        await approved(stores, made, await acting(stores, "u3"))
        assert await asked(stores) is None
        await stores.registry.directory.write([Change(RINA_OWNS, None)])
        alone = await acting(stores, "u2")
        with pytest.raises(Refused, match="this needs two people who can approve"):
            await asked(stores, entity(FIRM, STRICT), actor=alone)
        await write(stores, replace(RINA_OWNS, level="administrator"))
        assert await asked(stores, entity(FIRM, replace(FIRM, approvals="all")), actor=lim) is None
        assert (await stores.registry.directory.acting("u2", "E1")).entity.approvals == "all"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("approvals_of", "service", "change", "waits"),
    [
        ("none", PLAIN, GIVEN, False),
        ("none", replace(PLAIN, approval_required=True), GIVEN, True),
        ("roles", PLAIN, GIVEN, True),
        ("roles", PLAIN, "appoint", True),
        ("roles", PLAIN, "suspend", False),
        ("roles", PLAIN, "suspend an owner", True),
        ("all", PLAIN, "suspend", True),
    ],
)
async def test_the_entity_and_the_service_say_what_needs_approval(
    place: Place, approvals_of: str, service: KeyedRecord, change: Change | str, waits: bool
) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, replace(STRICT, approvals=approvals_of), service)
        suspended = replace(TAN_IS_MEMBER, enabled=False)
        helper = Administrator(user_id="u1", entity_id="E1", level="sub_administrator")
        named = {
            "appoint": Change(None, helper),
            "suspend": Change(TAN_IS_MEMBER, suspended),
        }
        owner = Membership(user_id="u3", entity_id="E1", membership_id="u3 at E1")
        named["suspend an owner"] = Change(owner, replace(owner, enabled=False))
        wanted = named[change] if isinstance(change, str) else change
        assert (await asked(stores, wanted) is not None) is waits


async def test_operators_bypass_approval_and_the_history_says_so(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        assert await asked(stores, actor=OPERATOR) is None
        [given] = [each for each in await stores.registry.audit.entries() if each.action == "assignment.add"]
        assert given.detail["approval"] == "bypassed"


async def test_provisioning_requests_nothing_and_a_reason_is_needed(place: Place) -> None:
    """D60: read-only there."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        with pytest.raises(Forbidden) as refused:
            await asked(stores, actor=ProvisioningToken(token_id="t", entity_id="E1"))
        assert refused.value.reason == "this needs the approval of another administrator"
        for reason in ("", " ", "two\nlines", "x" * 501):
            with pytest.raises(Refused, match="reason: "):
                await write_changes(stores.registry, CLIENT, [GIVEN], asking=RequestDetails(reason, NOW, "r"))
        assert await approvals.expire_requests(stores.registry, now=NOW + 15 * DAY) == 0


async def test_requests_are_listed_by_entity_and_state_and_none_of_another_entity_shows(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, replace(RINA_OWNS, entity_id="E2"))
        made = [await asked(stores, role("u1"), number=number) for number in range(3)]
        ids = [each.request_id for each in made if each is not None]
        rina = await acting(stores, "u3")
        await approvals.decline_request(stores.registry, ids[1], actor=rina, reason="No", now=NOW)

        async def listed(actor: Actor, entity_id: str, state: str, after: str = "", limit: int = 9) -> list[str]:
            page = await approvals.list_requests(
                stores.registry, actor, entity_id=entity_id, state=state, now=NOW, after=after, limit=limit
            )
            return [each.request.request_id for each in page.found]

        assert await listed(OPERATOR, "", "") == ids
        assert await listed(OPERATOR, "", "pending") == [ids[0], ids[2]]
        assert await listed(rina, "E1", "pending", ids[0]) == [ids[2]]
        assert await listed(rina, "E1", "", "", 1) == ids[:1]
        elsewhere = await acting(stores, "u3", "E2")
        told = set()
        for other in (ids[0], "no-such-request"):
            with pytest.raises(Forbidden) as refused:
                await approvals.read_request(stores.registry, elsewhere, other, now=NOW)
            told.add(str(refused.value))
        assert len(told) == 1


async def test_an_entitys_requests_of_every_state_are_listed_in_one_order(place: Place) -> None:
    """D55, docs/costs.md: a page of each state, by its index."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        for number in range(6):
            made = await asked(stores, number=number)
            assert made is not None
            if number % 2:
                await approvals.withdraw_request(
                    stores.registry, made.request_id, actor=await acting(stores, "u2"), reason="", now=NOW
                )
        found: list[str] = []
        after, owner = "", await acting(stores, "u3")
        while after or not found:
            page = await approvals.list_requests(
                stores.registry, owner, entity_id="E1", state="", now=NOW, after=after, limit=4
            )
            found += [each.request.request_id for each in page.found]
            after = page.after
        assert found == [f"{int(NOW):08x}-r{number}" for number in range(6)]


async def test_decided_requests_leave_with_the_audit_of_their_age(place: Place) -> None:
    """D55, docs/decisions/0008: those that wait stay, and so does what was decided later."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY)
        for number in range(4):
            made = await asked(stores, number=number)
            assert made is not None
            if number < 3:
                at = NOW + (number + 1) * DAY
                owner = await load_administrator(stores.registry, "u2", "E1", auth_time=at, now=at)
                await approvals.withdraw_request(stores.registry, made.request_id, actor=owner, reason="", now=at)
        event = AuditEvent(actor="command:ops@node1", action="audit.prune")

        async def pruned(days: int) -> int:
            kept = RetentionPeriods(audit_days=days)
            return (await stores.registry.retention.prune(event, now=NOW + 10 * DAY, kept=kept)).requests

        assert [await pruned(0), await pruned(30), await pruned(8), await pruned(8)] == [0, 0, 1, 0]
        left = await stores.registry.directory.page(ChangeRequest, {"entity_id": "E1"}, after=("",), limit=9)
        assert [each.request_id[-2:] for each in left] == ["r1", "r2", "r3"]
