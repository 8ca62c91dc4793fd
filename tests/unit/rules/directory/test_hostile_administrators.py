"""Administrators, operators and clients who reach for more than is theirs, each by name (D53, D54, D59, D60, D61)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.directory.access import (
    Action,
    Actor,
    ApiClient,
    Forbidden,
    Object,
    ObjectKind,
    ProvisioningToken,
    authorise,
    on_self,
)
from tests.unit.rules.directory.test_access import ACTORS, NOW, SCOPES, administering, allowed, object_of, operating

RENEWALS: tuple[ObjectKind, ...] = ("password link", "second factor link")
PERSONAL = ("user", "credentials", "session", "lock", "link", *RENEWALS)
"""everything of a person by which somebody could sign in as them"""
OWNER = administering("owner")
ADMINISTRATOR = administering("administrator")
SUB_ADMINISTRATOR = administering("sub_administrator")
LEVELS = ("", "sub_administrator", "administrator", "owner")


def reason(actor: Actor, action: Action, thing: Object) -> str:
    with pytest.raises(Forbidden) as refused:
        authorise(actor, action, thing)
    return refused.value.reason


@pytest.mark.parametrize("actor", [OWNER, ADMINISTRATOR, SUB_ADMINISTRATOR, ACTORS["provisioning token"]])
@pytest.mark.parametrize(
    "kind", ["entity", "membership", "administrator", "assignment", "grant", "third-party row", "audit"]
)
def test_an_object_of_another_entity_by_a_guessed_key(actor: Actor, kind: ObjectKind) -> None:
    """The answer is the same whether it exists or not: only what the actor said itself is compared."""
    foreign = replace(object_of(kind), entity_id="Z9", other_entity_id="Y9")
    for action in ("read", "write", "delete"):
        there, absent = (reason(actor, action, replace(foreign, belongs=known)) for known in (True, False))
        assert there == absent


def test_a_sub_administrator_outside_the_services_of_the_list() -> None:
    thing = object_of("assignment")
    authorise(SUB_ADMINISTRATOR, "write", thing)
    other = replace(thing, service_id="OTHER")
    assert reason(SUB_ADMINISTRATOR, "write", other) == "you do not administer this service"
    assert not allowed(SUB_ADMINISTRATOR, "read", other)
    assert allowed(replace(SUB_ADMINISTRATOR, services="all"), "write", other)


def test_an_empty_list_of_services_gives_nothing() -> None:
    nothing = replace(SUB_ADMINISTRATOR, services=())
    assert not allowed(nothing, "write", object_of("assignment"))
    assert not allowed(SUB_ADMINISTRATOR, "write", replace(object_of("assignment"), service_id=""))


def test_a_sub_administrator_brings_nobody_in() -> None:
    stranger = replace(object_of("assignment"), belongs=False)
    assert (
        reason(SUB_ADMINISTRATOR, "write", stranger) == "this is only for people who are already members of the entity"
    )
    assert not allowed(SUB_ADMINISTRATOR, "write", object_of("membership"))


@pytest.mark.parametrize("kind", ["assignment", "third-party row", "administrator", "membership"])
@pytest.mark.parametrize("actor", [OWNER, ADMINISTRATOR, SUB_ADMINISTRATOR, operating("operator")])
def test_oneself(actor: Actor, kind: ObjectKind) -> None:
    own = replace(object_of(kind), user_id="u1", level="")
    for action in ("write", "delete"):
        assert not allowed(actor, action, own)


def test_an_owner_who_is_the_only_administrator_has_nobody_else_to_ask() -> None:
    """D54: marked `self`; the level itself cannot be lost, since the last owner stays."""
    alone = replace(OWNER, alone=True)
    own = replace(object_of("assignment"), user_id="u1", level="owner")
    authorise(alone, "write", own)
    assert on_self(alone, own)
    assert not on_self(alone, object_of("assignment"))
    demoted = replace(own, kind="administrator", becomes="administrator", takes_last_owner=True)
    assert reason(alone, "write", demoted) == "the last owner must stay: appoint another owner first"
    for level in ("administrator", "sub_administrator"):
        assert not allowed(administering(level, alone=True), "write", replace(own, level=level))


@pytest.mark.parametrize(
    ("kind", "action"), [("membership", "delete"), ("membership", "write"), ("administrator", "delete"), ("administrator", "write")]
)  # fmt: skip
@pytest.mark.parametrize("role", ["owner", "API client of an entity", "API client", "provisioning token"])
def test_the_last_owner(role: str, kind: ObjectKind, action: Action) -> None:
    """Removed, demoted or suspended by nobody but an operator."""
    last = replace(object_of(kind), level="owner", becomes="", takes_last_owner=True)
    assert not allowed(ACTORS[role], action, last)  # type: ignore[index]
    assert allowed(ACTORS["operator"], action, last)
    assert allowed(ACTORS["command line"], action, last)


@pytest.mark.parametrize(
    "kind", ["assignment", "membership", "administrator", "third-party row", "credentials", "client", "user"]
)
def test_support_gives_no_role_factor_or_client(kind: ObjectKind) -> None:
    for action in ("write", "delete"):
        assert not allowed(ACTORS["support"], action, object_of(kind))


@pytest.mark.parametrize("kind", PERSONAL)
def test_support_does_nothing_to_operators(kind: ObjectKind) -> None:
    operator = replace(object_of(kind), operates=True)
    for action in ("read", "write", "delete"):
        assert not allowed(ACTORS["support"], action, operator)
    assert not allowed(ACTORS["support"], "read", object_of("operator"))


def test_an_auditor_changes_nothing() -> None:
    assert not [kind for kind in PERSONAL if allowed(ACTORS["auditor"], "write", object_of(kind))]


@pytest.mark.parametrize("level", ["owner", "administrator"])
@pytest.mark.parametrize("kind", ["membership", "assignment", "administrator", "third-party row"])
def test_an_administrator_changes_neither_owners_nor_other_administrators(level: str, kind: ObjectKind) -> None:
    higher = replace(object_of(kind), level=level)
    for action in ("write", "delete"):
        said = reason(ADMINISTRATOR, action, higher)
        assert said == "you cannot make changes to a person of this level"
        assert allowed(OWNER, action, higher)


@pytest.mark.parametrize("level", ["owner", "administrator"])
def test_a_sub_administrator_gives_no_role_to_somebody_above(level: str) -> None:
    assert not allowed(SUB_ADMINISTRATOR, "write", replace(object_of("assignment"), level=level))


def test_each_level_appoints_what_it_may_and_nobody_appoints_themselves_higher() -> None:
    """D53: level → the levels that it gives."""
    given = {
        level: {
            becomes
            for becomes in LEVELS
            if allowed(administering(level), "write", replace(object_of("administrator"), becomes=becomes))
        }
        for level in ("owner", "administrator", "sub_administrator")
    }
    assert given == {
        "owner": set(LEVELS),
        "administrator": {"", "sub_administrator"},
        "sub_administrator": set(),
    }


@pytest.mark.parametrize(
    "role", ["owner", "administrator", "sub_administrator", "API client of an entity", "provisioning token"]
)
@pytest.mark.parametrize("kind", PERSONAL)
def test_an_entity_changes_no_person_and_so_not_where_recovery_links_go(role: str, kind: ObjectKind) -> None:
    """D61: name, user name and e-mail of the person, factors, sessions."""
    helped = (
        {("delete", "lock"), *(("write", each) for each in RENEWALS)} if role in {"owner", "administrator"} else set()
    )
    for action in ("write", "delete"):
        assert allowed(ACTORS[role], action, object_of(kind)) == ((action, kind) in helped)  # type: ignore[index]


@pytest.mark.parametrize(("action", "kind"), [("delete", "lock"), *(("write", each) for each in RENEWALS)])
def test_help_with_a_sign_in_is_for_members_below_ones_own_level_and_never_for_operators(
    action: Action, kind: ObjectKind
) -> None:
    """D69: a link asks for the other factor; the one that asks for none is an operator's."""
    helped = {
        level: {each for each in LEVELS if allowed(administering(level), action, replace(object_of(kind), level=each))}
        for level in ("owner", "administrator", "sub_administrator")
    }
    assert helped == {
        "owner": {"", "sub_administrator", "administrator"},
        "administrator": {"", "sub_administrator"},
        "sub_administrator": set(),
    }
    for lack in ({"operates": True}, {"operates": None}, {"belongs": False}, {"level": None}, {"entity_id": "Z9"}):
        assert not allowed(OWNER, action, replace(object_of(kind), **lack))
    own = replace(object_of(kind), user_id="u1", level="owner")
    assert not allowed(administering("owner", alone=True), action, own)
    assert not allowed(OWNER, "write", object_of("link"))
    assert not allowed(OWNER, "read", object_of(kind))


@pytest.mark.parametrize(
    "role", ["owner", "administrator", "sub_administrator", "API client of an entity", "provisioning token"]
)
@pytest.mark.parametrize("kind", ["credentials", "session", "lock", "identity number", "operator"])
def test_an_entity_never_reads_factors_sessions_or_identity_numbers(role: str, kind: ObjectKind) -> None:
    """D61."""
    assert not allowed(ACTORS[role], "read", object_of(kind))  # type: ignore[index]


@pytest.mark.parametrize("role", ["owner", "administrator", "API client of an entity", "provisioning token"])
def test_nobody_is_made_a_member_by_a_guessed_identifier_and_then_read(role: str) -> None:
    """D60, D61: whoever does not belong to the entity has to accept that first."""
    stranger = replace(object_of("membership"), belongs=False)
    for action in ("write", "delete"):
        assert reason(ACTORS[role], action, stranger).startswith("people become members by accepting an invitation")  # type: ignore[index]
    assert allowed(ACTORS[role], "write", replace(stranger, invites=True))  # type: ignore[index]


def test_a_person_who_does_not_belong_to_the_entity_is_not_read() -> None:
    """D61: the same answer for somebody who does not exist."""
    assert not allowed(OWNER, "read", replace(object_of("user"), belongs=False))


def test_an_administrator_of_two_entities_has_at_each_the_level_of_that_one() -> None:
    """D54: an owner of A1 who is sub-administrator at B2, and has chosen B2."""
    at_b2 = replace(SUB_ADMINISTRATOR, entity_id="B2")
    assert not allowed(at_b2, "write", object_of("membership"))
    assert not allowed(at_b2, "write", replace(object_of("membership"), entity_id="B2"))
    assert not allowed(at_b2, "write", object_of("assignment"))
    assert allowed(at_b2, "write", replace(object_of("assignment"), entity_id="B2"))


@pytest.mark.parametrize(("age", "holds"), [(0, True), (900, True), (901, False), (-1, False)])
def test_a_change_needs_a_sign_in_of_the_last_quarter_of_an_hour(age: int, holds: bool) -> None:
    """D54; a sign-in of the future is none."""
    actor = replace(OWNER, auth_time=NOW - age)
    assert allowed(actor, "write", object_of("membership")) == holds
    assert allowed(actor, "read", object_of("membership"))
    operator = replace(operating("operator"), auth_time=NOW - age)
    assert allowed(operator, "write", object_of("client")) == holds


@pytest.mark.parametrize("bound", ["", "A1"])
def test_an_api_client_appoints_no_owner_or_operator_makes_no_client_of_its_kind_and_approves_nothing(
    bound: str,
) -> None:
    """D59."""
    client = ApiClient(client_id="c", scopes=SCOPES, entity_id=bound)
    for change in ({"becomes": "owner"}, {"level": "owner", "becomes": "administrator"}):
        assert (
            reason(client, "write", replace(object_of("administrator"), **change)) == "only people can appoint owners"
        )
    for kind in ("operator", "API client", "provisioning token", "approval", "credentials", "link", *RENEWALS):
        for action in ("write", "delete"):
            assert not allowed(client, action, object_of(kind))
    assert not allowed(client, "write", replace(object_of("user"), operates=True))
    assert not allowed(client, "delete", replace(object_of("user"), takes_last_owner=True))


@pytest.mark.parametrize("kind", ["client", "entity", "service", "user", "key", "deployment"])
def test_an_api_client_of_an_entity_changes_nothing_beyond_it(kind: ObjectKind) -> None:
    assert not allowed(ACTORS["API client of an entity"], "write", object_of(kind))
    assert not allowed(ACTORS["API client of an entity"], "read", object_of("client"))


@pytest.mark.parametrize("missing", sorted(SCOPES))
def test_a_scope_that_the_token_lacks_gives_nothing(missing: str) -> None:
    client = ApiClient(client_id="c", scopes=frozenset())
    assert not [kind for kind in PERSONAL if allowed(client, "read", object_of(kind))]
    without = replace(client, scopes=SCOPES - {missing})
    kind, action = {
        "directory.read": ("user", "read"), "directory.write": ("user", "write"), "clients.read": ("client", "read"),
        "clients.write": ("client", "write"), "audit.read": ("audit", "read"), "operations": ("key", "write"),
    }[missing]  # fmt: skip
    assert reason(without, action, object_of(kind)) == f"the token lacks the scope {missing}"  # type: ignore[arg-type]


def test_provisioning_gives_plain_roles_of_its_entity_only() -> None:
    """D60."""
    token = ProvisioningToken(token_id="t", entity_id="A1")
    assert allowed(token, "write", object_of("assignment"))
    assert not allowed(token, "write", replace(object_of("assignment"), parameters=True))
    assert not allowed(token, "write", replace(object_of("assignment"), entity_id="B2"))
    for kind in ("administrator", "grant", "third-party row"):
        assert not allowed(token, "write", object_of(kind))


def test_a_grant_is_offered_by_the_client_entity_and_ended_by_either_side() -> None:
    """D56."""
    mine, theirs = object_of("grant"), replace(object_of("grant"), entity_id="B2", other_entity_id="A1")
    assert allowed(ADMINISTRATOR, "write", mine)
    assert not allowed(ADMINISTRATOR, "write", theirs)
    assert allowed(ADMINISTRATOR, "delete", mine)
    assert allowed(ADMINISTRATOR, "delete", theirs)
    assert not allowed(ADMINISTRATOR, "delete", replace(theirs, other_entity_id="C3"))
