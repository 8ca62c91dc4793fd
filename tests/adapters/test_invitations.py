"""Answers to one invitation at the same moment, on both engines: one outcome (D60)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.flows.account import links
from corpid.flows.directory import invitations, members
from corpid.flows.directory.acceptance import (
    AlreadyBelongs,
    accept_with_account,
    accept_with_new_account,
    decline_membership,
)
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.write import Refused
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import records
from corpid.rules.authentication.records import Credentials, FactorChange
from corpid.rules.directory.access import (
    Actor,
    DeploymentOperator,
    EntityAdministrator,
    Forbidden,
    Person,
    ProvisioningToken,
)
from corpid.rules.directory.memberships import SENDING_SECONDS, OpenInvitation, being_sent
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangedMeanwhile,
    Conflict,
    Entity,
    Membership,
    MissingReference,
    NameTaken,
    Precondition,
    Service,
    User,
)
from corpid.rules.limits import RESEND_SECONDS
from tests.adapters.opened import NOW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

HARBOUR: Final = Entity(
    entity_id="200000077H", type="UEN", registration_number="200000077H", country="SG", name="Harbour Logistics"
)
PEOPLE: Final = tuple(
    User(user_id=f"00000000-0000-4000-8000-{n:012}", user_name=f"person-{n}", name=f"Person {n}") for n in range(2)
)
WAITING: Final = "00000000-0000-4000-8000-00000000000a"
NEW: Final = "00000000-0000-4000-8000-00000000000f"
"""of the person who accepts it without an account"""
INVITED: Final = Membership(
    user_id=WAITING, entity_id=HARBOUR.entity_id, invited=True, email="wei.ling@harbour.example", user_name="wei.ling"
)
BY_TOKEN: Final = AuditEvent(actor="token:t1", action=AuditAction.MEMBERSHIP_ADD, entity_id=HARBOUR.entity_id)
REVOKED: Final = AuditEvent(actor="token:t1", action=AuditAction.MEMBERSHIP_REMOVE, entity_id=HARBOUR.entity_id)
SENT: Final = AuditEvent(actor="system", action=AuditAction.LINK_MEMBERSHIP, entity_id=HARBOUR.entity_id)
SET: Final = AuditEvent(actor=f"user:{NEW}", action=AuditAction.FACTORS_MEMBERSHIP, object=NEW)
ROUNDS: Final = 4


async def sent(stores: SqlStores) -> tuple[OpenInvitation, str]:
    """A new invitation whose e-mail was sent, and the hash of its link."""
    write = stores.registry.directory.write
    await write([Change(None, HARBOUR), *(Change(None, each) for each in PEOPLE)])
    await write([Precondition(Membership, INVITED.key, None), Change(None, INVITED, BY_TOKEN)])
    found = await stores.registry.invitations.find(WAITING)
    assert found is not None
    link = links.make_invitation_link(found, records.code_from("random"), now=NOW)
    assert await stores.registry.invitations.take(found, now=NOW)
    await stores.registry.factors.keep_link(link, SENT)
    assert await stores.registry.invitations.settle(found, taken=NOW, becomes=int(NOW))
    after = await stores.registry.invitations.find(WAITING)
    assert after is not None
    return after, link.link_hash


FACTORS: Final = FactorChange(
    before=Credentials(user_id=NEW),
    after=Credentials(user_id=NEW).with_password("$argon2id$new", "user"),
    end_sessions_but="",
)


async def as_new_person(
    stores: SqlStores, found: OpenInvitation, _: str, user_name: str = "wei.ling", change: FactorChange = FACTORS
) -> None:
    """Accept with factors, in one transaction."""
    async with stores.registry.transaction():
        await accept_with_new_account(
            stores.registry,
            found.membership,
            NEW,
            user_name=user_name,
            name="Tan Wei Ling",
            language="en",
            now=NOW,
        )
        if not await stores.registry.factors.change(change, SET):
            raise ChangedMeanwhile("the factors are others")


async def with_account(stores: SqlStores, found: OpenInvitation, user: User) -> None:
    await accept_with_account(stores.registry, found.membership, user, now=NOW)


async def revoke(stores: SqlStores, found: OpenInvitation) -> None:
    member = found.membership
    await stores.registry.directory.write([Precondition(Membership, member.key, member), Change(member, None, REVOKED)])


async def belonging(stores: SqlStores) -> list[Membership]:
    return [each async for each in stores.registry.directory.scan(Membership)]


async def people(stores: SqlStores) -> set[str]:
    return {user.user_id async for user in stores.registry.directory.scan(User)}


RIVALS: Final[dict[str, list[Callable[[SqlStores, OpenInvitation, str], Awaitable[None]]]]] = {
    "two accounts": [lambda stores, found, _, who=who: with_account(stores, found, who) for who in PEOPLE],  # type: ignore[misc]
    "account and new person": [lambda stores, found, _: with_account(stores, found, PEOPLE[0]), as_new_person],
    "account and revocation": [
        lambda stores, found, _: with_account(stores, found, PEOPLE[0]),
        lambda stores, found, _: revoke(stores, found),
    ],
    "new person and revocation": [as_new_person, lambda stores, found, _: revoke(stores, found)],
    "new person twice": [as_new_person, as_new_person],
    "declined and accepted": [
        lambda stores, found, _: decline_membership(stores.registry, found.membership),
        lambda stores, found, _: with_account(stores, found, PEOPLE[0]),
    ],
}


@pytest.mark.parametrize("rivals", RIVALS)
async def test_two_answers_at_once_have_one_outcome(place: Place, rivals: str) -> None:
    """D60: the other is told that the invitation has changed, and nothing of it is written."""
    async with place.opened() as stores:
        for _ in range(ROUNDS):
            found, link_hash = await sent(stores)
            outcomes = await asyncio.gather(
                *(answer(stores, found, link_hash) for answer in RIVALS[rivals]), return_exceptions=True
            )
            failures = [each for each in outcomes if each is not None]
            assert len(failures) == 1, outcomes
            assert isinstance(failures[0], Conflict), failures
            left = await belonging(stores)
            assert [(each.membership_id, each.invited) for each in left] in (
                [(found.membership.membership_id, False)],
                [],
            )
            accepted_by = {each.user_id for each in left}
            assert await people(stores) == {user.user_id for user in PEOPLE} | accepted_by
            held = await stores.registry.factors.credentials(NEW)
            assert (held.password_hash is not None) == (NEW in accepted_by)
            for user in PEOPLE:
                assert await stores.registry.factors.credentials(user.user_id) == Credentials(user_id=user.user_id)
            assert await stores.registry.invitations.find(WAITING) is None
            assert await stores.registry.factors.link(link_hash) is None
            for each in left:
                await stores.registry.directory.write([Change(each, None, REVOKED)])
            if NEW in accepted_by:
                [user] = (await stores.registry.directory.read(User, [(NEW,)])).values()
                await stores.registry.directory.write([Change(user, None)])


@pytest.mark.parametrize("answer", [RIVALS["two accounts"][0], as_new_person], ids=["account", "new person"])
async def test_an_entity_that_ends_an_invitation_while_it_is_accepted_ends_it(
    place: Place, answer: Callable[[SqlStores, OpenInvitation, str], Awaitable[None]]
) -> None:
    """D60: with level and roles; before or after the acceptance, but never half of it."""
    token = ProvisioningToken(token_id="t1", entity_id=HARBOUR.entity_id)

    async with place.opened() as stores:
        for _ in range(ROUNDS):
            found, link_hash = await sent(stores)
            service = Service(service_id="PERMITS", name="Permits", roles=("Maker",))
            role = Assignment(user_id=WAITING, entity_id=HARBOUR.entity_id, service_id="PERMITS", role="Maker")
            await stores.registry.directory.write([Change(None, service), Change(None, role)])
            ending = members.end_member(stores.registry, found.membership.membership_id, actor=token)
            accepting, ended = await asyncio.gather(answer(stores, found, link_hash), ending, return_exceptions=True)
            assert ended is None, ended
            assert accepting is None or isinstance(accepting, Conflict), accepting
            assert await belonging(stores) == []
            assert [each async for each in stores.registry.directory.scan(Assignment)] == []
            new = {NEW} if accepting is None and answer is as_new_person else set()
            assert await people(stores) == {user.user_id for user in PEOPLE} | new
            for user in (await stores.registry.directory.read(User, [(NEW,)])).values():
                await stores.registry.directory.write([Change(user, None)])


async def test_a_new_person_without_their_factors_is_none(place: Place) -> None:
    """D60: what cannot be written undoes person and membership, too."""
    async with place.opened() as stores:
        found, _ = await sent(stores)
        with pytest.raises(ChangedMeanwhile):
            await as_new_person(stores, found, "", change=replace(FACTORS, spend_link="another link"))
        assert await stores.registry.invitations.find(WAITING) == found
        assert (await stores.registry.factors.credentials(NEW)).password_hash is None
        assert await stores.registry.directory.user_by_name("wei.ling") is None


async def test_an_answer_to_an_invitation_that_has_changed_is_none(place: Place) -> None:
    """D60, D61: no account gets an address that its person has not proved."""
    async with place.opened() as stores:
        found, link_hash = await sent(stores)
        another = replace(found.membership, email="victim@example.org")
        await stores.registry.directory.write([Change(None, another)])
        for answer in (as_new_person, RIVALS["two accounts"][0], RIVALS["declined and accepted"][0]):
            with pytest.raises(ChangedMeanwhile):
                await answer(stores, found, link_hash)
        assert [each.membership for each in [await stores.registry.invitations.find(WAITING)] if each] == [another]
        assert await people(stores) == {user.user_id for user in PEOPLE} | {WAITING}


async def test_a_new_person_takes_nobodys_user_name(place: Place) -> None:
    """D51, D60: and the other person keeps their factors."""
    async with place.opened() as stores:
        found, link_hash = await sent(stores)
        own = Credentials(user_id=PEOPLE[0].user_id, password_hash="$argon2id$own", password_set_by="user")
        await stores.registry.directory.write([Change(None, own)])
        with pytest.raises(NameTaken):
            await as_new_person(stores, found, link_hash, PEOPLE[0].user_name.upper())
        assert await stores.registry.invitations.find(WAITING) == found
        assert await stores.registry.factors.credentials(PEOPLE[0].user_id) == own


async def test_who_belongs_already_cannot_accept(place: Place) -> None:
    """D60: also if they became a member a moment ago."""
    async with place.opened() as stores:
        found, _ = await sent(stores)
        own = Membership(user_id=PEOPLE[0].user_id, entity_id=HARBOUR.entity_id, enabled=False)
        await stores.registry.directory.write([Change(None, own)])
        with pytest.raises(AlreadyBelongs):
            await with_account(stores, found, PEOPLE[0])
        assert await stores.registry.invitations.find(WAITING) == found


async def test_a_letter_is_taken_by_one_process_and_not_after_a_revocation(place: Place) -> None:
    """D60: and again if its process has been silent for a while."""
    async with place.opened() as stores:
        found, _ = await sent(stores)
        invited = stores.registry.invitations
        assert await invited.due(now=NOW, limit=10) == []
        await stores.registry.directory.write([Change(None, replace(found.membership, invitation_sent_at=0))])
        [due] = await invited.due(now=NOW, limit=10)
        takes = await asyncio.gather(*(invited.take(due, now=NOW) for _ in range(4)))
        assert sorted(takes) == [False, False, False, True]
        assert await invited.due(now=NOW + SENDING_SECONDS - 1, limit=10) == []
        [silent] = await invited.due(now=NOW + SENDING_SECONDS, limit=10)
        assert silent.membership.invitation_sent_at == being_sent(NOW)
        assert await invited.take(silent, now=NOW + SENDING_SECONDS)
        assert not await invited.settle(silent, taken=NOW, becomes=int(NOW))
        [late] = await invited.due(now=NOW + 2 * SENDING_SECONDS, limit=10)
        await revoke(stores, late)
        assert not await invited.take(late, now=NOW + 2 * SENDING_SECONDS)
        with pytest.raises(MissingReference):
            await stores.registry.factors.keep_link(links.make_invitation_link(late, "0" * 20, now=NOW), SENT)
        assert await stores.registry.factors.links_of(WAITING) == []


async def test_untried_letters_go_before_those_of_dead_senders(place: Place) -> None:
    """D60: one that kills its sender again and again holds nobody up."""
    async with place.opened() as stores:
        await sent(stores)
        write = stores.registry.directory.write
        marks: dict[str, Any] = {"b": being_sent(NOW - 1000), "c": 0, "d": being_sent(NOW - 2000), "e": -1, "f": -2}
        for name, mark in marks.items():
            each = replace(INVITED, user_id=WAITING[:-1] + name, user_name=name, invitation_sent_at=mark)
            await write([Precondition(Membership, each.key, None), Change(None, each, BY_TOKEN)])
        found = await stores.registry.invitations.due(now=NOW, limit=10)
        assert [each.user.user_id[-1] for each in found] == ["c", "d", "b"]


def owner(**facts: Any) -> EntityAdministrator:
    """An owner of Harbour Logistics who signed in a moment ago."""
    return EntityAdministrator(
        user_id=PEOPLE[0].user_id,
        entity_id=HARBOUR.entity_id,
        level="owner",
        services=(),
        alone=True,
        auth_time=NOW,
        now=NOW,
        **facts,
    )


async def send_again(stores: SqlStores, invited: Membership, *, actor: Actor, now: float = NOW) -> Membership:
    limit = InvitationLimit(transient=stores.transient, issuer="https://id.example")
    return await invitations.send_invitation_again(stores.registry, limit, invited, actor=actor, now=now)


async def test_a_letter_is_sent_again_by_those_who_may_and_not_at_once(place: Place) -> None:
    """D53, D60: support, administrators of the entity, its clients and tokens; the link of before ends then."""
    async with place.opened() as stores:
        found, _ = await sent(stores)
        token = ProvisioningToken(token_id="t1", entity_id=HARBOUR.entity_id)
        with pytest.raises(Refused, match="less than 30 minutes ago"):
            await send_again(stores, found.membership, actor=token)
        later = NOW + RESEND_SECONDS
        for stranger in (
            ProvisioningToken(token_id="t2", entity_id="200000078H"),
            Person(PEOPLE[0].user_id),
            DeploymentOperator(user_id=PEOPLE[0].user_id, level="auditor", auth_time=later, now=later),
            replace(owner(), entity_id="200000078H", now=later, auth_time=later),
        ):
            with pytest.raises(Forbidden):
                await send_again(stores, found.membership, actor=stranger, now=later)
        with pytest.raises(Forbidden):  # not an owner, whatever the actor says
            await send_again(stores, found.membership, actor=replace(owner(), now=later, auth_time=later), now=later)
        again = await send_again(stores, found.membership, actor=token, now=later)
        assert again.invitation_sent_at == 0
        assert [each.membership for each in await stores.registry.invitations.due(now=later, limit=9)] == [again]
        with pytest.raises(ChangedMeanwhile):
            await send_again(stores, found.membership, actor=token, now=later)
        await accept_with_account(stores.registry, again, PEOPLE[0], now=later)
        [accepted] = await belonging(stores)
        with pytest.raises(Refused, match="accepted"):
            await send_again(stores, accepted, actor=token, now=later)
