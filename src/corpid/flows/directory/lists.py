"""Searches for one record, and lists of records (D83).

Both find only what an actor may know. Lists have pages, totals, and what their records are shown with.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Required, TypedDict, TypeVar, Unpack
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from corpid.flows.directory.actors import is_allowed
from corpid.flows.directory.person_names import read_members
from corpid.flows.directory.write import Refused, read_grants
from corpid.rules.directory.access import Action, Actor, ApiClient, DeploymentOperator, Object, authorise, refuse_early
from corpid.rules.directory.lists import RECORD_LISTS, ListQuery, ListTotal, RecordList
from corpid.rules.directory.memberships import Member, MemberState, identity
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import (
    Administrator,
    AdministratorServices,
    Assignment,
    DeletionRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.directory.words import words_of_search
from corpid.rules.readers import suggestion
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from corpid.stores.sql.directory import Directory
    from corpid.stores.sql.registry import Registry

K = TypeVar("K", Entity, Service)
N = TypeVar("N", Entity, Service, User)
W = TypeVar("W", Assignment, ThirdPartyGrant)
_NEAR: Final = 200
_BEGINNING: Final = 2


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Members that distinguish rows of a service; None: any."""

    role: str | None = None
    sub_entity: str | None = None
    ref: str | None = None

    def fits(self, row: Assignment | ThirdPartyGrant) -> bool:
        """Return whether a row is one that is meant."""
        asked = ((self.role, row.role), (self.sub_entity, row.sub_entity), (self.ref, row.ref))
        return all(named is None or named == value for named, value in asked)


async def find_user(registry: Registry, user_name: str, *, actor: Actor) -> User:
    """Return the person of this name, however it is written.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: D51
    """
    try:
        name = mapped(user_name)
    except ValueError as error:
        raise Refused(f"{user_name!r}: {error}") from None
    found = await registry.directory.user_by_name(name)
    if found is None:
        authorise_list(actor, Object(kind="user"))
        raise Refused(f"there is no user {name!r}{await _suggest(registry, User, name)}")
    thing = Object(kind="user", user_id=found.user_id)
    if isinstance(actor, DeploymentOperator):
        await authorise_on_person(registry, actor, "read", thing)
    else:
        authorise(actor, "read", thing)
    return found


def refuse_invited(record: Any) -> None:  # noqa: ANN401 - of any kind
    """Refuse to change a person who has not accepted an invitation.

    Raises write.Refused. Source: D60
    """
    if getattr(record, "placeholder", False):
        raise Refused(
            phrase("{name} has not accepted an invitation yet: there is no account to change", name=record.user_name)
        )


async def find_entity(registry: Registry, entity_id: str, *, actor: Actor) -> Entity:
    """Return the entity with this identifier.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.2
    """
    return await _find_identified(registry, Entity, entity_id, Object(kind="entity", entity_id=entity_id), actor)


async def find_service(registry: Registry, service_id: str, *, actor: Actor) -> Service:
    """Return the service with this identifier.

    Raises write.Refused if there is none, access.Forbidden, StoreUnavailable. Source: R-14.1
    """
    return await _find_identified(registry, Service, service_id, Object(kind="service", service_id=service_id), actor)


def read_shown_key(record: Entity | Service | User) -> str:
    """Return the identifier of a record, a user's name. Source: D51, R-14."""
    return record.user_name if isinstance(record, User) else record.key[0]


def pick_one(rows: Sequence[W], *, none: str, several: str, note: Callable[[W], str], among: Sequence[W] = ()) -> W:
    """Return the one row that is meant.

    `none` and `several` say what is wrong otherwise, `note` adds details of a row, `among` are those that were looked
    through. Raises Refused with the rows there are, each by its options. Source: R-14, D56
    """
    if len(rows) == 1:
        return rows[0]
    listed = rows or among
    shown = [f"  {_format_options(row)}{f'  ({note(row)})' if note(row) else ''}" for row in listed]
    raise Refused(
        f"{several}; name one of them by its options" if rows else f"{none}; there is" if listed else none, *shown
    )


async def authorise_on_person(registry: Registry, actor: Actor, action: Action, thing: Object) -> None:
    """Authorise with the fact whether the person operates the deployment.

    Raises access.Forbidden, StoreUnavailable. Source: D53
    """
    operates = await registry.directory.read(Operator, [(thing.user_id,)])
    authorise(actor, action, replace(thing, operates=bool(operates)))


def authorise_list(actor: Actor, thing: Object) -> None:
    """Authorise a list of people.

    The store leaves out those whom the actor may not see. Raises access.Forbidden. Source: D53
    """
    authorise(actor, "read", replace(thing, operates=False) if isinstance(actor, DeploymentOperator) else thing)


async def _find_identified(registry: Registry, record: type[K], identifier: str, thing: Object, actor: Actor) -> K:
    authorise(actor, "read", thing)
    found = await registry.directory.find(record, identifier) if is_storable(identifier) else None
    if found is None:
        raise Refused(f"there is no {thing.kind} {identifier!r}{await _suggest(registry, record, identifier)}")
    return found


async def _suggest(registry: Registry, kind: type[N], word: str) -> str:
    """Return the closest of some known identifiers.

    Of the first ones, and of those that begin alike: a directory has too many to compare with each.
    """
    if not is_storable(word):
        return ""
    start: str = word[:_BEGINNING]
    known = [
        *await registry.lists.find(RECORD_LISTS[kind], limit=_NEAR),
        *await registry.lists.find(RECORD_LISTS[kind], beginning=start, limit=_NEAR),
    ]
    return suggestion(word, {read_shown_key(each) for each in known})


def _format_options(row: Assignment | ThirdPartyGrant) -> str:
    options = (("role", row.role), ("sub-entity", row.sub_entity), ("ref", row.ref))
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in options)


T = TypeVar("T")
S = TypeVar("S")

_SIDES: Final[tuple[Literal["after"], Literal["before"]]] = ("after", "before")
_ROUNDS: Final = 20
"""how often rows are read for one page of those that fit"""


class ListPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list.

    `after` names its last record if there are more, `before` its first one if others precede.
    """

    found: tuple[T, ...]
    after: str = ""
    before: str = ""
    total: ListTotal | None = None
    """of all pages, if it was asked for"""
    by_word: bool = False
    """whether it is in the order of what was searched, since too many are found to sort them"""


async def read_all(read: Callable[[str, int], Awaitable[ListPage[T]]], *, most: int, at_once: int) -> AsyncIterator[T]:
    """The first `most` records of a list, read page by page.

    `read` takes a place and a limit. Raises as it does. Source: D83
    """
    after = ""
    while most > 0:
        page = await read(after, min(most, at_once))
        for each in page.found:
            yield each
        after, most = page.after, most - len(page.found)
        if not after:
            return
        await asyncio.sleep(0)  # SQLite has answered within this task: others have their turn


class ListedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person, or a placeholder with its invitation."""

    user: User
    invitation: Membership | None

    @property
    def identity(self) -> str:
        """The user name, or the address of the invitation (D68)."""
        return identity(self.invitation, self.user) if self.invitation else self.user.user_name


class EntityMember(Member, frozen=True, kw_only=True):
    """A person of an entity, with their level there."""

    level: str = ""


class Appointment(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator, with the records that the level rests on."""

    administrator: Administrator
    user: User
    entity: Entity
    membership: Membership


class OperatingPerson(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of the deployment, with their person."""

    operator: Operator
    user: User


class Belonging(msgspec.Struct, frozen=True, kw_only=True):
    """An entity of a person, with their level there."""

    entity: Entity
    membership: Membership
    level: str = ""
    services: AdministratorServices = ()


class PendingDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A person who asked to be deleted. `requested_at` is in epoch seconds."""

    user: User
    requested_at: int


class PageOptions(TypedDict, total=False):
    """Options of `list_records`."""

    order: str
    descending: bool
    search: str
    after: str
    before: str
    limit: Required[int]
    count_to: int


class UnknownPlace(Refused):
    """A place that is in no page of a list."""

    def __init__(self) -> None:
        super().__init__("--after is not a place in this list: copy it from the last line of a list in the same order")


class UnknownSort(Refused):
    """An unknown order; `orders` are those that the list has."""

    def __init__(self, orders: Sequence[str]) -> None:
        self.orders = orders
        super().__init__(f"the list can be sorted by {', '.join(orders)}")


async def list_records(
    registry: Registry,
    actor: Actor,
    listed: RecordList,
    where: Mapping[str, str | bool] | None = None,
    *,
    order: str = "",
    descending: bool = False,
    search: str = "",
    state: MemberState | Literal[""] = "",
    service_id: str = "",
    after: str = "",
    before: str = "",
    limit: int,
    count_to: int = 0,
) -> ListPage[Any]:
    """List records of a kind, those that the actor may read.

    `where` narrows by columns of the list's filters. `search` are words of people, entities, members, services or
    clients, of other records the beginning of the identifier; `state` and `service_id` narrow members. `after` and
    `before` are places of another page, `count_to` asks for the total, up to a number. Raises UnknownPlace,
    UnknownSort, Refused for a text that no record has, access.Forbidden, StoreUnavailable. Source: D53, D83
    """
    where = where or {}
    thing = object_of_list(listed, where)
    if isinstance(actor, ApiClient):
        refuse_early(actor, "read", thing)
    else:
        authorise_list(actor, thing)
    known = listed.searched_orders if search else [each.name for each in listed.orders]
    if not known or order not in {"", *known}:
        raise UnknownSort(known)
    ordered, by_words = listed.order(order), listed.found_by_words
    if not is_storable(search):
        raise Refused("this has characters that no record has: leave them out")
    words = words_of_search(search) if by_words else ()
    nothing = search.strip() and by_words and not words
    if nothing or not all(is_storable(str(each)) for each in (*where.values(), service_id)):
        return ListPage(found=(), total=ListTotal(count=0) if count_to else None)
    by_word = bool(words) and (before or after).startswith("/")
    place = parse_place(before or after, 3 if by_word else len(ordered.columns)) if before or after else ()
    place = place[1:] if by_word else place
    query = ListQuery(
        listed=listed,
        order=ordered,
        where=where,
        beginning="" if by_words else search,
        words=(*words, f" {state}") if state else words,
        service_id=service_id,
        place=place,
        by_word=by_word,
        backwards=descending != bool(before),
        limit=limit + 1,
        no_operators=listed.of_people
        and isinstance(actor, DeploymentOperator)
        and not is_allowed(actor, "read", msgspec.structs.replace(thing, operates=True)),
    )
    total = None
    if query.words or query.service_id:
        query, total = await registry.lists.plan(query)
    elif count_to:
        total = await registry.lists.total(query, most=count_to)
    rows = await registry.lists.page(query)
    if descending:
        rows.reverse()
    placed = [(record, ("", *each) if query.by_word else each) for record, each in rows]
    page = cut_between(placed, after=after, before=before, limit=limit)
    return msgspec.structs.replace(page, total=total if count_to else None, by_word=query.by_word)


def object_of_list(listed: RecordList, where: Mapping[str, str | bool]) -> Object:
    """The object of access control of a list that is narrowed. Source: D53, D59"""
    sides = str(where.get("entity_id", "")), str(where.get("client_entity_id", ""))
    own, other = sides[::-1] if listed.record is ThirdPartyGrant else sides
    return Object(kind=listed.kind, entity_id=own, other_entity_id=other)


def find_order(wanted: Mapping[str, str], sort: str) -> tuple[str, str]:
    """The order of a list, and what is searched in it.

    A search by name sorts by it. Raises Refused for two searches, UnknownSort. Source: D83
    """
    name, search, order = wanted.get("name", ""), wanted.get("search", ""), sort.removeprefix("-")
    if name and search:
        raise Refused("a list is searched by name or by another text: leave one of them out")
    if name and order not in {"", "name"}:
        raise UnknownSort(["name"])
    return ("name", name) if name else (order, search)


async def list_in_order(
    registry: Registry, actor: Actor, listed: RecordList, where: Mapping[str, str | bool], **page: Unpack[PageOptions]
) -> ListPage[Any]:
    """List records as `list_records`, with places that name their order.

    A place of another order is refused. Raises as `list_records`. Source: D83
    """
    order = page.get("order", "")
    sort = f"{'-' if page.get('descending') else ''}{'' if order == listed.orders[0].name else order}"
    for side in _SIDES:
        other, _, place = page.get(side, "").rpartition(":")
        if place and other != sort:
            raise UnknownPlace
        page[side] = place
    found = await list_records(registry, actor, listed, where, **page)
    named = {
        side: place and f"{sort}:{place}" if sort else place for side in _SIDES for place in [getattr(found, side)]
    }
    return msgspec.structs.replace(found, **named)


async def list_with_records(
    registry: Registry, actor: Actor, listed: RecordList, wanted: Mapping[str, str], **page: Unpack[PageOptions]
) -> ListPage[Any]:
    """List records of a kind, with the records that they depend on.

    `wanted` are filters of the list. People are ListedPersons, roles RoleRecords, administrators Appointments,
    operators OperatingPersons, memberships Belongings, members EntityMembers, and requests to be deleted
    PendingDeletions. Raises Refused if something is named that there is not, UnknownPlace, UnknownSort,
    access.Forbidden, StoreUnavailable. Source: D23, D50, D53, D83
    """
    found = await list_in_order(registry, actor, listed, await _read_filters(registry, actor, listed, wanted), **page)
    load = _LOADERS.get(listed.record)
    return found if load is None else msgspec.structs.replace(found, found=await load(registry.directory, found.found))


async def _read_filters(
    registry: Registry, actor: Actor, listed: RecordList, wanted: Mapping[str, str]
) -> dict[str, str]:
    """The columns by which a list is narrowed, and their values."""
    where: dict[str, str] = {}
    for name, value in wanted.items():
        column = listed.filters[name]
        if column == "user_id":
            where[column] = (await find_user(registry, value, actor=actor)).user_id
        elif column == "service_id":
            where[column] = (await find_service(registry, value, actor=actor)).service_id
        else:
            where[column] = (await find_entity(registry, value, actor=actor)).entity_id
    return where


async def _load_invitations(directory: Directory, rows: Sequence[User]) -> tuple[ListedPerson, ...]:
    invited = await directory.invitations([row.user_id for row in rows if row.placeholder])
    found = {each.user_id: each for each in invited}
    return tuple(ListedPerson(user=row, invitation=found.get(row.user_id)) for row in rows)


async def load_belongings(directory: Directory, rows: Sequence[Membership]) -> tuple[Belonging, ...]:
    """Memberships with their entities, and the person's level there.

    One whose entity is gone meanwhile is left out. Raises StoreUnavailable. Source: D50, D53
    """
    known = await directory.read(Entity, [row.key[1:] for row in rows])
    levels = await directory.read(Administrator, [row.key for row in rows])
    return tuple(
        Belonging(
            entity=known[row.key[1:]],
            membership=row,
            level=held.level if held else "",
            services=held.services if held else (),
        )
        for row in rows
        for held in [levels.get(row.key)]
        if row.key[1:] in known
    )


async def _load_levels(directory: Directory, rows: Sequence[Member]) -> tuple[EntityMember, ...]:
    levels = await directory.read(Administrator, [each.membership.key for each in rows])
    return tuple(
        EntityMember(
            user=each.user,
            membership=each.membership,
            level=levels[each.membership.key].level if each.membership.key in levels else "",
        )
        for each in rows
    )


async def _load_appointments(directory: Directory, rows: Sequence[Administrator]) -> tuple[Appointment, ...]:
    members = await read_members(directory, [row.key for row in rows])
    held = await directory.read(Entity, {row.key[1:] for row in rows})
    return tuple(
        Appointment(
            administrator=row,
            user=members[row.key].user,
            entity=held[row.key[1:]],
            membership=members[row.key].membership,
        )
        for row in rows
        if row.key in members and row.key[1:] in held
    )


async def _load_operators(directory: Directory, rows: Sequence[Operator]) -> tuple[OperatingPerson, ...]:
    users = await directory.read(User, [row.key for row in rows])
    return tuple(OperatingPerson(operator=row, user=users[row.key]) for row in rows if row.key in users)


async def _load_deletions(directory: Directory, rows: Sequence[DeletionRequest]) -> tuple[PendingDeletion, ...]:
    users = await directory.read(User, [each.key for each in rows])
    known = ((users.get(each.key), each.requested_at) for each in rows)
    return tuple(PendingDeletion(user=user, requested_at=at) for user, at in known if user is not None)


async def load_roles(
    directory: Directory, rows: Sequence[Assignment | ThirdPartyAssignment]
) -> tuple[RoleRecords, ...]:
    """Return the rows with the records that they depend on.

    One that has lost it meanwhile is left out. Raises StoreUnavailable. Source: D50
    """
    members = await read_members(directory, [row.key[:2] for row in rows])
    services_of = await directory.read(Service, {(row.service_id,) for row in rows})
    clients = {(row.client_entity_id,) for row in rows if isinstance(row, ThirdPartyAssignment)}
    known = await directory.read(Entity, clients | {(row.entity_id,) for row in rows})
    granted = {
        between: tuple(await read_grants(directory, between))
        for between in {
            (row.client_entity_id, row.entity_id, row.service_id)
            for row in rows
            if isinstance(row, ThirdPartyAssignment)
        }
    }
    found = []
    for row in rows:
        client_id = row.client_entity_id if isinstance(row, ThirdPartyAssignment) else ""
        member, service = members.get(row.key[:2]), services_of.get((row.service_id,))
        entity, client = known.get((row.entity_id,)), known.get((client_id,))
        if member and service and entity and (client or not client_id):
            found.append(
                RoleRecords(
                    row=row, user=member.user, entity=entity, membership=member.membership, service=service,
                    client_entity=client, grants=granted.get((client_id, row.entity_id, row.service_id), ()),
                )
            )  # fmt: skip
    return tuple(found)


_LOADERS: Final[Mapping[type, Callable[[Directory, Any], Awaitable[tuple[Any, ...]]]]] = {
    Assignment: load_roles, ThirdPartyAssignment: load_roles, Administrator: _load_appointments,
    User: _load_invitations, Membership: load_belongings, Member: _load_levels, DeletionRequest: _load_deletions,
    Operator: _load_operators,
}  # fmt: skip
"""record of a list → what loads the records that its own depend on"""


async def search_page(
    read: Callable[[str, int], Awaitable[Sequence[S]]],
    place_of: Callable[[S], str],
    fits: Callable[[S], bool],
    *,
    after: str,
    at_once: int,
    limit: int,
) -> ListPage[S]:
    """Read rows until enough fit, in a bounded number of rounds.

    There may be fewer than `limit` although more follow. Raises StoreUnavailable. Source: D53
    """
    found: list[S] = []
    for _ in range(_ROUNDS):
        rows = await read(after, at_once)
        found += filter(fits, rows)
        if len(rows) < at_once or len(found) > limit:
            return cut_page(found, limit, list(map(place_of, found)))
        after = place_of(rows[-1])
    page = cut_page(found, limit, list(map(place_of, found)))
    return ListPage(found=page.found, after=page.after or after)


def cut_page(found: Sequence[S], limit: int, places: Sequence[str]) -> ListPage[S]:
    """Limit results to one page.

    It is one more than the page may have, if there are more. `places` are those of each.
    """
    return ListPage(found=tuple(found[:limit]), after=places[limit - 1] if len(found) > limit else "")


def cut_between(rows: Sequence[tuple[S, tuple[str, ...]]], *, after: str, before: str, limit: int) -> ListPage[S]:
    """Limit results to the page after or before a place.

    They have their places, are in the list's order, and one more than the page may have, if there are more.
    """
    shown = rows[-limit:] if before else rows[:limit]
    further = len(rows) > limit
    return ListPage(
        found=tuple(each for each, _ in shown),
        after=format_place(shown[-1][1]) if shown and (before or further) else "",
        before=format_place(shown[0][1]) if shown and (further if before else after) else "",
    )


def format_place(key: Sequence[str]) -> str:
    """Return the text of a key's place, which `parse_place` reads."""
    return "/".join(quote(part, safe="") for part in key)


def parse_place(after: str, width: int = 0) -> tuple[str, ...]:
    """Return the key after which a page begins.

    `width` is the number of its parts, 0 for whatever it has, and for none if the text is empty. Raises UnknownPlace.
    """
    parts = tuple(unquote(part) for part in after.split("/")) if after else ("",) * width
    if (width and len(parts) != width) or not is_storable("".join(parts)):
        raise UnknownPlace
    return parts
