"""Memberships as Users: what is shown of somebody, and what a client's text becomes (RFC 7643 §4.1, D60, D61)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from scim2_models import Context, InvalidValueException

from corpid.rules.directory.records import GroupRole, MemberDetails, Membership
from corpid.rules.directory.records import User as Person
from corpid.rules.scim import PROVIDER, USER, User, WrittenMember, group, group_id, read_details, user

ROOT = "https://op.example/scim/v2"
RINA = Person(user_id="u-1", user_name="rina.tan", name="Rina Tan", email="rina@home.example")
MEMBER = Membership(
    user_id="u-1", entity_id="E1", membership_id="m-1", user_name="rtan", external_id="77", name="Tan, Rina",
    given_name="Rina", family_name="Tan", email="rina@shop.example", created_at=1_700_000_000, changed_at=1_700_000_100,
)  # fmt: skip
BARE = Membership(user_id="u-1", entity_id="E1", membership_id="m-1")


def shown(membership: Membership) -> dict[str, Any]:
    return user(membership, RINA, None, version='W/"1"', root=ROOT).model_dump()


def sent(**members: Any) -> User:
    with PROVIDER:
        return USER.model_validate({"schemas": [str(User.__schema__)], **members}, scim_ctx=Context.DEFAULT)


def entered(*, active: bool | None = None, **details: str) -> WrittenMember:
    """A member as a client writes it."""
    return WrittenMember(details=MemberDetails(**details), active=active)


def test_a_user_is_a_membership_as_the_entity_wrote_it() -> None:
    """RFC 7643 §4.1, D60."""
    assert shown(MEMBER) == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "id": "m-1",
        "externalId": "77",
        "userName": "rtan",
        "name": {"formatted": "Tan, Rina", "familyName": "Tan", "givenName": "Rina"},
        "displayName": "Tan, Rina",
        "active": True,
        "emails": [{"value": "rina@shop.example", "type": "work", "primary": True}],
        "meta": {
            "resourceType": "User",
            "created": "2023-11-14T22:13:20Z",
            "lastModified": "2023-11-14T22:15:00Z",
            "location": "https://op.example/scim/v2/Users/m-1",
            "version": 'W/"1"',
        },
    }


def test_of_an_invited_person_nothing_is_shown_but_what_was_typed() -> None:
    """D60: the answer is the same whether that person existed or not."""
    invited = replace(BARE, invited=True, user_name="rtan")
    other = Person(user_id="u-2", user_name="someone", name="Somebody Else", email="x@y.example")
    assert (
        user(invited, RINA, None, version="v", root=ROOT).model_dump()
        == user(invited, other, None, version="v", root=ROOT).model_dump()
    )
    assert not {"displayName", "name", "emails"} & set(shown(invited))


def test_of_a_member_who_belongs_the_persons_own_name_stands_in() -> None:
    """D61: name, user name and e-mail of a person who belongs to it."""
    found = shown(BARE)
    assert (found["userName"], found["displayName"]) == ("rina.tan", "Rina Tan")
    assert found["emails"][0]["value"] == "rina@home.example"


def test_what_is_sent_as_it_was_shown_does_not_become_the_entitys() -> None:
    """D61: an entity that suspends somebody has not written their name."""
    was = user(BARE, RINA, None, version="v", root=ROOT)
    assert read_details(sent(**was.model_dump()), was, BARE) == entered(user_name="", active=True)
    moved = was.model_copy(update={"user_name": "new", "active": False})
    assert read_details(moved, was, BARE) == entered(user_name="new", active=False)


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({}, entered(user_name="a")),
        ({"displayName": "D"}, entered(user_name="a", name="D")),
        ({"name": {"formatted": "F", "givenName": "G", "familyName": "H"}},
         entered(user_name="a", name="F", given_name="G", family_name="H")),
        ({"displayName": "D", "name": {"formatted": "F"}}, entered(user_name="a", name="D")),
        ({"active": "False", "externalId": "7"}, entered(user_name="a", external_id="7", active=False)),
        ({"emails": [{"value": "h@b.example", "type": "home"}, {"value": "w@b.example", "type": "Work"}]},
         entered(user_name="a", email="w@b.example")),
        ({"emails": [{"value": "w@b.example", "type": "work"}, {"value": "p@b.example", "primary": True}]},
         entered(user_name="a", email="p@b.example")),
        ({"emails": [{"type": "work"}, {"value": "o@b.example"}]}, entered(user_name="a", email="o@b.example")),
        ({"title": "Clerk", "id": "9", "groups": [{"value": "g"}], "password": "secret of nobody",
          "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "x", "division": "y"}},
         entered(user_name="a", department="x", job_title="Clerk")),
    ],
)  # fmt: skip
def test_what_a_client_writes_becomes_the_members_of_a_membership(
    members: dict[str, Any], wanted: WrittenMember
) -> None:
    """RFC 7643 §4.1, D60: one address, and what CorpID does not keep is dropped."""
    assert read_details(sent(userName="a", **members)) == wanted


def test_of_two_names_the_one_that_changes_counts() -> None:
    """RFC 7643 §4.1.1: a membership has one name, which is shown twice."""
    was = user(MEMBER, RINA, None, version="v", root=ROOT)
    by_name = was.model_copy(update={"name": was.name.model_copy(update={"formatted": "New"})}) if was.name else was
    by_display = was.model_copy(update={"display_name": "Newer"})
    assert read_details(by_name, was, MEMBER).details.name == "New"
    assert read_details(by_display, was, MEMBER).details.name == "Newer"


def test_a_user_has_a_user_name() -> None:
    """RFC 7643 §4.1.1."""
    with pytest.raises(InvalidValueException):
        read_details(sent(userName="a").model_copy(update={"user_name": None}))


def test_groups_have_names_and_ids_of_their_own() -> None:
    """RFC 7643 §3.1: an id is never used twice."""
    pairs = [("A", "BC"), ("AB", "C"), ("1:A", "B"), ("1", ":AB")]
    roles = [GroupRole(service_id=service, role=role) for service, role in pairs]
    assert len({group_id(role) for role in roles}) == len(roles)
    found = group(roles[0], root=ROOT).model_dump()
    assert found == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "id": group_id(roles[0]),
        "displayName": "A: BC",
        "meta": {"resourceType": "Group", "location": f"{ROOT}/Groups/{group_id(roles[0])}"},
    }
