"""Objects of the admin API: listed, read, added, changed and removed (D59).

One function for each verb, whatever the kind of record. What an actor may not see is answered as what is not there, and
what needs approval is requested (D55).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.actors import is_allowed
from corpid.flows.directory.apply import prepare_document
from corpid.flows.directory.lists import ListPage, UnknownPlace, UnknownSort, find_order, list_in_order, object_of_list
from corpid.flows.directory.members import find_person
from corpid.flows.directory.person_names import read_invited, read_user_names
from corpid.flows.directory.write import Refused, RequestDetails, object_of, write_changes
from corpid.rules.directory.access import ALL_SCOPES, ApiClient, Forbidden, Object, authorise, refuse_early
from corpid.rules.directory.lists import MEMBERS, ListTotal
from corpid.rules.directory.members import mask_text
from corpid.rules.directory.names import canonical, is_storable
from corpid.rules.directory.nodes import DirectoryError, Json, merge_patch
from corpid.rules.directory.objects import (
    READ_ONLY,
    InvalidObject,
    MemberFault,
    ParsedObject,
    Resource,
    key_of,
    parse_object,
    to_json_object,
)
from corpid.rules.directory.plan import without_services
from corpid.rules.directory.records import (
    Administrator,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Membership,
    NameTaken,
    Precondition,
    Service,
    ThirdPartyGrant,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.document import Kind
    from corpid.rules.fields import KeyedRecord
    from corpid.rules.oauth.client_registration import RegistrationRules
    from corpid.stores.sql.registry import Registry

_NAME_TAKEN: Final = "somebody has this user name already"


class ObjectNotFound(Exception):
    """No such object, or none that the actor may know of."""


class ObjectConflict(Exception):
    """An object of this key is there already; the text says so."""


class ObjectChanged(Exception):
    """The object is no longer the one that the caller has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """Dependencies of every verb, and who acts."""

    registry: Registry
    passwords: Passwords
    actor: ApiClient
    rules: RegistrationRules
    new_user_id: Callable[[], str]
    tag: Callable[[KeyedRecord], str]
    """the entity tag of a record"""
    now: float
    """epoch seconds"""
    new_id: Callable[[], str]
    """for a request for approval"""


class ApiObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object as it is shown, and its entity tag."""

    id: str
    tag: str
    members: dict[str, Json]


async def read_object(by: Administration, resource: Resource, identifier: str) -> ApiObject:
    """One object.

    Raises ObjectNotFound, access.Forbidden, StoreUnavailable. Source: D59, D61
    """
    record = await _visible(by, resource, identifier)
    await _authorise_reading(by, by.actor, record)
    return await _show(by, resource, record)


async def read_written(by: Administration, resource: Resource, identifier: str) -> ApiObject:
    """An object that the caller has written before.

    For an answer that is repeated. Raises ObjectNotFound, access.Forbidden, StoreUnavailable. Source: D59, D61
    """
    record = await _visible(by, resource, identifier)
    refuse_early(by.actor, "write", object_of(record))
    return await _show(by, resource, record)


async def add_object(by: Administration, resource: Resource, value: Json) -> ApiObject | ChangeRequest:
    """Add an object, or request it if that needs approval.

    A grant by a client that is bound to an entity is an offer, unless it says otherwise. Raises InvalidObject with
    every fault, ObjectConflict, Refused, access.Forbidden, Conflict, StoreUnavailable. Source: D55, D56, D59
    """
    own_entity = by.actor.entity_id
    refuse_early(by.actor, "write", Object(kind=resource.kind, entity_id=own_entity, other_entity_id=""))
    if own_entity and isinstance(value, dict):
        value = {**resource.bound_defaults, **value}
    read_one = parse_object(resource, await _resolved(by, resource, value))
    await _refuse_strangers(by, resource, read_one)
    changes = await _planned(by, read_one)
    own = [change for change in changes if change.kind == resource.kind]
    if not own or own[0].verb != "add" or own[0].after is None:
        raise ObjectConflict(f"{resource.noun} of this key is there already: change it with PATCH")
    record: Any = own[0].after
    request = await _write_seen(by, resource, changes, own[0].key, None)
    if request is None and resource.completed_by_store:
        record = await _stored(by.registry, resource, record.key) or record
    return request or await _show(by, resource, record)


async def change_object(
    by: Administration, resource: Resource, identifier: str, patch: Json, *, matches: Callable[[str], bool]
) -> ApiObject | ChangeRequest:
    """Change an object by a JSON merge patch, or request it.

    `matches` says whether an entity tag is one that the caller has seen. Raises ObjectNotFound, ObjectChanged,
    InvalidObject with every fault, Refused, access.Forbidden, Conflict, StoreUnavailable. Source: RFC 7396, RFC 9110
    §13.1.1, D55, D59
    """
    record = await _visible(by, resource, identifier)
    if not matches(by.tag(record)):
        raise ObjectChanged
    refuse_early(by.actor, "write", object_of(record))
    users = await read_user_names(by.registry, [record])
    identities = await read_identities(by.registry, [record], users)
    read_one = parse_object(resource, _whole(by, resource, record, users, identities, patch), record)
    if resource.renamable and read_one.entry.key != (record.user_name,):
        other = await by.registry.directory.user_by_name(read_one.entry.key[0])
        if other is not None and other.key != record.key:
            raise ObjectConflict(_NAME_TAKEN)
    changes = await _planned(by, read_one)
    key = record.key
    if any(change.kind != resource.kind or change.key != key for change in changes):  # it would be another object
        raise ObjectChanged
    if not changes:
        return await _show(by, resource, record, users)
    becomes = next(change.after for change in changes if change.kind == resource.kind)
    request = await _write_seen(by, resource, changes, key, record)
    return request or await _show(by, resource, becomes or record)


async def remove_object(
    by: Administration, resource: Resource, identifier: str, *, matches: Callable[[str], bool]
) -> ChangeRequest | None:
    """Remove an object, with everything that rests on it, or request it.

    `matches` says whether an entity tag is one that the caller has seen. Raises ObjectNotFound, ObjectChanged, Refused,
    access.Forbidden, Conflict, StoreUnavailable. Source: RFC 9110 §13.1.1, D55, D59, R-21
    """
    record = await _visible(by, resource, identifier)
    if not matches(by.tag(record)):
        raise ObjectChanged
    key = record.key
    change = Change(record, None)
    first = await ENDS_FIRST[resource.kind](by.registry, record) if resource.kind in ENDS_FIRST else []
    return await _write_seen(by, resource, [*first, change], key, record)


async def read_identities(
    registry: Registry, records: Sequence[KeyedRecord], names: Mapping[str, str]
) -> dict[str, str]:
    """Return what identifies the people of some rows, by user identifier.

    The user name, or the address of an invitation. `names` are the user names; that of somebody invited is their
    identifier. Raises StoreUnavailable. Source: D68
    """
    invited = await read_invited(registry, records, names)
    return {user_id: canonical(name) for user_id, name in names.items()} | invited


async def _show_all(
    by: Administration, resource: Resource, records: Sequence[KeyedRecord], names: Mapping[str, str] | None = None
) -> tuple[ApiObject, ...]:
    """Records as they are shown.

    `names` is user identifier → user name, if it was read before. A client entity does not learn whom its third parties
    invited. Raises StoreUnavailable. Source: D59, D61, D68
    """
    names = await read_user_names(by.registry, records) if names is None else names
    whole = is_allowed(by.actor, "read", Object(kind="identity number"))
    identities = await read_identities(by.registry, records, names)
    accounts = {user_id: canonical(name) for user_id, name in names.items() if name != user_id}
    found = []
    for record in records:
        own = by.actor.entity_id
        outside = (
            own and resource.names_user and getattr(record, "entity_id", "") != own
        )  # another entity's person (D61)
        tag, known = by.tag(record), (accounts, accounts) if outside else (names, identities)
        shown = to_json_object(resource, record, *known, whole=whole)
        found.append(ApiObject(id=str(shown["id"]), tag=tag, members={**shown, "etag": tag}))
    return tuple(found)


async def _show(
    by: Administration,
    resource: Resource,
    record: Any,  # noqa: ANN401 - of its kind
    names: Mapping[str, str] | None = None,
) -> ApiObject:
    return (await _show_all(by, resource, [record], names))[0]


async def to_rows(
    registry: Registry, resource: Resource, found: Sequence[object], *, whole: bool = False
) -> list[list[str]]:
    """Return what a list has found as rows of a CSV.

    Each is a record of the resource, or has one. `whole`: with identity numbers, which are masked otherwise. Raises
    StoreUnavailable. Source: D59, D68, D83
    """
    records = [_record_in(each, resource.record) for each in found]
    names = await read_user_names(registry, records)
    identities = await read_identities(registry, records, names)
    return [resource.row(to_json_object(resource, each, names, identities, whole=whole)) for each in records]


def _record_in(shown: Any, record: type[KeyedRecord]) -> Any:  # noqa: ANN401 - a record, or what a list shows with it
    parts = shown if isinstance(shown, tuple) else msgspec.structs.astuple(shown)
    return next(each for each in (shown, *parts) if isinstance(each, record))


async def list_objects(
    by: Administration,
    resource: Resource,
    wanted: Mapping[str, str],
    *,
    sort: str = "",
    after: str = "",
    before: str = "",
    limit: int,
    count_to: int = 0,
) -> ListPage[ApiObject]:
    """List objects by key, people by user name.

    Those of an entity by membership; `sort` is another order. `wanted` are filters of the resource; one that names
    nothing gives an empty page. `count_to` asks for a total. Raises UnknownSort, UnknownPlace, access.Forbidden,
    StoreUnavailable. Source: D59, D61, D83
    """
    narrowed, sides, own = dict(wanted), resource.sides, by.actor.entity_id
    if own and sides and not any(side in narrowed for side in sides):
        narrowed[sides[0]] = own
    of_members = "entity" in narrowed and "user" not in narrowed and MEMBERS in resource.lists
    listed = MEMBERS if of_members else resource.lists[0]
    order, search = find_order(narrowed, sort)
    if search and resource.record is Membership and not of_members:
        raise Refused("memberships are searched in one entity: give `entity`, and no `user`")
    columns = resource.filter_columns
    where = {columns[name]: value for name, value in narrowed.items() if name in columns and name != "user"}
    if own and "entity_id" in resource.identity:
        where = {"entity_id": own}
    refuse_early(by.actor, "read", object_of_list(resource.lists[0], where))
    nothing = ListPage[ApiObject](found=(), total=ListTotal(count=0) if count_to else None)
    if "user" in narrowed:
        if own and len(sides) > 1 and narrowed.get(sides[0], "") != own:  # a third party's person (D61)
            return nothing
        entity_id = where.get("entity_id", "")
        user = await find_person(by.registry, entity_id, narrowed["user"], of_entity=bool(own))
        if user is None:
            return nothing
        where["user_id"] = user.user_id
    try:
        page = await list_in_order(
            by.registry, by.actor, listed, where, order=order, descending=sort.startswith("-"), search=search,
            after=after, before=before, limit=limit, count_to=count_to,
        )  # fmt: skip
    except (UnknownPlace, UnknownSort):
        raise
    except Refused:  # a text that no record has
        return nothing
    records = page.found
    if of_members:
        records = tuple(getattr(each, resource.kind) for each in records)  # its membership, or its user
    return msgspec.structs.replace(page, found=await _show_all(by, resource, records))


async def _resolved(by: Administration, resource: Resource, value: Json) -> Json:
    """A new object with the account's user name of its member."""
    if not resource.names_member or not isinstance(value, dict):
        return value
    named, entity_id = value.get("user"), value.get("entity") or value.get("third_party")
    if not isinstance(named, str) or not isinstance(entity_id, str) or not is_storable(entity_id):
        return value
    if by.actor.entity_id not in {"", entity_id}:  # people of another entity are none of its business
        return value
    found = await find_person(by.registry, entity_id, named, of_entity=bool(by.actor.entity_id))
    return value if found is None else {**value, "user": found.user_name}


async def _narrow_administrators(registry: Registry, service: Service) -> list[Change]:
    """The sub-administrators whose list loses a service (D53)."""
    gone = frozenset({service.key})
    found = []
    async for held in registry.directory.scan(Administrator):
        becomes = without_services(held, gone)
        if becomes != held:
            found.append(Change(held, becomes))
    return found


ENDS_FIRST: Final[Mapping[Kind, Callable[[Registry, Any], Awaitable[list[Change]]]]] = {
    "service": _narrow_administrators
}
"""kind of a record that is removed → the changes that come before"""


async def _write_seen(
    by: Administration,
    resource: Resource,
    changes: Sequence[Change],
    key: tuple[str, ...],
    was: KeyedRecord | None,
) -> ChangeRequest | None:
    """Write or request changes, if the object still is what it `was`."""
    seen = [Precondition(resource.record, key, was)]
    try:
        asking = RequestDetails(by.actor.reason, by.now, by.new_id())
        return await write_changes(by.registry, by.actor, changes, asking=asking, planned=True, seen=seen)
    except ChangedMeanwhile:
        raise await _as_is_now(by, resource, key, was) from None
    except NameTaken:
        raise ObjectConflict(_NAME_TAKEN) from None


async def _as_is_now(
    by: Administration, resource: Resource, key: tuple[str, ...], seen: KeyedRecord | None
) -> Exception:
    """The reason for which a decision no longer holds."""
    now = await _stored(by.registry, resource, key)
    if now == seen:
        return ChangedMeanwhile("something that this rests on was changed at the same moment: try again")
    return ObjectChanged() if seen is not None else ObjectConflict(f"{resource.noun} of this key is there already")


async def _visible(by: Administration, resource: Resource, identifier: str) -> Any:  # noqa: ANN401 - of its kind
    """An object that the actor may know of, whatever its token allows."""
    key = key_of(identifier, resource.width)
    record = await _stored(by.registry, resource, key) if key is not None else None
    if record is None:
        raise ObjectNotFound
    everything = msgspec.structs.replace(by.actor, scopes=ALL_SCOPES)
    try:
        await _authorise_reading(by, everything, record)
    except Forbidden:
        raise ObjectNotFound from None
    return record


async def _authorise_reading(by: Administration, actor: ApiClient, record: KeyedRecord) -> None:
    thing = object_of(record)
    if actor.entity_id and thing.user_id and not thing.entity_id:  # a person is of every entity to which they belong
        held = await by.registry.directory.find(Membership, thing.user_id, actor.entity_id)
        thing = msgspec.structs.replace(thing, entity_id=actor.entity_id, belongs=held is not None)
    authorise(actor, "read", thing)


async def _refuse_strangers(by: Administration, resource: Resource, new: ParsedObject) -> None:
    """Refuse writes that are never allowed to a bound client.

    Another entity, and people of others, are refused in the same words as those that do not exist.
    """
    if not by.actor.entity_id:
        return
    named = dict(zip(resource.identity, new.entry.key, strict=False))
    own, other, *_ = *(named.get(side, "") for side in resource.sides), "", ""
    refuse_early(by.actor, "write", Object(kind=resource.kind, entity_id=own, other_entity_id=other))
    if resource.names_user:
        user = await by.registry.directory.user_by_name(named["user"])
        key = (user.user_id, by.actor.entity_id) if user is not None else None
        if key is None or not await by.registry.directory.read(Membership, [key]):
            raise InvalidObject([MemberFault("/user", f"nobody of this user name belongs to {by.actor.entity_id}")])
    if resource.names_user and other and not await _grants_anything(by.registry, other, own):
        raise InvalidObject([MemberFault("/client_entity", f"no entity of this identifier has granted {own} anything")])


async def _grants_anything(registry: Registry, client_entity: str, third_party: str) -> bool:
    between = {"client_entity_id": client_entity, "entity_id": third_party}
    return bool(await registry.directory.page(ThirdPartyGrant, between, limit=1))


async def _stored(registry: Registry, resource: Resource, key: tuple[str, ...]) -> Any:  # noqa: ANN401 - of its kind
    return await registry.directory.find(resource.record, *key)


async def _planned(by: Administration, new: ParsedObject) -> tuple[Change, ...]:
    """The changes of a directory file with this one entry."""
    try:
        prepared = await prepare_document(
            by.registry, by.passwords, new.document, new_user_id=by.new_user_id, rules=by.rules
        )
    except DirectoryError as error:
        raise new.unfit(error) from None
    return tuple(_dated(each, by.now) for each in prepared.changes)


def _dated(change: Change, now: float) -> Change:
    """A change with its moment, which SCIM clients read (RFC 7643 §3.1)."""
    if change.before is None or change.after is None or not hasattr(change.after, "changed_at"):
        return change
    return msgspec.structs.replace(change, after=msgspec.structs.replace(change.after, changed_at=int(now)))


def _whole(
    by: Administration,
    resource: Resource,
    record: KeyedRecord,
    users: Mapping[str, str],
    identities: Mapping[str, str],
    patch: Json,
) -> Json:
    """The members of an object after a patch.

    Without those that are shown only.
    """
    if not isinstance(patch, dict):
        raise InvalidObject([MemberFault("", "a JSON object is expected here: the members to change (RFC 7396)")])
    is_now = to_json_object(resource, record, users, identities, whole=True)
    current = {**is_now, "etag": by.tag(record)}
    faults = [
        MemberFault(f"/{name}", f"{name} never changes: leave it out")
        for name in READ_ONLY
        if _alters(patch, name, current)
    ]
    faults += [
        MemberFault(f"/{name}", f"{name} names the object: remove it, and add another one")
        for name in resource.identity
        if _alters(patch, name, current)
    ]
    if faults:
        raise InvalidObject(faults)
    given = {name: value for name, value in patch.items() if name not in READ_ONLY}
    number = is_now.get("identity_number")
    if number and given.get("identity_number") == mask_text(str(number)):
        del given["identity_number"]
    whole = merge_patch({name: value for name, value in is_now.items() if name not in READ_ONLY}, given)
    assert isinstance(whole, dict)  # noqa: S101 - merged from two objects
    return whole


def _alters(patch: Mapping[str, Json], name: str, current: Mapping[str, Json]) -> bool:
    return name in patch and patch[name] != current.get(name)
