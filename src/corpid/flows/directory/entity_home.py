"""Numbers for the home page of an entity's administrators (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.approvals import decidable
from corpid.flows.directory.lists import ListPage, as_place, cut_page, place
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.queries import EntityTotals
from corpid.rules.directory.records import Assignment, ChangeRequest, Membership, Service, User

if TYPE_CHECKING:
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.stores.sql.registry import Registry

MOST_PEOPLE: Final = 20_000
"""up to which they are counted, and everything else"""
MOST_REQUESTS: Final = 100
"""that wait, which are looked through"""
_WIDTH: Final = 7
"""parts of a place in the list of roles: last day and key"""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of an entity's home page."""

    totals: EntityTotals
    requests: int
    """that the reader can decide on"""
    more_requests: bool
    """whether more wait than were looked through"""


class ExpiringRole(msgspec.Struct, frozen=True, kw_only=True):
    """A role that ends soon, with its records."""

    row: Assignment
    user: User
    membership: Membership
    service: Service


async def overview(registry: Registry, actor: EntityAdministrator, *, first: str, last: str) -> Overview:
    """The numbers of the actor's entity; roles that end in these days.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D55, D61
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id))
    totals = await registry.directory.totals(actor.entity_id, first=first, last=last, most=MOST_PEOPLE)
    if actor.level == "sub_administrator":  # reads the roles at its services only, and no grants
        totals = EntityTotals(people=totals.people, ending=0, offers=0)
    where = {"entity_id": actor.entity_id, "state": "pending"}
    waiting = await registry.directory.page(ChangeRequest, where, after=("",), limit=MOST_REQUESTS + 1)
    return Overview(
        totals=totals,
        requests=sum(decidable(each, actor) for each in waiting),
        more_requests=len(waiting) > MOST_REQUESTS,
    )


async def ending(
    registry: Registry, actor: EntityAdministrator, *, first: str, last: str, after: str, limit: int
) -> ListPage[ExpiringRole]:
    """Roles of the actor's entity that end in these days.

    The soonest first. Of a sub-administrator those at its services, so a page may have fewer than `limit` although more
    follow. Raises Refused, access.Forbidden, StoreUnavailable. Source: D53
    """
    authorise(actor, "read", Object(kind="membership", entity_id=actor.entity_id))
    directory = registry.directory
    found = await directory.ending(actor.entity_id, first=first, last=last, after=place(after, _WIDTH), limit=limit + 1)
    page = cut_page(found, limit, [as_place((each.end_date, *each.key)) for each in found])
    rows = [each for each in page.found if _may_read(actor, each)]
    users = await directory.read(User, {(each.user_id,) for each in rows})
    memberships = await directory.read(Membership, {each.key[:2] for each in rows})
    services = await directory.read(Service, {(each.service_id,) for each in rows})
    return ListPage(
        found=tuple(
            ExpiringRole(
                row=each,
                user=users[each.user_id,],
                membership=memberships[each.key[:2]],
                service=services[each.service_id,],
            )
            for each in rows
            if (each.user_id,) in users and each.key[:2] in memberships and (each.service_id,) in services
        ),
        after=page.after,
    )


def _may_read(actor: EntityAdministrator, row: Assignment) -> bool:
    try:
        authorise(actor, "read", Object(kind="assignment", entity_id=row.entity_id, service_id=row.service_id))
    except Forbidden:
        return False
    return True
