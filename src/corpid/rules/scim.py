"""The resources of SCIM: their documents, filters, sorting and PATCH.

A User is a membership, a Group is a role at a service that needs no parameters. Each has the attributes that CorpID
stores, and no others: what a client sends in addition is dropped.

Filters become conditions that an index answers. Anything else is refused by a sentence that names the supported ones: a
filter that is quietly ignored would show everybody. A User's operations are applied by scim2-models. Those of a group
become members to add and to remove, so that changing one of twenty thousand does not load them all.
Source: RFC 7643 §3.1, §4.1, §4.2, §5, RFC 7644 §3.4.2.2, §3.4.2.3, §3.5.2, D60, D61
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from pydantic import Field, create_model
from scim2_models import (
    URI,
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Extension,
    External,
    Filter,
    InvalidFilterException,
    InvalidPathException,
    InvalidSyntaxException,
    InvalidValueException,
    Meta,
    Mutability,
    MutabilityException,
    NoTargetException,
    Pagination,
    Patch,
    Path,
    Reference,
    Required,
    Resource,
    ResourceType,
    ResponseParameters,
    Returned,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)
from scim2_models.path import AttrPath, CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator, ValuePath

from corpid.rules.characters import printable
from corpid.rules.directory.memberships import PLAIN_DETAILS, member_email, member_user_name
from corpid.rules.directory.names import without_marks
from corpid.rules.directory.records import ENTERPRISE_USER, GroupRole, MemberDetails, Membership
from corpid.rules.directory.records import User as Person
from corpid.rules.directory.values import as_stored
from corpid.rules.fields import fields_of

PAGE: Final = 100
"""resources of a page if a client names no number"""
LONGEST_PAGE: Final = 200
"""resources of a page at most"""
WORK: Final = "work"
"""the type of the one e-mail address that a membership has"""


_ID_CHARACTERS: Final = 32


class Name(ComplexAttribute):
    """The person's name, as the client writes it."""

    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None


class Email(ComplexAttribute):
    """The address to which the invitation goes."""

    value: str | None = None
    type: Annotated[str | None, CaseExact.false] = Field(None, examples=[WORK])
    primary: bool | None = None


class GroupOfUser(ComplexAttribute):
    """A group to which a user belongs."""

    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    ref: Annotated[Reference[Group] | None, Mutability.read_only] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    display: Annotated[str | None, Mutability.read_only] = None


class User(Resource[Any]):
    """A membership of the entity (RFC 7643 §4.1, D60)."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    active: Annotated[bool | None, Required.true] = None
    emails: list[Email] | None = None
    groups: Annotated[list[GroupOfUser] | None, Mutability.read_only, Returned.request] = None


_PLAIN: Final = {field.name: field.scim.rpartition(":")[::2] for field in PLAIN_DETAILS.values()}
"""detail that is a text and nothing else → schema, empty for that of the User, and attribute of SCIM"""


def _attribute(name: str) -> str:
    """The name of an attribute in its class."""
    return re.sub("(?=[A-Z])", "_", name).lower()


def _declare_attributes(schema: str) -> dict[str, Any]:
    return {
        _attribute(name): (str | None, Field(None, description=fields_of(MemberDetails)[detail].help))
        for detail, (of, name) in _PLAIN.items()
        if of == schema
    }


class EnterpriseUser(Extension):
    """A member's place in the organisation (RFC 7643 §4.3)."""

    __schema__ = URN(ENTERPRISE_USER)


ENTERPRISE: Final = create_model(
    "EnterpriseUser", __base__=EnterpriseUser, __doc__=EnterpriseUser.__doc__, **_declare_attributes(ENTERPRISE_USER)
)
_CORE: Final = create_model("User", __base__=User, __doc__=User.__doc__, **_declare_attributes(""))
USER: Final[type[User]] = _CORE[ENTERPRISE]  # type: ignore[index]
"""a User with the attributes that follow from the declaration of a member"""


class GroupMember(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference[User] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class Group(Resource[Any]):
    """A role at a service (RFC 7643 §4.2, D60)."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    external_id: Annotated[str | None, Mutability.read_only, Returned.request, CaseExact.true] = None
    display_name: Annotated[str | None, Mutability.read_only] = None
    members: list[GroupMember] | None = None


for _naming in (GroupOfUser, USER):  # they name Group: until then neither filters nor /Schemas know their attributes
    _naming.model_rebuild()

POLICY: Final = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
"""large vendors send unsupported attributes, name in a value what is to be removed, and write to an address that does
not exist yet"""

PROVIDER: Final = ScimProvider(
    models=[_CORE, ENTERPRISE, Group],
    resource_types=[ResourceType.from_resource(USER), ResourceType.from_resource(Group)],
    config=ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=LONGEST_PAGE),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        pagination=Pagination(
            cursor=False,
            index=True,
            default_page_size=PAGE,
            max_page_size=LONGEST_PAGE,
            default_pagination_method=Pagination.DefaultPaginationMethod.index,
        ),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Provisioning token",
                description="A bearer token of one entity, created by its owners or by operators, valid for at most a year",
                spec_uri=Reference[External]("https://www.rfc-editor.org/rfc/rfc6750"),
                primary=True,
            )
        ],
    ),
    policy=POLICY,
)
"""the content of the three discovery endpoints (RFC 7644 §4)"""


class WrittenMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member as a client writes it; missing details are empty."""

    details: MemberDetails
    active: bool | None = None
    """None: as it is"""


def group_id(role: GroupRole) -> str:
    """The id of a role as a group, in every entity.

    Source: RFC 7643 §3.1
    """
    digest = sha256(f"{len(role.service_id)}:{role.service_id}{role.role}".encode()).hexdigest()[:_ID_CHARACTERS]
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def group_name(role: GroupRole) -> str:
    """The name by which a client finds a group. Source: RFC 7643 §4.2"""
    return f"{role.service_id}: {role.role}"


def user(
    membership: Membership, person: Person, groups: Iterable[GroupRole] | None, *, version: str, root: str
) -> User:
    """A membership as a User.

    Members that the entity has not written are the person's own once they belong to it; before, there is nothing of
    the person. `groups` is None if they are not asked for; `root` is the URL of SCIM. Source: RFC 7643 §4.1, D60, D61
    """
    belongs = not membership.invited
    own = membership.name or membership.given_name or membership.family_name
    name = membership.name or (person.name if belongs and not own else "")
    email = member_email(membership, person)
    shown = USER(
        schemas=[User.__schema__],
        id=membership.membership_id,
        external_id=membership.external_id or None,
        user_name=member_user_name(membership, person) or membership.membership_id,
        name=_name(name, membership),
        display_name=name or None,
        active=membership.enabled,
        emails=[Email(value=email, type=WORK, primary=True)] if email else None,
        groups=_groups(groups, root),
        meta=Meta(
            resource_type="User",
            created=_moment(membership.created_at),
            last_modified=_moment(membership.changed_at or membership.created_at),
            version=version,
            location=Reference[URI](f"{root}/Users/{membership.membership_id}"),
        ),
    )
    for detail, (schema, name_) in _PLAIN.items():
        _write_text(shown, schema, _attribute(name_), getattr(membership, detail))
    return shown


def _write_text(shown: User, schema: str, name: str, text: str) -> None:
    if not text:
        return
    if schema and shown[ENTERPRISE] is None:
        shown[ENTERPRISE] = ENTERPRISE()
        shown.schemas.append(URN(schema))
    setattr(shown[ENTERPRISE] if schema else shown, name, text)


def _read_text(sent: User, schema: str, name: str) -> str:
    return getattr(sent[ENTERPRISE] if schema else sent, name, None) or ""


def group(role: GroupRole, *, root: str) -> Group:
    """A role at a service as a Group, without its members.

    Source: RFC 7643 §4.2, D60
    """
    return Group(
        schemas=[Group.__schema__],
        id=group_id(role),
        display_name=group_name(role),
        meta=Meta(resource_type="Group", location=Reference[URI](f"{root}/Groups/{group_id(role)}")),
    )


def member(membership_id: str, root: str, parameters: ResponseParameters[Any]) -> dict[str, str]:
    """A member of a group as it is shown.

    Source: RFC 7643 §4.2, RFC 7644 §3.9
    """
    shown = {"value": membership_id, "$ref": f"{root}/Users/{membership_id}", "type": "User"}
    asked = {_below(path) for path in parameters.attributes or () if _top(path) == "members"} - {""}
    left_out = {_below(path) for path in parameters.excluded_attributes or () if _top(path) == "members"} - {""}
    return {
        name: text
        for name, text in shown.items()
        if (not asked or name.lower() in asked) and name.lower() not in left_out
    }


def read_details(sent: User, was: User | None = None, membership: Membership | None = None) -> WrittenMember:
    """The details in a User that a client sends.

    It replaces `was`, which shows `membership`. The one name of a membership is displayName or name.formatted,
    whichever changes. A value that is sent as it was shown stays as the membership has it, so that a person's own name
    does not become the entity's. Raises InvalidValueException. Source: RFC 7643 §4.1, D60, D61
    """
    if not sent.user_name:
        raise InvalidValueException(detail="userName is required")
    name = sent.name or Name()
    details = MemberDetails(
        user_name=sent.user_name,
        external_id=sent.external_id or "",
        name=_one_name(sent, was) or "",
        given_name=name.given_name or "",
        family_name=name.family_name or "",
        email=_one_address(sent),
        **{detail: _read_text(sent, schema, _attribute(each)) for detail, (schema, each) in _PLAIN.items()},
    )
    if was is None or membership is None:
        return WrittenMember(details=details, active=sent.active)
    shown = {"user_name": was.user_name, "name": was.display_name, "email": _one_address(was)}
    unchanged = {
        member: getattr(membership, member)
        for member, text in shown.items()
        if getattr(details, member) == (text or "")
    }
    return WrittenMember(details=msgspec.structs.replace(details, **unchanged), active=sent.active)


def wants(attribute: str, parameters: ResponseParameters[Any] | None) -> bool:
    """Return whether an answer has an attribute that is returned by default.

    Source: RFC 7644 §3.9
    """
    if parameters is None:
        return True
    asked = [_top(path) for path in parameters.attributes or ()]
    left_out = [str(path).lower() for path in parameters.excluded_attributes or ()]
    named = any(each == attribute.lower() for each in asked) if asked else True
    return named and not any(each.rpartition(":")[2] == attribute.lower() for each in left_out)


def asks(attribute: str, parameters: ResponseParameters[Any] | None) -> bool:
    """Return whether a request names an attribute that is returned on request.

    Source: RFC 7644 §3.9
    """
    return parameters is not None and any(_top(path) == attribute.lower() for path in parameters.attributes or ())


def _top(path: Path[Any] | str) -> str:
    return str(path).lower().rpartition(":")[2].partition(".")[0]


def _below(path: Path[Any] | str) -> str:
    return str(path).lower().rpartition(":")[2].partition(".")[2]


def _name(formatted: str, membership: Membership) -> Name | None:
    if not (formatted or membership.given_name or membership.family_name):
        return None
    return Name(
        formatted=formatted or None,
        given_name=membership.given_name or None,
        family_name=membership.family_name or None,
    )


def _one_name(sent: User, was: User | None) -> str | None:
    formatted = sent.name.formatted if sent.name is not None else None
    if was is None:
        return sent.display_name or formatted
    before = was.name.formatted if was.name is not None else None
    return formatted if sent.display_name == was.display_name and formatted != before else sent.display_name


def _one_address(sent: User) -> str:
    addresses = [email for email in sent.emails or () if email.value]
    ranked = sorted(addresses, key=lambda email: (not email.primary, (email.type or "").lower() != WORK))
    return ranked[0].value or "" if ranked else ""


def _groups(groups: Iterable[GroupRole] | None, root: str) -> list[GroupOfUser] | None:
    shown = [
        GroupOfUser(
            value=group_id(each), ref=Reference[Group](f"{root}/Groups/{group_id(each)}"), display=group_name(each)
        )
        for each in groups or ()
    ]
    return shown or None


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


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
_LONGEST_ID: Final = 100
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
            yield _condition(kind, _attribute_name(kind, path), operator, value)
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


def _attribute_name(kind: str, path: AttrPath) -> str:
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
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ID or not name.isprintable():
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
