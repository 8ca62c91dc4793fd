"""Who wins: a file changes and removes what files made, and nothing else (D65, docs/decisions/0018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from msgspec.structs import replace

from corpid.rules.directory.access import ACTOR_KINDS
from corpid.rules.directory.differences import UNREMOVED_SHOWN, difference, kept_record, remarks
from corpid.rules.directory.document import KINDS, LEVELS, SECTIONS, Key, Kind
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.records import Entity, Sources, User
from corpid.rules.directory.sources import (
    ABSENT,
    CHANNELS,
    RELATIONS,
    UNKNOWN,
    WHOLE,
    Ownership,
    RetainedRecord,
    channel,
    in_words,
    sources_after,
)
from tests.unit.rules.directory.directory import FILE, State, after, planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.plan import Plan

DIRECTORY = f"""{FILE}
administrators:
  - {{user: rina, entity: A1, level: owner}}
  - {{user: arjun, entity: A1, level: sub_administrator, services: [PLAIN]}}
operators: [{{user: arjun, level: operator}}, {{user: rina, level: support}}]
clients: {{rp: {{name: RP, redirect_uris: [https://rp.example/cb], jwks: {{keys: []}}}}}}
"""


class Case(NamedTuple):
    """One record of the directory, what a file says of it otherwise, and a file that no longer names it."""

    key: Key
    changed: str
    silent: str


ROLE = "{user: rina, entity: A1, service: PERMIT, role: Maker, end_date: 2027-01-01, parameters: {Year: 2026}}"
GRANT = "{client_entity: C3, third_party: A1, service: PERMIT, role: Maker, end_date: 2026-12-30}"
FOR_C3 = "{user: rina, third_party: A1, client_entity: C3, service: PERMIT, role: Maker, end_date: 2026-06-29}"
CASES: dict[Kind, Case] = {
    "entity": Case(("B2",), "entities: {B2: {name: Other}}", "entities: {A1: {}, C3: {}}"),
    "user": Case(("id-rina",), "users: {rina: {name: Other}}", "users: {arjun: {}}"),
    "service": Case(("PLAIN",), "services: {PLAIN: {name: Other}}", "services: {PERMIT: {}}"),
    "membership": Case(
        ("id-rina", "B2"),
        "users: {rina: {memberships: [{entity: B2, enabled: false}]}}",
        "users: {rina: {memberships: [A1]}, arjun: {}}",
    ),
    "administrator": Case(
        ("id-arjun", "A1"),
        "administrators: [{user: arjun, entity: A1, level: administrator}]",
        "administrators: [{user: rina, entity: A1, level: owner}]",
    ),
    "operator": Case(
        ("id-rina",), "operators: [{user: rina, level: auditor}]", "operators: [{user: arjun, level: operator}]"
    ),
    "assignment": Case(
        ("id-rina", "A1", "PERMIT", "Maker", "", ""), f"assignments: [{ROLE}]", "assignments: []"
    ),
    "grant": Case(
        ("C3", "A1", "PERMIT", "Maker", "", ""), f"third_party: {{grants: [{GRANT}]}}", "third_party: {grants: []}"
    ),
    "third-party row": Case(
        ("id-rina", "A1", "C3", "PERMIT", "Maker", "", ""),
        f"third_party: {{assignments: [{FOR_C3}]}}",
        "third_party: {assignments: []}",
    ),
    "client": Case(("rp",), "clients: {rp: {name: Other}}", "clients: {}"),
}  # fmt: skip
FILES = "file:hr.yaml"
OTHERS = sorted(f"{kind}:x" for kind, through in CHANNELS.items() if through != "file")
RINA = "user:id-rina"


def claims(state: State, others: dict[tuple[Kind, Key], Sources], *, take_over: bool = False) -> Ownership:
    """Everything is of files, except what is said."""
    made = {kind: dict.fromkeys(records, Sources(record=FILES)) for kind, records in state.items()}
    made.pop("credentials", None)
    for (kind, key), sources in others.items():
        made[kind][key] = sources
    return Ownership(channel="file", sources=made, take_over=take_over)


def of_others(kind: Kind, by: str, *, take_over: bool = False) -> tuple[State, Ownership]:
    state = after(DIRECTORY)
    return state, claims(state, {(kind, CASES[kind].key): Sources(record=by)}, take_over=take_over)


def keys(made: Plan) -> set[tuple[str, Kind, Key]]:
    return {(change.verb, change.kind, change.key) for change in made.changes}


def remarked(kept: Sequence[RetainedRecord], user_names: dict[str, str]) -> list[FileProblem]:
    return remarks([kept_record(each, user_names) for each in kept])


def test_every_section_has_a_case_and_every_actor_a_door() -> None:
    """What the tests below go through, so that nothing new is left out."""
    assert set(CASES) == set(KINDS) - {"credentials"}
    assert set(CASES) == {section.kind for section in SECTIONS.values()} | {"membership"}
    assert set(CHANNELS) == set(ACTOR_KINDS) - {"system", "anonymous"}


@pytest.mark.parametrize("by", OTHERS)
@pytest.mark.parametrize("kind", CASES)
def test_what_another_door_wrote_a_file_neither_changes_nor_removes(kind: Kind, by: str) -> None:
    case = CASES[kind]
    state, held = of_others(kind, by)
    changing = planned(case.changed, state, claims=held)
    assert keys(changing) == set()
    [kept] = changing.kept
    assert (kept.verb, kept.kind, kept.key, kept.by, kept.line) == ("change", kind, case.key, (by,), 1)
    [remark] = remarked(changing.kept, {})
    assert in_words(by, {}) in remark.reason
    assert remark.reason.endswith("; --take-over takes it over")
    pruning = planned(case.silent, state, prune=True, levels=True, claims=held)
    assert ("remove", kind, case.key) not in keys(pruning)
    assert ("remove", kind, case.key, (by,)) in {(each.verb, each.kind, each.key, each.by) for each in pruning.kept}


@pytest.mark.parametrize("by", ["", FILES, "file:/srv/other.yaml"])
@pytest.mark.parametrize("kind", CASES)
def test_what_a_file_made_or_nobody_known_a_file_changes_and_removes(kind: Kind, by: str) -> None:
    """Nobody known: the version before, whose records a file must be able to manage as ever."""
    case = CASES[kind]
    state, held = of_others(kind, by)
    changing, pruning = (
        planned(text, state, prune=prune, levels=prune, claims=held)
        for text, prune in ((case.changed, False), (case.silent, True))
    )
    assert ("change", kind, case.key) in keys(changing)
    assert ("remove", kind, case.key) in keys(pruning)
    assert changing.kept == pruning.kept == ()


@pytest.mark.parametrize("by", OTHERS)
@pytest.mark.parametrize("kind", CASES)
def test_take_over_takes_it(kind: Kind, by: str) -> None:
    case = CASES[kind]
    state, held = of_others(kind, by, take_over=True)
    changing, pruning = (
        planned(text, state, prune=prune, levels=prune, claims=held)
        for text, prune in ((case.changed, False), (case.silent, True))
    )
    [change] = (each for each in changing.changes if each.kind == kind)
    assert change.taken[WHOLE] == by
    assert any(
        member.startswith("taken over: ") and in_words(by, {}) in member for member in difference(change, {}).members
    )
    assert ("remove", kind, case.key) in keys(pruning)
    assert changing.kept == pruning.kept == ()


@pytest.mark.parametrize("kind", CASES)
def test_a_file_that_says_what_is_there_takes_nothing_over_unless_it_is_told_to(kind: Kind) -> None:
    state, held = of_others(kind, "command:root@node1")
    same = planned(DIRECTORY, state, prune=True, levels=True, claims=held)
    assert (same.changes, same.kept) == ((), ())
    taken = planned(DIRECTORY, state, prune=True, levels=True, claims=replace(held, take_over=True))
    assert keys(taken) == {("change", kind, CASES[kind].key)}
    assert taken.changes[0].before == taken.changes[0].after


def test_levels_of_others_go_neither_with_the_flag_of_pruning_nor_with_that_of_levels() -> None:
    """D65: the nightly `apply --prune` takes no level; and its own flag only what a file gave."""
    for kind in LEVELS:
        state, held = of_others(kind, "operator:id-arjun")
        text = CASES[kind].silent
        assert keys(planned(text, state, prune=True, claims=held)) == set()
        assert ("remove", kind, CASES[kind].key) not in keys(planned(text, state, levels=True, claims=held))


def test_of_a_person_the_members_that_others_set_stay_and_the_rest_changes() -> None:
    state = after(DIRECTORY)
    since = {"email": RINA, "enabled": "operator:id-arjun"}
    held = claims(state, {("user", ("id-rina",)): Sources(record=FILES, members=since)})
    text = "users:\n  rina:\n    name: Rina Two\n    email: hr@example.org\n    enabled: false\n    language: en\n"
    made = planned(text, state, claims=held)
    [change] = made.changes
    was = state["user"][("id-rina",)]
    assert isinstance(was, User)
    assert change.after == replace(was, name="Rina Two")
    assert [(problem.line, problem.reason) for problem in remarked(made.kept, {"id-rina": "rina", "id-arjun": "arjun"})] == [
        (4, "user rina: email stays as set by the person; --take-over takes it over"),
        (5, "user rina: enabled stays as set by arjun in the browser; --take-over takes it over"),
    ]  # fmt: skip
    taken = planned(text, state, claims=replace(held, take_over=True)).changes[0]
    assert taken.after == replace(was, name="Rina Two", email="hr@example.org", enabled=False)
    assert taken.taken == since


def test_a_person_whom_a_file_made_goes_with_it_whatever_they_set_themselves_but_not_if_an_operator_did() -> None:
    state = after(DIRECTORY)
    for by, goes in ((RINA, True), ("operator:id-arjun", False), ("token:t", False)):
        sources = Sources(record=FILES, members={"language": by})
        made = planned(
            "users: {arjun: {}}",
            state,
            prune=True,
            levels=True,
            claims=claims(state, {("user", ("id-rina",)): sources}),
        )
        assert (("remove", "user", ("id-rina",)) in keys(made)) is goes


def test_what_others_made_keeps_all_that_it_rests_on_and_it_is_said_why() -> None:
    """A nightly `apply --prune` destroys nothing that was done in the portal, also not by what it takes along."""
    state = after(DIRECTORY)
    role = CASES["assignment"].key
    held = claims(state, {("assignment", role): Sources(record="user:id-arjun")})
    text = "entities: {}\nservices: {}\nusers: {}\nassignments: []\noperators: []\nadministrators: []\nthird_party: {grants: []}"
    made = planned(text.replace("users: {}", "users: {arjun: {}}").replace("operators: []", "operators: [{user: arjun, level: operator}]"), state, prune=True, levels=True, claims=held)  # fmt: skip
    left = {
        ("user", ("id-rina",)),
        ("entity", ("A1",)),
        ("service", ("PERMIT",)),
        ("membership", ("id-rina", "A1")),
        ("assignment", role),
    }
    assert not {(kind, key) for verb, kind, key in keys(made) if verb == "remove"} & left
    assert {(each.kind, each.key) for each in made.kept} >= left - {("membership", ("id-rina", "A1"))}
    said_of = {problem.reason for problem in remarked(made.kept, {"id-arjun": "arjun"})}
    assert "--prune leaves service PERMIT: records of others depend on it; --take-over removes it" in said_of
    assert any("last written by arjun in the browser" in each for each in said_of)
    assert ("remove", "entity", ("B2",)) in keys(made)


def test_a_service_stays_that_a_sub_administrator_of_others_may_give_roles_at() -> None:
    state, held = of_others("administrator", "user:id-rina")
    assert keys(planned("services: {PERMIT: {}}", state, prune=True, claims=held)) == set()


def test_what_stays_with_others_is_not_judged_by_the_file() -> None:
    """Else a file would be refused for what it may not mend."""
    state, held = of_others("third-party row", "user:id-rina")
    narrower = GRANT.replace("2026-12-30", "2025-07-01")
    text = f"third_party: {{grants: [{narrower}], assignments: [{FOR_C3}]}}"
    assert keys(planned(text, state, claims=held)) == {("change", "grant", CASES["grant"].key)}


def test_a_grant_stays_under_which_a_role_of_others_rests() -> None:
    """D56 with D65: it would take the role along; `--take-over` takes both."""
    row, grant = CASES["third-party row"].key, CASES["grant"].key
    state, held = of_others("third-party row", "user:id-arjun")
    text = CASES["grant"].silent
    made = planned(text, state, prune=True, claims=held)
    assert keys(made) == set()
    [kept] = made.kept
    assert (kept.verb, kept.kind, kept.key, kept.by) == ("remove", "grant", grant, ())
    [remark] = remarked(made.kept, {})
    assert remark.reason.endswith("records of others depend on it; --take-over removes it")
    taken = planned(text, state, prune=True, claims=replace(held, take_over=True))
    assert keys(taken) == {("remove", "grant", grant), ("remove", "third-party row", row)}
    own = planned(text, state, prune=True, claims=of_others("third-party row", FILES)[1])
    assert keys(own) == keys(taken)


def test_a_grant_goes_if_another_one_allows_the_role_of_others() -> None:
    """D56 with D65: the role loses nothing."""
    state, held = of_others("third-party row", "user:id-arjun")
    made = planned(f"third_party: {{grants: [{GRANT.replace('role: Maker', 'ref: two')}]}}", state, prune=True, claims=held)  # fmt: skip
    added = ("add", "grant", ("C3", "A1", "PERMIT", "", "", "two"))
    assert keys(made) == {added, ("remove", "grant", CASES["grant"].key)}
    assert made.kept == ()


def test_a_role_that_a_file_names_beside_nothing_but_an_offer_is_refused() -> None:
    """D56: it ends with the grant that the file no longer names."""
    state, held = of_others("grant", FILES)
    offer = GRANT.replace("role: Maker", "ref: two, state: offered")
    with pytest.raises(DirectoryError, match="A1 has not accepted what C3 offers"):
        planned(f"third_party: {{grants: [{offer}], assignments: [{FOR_C3}]}}", state, prune=True, claims=held)


def test_a_record_that_a_file_drops_and_names_again_is_added_again() -> None:
    state, held = of_others("assignment", FILES)
    gone = after(CASES["assignment"].silent, state, prune=True)
    assert CASES["assignment"].key not in gone["assignment"]
    again = planned(DIRECTORY, gone, claims=held)
    assert keys(again) == {("add", "assignment", CASES["assignment"].key)}
    assert again.changes[0].seen == ABSENT


@pytest.mark.parametrize("by", OTHERS)
@pytest.mark.parametrize("kind", RELATIONS)
def test_what_another_door_removed_a_file_does_not_give_again(kind: Kind, by: str) -> None:
    """Nor what rests on it: who was taken a membership by day has no role of it in the morning."""
    state, key = after(DIRECTORY), CASES[kind].key
    del state[kind][key]
    if kind == "membership":
        state["administrator"] = {each: held for each, held in state["administrator"].items() if each != key}
    held = replace(claims(state, {}), removed={(kind, key): by})
    made = planned(DIRECTORY, state, claims=held)
    assert made.changes == ()
    [kept] = made.kept
    assert (kept.verb, kept.kind, kept.key, kept.by) == ("add", kind, key, (by,))
    [remark] = remarked(made.kept, {})
    assert remark.line > 1
    assert remark.reason.endswith(f"stays removed, as by {in_words(by, {})}; --take-over adds it again")
    assert ("add", kind, key) in keys(planned(DIRECTORY, state, claims=replace(held, take_over=True)))
    assert ("add", kind, key) in keys(planned(DIRECTORY, state, claims=replace(held, removed={(kind, key): FILES})))


def test_what_rests_on_a_removed_membership_stays_removed_with_it() -> None:
    state, member = after(DIRECTORY), ("id-rina", "A1")
    for kind in ("membership", "administrator", "assignment", "third-party row"):
        state[kind] = {key: held for key, held in state[kind].items() if key[:2] != member}
    held = replace(claims(state, {}), removed={("membership", member): "token:t"})
    made = planned(DIRECTORY, state, claims=held)
    assert made.changes == ()
    assert [each.kind for each in made.kept] == ["membership", "administrator", "assignment", "third-party row"]
    assert "because what it depends on was; --take-over adds it again" in remarked(made.kept, {})[-1].reason


def test_a_row_under_an_authorisation_that_was_ended_is_no_fault_of_the_file() -> None:
    """R-21, D56: either side ends it; the file would otherwise be refused every night."""
    state = after(DIRECTORY)
    key = CASES["grant"].key
    del state["grant"][key]
    made = planned(DIRECTORY, state, claims=replace(claims(state, {}), removed={("grant", key): "user:id-rina"}))
    assert (made.changes, [each.kind for each in made.kept]) == ((), ["grant"])


def test_a_command_changes_whatever_it_is_told_to() -> None:
    """What is asked for by name is meant: no claims are looked at."""
    made = planned(CASES["entity"].changed, after(DIRECTORY))
    assert [(change.seen, change.taken) for change in made.changes] == [(None, {})]


def test_remarks_on_what_pruning_leaves_are_counted_beyond_the_first() -> None:
    every = [
        RetainedRecord(verb="remove", kind="entity", key=(f"E{number}",), by=("client:hr",)) for number in range(100)
    ]
    shown = remarked(every, {})
    assert len(shown) == UNREMOVED_SHOWN + 1
    assert shown[-1].reason == f"--prune leaves {100 - UNREMOVED_SHOWN} more that others wrote: --json lists them"
    assert kept_record(every[0], {}).sources == ("API",)


ALPHA = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha")
RINA_USER = User(user_id="id-rina", user_name="rina", name="Rina")


def test_a_record_comes_from_who_changed_it_last() -> None:
    made = sources_after(FILES, None, ALPHA, ABSENT)
    assert made == Sources(record=FILES)
    other = replace(ALPHA, enabled=False)
    assert sources_after("client:hr", ALPHA, other, made) == Sources(record="client:hr")
    assert sources_after("client:hr", ALPHA, ALPHA, made) == made
    assert sources_after(FILES, ALPHA, ALPHA, Sources(record="client:hr"), frozenset({WHOLE})) == made


@pytest.mark.parametrize("actor", ["system", "anonymous", ""])
def test_corpid_itself_is_no_source(actor: str) -> None:
    assert sources_after(actor, None, ALPHA, ABSENT) == UNKNOWN
    assert sources_after(actor, ALPHA, replace(ALPHA, name="Two"), Sources(record=FILES)) == Sources(record=FILES)


def test_of_a_person_each_member_comes_from_who_changed_it() -> None:
    made = sources_after(FILES, None, RINA_USER, ABSENT)
    spoken = sources_after(RINA, RINA_USER, replace(RINA_USER, language="ms"), made)
    assert spoken == Sources(record=FILES, members={"language": RINA})
    assert (spoken.source_of("language"), spoken.source_of("name")) == (RINA, FILES)
    back = sources_after(FILES, replace(RINA_USER, language="ms"), RINA_USER, spoken)
    assert back == made


def test_a_file_takes_of_a_person_what_it_names_and_nothing_else() -> None:
    by_command = sources_after("command:root@node1", None, RINA_USER, ABSENT)
    taken = sources_after(FILES, RINA_USER, RINA_USER, by_command, frozenset({WHOLE, "name"}))
    assert (taken.record, taken.source_of("name"), taken.source_of("email")) == (FILES, FILES, "command:root@node1")


def test_a_door_is_told_by_the_actor_and_a_person_by_their_own_record() -> None:
    assert [channel(actor, "id-rina") for actor in (RINA, "user:id-arjun", "operator:id-rina", "system", "")] == [
        "person", "page", "page", "unknown", "unknown",
    ]  # fmt: skip
    assert [in_words(actor, {}) for actor in ("file:/srv/hr.yaml", "command:root@node1", "client:hr", "token:t", "")] == [
        "the file hr.yaml", "root@node1 on the command line", "the API client hr", "the provisioning token t", "",
    ]  # fmt: skip
