"""Filters and sorting of SCIM: what an index answers, and nothing else (RFC 7644 §3.4.2, D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scim2_models import InvalidFilterException, InvalidPathException, ScimFilter

from corpid.rules.scim import FilterCondition, conditions, holds, refuse_long, sorting

if TYPE_CHECKING:
    from tests.scim.calling import Scim

WORK = "urn:ietf:params:scim:schemas:core:2.0:User"


def parsed(kind: str, text: str) -> tuple[tuple[object, ...], ...]:
    found = conditions(kind, ScimFilter(text).ast)
    return tuple((each.attribute, each.operator, each.value) for each in found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('userName eq "rina"', [("user_name", "eq", "rina")]),
        ('USERNAME EQ "rina"', [("user_name", "eq", "rina")]),
        (f'{WORK}:userName sw "ri"', [("user_name", "sw", "ri")]),
        ('externalId eq "7" and active eq true', [("external_id", "eq", "7"), ("active", "eq", True)]),
        ('active eq "False"', [("active", "eq", False)]),
        ('emails co "@shop"', [("email", "co", "@shop")]),
        ('emails.value eq "a@b.example"', [("email", "eq", "a@b.example")]),
        ('emails[type eq "work"].value eq "a@b.example"', [("email", "eq", "a@b.example")]),
        ('emails[type eq "work" and value sw "a"]', [("email", "sw", "a")]),
        ('emails[primary eq true].value eq "a@b.example"', [("email", "eq", "a@b.example")]),
        ('id eq "7" and (userName co "a" and userName co "b")',
         [("membership_id", "eq", "7"), ("user_name", "co", "a"), ("user_name", "co", "b")]),
        (r'userName eq "a\"b\\c"', [("user_name", "eq", 'a"b\\c')]),
    ],
)  # fmt: skip
def test_filters_of_users_become_conditions(text: str, wanted: list[tuple[object, ...]]) -> None:
    """RFC 7644 §3.4.2.2, D60."""
    assert parsed("User", text) == tuple(wanted)


def test_filters_of_groups_become_conditions() -> None:
    """RFC 7644 §3.4.2.2: one vendor asks by id and member whether somebody is in a group."""
    assert parsed("Group", 'displayName eq "PAY: Clerk"') == (("name", "eq", "PAY: Clerk"),)
    assert parsed("Group", 'id eq "1" and members eq "2"') == (("membership_id", "eq", "1"), ("member", "eq", "2"))
    assert parsed("Group", 'members[value eq "2"]') == (("member", "eq", "2"),)


@pytest.mark.parametrize(
    "text",
    [
        'userName ne "rina"',
        'userName ew "rina"',
        "userName pr",
        'userName eq "a" or userName eq "b"',
        'not (userName eq "a")',
        'title eq "a"',
        'name.givenName eq "a"',
        'meta.lastModified gt "2026-01-01T00:00:00Z"',
        "active co true",
        'active eq "maybe"',
        "userName eq 7",
        "userName eq null",
        'userName eq ""',
        r'userName eq "a\u0000"',
        'emails[type eq "home"].value eq "a"',
        'emails[type eq "work"]',
        'emails[type eq "work" or value eq "a"]',
        'urn:ietf:params:scim:schemas:core:2.0:Group:userName eq "a"',
        " and ".join(['userName co "a"'] * 11),
    ],
)
def test_any_other_filter_is_refused_and_says_what_there_is(text: str) -> None:
    """RFC 7644 §3.12, D60: a filter that is quietly ignored would show everybody."""
    with pytest.raises(InvalidFilterException) as refused:
        parsed("User", text)
    told = str(refused.value)
    assert "userName" in told or "active is compared" in told or "conditions" in told


def test_a_filter_that_nobody_writes_is_not_even_parsed() -> None:
    """D47: parentheses nest without leaving a trace in the tree."""
    refuse_long('userName eq "rina"')
    with pytest.raises(InvalidFilterException):
        refuse_long("(" * 500 + "userName pr" + ")" * 500)


def test_resources_are_sorted_by_what_has_an_index() -> None:
    """RFC 7644 §3.4.2.3."""
    assert sorting("User", "") == "membership_id"
    assert sorting("User", "userName") == sorting("User", f"{WORK}:username") == "user_name"
    assert sorting("Group", "displayName") == "name"
    with pytest.raises(InvalidPathException, match="id or userName"):
        sorting("User", "title")


def test_texts_are_compared_whatever_their_case() -> None:
    """RFC 7643 §2.2."""
    assert holds(FilterCondition("name", "eq", "pay: clerk"), "PAY: Clerk")
    assert holds(FilterCondition("name", "sw", "pay"), "PAY: Clerk")
    assert holds(FilterCondition("name", "co", ": c"), "PAY: Clerk")
    assert not holds(FilterCondition("name", "eq", "pay"), "PAY: Clerk")


@pytest.mark.parametrize(
    "query",
    ["filter=userName%20eq%20%22a+b@x.example%22", "count=1&filter=userName%20eq%20%22a%2Bb@x.example%22",
     "filter=userName+eq+%22a%2Bb@x.example%22"],
)  # fmt: skip
def test_a_plus_of_an_address_is_found(scim: Scim, query: str) -> None:
    """RFC 3986 §3.4: a client whose spaces are %20 means a plus by a plus."""
    user = scim.added("a+b@x.example")
    answer = scim.get(f"/Users?{query}")
    assert [each["id"] for each in answer.json()["Resources"]] == [user["id"]]


def test_a_plus_of_a_form_is_a_space(scim: Scim) -> None:
    assert scim.get("/Groups?filter=displayName+eq+%22GRANTS:+Applicant%22").json()["totalResults"] == 1
