"""Access control: every write below HTTP calls `authorise`; default deny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.rules.directory.sections import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Action: TypeAlias = Literal["read", "write", "delete"]
ObjectKind: TypeAlias = "Kind | Literal['session', 'key', 'deployment', 'link', 'password link']"


class Operator(msgspec.Struct, frozen=True):
    """The operator, at the command line."""

    @property
    def name(self) -> str:
        """The actor as the audit table writes it."""
        return "operator"


class Person(msgspec.Struct, frozen=True):
    """A signed-in person, acting on their own account."""

    user_id: str

    @property
    def name(self) -> str:
        """The actor as the audit table writes it."""
        return f"user:{self.user_id}"


class Anonymous(msgspec.Struct, frozen=True):
    """A caller that is not authenticated."""

    @property
    def name(self) -> str:
        """The actor as the audit table writes it."""
        return "anonymous"


Actor: TypeAlias = Operator | Person | Anonymous

OPERATOR: Final = Operator()
ANONYMOUS: Final = Anonymous()


class Object(msgspec.Struct, frozen=True, kw_only=True):
    """The object of an action: kind of record, tenant and person."""

    kind: ObjectKind
    entity_id: str = ""
    user_id: str = ""


class Forbidden(Exception):
    """No rule allows this actor this action on this object."""


def _anything(_actor: Actor, _thing: Object) -> bool:
    return True


def _own(actor: Actor, thing: Object) -> bool:
    return isinstance(actor, Person) and bool(actor.user_id) and actor.user_id == thing.user_id


_ACTIONS: Final[tuple[Action, ...]] = ("read", "write", "delete")

_RULES: Final[Mapping[tuple[type[Actor], Action, ObjectKind], Callable[[Actor, Object], bool]]] = {
    **{(Operator, action, kind): _anything for action in _ACTIONS for kind in KINDS},
    **{(Operator, action, "key"): _anything for action in _ACTIONS},
    (Operator, "write", "deployment"): _anything,
    (Operator, "read", "session"): _anything,
    (Operator, "delete", "session"): _anything,
    (Person, "read", "user"): _own,
    (Person, "read", "membership"): _own,
    (Person, "read", "assignment"): _own,
    (Person, "read", "third-party row"): _own,
    (Person, "read", "session"): _own,
    (Person, "write", "session"): _own,
    (Person, "delete", "session"): _own,
    (Person, "write", "user"): _own,
    (Person, "write", "credentials"): _own,
    (Operator, "write", "link"): _anything,
    (Operator, "write", "password link"): _anything,
    (Anonymous, "write", "password link"): _anything,
}
"""(actor, action, kind) → the condition on the object; a triple that is not here is refused"""


def authorise(actor: Actor, action: Action, thing: Object) -> None:
    """Return if a rule allows it.

    Raises Forbidden, naming the three, for everything else. Source: DESIGN, Security
    """
    rule = _RULES.get((type(actor), action, thing.kind))
    if rule is None or not rule(actor, thing):
        raise Forbidden(f"{actor.name} may not {action} this {thing.kind}")
