"""Filters and sorting of SCIM, as conditions that an index answers.

Anything else is refused by a sentence that names the supported ones: a filter that is quietly ignored would show
everybody. Source: RFC 7644 §3.4.2.2, §3.4.2.3, D60
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from scim2_models import InvalidFilterException, InvalidPathException
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


class FilterCondition(msgspec.Struct, frozen=True):
    """One comparison of a filter; all of them have to hold."""

    attribute: Attribute
    operator: Operator
    value: str | bool


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
