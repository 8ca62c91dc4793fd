"""Roles of an entity's people: given, changed and ended (D53, D54, D55).

By administrators of the entity: what a page asks before its form (which services, which people, whether it may be done
at all), and `submit_role_changes`, which writes or requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.actors import is_allowed
from corpid.flows.directory.lists import ListPage, cut_page, format_place
from corpid.flows.directory.members import Member
from corpid.flows.directory.write import authorise_changes
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.objects import key_of, object_id
from corpid.rules.directory.records import Assignment, Change, Entity, Membership, Service, User
from corpid.rules.directory.role_forms import NO_VALUES, is_open_to, most_frequent_values

if TYPE_CHECKING:
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.rules.directory.role_forms import ValuesInUse
    from corpid.stores.sql.registry import Registry

MOST_SERVICES: Final = 1000
MOST_ROLES: Final = 200
"""of one person, that a page shows"""
_MOST_LOOKED_THROUGH: Final = 500
"""roles of an entity at a service, for the values that they have"""
_WIDTH: Final = 6


class UnknownRole(Exception):
    """No such role, or none that the actor may see."""


class HeldRole(msgspec.Struct, frozen=True, kw_only=True):
    """A person's role at a service."""

    row: Assignment
    service: Service

    @property
    def id(self) -> str:
        """The identifier of the role in addresses, as in the admin API."""
        return object_id(self.row.key)


async def list_services(registry: Registry, actor: EntityAdministrator, entity: Entity) -> list[Service]:
    """Services at which the actor gives roles.

    By name, of those that the entity may use. Raises access.Forbidden, StoreUnavailable. Source: R-20, D53
    """
    authorise(actor, "read", Object(kind="service"))
    own = actor.services if actor.level == "sub_administrator" else "all"
    if isinstance(own, tuple):
        found = list((await registry.directory.read(Service, [(each,) for each in own])).values())
    else:
        found = await registry.lists.find(SERVICES, limit=MOST_SERVICES)
    return sorted((each for each in found if is_open_to(each, entity)), key=lambda each: each.name.casefold())


async def list_roles(registry: Registry, actor: EntityAdministrator, user_id: str) -> ListPage[HeldRole]:
    """Roles of a member that the actor may see, by key.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id, user_id=user_id))
    where = {"user_id": user_id, "entity_id": actor.entity_id}
    rows = await registry.directory.page(Assignment, where, limit=MOST_ROLES + 1)
    page = cut_page(rows, MOST_ROLES, [format_place(row.key) for row in rows])
    known = await registry.directory.read(Service, {(row.service_id,) for row in rows})
    seen = [row for row in page.found if _may_read(actor, row)]
    roles = tuple(HeldRole(row=row, service=known[row.service_id,]) for row in seen if (row.service_id,) in known)
    return ListPage(found=roles, after=page.after)


async def list_values_in_use(
    registry: Registry, actor: EntityAdministrator, service: Service, *, today: str
) -> ValuesInUse:
    """Values of the entity's roles at a service that have not ended.

    `today` as in a record. Of a great many roles some are looked through. Raises access.Forbidden, StoreUnavailable.
    Source: D53, D61
    """
    service_id, entity_id = service.service_id, actor.entity_id
    authorise(actor, "read", Object(kind="assignment", entity_id=entity_id, service_id=service_id))
    if service.sub_entity == "none" and not service.parameters:
        return NO_VALUES
    where = {"entity_id": entity_id, "service_id": service_id}
    rows = await registry.directory.page(Assignment, where, limit=_MOST_LOOKED_THROUGH)
    return most_frequent_values(row for row in rows if row.end_date >= today)


async def load_role(registry: Registry, actor: EntityAdministrator, identifier: str) -> tuple[HeldRole, Member]:
    """One role with its person.

    `identifier` is that of the admin API. Raises UnknownRole, also for one that is another entity's or that the actor
    may not see, StoreUnavailable. Source: D53, D59
    """
    key = key_of(identifier, _WIDTH)
    row = (await registry.directory.read(Assignment, [key])).get(key) if key is not None else None
    if row is None or row.entity_id != actor.entity_id or not _may_read(actor, row):
        raise UnknownRole
    known = await registry.directory.read(Service, [(row.service_id,)])
    belonging = (row.user_id, row.entity_id)
    membership = (await registry.directory.read(Membership, [belonging])).get(belonging)
    user = (await registry.directory.read(User, [(row.user_id,)])).get((row.user_id,))
    if membership is None or user is None or (row.service_id,) not in known:
        raise UnknownRole
    return HeldRole(row=row, service=known[row.service_id,]), Member(membership=membership, user=user)


async def explain_refusal(registry: Registry, actor: EntityAdministrator, found: Member, at: Service) -> str:
    """The reason against changing a member's roles; empty if none.

    Asked before a form is shown. Raises StoreUnavailable. Source: D53, D54
    """
    probe = Assignment(user_id=found.user.user_id, entity_id=actor.entity_id, service_id=at.service_id)
    try:
        await authorise_changes(registry, actor, [Change(None, probe)])
    except Forbidden as error:
        return error.reason
    return ""


async def find_stored_role(registry: Registry, row: Assignment) -> Assignment | None:
    """The stored row of the same key; None without one.

    Raises StoreUnavailable. Source: D55
    """
    return (await registry.directory.read(Assignment, [row.key])).get(row.key)


def plan_replacement(was: Assignment, becomes: Assignment) -> list[Change]:
    """The changes that make one role another one. Source: D55"""
    if was.key == becomes.key:
        return [] if was == becomes else [Change(was, becomes)]
    return [Change(was, None), Change(None, becomes)]


def copy_role(row: Assignment, service: Service, *, user_id: str, today: str) -> Assignment | None:
    """The same role from today for somebody else.

    None for one that has ended, or lacks a mandatory value. Source: R-14.1, D23
    """
    values = {each.name for each in row.parameters if each.value}
    lacking = any(each.mandatory and each.name not in values for each in service.parameters)
    if row.end_date < today or lacking or (service.sub_entity == "mandatory" and not row.sub_entity):
        return None
    return msgspec.structs.replace(row, user_id=user_id, start_date=max(today, row.start_date))


def _may_read(actor: EntityAdministrator, row: Assignment) -> bool:
    return is_allowed(actor, "read", Object(kind="assignment", entity_id=row.entity_id, service_id=row.service_id))
