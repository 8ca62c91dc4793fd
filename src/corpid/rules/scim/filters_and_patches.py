"""Filters, sorting and PATCH of SCIM, as CorpID carries them out.

Filters become conditions that an index answers. Anything else is refused by a sentence that names the supported ones: a
filter that is quietly ignored would show everybody. A User's operations are applied by scim2-models. Those of a group
become members to add and to remove, so that changing one of twenty thousand does not load them all.
Source: RFC 7644 §3.4.2.2, §3.4.2.3, §3.5.2, D60
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from scim2_models import (
    InvalidFilterException,
    InvalidPathException,
    InvalidSyntaxException,
    InvalidValueException,
    MutabilityException,
    NoTargetException,
    Path,
)
from scim2_models.path import AttrPath, CompareOperator, Comparison, LogicalExpr, LogicalOperator, ValuePath

from corpid.rules.characters import printable
from corpid.rules.directory.names import without_marks
from corpid.rules.directory.values import as_stored
from corpid.rules.scim.resources import WORK, Group, User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scim2_models.path import FilterNode

LONGEST: Final = 1000
"""characters of a filter or a path"""
MOST_CONDITIONS: Final = 10

Operator: TypeAlias = Literal["eq", "co", "sw"]
Attribute: TypeAlias = Literal["membership_id", "user_name", "external_id", "email", "active", "name", "member"]

_TEXT: Final[tuple[Operator, ...]] = ("eq", "co", "sw")
_EXACT: Final[tuple[Operator, ...]] = ("eq",)


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


class FilterCondition(msgspec.Struct, frozen=True):
    """One comparison of a filter; all of them have to hold."""

    attribute: Attribute
    operator: Operator
    value: str | bool


class MemberChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a group's members, by their ids.

    With `replaced`, members that are not in `add` are removed.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    replaced: bool = False


class _FilterAttribute(msgspec.Struct, frozen=True):
    attribute: Attribute
    operators: tuple[Operator, ...] = _TEXT
    boolean: bool = False


class _ResourceFilters(msgspec.Struct, frozen=True, kw_only=True):
    """The filters and the sorting of one resource type."""

    schema: str
    filters: Mapping[str, _FilterAttribute]
    """by attribute in lower case"""
    filters_in_words: str
    sorts: Mapping[str, Attribute]


_KINDS: Final[Mapping[str, _ResourceFilters]] = {
    "User": _ResourceFilters(
        schema=str(User.__schema__).lower(),
        filters={
            "username": _FilterAttribute("user_name"),
            "externalid": _FilterAttribute("external_id"),
            "emails": _FilterAttribute("email"),
            "emails.value": _FilterAttribute("email"),
            "active": _FilterAttribute("active", _EXACT, boolean=True),
            "id": _FilterAttribute("membership_id", _EXACT),
        },
        filters_in_words='userName, externalId, emails, emails.value and emails[type eq "work"].value with eq, co and sw, '
        "and by active and id with eq; conditions are joined by and",
        sorts={"id": "membership_id", "userName": "user_name"},
    ),
    "Group": _ResourceFilters(
        schema=str(Group.__schema__).lower(),
        filters={
            "displayname": _FilterAttribute("name"),
            "id": _FilterAttribute("membership_id", _EXACT),
            "members": _FilterAttribute("member", _EXACT),
            "members.value": _FilterAttribute("member", _EXACT),
        },
        filters_in_words="displayName with eq, co and sw, and by id, members and members.value with eq; conditions are "
        "joined by and",
        sorts={"id": "membership_id", "displayName": "name"},
    ),
}


def conditions(kind: str, node: FilterNode) -> tuple[FilterCondition, ...]:
    """The conditions of a filter of Users or Groups.

    `kind` is the name of the resource type. Raises InvalidFilterException. Source: RFC 7644 §3.4.2.2, D60
    """
    found = tuple(_conditions(kind, node))
    if len(found) > MOST_CONDITIONS:
        raise InvalidFilterException(detail=f"a filter can have at most {MOST_CONDITIONS} conditions")
    return found


def sorting(kind: str, path: str) -> Attribute:
    """The attribute to sort by, the id if none is named.

    Raises InvalidPathException. Source: RFC 7644 §3.4.2.3
    """
    sorts = _KINDS[kind].sorts
    name = path.lower().removeprefix(f"{_KINDS[kind].schema}:")
    if not name:
        return "membership_id"
    for spelled, attribute in sorts.items():
        if spelled.lower() == name:
            return attribute
    raise InvalidPathException(path=path[:80], detail=f"{kind}s can be sorted by {' or '.join(sorts)}")


def refuse_long(text: str) -> None:
    """Refuse a filter that is too long, before it is parsed.

    Raises InvalidFilterException. Source: D47
    """
    if len(text) > LONGEST:
        raise InvalidFilterException(detail=f"a filter can have at most {LONGEST:,} characters")


def _conditions(kind: str, node: FilterNode) -> Iterator[FilterCondition]:
    match node:
        case LogicalExpr(op=LogicalOperator.and_, terms=terms):
            for term in terms:
                yield from _conditions(kind, term)
        case Comparison(attr_path=path, op=operator, value=value):
            yield _condition(kind, _name(kind, path), operator, value)
        case ValuePath(attr_path=AttrPath(attr=attribute), val_filter=inner):
            yield from _selected(kind, attribute, inner)
        case _:
            raise _refused(kind)


def _selected(kind: str, attribute: str, inner: FilterNode) -> Iterator[FilterCondition]:
    """The conditions inside brackets: type and value of an address."""
    terms = inner.terms if isinstance(inner, LogicalExpr) and inner.op is LogicalOperator.and_ else (inner,)
    found = False
    for term in terms:
        if not isinstance(term, Comparison):
            raise _refused(kind)
        name = str(term.attr_path).lower()
        if name == "value":
            found = True
            yield _condition(kind, f"{attribute.lower()}.value", term.op, term.value)
        elif not _is_of_every_address(attribute, term):
            raise _refused(kind)
    if not found:
        raise _refused(kind)


def _is_of_every_address(attribute: str, term: Comparison) -> bool:
    """Return whether every address meets a condition.

    A membership has one, which is the primary one, for work.
    """
    wanted = {"type": WORK, "primary": True}.get(str(term.attr_path).lower())
    value = term.value.lower() if isinstance(term.value, str) else term.value
    return attribute.lower() == "emails" and term.op is CompareOperator.eq and wanted is not None and value == wanted


def _name(kind: str, path: AttrPath) -> str:
    if path.uri is not None and path.uri.lower() != _KINDS[kind].schema:
        raise _refused(kind)
    return f"{path.attr}.{path.sub_attr}".lower() if path.sub_attr else path.attr.lower()


def _condition(kind: str, name: str, operator: CompareOperator, value: object) -> FilterCondition:
    known = _KINDS[kind].filters.get(name)
    if known is None:
        raise _refused(kind)
    for allowed in known.operators:
        if operator.value == allowed:
            text = _boolean(value) if known.boolean else _text(value)
            if known.attribute == "email" and allowed == "eq" and isinstance(text, str):
                text = as_stored(text)
            return FilterCondition(known.attribute, allowed, text)
    raise _refused(kind)


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "false": False}
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    raise InvalidFilterException(detail="active is compared with true or false")


def _text(value: object) -> str:
    text = without_marks(value) if isinstance(value, str) else ""
    if not text or printable(text) != text:
        raise InvalidFilterException(detail='an attribute is compared with a text, as in userName eq "rina"')
    return text


def _refused(kind: str) -> InvalidFilterException:
    return InvalidFilterException(detail=f"{kind}s can be filtered by {_KINDS[kind].filters_in_words}")


def holds(condition: FilterCondition, value: str) -> bool:
    """Return whether a text meets a condition, whatever its case.

    Source: RFC 7643 §2.2
    """
    wanted, found = str(condition.value).lower(), value.lower()
    match condition.operator:
        case "eq":
            return found == wanted
        case "sw":
            return found.startswith(wanted)
        case _:
            return wanted in found


def holds_of(user: User, condition: FilterCondition) -> bool:
    """Return whether a user meets a condition.

    Source: RFC 7644 §3.4.2.2
    """
    if condition.attribute == "active":
        return user.active is condition.value
    if condition.attribute == "external_id":
        text = user.external_id or ""
        return holds(condition, text) and str(condition.value) in text
    texts = {
        "membership_id": user.id,
        "user_name": user.user_name,
        "email": next((email.value for email in user.emails or ()), ""),
    }
    return holds(condition, texts.get(condition.attribute) or "")


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scim2_models.path import FilterNode

    Json = Any


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
            return "members", dict.fromkeys(_select_members(inner))
        case AttrPath(attr=attribute) | ValuePath(attr_path=AttrPath(attr=attribute)) if attribute.lower() != "members":
            return attribute.lower(), None
        case _:
            raise InvalidPathException(
                path=path[:80], detail='the path of a group\'s members is members or members[value eq "…"]'
            )


def _select_members(inner: FilterNode) -> Iterable[str]:
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
