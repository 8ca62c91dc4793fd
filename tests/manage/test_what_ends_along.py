"""Rights and addresses that change between two steps end with their events, or nothing is written (D53, D54, D55, D68)."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.flows.directory import member_changes, single_records
from corpid.flows.directory.acceptance import decline_membership
from corpid.flows.directory.actors import load_api_client
from corpid.flows.directory.write import RequestDetails
from corpid.rules.directory.actors import CommandLine
from corpid.rules.directory.invitations import placeholder
from corpid.rules.directory.records import Administrator
from corpid.rules.oauth.api_client import RegisteredApiClient
from tests.manage.scene import ACME, in_portal, send
from tests.manage.test_attacks_on_names import free
from tests.manage.test_requests import ROLE, acme
from tests.manage.test_who_is_meant import INVITED, member, owner, rename
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
    assert await member_changes.end_membership(registry, cora, actor=owner(made), asking=asking) is not None
    level = Administrator(user_id="id-cora", entity_id=ACME, level="administrator")
    await made.write(ROLE, level)  # approved since
    browser = await in_portal(made, "requests/decide/" + f"{int(asking.now):08x}-u1")
    told = "administrator" in browser.page.text.lower() and "Maker" in browser.page.text
    await browser.fill_and_submit(button="approve", reason="She leaves")
    gone = await registry.directory.find(Administrator, *level.key) is None
    recorded = await made.audit("administrator.remove") and await made.audit("assignment.remove")
    assert not gone or (told and recorded)
