"""PATCH of SCIM: the operations of two vendors' dialects, and the members of a group (RFC 7644 §3.5.2, D60)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scim2_models import (
    InvalidPathException,
    InvalidSyntaxException,
    InvalidValueException,
    MutabilityException,
    NoTargetException,
)

from corpid.rules.scim import MOST_MEMBERS, MemberChanges, member_changes, operations

GROUP, NAME = "4bbd2d6f", "PAY: Clerk"


def changes(*sent: dict[str, Any]) -> MemberChanges:
    return member_changes(GROUP, NAME, operations({"Operations": list(sent)}, most=5000, most_values=5000))


def test_operations_are_read_whatever_their_case() -> None:
    """RFC 7644 §3.5.2: one vendor capitalises the names of operations."""
    read = operations(
        {"schemas": [], "operations": [{"OP": "Replace", "Path": "active", "Value": "False"}]}, most=9, most_values=9
    )
    assert read == [{"op": "replace", "path": "active", "value": "False"}]


def test_a_key_with_a_filter_is_an_operation_of_its_own() -> None:
    """RFC 7644 §3.5.2: another one leaves the path out, and writes paths as keys."""
    value = {"displayName": "Mei", "name.givenName": "Mei", 'emails[type eq "work"].value': "mei@shop.example"}
    assert operations({"Operations": [{"op": "Replace", "value": value}]}, most=9, most_values=9) == [
        {"op": "replace", "value": {"displayName": "Mei", "name.givenName": "Mei"}},
        {"op": "replace", "path": 'emails[type eq "work"].value', "value": "mei@shop.example"},
    ]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ([], InvalidSyntaxException),
        ({}, InvalidSyntaxException),
        ({"Operations": {}}, InvalidSyntaxException),
        ({"Operations": []}, InvalidSyntaxException),
        ({"Operations": ["x"]}, InvalidSyntaxException),
        ({"Operations": [{"path": "active"}]}, InvalidSyntaxException),
        ({"Operations": [{"op": "move", "path": "active"}]}, InvalidSyntaxException),
        ({"Operations": [{"op": "add", "path": 7, "value": 1}]}, InvalidPathException),
        ({"Operations": [{"op": "add", "path": "a" * 1001, "value": 1}]}, InvalidPathException),
        ({"Operations": [{"op": "add", "value": {"a" * 1001: 1}}]}, InvalidPathException),
        ({"Operations": [{"op": "add", "path": "active", "value": True}] * 10}, InvalidValueException),
        ({"Operations": [{"op": "add", "path": "emails", "value": [{}] * 10}]}, InvalidValueException),
        ({"Operations": [{"op": "add", "value": {"emails": [{}] * 10}}]}, InvalidValueException),
        ({"Operations": [{"op": "add", "value": {f"emails[{n}]": 1 for n in range(10)}}]}, InvalidValueException),
    ],
)  # fmt: skip
def test_a_patch_that_is_none_is_refused(body: Any, error: type[Exception]) -> None:
    """RFC 7644 §3.5.2, §3.12; D47."""
    with pytest.raises(error):
        operations(body, most=9, most_values=9)


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ([{"op": "Add", "path": "members", "value": [{"value": "a"}, {"value": "b"}]}], MemberChanges(add=("a", "b"))),
        ([{"op": "add", "value": {"members": [{"value": "a", "display": "A"}]}}], MemberChanges(add=("a",))),
        ([{"op": "add", "path": "members", "value": {"value": "a"}}], MemberChanges(add=("a",))),
        ([{"op": "remove", "path": 'members[value eq "a"]'}], MemberChanges(remove=("a",))),
        ([{"op": "remove", "path": 'members[value eq "a" or value eq "b"]'}], MemberChanges(remove=("a", "b"))),
        ([{"op": "Remove", "path": "members", "value": [{"value": "a"}]}], MemberChanges(remove=("a",))),
        ([{"op": "remove", "path": "members"}], MemberChanges(replaced=True)),
        ([{"op": "replace", "path": "members", "value": [{"value": "a"}]}], MemberChanges(add=("a",), replaced=True)),
        ([{"op": "replace", "value": {"id": GROUP, "displayName": NAME}}], MemberChanges()),
        ([{"op": "add", "path": "externalId", "value": "x"}], MemberChanges()),
        ([{"op": "add", "path": "members", "value": [{"value": "a"}]}, {"op": "remove", "path": 'members[value eq "a"]'}],
         MemberChanges(remove=("a",))),
        ([{"op": "remove", "path": 'members[value eq "a"]'}, {"op": "add", "path": "members", "value": [{"value": "a"}]}],
         MemberChanges(add=("a",))),
        ([{"op": "remove", "path": "members"}, {"op": "add", "path": "members", "value": [{"value": "a"}]},
          {"op": "remove", "path": 'members[value eq "b"]'}], MemberChanges(add=("a",), replaced=True)),
    ],
)  # fmt: skip
def test_operations_on_a_group_become_members_to_add_and_to_remove(
    sent: list[dict[str, Any]], wanted: MemberChanges
) -> None:
    """RFC 7644 §3.5.2.1 to §3.5.2.3, D60."""
    assert changes(*sent) == wanted


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "remove"}, NoTargetException),
        ({"op": "replace", "path": "displayName", "value": "Another"}, MutabilityException),
        ({"op": "replace", "value": {"displayName": "Another"}}, MutabilityException),
        ({"op": "replace", "value": {"id": "another"}}, MutabilityException),
        ({"op": "remove", "path": "displayName"}, MutabilityException),
        ({"op": "replace", "path": 'members[value eq "a"]', "value": [{"value": "b"}]}, MutabilityException),
        ({"op": "add", "value": "a"}, InvalidValueException),
        ({"op": "add", "path": "members", "value": [{"display": "a"}]}, InvalidValueException),
        ({"op": "add", "path": "members", "value": None}, InvalidValueException),
        ({"op": "add", "path": "members", "value": [{"value": "a\0"}]}, InvalidValueException),
        ({"op": "add", "path": "members", "value": [7]}, InvalidValueException),
        ({"op": "remove", "path": 'members[display eq "a"]'}, InvalidPathException),
        ({"op": "remove", "path": 'members[value co "a"]'}, InvalidPathException),
        ({"op": "remove", "path": "members["}, InvalidPathException),
        ({"op": "remove", "path": "members.value"}, InvalidPathException),
    ],
)
def test_what_cannot_be_done_to_a_group_is_refused(operation: dict[str, Any], error: type[Exception]) -> None:
    """RFC 7644 §3.12, D60."""
    with pytest.raises(error):
        changes(operation)


def test_one_request_changes_so_many_members() -> None:
    """D47."""
    many = [{"value": str(n)} for n in range(MOST_MEMBERS + 1)]
    with pytest.raises(InvalidValueException):
        changes({"op": "add", "path": "members", "value": many})
    assert len(changes({"op": "add", "path": "members", "value": many[1:]}).add) == MOST_MEMBERS


IDS = st.sampled_from("abcd")
STEP = st.tuples(st.sampled_from(["add", "remove", "replace"]), st.lists(IDS, min_size=1, max_size=3))


@given(st.frozensets(IDS), st.lists(STEP, min_size=1, max_size=6))
def test_the_change_has_the_effect_of_its_operations_one_by_one(before: frozenset[str], steps: list[Any]) -> None:
    """RFC 7644 §3.5.2: operations are applied in their order."""
    wanted = set(before)
    for verb, ids in steps:
        wanted = wanted | set(ids) if verb == "add" else wanted - set(ids) if verb == "remove" else set(ids)
    sent = [{"op": verb, "path": "members", "value": [{"value": each} for each in ids]} for verb, ids in steps]
    found = changes(*sent)
    after = (set() if found.replaced else set(before) - set(found.remove)) | set(found.add)
    assert after == wanted
