"""Groups: roles at services that need no parameters (RFC 7643 §4.2, D60)."""

from __future__ import annotations

from msgspec.structs import replace

from corpid.rules.directory.records import Assignment, Service
from tests.protocol import directory
from tests.scim.calling import APPLICANT, GROUP, HARBOUR, ORCHARD, ROOT, USER, Scim, provisioning, refused


def test_groups_are_the_roles_that_need_no_parameters(scim: Scim) -> None:
    """D60."""
    listed = scim.get("/Groups").json()
    assert [each["displayName"] for each in listed["Resources"]] == [APPLICANT]
    scim.world.writes(
        Service(service_id="FOREIGN", name="For others", roles=("Reader",), entity_types=("NON-UEN",)),
        Service(service_id="OFF", name="Switched off", roles=("Reader",), enabled=False),
        Service(service_id="SUB", name="Needs a sub-entity", roles=("Reader",), sub_entity="mandatory"),
        Service(service_id="PAY", name="Pay", roles=("Chief", "Clerk")),
    )
    listed = scim.get("/Groups?sortBy=displayName&sortOrder=descending").json()
    assert [each["displayName"] for each in listed["Resources"]] == ["PAY: Clerk", "PAY: Chief", APPLICANT]
    page = scim.get("/Groups?sortBy=displayName&startIndex=2&count=1").json()
    assert [each["displayName"] for each in page["Resources"]] == ["PAY: Chief"]
    assert page["totalResults"] == 3


def test_members_are_added_and_removed(scim: Scim) -> None:
    """RFC 7644 §3.5.2."""
    first, second = scim.added("mei")["id"], scim.added("tan")["id"]
    group = scim.group()
    where = f"/Groups/{group['id']}"
    both = [{"value": first}, {"value": second}]
    assert scim.patch(where, {"op": "add", "path": "members", "value": both}).status_code == 204
    assert scim.patch(where, {"op": "add", "path": "members", "value": both}).status_code == 204
    shown = scim.get(where).json()["members"]
    assert shown == [
        {"value": each, "$ref": f"{ROOT}/Users/{each}", "type": "User"} for each in sorted((first, second))
    ]
    assert "members" not in scim.get(f"{where}?excludedAttributes=members").json()
    assert scim.patch(where, {"op": "remove", "path": f'members[value eq "{first}"]'}).status_code == 204
    assert scim.patch(where, {"op": "remove", "path": f'members[value eq "{first}"]'}).status_code == 204
    assert scim.members() == {second}
    assert (
        scim.put(where, {"schemas": [GROUP], "displayName": APPLICANT, "members": [{"value": first}]}).status_code
        == 200
    )
    assert scim.members() == {first}
    assert scim.put(where, {"schemas": [GROUP], "displayName": APPLICANT}).status_code == 200
    assert scim.members() == {first}, "who names no members removes nobody"
    assert scim.patch(where, {"op": "remove", "path": "members"}).status_code == 204
    assert scim.members() == set()


def test_whether_somebody_is_in_a_group_is_asked_by_filter(scim: Scim) -> None:
    """RFC 7644 §3.4.2.2: as one vendor asks before it adds a member."""
    user, group = scim.added("mei")["id"], scim.group()
    asked = f'id eq "{group["id"]}" and members eq "{user}"'
    assert scim.found("Groups", asked, "&excludedAttributes=members") == []
    scim.patch(f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": user}]})
    (found,) = scim.found("Groups", asked, "&excludedAttributes=members")
    assert found["id"] == group["id"]
    assert "members" not in found
    assert scim.found("Groups", 'members eq "nobody"') == []


def test_roles_that_are_more_than_the_role_stay_as_they_are(scim: Scim) -> None:
    """D60: those for a sub-entity or until a day were not given by a client."""
    (alice,) = scim.found("Users", 'userName eq "alice"')
    kept = Assignment(
        user_id=directory.ALICE.user_id, entity_id=HARBOUR, service_id="GRANTS", role="Applicant", sub_entity="PIER"
    )
    ended = replace(kept, sub_entity="", end_date="2020-12-31")
    scim.world.writes(kept, ended)
    where = f"/Groups/{scim.group()['id']}"
    assert scim.members() == set()
    scim.patch(where, {"op": "add", "path": "members", "value": [{"value": alice["id"]}]})
    assert scim.members() == {alice["id"]}
    scim.patch(where, {"op": "remove", "path": "members"})
    rows = scim.world.run(
        scim.world.provider.registry.directory.assignments(directory.ALICE.user_id, HARBOUR, ["GRANTS"])
    )
    assert rows == [kept]


def test_nobody_of_another_entity_becomes_a_member(scim: Scim) -> None:
    """D60: and nothing of the rest is written."""
    other = provisioning(scim.world, ORCHARD).added("eve")["id"]
    user, where = scim.added("mei")["id"], f"/Groups/{scim.group()['id']}"
    mixed = [{"value": user}, {"value": other}]
    told = refused(scim.patch(where, {"op": "add", "path": "members", "value": mixed}), 400, "invalidValue")
    assert other in told
    assert user not in told
    refused(scim.patch(where, {"op": "remove", "path": f'members[value eq "{other}"]'}), 400, "invalidValue")
    assert scim.members() == set()


def test_groups_themselves_are_the_operators(scim: Scim) -> None:
    """D60: no token makes, renames or removes one."""
    group = scim.group()
    made = scim.call("POST", "/Groups", {"schemas": [GROUP], "displayName": "New"})
    assert "service" in refused(made, 403)
    refused(scim.delete(f"/Groups/{group['id']}"), 403)
    where = f"/Groups/{group['id']}"
    refused(scim.patch(where, {"op": "replace", "path": "displayName", "value": "New"}), 400, "mutability")
    same = {"id": group["id"], "displayName": APPLICANT}
    assert scim.patch(where, {"op": "replace", "value": same}).status_code == 204
    refused(scim.get("/Groups/no-such-group"), 404)


def test_a_group_that_needs_approval_is_only_read(scim: Scim) -> None:
    """D55: a token approves nothing, and nothing is done behind anybody's back."""
    user, group = scim.added("mei")["id"], scim.group()
    where = f"/Groups/{group['id']}"
    scim.world.writes(replace(directory.GRANTS, approval_required=True))
    add = {"op": "add", "path": "members", "value": [{"value": user}]}
    assert "approval" in refused(scim.patch(where, add), 403)
    assert scim.get(where).status_code == 200
    scim.world.writes(directory.GRANTS, replace(directory.HARBOUR, approvals="all"))
    refused(scim.patch(where, add), 403)
    refused(scim.patch(f"/Users/{user}", {"op": "replace", "path": "active", "value": False}), 403)
    refused(scim.delete(f"/Users/{user}"), 403)
    refused(scim.call("POST", "/Users", {"schemas": [USER], "userName": "tan"}), 403)
    assert scim.members() == set()
