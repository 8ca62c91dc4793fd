"""Who is meant: people are identified by what their entity cannot write (D68)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals, members
from corpid.flows.directory.acceptance import accept_with_account
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import AmbiguousName, find_member, submit_details
from corpid.flows.directory.write import IdentifierConflict, RequestDetails, write_changes
from corpid.rules.directory.access import CommandLine, EntityAdministrator, ProvisioningToken
from corpid.rules.directory.memberships import Member, placeholder
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    MemberDetails,
    Membership,
    ThirdPartyAssignment,
    User,
)
from tests.manage.scene import ACME, go, in_portal, send
from tests.manage.test_requests import ROLE, acme, requested, roles, state
from tests.sign_in.world import World, entity, form_of, shown_again

INVITED = Membership(
    user_id="f1e2", entity_id=ACME, membership_id="m-gina", invited=True,
    name="Gina Teo", user_name="gina@acme.example", email="gina@acme.example",
)  # fmt: skip
TOKEN = ProvisioningToken(token_id="t", entity_id=ACME)


def owner(made: World, who: str = "bob") -> EntityAdministrator:
    now = made.clock()
    return EntityAdministrator(
        user_id=f"id-{who}", entity_id=ACME, level="owner", services=(), alone=False, auth_time=now, now=now
    )


def limit(made: World) -> InvitationLimit:
    return InvitationLimit(transient=made.provider.transient, issuer=made.base)


async def member(made: World, who: str) -> Membership:
    found: dict[tuple[str, ...], Membership] = await made.provider.registry.directory.read(Membership, [(who, ACME)])
    return found[who, ACME]


async def provisioned(made: World, membership: Membership, **changed: str) -> Member:
    """Another userName, displayName or address, as SCIM writes it."""
    details = MemberDetails(
        **{each: changed.get(each, getattr(membership, each)) for each in MemberDetails.__struct_fields__}
    )
    return await members.change_member(
        made.provider.registry, limit(made), membership.membership_id, details,
        enabled=membership.enabled, actor=TOKEN, now=made.clock(),
    )  # fmt: skip


async def rename(made: World, membership: Membership, name: str, *, email: str | None = None) -> ChangeRequest | None:
    """Another name or address, as the portal's form writes it."""
    return await submit_details(made.provider.registry, limit(made), membership, {"name": name, "email": membership.email if email is None else email}, actor=owner(made), asking=RequestDetails("r", made.clock(), made.provider.new_id()))  # fmt: skip


@pytest.mark.parametrize("door", ["page", "provisioning"])
@pytest.mark.parametrize("at", ["requests/", "requests/decide/"])
async def test_a_name_that_changes_while_a_request_waits_is_shown_and_asks_for_a_fresh_look(
    made: World, door: str, at: str
) -> None:
    """D68: the account's user name stays, whatever the entity calls them."""
    await acme(made)
    await made.person("siti", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Siti Contoh")
    role = replace(ROLE, user_id="id-siti")
    found = await requested(made, Change(None, role))
    browser = await in_portal(made, f"{at}{found.request_id}")
    before = form_of(browser, "reason")
    if door == "page":
        await rename(made, await member(made, "id-siti"), "Cora Chan")
    else:
        await provisioned(made, await member(made, "id-siti"), name="Cora Chan", user_name="siti")
    sent = {**before, "reason": "She starts", "decision": "approve"}
    answer = await send(made, browser, f"requests/decide/{found.request_id}", **sent)
    answer = await shown_again(browser, answer)
    assert "Names have changed since you looked." in answer.text
    assert await state(made, found) == "pending"
    for shown in ("requests", f"requests/{found.request_id}", f"requests/decide/{found.request_id}"):
        await go(made, browser, shown)
        assert "siti (Cora Chan)" in browser.page.text
    assert "siti (Siti Contoh)" in browser.page.text  # as it was
    await browser.fill_and_submit(button="approve", reason="Siti starts on Monday")
    assert await state(made, found) == "approved"
    [given] = (await made.provider.registry.directory.read(Assignment, [role.key])).values()
    assert given.user_id == "id-siti"


async def test_a_name_in_brackets_takes_the_place_of_nobody(made: World) -> None:
    """D68: what identifies a person stands first, and the entity cannot write it."""
    await acme(made)
    await rename(made, await member(made, "id-cora"), "Alice Tan (alice)")
    await requested(made)
    browser = await in_portal(made, "requests")
    assert "Give access to cora (Alice Tan [alice]): Maker" in browser.page.text


async def test_the_approver_of_an_invitation_sees_the_address_that_it_goes_to(made: World) -> None:
    """D68: not only the name that was typed."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    invited = replace(INVITED, name="Cora Chan", email="mallory@elsewhere.example")
    await requested(made, Change(None, invited))
    browser = await in_portal(made, "requests")
    assert "Invite mallory@elsewhere.example (Cora Chan)" in browser.page.text


async def test_an_account_that_is_called_like_the_address_is_told_apart_from_who_is_invited(made: World) -> None:
    """D68: where one request is about both, since somebody was renamed meanwhile, the invited person is marked."""
    await acme(made)
    acme_ = entity(ACME, "Acme Pte. Ltd.", approvals="all")
    await made.write(acme_)
    await made.person("gus", acme_, name="Gina Teo")
    invited = replace(INVITED, name="Gina Teo", email="gina@acme.example")
    found = await requested(made, Change(None, invited), Change(None, replace(ROLE, user_id="id-gus")))
    gus = await made.provider.registry.directory.user("id-gus")
    assert gus is not None
    await made.write(replace(gus, user_name="gina@acme.example"))
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "Invite (invited) gina@acme.example (Gina Teo)" in browser.page.text
    assert "Asked for: gina@acme.example (Gina Teo) may act as Maker" in browser.page.text


async def test_whoever_made_a_request_or_a_change_is_named_by_their_account(made: World) -> None:
    """D68: not by the name that a token wrote."""
    await acme(made)
    found = await requested(made)
    await made.write(replace(await member(made, "id-bob"), name="Alice Tan"))  # as a token wrote it
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "bob (Alice Tan)" in browser.page.text
    await go(made, browser, "history?kind=requests")
    assert "bob (Alice Tan)" in browser.page.text


async def test_another_address_of_an_invitation_ends_what_was_given_and_asked_for_under_the_first(made: World) -> None:
    """D68: roles, roles for others and the level; who accepts at the new address has nothing."""
    await acme(made)
    registry = made.provider.registry
    role, level = (
        replace(ROLE, user_id="f1e2"),
        Administrator(user_id="f1e2", entity_id=ACME, level="administrator"),
    )
    other = ThirdPartyAssignment(user_id="f1e2", entity_id=ACME, client_entity_id="200000002A", service_id="PERMITS")
    await made.write(placeholder(INVITED), INVITED, role, level, other)
    wanted = replace(role, role="Other")
    found = await requested(made, Change(None, wanted))
    moved = await rename(made, await member(made, "f1e2"), "Gina Teo", email="mallory@elsewhere.example")
    assert moved is not None  # it takes a level, so that it needs approval
    await approvals.approve_request(
        registry, moved.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
    )
    assert await state(made, found) == "declined"
    for record, kind in ((role, Assignment), (level, Administrator), (other, ThirdPartyAssignment)):
        assert await registry.directory.read(kind, [record.key]) == {}
    assert [entry.object for entry in await made.audit("assignment.remove")] == ["/".join(role.key)]
    assert len(await made.audit("administrator.remove")) == 1
    assert len(await made.audit("third_party_assignment.remove")) == 1
    await made.write(User(user_id="id-mallory", user_name="mallory", name="Mallory"))
    [mallory] = (await registry.directory.read(User, [("id-mallory",)])).values()
    await accept_with_account(registry, await member(made, "f1e2"), mallory, now=made.clock())
    assert (await member(made, "id-mallory")).invited is False
    where = {"user_id": "id-mallory", "entity_id": ACME}
    assert await registry.directory.page(Assignment, where, after=("",) * 6, limit=9) == []


async def test_a_role_that_a_service_wants_approved_is_not_handed_on_with_the_address(made: World) -> None:
    """D68: without approval the address changes, and the role ends."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), INVITED)
    role = replace(ROLE, user_id="f1e2")
    await made.write(role)
    assert await rename(made, await member(made, "f1e2"), "Gina Teo", email="b@acme.example") is None
    assert await made.provider.registry.directory.read(Assignment, [role.key]) == {}


async def test_a_role_that_is_given_at_the_moment_of_another_address_is_not_given(made: World) -> None:
    """D68: the write rests on the invitation as it was read."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), INVITED)
    registry = made.provider.registry
    role = replace(ROLE, user_id="f1e2")

    async def give() -> None:
        change = Change(None, role)
        await write_changes(registry, owner(made, "alice"), [change])

    done = await asyncio.gather(
        give(), rename(made, await member(made, "f1e2"), "Gina Teo", email="b@acme.example"), return_exceptions=True
    )
    assert all(each is None or isinstance(each, ChangedMeanwhile) for each in done)
    if (await member(made, "f1e2")).email == "b@acme.example":
        assert await registry.directory.read(Assignment, [role.key]) == {}


async def test_a_token_cannot_swap_the_names_of_two_members(made: World) -> None:
    """D68: an entity's user name differs from the account user names of its other members."""
    await acme(made)
    await made.person("finn", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Finn Goh")
    await provisioned(made, await member(made, "id-cora"), user_name="c.chan", name="Cora")
    for taken in ("Cora", "C.Chan", "bob"):
        with pytest.raises(IdentifierConflict):
            await provisioned(made, await member(made, "id-finn"), user_name=taken, name="Cora Chan")


async def test_whoever_joins_onto_a_name_that_an_entity_wrote_gets_in_and_the_name_is_cleared(made: World) -> None:
    """D68: joining is never refused, and the history says what was cleared."""
    await acme(made)
    await provisioned(made, await member(made, "id-cora"), user_name="finn", name="Cora Chan")
    await made.write(placeholder(INVITED), INVITED, User(user_id="id-finn", user_name="finn", name="Finn Goh"))
    registry = made.provider.registry
    [finn] = (await registry.directory.read(User, [("id-finn",)])).values()
    await accept_with_account(registry, await member(made, "f1e2"), finn, now=made.clock())
    assert (await member(made, "id-cora")).user_name == ""
    [cleared] = [each for each in await made.audit("membership.update") if each.detail.get("cleared")]
    assert (cleared.object, cleared.before) == (f"id-cora/{ACME}", {"user_name": "finn"})
    found = await find_member(registry, ACME, "finn")
    assert found is not None
    assert found.user.user_id == "id-finn"
    browser = await in_portal(made, f"history/{cleared.number}")
    assert "The user name that your organisation had entered was cleared" in browser.page.text


async def test_whoever_is_renamed_onto_a_name_that_an_entity_wrote_keeps_it_alone(made: World) -> None:
    """D68: the account's user name wins."""
    await acme(made)
    await provisioned(made, await member(made, "id-cora"), user_name="robert", name="Cora Chan")
    registry = made.provider.registry
    [bob] = (await registry.directory.read(User, [("id-bob",)])).values()
    change = Change(bob, replace(bob, user_name="robert"))
    await write_changes(registry, CommandLine(by="root@host"), [change])
    assert (await member(made, "id-cora")).user_name == ""
    found = await find_member(registry, ACME, "Robert")
    assert found is not None
    assert found.user.user_id == "id-bob"


async def test_a_name_that_means_two_people_is_refused_with_both(made: World) -> None:
    """D68: account user name and the entity's are asked together; never the address."""
    await acme(made)
    cora = await member(made, "id-cora")
    await made.write(replace(cora, user_name="bob", email="alice@acme.example"))  # as an earlier version let them
    registry = made.provider.registry
    with pytest.raises(AmbiguousName, match=r"bob \(Bob Lim\).*cora \(Cora Chan\)|cora.*bob \(Bob Lim\)"):
        await find_member(registry, ACME, "bob")
    assert await find_member(registry, ACME, "alice@acme.example") is None
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table="user_name,service,role\nbob,PERMITS,Maker")
    assert "bob can mean several people here" in browser.page.text
    assert await roles(made) == []
    await go(made, browser, "history?person=bob")
    assert "bob can mean several people here" in browser.page.text


async def test_people_are_found_by_their_account_whatever_the_entity_calls_them(made: World) -> None:
    """D68: the list shows the account's user name, and the search knows it."""
    await acme(made)
    await provisioned(made, await member(made, "id-cora"), user_name="c.chan", name="Somebody Else")
    wanted = members.MemberFilter(search="cora")
    page = await members.list_members(made.provider.registry, wanted, actor=owner(made), after="", limit=9)
    assert [each.member.name for each in page.found] == ["cora (Somebody Else)"]
    browser = await in_portal(made, "people")
    assert "cora" in browser.page.text
    assert "c.chan" not in browser.page.text
