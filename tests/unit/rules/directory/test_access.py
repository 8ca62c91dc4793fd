"""Who may do what: the whole matrix against what is written here (SECURITY.md; D53, D54, D59, D60, D61)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory import access
from corpid.rules.directory.access import (
    ACTIONS,
    ANONYMOUS,
    CONDITIONS,
    OBJECT_KINDS,
    ROLES,
    RULES,
    RULES_WRITTEN,
    Action,
    Actor,
    ApiClient,
    CommandLine,
    Condition,
    DeploymentOperator,
    DirectoryFile,
    EntityAdministrator,
    Forbidden,
    Object,
    ObjectKind,
    Person,
    ProvisioningToken,
    Role,
    authorise,
)
from corpid.rules.directory.third_parties import AuthorisationSide

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.rules.directory.records import AdministratorLevel, OperatorLevel
    from corpid.rules.oauth.api_client import ApiScope

NOW = 1_800_000_000
SCOPES: frozenset[ApiScope] = frozenset(
    {"directory.read", "directory.write", "clients.read", "clients.write", "audit.read", "operations"}
)
RECORDS = "service entity user credentials membership administrator operator assignment grant third-party_row client"
EVERYTHING = f"{RECORDS} session consent lock link password_link second_factor_link identity_number audit approval withdrawal API_client provisioning_token key deployment invitation deletion_request access_request access_review audit_export audit_verification"


def administering(level: AdministratorLevel, **facts: object) -> EntityAdministrator:
    """Somebody who signed in a minute ago; a sub-administrator of PERMIT."""
    services = ("PERMIT",) if level == "sub_administrator" else ()
    actor = EntityAdministrator(
        user_id="u1", entity_id="A1", level=level, services=services, alone=False, auth_time=NOW - 60, now=NOW
    )
    return replace(actor, **facts)


def operating(level: OperatorLevel) -> DeploymentOperator:
    return DeploymentOperator(user_id="u1", level=level, auth_time=NOW - 60, now=NOW)


ACTORS: dict[Role, Actor] = {
    "command line": CommandLine(by="lee@node1"),
    "file": DirectoryFile(file="people.yaml", sha256="", by=CommandLine(by="lee@node1")),
    "operator": operating("operator"),
    "support": operating("support"),
    "auditor": operating("auditor"),
    "owner": administering("owner"),
    "administrator": administering("administrator"),
    "sub_administrator": administering("sub_administrator"),
    "person": Person("u1"),
    "API client": ApiClient(client_id="c", scopes=SCOPES),
    "API client of an entity": ApiClient(client_id="c", scopes=SCOPES, entity_id="A1"),
    "provisioning token": ProvisioningToken(token_id="t", entity_id="A1"),
    "anonymous": ANONYMOUS,
}

ALLOWED: dict[Role, dict[Action, str]] = {
    "command line": {
        "read": f"{RECORDS} session lock identity_number audit approval API_client provisioning_token key deployment "
        "deletion_request consent access_review",
        "write": f"{RECORDS} link password_link second_factor_link approval API_client provisioning_token key deployment invitation",
        "delete": f"{RECORDS} session lock API_client provisioning_token key",
    },
    "file": {"read": RECORDS, "write": RECORDS, "delete": RECORDS},
    "operator": {
        "read": EVERYTHING,
        "write": f"{RECORDS} link password_link second_factor_link approval API_client provisioning_token key deployment invitation",
        "delete": f"{RECORDS} session lock API_client provisioning_token key",
    },
    "support": {
        "read": "service entity user credentials membership administrator assignment grant third-party_row client "
        "session lock audit approval key deployment access_review",
        "write": "link password_link second_factor_link invitation",
        "delete": "session lock",
    },
    "auditor": {"read": EVERYTHING, "write": "", "delete": ""},
    "owner": {
        "read": "service entity user membership administrator assignment grant third-party_row audit provisioning_token "
        "approval access_review",
        "write": "entity membership administrator assignment grant third-party_row provisioning_token approval withdrawal "
        "invitation access_review password_link second_factor_link",
        "delete": "membership administrator assignment grant third-party_row provisioning_token lock",
    },
    "administrator": {
        "read": "service entity user membership administrator assignment grant third-party_row audit approval "
        "access_review",
        "write": "membership administrator assignment grant third-party_row approval withdrawal invitation access_review "
        "password_link second_factor_link",
        "delete": "membership administrator assignment grant third-party_row lock",
    },
    "sub_administrator": {
        "read": "service entity user membership administrator assignment approval",
        "write": "assignment approval withdrawal",
        "delete": "assignment",
    },
    "person": {
        "read": "user membership administrator assignment third-party_row session consent deletion_request access_request audit",
        "write": "user membership credentials session consent deletion_request access_request withdrawal",
        "delete": "membership session consent deletion_request",
    },
    "API client": {
        "read": "service entity user membership administrator assignment grant third-party_row client session lock "
        "identity_number audit approval key deployment deletion_request consent access_review",
        "write": "service entity user membership administrator assignment grant third-party_row client key deployment "
        "withdrawal invitation",
        "delete": "service entity user membership administrator assignment grant third-party_row client session lock",
    },
    "API client of an entity": {
        "read": "service entity user membership administrator assignment grant third-party_row audit approval "
        "access_review",
        "write": "membership administrator assignment grant third-party_row withdrawal invitation",
        "delete": "membership administrator assignment grant third-party_row",
    },
    "provisioning token": {
        "read": "service entity user membership assignment",
        "write": "membership assignment invitation",
        "delete": "membership assignment",
    },
    "anonymous": {"read": "", "write": "password_link", "delete": ""},
}

FLIPS: dict[str, Callable[[Actor, Object], tuple[Actor, Object]]] = {
    "OWN": lambda actor, thing: (actor, replace(thing, user_id="u9")),
    "OWN_CHOICE": lambda actor, thing: (actor, replace(thing, members=frozenset({"language", "email", "name"}))),
    "OWN_REQUEST": lambda actor, thing: (actor, replace(thing, requester="user:u9")),
    "ANOTHERS_REQUEST": lambda actor, thing: (actor, replace(thing, requester="user:u1")),
    "SETTINGS": lambda actor, thing: (actor, replace(thing, members=frozenset({"approvals", "name"}))),
    "OWN_ENTITY": lambda actor, thing: (actor, replace(thing, entity_id="Z9")),
    "EITHER_SIDE": lambda actor, thing: (actor, replace(thing, entity_id="Z9", other_entity_id="Y9")),
    "SPEAKING_SIDE": lambda actor, thing: (actor, replace(thing, sides=frozenset({AuthorisationSide.THIRD_PARTY}))),
    "COVERED": lambda actor, thing: (actor, replace(thing, covered=False)),
    "STAYS_STRICT": lambda actor, thing: (actor, replace(thing, ends_approval=True)),
    "ADDRESS_STAYS": lambda actor, thing: (actor, replace(thing, moves_address=True)),
    "RECIPIENT_STAYS": lambda actor, thing: (actor, replace(thing, level="owner", moves_address=True)),
    "RECENT": lambda actor, thing: (replace(actor, auth_time=NOW - 901), thing),
    "SOMEBODY_ELSE": lambda actor, thing: (actor, replace(thing, user_id="u1")),
    "REVIEWER": lambda actor, thing: (actor, replace(thing, user_id="u1", has_other_reviewer=True)),
    "WITHIN_REACH": lambda actor, thing: (actor, replace(thing, level=None)),
    "BELOW": lambda actor, thing: (actor, replace(thing, level=actor.role)),
    "APPOINTS": lambda actor, thing: (actor, replace(thing, becomes=None)),
    "NO_OWNER": lambda actor, thing: (actor, replace(thing, becomes="owner")),
    "BELONGS": lambda actor, thing: (actor, replace(thing, belongs=False)),
    "BELONGS_OR_INVITED": lambda actor, thing: (actor, replace(thing, belongs=False)),
    "ANSWERS": lambda actor, thing: (actor, replace(thing, answers=False)),
    "LISTED_SERVICE": lambda actor, thing: (actor, replace(thing, service_id="OTHER")),
    "OWNER_STAYS": lambda actor, thing: (actor, replace(thing, takes_last_owner=True)),
    "NO_OPERATOR": lambda actor, thing: (actor, replace(thing, operates=True)),
    "WITHOUT_PARAMETERS": lambda actor, thing: (actor, replace(thing, parameters=True)),
    **{
        scope.upper().replace(".", "_"): lambda actor, thing, scope=scope: (  # type: ignore[misc]
            replace(actor, scopes=SCOPES - {scope}), thing
        )
        for scope in SCOPES
    },
}  # fmt: skip
"""condition → the actor and object for which it alone does not hold"""
NAMES = {id(condition): name for name, condition in vars(access).items() if condition in CONDITIONS}


def object_of(kind: ObjectKind, role: Role = "owner") -> Object:
    """An object of which every fact is as a rule could want it."""
    return Object(
        kind=kind,
        entity_id="A1",
        other_entity_id="B2",
        service_id="PERMIT",
        user_id="u1" if role == "person" else "u2",
        level="",
        becomes="",
        belongs=True,
        takes_last_owner=False,
        operates=False,
        parameters=False,
        members=frozenset({"approvals"} if kind == "entity" else {"language"}),
        requester=ACTORS[role].name if kind == "withdrawal" else "user:u2",
        sides=frozenset({AuthorisationSide.CLIENT_ENTITY}),
        covered=True,
        ends_approval=False,
        moves_address=False,
        answers=True,
    )


def allowed(actor: Actor, action: Action, thing: Object) -> bool:
    try:
        authorise(actor, action, thing)
    except Forbidden:
        return False
    return True


def listed(role: Role, action: Action) -> set[str]:
    return {kind.replace("_", " ") for kind in ALLOWED[role][action].split()}


@pytest.mark.parametrize(("role", "action"), sorted(product(ROLES, ACTIONS)))
def test_everything_that_is_not_listed_here_is_refused(role: Role, action: Action) -> None:
    """Default deny: every combination of role, action and kind of object."""
    found = {kind for kind in OBJECT_KINDS if allowed(ACTORS[role], action, object_of(kind, role))}
    assert found == listed(role, action)


def test_every_role_is_an_actors_own() -> None:
    assert {role: actor.role for role, actor in ACTORS.items()} == {role: role for role in ROLES}


def test_no_rule_is_written_twice() -> None:
    """The second one would replace the conditions of the first."""
    assert len(RULES) == RULES_WRITTEN


@pytest.mark.parametrize("role", sorted({role for role, _, _ in RULES}))
def test_each_condition_of_a_rule_is_enough_to_refuse(role: Role) -> None:
    found: dict[tuple[Action, ObjectKind, str], str | None] = {}
    expected: dict[tuple[Action, ObjectKind, str], set[str]] = {}
    for (_, action, kind), conditions in sorted(each for each in RULES.items() if each[0][0] == role):
        for condition in conditions:
            rule = action, kind, NAMES[id(condition)]
            found[rule] = reason_of(*flipped(condition, role, action, kind))
            expected[rule] = {each.reason for each in conditions}
    assert not {rule: reason for rule, reason in found.items() if reason not in expected[rule]}


def reason_of(actor: Actor, action: Action, thing: Object) -> str | None:
    """Why it is refused; None where it is allowed."""
    try:
        authorise(actor, action, thing)
    except Forbidden as refused:
        return refused.reason
    return None


def flipped(condition: Condition, role: Role, action: Action, kind: ObjectKind) -> tuple[Actor, Action, Object]:
    actor, thing = FLIPS[NAMES[id(condition)]](ACTORS[role], object_of(kind, role))
    return actor, action, thing


def test_every_condition_is_used_and_turned_here() -> None:
    assert all(condition.source and not condition.reason.endswith(".") for condition in CONDITIONS)
    used = {NAMES[id(condition)] for conditions in RULES.values() for condition in conditions}
    assert used == set(FLIPS) == set(NAMES.values())


FACTS = ("level", "becomes", "takes_last_owner", "operates", "parameters", "members", "covered")


@pytest.mark.parametrize(
    ("role", "action", "kind"),
    [
        ("owner", "write", "membership"),
        ("owner", "delete", "administrator"),
        ("administrator", "write", "assignment"),
        ("API client of an entity", "write", "third-party row"),
        ("sub_administrator", "write", "assignment"),
        ("support", "delete", "session"),
        ("API client", "write", "administrator"),
        ("API client of an entity", "delete", "membership"),
        ("provisioning token", "write", "assignment"),
        ("person", "write", "user"),
    ],
)
def test_facts_that_nobody_loaded_are_no_reason_to_allow(role: Role, action: Action, kind: ObjectKind) -> None:
    assert allowed(ACTORS[role], action, object_of(kind, role))
    assert not allowed(ACTORS[role], action, replace(object_of(kind, role), **dict.fromkeys(FACTS)))


def test_a_person_without_a_name_owns_nothing_that_has_no_owner() -> None:
    for action, kind in product(ACTIONS, OBJECT_KINDS):
        assert not allowed(Person(""), action, Object(kind=kind)), (action, kind)


@pytest.mark.parametrize("role", ["owner", "administrator", "sub_administrator", "provisioning token"])
def test_what_has_no_entity_belongs_to_none(role: Role) -> None:
    """Also if the actor's own were empty by a mistake."""
    for action, kind in product(ACTIONS, OBJECT_KINDS):
        nothing = replace(object_of(kind), entity_id="", other_entity_id="")
        if kind != "service":
            assert not allowed(ACTORS[role], action, nothing)
            assert not allowed(replace(ACTORS[role], entity_id=""), action, nothing)


def test_a_refusal_names_actor_action_and_object() -> None:
    with pytest.raises(Forbidden, match=r"user:u2 may not write this client$") as refused:
        authorise(Person("u2"), "write", Object(kind="client"))
    assert refused.value.reason == "you do not have permission"
