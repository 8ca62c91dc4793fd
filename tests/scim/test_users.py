"""Users: memberships that a client makes, finds, changes, suspends and ends (RFC 7644 §3, D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Administrator, Assignment, Change, ChangeRequest, Membership, User
from tests.protocol import directory
from tests.scim.calling import HARBOUR, ROOT, USER, Scim, address_of, refused

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World

MEI = {
    "externalId": "1017",
    "displayName": "Tan Mei",
    "name": {"givenName": "Mei", "familyName": "Tan"},
    "emails": [{"value": "mei@harbour.example", "type": "work", "primary": True}],
    "active": True,
}


def membership(world: World, user_id: str, entity_id: str = HARBOUR) -> Membership | None:
    found = world.run(world.provider.registry.directory.read(Membership, [(user_id, entity_id)]))
    return found.get((user_id, entity_id))


def test_a_client_adds_a_user_and_reads_them_back(scim: Scim) -> None:
    """RFC 7644 §3.3, §3.4.1."""
    made = scim.call("POST", "/Users", {"schemas": [USER], "userName": "mei@harbour.example", **MEI})
    assert made.status_code == 201
    user = made.json()
    assert made.headers["location"] == user["meta"]["location"] == f"{ROOT}/Users/{user['id']}"
    assert made.headers["etag"] == user["meta"]["version"]
    assert {name: user[name] for name in MEI} == {
        **MEI,
        "name": {"givenName": "Mei", "familyName": "Tan", "formatted": "Tan Mei"},
    }
    read = scim.get(f"/Users/{user['id']}")
    assert read.json() == user
    assert read.headers["etag"] == made.headers["etag"]
    assert read.headers["cache-control"] == "no-store"


def test_a_new_user_is_invited_and_nothing_of_them_has_effect(scim: Scim) -> None:
    """D60: until the person accepts, the entity is in nobody's choice."""
    user = scim.added("mei", **MEI)
    stored = scim.world.run(scim.world.provider.registry.provisioning.member(user["id"]))
    assert stored is not None
    assert stored.membership.invited
    assert stored.user.placeholder
    acting = scim.world.run(scim.world.provider.registry.directory.acting(stored.user.user_id, HARBOUR))
    assert acting is None or not acting.allowed


def test_the_answer_is_the_same_whether_the_person_exists_or_not(scim: Scim) -> None:
    """D60: nothing of an account shows, not even that there is one."""
    scim.world.writes(User(user_id=directory.CAROL.user_id, user_name="carol", name="Carol", email="carol@x.example"))
    known = scim.added("carol", emails=[{"value": "carol@x.example"}])
    unknown = scim.added("nobody", emails=[{"value": "nobody@x.example"}])
    for each in (known, unknown):
        for name in ("id", "userName", "meta", "emails"):
            each.pop(name)
    assert known == unknown
    assert membership(scim.world, directory.CAROL.user_id) is None


def test_user_names_and_external_ids_are_unique_within_the_entity(scim: Scim) -> None:
    """RFC 7644 §3.3, §3.12; D61."""
    user = scim.added("mei", externalId="7")
    other = scim.added("tan")
    again = scim.call("POST", "/Users", {"schemas": [USER], "userName": "MEI", **address_of("mei")})
    assert "userName" in refused(again, 409, "uniqueness")
    taken = scim.patch(f"/Users/{other['id']}", {"op": "add", "path": "externalId", "value": "7"})
    assert "externalId" in refused(taken, 409, "uniqueness")
    renamed = scim.patch(f"/Users/{other['id']}", {"op": "replace", "path": "userName", "value": "mei"})
    refused(renamed, 409, "uniqueness")
    assert scim.patch(f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "Mei"}).status_code == 200


def test_a_user_name_is_not_the_account_of_another_member(scim: Scim) -> None:
    """D68: in two steps a client would otherwise swap two people, since the first has given its own name up."""
    (alice,) = scim.found("Users", 'userName eq "alice"')
    user = scim.added("mei")
    assert (
        scim.patch(f"/Users/{alice['id']}", {"op": "replace", "path": "userName", "value": "a.tan"}).status_code == 200
    )
    for path, body in (
        (f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "Alice"}),
        (f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "A.Tan"}),
    ):
        assert "userName" in refused(scim.patch(path, body), 409, "uniqueness")
    assert "userName" in refused(
        scim.call("POST", "/Users", {"schemas": [USER], "userName": "alice", **address_of("alice")}), 409, "uniqueness"
    )
    assert [each["id"] for each in scim.found("Users", 'userName eq "a.tan"')] == [alice["id"]]
    assert scim.found("Users", 'userName eq "alice"') == []


def test_users_are_found_by_filter(scim: Scim) -> None:
    """RFC 7644 §3.4.2.2."""
    mei = scim.added("mei@harbour.example", **MEI)["id"]
    tan = scim.added("tan_100%@harbour.example", active=False)["id"]

    def found(condition: str) -> set[str]:
        return {each["id"] for each in scim.found("Users", condition)}

    assert found('userName eq "MEI@harbour.example"') == {mei}
    assert found('externalId eq "1017"') == {mei}
    assert found('emails[type eq "work"].value eq "mei@harbour.example"') == {mei}
    assert found('userName sw "tan_100%"') == {tan}
    assert found('userName co "_" and userName co "harbour"') == {tan}
    assert found('userName co "%@"') == {tan}
    assert found("active eq false") == {tan}
    assert {mei} < found("active eq true")
    assert found(f'id eq "{tan}"') == {tan}
    assert found('userName eq "nobody"') == set()
    told = refused(scim.get("/Users?filter=title%20pr"), 400, "invalidFilter")
    assert told.startswith("Users can be filtered by userName, externalId")


def test_a_member_whom_no_client_made_is_found_by_their_own_user_name(scim: Scim) -> None:
    """D61: so that a client takes over those who belong, and invites nobody twice."""
    (alice,) = scim.found("Users", 'userName eq "alice"')
    assert alice["displayName"] == directory.ALICE.name
    changed = scim.patch(f"/Users/{alice['id']}", {"op": "add", "path": "externalId", "value": "9"})
    assert changed.json()["externalId"] == "9"
    stored = membership(scim.world, directory.ALICE.user_id)
    assert stored is not None
    assert (stored.external_id, stored.user_name, stored.name) == ("9", "", "")


def test_pages_of_users_follow_each_other(scim: Scim) -> None:
    """RFC 7644 §3.4.2.4."""
    names = [f"user{number}" for number in range(5)]
    for name in reversed(names):
        scim.added(name)
    asked = "/Users?filter=userName%20sw%20%22user%22&sortBy=userName"
    pages = [scim.get(f"{asked}&startIndex={start}&count=2").json() for start in (1, 3, 5, 7)]
    assert [[each["userName"] for each in page["Resources"]] for page in pages] == [
        names[:2],
        names[2:4],
        names[4:],
        [],
    ]
    assert {page["totalResults"] for page in pages} == {5}
    assert [page["itemsPerPage"] for page in pages] == [2, 2, 1, 0]
    assert [page["startIndex"] for page in pages] == [1, 3, 5, 7]
    last = scim.get(f"{asked}&sortOrder=descending&count=1").json()["Resources"]
    assert [each["userName"] for each in last] == ["user4"]
    assert scim.get(f"{asked}&count=0").json()["Resources"] == []
    assert len(scim.get(f"{asked}&count=100000").json()["Resources"]) == 5
    assert scim.get(f"{asked}&startIndex=-3&count=1").json()["startIndex"] == 1


def test_an_answer_has_the_attributes_that_were_asked_for(scim: Scim) -> None:
    """RFC 7644 §3.9."""
    user = scim.added("mei", **MEI)
    where = f"/Users/{user['id']}"
    assert set(scim.get(f"{where}?attributes=userName,name.givenName").json()) == {"schemas", "id", "userName", "name"}
    left = scim.get(f"{where}?excludedAttributes=emails,name").json()
    assert "emails" not in left
    assert "userName" in left
    scim.patch(f"/Groups/{scim.group()['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    groups = scim.get(f"{where}?attributes=groups").json()["groups"]
    assert [each["value"] for each in groups] == [scim.group()["id"]]


def test_suspending_and_restoring_keeps_the_roles(scim: Scim) -> None:
    """D60: `active: false` suspends a membership."""
    user = scim.added("mei")
    scim.patch(f"/Groups/{scim.group()['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    assert (
        scim.patch(f"/Users/{user['id']}", {"op": "replace", "path": "active", "value": False}).json()["active"]
        is False
    )
    assert scim.members() == {user["id"]}
    assert scim.patch(f"/Users/{user['id']}", {"op": "replace", "value": {"active": True}}).json()["active"] is True


def test_a_client_moves_nobodys_address_for_recovery(scim: Scim) -> None:
    """D61: by PUT and by PATCH; what it writes is its own, and the person stays as they are."""
    registry = scim.world.provider.registry
    before = scim.world.run(registry.directory.user_by_name("alice"))
    [alice] = scim.found("Users", 'userName eq "alice"')
    where, evil = f"/Users/{alice['id']}", [{"value": "mallory@evil.example", "primary": True}]
    assert scim.put(where, {"schemas": [USER], "userName": "mallory", "emails": evil}).status_code == 200
    assert scim.patch(where, {"op": "replace", "path": "emails", "value": evil}).status_code == 200
    assert scim.get(where).json()["emails"][0]["value"] == "mallory@evil.example"
    assert scim.world.run(registry.directory.user_by_name("alice")) == before
    assert scim.world.run(registry.directory.user_by_name("mallory")) is None


def test_a_put_replaces_what_the_entity_wrote(scim: Scim) -> None:
    """RFC 7644 §3.5.1."""
    user = scim.added("mei", **MEI)
    where = f"/Users/{user['id']}"
    scim.patch(where, {"op": "replace", "path": "active", "value": False})
    replaced = scim.put(where, {"schemas": [USER], "id": user["id"], "userName": "mei.tan", "displayName": "Mei"})
    assert replaced.status_code == 200
    shown = replaced.json()
    assert (shown["userName"], shown["displayName"]) == ("mei.tan", "Mei")
    assert "externalId" not in shown
    assert "emails" not in shown
    assert shown["active"] is False, "who does not say that somebody is active restores nobody"


def test_a_change_names_the_version_that_it_was_made_on(scim: Scim) -> None:
    """RFC 7644 §3.14, RFC 9110 §13.1."""
    user = scim.added("mei")
    where, version = f"/Users/{user['id']}", user["meta"]["version"]
    assert scim.get(where, if_none_match=version).status_code == 304
    changed = scim.patch(where, {"op": "add", "path": "displayName", "value": "Mei"}, if_match=version)
    assert changed.status_code == 200
    assert changed.headers["etag"] != version
    refused(scim.patch(where, {"op": "add", "path": "displayName", "value": "M"}, if_match=version), 412)
    refused(scim.put(where, {"schemas": [USER], "userName": "mei", **address_of("mei")}, if_match=version), 412)
    refused(scim.delete(where, if_match=version), 412)
    same = scim.patch(where, {"op": "add", "path": "displayName", "value": "Mei"}, if_match="*")
    assert same.headers["etag"] == changed.headers["etag"], "nothing changed"
    assert scim.get(where, if_none_match=version).status_code == 200


def test_a_delete_ends_the_membership_and_its_roles(scim: Scim) -> None:
    """RFC 7644 §3.6, D60."""
    user = scim.added("mei")
    scim.patch(f"/Groups/{scim.group()['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    gone = scim.delete(f"/Users/{user['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    refused(scim.get(f"/Users/{user['id']}"), 404)
    refused(scim.delete(f"/Users/{user['id']}"), 404)
    assert scim.members() == set()
    assert scim.added("mei")["id"] != user["id"]


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_the_last_owner_stays(scim: Scim, method: str) -> None:
    """D54, D60: 409."""
    scim.world.writes(Administrator(user_id=directory.ALICE.user_id, entity_id=HARBOUR, level="owner"))
    (alice,) = scim.found("Users", 'userName eq "alice"')
    where = f"/Users/{alice['id']}"
    answer = (
        scim.delete(where)
        if method == "DELETE"
        else scim.patch(where, {"op": "Replace", "path": "active", "value": "False"})
    )
    assert "owner" in refused(answer, 409)
    assert scim.get(where).json()["active"] is True


def _redirected(scim: Scim, user: Any) -> httpx.Response:
    return scim.patch(
        f"/Users/{user['id']}", {"op": "replace", "path": "emails", "value": [{"value": "mallory@other.example"}]}
    )


def _invitation(scim: Scim, user: Any) -> Membership:
    found = scim.world.run(scim.world.provider.registry.provisioning.member(user["id"]))
    assert found is not None
    return found.membership


def test_an_invitation_with_a_level_goes_to_nobody_else(scim: Scim) -> None:
    """D53, D60: a token gives no level, so it cannot send on that of an invited owner."""
    user = scim.added("mei@harbour.example")
    waiting = _invitation(scim, user)
    scim.world.writes(Administrator(user_id=waiting.user_id, entity_id=HARBOUR, level="owner"))
    scim.world.writes(Administrator(user_id=directory.ALICE.user_id, entity_id=HARBOUR, level="owner"))
    assert "already has a level" in refused(_redirected(scim, user), 403)
    without = {"schemas": [USER], "userName": "mei", "active": True}
    refused(scim.put(f"/Users/{user['id']}", without), 403)
    assert _invitation(scim, user).email == "mei@harbour.example"
    named = {"op": "replace", "path": "displayName", "value": "Mei"}
    assert scim.patch(f"/Users/{user['id']}", named).status_code == 200


@pytest.mark.parametrize("demanded", ["by the entity", "by the service"])
def test_roles_that_were_approved_for_one_person_go_to_nobody_else(scim: Scim, demanded: str) -> None:
    """D55, D68: what an approver has agreed to for one address ends if a token writes another."""
    user = scim.added("mei@harbour.example")
    waiting = _invitation(scim, user)
    role = Assignment(user_id=waiting.user_id, entity_id=HARBOUR, service_id="GRANTS", role="Applicant")
    scim.world.writes(
        role,
        replace(directory.HARBOUR, approvals="roles")
        if demanded == "by the entity"
        else replace(directory.GRANTS, approval_required=True),
    )
    assert _redirected(scim, user).status_code == 200
    assert _invitation(scim, user).email == "mallory@other.example"
    assert scim.world.run(scim.world.provider.registry.directory.read(Assignment, [role.key])) == {}


def test_roles_that_wait_for_approval_go_to_nobody_else(scim: Scim) -> None:
    """D55, D68: what was asked for under one address is declined if a token writes another."""
    user = scim.added("mei@harbour.example")
    waiting = _invitation(scim, user)
    role = Assignment(user_id=waiting.user_id, entity_id=HARBOUR, service_id="GRANTS", role="Applicant")
    wanted = Change(None, role)
    scim.world.writes(
        ChangeRequest(
            request_id="1",
            entity_id=HARBOUR,
            requester="user:u",
            changes=(wanted,),
            reason="r",
            created_at=int(scim.world.clock()),
        )
    )
    assert _redirected(scim, user).status_code == 200
    found = scim.world.run(scim.world.provider.registry.directory.read(ChangeRequest, [("1",)]))
    ended = found["1",]
    assert (ended.state, ended.decided_by) == ("declined", "system")
    assert ended.decided_reason.startswith("the invitation now goes to another address")


def test_an_invitation_without_approvals_is_corrected(scim: Scim) -> None:
    """D60: a mistyped address is corrected, and the e-mail goes there."""
    user = scim.added("mei@harbour.example")
    assert _redirected(scim, user).status_code == 200
    assert _invitation(scim, user).email == "mallory@other.example"


MALFORMED: list[dict[str, object]] = [
    {"userName": ""},
    {"userName": "a" * 5000},
    {"userName": "a\nb"},
    {"emails": [{"value": "not an address"}]},
    {"emails": "mei@harbour.example"},
    {"displayName": "a" * 5000},
    {"name": "Mei"},
    {"active": "perhaps"},
    {"externalId": "x" * 5000},
    {"displayName": "a\u202eb\u0007"},
]


def test_what_is_no_user_is_refused_by_a_sentence(scim: Scim) -> None:
    """RFC 7644 §3.12: and nothing is written."""
    for members in MALFORMED:
        answer = scim.call("POST", "/Users", {"schemas": [USER], "userName": "mei", **members})
        assert answer.status_code == 400, answer.text
        assert answer.json()["detail"]
    assert scim.found("Users", 'userName eq "mei"') == []


@pytest.mark.parametrize(("user_name", "members"), [("tan", {}), ("tan", {"emails": []}), ("tan@-x.example", {})])
def test_a_user_who_cannot_be_reached_is_refused(scim: Scim, user_name: str, members: dict[str, Any]) -> None:
    """RFC 7644 §3.12, D60: nobody could accept the invitation."""
    answer = scim.call("POST", "/Users", {"schemas": [USER], "userName": user_name, **members})
    assert "emails: there is no e-mail address" in refused(answer, 400, "invalidValue")
    assert scim.found("Users", f'userName eq "{user_name}"') == []


def test_a_domain_in_other_letters_is_reached_and_found(scim: Scim) -> None:
    """RFC 5891 §4: the address has the A-label; the user name stays as it was sent."""
    user = scim.added("anna@m\u00fcnchen.example")
    assert (user["userName"], user["emails"][0]["value"]) == (
        "anna@m\u00fcnchen.example",
        "anna@xn--mnchen-3ya.example",
    )
    for condition in (
        'emails.value eq "anna@m\u00fcnchen.example"',
        'emails[type eq "work"].value eq "anna@xn--mnchen-3ya.example"',
        'userName eq "anna@m\u00fcnchen.example"',
        'userName eq "\u200eanna@m\u00fcnchen.example\ufeff"',
    ):
        assert [each["id"] for each in scim.found("Users", condition)] == [user["id"]]


def test_marks_of_programs_are_dropped_and_joiners_stay(scim: Scim) -> None:
    """D74."""
    name = "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"
    user = scim.added("ali@harbour.example", displayName=f"\u200f{name}\ufeff", name={"givenName": "\u200eA\tB"})
    assert (user["displayName"], user["name"]["givenName"]) == (name, "A B")
    answer = scim.call("POST", "/Users", {"schemas": [USER], "userName": "a@x.example", "displayName": "a\u200bb"})
    assert "U+200B (zero width space)" in refused(answer, 400, "invalidValue")
    answer = scim.call("POST", "/Users", {"schemas": [USER], "userName": f"{name}@x.example", **address_of("ali2")})
    assert "U+200C (zero width non-joiner)" in refused(answer, 400, "invalidValue")


def test_null_for_active_is_as_if_it_were_not_sent(scim: Scim) -> None:
    """RFC 7643 §2.5."""
    user = scim.added("mei@harbour.example", active=None)
    assert user["active"] is True
    where = f"/Users/{user['id']}"
    scim.patch(where, {"op": "replace", "path": "active", "value": False})
    for null in ({"active": None}, {"Active": None}):
        replaced = scim.put(where, {"schemas": [USER], "userName": "mei@harbour.example", **null})
        assert (replaced.status_code, replaced.json()["active"]) == (200, False)


@pytest.mark.parametrize(
    ("members", "detail"),
    [
        ({"active": []}, "active: true or false is expected here"),
        ({"active": "ja"}, "active: true or false is expected here"),
        ({"userName": ["x"]}, "userName: a text is expected here"),
        ({"emails": "x"}, "emails: a list is expected here"),
        ({"name": 5}, "name: an object is expected here"),
    ],
)
def test_a_value_of_another_type_is_refused_in_our_own_words(scim: Scim, members: dict[str, Any], detail: str) -> None:
    """RFC 7644 §3.12: no word and no address of a library."""
    answer = scim.call("POST", "/Users", {"schemas": [USER], "userName": "mei@harbour.example", **members})
    assert refused(answer, 400, "invalidValue") == detail


def test_a_patch_with_a_value_of_another_type_is_refused_in_our_own_words(scim: Scim) -> None:
    user = scim.added("mei@harbour.example")
    told = refused(scim.patch(f"/Users/{user['id']}", {"op": "add", "path": "emails", "value": 5}), 400, "invalidValue")
    assert told == "emails[1]: an object is expected here"
