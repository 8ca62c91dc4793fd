"""SCIM's resources, read and written by the flows of the directory.

Source: D60
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from scim2_models import ForbiddenException, NotFoundException, NotImplementedException
from scim2_server.storage import AsyncScimStorage, SearchPage

from corpid.flows.directory import member_changes, provisioned_groups
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import UnknownMember, load_member, query_members
from corpid.rules.directory.queries import MemberQuery
from corpid.rules.scim import filters_and_patches, resources
from corpid.rules.scim.filters_and_patches import holds
from corpid.rules.scim.resources import LONGEST_PAGE, User
from corpid.web.scim import PATH
from corpid.web.scim.security import refuse_ended

if TYPE_CHECKING:
    from scim2_models import Resource, ResourceType, ResponseParameters, SearchRequest

    from corpid.flows.directory.members import Member
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import ProvisioningToken
    from corpid.rules.directory.queries import MemberCondition
    from corpid.rules.directory.records import GroupRole
    from corpid.rules.scim.filters_and_patches import FilterCondition, MemberChanges
    from corpid.web.context import WebContext

_FURTHEST: Final = 10_000_000
"""the last place of a list that is looked up"""
_NOTHING: Final = "There is no such resource"


class Storage(AsyncScimStorage):
    """The members and the groups of one entity, for one request."""

    def __init__(self, context: RequestContext, actor: ProvisioningToken, web: WebContext) -> None:
        self._context: Final = context
        self._registry: Final = context.provider.registry
        self._actor: Final = actor
        self._web: Final = web
        provider = context.provider
        self._limit: Final = InvitationLimit(
            transient=provider.transient, issuer=provider.policy.deployment_url, counts=context.counts
        )
        self._root: Final = context.provider.policy.base_url + PATH
        self._read: Final[dict[str, Member]] = {}
        self._roles: dict[str, GroupRole] | None = None

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        """One resource of the entity. Raises NotFoundException, and what the flow raises."""
        if resource_type.name == "Group":
            return resources.group(await self._role(resource_id), root=self._root)
        found = await self._member(resource_id)
        self._read[resource_id] = found
        return await self._user(found, with_groups=resources.asks("groups", response_parameters))

    async def search(
        self,
        resource_types: list[ResourceType],
        search_request: SearchRequest[Any],
        *,
        position: Any = None,  # noqa: ANN401, ARG002
    ) -> SearchPage:
        """A page of resources of one type.

        Raises SCIMException, and what the flow raises.
        """
        if len(resource_types) != 1:
            raise NotImplementedException(detail="Search at /Users or /Groups")
        kind = str(resource_types[0].name)
        text = search_request.filter
        conditions = filters_and_patches.conditions(kind, text.ast) if text is not None else ()
        sort = filters_and_patches.sorting(kind, str(search_request.sort_by or ""))
        descending = search_request.sort_order == "descending"
        start = (search_request.start_index or 1) - 1
        count = LONGEST_PAGE if search_request.count is None else search_request.count
        if kind == "Group":
            found = await self._groups(conditions, by_name=sort == "name", descending=descending)
            return SearchPage(
                total=len(found),
                resources=[resources.group(each, root=self._root) for each in found[start : start + count]],
            )
        with_groups = resources.asks("groups", search_request)
        total, page = await self._page(conditions, sort, start=start, count=count, descending=descending)
        users = [await self._user(each, with_groups=with_groups) for each in page]
        return SearchPage(total=total, resources=users)  # type: ignore[arg-type]

    async def _page(
        self,
        conditions: tuple[FilterCondition, ...],
        sort: filters_and_patches.Attribute,
        *,
        start: int,
        count: int,
        descending: bool,
    ) -> tuple[int, list[Member]]:
        """The number of members that match, and a part of them.

        By id there is one at most.
        """
        named = [condition for condition in conditions if condition.attribute == "membership_id"]
        wanted = MemberQuery(
            entity_id=self._actor.entity_id,
            conditions=tuple(_condition(each) for each in conditions if each not in named),
            sorted_by="user_name" if sort == "user_name" else "membership_id",
            descending=descending,
            offset=min(start, _FURTHEST),
            limit=count,
        )
        if not named:
            return await query_members(self._registry, wanted, actor=self._actor)
        try:
            found = await self._member(str(named[0].value))
        except UnknownMember:
            return 0, []
        shown = await self._user(found)
        holding = all(filters_and_patches.holds_of(shown, condition) for condition in conditions)
        return (1, [found][start : start + count]) if holding else (0, [])

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        """Invite a member. Raises what the flow raises."""
        if not isinstance(resource, User):
            raise ForbiddenException(detail=f"A {resource_type.name} cannot be created with a token")
        written = resources.read_details(resource)
        invited = await member_changes.invite_member(
            self._registry,
            self._limit,
            written.details,
            enabled=written.active is not False,
            actor=self._actor,
            now=self._context.now,
            new_id=self._web.new_user_id,
            reachable=True,
        )
        return await self._user(invited)

    async def update(
        self,
        resource_type: ResourceType,  # noqa: ARG002
        resource: Resource[Any],
        *,
        expected_version: str | None = None,  # noqa: ARG002
    ) -> Resource[Any]:
        """Change a member that this request has read.

        Raises what the flow raises, ChangedMeanwhile too.
        """
        assert isinstance(resource, User)  # noqa: S101
        was = self._read[resource.id or ""]
        written = resources.read_details(resource, await self._user(was), was.membership)
        changed = await member_changes.change_member(
            self._registry,
            self._limit,
            was.membership.membership_id,
            written.details,
            enabled=was.membership.enabled if written.active is None else written.active,
            expected=was.membership,
            actor=self._actor,
            now=self._context.now,
        )
        return await self._user(changed)

    async def delete(
        self,
        resource_type: ResourceType,  # noqa: ARG002
        resource_id: str,
        *,
        expected_version: str | None = None,  # noqa: ARG002
    ) -> None:
        """End a membership. Raises what the flow raises."""
        await member_changes.end_member(self._registry, resource_id, actor=self._actor)

    async def change_group(self, group_id: str, changes: MemberChanges) -> None:
        """Give and take a role. Raises NotFoundException, and what the flow raises."""
        await provisioned_groups.change_group(
            self._registry,
            await self._role(group_id),
            add=changes.add,
            remove=changes.remove,
            replaced=changes.replaced,
            today=self._context.today,
            actor=self._actor,
            still=lambda: refuse_ended(self._context, self._actor),
        )

    async def members_of(
        self, group_id: str, parameters: ResponseParameters[Any], *, most: int
    ) -> list[dict[str, str]] | None:
        """The members of a group as shown; None if too many."""
        role, today = await self._role(group_id), self._context.today
        found = await provisioned_groups.group_members(
            self._registry, role, today=today, most=most + 1, actor=self._actor
        )
        return None if len(found) > most else [resources.member(each, self._root, parameters) for each in found]

    async def _member(self, membership_id: str) -> Member:
        return await load_member(self._registry, membership_id, actor=self._actor)

    async def _role(self, group_id: str) -> GroupRole:
        found = (await self._known()).get(group_id)
        if found is None:
            raise NotFoundException(detail=_NOTHING)
        return found

    async def _known(self) -> dict[str, GroupRole]:
        """The roles that are groups, by id, in order of their names."""
        if self._roles is None:
            found = await provisioned_groups.groups(self._registry, actor=self._actor)
            self._roles = {resources.group_id(role): role for role in sorted(found, key=resources.group_name)}
        return self._roles

    async def _groups(
        self, conditions: tuple[FilterCondition, ...], *, by_name: bool, descending: bool
    ) -> list[GroupRole]:
        found = await self._known()
        for condition in conditions:
            if condition.attribute == "member":
                held = await self._groups_of(str(condition.value))
                found = {each: role for each, role in found.items() if role in held}
            elif condition.attribute == "name":
                found = {each: role for each, role in found.items() if holds(condition, resources.group_name(role))}
            else:
                found = {each: role for each, role in found.items() if holds(condition, each)}
        ordered = [found[each] for each in (found if by_name else sorted(found))]
        return ordered[::-1] if descending else ordered

    async def _groups_of(self, membership_id: str) -> frozenset[GroupRole]:
        try:
            found = await self._member(membership_id)
        except UnknownMember:
            return frozenset()
        return await provisioned_groups.groups_of(
            self._registry, found.membership, today=self._context.today, actor=self._actor
        )

    async def _user(self, member: Member, *, with_groups: bool = False) -> User:
        groups = None
        if with_groups:
            held = await provisioned_groups.groups_of(
                self._registry, member.membership, today=self._context.today, actor=self._actor
            )
            groups = [role for role in (await self._known()).values() if role in held]
        return resources.user(member.membership, member.user, groups, version=self._version(member), root=self._root)

    def _version(self, member: Member) -> str:
        """A weak entity tag of a member, without its groups.

        It is a MAC, since a client could search a hash for members that it does not see.
        """
        shown = msgspec.structs.replace(member.membership, invitation_sent_at=0)
        person = ("", "", "") if shown.invited else (member.user.user_name, member.user.name, member.user.email)
        canonical = msgspec.json.encode([shown, person]).decode()
        return f'W/"{self._context.keys.mac("scim version", canonical)[:27]}"'


def _condition(condition: FilterCondition) -> MemberCondition:
    value = condition.value
    text = value if isinstance(value, str) else str(value).lower()
    return cast("MemberCondition", (condition.attribute, condition.operator, text))
