"""Administrators and operators in a directory file (D53, D54, D65)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.differences import difference
from corpid.rules.directory.document import entry_text, parse
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Administrator, Operator
from tests.unit.rules.directory.directory import FILE, State, after, planned

LEVELS = """
administrators:
  - {user: rina, entity: A1, level: owner}
  - {user: arjun, entity: A1, level: sub_administrator, services: [PERMIT]}
  - {user: rina, entity: B2, level: sub_administrator, services: all}
operators:
  - {user: rina, level: operator}
  - {user: arjun, level: support}
"""
NAMES = {"id-rina": "rina", "id-arjun": "arjun"}


def directory() -> State:
    return after(LEVELS, after(FILE))


def shown(text: str, *, prune: bool = False, levels: bool = False) -> list[str]:
    changes = planned(text, directory(), prune=prune, levels=levels).changes
    found = [difference(change, NAMES) for change in changes]
    return [f"{one.sign} {one.subject}: {'; '.join(one.members)}".rstrip(": ") for one in found]


def warnings(text: str, *, prune: bool = False, levels: bool = False) -> list[tuple[int, str]]:
    made = planned(text, directory(), prune=prune, levels=levels)
    return [(warning.line, warning.reason) for warning in made.warnings]


def refusals(text: str, *, prune: bool = False, levels: bool = False) -> list[str]:
    with pytest.raises(DirectoryError) as refused:
        planned(text, directory(), prune=prune, levels=levels)
    return [problem.reason for problem in refused.value.problems]


def test_levels_are_read_and_a_second_time_changes_nothing() -> None:
    found = directory()
    assert list(found["administrator"].values()) == [
        Administrator(user_id="id-rina", entity_id="A1", level="owner"),
        Administrator(user_id="id-arjun", entity_id="A1", level="sub_administrator", services=("PERMIT",)),
        Administrator(user_id="id-rina", entity_id="B2", level="sub_administrator", services="all"),
    ]
    assert list(found["operator"].values()) == [
        Operator(user_id="id-rina", level="operator"),
        Operator(user_id="id-arjun", level="support"),
    ]
    assert shown(LEVELS) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("administrators: [{user: rnia, entity: A1, level: owner}]\nusers: {rina: {}}", "there is no user 'rnia', here or in the directory; did you mean 'rina'?"),
        ("administrators: [{user: rina, entity: Z9, level: owner}]", "there is no entity 'Z9'"),
        ("administrators: [{user: arjun, entity: B2, level: owner}]", "arjun does not act for B2: add it to the memberships of arjun"),
        ("administrators: [{user: rina, entity: A1, level: onwer}]", "did you mean 'owner'?"),
        ("administrators: [{user: rina, entity: A1}]", "this administrator lacks level"),
        ("administrators: [{user: arjun, entity: A1, level: sub_administrator, services: [PRMIT]}]\nservices: {PERMIT: {}}", "there is no service 'PRMIT', here or in the directory; did you mean 'PERMIT'?"),
        ("administrators: [{user: arjun, entity: A1, level: sub_administrator, services: PERMIT}]", "write a list of services, such as [TAX-FILING], or the word all for every one"),
        ("administrators: [{user: rina, entity: A1, level: owner, services: [PERMIT]}]", "services: owner has every service: only a sub_administrator has a list of services"),
        ("administrators: [{user: arjun, entity: A1, level: administrator, services: all}]", "services: administrator has every service"),
        ("administrators: [{user: rina, entity: A1, level: owner}, {user: Rina, entity: A1, level: administrator}]", "the same administrator is already in line 1"),
        ("operators: [{user: rina, level: root}]", "'root' is not one of operator, support, auditor"),
        ("operators: [{user: nobody, level: support}]", "there is no user 'nobody'"),
        ("operators: [{user: rina, level: operator}, {user: rina, level: support}]", "the same operator is already in line 1"),
        ("operator: [{user: rina, level: operator}]", "did you mean 'operators'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_level_is_said(text: str, reason: str) -> None:
    assert any(reason in said for said in refusals(text)), refusals(text)


def test_a_higher_level_drops_the_list_so_that_a_lower_one_begins_without_services() -> None:
    """D53: an empty list gives nothing."""
    higher = after("administrators: [{user: arjun, entity: A1, level: administrator}]", directory())
    assert higher["administrator"][("id-arjun", "A1")] == Administrator(
        user_id="id-arjun", entity_id="A1", level="administrator"
    )
    lower = after("administrators: [{user: arjun, entity: A1, level: sub_administrator}]", higher)
    [found] = [each for each in lower["administrator"].values() if each.user_id == "id-arjun"]  # type: ignore[attr-defined]
    assert not found.serves("PERMIT")  # type: ignore[attr-defined]


def test_a_service_that_goes_leaves_every_list_and_widens_none() -> None:
    """D53: the list becomes empty, which gives nothing."""
    text = FILE.partition("services:")[0] + "services: {PLAIN: {}}"
    assert "~ administrator: arjun at A1: services: PERMIT → (none)" in shown(text, prune=True)
    named = f"{text}\nadministrators: [{{user: arjun, entity: A1, level: sub_administrator}}]"
    assert "~ administrator: arjun at A1: services: PERMIT → (none)" in shown(named, prune=True)
    found = after(text, directory(), prune=True)["administrator"][("id-rina", "B2")]
    assert found == Administrator(user_id="id-rina", entity_id="B2", level="sub_administrator", services="all")


@pytest.mark.parametrize(
    "text",
    [
        "operators: [{user: rina, level: support}]",
        "users: {rina: {enabled: false}}",
        "operators: [{user: rina, level: auditor}, {user: arjun, level: operator}]\nusers: {arjun: {enabled: false}}",
    ],
    ids=["demoted", "disabled", "replaced by somebody who cannot sign in"],
)
def test_the_last_operator_stays(text: str) -> None:
    """D53."""
    [reason] = refusals(text)
    assert reason == "no operator who can act would remain: appoint another one in operators, with the level operator"


def test_the_last_operator_stays_when_levels_are_pruned() -> None:
    assert refusals("operators: [{user: arjun, level: support}]", levels=True) == [
        "no operator who can act would remain: appoint another one in operators, with the level operator"
    ]
    assert shown("operators: [{user: arjun, level: operator}]", levels=True) == [
        "~ operator: arjun: level: support → operator",
        "- operator: rina",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "administrators: [{user: rina, entity: A1, level: administrator}]",
        "users: {rina: {enabled: false}}\noperators: [{user: arjun, level: operator}]",
        "users: {rina: {memberships: [{entity: A1, enabled: false}]}}",
    ],
    ids=["demoted", "disabled", "suspended"],
)
def test_the_last_owner_may_go_by_a_file_with_a_note_in_its_line(text: str) -> None:
    """D54: the file is the operator's."""
    assert warnings(text) == [
        (1, "the entity A1 will have no owner who can act: appoint another one in administrators")
    ]


def test_an_owner_who_is_followed_by_another_one_goes_without_a_note() -> None:
    text = "administrators: [{user: rina, entity: A1, level: administrator}, {user: arjun, entity: A1, level: owner}]"
    assert warnings(text) == []


def test_an_entity_that_goes_needs_no_owner() -> None:
    text = FILE.replace("  A1: {type: UEN, country: SG, name: Alpha, status: Registered}\n", "").partition("services:")[
        0
    ]
    assert warnings(text, prune=True, levels=True) == []


def test_no_level_is_pruned_without_the_flag_of_its_own() -> None:
    """D65."""
    text = "administrators: [{user: rina, entity: A1, level: owner}]\noperators: [{user: rina, level: operator}]"
    assert shown(text, prune=True) == []
    assert shown(text, levels=True) == [
        "- operator: arjun",
        "- administrator: arjun at A1",
        "- administrator: rina at B2",
    ]


def test_the_flag_prunes_levels_only() -> None:
    assert shown("users: {rina: {memberships: [A1, B2]}}\nentities: {A1: {}}", levels=True) == []


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            "users: {rina: {memberships: [A1, B2]}}",
            [
                "--prune would end the administration of A1 by arjun: keep arjun and the membership, or add --prune-administrators",
                "--prune would remove arjun, who is an operator: keep arjun in users, or add --prune-administrators",
            ],
        ),
        (
            "users: {rina: {memberships: [A1]}, arjun: {}}",
            [
                "--prune would end the administration of B2 by rina: keep rina and the membership, or add --prune-administrators"
            ],
        ),
    ],
    ids=["the person", "the membership"],
)
def test_prune_refuses_to_remove_what_a_level_needs(text: str, reasons: list[str]) -> None:
    """D65: nobody loses a level because a file is silent about something else."""
    assert refusals(text, prune=True) == reasons
    assert shown(text, prune=True, levels=True)


@pytest.mark.parametrize("section", ["administrators", "operators"])
def test_what_is_written_reads_as_it_was(section: str) -> None:
    state = directory()
    kind = {"administrators": "administrator", "operators": "operator"}[section]
    rows = [entry_text(section, record, NAMES) for record in state[kind].values()]  # type: ignore[index]
    assert "services" not in rows[0]
    assert planned(f"{section}:\n" + "\n".join(rows), state).changes == ()
    nothing = Administrator(user_id="id-rina", entity_id="A1", level="sub_administrator")
    assert "services: []" in entry_text("administrators", nothing, NAMES)
    parse(f"{section}:\n{rows[0]}".encode(), "f")
