"""Attacks on who is meant, by a hostile entity and its hostile people (D68)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals, member_help
from corpid.flows.directory.acceptance import accept_with_account, accept_with_new_account
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.members import AmbiguousName, find_member, submit_switch
from corpid.flows.directory.write import IdentifierConflict, Refused, RequestDetails, write_changes
from corpid.flows.operations.history import HistoryFilter, changes
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangedMeanwhile,
    Service,
    User,
)
from corpid.rules.limits import UNLOCK_AGAIN_SECONDS, UNLOCKS_PER_DAY
from tests.contexts import context
from tests.enrolment import invited as harbour
from tests.manage.access_scene import staffed
from tests.manage.scene import ACME, in_portal
from tests.manage.test_helping_members import able, helping, outcome
from tests.manage.test_helping_members import member as marcus
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_who_is_meant import INVITED, limit, member, owner, provisioned, rename
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world

EVIL = "mallory@evil.example"


async def free(made: World) -> None:
    """Acme without approvals: Alice and Bob own it, Cora belongs, Gina is invited."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), INVITED)


async def held(made: World, user_id: str) -> list[str]:
    where = {"user_id": user_id, "entity_id": ACME}
    found = await made.provider.registry.directory.page(Assignment, where, after=("",) * 6, limit=9)
    return [each.role for each in found]


async def test_two_lines_of_a_table_are_for_two_accounts(made: World) -> None:
    """D51, D68: groß and gross are two accounts; folding is not how accounts are compared."""
    await free(made)
    await made.write(Service(service_id="PERMITS", name="Permits", roles=("Maker", "Viewer")))
    await made.person("groß", entity(ACME, "Acme Pte. Ltd."), name="Mallory")
    await made.person("gross", entity(ACME, "Acme Pte. Ltd."), name="Gerda Gross")
    found = await find_member(made.provider.registry, ACME, "gross")
    assert found is not None
    assert found.user.user_id == "id-gross"
    browser = await in_portal(made, "access/import")
    lines = "user_name,service,role\ngroß,PERMITS,Maker\ngross,PERMITS,Viewer"
    await browser.fill_and_submit("table", table=lines)
    await browser.fill_and_submit("table", button="confirm")
    assert (await held(made, "id-groß"), await held(made, "id-gross")) == (["Maker"], ["Viewer"])


async def test_a_name_cannot_make_a_second_sentence(made: World) -> None:
    """D68: brackets in a name close the bracket, and the right seems to be Bob's."""
    await acme(made)
    name = "Cora Chan) may act as Viewer at Permits for Acme Pte. Ltd. bob (Bob Lim"
    await provisioned(made, await member(made, "id-cora"), user_name="cora", name=name)
    await requested(made)
    browser = await in_portal(made, "requests")
    assert "bob (Bob Lim) may act as Maker at Permits for Acme Pte. Ltd." not in browser.page.text


async def test_nobody_takes_the_address_of_somebody_else_as_user_name(made: World) -> None:
    """D68: an approver cannot tell it from the address of an invitation."""
    await harbour.invite(made, email=EVIL, name="Siti Contoh")
    browser = await harbour.at_profile(made)
    await harbour.named(browser, user_name="siti@acme.example", name="Siti Contoh")
    assert browser.page.heading == harbour.PROFILE


async def test_the_history_filter_asks_former_members_too(made: World) -> None:
    """D68: a token calls Mallory as Finn's account is called, who has left."""
    await free(made)
    registry = made.provider.registry
    await made.person("finn", entity(ACME, "Acme Pte. Ltd."), name="Finn Goh")
    role = replace(ROLE, user_id="id-finn")
    change = Change(None, role)
    await write_changes(registry, owner(made, "alice"), [change])
    membership = await member(made, "id-finn")
    gone = Change(membership, None)
    await write_changes(registry, owner(made, "alice"), [gone])
    now = made.clock()
    alice = await load_administrator(registry, "id-alice", ACME, auth_time=now, now=now)
    part = await changes(registry, alice, HistoryFilter(person="finn"), before=0, limit=50)
    assert "assignment.add" in [each.action for each in part.entries]
    await provisioned(made, await member(made, "id-cora"), user_name="finn", name="Finn Goh")
    with suppress(AmbiguousName):
        part = await changes(registry, alice, HistoryFilter(person="finn"), before=0, limit=50)
        assert "assignment.add" in [each.action for each in part.entries], "Finn's history is hidden"


async def test_a_written_user_name_hides_nobodys_page(made: World) -> None:
    """D68: a token called Cora as the identifier of Bob's membership, which the address of his page names."""
    await acme(made)
    page = (await member(made, "id-bob")).membership_id
    await made.write(replace(await member(made, "id-cora"), user_name=page, name="Cora Chan"))
    browser = await in_portal(made, f"person/{page}")
    assert browser.page.heading == "bob (Bob Lim)"


async def twin(made: World) -> None:
    """Cora is called finn by a request that was made before Finn joined, and approved afterwards."""
    registry = made.provider.registry
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await made.write(placeholder(INVITED), INVITED, User(user_id="id-finn", user_name="f@acme.example", name="Finn"))
    cora = replace(await member(made, "id-cora"), user_name="c@acme.example", email="c@acme.example")
    await made.write(cora)
    found = await rename(made, await member(made, "id-cora"), "Cora Chan", email="f@acme.example")
    assert found is not None
    [finn] = (await registry.directory.read(User, [("id-finn",)])).values()
    await accept_with_account(registry, await member(made, "f1e2"), finn, now=made.clock())
    await approvals.approve_request(
        registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
    )


async def test_an_approval_does_not_make_a_name_mean_two_people(made: World) -> None:
    """D68: an entity's userName differs from the account user names of its other members."""
    with suppress(IdentifierConflict, Refused):  # either would be right at the approval
        await twin(made)
    found = await find_member(made.provider.registry, ACME, "f@acme.example")
    assert found is not None


async def test_whoever_has_such_a_name_can_be_suspended(made: World) -> None:
    """D50: the name has nothing to do with it."""
    await free(made)
    # As an earlier version, an approval, or two doors at the same moment leave it.
    await made.write(replace(await member(made, "id-cora"), user_name="bob"))
    await submit_switch(made.provider.registry, limit(made), await member(made, "id-cora"), enabled=False, actor=owner(made, "alice"), asking=RequestDetails("", made.clock(), made.provider.new_id()))  # fmt: skip
    assert not (await member(made, "id-cora")).enabled


async def test_a_newcomer_clears_no_name_that_is_not_theirs(made: World) -> None:
    """D68: the account groß is not called gross, and nobody resolves to it by that name."""
    await free(made)
    registry = made.provider.registry
    await provisioned(made, await member(made, "id-cora"), user_name="gross")
    await accept_with_new_account(
        registry, await member(made, "f1e2"), "id-mallory",
        user_name="groß", name="Mallory", language="", now=made.clock(),
    )  # fmt: skip
    found = await find_member(registry, ACME, "gross")
    assert found is not None
    assert found.user.user_id == "id-cora"


async def test_a_user_name_that_is_the_identifier_of_a_membership_shows_nobody_elses_history(made: World) -> None:
    """D68: all that a typed name can mean is asked together."""
    await free(made)
    registry = made.provider.registry
    cora = (await member(made, "id-cora")).membership_id
    await accept_with_new_account(
        registry, await member(made, "f1e2"), "id-mallory",
        user_name=cora, name="Mallory", language="", now=made.clock(),
    )  # fmt: skip
    role = replace(ROLE, user_id="id-mallory")
    await write_changes(registry, owner(made, "alice"), [Change(None, role)])
    now = made.clock()
    alice = await load_administrator(registry, "id-alice", ACME, auth_time=now, now=now)
    with suppress(AmbiguousName):
        part = await changes(registry, alice, HistoryFilter(person=cora), before=0, limit=50)
        assert "assignment.add" in [each.action for each in part.entries]


@pytest.mark.parametrize("order", [0, 1])
async def test_of_an_approval_and_a_redirection_at_the_same_moment_nothing_reaches_the_other_address(
    made: World, order: int
) -> None:
    """D68: held."""
    await acme(made)
    registry = made.provider.registry
    await made.write(placeholder(INVITED), INVITED)
    for number in range(15):
        role = replace(ROLE, user_id="f1e2", sub_entity=f"S{number}")
        found = await requested(made, Change(None, role))
        now = made.clock()
        approving = approvals.approve_request(
            registry, found.request_id, actor=owner(made, "alice"), reason="r", now=now
        )
        moving = rename(made, await member(made, "f1e2"), "Gina Teo", email=f"m{number}@evil.example")
        both = [approving, moving][:: 1 if order else -1]
        await asyncio.gather(*both, return_exceptions=True)
        if (await member(made, "f1e2")).email == f"m{number}@evil.example":
            assert await held(made, "f1e2") == []
        made.clock.pass_(1)


@pytest.mark.parametrize("names", ["", "0" * 32, "as shown before"])
async def test_a_forged_or_an_old_digest_of_names_approves_nothing(made: World, names: str) -> None:
    """D68: held."""
    await acme(made)
    found = await requested(made)
    registry, now = made.provider.registry, made.clock()
    old = (
        (await approvals.summarise_request(registry, found, owner(made), now)).names.digest
        if names == "as shown before"
        else names
    )
    await rename(made, await member(made, "id-cora"), "Somebody Else")
    with pytest.raises(approvals.NamesChanged):
        await approvals.approve_request(
            registry, found.request_id, actor=owner(made, "alice"), reason="r", now=now, names=old
        )


async def test_an_invitation_without_address_hands_nothing_on_to_the_first_one(made: World) -> None:
    """D68: held."""
    await free(made)
    nobody = replace(INVITED, email="", user_name="gina")
    role = replace(ROLE, user_id="f1e2")
    await made.write(nobody, role)
    await provisioned(made, nobody, email=EVIL)
    assert await held(made, "f1e2") == []


async def test_a_request_for_an_invitation_is_none_for_whoever_accepted_it(made: World) -> None:
    """D68: held; also after an upgrade, when a request has no names."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    role = replace(ROLE, user_id="f1e2")
    registry = made.provider.registry
    asked = Change(None, role)
    found = await requested(made, asked)
    await made.write(replace(found, people=()))
    with pytest.raises(approvals.NamesChanged):
        await approvals.approve_request(
            registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
        )
    await made.write(found, User(user_id="id-mallory", user_name="mallory", name="Gina Teo"))
    [mallory] = (await registry.directory.read(User, [("id-mallory",)])).values()
    await accept_with_account(registry, await member(made, "f1e2"), mallory, now=made.clock())
    seen = (await approvals.summarise_request(registry, found, owner(made), made.clock())).names.digest
    with pytest.raises(Refused):
        await approvals.approve_request(
            registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock(), names=seen
        )
    assert await held(made, "id-mallory") == []


async def test_there_and_back_again_a_role_is_gone(made: World) -> None:
    """D68: held; a → m → a, with a request that was made in between."""
    await acme(made)
    role = replace(ROLE, user_id="f1e2")
    await made.write(placeholder(INVITED), INVITED, role)
    await rename(made, await member(made, "f1e2"), "Gina Teo", email=EVIL)
    other = replace(role, sub_entity="B")
    found = await requested(made, Change(None, other))
    await rename(made, await member(made, "f1e2"), "Gina Teo", email="gina@acme.example")
    assert await held(made, "f1e2") == []
    with pytest.raises(Refused):
        await approvals.approve_request(
            made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
        )


async def test_a_suspended_member_is_helped_too() -> None:
    """D69: attack or not? Whoever left and was only suspended stays within reach of their former organisation."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await made.write(replace(await marcus(made), enabled=False))
        actor, of, at = await helping(made), await marcus(made), await context(made.provider)
        await member_help.request_help(at, of, "unlock", actor=actor)
        await member_help.carry_out_help(at, of, "unlock", actor=actor)
        assert [each[0] for each in await outcome(made, "unlock")] == ["ok"]


async def test_a_help_that_was_not_asked_for_uses_up_no_hour() -> None:
    """D69: a token that writes a name at that moment keeps a locked member locked, each hour anew."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        actor, of, at = await helping(made), await marcus(made), await context(made.provider)
        await made.write(replace(of, name="Another"))
        with pytest.raises(ChangedMeanwhile):
            await member_help.request_help(at, of, "unlock", actor=actor)
        await member_help.request_help(at, await marcus(made), "unlock", actor=actor)


async def test_a_thief_of_the_password_gets_few_guesses_a_day_from_an_administrator() -> None:
    """D45, D69: pauses grow to a day, unless an accomplice ends them each hour, whatever entity they administer."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        for _ in range(24):
            actor, of, at = await helping(made), await marcus(made), await context(made.provider)
            with suppress(Refused):
                await member_help.request_help(at, of, "unlock", actor=actor)
                await member_help.carry_out_help(at, of, "unlock", actor=actor)
            made.clock.pass_(UNLOCK_AGAIN_SECONDS)
        done = [each for each in await outcome(made, "unlock") if each[0] == "ok"]
        assert len(done) <= UNLOCKS_PER_DAY
