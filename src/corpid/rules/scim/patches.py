"""PATCH of SCIM: dialects of clients, and members of a group.

A User's operations are applied by scim2-models. Those of a group become members to add and to remove, so that changing
one of twenty thousand does not load them all.
Source: RFC 7644 §3.5.2, D60
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from scim2_models import (
    InvalidPathException,
    InvalidSyntaxException,
    InvalidValueException,
    MutabilityException,
    NoTargetException,
    Path,
)
from scim2_models.path import AttrPath, CompareOperator, Comparison, LogicalExpr, LogicalOperator, ValuePath

from corpid.rules.scim.filters import LONGEST
from corpid.rules.scim.resources import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scim2_models.path import FilterNode

    Json = Any

MOST_OPERATIONS: Final = 50
"""operations of one PATCH of a User: it has seven attributes"""
MOST_OF_GROUP: Final = 2000
"""operations of one PATCH of a Group: some clients send one for each member"""
MOST_VALUES: Final = 50
"""values of an attribute of a User in one operation"""
MOST_MEMBERS: Final = 2000
"""members that one request adds or removes"""
PATCH_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
_ID_CHARACTERS: Final = 100
_VERBS: Final = ("add", "remove", "replace")


class MemberChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a group's members, by their ids.

    With `replaced`, members that are not in `add` are removed.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replaced: bool = False


def operations(body: Json, *, most: int, most_values: int) -> list[dict[str, Json]]:
    """The operations of a PATCH, in the form of the standard.

    `body` is the parsed request. Keys are compared without regard to case, `op` is in lower case, and a key of a value
    with a filter becomes an operation of its own, as one vendor intends it. Raises InvalidSyntaxException,
    InvalidValueException, InvalidPathException. Source: RFC 7644 §3.5.2
    """
    if not isinstance(body, dict):
        raise InvalidSyntaxException(detail="the body must be a JSON object with schemas and Operations")
    listed = _member(body, "operations")
    if not isinstance(listed, list) or not listed:
        raise InvalidSyntaxException(detail="Operations must be an array of one or more operations")
    if len(listed) > most:
        raise InvalidValueException(detail=f"a PATCH can have at most {most:,} operations")
    found = [one for each in listed for one in _spelt_out(_operation(each))]
    if len(found) > most:
        raise InvalidValueException(detail=f"a PATCH can have at most {most:,} operations")
    if any(_values(each.get("value")) > most_values for each in found):
        raise InvalidValueException(detail=f"an operation can write at most {most_values:,} values")
    return found


def _values(value: Json) -> int:
    """The number of values in a value, or in its attribute."""
    if isinstance(value, dict):
        return max((len(each) for each in value.values() if isinstance(each, list)), default=1)
    return len(value) if isinstance(value, list) else 1


def _operation(sent: Json) -> dict[str, Json]:
    if not isinstance(sent, dict):
        raise InvalidSyntaxException(detail="each of Operations must be an object with op, path and value")
    verb, path = _member(sent, "op"), _member(sent, "path")
    if not isinstance(verb, str) or verb.lower() not in _VERBS:
        raise InvalidSyntaxException(detail="op must be add, remove or replace")
    if path is not None and (not isinstance(path, str) or len(path) > LONGEST):
        raise InvalidPathException(detail=f"path must be a text of at most {LONGEST:,} characters")
    operation = {"op": verb.lower()}
    if path:
        operation["path"] = path
    if "value" in {name.lower() for name in sent}:
        operation["value"] = _member(sent, "value")
    return operation


def _spelt_out(operation: dict[str, Json]) -> Iterable[dict[str, Json]]:
    value = operation.get("value")
    if "path" in operation or operation["op"] == "remove" or not isinstance(value, dict):
        return [operation]
    filtered = {name: each for name, each in value.items() if "[" in name}
    if any(len(name) > LONGEST for name in value):
        raise InvalidPathException(detail=f"an attribute's path can have at most {LONGEST:,} characters")
    plain = {name: each for name, each in value.items() if name not in filtered}
    rest = [{"op": operation["op"], "path": name, "value": each} for name, each in filtered.items()]
    return [{**operation, "value": plain}, *rest] if plain or not rest else rest


def member_changes(group_id: str, name: str, patch: Sequence[Mapping[str, Json]]) -> MemberChanges:
    """The change of a group's members by operations in order.

    `group_id` and `name` are the group's own, which a client may repeat. Raises MutabilityException for another one,
    InvalidPathException, InvalidValueException, NoTargetException. Source: RFC 7644 §3.5.2, D60
    """
    changes = _Changes()
    for operation in patch:
        verb, path, value = operation["op"], operation.get("path", ""), operation.get("value")
        attribute, selected = _target(path) if path else ("members", None)
        if not path:
            if verb == "remove":
                raise NoTargetException(detail="a remove operation needs a path")
            value = _members_of_whole(group_id, name, value)
            if value is None:
                continue
        if attribute != "members":
            _refuse_other(attribute, group_id, name, verb, value)
        elif verb == "replace" and selected is not None:
            raise MutabilityException(detail="a member of a group cannot be changed: remove it, and add another one")
        elif verb == "remove" and value is None and selected is None:
            changes.replace({})
        else:
            changes.apply(verb, member_ids(value) if selected is None else selected)
    return changes.found()


class _Changes:
    """The change of members by the operations up to now."""

    def __init__(self) -> None:
        self._add: dict[str, None] = {}
        self._remove: dict[str, None] = {}
        self._replaced = False

    def replace(self, ids: Mapping[str, None]) -> None:
        self._add, self._remove, self._replaced = dict(ids), {}, True

    def apply(self, verb: str, ids: Mapping[str, None]) -> None:
        if verb == "replace":
            self.replace(ids)
            return
        into, out_of = (self._add, self._remove) if verb == "add" else (self._remove, self._add)
        for each in ids:
            out_of.pop(each, None)
            into[each] = None

    def found(self) -> MemberChanges:
        remove = () if self._replaced else tuple(self._remove)
        if len(self._add) + len(remove) > MOST_MEMBERS:
            raise InvalidValueException(
                detail=f"one request can add or remove at most {MOST_MEMBERS:,} members: send several"
            )
        return MemberChanges(add=tuple(self._add), remove=remove, replaced=self._replaced)


def member_ids(value: Json) -> dict[str, None]:
    """The ids of members as a client writes them.

    Raises InvalidValueException. Source: RFC 7643 §4.2
    """
    listed = value if isinstance(value, list) else [value]
    found: dict[str, None] = {}
    for each in listed:
        name = _member(each, "value") if isinstance(each, dict) else each
        if not isinstance(name, str) or not 0 < len(name) <= _ID_CHARACTERS or not name.isprintable():
            raise InvalidValueException(detail='members are objects with the id of a user, such as {"value": "…"}')
        found[name] = None
    return found


def _members_of_whole(group_id: str, name: str, value: Json) -> Json:
    """The members in a value without path; None if it has none."""
    if not isinstance(value, dict):
        raise InvalidValueException(detail="an operation without path needs an object as its value")
    members = None
    for each, sent in value.items():
        attribute = each.lower().removeprefix(f"{str(Group.__schema__).lower()}:")
        if attribute == "members":
            members = sent if sent is not None else []
        else:
            _refuse_other(attribute, group_id, name, "replace", sent)
    return members


def _refuse_other(attribute: str, group_id: str, name: str, verb: str, value: Json) -> None:
    """Refuse a change of the group itself.

    A group's own id and name may be repeated; attributes that CorpID does not store are dropped.
    """
    own = {"id": group_id, "displayname": name}
    if attribute in own and (verb == "remove" or value != own[attribute]):
        raise MutabilityException(
            detail=f"a group is a role at a service: only its members can be changed, not its {attribute}"
        )


def _target(path: str) -> tuple[str, dict[str, None] | None]:
    """The attribute of a path, in lower case, and selected members."""
    node = Path[Group](path).ast
    match node:
        case AttrPath(attr=attribute, sub_attr=None):
            return attribute.lower(), None
        case ValuePath(attr_path=AttrPath(attr=attribute), val_filter=inner, sub_attr=None) if (
            attribute.lower() == "members"
        ):
            return "members", dict.fromkeys(_selected(inner))
        case AttrPath(attr=attribute) | ValuePath(attr_path=AttrPath(attr=attribute)) if attribute.lower() != "members":
            return attribute.lower(), None
        case _:
            raise InvalidPathException(
                path=path[:80], detail='the path of a group\'s members is members or members[value eq "…"]'
            )


def _selected(inner: FilterNode) -> Iterable[str]:
    terms = inner.terms if isinstance(inner, LogicalExpr) and inner.op is LogicalOperator.or_ else (inner,)
    for term in terms:
        match term:
            case Comparison(attr_path=AttrPath(attr=name, sub_attr=None), op=CompareOperator.eq, value=str(value)) if (
                name.lower() == "value"
            ):
                yield value
            case _:
                raise InvalidPathException(detail='members are selected by members[value eq "…"]')


def _member(sent: Mapping[str, Json], name: str) -> Json:
    """The member of an object whose name is this, whatever its case."""
    return next((value for each, value in sent.items() if each.lower() == name), None)
