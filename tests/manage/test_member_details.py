"""What an entity writes about a member goes through every door by its declaration (D61, D84)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import msgspec
import pytest
from msgspec.structs import replace

from corpid.flows.account import own_data
from corpid.rules.directory.document import entry_text, parse
from corpid.rules.directory.members import compare_members
from corpid.rules.directory.memberships import InvalidDetails, check_details
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.objects import MEMBERSHIP, InvalidObject, parse_object, to_json_object
from corpid.rules.directory.records import MemberDetails, Membership, User
from corpid.rules.directory.tables import parse_members
from corpid.rules.fields import Field, documented_fields, fields_of
from corpid.rules.scim import USER, read_details, user
from corpid.stores.sql.columns import record_columns
from corpid.web.sites import CHANGED_MEANWHILE
from tests.manage.access_scene import staffed
from tests.manage.scene import in_portal
from tests.manage.test_people import membership

if TYPE_CHECKING:
    from tests.sign_in.world import World

UUID = "5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10"
PLAIN = documented_fields(MemberDetails)
HELD = Membership(user_id=UUID, entity_id="E1", membership_id="m", name="Marcus", user_name="marcus")
MARCUS = User(user_id=UUID, user_name="marcus", name="Marcus Lee")


@pytest.mark.parametrize("name", fields_of(MemberDetails))
def test_a_detail_is_personal_and_has_a_name_for_people(name: str) -> None:
    """D57, D84."""
    assert compare_members(HELD, replace(HELD, **{name: "a@b.example"})).personal == {name}
    assert fields_of(MemberDetails)[name].label
    assert fields_of(MemberDetails)[name].help.endswith(".")


@pytest.mark.parametrize("name", fields_of(MemberDetails))
def test_a_table_has_a_column_for_every_detail(name: str) -> None:
    """D61, RFC 4180."""
    others = {"user_name": "marcus", "name": "Marcus"} | {name: "m@firm.example"}
    table = f"{','.join(others)}\n{','.join(others.values())}\n"
    [(_, details)] = parse_members(table.encode(), "people.csv")
    assert getattr(details, name) == "m@firm.example"


@pytest.mark.parametrize("name", PLAIN)
def test_a_file_a_resource_and_a_user_of_scim_carry_a_plain_detail(name: str) -> None:
    """D51, D59, D60: each writes it, and each shows what another one wrote."""
    held = replace(HELD, **{name: "Quay 3"})
    written = parse(b"users:\n" + entry_text("users", MARCUS, {}, [held]).encode(), "f").entries_of("membership")
    assert written["marcus", "E1"].fields == {"enabled": True, name: "Quay 3"}

    shown = to_json_object(MEMBERSHIP, held, {held.user_id: "marcus"}, {held.user_id: "marcus"}, whole=False)
    assert shown[name] == "Quay 3"
    assert parse_object(MEMBERSHIP, {"user": "marcus", "entity": "E1", name: "Pier"}, held).entry.fields[name] == "Pier"

    as_user = user(held, MARCUS, None, version="v", root="https://op.example/scim/v2")
    again = USER.model_validate(as_user.model_dump())
    assert getattr(read_details(again).details, name) == "Quay 3"


@pytest.mark.parametrize("name", PLAIN)
def test_a_detail_that_no_door_takes_has_the_same_sentence_at_each(name: str) -> None:
    """D51."""
    most = PLAIN[name].most
    long = "x" * (most + 1)
    sentence = f"{most + 1} characters are too many: at most {most}"
    with pytest.raises(InvalidDetails) as typed:
        check_details(MemberDetails(user_name="marcus", **{name: long}))
    with pytest.raises(InvalidObject) as sent:
        parse_object(MEMBERSHIP, {"user": "marcus", "entity": "E1", name: long}, HELD)
    with pytest.raises(DirectoryError) as pasted:
        parse_members(f"user_name,name,{name}\nmarcus,Marcus,{long}\n".encode(), "people.csv")
    with pytest.raises(DirectoryError) as applied:
        parse(f"users:\n  marcus:\n    memberships: [{{entity: E1, {name}: {long}}}]\n".encode(), "f")
    assert typed.value.faults == ((name, sentence),)
    assert [fault.detail for fault in sent.value.faults] == [sentence]
    assert [problem.reason for problem in pasted.value.problems] == [f"{name}: {sentence}"]
    assert [problem.reason for problem in applied.value.problems] == [f"memberships: {name}: {sentence}"]


def test_who_downloads_their_data_gets_every_detail() -> None:
    """D61: what an organisation wrote about the person."""
    held = replace(HELD, **{name: f"the {name}" for name in fields_of(MemberDetails)})
    told = own_data.describe_membership(held, None, None)["written_by_entity"]
    assert told == {name: f"the {name}" for name in fields_of(MemberDetails)}


@pytest.mark.parametrize("name", PLAIN)
async def test_an_administrator_writes_and_finds_a_plain_detail(made: World, name: str) -> None:
    """D61, D84: on the page of the person, in the list, by search, and in the history."""
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus/details")
    before = await membership(made)
    await browser.fill_and_submit(**{name: "  Quay   three "})
    after = await membership(made)
    assert browser.page.heading == "marcus (Marcus Lee)", browser.page.text
    assert before is not None
    assert after == replace(before, changed_at=int(made.clock()), **{name: "Quay three"}), "and nothing else changes"
    label = str(PLAIN[name].label)
    assert label in browser.page.text
    assert "Quay three" in browser.page.text
    await browser.open(f"{made.base}/manage/people", site="none")
    await browser.fill_and_submit(q="three qua")
    assert "Marcus Lee" in browser.page.text
    assert "Nadia Rahman" not in browser.page.text
    await browser.open(f"{made.base}/manage/history", site="none")
    entry = next(target for target, _ in browser.page.links if "/manage/history/" in target)
    await browser.open(urljoin(made.base, entry), site="none")
    assert label in browser.page.text
    assert "Quay three" in browser.page.text


async def test_a_form_that_was_opened_before_another_change_takes_nothing_back(made: World) -> None:
    """D73: whoever made the other change, and whatever moment the record says."""
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus/details")
    before = await membership(made)
    assert before is not None
    await made.write(replace(before, department="Pier"))
    await browser.fill_and_submit(job_title="Clerk")
    assert str(CHANGED_MEANWHILE) in browser.page.text
    after = await membership(made)
    assert after is not None
    assert (after.department, after.job_title) == ("Pier", "")


@pytest.mark.parametrize("name", PLAIN)
def test_blanks_are_no_detail(name: str) -> None:
    """D51: other systems send them for what they do not know."""
    assert getattr(check_details(MemberDetails(user_name="marcus", **{name: " \u00a0 "})), name) == ""


@pytest.mark.parametrize(("length", "fits"), [(200, True), (201, False)])
def test_an_address_is_as_long_as_a_user_name_may_be(length: int, fits: bool) -> None:
    """D60: without a user name the address is used as one."""
    address = f"{'a' * (length - 191)}@{'.'.join(['b' * 60] * 3)}.example"
    assert len(address) == length
    if fits:
        once = check_details(MemberDetails(email=address))
        assert check_details(once) == once == MemberDetails(user_name=address, email=address)
        return
    with pytest.raises(InvalidDetails, match="email: 201 characters are too many"):
        check_details(MemberDetails(email=address))


def test_a_column_that_was_added_needs_a_default_that_earlier_servers_can_leave_out() -> None:
    """docs/upgrades.md: nothing is guessed."""

    class Odd(msgspec.Struct, frozen=True, kw_only=True):
        flag: Annotated[bool, Field(added=True)] = True

    with pytest.raises(TypeError, match="flag"):
        record_columns(Odd)
