"""Access control: every write below HTTP calls `authorise`; default deny.

One table says which role may do what to which kind of object, and under which conditions. Facts that a condition needs
and nobody has loaded count as unfavourable. docs/administration.md shows the table (`make tables`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory.access_conditions import (
    ACTIONS,
    ADDRESS_STAYS,
    ANOTHERS_REQUEST,
    ANSWERS,
    APPOINTS,
    AUDIT_READ,
    BELONGS,
    BELONGS_OR_INVITED,
    BELOW,
    CLIENTS_READ,
    CLIENTS_WRITE,
    CONDITIONS,
    COVERED,
    DIRECTORY_READ,
    DIRECTORY_WRITE,
    EITHER_SIDE,
    LISTED_SERVICE,
    NO_OPERATOR,
    NO_OWNER,
    OBJECT_KINDS,
    OPERATIONS,
    OWN,
    OWN_CHOICE,
    OWN_ENTITY,
    OWN_REQUEST,
    OWNER_STAYS,
    RECENT,
    RECENT_SECONDS,
    RECIPIENT_STAYS,
    REVIEWER,
    ROLES,
    SETTINGS,
    SOMEBODY_ELSE,
    SPEAKING_SIDE,
    STAYS_STRICT,
    WITHIN_REACH,
    WITHOUT_PARAMETERS,
    Action,
    Condition,
    Forbidden,
    Level,
    Object,
    ObjectKind,
    on_self,
)
from corpid.rules.directory.actors import Actor, Role
from corpid.rules.directory.sections import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACTIONS", "CONDITIONS", "OBJECT_KINDS", "RECENT_SECONDS", "ROLES", "RULES", "RULES_WRITTEN", "Action", "Condition", "Forbidden", "Level", "Object",
    "ObjectKind", "Rule", "authorise", "find_obstacle", "on_self", "refuse_early",
]  # fmt: skip


class Rule(msgspec.Struct, frozen=True):
    """Some roles may do this to some kinds, if all conditions hold."""

    roles: tuple[Role, ...]
    actions: tuple[Action, ...]
    kinds: tuple[ObjectKind, ...]
    only: tuple[Condition, ...] = ()


_READ: Final[tuple[Action, ...]] = ("read",)
_WRITE: Final[tuple[Action, ...]] = ("write",)
_CHANGE: Final[tuple[Action, ...]] = ("write", "delete")
_ALL: Final[tuple[Action, ...]] = ("read", "write", "delete")
_AT_ENTITY: Final[tuple[ObjectKind, ...]] = ("membership", "administrator", "assignment", "third-party row")
_OF_PERSON: Final[tuple[ObjectKind, ...]] = ("user", "credentials", "session", *_AT_ENTITY)
_RENEWALS: Final[tuple[ObjectKind, ...]] = ("password link", "second factor link")
"""links that ask for the other factor first; a `link` asks for none"""
_LINKS: Final[tuple[ObjectKind, ...]] = ("link", *_RENEWALS)
_HELP: Final = (OWN_ENTITY, RECENT, BELONGS, BELOW, NO_OPERATOR)
_BOUND: Final[tuple[Role, ...]] = ("API client of an entity",)
_TOKEN: Final[tuple[Role, ...]] = ("provisioning token",)

_TABLE: Final[tuple[Rule, ...]] = (
    # The operator's own channels: the machine's account is the proof, and the store keeps the last operator (D53).
    Rule(("command line", "file"), _ALL, KINDS),
    Rule(("command line",), _ALL, ("key", "API client", "provisioning token")),
    Rule(("command line",), ("read", "delete"), ("session",)),
    Rule(("command line",), _READ, ("consent", "access review")),
    Rule(("command line",), _WRITE, (*_LINKS, "deployment", "approval", "invitation")),
    Rule(("command line",), _READ, ("audit", "identity number", "deployment", "approval", "lock", "deletion request")),
    Rule(("command line",), ("delete",), ("lock",)),
    # Operators in the browser (D53, D54)
    Rule(("operator",), _READ, OBJECT_KINDS),
    Rule(("operator",), _CHANGE, ("service", "entity", "user", "credentials", "grant", "client"), (RECENT,)),
    Rule(("operator",), _CHANGE, (*_AT_ENTITY, "operator"), (RECENT, SOMEBODY_ELSE)),
    Rule(("operator",), _CHANGE, ("key", "API client", "provisioning token"), (RECENT,)),
    Rule(("operator",), _WRITE, (*_LINKS, "deployment", "invitation"), (RECENT,)),
    Rule(("operator",), _WRITE, ("approval",), (ANOTHERS_REQUEST, RECENT)),
    Rule(("operator",), ("delete",), ("session", "lock"), (RECENT,)),
    Rule(("support",), _READ, ("service", "entity", "grant", "client", "key", "deployment", "approval")),
    Rule(("support",), _READ, ("access review",)),
    Rule(("support",), _READ, (*_OF_PERSON, "lock", "audit"), (NO_OPERATOR,)),
    Rule(("support",), _WRITE, _LINKS, (RECENT, NO_OPERATOR)),
    Rule(("support",), _WRITE, ("invitation",), (RECENT,)),
    Rule(("support",), ("delete",), ("session", "lock"), (RECENT, NO_OPERATOR)),
    Rule(("auditor",), _READ, OBJECT_KINDS),
    # Administrators of an entity (D53, D54, D56, D61, D69). Nobody is made a member who has not accepted it (D60).
    Rule(("owner", "administrator", "sub_administrator"), _READ, ("service",)),
    Rule(
        ("owner", "administrator", "sub_administrator"), _READ, ("entity", "membership", "administrator"), (OWN_ENTITY,)
    ),
    Rule(("owner", "administrator", "sub_administrator"), _READ, ("user",), (OWN_ENTITY, BELONGS)),
    Rule(("owner", "administrator"), _READ, ("assignment", "audit"), (OWN_ENTITY,)),
    Rule(("owner", "administrator"), _READ, ("grant", "third-party row"), (EITHER_SIDE,)),
    Rule(("owner",), _READ, ("provisioning token",), (OWN_ENTITY,)),
    Rule(("owner",), _CHANGE, ("provisioning token",), (OWN_ENTITY, RECENT)),
    Rule(
        ("owner", "administrator"),
        _CHANGE,
        ("membership",),
        (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH, BELONGS_OR_INVITED, OWNER_STAYS),
    ),
    Rule(
        ("owner", "administrator"),
        _CHANGE,
        ("assignment",),
        (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH),
    ),
    Rule(
        ("owner", "administrator"),
        _WRITE,
        ("third-party row",),
        (OWN_ENTITY, COVERED, RECENT, SOMEBODY_ELSE, WITHIN_REACH),
    ),
    Rule(
        ("owner", "administrator"),
        ("delete",),
        ("third-party row",),
        (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH),
    ),
    Rule(
        ("owner", "administrator"),
        _CHANGE,
        ("administrator",),
        (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH, APPOINTS, OWNER_STAYS),
    ),
    Rule(("owner", "administrator"), _WRITE, ("grant",), (SPEAKING_SIDE, RECENT)),
    Rule(("owner", "administrator"), ("delete",), ("grant",), (EITHER_SIDE, RECENT)),
    Rule(("owner", "administrator"), _WRITE, ("invitation",), (OWN_ENTITY, RECENT)),
    Rule(("owner", "administrator"), _WRITE, _RENEWALS, _HELP),
    Rule(("owner", "administrator"), ("delete",), ("lock",), _HELP),
    Rule(("owner",), _WRITE, ("entity",), (OWN_ENTITY, SETTINGS, RECENT)),
    Rule(("owner", "administrator"), _READ, ("access review",), (OWN_ENTITY,)),
    Rule(("owner", "administrator"), _WRITE, ("access review",), (OWN_ENTITY, RECENT, REVIEWER)),
    Rule(("owner", "administrator"), _READ, ("approval",), (OWN_ENTITY,)),
    Rule(("owner", "administrator"), _WRITE, ("approval",), (OWN_ENTITY, ANOTHERS_REQUEST, RECENT)),
    Rule(("sub_administrator",), _READ, ("approval",), (OWN_ENTITY, LISTED_SERVICE)),
    Rule(("sub_administrator",), _WRITE, ("approval",), (OWN_ENTITY, LISTED_SERVICE, ANOTHERS_REQUEST, RECENT)),
    Rule(("owner", "administrator", "sub_administrator"), _WRITE, ("withdrawal",), (OWN_ENTITY, OWN_REQUEST, RECENT)),
    Rule(("sub_administrator",), _READ, ("assignment",), (OWN_ENTITY, LISTED_SERVICE)),
    Rule(
        ("sub_administrator",),
        _CHANGE,
        ("assignment",),
        (OWN_ENTITY, LISTED_SERVICE, RECENT, SOMEBODY_ELSE, WITHIN_REACH, BELONGS),
    ),
    # People, for themselves
    Rule(("person",), _READ, ("user", *_AT_ENTITY, "session", "consent", "deletion request", "audit"), (OWN,)),
    Rule(("person",), _CHANGE, ("session", "consent", "deletion request"), (OWN,)),
    Rule(("person",), _READ, ("access request",), (OWN,)),
    Rule(("person",), _WRITE, ("access request",), (OWN, BELONGS)),
    Rule(("person",), _WRITE, ("withdrawal",), (OWN_REQUEST,)),
    Rule(("person",), _WRITE, ("credentials",), (OWN,)),
    Rule(("person",), _WRITE, ("user",), (OWN, OWN_CHOICE)),
    Rule(("person",), _CHANGE, ("membership",), (OWN, ANSWERS)),
    Rule(("anonymous",), _WRITE, ("password link",)),
    # Clients of the admin API (D59)
    Rule(("API client",), _READ, ("service", "entity", "user", *_AT_ENTITY, "grant"), (DIRECTORY_READ,)),
    Rule(("API client",), _READ, ("identity number", "deletion request", "consent"), (DIRECTORY_READ,)),
    Rule(("API client",), _CHANGE, ("service",), (DIRECTORY_WRITE, STAYS_STRICT)),
    Rule(("API client",), _CHANGE, ("entity", "grant"), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("assignment", "third-party row"), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("user",), (DIRECTORY_WRITE, NO_OPERATOR, OWNER_STAYS, ADDRESS_STAYS)),
    Rule(("API client",), _CHANGE, ("membership",), (DIRECTORY_WRITE, OWNER_STAYS, NO_OWNER)),
    Rule(("API client",), _WRITE, ("invitation",), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("administrator",), (DIRECTORY_WRITE, NO_OWNER)),
    Rule(("API client",), _READ, ("approval", "access review"), (DIRECTORY_READ,)),
    Rule(("API client",), _WRITE, ("withdrawal",), (DIRECTORY_WRITE, OWN_REQUEST)),
    Rule(("API client",), _READ, ("client",), (CLIENTS_READ,)),
    Rule(("API client",), _CHANGE, ("client",), (CLIENTS_WRITE,)),
    Rule(("API client",), _READ, ("audit",), (AUDIT_READ,)),
    Rule(("API client",), _READ, ("key", "deployment"), (OPERATIONS,)),
    Rule(("API client",), _WRITE, ("key", "deployment"), (OPERATIONS,)),
    Rule(("API client",), ("read", "delete"), ("session", "lock"), (OPERATIONS, NO_OPERATOR)),
    Rule(_BOUND, _READ, ("service",), (DIRECTORY_READ,)),
    Rule(_BOUND, _READ, ("entity", "membership", "administrator", "assignment"), (DIRECTORY_READ, OWN_ENTITY)),
    Rule(_BOUND, _READ, ("user",), (DIRECTORY_READ, OWN_ENTITY, BELONGS)),
    Rule(_BOUND, _READ, ("grant", "third-party row"), (DIRECTORY_READ, EITHER_SIDE)),
    Rule(_BOUND, _CHANGE, ("membership",), (DIRECTORY_WRITE, OWN_ENTITY, BELONGS_OR_INVITED, OWNER_STAYS, NO_OWNER)),
    Rule(_BOUND, _WRITE, ("invitation",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _CHANGE, ("assignment",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _WRITE, ("third-party row",), (DIRECTORY_WRITE, OWN_ENTITY, COVERED)),
    Rule(_BOUND, ("delete",), ("third-party row",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _CHANGE, ("administrator",), (DIRECTORY_WRITE, OWN_ENTITY, NO_OWNER)),
    Rule(_BOUND, _WRITE, ("grant",), (DIRECTORY_WRITE, SPEAKING_SIDE)),
    Rule(_BOUND, ("delete",), ("grant",), (DIRECTORY_WRITE, EITHER_SIDE)),
    Rule(_BOUND, _READ, ("approval", "access review"), (DIRECTORY_READ, OWN_ENTITY)),
    Rule(_BOUND, _WRITE, ("withdrawal",), (DIRECTORY_WRITE, OWN_ENTITY, OWN_REQUEST)),
    Rule(_BOUND, _READ, ("audit",), (AUDIT_READ, OWN_ENTITY)),
    # Provisioning tokens write memberships and plain roles (D60, D61).
    Rule(_TOKEN, _READ, ("service",)),
    Rule(_TOKEN, _READ, ("entity", "membership"), (OWN_ENTITY,)),
    Rule(_TOKEN, _READ, ("user",), (OWN_ENTITY, BELONGS)),
    Rule(_TOKEN, _CHANGE, ("membership",), (OWN_ENTITY, BELONGS_OR_INVITED, OWNER_STAYS, RECIPIENT_STAYS)),
    Rule(_TOKEN, _WRITE, ("invitation",), (OWN_ENTITY,)),
    Rule(_TOKEN, _ALL, ("assignment",), (OWN_ENTITY, WITHOUT_PARAMETERS)),
)

RULES: Final[Mapping[tuple[Role, Action, ObjectKind], tuple[Condition, ...]]] = {
    (role, action, kind): rule.only
    for rule in _TABLE
    for role in rule.roles
    for action in rule.actions
    for kind in rule.kinds
}
"""(role, action, kind) → conditions, which all have to hold; a triple that is not here is refused"""
RULES_WRITTEN: Final = sum(len(rule.roles) * len(rule.actions) * len(rule.kinds) for rule in _TABLE)
"""the number of triples in the table: equal to `RULES` without duplicates"""


def refuse_early(actor: Actor, action: Action, thing: Object) -> None:
    """Raise Forbidden if no fact could allow the action.

    Asked before anything is looked up, so that a refusal says nothing about what there is. Source: D59, D61
    """
    conditions = RULES.get((actor.role, action, thing.kind))
    if conditions is None:
        raise Forbidden(actor, action, thing.kind)
    for condition in conditions:
        if not condition.needs_facts and not condition.holds(actor, thing):
            raise Forbidden(actor, action, thing.kind, condition.reason)


def authorise(actor: Actor, action: Action, thing: Object) -> None:
    """Return if a rule allows it.

    Raises Forbidden with a reason for everything else. Source: SECURITY.md; D53, D54, D59, D60, D61
    """
    conditions = RULES.get((actor.role, action, thing.kind))
    if conditions is None:
        raise Forbidden(actor, action, thing.kind)
    for condition in conditions:
        if not condition.holds(actor, thing):
            raise Forbidden(actor, action, thing.kind, condition.reason)


def find_obstacle(actor: Actor, action: Action, thing: Object, *, unruled: Condition) -> Condition | None:
    """The condition that keeps an actor from an action, for its page.

    None if nothing does, but perhaps a sign-in that is too old; `unruled` if the actor's role has no such right at all.
    Source: D53, D54, D69
    """
    conditions = RULES.get((actor.role, action, thing.kind))
    if conditions is None:
        return unruled
    return next((each for each in conditions if each is not RECENT and not each.holds(actor, thing)), None)
