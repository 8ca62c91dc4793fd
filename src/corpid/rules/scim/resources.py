"""The resources of SCIM: attributes, supported features, and their documents.

A User is a membership, a Group is a role at a service that needs no parameters. Each has the attributes that CorpID
stores, and no others: what a client sends in addition is dropped.
Source: RFC 7643 §3.1, §4.1, §4.2, §5, D60, D61
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Final

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
    InvalidValueException,
    Meta,
    Mutability,
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

from corpid.rules.directory import member_details
from corpid.rules.directory.records import ENTERPRISE_USER, GroupRole, MemberDetails, Membership
from corpid.rules.directory.records import User as Person
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
    ref: Annotated[Reference["Group"] | None, Mutability.read_only] = Field(
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


_PLAIN: Final = {
    field.name: field.scim.rpartition(":")[::2]
    for field in fields_of(MemberDetails).values()
    if field.scim and field.in_documents
}
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
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class Group(Resource[Any]):
    """A role at a service (RFC 7643 §4.2, D60)."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    external_id: Annotated[str | None, Mutability.read_only, Returned.request, CaseExact.true] = None
    display_name: Annotated[str | None, Mutability.read_only] = None
    members: list[GroupMember] | None = None


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
    email = member_details.member_email(membership, person)
    shown = USER(
        schemas=[User.__schema__],
        id=membership.membership_id,
        external_id=membership.external_id or None,
        user_name=member_details.member_user_name(membership, person) or membership.membership_id,
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
