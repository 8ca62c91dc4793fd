"""Attacks on who is meant, second part: reviews, names that look alike, copies (D68)."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from corpid.flows import notifications
from corpid.flows.directory import access_review
from corpid.flows.directory.access_review import AccessChanged, KeepDecision, ReviewIncomplete
from corpid.flows.directory.members import submit_details, submit_invitations
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.audit import INVITED_PERSON, AuditEvent
from corpid.rules.directory.memberships import Member
from corpid.rules.directory.records import Assignment, Change, MemberDetails, Membership, ThirdPartyAssignment, User
from corpid.rules.directory.values import Parameter
from corpid.rules.emails import Email
from corpid.web.directory.access import box
from corpid.web.pages.emails import EmailRenderer
from tests import contexts
from tests.enrolment import invited as harbour
from tests.enrolment import newcomer
from tests.manage.access_scene import checker, confirm, staffed
from tests.manage.access_scene import roles as roles_of
from tests.manage.scene import ACME, BANYAN, in_portal
from tests.manage.test_attacks_on_names import EVIL, free
from tests.manage.test_records_of_people import third_party
from tests.manage.test_requests import ROLE
from tests.manage.test_who_is_meant import limit, member, owner
from tests.sign_in.world import World, entity

GINAS = replace(ROLE, user_id="f1e2")


async def invite_one(made: World, email: str) -> None:
    """Bob asks for an invitation, which Alice has to approve."""
    await submit_invitations(made.provider.registry, limit(made), [MemberDetails(user_name="gina2", name="Gina Teo", email=email)], actor=owner(made), new_id=made.provider.new_id, asking=RequestDetails("r", made.clock(), made.provider.new_id()))  # fmt: skip


async def shown_in_review(made: World, who: str) -> dict[str, str]:
    """What an owner was shown of each person, as the list names it."""
    page = await access_review.list_reviewed_people(
        made.provider.registry, owner(made, who), ACME, unreviewed=False, after="", limit=50
    )
    return {each.user.user_id: each.seen for each in page.found}


async def redirected(made: World, roles: list[Assignment]) -> None:
    """Alice sends the invitation elsewhere, and gives the same roles again."""
    registry = made.provider.registry
    gina = await member(made, "f1e2")
    await submit_details(registry, limit(made), gina, {"name": gina.name, "email": EVIL}, actor=owner(made, "alice"), asking=RequestDetails("", made.clock(), made.provider.new_id()))  # fmt: skip
    for role in roles:
        change = Change(None, role)
        await write_changes(registry, owner(made, "alice"), [change])


@pytest.mark.parametrize("roles", [[], [GINAS]])
async def test_what_a_reviewer_kept_for_one_address_is_not_signed_off_for_another(
    made: World, roles: list[Assignment]
) -> None:
    """D68: Bob keeps gina@acme.example; what is signed off is mallory@evil.example."""
    await free(made)
    await made.write(*roles)
    registry = made.provider.registry
    seen = await shown_in_review(made, "bob")
    mine = [KeepDecision(user_id="id-bob", seen=seen["id-bob"])]
    await access_review.keep_access(registry, owner(made, "alice"), ACME, mine, now=made.clock())
    others = [KeepDecision(user_id=each, seen=mark) for each, mark in seen.items() if each != "id-bob"]
    await access_review.keep_access(registry, owner(made, "bob"), ACME, others, now=made.clock())
    made.clock.pass_(60)
    await redirected(made, roles)
    with pytest.raises(ReviewIncomplete):
        await access_review.sign_off_review(registry, owner(made, "bob"), ACME, now=made.clock())


async def test_a_decision_of_a_review_rests_on_the_address_that_was_shown(made: World) -> None:
    """D68: `seen` names nobody, and nothing guards the membership between the look at names and the write."""
    await free(made)
    await made.write(GINAS)
    seen = await shown_in_review(made, "bob")
    await redirected(made, [GINAS])
    with pytest.raises(AccessChanged):
        await access_review.keep_access(
            made.provider.registry, owner(made, "bob"), ACME, [KeepDecision(user_id="f1e2", seen=seen["f1e2"])],
            now=made.clock(),
        )  # fmt: skip


_LOOKS_LIKE = str.maketrans({"I": "l", "\u0430": "a", "\u0456": "i", "\u0435": "e", "\u0441": "c", "\u13aa": "g"})


@pytest.mark.parametrize("user_name", ["\u0430lice", "al\u0456ce", "aIice"])
async def test_a_newcomer_is_not_identified_by_what_looks_like_a_members_user_name(made: World, user_name: str) -> None:
    """D51, D68: two alphabets in one name, or a capital I, are somebody else's user name to whoever approves."""
    await harbour.invite(made, email=EVIL, name="Alice Tan")
    alice = Membership(user_id="id-alice", entity_id=harbour.HARBOUR, membership_id="m-alice", name="Alice Tan")
    await made.write(alice)
    browser = await harbour.at_profile(made)
    if await harbour.named(browser, user_name=user_name, name="Alice Tan") == harbour.PROFILE:
        return
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    await newcomer.kept(browser)
    registry = made.provider.registry
    [joined] = [
        found
        for found, _ in await contexts.belonging(registry, harbour.HARBOUR, limit=9)
        if found.user_id != "id-alice"
    ]
    [user] = (await registry.directory.read(User, [(joined.user_id,)])).values()
    [hers] = (await registry.directory.read(User, [("id-alice",)])).values()
    mallory, honest = Member(membership=joined, user=user).name, Member(membership=alice, user=hers).name
    assert mallory.translate(_LOOKS_LIKE) != honest.translate(_LOOKS_LIKE), f"{mallory} is shown beside {honest}"


@pytest.mark.parametrize("user_name", ["bob(bob_lim)", "bob)_may_act_as_viewer_(bob"])
async def test_an_identity_has_no_brackets_of_its_own(made: World, user_name: str) -> None:
    """D68: what stands before the bracket is who is meant; here it contains one."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


async def test_a_third_partys_person_cannot_write_a_sentence_into_the_history_of_a_client(made: World) -> None:
    """D61, D68: the name that a stranger chose has brackets, full stops and any length."""
    await third_party(made)
    name = "bob (Bob Lim) got access as Viewer at Permits for Acme Pte. Ltd. mallory (Mallory)"
    await made.person("mallory", entity(BANYAN, "Banyan Trading"), name=name)
    row = ThirdPartyAssignment(
        user_id="id-mallory", entity_id=BANYAN, client_entity_id=ACME, service_id="PERMITS", role="Maker"
    )
    event = AuditEvent(
        actor="user:id-mallory", action="third_party_assignment.add", object="/".join(row.key),
        entity_id=BANYAN, other_entity_id=ACME,
    )  # fmt: skip
    await made.provider.registry.directory.write([Change(None, row, event)])
    browser = await in_portal(made, "history?kind=third-parties")
    assert "bob (Bob Lim) got access as Viewer at Permits" not in browser.page.text


async def test_a_copied_role_is_given_with_the_values_that_were_shown(made: World) -> None:
    """D55, D68: who may not give themselves anything changes a colleague's role while Alice looks at it."""
    await staffed(made)
    await made.write(checker("nadia", end_date="2027-01-31"))
    browser = await in_portal(made, "access/copy?person=m-marcus&from=m-nadia")
    assert "2026" in browser.page.text
    assert "9999" not in browser.page.text
    more = (Parameter(name="Permit Year", value="9999"),)
    await made.write(checker("nadia", end_date="2099-12-31", parameters=more))
    await confirm(browser, **{box(checker(end_date="2027-01-31"), "2027-01-15"): "yes"})
    assert [(each.end_date, each.parameters) for each in await roles_of(made)] in (
        [],
        [("2027-01-31", checker().parameters)],
    )


async def test_the_audit_says_whose_access_a_reviewer_kept(made: World) -> None:
    """D68: "reviewed or recorded": a placeholder and a digest name nobody once the invitation went elsewhere."""
    await free(made)
    registry = made.provider.registry
    seen = await shown_in_review(made, "bob")
    kept = [KeepDecision(user_id="f1e2", seen=seen["f1e2"])]
    await access_review.keep_access(registry, owner(made, "bob"), ACME, kept, now=made.clock())
    await redirected(made, [])
    [entry] = await made.audit("access_review.keep")
    assert entry.detail.get(INVITED_PERSON) == "gina@acme.example (Gina Teo)"


async def test_the_address_of_an_invitation_is_shown_in_small_letters(made: World) -> None:
    """D68: domains have no capitals, and a capital I is a small l: gina@harbourlabs.example, to whoever approves."""
    await free(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await invite_one(made, "gina@harbourIabs.example")
    browser = await in_portal(made, "requests")
    assert "gina@harbourIabs.example" not in browser.page.text
    assert "gina@harbouriabs.example" in browser.page.text


def test_no_user_name_in_an_email_of_help_is_a_link() -> None:
    """D69: mail programs make a link of what has dots; a word joiner after each ends it."""
    by = User(user_id="m", user_name="www.evil.example", name="Mallory")
    asked = notifications.asked_by(by, entity(ACME, "Acme Pte. Ltd."))
    email = Email(to="a@b", subject=asked, preview=asked, parts=(asked,))
    said = EmailRenderer(name="CorpID", timezone=UTC).render(email).subject
    assert "www.evil" not in said
    assert said.replace("\u2060", "").startswith("www.evil.example, who administers Acme Pte. Ltd.,")
