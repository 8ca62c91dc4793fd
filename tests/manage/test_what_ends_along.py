"""Rights and addresses that change between two steps end with their events, or nothing is written (D53, D54, D55, D68)."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.flows.directory import members, single_records
from corpid.flows.directory.acceptance import decline_membership
from corpid.flows.directory.actors import load_api_client
from corpid.flows.directory.approvals import StaleRequest, approve_request
from corpid.flows.directory.members import end_membership, preview_bulk, select_members, write_bulk
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import Administrator, Assignment, Change, Conflict, Membership, Service, User
from corpid.rules.oauth.api_client import RegisteredApiClient
from tests.manage.access_scene import checker, staffed
from tests.manage.scene import ACME, go, in_portal, send
from tests.manage.test_attacks_on_names import free, held
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_who_is_meant import INVITED, member, owner, provisioned, rename
from tests.sign_in.world import World, entity, form_of, new_world


async def test_a_client_of_a_removed_entity_has_no_right_at_one_of_the_same_identifier() -> None:
    """D59: an identifier that is used again; the client ends with its entity, with an event."""
    async with new_world() as made:
        registry = made.provider.registry
        client = RegisteredApiClient(client_id="hr-of-old", name="HR", scopes=("directory.write",), entity_id=ACME)
        await made.write(client)
        assert await load_api_client(registry, "hr-of-old") is not None
        operator = CommandLine(by="lee@node1", reason="dissolved")
        await single_records.remove_record(registry, "entity", {"entity_id": ACME}, actor=operator)
        assert await load_api_client(registry, "hr-of-old") is None
        assert await made.audit("api_client.remove")
        await made.write(entity(ACME, "Acme (2026) Pte. Ltd."))  # with another owner
        assert await load_api_client(registry, "hr-of-old") is None


async def test_a_client_of_an_entity_with_a_similar_identifier_stays_when_the_entity_is_removed() -> None:
    """D59: an underscore of an identifier stands for itself alone."""
    async with new_world() as made:
        registry = made.provider.registry
        await made.write(entity("PORT_1", "Port One"), entity("PORTS1", "Ports One"))
        client = RegisteredApiClient(client_id="hr-ports", name="HR", scopes=("directory.write",), entity_id="PORTS1")
        await made.write(client)
        operator = CommandLine(by="lee@node1", reason="dissolved")
        await single_records.remove_record(registry, "entity", {"entity_id": "PORT_1"}, actor=operator)
        assert await load_api_client(registry, "hr-ports") is not None


async def test_what_was_given_in_advance_ends_with_its_events_when_the_invitation_is_declined(made: World) -> None:
    """D53, D57, D60."""
    await acme(made)
    level = Administrator(user_id=INVITED.user_id, entity_id=ACME, level="administrator")
    await made.write(placeholder(INVITED), INVITED, replace(ROLE, user_id=INVITED.user_id), level)
    await decline_membership(made.provider.registry, INVITED)
    assert await made.provider.registry.directory.find(Administrator, *level.key) is None
    assert await made.audit("administrator.remove")
    assert await made.audit("assignment.remove")


RIGHT = "gina.teo@acme.example"
PAGE = f"person/{INVITED.membership_id}/details"


@pytest.mark.parametrize("again", ["too late", "another mistake"])
async def test_a_form_that_is_shown_again_sends_no_invitation_back(made: World, again: str) -> None:
    """D54, D68: what was typed is saved only over what its form showed."""
    await free(made)
    browser = await in_portal(made, PAGE)
    typed = {**form_of(browser, "form_token", "department"), "department": "Quay 3"}
    if again == "too late":
        made.clock.pass_(901)
        answer = await send(made, browser, PAGE, **typed)
        made.clock.pass_(60)
        await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    else:
        answer = await send(made, browser, PAGE, **typed | {"job_title": "x" * 9999})
    assert await rename(made, await member(made, INVITED.user_id), INVITED.name, email=RIGHT) is None  # Bob
    if again == "too late":
        await made.factors(browser, made.people["alice"])
    else:
        await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert "Quay 3" in browser.response.text  # type: ignore[union-attr]
    await browser.fill_and_submit("department", "form_token", job_title="")
    assert (await member(made, INVITED.user_id)).email == RIGHT


async def test_an_approval_ends_nothing_that_the_request_and_the_history_do_not_name(made: World) -> None:
    """D53, D55, D57: what was given since the request makes it stale."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    registry = made.provider.registry
    asking = RequestDetails("She leaves", made.clock(), "u1")
    cora = await member(made, "id-cora")
    assert await members.end_membership(registry, cora, actor=owner(made), asking=asking) is not None
    level = Administrator(user_id="id-cora", entity_id=ACME, level="administrator")
    await made.write(ROLE, level)  # approved since
    browser = await in_portal(made, "requests/decide/" + f"{int(asking.now):08x}-u1")
    told = "administrator" in browser.page.text.lower() and "Maker" in browser.page.text
    await browser.fill_and_submit(button="approve", reason="She leaves")
    gone = await registry.directory.find(Administrator, *level.key) is None
    recorded = await made.audit("administrator.remove") and await made.audit("assignment.remove")
    assert not gone or (told and recorded)


@pytest.mark.parametrize("page", ["person/m-marcus/end", "access-review/m-marcus/end"])
async def test_a_membership_is_ended_with_what_the_page_listed(made: World, page: str) -> None:
    """D54, D68: what was given while the page was open is shown first."""
    await staffed(made)
    browser = await in_portal(made, page)
    assert "This ends too" not in browser.page.text
    await made.write(checker(), Administrator(user_id="id-marcus", entity_id=ACME, level="administrator"))  # by Bob
    await browser.fill_and_submit("form_token")
    assert (await member(made, "id-marcus")).enabled  # asked again
    assert "This ends too" in browser.page.text


ROLES = ("Maker", "Checker", "Viewer")
PEOPLE = [f"p{number:03}" for number in range(70)]


async def test_a_refused_end_of_many_memberships_takes_no_role(made: World) -> None:
    """D54, D81: a hundred are all or nothing, with what ends with them."""
    await acme(made)
    registry = made.provider.registry
    await made.write(
        entity(ACME, "Acme Pte. Ltd."),
        Service(service_id="PERMITS", name="Permits", roles=ROLES),
        *(User(user_id=f"id-{each}", user_name=each, name=each) for each in PEOPLE),
        *(Membership(user_id=f"id-{each}", entity_id=ACME, membership_id=f"m-{each}") for each in PEOPLE),
        *(Assignment(user_id=f"id-{each}", entity_id=ACME, service_id="PERMITS", role=role) for each in PEOPLE for role in ROLES),
    )  # fmt: skip
    alice = owner(made, "alice")
    selected = await select_members(registry, [f"m-{each}" for each in PEOPLE], actor=alice)
    preview = await preview_bulk(registry, selected, "end", actor=alice, today="2027-01-15")
    await made.write(replace(selected[-1].membership, department="Quay 3"))  # an identity service, at the same moment
    with suppress(Conflict):
        await write_bulk(registry, preview, actor=alice, asking=RequestDetails("r", made.clock(), "u"))
    where = {"entity_id": ACME, "service_id": "PERMITS"}
    members = await registry.directory.page(Membership, {"entity_id": ACME}, limit=500)
    roles = await registry.directory.page(Assignment, where, limit=500)
    belong = {each.user_id for each in members} & {f"id-{each}" for each in PEOPLE}
    assert len(roles) == len(belong) * len(ROLES)


async def test_the_history_says_which_level_ended_with_a_membership(made: World) -> None:
    """D57."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."))
    await made.write(Administrator(user_id="id-cora", entity_id=ACME, level="administrator"))
    await end_membership(made.provider.registry, await member(made, "id-cora"), actor=owner(made))
    [event] = await made.audit("administrator.remove")
    assert event.before.get("level") == "administrator"


async def test_an_address_in_other_letters_is_no_new_invitation(made: World) -> None:
    """D60, D68: what identifies somebody invited is their address in small letters."""
    await free(made)
    await made.write(replace(ROLE, user_id=INVITED.user_id))
    await provisioned(made, await member(made, INVITED.user_id), email="Gina@acme.example")
    assert await held(made, INVITED.user_id) == [ROLE.role]


@pytest.mark.parametrize("back", [False, True], ids=["left", "left and came back"])
async def test_a_request_ends_with_the_membership_that_it_was_made_for(made: World, back: bool) -> None:
    """D55, D68: who left, and perhaps came back, has not the access that was asked for before."""
    await acme(made)
    request = await requested(made)
    member_of = await made.provider.registry.directory.find(Membership, "id-cora", ACME)
    assert member_of is not None
    await made.provider.registry.directory.write([Change(member_of, None)])
    if back:
        await made.write(replace(member_of, membership_id=""))
    browser = await in_portal(made, f"requests/decide/{request.request_id}")
    assert "has left" in browser.page.text
    with pytest.raises(StaleRequest, match="somebody has left"):
        await approve_request(
            made.provider.registry, request.request_id, actor=owner(made, "alice"), reason="", now=made.clock(),
        )  # fmt: skip
    assert await made.provider.registry.directory.read(Assignment, [ROLE.key]) == {}


async def test_the_history_of_an_organisation_says_that_a_member_s_account_was_removed(made: World) -> None:
    """D57, D61: with level and roles, as if the membership had ended alone."""
    await acme(made)
    await made.write(ROLE)
    user = await made.provider.registry.directory.user("id-cora")
    assert user is not None
    actor = CommandLine(by="lee@node1", reason="asked for it")
    await write_changes(made.provider.registry, actor, [Change(user, None)])
    for action, record in (("membership.remove", f"id-cora/{ACME}"), ("assignment.remove", "/".join(ROLE.key))):
        [entry] = await made.audit(action)
        assert (entry.object, entry.entity_id) == (record, ACME)


async def test_who_is_back_is_not_marked_by_the_request_to_end_the_membership_before(made: World) -> None:
    """D55, D68."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    registry, operator = made.provider.registry, CommandLine(by="lee@node1", reason="left")
    held = await registry.directory.find(Membership, "id-cora", ACME)
    await requested(made, Change(held, None))
    await write_changes(registry, operator, [Change(held, None)])
    await write_changes(registry, operator, [Change(None, Membership(user_id="id-cora", entity_id=ACME))])
    back = await registry.directory.find(Membership, "id-cora", ACME)
    assert back is not None
    browser = await in_portal(made, "access-review?begin=yes&access=none")
    assert "Removal requested" not in browser.page.text
    assert "End the membership" in browser.page.text
    await go(made, browser, f"person/{back.membership_id}/end")
    assert "already requested" not in browser.page.text


async def test_a_role_that_was_changed_is_not_marked_by_the_request_to_remove_it_as_it_was(made: World) -> None:
    """D55."""
    await acme(made)
    await made.write(ROLE)
    await requested(made, Change(ROLE, None))
    browser = await in_portal(made, "access")
    assert "Removal requested" in browser.page.text
    operator = CommandLine(by="lee@node1", reason="longer")
    await write_changes(
        made.provider.registry, operator, [Change(ROLE, replace(ROLE, end_date="2030-12-31"))]
    )  # fmt: skip
    for page_ in ("access", "access-review?begin=yes"):
        await go(made, browser, page_)
        assert "2030" in browser.page.text
        assert "Removal requested" not in browser.page.text
