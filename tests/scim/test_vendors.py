"""Provisioning as two large identity services carry it out, replayed (RFC 7644, D60).

Written by us in the forms of request that they are known for: the first (Microsoft Entra ID) capitalises
operations, writes booleans as text and addresses with a filter in the path; the second (Okta) sends whole users, and
changes without a path. Neither service itself took part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.scim.calling import APPLICANT, GROUP, PATCH, USER, Scim

if TYPE_CHECKING:
    import httpx

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def test_the_first_vendors_users(scim: Scim) -> None:
    """From the test of the connection to the end of an employment."""
    nobody = quote('userName eq "8c1d7b1e-6ac5-4cfb-9c35-5d43a2a4c1f0"')
    empty = scim.get(f"/Users?filter={nobody}").json()
    assert (empty["totalResults"], empty["Resources"]) == (0, [])
    assert scim.found("Users", 'userName eq "mei.tan@harbour.example"') == []
    made = scim.call(
        "POST",
        "/Users",
        {
            "schemas": [USER, ENTERPRISE],
            "externalId": "mei.tan",
            "userName": "mei.tan@harbour.example",
            "active": True,
            "addresses": [{"primary": False, "type": "work", "country": "SG", "locality": "Singapore"}],
            "displayName": "Mei Tan",
            "emails": [{"primary": True, "type": "work", "value": "mei.tan@harbour.example"}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "Mei Tan", "familyName": "Tan", "givenName": "Mei"},
            "phoneNumbers": [{"primary": True, "type": "work", "value": "+65 5550 0100"}],
            "preferredLanguage": "en-SG",
            "title": "Clerk",
            ENTERPRISE: {"department": "Quay", "employeeNumber": "1017", "manager": {"value": "none"}},
        },
    )
    assert made.status_code == 201, made.text
    user = made.json()
    where = f"/Users/{user['id']}"
    assert {"addresses", "phoneNumbers"}.isdisjoint(user)
    assert (user["title"], user[ENTERPRISE]) == ("Clerk", {"department": "Quay"})
    assert scim.found("Users", 'externalId eq "mei.tan"') == [user]

    changed = scim.patch(
        where,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "mei.lim@harbour.example"},
        {"op": "Replace", "path": "name.familyName", "value": "Lim"},
        {"op": "Replace", "path": "displayName", "value": "Mei Lim"},
        {"op": "Add", "path": "title", "value": "Chief clerk"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Office"},
        {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "+65 5550 0101"},
        {"op": "Remove", "path": 'addresses[type eq "work"].locality'},
    )
    assert changed.status_code == 200, changed.text
    shown = changed.json()
    assert shown["emails"] == [{"value": "mei.lim@harbour.example", "type": "work", "primary": True}]
    assert shown["name"] == {"formatted": "Mei Lim", "familyName": "Lim", "givenName": "Mei"}
    assert (shown["title"], shown[ENTERPRISE]) == ("Chief clerk", {"department": "Office"})

    off = scim.patch(where, {"op": "Replace", "path": "active", "value": "False"})
    assert off.json()["active"] is False
    (disabled,) = scim.found("Users", 'userName eq "mei.tan@harbour.example"')
    assert disabled["active"] is False, "a disabled user is found, and shown as one"
    assert scim.patch(where, {"op": "Replace", "path": "active", "value": "True"}).json()["active"] is True
    removed = scim.patch(where, {"op": "Remove", "path": 'emails[type eq "work"].value'})
    assert removed.json()["emails"][0]["value"] == "mei.tan@harbour.example", "a user name that is an address stands in"
    again = scim.patch(where, {"op": "Add", "path": 'emails[type eq "work"].value', "value": "mei@harbour.example"})
    assert again.json()["emails"][0]["value"] == "mei@harbour.example"

    assert scim.delete(where).status_code == 204
    assert scim.get(where).status_code == 404


def test_the_first_vendors_groups(scim: Scim) -> None:
    """A group is found by its name, and its members come and go one by one or several at once."""
    mei, tan = scim.added("mei")["id"], scim.added("tan")["id"]
    (group,) = scim.found("Groups", f'displayName eq "{APPLICANT}"', "&excludedAttributes=members")
    assert "members" not in group
    where = f"/Groups/{group['id']}"
    steps: list[dict[str, Any]] = [
        {"op": "Replace", "path": "externalId", "value": "4bbd2d6f-5a3e-4c9d-9d54-2f6f6c4c0a11"},
        {"op": "Replace", "path": "displayName", "value": APPLICANT},
        {"op": "Add", "path": "members", "value": [{"$ref": None, "value": mei}]},
        {"op": "Add", "path": "members", "value": [{"value": mei}, {"value": tan}]},
    ]
    for step in steps:
        answer = scim.patch(where, step)
        assert answer.status_code == 204, answer.text
        assert answer.content == b""
    assert scim.members() == {mei, tan}
    assert (
        scim.patch(where, {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": mei}]}).status_code
        == 204
    )
    assert scim.members() == {tan}
    assert scim.patch(where, {"op": "Remove", "path": f'members[value eq "{tan}"]'}).status_code == 204
    assert scim.members() == set()


def sent_as_json(scim: Scim, method: str, path: str, content: Any) -> httpx.Response:
    """As the second vendor sends it."""
    return scim.call(
        method, path, content, accept="application/scim+json", content_type="application/scim+json; charset=utf-8"
    )


def test_the_second_vendors_users(scim: Scim) -> None:
    """It looks for the user name, adds, reads back, replaces as a whole, and never deletes."""
    assert scim.get("/Users?startIndex=1&count=2").status_code == 200
    wanted = quote('userName eq "mei.tan@harbour.example"')
    looked = scim.get(f"/Users?filter={wanted}&startIndex=1&count=100").json()
    assert (looked["totalResults"], looked["startIndex"], looked["Resources"]) == (0, 1, [])
    profile = {
        "schemas": [USER],
        "userName": "mei.tan@harbour.example",
        "name": {"givenName": "Mei", "familyName": "Tan"},
        "emails": [
            {"primary": True, "value": "mei.tan@harbour.example", "type": "work"},
            {"primary": False, "value": "mei@home.example", "type": "other"},
        ],
        "displayName": "Mei Tan",
        "locale": "en-US",
        "externalId": "00ujl29u0le5T6Aj10h7",
        "groups": [],
        "password": "1mz050nq",
        "active": True,
    }
    made = sent_as_json(scim, "POST", "/Users", profile)
    assert made.status_code == 201, made.text
    assert "password" not in made.json()
    where = f"/Users/{made.json()['id']}"
    assert scim.get(where).json()["emails"] == [{"primary": True, "value": "mei.tan@harbour.example", "type": "work"}]

    whole = {**made.json(), "name": {"givenName": "Mei", "familyName": "Lim"}, "displayName": "Mei Lim", "groups": []}
    replaced = sent_as_json(scim, "PUT", where, whole)
    assert replaced.status_code == 200, replaced.text
    assert replaced.json()["displayName"] == "Mei Lim"
    off = {"schemas": [PATCH], "Operations": [{"op": "replace", "value": {"active": False}}]}
    assert sent_as_json(scim, "PATCH", where, off).json()["active"] is False
    (found,) = scim.found("Users", 'userName eq "mei.tan@harbour.example"', "&startIndex=1&count=100")
    assert found["active"] is False
    on = {"schemas": [PATCH], "Operations": [{"op": "replace", "value": {"active": True}}]}
    assert sent_as_json(scim, "PATCH", where, on).json()["active"] is True
    twice = sent_as_json(scim, "POST", "/Users", profile)
    assert (twice.status_code, twice.json()["scimType"]) == (409, "uniqueness")


def test_the_second_vendors_groups(scim: Scim) -> None:
    """It links a group that is there, then pushes its members, in parts or as a whole."""
    mei, tan = scim.added("mei")["id"], scim.added("tan")["id"]
    listed = scim.get("/Groups?startIndex=1&count=100").json()
    (group,) = [each for each in listed["Resources"] if each["displayName"] == APPLICANT]
    where = f"/Groups/{group['id']}"
    rename = {"op": "replace", "value": {"id": group["id"], "displayName": APPLICANT}}
    assert scim.patch(where, rename).status_code == 204
    add = {
        "op": "add",
        "path": "members",
        "value": [{"value": mei, "display": "mei"}, {"value": tan, "display": "tan"}],
    }
    assert scim.patch(where, add).status_code == 204
    remove = {"op": "remove", "path": f'members[value eq "{mei}"]'}
    assert scim.patch(where, remove, {**add, "value": [{"value": mei, "display": "mei"}]}).status_code == 204
    assert scim.members() == {mei, tan}
    replace = {"op": "replace", "path": "members", "value": [{"value": tan, "display": "tan"}]}
    assert scim.patch(where, replace).status_code == 204
    assert scim.members() == {tan}
    whole = {"schemas": [GROUP], "id": group["id"], "displayName": APPLICANT, "members": [{"value": mei}]}
    assert scim.put(where, whole).status_code == 200
    assert scim.members() == {mei}


def test_a_change_of_one_attribute_leaves_the_others(scim: Scim) -> None:
    """RFC 7644 §3.5.2, D84: department and title as both vendors send them, with and without a path."""
    user = scim.added("mei")
    where = f"/Users/{user['id']}"
    assert "title" not in user
    assert ENTERPRISE not in user
    first = scim.patch(where, {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Quay"}).json()
    assert first[ENTERPRISE] == {"department": "Quay"}
    assert ENTERPRISE in first["schemas"]
    second = scim.patch(where, {"op": "replace", "value": {"title": "Clerk"}}).json()
    assert (second["title"], second[ENTERPRISE]) == ("Clerk", {"department": "Quay"})
    third = scim.patch(where, {"op": "replace", "value": {f"{ENTERPRISE}:department": "Office"}}).json()
    assert (third["title"], third[ENTERPRISE]) == ("Clerk", {"department": "Office"})
    fourth = scim.patch(where, {"op": "replace", "value": {ENTERPRISE: {"department": "Store"}}}).json()
    assert (fourth["title"], fourth[ENTERPRISE]) == ("Clerk", {"department": "Store"})
    unchanged = {"userName", "emails", "displayName", "active"} & set(user)
    assert {name: fourth[name] for name in unchanged} == {name: user[name] for name in unchanged}
    gone = scim.patch(where, {"op": "remove", "path": "title"}, {"op": "remove", "path": f"{ENTERPRISE}:department"})
    assert {"title", ENTERPRISE}.isdisjoint(gone.json())
    told = scim.get(where + "?attributes=" + quote(f"{ENTERPRISE}:department")).json()
    assert "userName" not in told
