"""What a file would change: additive, idempotent, and never undoing a person's own change."""

from __future__ import annotations

import msgspec
import pytest

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.differences import difference
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.plan import Plan, with_factors
from corpid.rules.directory.records import Entity, User
from corpid.rules.directory.values import RoleDescription
from tests.unit.rules.directory.directory import FILE, after, planned

HASH = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g"
SECRET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def verbs(made: Plan) -> list[tuple[str, str]]:
    return [(change.verb, change.kind) for change in made.changes]


def shown(made: Plan, names: dict[str, str]) -> list[str]:
    found = [difference(change, names) for change in made.changes]
    return [f"{one.sign} {one.subject}: {'; '.join(one.members)}" for one in found]


def refusals(text: str, *, prune: bool = False) -> list[str]:
    with pytest.raises(DirectoryError) as refused:
        planned(text, after(FILE), prune=prune)
    return [problem.reason for problem in refused.value.problems]


def test_applying_a_file_twice_changes_nothing() -> None:
    assert planned(FILE, after(FILE)).changes == ()


def test_what_a_file_does_not_name_stays_as_it_is() -> None:
    made = planned("entities: {A1: {name: Alpha Two}}", after(FILE))
    assert shown(made, {}) == ["~ entity A1: name: Alpha → Alpha Two"]
    [change] = made.changes
    assert change.after == Entity(
        entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha Two", status="Registered"
    )


def test_prune_removes_only_within_the_sections_that_the_file_has_and_what_hangs_on_it() -> None:
    text = FILE.replace("  C3: {type: UEN, country: SG, name: Gamma}\n", "").split("third_party:\n  grants")[0]
    made = planned(text, after(FILE), prune=True)
    assert verbs(made) == [("remove", "third-party row"), ("remove", "grant"), ("remove", "entity")]


def test_prune_leaves_sections_alone_that_the_file_lacks() -> None:
    assert planned("services: {PERMIT: {}, PLAIN: {}}", after(FILE), prune=True).changes == ()


def test_prune_of_memberships_concerns_people_whose_memberships_are_listed() -> None:
    made = planned("users: {rina: {memberships: [A1]}, arjun: {}}", after(FILE), prune=True)
    assert shown(made, {"id-rina": "rina"}) == ["- membership: rina acts for B2: "]


def test_a_file_cannot_refer_to_what_prune_would_remove() -> None:
    text = FILE.replace("  C3: {type: UEN, country: SG, name: Gamma}\n", "")
    assert refusals(text, prune=True) == [
        "there is no entity 'C3', here or in the directory",
        "there is no entity 'C3', here or in the directory",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("entities: {D4: {name: x}}", "the entity D4 is new and lacks type, country"),
        ("entities: {D4: {name: x, type: NON-UEN, country: DE}}", "the entity D4 is new and lacks registration_number"),
        ("assignments: [{user: nobody, entity: A1, service: PLAIN}]", "there is no user 'nobody'"),
        ("assignments: [{user: arjun, entity: B2, service: PLAIN}]", "arjun does not act for B2"),
        ("assignments: [{user: rina, entity: A1, service: NONE}]", "there is no service 'NONE'"),
        ("assignments: [{user: rina, entity: A1, service: PERMIT, role: Mkaer}]", "did you mean 'Maker'?"),
        ("assignments: [{user: rina, entity: A1, service: PERMIT}]", "a role is required"),
        ("assignments: [{user: rina, entity: A1, service: PLAIN, role: Maker}]", "it has no roles"),
        ("assignments: [{user: rina, entity: A1, service: PLAIN, sub_entity: x}]", "no sub-entities"),
        ("assignments: [{user: rina, entity: A1, service: PERMIT, role: Maker, parameters: {Yaer: 1}}]", "did you mean 'Year'?"),
        ("assignments: [{user: rina, entity: A1, service: PERMIT, role: Maker, parameters: {Year: x}}]", "not a year"),
        ("assignments: [{user: rina, entity: A1, service: PLAIN, start_date: 2026-01-02, end_date: 2026-01-01}]", "before it starts"),
        ("users: {rina: {memberships: [Z9]}}", "there is no entity 'Z9'"),
        ("third_party: {grants: [{client_entity: A1, third_party: A1, service: PERMIT}]}", "its own third party"),
        ("third_party: {grants: [{client_entity: C3, third_party: A1, service: PLAIN}]}", "does not allow third parties"),
        ("clients: {c: {name: C, redirect_uris: [https://c.example/cb], services: [NONE]}}", "there is no service 'NONE'"),
    ],
)  # fmt: skip
def test_a_file_must_make_sense_together_with_the_directory(text: str, reason: str) -> None:
    """R-14, R-20."""
    assert any(reason in said for said in refusals(text)), refusals(text)


ROW = "third_party: {assignments: [{user: rina, third_party: A1, client_entity: C3, service: PERMIT, ref: x, parameters: {Year: 2026}, %s}]}"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ("role: Checker, start_date: 2025-01-01, end_date: 2026-01-01", "role, sub-entity or parameters differ"),
        ("role: Maker, start_date: 2024-12-31, end_date: 2026-01-01", "granted for 2025-01-01 to 2026-12-31"),
        ("role: Maker, start_date: 2025-01-01", "granted for 2025-01-01 to 2026-12-31"),
    ],
)
def test_a_third_party_row_must_lie_inside_what_the_client_entity_granted(members: str, reason: str) -> None:
    """R-21."""
    assert any(reason in said for said in refusals(ROW % members))


def test_a_row_without_any_grant_is_refused() -> None:
    """R-21."""
    text = (ROW % "role: Maker").replace("C3", "B2").replace("third_party: A1", "third_party: A1")
    assert any("there is no grant" in said for said in refusals(text))


def test_a_missing_mandatory_value_is_a_warning_since_relying_parties_are_told() -> None:
    """R-14.1: ERROR_MISSING_VALUE."""
    made = planned("assignments: [{user: rina, entity: A1, service: PERMIT, role: Checker}]", after(FILE))
    assert verbs(made) == [("add", "assignment")]
    assert ["ERROR_MISSING_VALUE" in warning.reason for warning in made.warnings] == [True]


def test_only_roles_of_a_service_are_described() -> None:
    """docs/directory.md."""
    made = planned("services: {PERMIT: {role_descriptions: {Maker: Writes applications.}}}", after(FILE))
    assert shown(made, {}) == ["~ service PERMIT: role_descriptions: (none) → Maker: Writes applications."]
    said = refusals("services: {PERMIT: {role_descriptions: {Markers: Writes applications.}}}")
    assert said == [
        "role_descriptions: 'Markers' is no role of PERMIT; its roles are Maker, Checker; did you mean 'Maker'?"
    ]


def test_a_role_that_is_removed_loses_its_description() -> None:
    """docs/directory.md."""
    state = after(FILE)
    described = RoleDescription(name="Maker", description="Writes applications.")
    service = state["service"]["PERMIT",]
    state["service"]["PERMIT",] = msgspec.structs.replace(service, role_descriptions=(described,))
    made = planned("services: {PERMIT: {roles: [Clerk, Checker]}}", state)
    [change] = made.changes
    assert getattr(change.after, "role_descriptions", None) == ()


def test_a_mixed_script_name_is_flagged_and_accepted() -> None:
    """D51."""
    made = planned("entities: {A1: {name: \u0410lpha}}", after(FILE))
    assert verbs(made) == [("change", "entity")]
    assert ["mixes scripts" in warning.reason for warning in made.warnings] == [True]


def test_a_user_is_renamed_by_the_identifier() -> None:
    state = after(FILE)
    state["user"] = {("5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10",): User(
        user_id="5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10", user_name="rina", name="Rina"
    )}  # fmt: skip
    made = planned("users: {rina.tan: {id: 5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10}}", state)
    [change] = made.changes
    assert change.after == User(user_id="5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10", user_name="rina.tan", name="Rina")


def test_an_identifier_never_changes_under_a_name() -> None:
    said = refusals("users: {rina: {id: 5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10}}")
    assert said == ["id: rina already has the id id-rina, which never changes"]


def test_the_same_password_hash_is_set_once_even_after_the_stored_one_was_strengthened() -> None:
    first = with_factors(Credentials(user_id="u"), {"password_hash": HASH})
    assert first.password_hash == HASH
    strengthened = msgspec.structs.replace(first, password_hash="$argon2id$stronger")
    assert with_factors(strengthened, {"password_hash": HASH}) == strengthened


@pytest.mark.parametrize("setter", ["user", "operator"])
def test_a_factor_that_was_changed_since_is_never_undone_by_a_file(setter: str) -> None:
    """A file sets first factors and those it set itself."""
    known = msgspec.convert(
        {
            "user_id": "u",
            "password_hash": "own",
            "password_set_by": setter,
            "totp_secret": "own",
            "totp_set_by": setter,
        },
        Credentials,
    )
    assert with_factors(known, {"password_hash": HASH, "totp_secret": SECRET}) == known


def test_differences_never_show_a_secret() -> None:
    text = f"users: {{rina: {{password_hash: '{HASH}', totp_secret: {SECRET}}}}}"
    lines = shown(planned(text, after(FILE)), {"id-rina": "rina"})
    assert lines == ["+ factors of rina: password_hash: (set); totp_secret: (set)"]
