"""SCIM's operations: groups change by member; lost races are retried.

Source: RFC 7644 §3.4, §3.5, D60
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from scim2_models import TooManyException
from scim2_server.handler import AsyncScimHandler
from scim2_server.routing import Operation

from corpid.rules.directory.changes import ChangedMeanwhile
from corpid.rules.scim import filters_and_patches, resources
from corpid.rules.scim.resources import Group
from corpid.web.scim.service import GroupPatch

if TYPE_CHECKING:
    from scim2_models import PatchOp, Resource, ResourceType, ResponseParameters
    from scim2_server.conditions import Conditions
    from scim2_server.requests import ScimRequest
    from scim2_server.responses import ScimResponse

    from corpid.web.scim.service import Service
    from corpid.web.scim.storage import Storage

_ATTEMPTS: Final = 3
MOST_SHOWN: Final = 20_000
"""members of groups in one answer"""


class Handler(AsyncScimHandler):
    """The operations of one request."""

    def __init__(self, service: Service, storage: Storage) -> None:
        super().__init__(service, storage)
        self._storage: Final = storage

    async def handle(self, request: ScimRequest) -> ScimResponse:
        """Answer a request.

        If another change came first, the request is run again on the changed record; a version that it names must be
        the new one. Raises SCIMException, and what the flows raise.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(ChangedMeanwhile):
                return await self._handled(request)
        return await self._handled(request)

    async def _handled(self, request: ScimRequest) -> ScimResponse:
        response = await super().handle(request)
        target = self.service.match(request)
        if response.body is None or (target.endpoint or "").lower() != "groups":
            return response
        is_search = target.operation in {Operation.search, Operation.search_with_body}
        with self.service.provider:
            parameters = self._parameters(request, target.operation)
        if resources.wants("members", parameters):
            found = response.body.get("Resources", []) if is_search else [response.body]
            shown = await self._with_members(found, parameters)
            if is_search:
                response.body["Resources"] = shown
                response.body["itemsPerPage"] = len(shown)
        return response

    def _parameters(self, request: ScimRequest, operation: Operation) -> ResponseParameters[Any]:
        query = request.query
        if operation is Operation.search_with_body:
            query = self.service.decode_body(request.body, request.header("Content-Type"))
        return self.service.read_response_parameters(self.service.resource_type_at("Groups"), query)

    async def _with_members(
        self, groups: list[dict[str, Any]], parameters: ResponseParameters[Any]
    ) -> list[dict[str, Any]]:
        """The groups with their members, as many as have room.

        A page may be shorter than was asked for (RFC 7644 §3.4.2.4). Raises TooManyException if not even one has room.
        """
        left, shown = MOST_SHOWN, list[dict[str, Any]]()
        for each in groups:
            members = await self._storage.members_of(each["id"], parameters, most=left)
            if members is None and not shown:
                raise TooManyException(
                    detail=f"The group has more than {MOST_SHOWN:,} members: use excludedAttributes=members, and filter "
                    'Groups by id and members eq "…" to ask for one'
                )
            if members is None:
                break
            left -= len(members)
            if members:
                each["members"] = members
            shown.append(each)
        return shown

    async def patch_resource(
        self,
        resource_type: ResourceType,
        resource_id: str,
        patch_op: PatchOp[Any] | GroupPatch,
        conditions: Conditions,
    ) -> Resource[Any]:
        """Apply a PATCH; a group's adds and removes members."""
        if not isinstance(patch_op, GroupPatch):
            return await super().patch_resource(resource_type, resource_id, patch_op, conditions)
        current = cast("Group", await self.storage.get(resource_type, resource_id))
        self.service.check_preconditions(current, "PATCH", conditions)
        changes = filters_and_patches.member_changes(current.id or "", current.display_name or "", patch_op.operations)
        await self._storage.change_group(resource_id, changes)
        return current

    async def replace_resource(
        self,
        resource_type: ResourceType,
        current: Resource[Any],
        replacement: Resource[Any],
        conditions: Conditions,
    ) -> Resource[Any]:
        """Apply a PUT; a group's replaces members, if it names some."""
        if not isinstance(replacement, Group):
            return await super().replace_resource(resource_type, current, replacement, conditions)
        self.service.check_preconditions(current, "PUT", conditions)
        if replacement.members is not None:
            ids = filters_and_patches.member_ids([{"value": each.value} for each in replacement.members])
            await self._storage.change_group(
                current.id or "", filters_and_patches.MemberChanges(add=tuple(ids), replaced=True)
            )
        return current
