"""SCIM's service: how requests are read and answered here.

scim2-server does the rest; input that it would load or parse without a limit is bounded first.
Source: RFC 7644 §3, D47, D60
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError
from scim2_models import (
    Context,
    ForbiddenException,
    InvalidSyntaxException,
    InvalidValueException,
    ListResponse,
    PatchOp,
    ScimFilter,
)
from scim2_server.responses import ScimResponse
from scim2_server.service import ScimService, scim_exception_of

from corpid.rules.directory.nodes import DirectoryError, json_value
from corpid.rules.scim import filters_and_patches
from corpid.rules.scim.resources import PROVIDER, Group, User

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scim2_models import BaseModel, Resource, ResourceType, ResponseParameters, SearchRequest
    from scim2_server.requests import ScimRequest
    from scim2_server.routing import Target
    from scim2_server.storage import SearchPage

M = TypeVar("M", bound="BaseModel")


class GroupPatch:
    """The operations of a PATCH of a group, not yet applied."""

    def __init__(self, operations: list[dict[str, Any]]) -> None:
        self.operations: Final = operations


class Service(ScimService):
    """The protocol with our limits and our filters."""

    def authorize(self, request: ScimRequest, target: Target, resource_type: ResourceType) -> None:  # noqa: ARG002
        """Refuse creating or removing a group (D60)."""
        if resource_type.name == "Group" and target.operation.value in {"create", "delete"}:
            raise ForbiddenException(
                detail="A group is a role at a service, which CorpID's operator defines: you can change only its members"
            )

    def decode_body(self, body: bytes, content_type: str | None) -> Any:  # noqa: ANN401
        """The JSON of a body.

        The admin API reads JSON as strictly. Raises InvalidSyntaxException, UnsupportedMediaTypeException. Source:
        RFC 7493 §2
        """
        self.ensure_json(content_type)
        try:
            return json_value(body)
        except DirectoryError as error:
            raise InvalidSyntaxException(detail=f"The body cannot be read: {error.problems[0].reason}") from None

    def read_body(self, model: type[M], body: bytes, content_type: str | None, scim_ctx: Context) -> M:
        """A body as a resource.

        A user without `active`, or with null for it, keeps its value. The schema requires that attribute, so that no
        PATCH removes it, but a client need not send it. Raises SCIMException. Source: RFC 7643 §2.2, §2.5
        """
        content = self.decode_body(body, content_type)
        if model is User and isinstance(content, dict):
            content = {name: value for name, value in content.items() if name.lower() != "active" or value is not None}
        silent = model is User and isinstance(content, dict) and "active" not in {name.lower() for name in content}
        try:
            read = model.model_validate({**content, "active": True} if silent else content, scim_ctx=scim_ctx)
        except ValidationError as error:
            raise scim_exception_of(error) from None
        return read.model_copy(update={"active": None}) if silent else read

    def publish(self, base_url: str, resource: Resource[Any]) -> Resource[Any]:  # noqa: ARG002
        """A resource as it is sent, which has its location."""
        return resource

    def search_response(
        self,
        base_url: str,
        resource_types: list[ResourceType],  # noqa: ARG002
        page: SearchPage,
        search_request: SearchRequest[Any],
    ) -> ScimResponse:
        """A page of resources (RFC 7644 §3.4.2).

        They are our own and are not validated again.
        """
        found = [
            self.publish(base_url, each).model_dump(
                scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=search_request
            )
            for each in page.resources
        ]
        body = {
            "schemas": [str(ListResponse.__schema__)],
            "totalResults": page.total,
            "startIndex": search_request.start_index,
            "itemsPerPage": len(found),
            "Resources": found,
        }
        return ScimResponse(HTTPStatus.OK, body)

    def read_response_parameters(
        self, resource_type: ResourceType, query: Mapping[str, str]
    ) -> ResponseParameters[Any]:
        """The attributes that an answer has.

        Raises InvalidValueException if the list is too long. Source: RFC 7644 §3.9, D47
        """
        _refuse_long(query)
        return super().read_response_parameters(resource_type, query)

    def read_search(self, resource_types: list[ResourceType], payload: Any) -> tuple[SearchRequest[Any], Any]:  # noqa: ANN401
        """A search that an index answers (RFC 7644 §3.4.2)."""
        if isinstance(payload, dict) and len(resource_types) == 1:
            kind = str(resource_types[0].name)
            _refuse_long(payload)
            text, sort = payload.get("filter"), payload.get("sortBy")
            if isinstance(text, str):
                filters_and_patches.refuse_long(text)
                filters_and_patches.conditions(kind, ScimFilter(text).ast)
            if isinstance(sort, str):
                filters_and_patches.sorting(kind, sort)
        return super().read_search(resource_types, payload)

    def read_patch(self, resource_type: ResourceType, body: bytes, content_type: str | None) -> Any:  # noqa: ANN401
        """The operations of a PATCH, in the form of the standard (RFC 7644 §3.5.2)."""
        is_group = resource_type.name == "Group"
        operations = filters_and_patches.operations(
            self.decode_body(body, content_type),
            most=filters_and_patches.MOST_OF_GROUP if is_group else filters_and_patches.MOST_OPERATIONS,
            most_values=filters_and_patches.MOST_MEMBERS if is_group else filters_and_patches.MOST_VALUES,
        )
        if is_group:
            return GroupPatch(operations)
        model: Any = PatchOp.__class_getitem__(self.get_model(resource_type))
        content: Any = {"schemas": [filters_and_patches.PATCH_SCHEMA], "Operations": operations}
        try:
            return model.model_validate(content, scim_ctx=Context.RESOURCE_PATCH_REQUEST)
        except ValidationError as error:
            raise scim_exception_of(error) from None

    def patch_response(
        self, base_url: str, resource: Resource[Any], response_parameters: ResponseParameters[Any]
    ) -> ScimResponse:
        """The changed user; nothing for a group with its many members."""
        if isinstance(resource, Group):
            return super().patch_response(base_url, resource, response_parameters)
        return self.replacement_response(base_url, resource, response_parameters)


def _refuse_long(parameters: Mapping[str, Any]) -> None:
    for name in ("attributes", "excludedAttributes"):
        sent = parameters.get(name, "")
        listed = sent if isinstance(sent, list) else [sent]
        length = sum(len(each) + 1 for each in listed if isinstance(each, str))
        if length > filters_and_patches.LONGEST:
            raise InvalidValueException(detail=f"{name} can have at most {filters_and_patches.LONGEST:,} characters")


SERVICE: Final = Service(PROVIDER)
"""shared by every provider of this process: it has no state of a request"""
