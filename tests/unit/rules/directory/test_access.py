"""Who may do what: the whole matrix against what is written here (DESIGN, Security)."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from corpid.rules.directory.access import (
    ANONYMOUS,
    OPERATOR,
    Action,
    Actor,
    Forbidden,
    Object,
    ObjectKind,
    Person,
    authorise,
)
from corpid.rules.directory.sections import KINDS

ACTIONS = get_args(Action)
OBJECT_KINDS: tuple[ObjectKind, ...] = (*KINDS, "session", "link", "password link")
ACTORS: dict[str, Actor] = {
    "operator": OPERATOR, "owner": Person("u1"), "stranger": Person("u2"), "nobody": Person(""), "anonymous": ANONYMOUS,
}  # fmt: skip

ALLOWED = {
    *product(["operator"], ACTIONS, KINDS),
    ("operator", "read", "session"),
    ("operator", "delete", "session"),
    ("operator", "write", "link"),
    ("owner", "read", "user"),
    ("owner", "read", "membership"),
    ("owner", "read", "assignment"),
    ("owner", "read", "third-party row"),
    ("owner", "read", "session"),
    ("owner", "write", "session"),
    ("owner", "delete", "session"),
    ("owner", "write", "user"),
    ("owner", "write", "credentials"),
    ("operator", "write", "password link"),
    ("anonymous", "write", "password link"),
}


def allowed(actor: Actor, action: Action, thing: Object) -> bool:
    try:
        authorise(actor, action, thing)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(("actor", "action", "kind"), sorted(product(ACTORS, ACTIONS, OBJECT_KINDS)))
def test_everything_that_is_not_listed_here_is_refused(actor: str, action: Action, kind: ObjectKind) -> None:
    thing = Object(kind=kind, entity_id="A1", user_id="u1")
    assert allowed(ACTORS[actor], action, thing) == ((actor, action, kind) in ALLOWED)


@pytest.mark.parametrize(("action", "kind"), sorted(product(ACTIONS, OBJECT_KINDS)))
def test_a_person_without_a_name_owns_nothing_that_has_no_owner(action: Action, kind: ObjectKind) -> None:
    assert not allowed(Person(""), action, Object(kind=kind))


def test_a_refusal_names_actor_action_and_object() -> None:
    with pytest.raises(Forbidden, match="user:u2 may not write this client"):
        authorise(Person("u2"), "write", Object(kind="client"))
