"""Attacks on who is meant, third part: letters that look alike, what stands beside a sentence (D68)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.directory.members import AmbiguousName, find_member, find_person
from corpid.flows.directory.person_names import read_names
from corpid.flows.directory.write import IdentifierConflict, write_changes
from corpid.rules.directory.memberships import Member, placeholder
from corpid.rules.directory.records import Change, User
from corpid.web.directory.access import box
from tests.enrolment import invited as harbour
from tests.manage.access_scene import checker, confirm, staffed
from tests.manage.access_scene import roles as roles_of
from tests.manage.scene import ACME, go, in_portal
from tests.manage.test_attacks_on_names import EVIL, free
from tests.manage.test_helping_members import able, asked
from tests.manage.test_requests import acme, requested
from tests.manage.test_who_is_meant import INVITED, member, owner, provisioned, rename
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world


@pytest.mark.parametrize(
    "user_name",
    [
        "\u1d04ora",
        "b\u1d0fb",
        "\u0261ina",
        "\u0251lice",
        "al\u0131ce",
        "bob\u2d7f",
        "bob\U00010a3f",
        "bob\u0332",
        "b\u0ed0b",
        "c\u09e6ra",
        "\u0441\u043e\u043a",
    ],
)
async def test_one_script_has_letters_that_look_alike(made: World, user_name: str) -> None:
    """D51, D68: a small capital of Latin is Latin; signs and digits of other scripts are no letters, so no mixture."""
    assert await harbour.chosen(made, user_name, email=EVIL) == harbour.PROFILE


async def test_an_approver_sees_the_new_address_of_an_invitation_in_small_letters(made: World) -> None:
    """D68: the sentence has the earlier address, and the only place of the new one has a capital I for a small l."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"), placeholder(INVITED), INVITED)
    found = await rename(made, await member(made, "f1e2"), "Gina Teo", email="gina@harbourIabs.example")
    assert found is not None
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    assert "harbouriabs.example" in browser.page.text.lower()
    assert "gina@harbourIabs.example" not in browser.page.text


async def test_the_page_of_an_invitation_shows_its_address_in_small_letters(made: World) -> None:
    """D68: beside the sentence with the address stands the address as the entity typed it."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    invited = replace(INVITED, email="gina@harbourIabs.example", user_name="")
    found = await requested(made, Change(None, invited))
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "gina@harbouriabs.example" in browser.page.text
    assert "gina@harbourIabs.example" not in browser.page.text


async def test_who_has_left_is_not_known_by_a_capital_letter(made: World) -> None:
    """D68: aIice gives herself away while she belongs, and is read as alice in the history once she has left."""
    await free(made)
    await made.person("aIice", entity(ACME, "Acme Pte. Ltd."), name="Alice Tan")
    registry, user_id = made.provider.registry, "id-aIice"
    before = await read_names(registry, ACME, [user_id])
    assert before[user_id].startswith("aiice")
    gone = await member(made, user_id)
    await write_changes(registry, owner(made, "alice"), [Change(gone, None)])
    after = await read_names(registry, ACME, [], former=[user_id])
    assert after[user_id].startswith("aiice")


def test_an_email_of_help_names_the_account_in_small_letters() -> None:
    """D68, D69: Mallory, whose account is aIice, asks in the name of Alice."""
    by = User(user_id="m", user_name="aIice", name="Mallory")
    assert "aIice" not in str(notifications.asked_by(by, entity(ACME, "Acme Pte. Ltd.")))


async def test_a_list_does_not_show_a_name_as_an_identity(made: World) -> None:
    """D68: the title of a person in the review is what the entity wrote, in the form of an identity with its name."""
    await free(made)
    await provisioned(made, await member(made, "id-cora"), user_name="cora", name="bob (Bob Lim)")
    browser = await in_portal(made, "access-review?begin=yes&access=none")
    assert "cora (bob [Bob Lim]) End the membership cora (bob [Bob Lim])" in browser.page.text
    await go(made, browser, "access-review?begin=yes")
    assert browser.page.text.count("End the membership bob (Bob Lim)") == 1  # Bob himself


async def test_a_copied_role_begins_when_it_was_shown_to_begin(made: World) -> None:
    """D55, D68: the beginning of a colleague's role is changed while Alice looks at it."""
    await staffed(made)
    await made.write(checker("nadia", start_date="2097-01-01", end_date="2099-12-31"))
    browser = await in_portal(made, "access/copy?person=m-marcus&from=m-nadia")
    assert "2097" in browser.page.text
    shown = box(checker(start_date="2097-01-01", end_date="2099-12-31"), "2027-01-15")
    await made.write(checker("nadia", start_date="2000-01-01", end_date="2099-12-31"))
    await confirm(browser, **{shown: "yes"})
    assert [each.start_date for each in await roles_of(made)] in ([], ["2097-01-01"])


async def test_the_address_that_identifies_an_invited_person_means_nobody_else(made: World) -> None:
    """D68: pages, history and commands call Gina gina@acme.example; whoever types that into a table means Cora."""
    await free(made)
    await made.write(replace(INVITED, user_name="gina2"))
    with suppress(IdentifierConflict):
        await provisioned(made, await member(made, "id-cora"), user_name="gina@acme.example")
    registry = made.provider.registry
    gina = Member(membership=await member(made, "f1e2"), user=placeholder(INVITED))
    assert gina.identity == "gina@acme.example"
    with suppress(AmbiguousName):
        found = await find_member(registry, ACME, gina.identity)
        assert found is None or found.user.user_id == "f1e2", f"{gina.identity} means {found.name}"
        person = await find_person(registry, ACME, gina.identity, of_entity=True)
        assert person is None or person.user_id == "f1e2", f"{gina.identity} means {person.user_id}"


async def test_two_people_of_one_name_are_told_apart_by_what_is_ticked(made: World) -> None:
    """D68: the label of a box, and the name of a button, are the entity's name alone: Cora's are those of Bob."""
    await free(made)
    await provisioned(made, await member(made, "id-cora"), user_name="cora", name="Bob Lim")
    browser = await in_portal(made, "access-review?begin=yes")
    assert browser.page.text.count("Select Bob Lim Bob Lim End the membership Bob Lim") < 2


@pytest.mark.parametrize("user_name", ["marcus", "Marcus"])
async def test_an_account_with_a_capital_letter_is_unlocked(user_name: str) -> None:
    """D47, D69: attempts are counted by the mapped name, and the e-mail says that the account is unlocked."""
    postbox = Postbox()
    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        user = await made.provider.registry.directory.user("id-marcus")
        assert user is not None
        await made.write(replace(user, user_name=user_name))
        entry = namespaces.ATTEMPT_BUCKET.entry(made.provider.policy.deployment_url, "codes", "marcus")
        async with made.provider.transient.batch(made.clock()) as batch:
            await entry.count(batch, 9)
        await asked(made, await in_portal(made), "unlock")
        assert [each.subject for each in postbox.emails] == ["Your account was unlocked"]
        assert await entry.read(made.provider.transient, now=made.clock()) is None
