"""Names of people by identifier, for one entity (D61, D68)."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from corpid.rules.directory.access_texts import GONE, name_actor
from corpid.rules.directory.memberships import (
    Member,
    identity,
    member_full_name,
    name_outside,
    placeholder,
    shown_account,
)
from corpid.rules.directory.names import canonical, label_identity, label_invited
from corpid.rules.directory.records import (
    ADMINISTRATOR_LEVELS,
    Administrator,
    Change,
    ChangeRequest,
    Membership,
    RequestedPerson,
    User,
    names_user,
)
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.rules.directory.access import Actor
    from corpid.stores.sql.directory import Directory
    from corpid.stores.sql.registry import Registry


async def read_names(
    registry: Registry,
    entity_id: str,
    members: Collection[str],
    *,
    former: Collection[str] = (),
    outside: Collection[str] = (),
) -> dict[str, str]:
    """Return the names of people, as an entity may see them.

    `members` who do not belong to it have no name. `former` belonged to it, if they no longer do; those `outside` act
    for it for a third party, and have only their own name. Nobody without a name is returned. Raises
    StoreUnavailable. Source: D61, D68
    """
    users, held = await read_people(registry, entity_id, {*members, *former, *outside})
    return name_people(users, held, former=former, outside=outside)


def name_people(
    users: Mapping[str, User],
    held: Mapping[str, Membership],
    *,
    former: Collection[str] = (),
    outside: Collection[str] = (),
) -> dict[str, str]:
    """Return the names of people whom `read_people` has read.

    The rest as in `read_names`. Source: D61, D68
    """
    found: dict[str, str] = {}
    for user_id, user in users.items():
        membership = held.get(user_id)
        if membership is not None or (user_id in former and not user.placeholder):
            found[user_id] = label_person(name_as_known(user, membership))
        elif user_id in outside:
            found[user_id] = name_outside(user)
    return {user_id: name for user_id, name in found.items() if name}


async def name_actors(registry: Registry, entity_id: str, actors: Iterable[str], *, reader: Actor) -> dict[str, str]:
    """Return who acted on records of an entity, by actor.

    `reader` is told as much as they may know: those of the entity what pages say, others every person by their account,
    and programs as in the audit. A removed person is GONE. Raises StoreUnavailable. Source: D53, D61, D68
    """
    known = set(actors) - {""}
    people = {each: each.partition(":")[2] for each in known if each.startswith(("user:", "operator:"))}
    names = await read_names(registry, entity_id, (), former=set(people.values()))
    if reader.entity_id:
        return {each: name_actor(each, names) for each in known}
    users, _ = await read_people(registry, entity_id, set(people.values()) - names.keys())
    names |= {user_id: shown_account(user) for user_id, user in users.items()}
    return {each: names.get(people[each], GONE) if each in people else each for each in known}


async def read_requested_people(
    registry: Registry, entity_id: str, changes: Iterable[Change], requester: str
) -> tuple[RequestedPerson, ...]:
    """Return the people of some changes, and who asks for them.

    As the entity knows them now. `requester` is named as in the audit. Somebody whom the changes invite is known by
    their address. Raises StoreUnavailable. Source: D68
    """
    kind, _, identifier = requester.partition(":")
    wanted = {identifier} if kind == "user" else set()
    invited: dict[str, Membership] = {}
    switched: set[tuple[str, ...]] = set()
    for change in changes:
        record = change.record
        if getattr(record, "entity_id", "") == entity_id:  # of a third party's people it knows the name only
            wanted.add(str(getattr(record, "user_id", "")))
        if isinstance(record, Membership) and record.invited:
            invited[record.user_id] = record
        if isinstance(record, Membership) and isinstance(change.before, Membership):
            switched |= {record.key} if change.before.enabled != record.enabled else set()
    users, held = await read_people(registry, entity_id, wanted)
    levels = (await registry.directory.read(Administrator, switched)).values() if switched else ()
    people = {user_id: placeholder(each) for user_id, each in invited.items()} | users
    found = {user_id: name_as_known(user, (invited | held).get(user_id)) for user_id, user in people.items()}
    found |= {each.user_id: replace(found[each.user_id], level=each.level) for each in levels if each.user_id in found}
    return tuple(found[user_id] for user_id in sorted(found))


async def read_user_names(registry: Registry, records: Iterable[msgspec.Struct]) -> dict[str, str]:
    """The user names, by identifier, of the people whom records are about.

    Raises StoreUnavailable. Source: D51
    """
    ids = {getattr(each, "user_id", "") for each in records if names_user(type(each))}
    users = await registry.directory.read(User, [(user_id,) for user_id in sorted(ids)])
    return {user.user_id: user.user_name for user in users.values()}


async def read_members(directory: Directory, keys: Collection[tuple[str, ...]]) -> dict[tuple[str, ...], Member]:
    """Members by the keys of their memberships.

    Those who are gone are left out. Raises StoreUnavailable. Source: D61
    """
    users = await directory.read(User, {key[:1] for key in keys})
    held = await directory.read(Membership, {*keys})
    return {key: Member(membership=held[key], user=users[key[:1]]) for key in keys if key in held and key[:1] in users}


async def read_invited(
    registry: Registry, records: Iterable[msgspec.Struct], names: Mapping[str, str]
) -> dict[str, str]:
    """Return the addresses of invited people of some records, by identifier.

    `names` are user names; that of somebody invited is their identifier. Raises StoreUnavailable. Source: D68
    """
    rows: Iterable[Any] = (each for each in records if names_user(type(each)) and hasattr(each, "entity_id"))
    people = {each.user_id: each.entity_id for each in rows}
    invited = sorted((user_id, entity) for user_id, entity in people.items() if names.get(user_id) == user_id)
    found = await registry.directory.read(Membership, invited) if invited else {}
    return {each.user_id: identity(each, placeholder(each)) for each in found.values()}


async def name_subjects(
    registry: Registry, records: Collection[msgspec.Struct], names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """User names of people of some records, of somebody invited the address.

    As commands name what they change; `names` as in `read_invited`, if they were read before. Raises
    StoreUnavailable. Source: D68
    """
    names = await read_user_names(registry, records) if names is None else names
    invited = await read_invited(registry, records, names)
    return {**names, **{user_id: str(label_invited(address)) for user_id, address in invited.items()}}


async def read_people(
    registry: Registry, entity_id: str, people: Collection[str]
) -> tuple[dict[str, User], dict[str, Membership]]:
    """People and their memberships of an entity, by identifier.

    Raises StoreUnavailable. Source: D61
    """
    wanted = sorted({*people} - {""})
    users = await registry.directory.read(User, [(user_id,) for user_id in wanted])
    held = await registry.directory.read(Membership, [(user_id, entity_id) for user_id in wanted])
    return (
        {user_id: user for (user_id,), user in users.items()},
        {user_id: membership for (user_id, _), membership in held.items()},
    )


def name_as_known(user: User, membership: Membership | None) -> RequestedPerson:
    """A person as the entity of a membership knows them, or did. Source: D68"""
    if membership is None:
        return RequestedPerson(user_id=user.user_id, identity=canonical(user.user_name), name=user.name)
    return RequestedPerson(
        user_id=user.user_id,
        identity=identity(membership, user),
        name=member_full_name(membership, user),
        invited=membership.invited,
        membership_id=membership.membership_id,
    )


def label_person(person: RequestedPerson) -> str:
    """A person in words, as `memberships.shown_name`, with the recorded level. Source: D68"""
    label = label_identity(person.identity, person.name, invited=person.invited)
    return (
        phrase("{person}, {level}", person=label, level=ADMINISTRATOR_LEVELS[person.level]) if person.level else label
    )


def read_requested_names(request: ChangeRequest, there: Container[str] | None = None) -> dict[str, str]:
    """The names of a request's people when it was made, by identifier.

    Accounts that are not among those who are `there` are marked: somebody else can have their names by now. None in a
    request of an earlier version. Source: D68
    """
    return {
        each.user_id: label_person(each)
        if there is None or each.invited or each.user_id in there
        else phrase("(removed) {person}", person=label_person(each))
        for each in request.people
    }


class NameChanges(msgspec.Struct, frozen=True, kw_only=True):
    """People of a change request who are known by other names now."""

    people: Mapping[str, str]
    """the names now, by identifier; of those who are gone the names then"""
    changed: tuple[tuple[str, str], ...]
    """the names then (empty: not recorded) and now (empty: gone), of those whose name differs"""
    gone: frozenset[str]
    """those who are not there any more, such as somebody invited who has accepted, or who left, even if they are back"""
    redirected: bool
    """whether an invitation goes to another address now"""
    digest: str
    """of the names now: what an approver was shown"""


async def compare_names(registry: Registry, request: ChangeRequest) -> NameChanges:
    """Compare the names in a request with those when it was made.

    Raises StoreUnavailable. Source: D68
    """
    changes = request.changes
    people = await read_requested_people(registry, request.entity_id, changes, request.requester)
    then = {each.user_id: each for each in request.people}
    names = {each.user_id: label_person(each) for each in people}
    concerned = {change.key[0] for change in changes}
    left = {
        each.user_id
        for each in people
        if each.user_id in concerned
        and each.user_id in then
        and then[each.user_id].membership_id not in ("", each.membership_id)
    }
    there = names.keys() - left
    gone = {user_id: name for user_id, name in read_requested_names(request, names).items() if user_id not in there}
    labels_then = {each.user_id: label_person(each) for each in request.people}
    differing = [
        each for each in people if each.user_id in there and names[each.user_id] != labels_then.get(each.user_id, "")
    ]
    return NameChanges(
        people=names | gone,
        changed=(
            *((labels_then.get(each.user_id, ""), names[each.user_id]) for each in differing),
            *((name, "") for name in gone.values()),
        ),
        gone=frozenset(gone),
        redirected=any(
            each.user_id in then and each.invited and then[each.user_id].identity != each.identity for each in differing
        ),
        digest=digest_names(people),
    )


def digest_names(shown: Iterable[object]) -> str:
    """A digest of people's names, and what stands beside them.

    To compare what somebody was shown when they decided. Source: D68
    """
    return sha256(msgspec.json.encode(list(shown), enc_hook=str)).hexdigest()[:32]
