"""The resources of SCIM: attributes, and supported features.

A User is a membership, a Group is a role at a service that needs no parameters. Each has the attributes that CorpID
stores, and no others: what a client sends in addition is dropped.
Source: RFC 7643 §4.1, §4.2, §5, D60, D61
"""

from typing import Annotated, Any, Final

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    External,
    Filter,
    Mutability,
    Pagination,
    Patch,
    Reference,
    Required,
    Resource,
    ResourceType,
    Returned,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

PAGE: Final = 100
"""resources of a page if a client names no number"""
LONGEST_PAGE: Final = 200
"""resources of a page at most"""
WORK: Final = "work"
"""the type of the one e-mail address that a membership has"""


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


class GroupMember(ComplexAttribute):
    """A user in a group."""

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
    models=[User, Group],
    resource_types=[ResourceType.from_resource(User), ResourceType.from_resource(Group)],
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
