"""Members that an entity provisions, and what nobody can do with an invitation (D60, D61)."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import asdict, replace

from corpid.flows.directory import members, people, provisioning
from corpid.flows.directory.acceptance import (
    AlreadyBelongs,
    accept_with_account,
    accept_with_new_account,
    decline_membership,
)
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.apply import export_directory, prepare_document
from corpid.flows.directory.approvals import approve_request
from corpid.flows.directory.invitations import InvitationLimit, TooManyInvitations
from corpid.flows.directory.members import LastOwner, UnknownMember, load_member, query_members
from corpid.flows.directory.single_records import set_enabled
from corpid.flows.directory.write import IdentifierConflict, Refused, RequestDetails, write_changes
from corpid.flows.directory.write import write_changes as write_as
from corpid.rules.directory.access import Actor, ApiClient, CommandLine, Forbidden, ProvisioningToken
from corpid.rules.directory.document import parse
from corpid.rules.directory.memberships import InvalidDetails, Member, MemberQuery
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import (
    DUE,
    NOT_TO_BE_SENT,
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    MemberDetails,
    Membership,
    NameTaken,
    Service,
    User,
)
from corpid.rules.limits import INVITATIONS_PER_ADDRESS
from tests.adapters.stored_records import LIM, write
from tests.adapters.test_acting_administrators import EVERYBODY, FIRM, NOW, PLAIN
from tests.adapters.test_administrators import LIM_OWNS, RINA_OWNS
from tests.world.provider import CheapPasswords

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

OPERATOR = CommandLine(by="root@node1")
HASH = "'$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21lc2FsdA$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ'"
PASSWORDS = CheapPasswords(threads=1)
TOKEN = ProvisioningToken(token_id="t1", entity_id="E1")
CLIENT = ApiClient(client_id="c", scopes=frozenset({"directory.read", "directory.write"}), entity_id="E1")
NEW = MemberDetails(user_name="mei@firm.example", external_id="7", name="Mei", given_name="M", family_name="Ei")


def identifiers() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"new-{next(numbers)}"


def limit(stores: SqlStores) -> InvitationLimit:
    return InvitationLimit(transient=stores.transient, issuer="https://id.example")


async def invited(
    stores: SqlStores,
    details: MemberDetails = NEW,
    *,
    actor: Actor = TOKEN,
    ids: Callable[[], str] | None = None,
    entity_id: str = "",
    send: bool = True,
) -> Member:
    own = entity_id or str(getattr(actor, "entity_id", ""))
    change = members.plan_invitation(details, own, now=NOW, new_id=ids or identifiers(), send=send)
    await members.write_members(stores.registry, limit(stores), [change], actor=actor, now=NOW)
    return await load_member(stores.registry, change.record.membership_id, actor=actor)


async def prepared(stores: SqlStores) -> None:
    await write(stores, *EVERYBODY, PLAIN, LIM_OWNS)


async def person(stores: SqlStores, user_id: str) -> User:
    found = await stores.registry.directory.user(user_id)
    assert found is not None
    return found


async def test_an_invited_member_acts_for_nobody_and_is_no_account(place: Place) -> None:
    """D60: no choice, no roles in effect, no level, no sign-in, no link, no factor, no e-mail address."""
    async with place.opened() as stores:
        await prepared(stores)
        mei = await invited(stores)
        assert (mei.state, mei.membership.invitation_sent_at) == ("invited", DUE)
        user, registry = mei.user, stores.registry
        await write(stores, Administrator(user_id=user.user_id, entity_id="E1", level="owner"))
        await write(stores, Assignment(user_id=user.user_id, entity_id="E1", service_id="plain", role="Maker"))
        assert (user.placeholder, user.enabled, user.email, user.name) == (True, False, "", "")
        assert await registry.directory.acting(user.user_id, "E1") is None
        with pytest.raises(Forbidden):
            await load_administrator(registry, user.user_id, "E1", auth_time=NOW, now=NOW)
        forms = frozenset({(FIRM.type, FIRM.status)})
        assert await registry.directory.usable(user.user_id, forms) == []
        assert await registry.directory.choices(user.user_id, forms, words=(), first="", limit=5) == ([], 0)
        owners = await registry.directory.administrators("E1")
        assert [each.enabled for each in owners if each.record.user_id == user.user_id] == [False]
        no_account = "has not accepted an invitation yet"
        with pytest.raises(Refused, match=no_account):
            await people.reset_factors(registry, user.user_name, "JBSWY3DP", actor=OPERATOR)
        with pytest.raises(Refused, match=no_account):
            await people.reset_password(registry, PASSWORDS, user.user_name, "correct horse staple", actor=OPERATOR)
        with pytest.raises(Refused, match=no_account):
            await set_enabled(registry, "user", {"user_name": user.user_name}, enabled=True, actor=OPERATOR)


@pytest.mark.parametrize(
    "entry",
    ["{enabled: true}", "{name: Mallory}", f"{{password_hash: {HASH}}}", "{totp_secret: JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP}",
     "{memberships: [E1, E2]}"],
)  # fmt: skip
async def test_a_file_makes_no_account_of_a_placeholder(place: Place, entry: str) -> None:
    """D60: it may suspend the membership and give roles."""
    async with place.opened() as stores:
        await prepared(stores)
        mei = await invited(stores)
        for text in (f"users: {{{mei.user.user_name}: {entry}}}", f"operators: [{{user: {mei.user.user_name}, level: operator}}]"):  # fmt: skip
            with pytest.raises(DirectoryError, match="has not accepted an invitation yet"):
                await prepare_document(stores.registry, PASSWORDS, parse(text.encode(), "f"), new_user_id=str)
        named: dict[str, str | None] = {"user": mei.user.user_name, "entity": "E1"}
        await set_enabled(stores.registry, "membership", named, enabled=False, actor=OPERATOR)
        after = await load_member(stores.registry, mei.membership.membership_id, actor=TOKEN)
        assert after.membership == replace(mei.membership, enabled=False), "what a file cannot say stays"


async def test_an_export_leaves_out_who_has_not_accepted(place: Place) -> None:
    """D60: applied elsewhere it would make people of them."""
    async with place.opened() as stores:
        await prepared(stores)
        mei = await invited(stores)
        await write(stores, Assignment(user_id=mei.user.user_id, entity_id="E1", service_id="plain", role="Maker"))
        text = "".join([piece async for piece in export_directory(stores.registry, actor=OPERATOR)])
        assert "lim" in text
        assert mei.user.user_id not in text
        assert "assignments:" not in text


async def test_whether_somebody_exists_is_not_told_by_inviting_them(place: Place) -> None:
    """D60: the same answer, and the same records, for an account's own address and user name as for nobody's."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, PLAIN, LIM_OWNS)
        await write(
            stores, User(user_id="u7", user_name="known@firm.example", name="Known", email="known@firm.example")
        )
        answers = []
        for name in ("known@firm.example", "nobody@firm.example"):
            found = await invited(stores, MemberDetails(user_name=name), ids=lambda name=name: f"id-of-{name}")  # type: ignore[misc]
            shown = {key: str(value).replace(name, "") for key, value in asdict(found.membership).items()}
            answers.append((shown, found.state, found.user.name, found.user.email))
        assert answers[0] == answers[1]


async def test_an_entity_reads_and_changes_no_other_entitys_members(place: Place) -> None:
    """D60: by a guessed identifier; the answer is that of one that is not there."""
    async with place.opened() as stores:
        await prepared(stores)
        registry, other = stores.registry, ProvisioningToken(token_id="t2", entity_id="E2")
        mei = (await invited(stores)).membership
        [theirs] = [
            each.membership
            for each in (await query_members(registry, MemberQuery(entity_id=TOKEN.entity_id, limit=9), actor=TOKEN))[1]
            if each.membership.user_id == "u2"
        ]
        for membership_id in (mei.membership_id, theirs.membership_id, "", "\0", "x" * 5000):
            with pytest.raises(UnknownMember):
                await load_member(registry, membership_id, actor=other)
            with pytest.raises(UnknownMember):
                await members.end_member(registry, membership_id, actor=other)
            with pytest.raises(UnknownMember):
                await members.change_member(
                    registry, limit(stores), membership_id, NEW, enabled=False, actor=other, now=NOW
                )
        for actor in (TOKEN, CLIENT):
            with pytest.raises(Forbidden):
                await query_members(registry, MemberQuery(entity_id="E2", limit=9), actor=actor)
            with pytest.raises(Forbidden):
                await invited(stores, actor=actor, entity_id="E2")


async def test_what_a_token_writes_is_the_memberships_and_never_the_persons(place: Place) -> None:
    """D61: user name, name and address of the person stay, and so does where recovery links go."""
    async with place.opened() as stores:
        await prepared(stores)
        registry = stores.registry
        [held] = (await registry.directory.read(Membership, [("u2", "E1")])).values()
        details = MemberDetails(user_name="mallory", name="Mallory", email="mallory@evil.example")
        after = await members.change_member(
            registry, limit(stores), held.membership_id, details, enabled=True, actor=TOKEN, now=NOW
        )
        assert (after.user, after.state) == (LIM, "active")
        assert (after.membership.email, after.membership.changed_at) == ("mallory@evil.example", int(NOW))
        for change in (
            Change(LIM, replace(LIM, email="mallory@evil.example")),
            Change(None, RINA_OWNS),
            Change(LIM_OWNS, None),
            Change(None, Membership(user_id="u1", entity_id="E1")),
            Change(None, Membership(user_id="u1", entity_id="E1", invited=True)),
        ):  # fmt: skip
            with pytest.raises(Forbidden):
                await write_as(registry, TOKEN, [change])


async def test_a_member_is_suspended_restored_and_ended(place: Place) -> None:
    """D60: roles stay while it is suspended, and each ends in the history with the membership."""
    async with place.opened() as stores:
        await prepared(stores)
        registry, role = stores.registry, Assignment(user_id="u3", entity_id="E1", service_id="plain", role="Maker")
        await write(stores, role)
        [held] = (await registry.directory.read(Membership, [("u3", "E1")])).values()
        found = await load_member(registry, held.membership_id, actor=TOKEN)
        named = MemberDetails(user_name="rina@firm.example")

        async def switch(*, enabled: bool) -> Member:
            return await members.change_member(
                registry, limit(stores), held.membership_id, named, enabled=enabled, actor=TOKEN, now=NOW
            )

        assert found.state == "active"
        assert (await switch(enabled=False)).state == "suspended"
        assert (await switch(enabled=False)).state == "suspended"
        assert (await switch(enabled=True)).state == "active"
        with pytest.raises(ChangedMeanwhile):
            await members.change_member(
                registry, limit(stores), held.membership_id, named, enabled=False, actor=TOKEN, now=NOW, expected=held
            )
        await members.end_member(registry, held.membership_id, actor=TOKEN)
        entries = await registry.audit.entries()
        done = [(entry.action, entry.object) for entry in entries if entry.actor == TOKEN.name]
        assert done[-2:] == [("assignment.remove", "/".join(role.key)), ("membership.remove", "u3/E1")]
        assert [action for action, _ in done[:-2]] == ["membership.update", "membership.update"]


async def test_the_last_owner_stays(place: Place) -> None:
    """D54, D60: neither suspended nor ended by a token; one of two may be."""
    async with place.opened() as stores:
        await prepared(stores)
        registry = stores.registry
        [held] = (await registry.directory.read(Membership, [("u2", "E1")])).values()
        with pytest.raises(LastOwner):
            await members.end_member(registry, held.membership_id, actor=TOKEN)
        named = MemberDetails(user_name="lim")
        with pytest.raises(LastOwner):
            await members.change_member(
                registry, limit(stores), held.membership_id, named, enabled=False, actor=TOKEN, now=NOW
            )
        mei = await invited(stores)
        await write(stores, Administrator(user_id=mei.user.user_id, entity_id="E1", level="owner"))
        with pytest.raises(LastOwner):
            await members.end_member(registry, held.membership_id, actor=TOKEN)
        await write(stores, RINA_OWNS)
        await members.end_member(registry, held.membership_id, actor=TOKEN)


async def test_what_needs_approval_is_not_done_by_a_token(place: Place) -> None:
    """D55: it requests nothing; an administrator's invitation is carried out when another one approves it."""
    async with place.opened() as stores:
        await write(stores, *EVERYBODY, replace(FIRM, approvals="all"), PLAIN, LIM_OWNS, RINA_OWNS)
        registry = stores.registry
        for actor in (TOKEN, CLIENT):
            with pytest.raises(Forbidden, match="approval"):
                await invited(stores, actor=actor)
        lim = await load_administrator(registry, "u2", "E1", auth_time=NOW, now=NOW)
        change = members.plan_invitation(NEW, "E1", now=NOW, new_id=identifiers(), enabled=True, send=True)
        request = await write_changes(registry, lim, [change], asking=RequestDetails("New", NOW, "r"))
        assert request is not None
        assert await registry.directory.user("new-1") is None
        rina = await load_administrator(registry, "u3", "E1", auth_time=NOW, now=NOW)
        await approve_request(registry, request.request_id, actor=rina, reason="Yes", now=NOW)
        found = await load_member(registry, "new-2", actor=TOKEN)
        assert (found.state, found.membership) == ("invited", change.after)


async def test_a_role_that_needs_approval_or_parameters_is_not_given_by_a_token(place: Place) -> None:
    """D55, D60."""
    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, Service(service_id="strict", name="Strict", roles=("Maker",), approval_required=True))
        mei = await invited(stores)
        for service_id in ("strict", "yearly"):
            row = Assignment(user_id=mei.user.user_id, entity_id="E1", service_id=service_id, role="Maker")
            with pytest.raises(Forbidden):
                await write_as(stores.registry, TOKEN, [Change(None, row)])


async def test_names_in_an_entity_are_unique_also_beside_the_persons_own(place: Place) -> None:
    """D61: 409 for SCIM; two at the same moment have one outcome."""
    async with place.opened() as stores:
        await prepared(stores)
        await invited(stores)
        ids = identifiers()
        for details, taken in (
            (MemberDetails(user_name="MEI@firm.example"), "user_name"),
            (MemberDetails(user_name="LIM"), "user_name"),
            (MemberDetails(user_name="other", external_id="7"), "external_id"),
        ):
            with pytest.raises(IdentifierConflict) as refused:
                await invited(stores, details, ids=lambda: f"further-{ids()}")
            assert refused.value.member == taken
        both = await asyncio.gather(
            *(
                invited(stores, MemberDetails(user_name="twice"), ids=lambda each=each: f"{each}-{ids()}")  # type: ignore[misc]
                for each in "ab"
            ),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in both) == ["IdentifierConflict", "Member"]


async def test_details_are_refused_with_every_fault(place: Place) -> None:
    """D61: nothing is written; a user name that is an address is one, and the reverse."""
    async with place.opened() as stores:
        await prepared(stores)
        wrong = MemberDetails(
            user_name="x" * 201, external_id="a\u202eb", name="\u200b", given_name="\0", email="Mei <mei@firm.example>"
        )
        with pytest.raises(InvalidDetails) as refused:
            await invited(stores, wrong)
        assert [member for member, _ in refused.value.faults] == [
            "user_name", "external_id", "name", "given_name", "email",
        ]  # fmt: skip
        with pytest.raises(InvalidDetails, match="a name for this member is required"):
            await invited(stores, MemberDetails(name="Mei"))
        ids = identifiers()
        by_name = await invited(stores, MemberDetails(user_name="mei@firm.example"), ids=ids)
        by_address = await invited(stores, MemberDetails(email="tan@firm.example"), ids=ids)
        without = await invited(stores, MemberDetails(user_name="clerk 7"), ids=ids)
        assert by_name.membership.email == "mei@firm.example"
        assert by_address.membership.user_name == "tan@firm.example"
        assert (without.membership.email, without.membership.invitation_sent_at) == ("", NOT_TO_BE_SENT)


async def test_invitations_to_an_address_and_of_an_entity_are_limited(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D60: per day; ending an invitation gives none back, and a changed address counts."""
    monkeypatch.setattr("corpid.flows.directory.invitations.INVITATIONS_PER_DAY", INVITATIONS_PER_ADDRESS + 2)

    async with place.opened() as stores:
        await prepared(stores)
        registry, ids = stores.registry, identifiers()
        for _ in range(INVITATIONS_PER_ADDRESS):
            mei = await invited(stores, ids=ids)
            await members.end_member(registry, mei.membership.membership_id, actor=TOKEN)
        with pytest.raises(TooManyInvitations, match="to one address"):
            await invited(stores, ids=ids)
        tan = await invited(stores, MemberDetails(user_name="tan@firm.example"), ids=ids)
        with pytest.raises(TooManyInvitations, match="people a day"):
            await members.change_member(
                registry, limit(stores), tan.membership.membership_id, NEW, enabled=True, actor=TOKEN, now=NOW
            )
        await invited(stores, NEW, actor=replace(TOKEN, entity_id="E2"), ids=ids)
        operators = await invited(stores, actor=OPERATOR, entity_id="E1", ids=ids, send=False)
        assert operators.membership.invitation_sent_at == NOT_TO_BE_SENT


async def test_a_changed_address_of_an_invited_member_gets_a_letter(place: Place) -> None:
    """D60: unless nothing was to be sent."""
    async with place.opened() as stores:
        await prepared(stores)
        registry, ids = stores.registry, identifiers()
        moved = MemberDetails(user_name="mei", email="mei@new.example")
        for send, expected in ((True, DUE), (False, NOT_TO_BE_SENT)):
            mei = await invited(stores, ids=ids, send=send)
            if send:
                await write(stores, replace(mei.membership, invitation_sent_at=5))
            after = await members.change_member(
                registry, limit(stores), mei.membership.membership_id, moved, enabled=True, actor=TOKEN, now=NOW
            )
            assert (after.membership.email, after.membership.invitation_sent_at) == ("mei@new.example", expected)
            await members.end_member(registry, mei.membership.membership_id, actor=TOKEN)


async def test_an_account_accepts_an_invitation_and_none_of_its_members_change(place: Place) -> None:
    """D60: the membership, its level and its roles are the account's from then; the history names both."""
    async with place.opened() as stores:
        await prepared(stores)
        registry = stores.registry
        mei = await invited(stores)
        await write(stores, Assignment(user_id=mei.user.user_id, entity_id="E1", service_id="plain", role="Maker"))
        known = User(user_id="u7", user_name="mei", name="Mei", email="mei@home.example")
        await write(stores, known)
        await accept_with_account(registry, mei.membership, known, now=NOW)
        after = await load_member(registry, mei.membership.membership_id, actor=TOKEN)
        assert (after.user, after.state, after.membership.user_name) == (known, "active", NEW.user_name)
        acting = await registry.directory.acting("u7", "E1")
        assert acting is not None
        assert acting.allowed
        assert [row.role for row in await registry.directory.assignments("u7", "E1", ["plain"])] == ["Maker"]
        last = (await registry.audit.entries())[-1]
        assert (last.actor, last.action, last.object, last.detail["invited_as"]) == (
            "user:u7", "membership.accept", "u7/E1", mei.user.user_id,
        )  # fmt: skip


async def test_an_account_is_accepted_once_and_only_while_the_invitation_is_as_it_was_seen(place: Place) -> None:
    """D60: belonging already, a disabled account or entity, another person's invitation, a changed address."""
    async with place.opened() as stores:
        await prepared(stores)
        registry = stores.registry
        mei = (await invited(stores)).membership
        with pytest.raises(AlreadyBelongs):
            await accept_with_account(registry, mei, LIM, now=NOW)
        known = User(user_id="u7", user_name="mei", name="Mei")
        await write(stores, replace(known, enabled=False))
        with pytest.raises(ChangedMeanwhile):
            await accept_with_account(registry, mei, known, now=NOW)
        await write(stores, known, replace(FIRM, enabled=False))
        with pytest.raises(ChangedMeanwhile):
            await accept_with_account(registry, mei, known, now=NOW)
        await write(stores, FIRM)
        with pytest.raises(ChangedMeanwhile):
            await accept_with_account(registry, replace(mei, email="other@firm.example"), known, now=NOW)
        await accept_with_account(registry, mei, known, now=NOW)
        with pytest.raises(Forbidden):
            await accept_with_account(registry, replace(mei, invited=False), LIM, now=NOW)


async def test_a_new_account_has_the_address_that_was_written_to(place: Place) -> None:
    """D60: user name and name are the person's choice; what the entity wrote stays in the membership."""
    async with place.opened() as stores:
        await prepared(stores)
        registry, mei = stores.registry, await invited(stores)

        async def accept(user_name: str) -> None:
            await accept_with_new_account(
                registry, mei.membership, "u9", user_name=user_name, name="Mei Lin", language="ms", now=NOW
            )

        with pytest.raises(NameTaken):
            await accept("LIM")
        assert (await person(stores, mei.user.user_id)).placeholder
        await accept("mei.lin")
        after = await load_member(registry, mei.membership.membership_id, actor=TOKEN)
        assert after.user == User(
            user_id="u9", user_name="mei.lin", name="Mei Lin", email="mei@firm.example", language="ms"
        )
        assert (after.state, after.membership.name) == ("active", "Mei")
        with pytest.raises(ChangedMeanwhile):
            await accept("another")


@pytest.mark.parametrize("other", ["end", "decline", "accept", "new account"])
async def test_of_an_acceptance_and_something_else_at_once_one_is_carried_out(place: Place, other: str) -> None:
    """D60: revocation, refusal, another account, a new one."""

    async def scenario(stores: SqlStores) -> None:
        await prepared(stores)
        registry, mei = stores.registry, await invited(stores)
        first, second = (User(user_id=each, user_name=each, name=each) for each in ("u7", "u8"))
        await write(stores, first, second)
        others = {
            "end": lambda: members.end_member(registry, mei.membership.membership_id, actor=TOKEN),
            "decline": lambda: decline_membership(registry, mei.membership),
            "accept": lambda: accept_with_account(registry, mei.membership, second, now=NOW),
            "new account": lambda: accept_with_new_account(
                registry, mei.membership, "u9", user_name="mei", name="Mei", language="en", now=NOW
            ),
        }
        accepted, done = await asyncio.gather(
            accept_with_account(registry, mei.membership, first, now=NOW),
            others[other](),
            return_exceptions=True,
        )
        owner = {
            each.user_id
            async for each in registry.directory.scan(Membership)
            if each.membership_id == mei.membership.membership_id
        }
        users = {each.user_id async for each in registry.directory.scan(User)} - {"u1", "u2", "u3", "u7", "u8"}
        if other == "end":  # it also ends what was just accepted
            assert (done, owner, users) == (None, set(), set())
            return
        assert sorted(type(each).__name__ for each in (accepted, done)) == ["ChangedMeanwhile", "NoneType"]
        if accepted is None:
            assert (owner, users) == ({"u7"}, set())
        elif other == "new account":
            assert (owner, users) == ({"u9"}, {"u9"})
        else:
            assert (owner, users) == ({"u8"} if other == "accept" else set(), set())

    async with place.opened() as stores:
        await scenario(stores)


async def test_a_token_acts_for_its_entity_until_it_ends(place: Place) -> None:
    """D60: not after its day, its removal, or while the entity is disabled; not by its hash."""
    async with place.opened() as stores:
        await prepared(stores)
        registry, text = stores.registry, "A" * 43
        made = await provisioning.add_token(
            registry, "E1", " HR ", days=1, token=text, token_id="t1", actor=OPERATOR, now=NOW
        )
        assert (made.name, made.expires_at) == ("HR", int(NOW) + 86400)
        assert text not in str(await registry.audit.entries())
        assert made.token_hash not in str(await registry.audit.entries())

        async def acting(shown: str = text, *, at: float = NOW) -> ProvisioningToken | None:
            return await provisioning.authenticate_token(registry, shown, now=at)

        assert await acting() == TOKEN
        assert (await provisioning.list_tokens(registry, "E1", actor=OPERATOR))[0].last_used_at == int(NOW)
        for nothing in (made.token_hash, "", "t1", text + "A", "é" * 43, "B" * 43):
            assert await acting(nothing) is None
        assert await acting(at=NOW + 86400) is None
        await write(stores, replace(FIRM, enabled=False))
        assert await acting() is None
        await write(stores, FIRM)
        with pytest.raises(Refused, match="E2 has no such token"):
            await provisioning.remove_token(registry, "E2", "t1", actor=OPERATOR)
        await provisioning.remove_token(registry, "E1", "t1", actor=OPERATOR, dry_run=True)
        assert await acting() == TOKEN
        await provisioning.remove_token(registry, "E1", "t1", actor=OPERATOR)
        assert await acting() is None


async def test_tokens_are_made_by_owners_of_the_entity_and_operators_alone(place: Place) -> None:
    """D53, D60: not by an administrator, an API client, or another token, and not when the right has ended."""
    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, replace(RINA_OWNS, level="administrator"))
        registry = stores.registry

        async def add(actor: Actor, entity_id: str = "E1", **given: object) -> None:
            values: dict[str, object] = {"days": 365, "token": "A" * 43, "token_id": "t1", **given}
            await provisioning.add_token(
                registry,
                entity_id,
                str(values.pop("name", "HR")),
                actor=actor,
                now=NOW,
                **values,  # type: ignore[arg-type]
            )

        lim = await load_administrator(registry, "u2", "E1", auth_time=NOW, now=NOW)
        rina = await load_administrator(registry, "u3", "E1", auth_time=NOW, now=NOW)
        for actor in (rina, CLIENT, TOKEN, replace(lim, now=NOW + 901)):
            with pytest.raises(Forbidden):
                await add(actor)
        with pytest.raises(Forbidden):
            await add(lim, "E2")
        for given in ({"days": 0}, {"days": 366}, {"name": "\u202e"}, {"name": "x" * 101}):
            with pytest.raises(Refused):
                await add(lim, **given)
        await add(lim)
        await write(stores, replace(LIM_OWNS, level="administrator"))
        with pytest.raises(Forbidden):
            await add(lim, token="B" * 43, token_id="t2")
        assert [each.token_id for each in await provisioning.list_tokens(registry, "E1", actor=OPERATOR)] == ["t1"]
