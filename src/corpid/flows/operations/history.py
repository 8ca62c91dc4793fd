"""The history of an entity: changes of its records, the latest first (D57, D61)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory import approvals
from corpid.flows.directory.members import find_member, refuse_several
from corpid.flows.directory.person_names import name_as_known, name_people, read_people, read_requested_names
from corpid.flows.operations import audit
from corpid.rules.audit import ACTING_FOR, INVITED_PERSON, ROLE_PARTS, AuditAction, AuditEntry, AuditPart, AuditQuery
from corpid.rules.directory.access import DeploymentOperator, EntityAdministrator, Object, authorise
from corpid.rules.directory.access_texts import RequestNames
from corpid.rules.directory.memberships import name_outside, shown_name
from corpid.rules.directory.names import is_storable, label_invited, user_name
from corpid.rules.directory.records import Assignment, ChangeRequest, Entity, Service, ThirdPartyAssignment, User
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from corpid.stores.sql.registry import Registry

    _Row = Assignment | ThirdPartyAssignment

_ACCEPTED: Final = 1000
"""acceptances of an entity's invitations that are looked through, the last ones"""
_SOMEBODY: Final = phrase("Somebody")
_PARTS: Final = 5
"""how often a page looks further for entries that fit"""

_NOUNS: Final[Mapping[str, tuple[str, ...]]] = {
    "people": ("membership",),
    "access": ("assignment",),
    "third-parties": ("grant", "third_party_assignment"),
    "administrators": ("administrator", "provisioning_token"),
    "requests": ("approval",),
    "settings": ("entity",),
}
KINDS: Final[Mapping[str, tuple[AuditAction, ...]]] = {
    kind: tuple(action for action in AuditAction if action.partition(".")[0] in nouns) for kind, nouns in _NOUNS.items()
}
"""kind of change → its actions"""
_GIVING: Final = (
    AuditAction.ASSIGNMENT_ADD, AuditAction.ASSIGNMENT_UPDATE, AuditAction.THIRD_PARTY_ASSIGNMENT_ADD,
    AuditAction.THIRD_PARTY_ASSIGNMENT_UPDATE,
)  # fmt: skip
_EVERY: Final = tuple(action for actions in KINDS.values() for action in actions)

_SERVICE_AT: Final[Mapping[str, int]] = {"assignment": 2, "grant": 2, "third_party_assignment": 3}
"""noun of an action → the part of its object that names the service"""
_PEOPLE: Final = frozenset({"membership", "administrator", "assignment", "third_party_assignment", "access_review"})
"""nouns of actions whose object begins with a person; that of a whole review is an entity, which is nobody"""


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are asked for; empty members narrow nothing."""

    person: str = ""
    """a user name, or the identifier of a membership"""
    user_id: str = ""
    """a person who is known already, instead of `person`"""
    service: str = ""
    kind: str = ""
    """of KINDS"""
    since: int = 0
    """epoch seconds"""
    until: int = 0
    """epoch seconds, exclusive; 0: no end"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNames:
    """The names of what some entries are about, by identifier."""

    people: Mapping[str, str]
    """those who belong to the entity or did, and its third parties' people that act for it"""
    outside: frozenset[str]
    """of them the third parties' people"""
    user_names: Mapping[str, str]
    """what identifies them (D68)"""
    services: Mapping[str, str]
    entities: Mapping[str, str]
    clients: Mapping[str, str] = field(default_factory=dict)
    requests: approvals.ChangesWithNames = approvals.NO_CHANGES
    """what was asked for, of entries on requests"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The last change of each of some roles, by key."""

    entries: Mapping[tuple[str, ...], AuditEntry]
    names: HistoryNames


async def load_grants(
    registry: Registry, actor: EntityAdministrator, rows: Sequence[Assignment | ThirdPartyAssignment]
) -> Grants:
    """The givers and approvers of roles.

    A role that was given before its person accepted the invitation stands in the audit under the invitation, and an
    earlier one, of a membership that has ended since, under the person. Raises access.Forbidden, StoreUnavailable.
    Source: D57, D60, D61
    """
    found = await _find_giving(registry, actor, {row: "/".join(row.key) for row in rows})
    members = list(dict.fromkeys("/".join(row.key[:2]) for row in rows))
    accepted = await audit.read_latest(registry, (AuditAction.MEMBERSHIP_ACCEPT,), members, actor=actor)
    invited = {name: each.detail.get("invited_as", "") for name, each in accepted.items()}
    before = {row: "/".join((invited.get("/".join(row.key[:2]), ""), *row.key[1:])) for row in rows}
    given = await _find_giving(registry, actor, {row: name for row, name in before.items() if name[0] != "/"})
    found |= {row: each for row, each in given.items() if row not in found or found[row].number < each.number}
    return Grants(
        entries={row.key: entry for row, entry in found.items()}, names=await names(registry, actor, found.values())
    )


async def _find_giving(
    registry: Registry, actor: EntityAdministrator, objects: Mapping[_Row, str]
) -> dict[_Row, AuditEntry]:
    """The last change of each role, by its object in the audit."""
    found = await audit.read_latest(registry, _GIVING, list(dict.fromkeys(objects.values())), actor=actor)
    return {row: found[name] for row, name in objects.items() if name in found and _is_of(found[name], row)}


def _is_of(entry: AuditEntry, row: _Row) -> bool:
    """Return whether an entry is about a role.

    The objects of two roles are alike if their parts have slashes: then the members that were recorded tell.
    """
    if all("/" not in part for part in row.key):
        return True
    return all((entry.detail.get(name) or entry.after.get(name, "")) == getattr(row, name) for name in ROLE_PARTS)


async def find_last_sign_ins(
    registry: Registry, actor: EntityAdministrator, user_ids: Collection[str]
) -> dict[str, int]:
    """The last sign-ins of at most 100 members for the actor's entity.

    In epoch seconds, by person; without those who have none that is kept. Raises access.Forbidden, StoreUnavailable.
    Source: D84
    """
    authorise(actor, "read", Object(kind="audit", entity_id=actor.entity_id))
    return await registry.provisioning.last_sign_ins(actor.entity_id, user_ids)


async def changes(
    registry: Registry, actor: EntityAdministrator, wanted: HistoryFilter, *, before: int, limit: int
) -> AuditPart:
    """Changes that concern the actor's entity, the latest first.

    There may be fewer than `limit` although more follow: a call looks at some thousand entries. Raises AmbiguousName,
    access.Forbidden, StoreUnavailable. Source: D57, D61, D68
    """
    user_id = await _person(registry, actor, wanted.person) if wanted.person else wanted.user_id
    people = [user_id, *await _find_invited(registry, actor, user_id)] if user_id else [""]
    query = AuditQuery(
        entity_id=actor.entity_id,
        actions=KINDS.get(wanted.kind, _EVERY),
        since=wanted.since,
        before=before,
    )
    found: list[AuditEntry] = []
    for _ in range(_PARTS):
        part = await _read_part(registry, query, people, limit=limit, actor=actor)
        fitting = [each for each in part.entries if _fits(each, wanted)]
        if len(found) + len(fitting) > limit:
            kept = [*found, *fitting][:limit]
            return AuditPart(entries=kept, before=kept[-1].number)
        found += fitting
        query = msgspec.structs.replace(query, before=part.before)
        if len(found) == limit or not part.before:
            break
    return AuditPart(entries=found, before=query.before)


async def _find_invited(registry: Registry, actor: EntityAdministrator, user_id: str) -> list[str]:
    """The identifiers of invitations that somebody accepted (D60)."""
    query = AuditQuery(user_id=user_id, entity_id=actor.entity_id, actions=(AuditAction.MEMBERSHIP_ACCEPT,))
    accepted = (await audit.read_part(registry, query, limit=_ACCEPTED, actor=actor)).entries
    found = {each.detail.get("invited_as", "") for each in accepted if person_of(each) == user_id}
    return sorted(found - {""})


async def _read_part(
    registry: Registry, query: AuditQuery, people: Sequence[str], *, limit: int, actor: EntityAdministrator
) -> AuditPart:
    """Entries about any of some people; an empty identifier is no condition."""
    parts = [
        await audit.read_part(registry, msgspec.structs.replace(query, user_id=each), limit=limit, actor=actor)
        for each in people
    ]
    before = max(each.before for each in parts)
    entries = {entry.number: entry for part in parts for entry in part.entries if entry.number >= before}
    return AuditPart(entries=[entries[number] for number in sorted(entries, reverse=True)], before=before)


async def _person(registry: Registry, actor: EntityAdministrator, named: str) -> str:
    """The person of a membership, or of this user name.

    Of those who have left, that of the account. Raises AmbiguousName, also if it is the name of a member and that of
    somebody who has left.
    """
    stored = await registry.provisioning.member(named) if is_storable(named) else None
    found = await find_member(registry, actor.entity_id, named)
    meant = {found.user.user_id: found.name} if found is not None else {}
    if stored is not None and stored.membership.entity_id == actor.entity_id:
        meant[stored.user.user_id] = shown_name(stored.membership, stored.user)
    account = await audit.known_person(registry, _mapped(named))
    if meant and account not in meant:
        # They may have left.
        query = AuditQuery(user_id=account, entity_id=actor.entity_id, actions=_EVERY)
        if (await audit.read_part(registry, query, limit=1, actor=actor)).entries:
            meant[account] = _mapped(named)
    refuse_several(named, list(meant.values()))
    return next(iter(meant), account)


def _mapped(name: str) -> str:
    """A user name as it is compared (D51); what is none names nobody."""
    try:
        return user_name(name)
    except ValueError:
        return "-"


def _fits(entry: AuditEntry, wanted: HistoryFilter) -> bool:
    if wanted.until and entry.at >= wanted.until:
        return False
    return not wanted.service or service_of(entry) == wanted.service


def noun(entry: AuditEntry) -> str:
    """The kind of record of an entry, as its action says. Source: D57"""
    return entry.action.partition(".")[0]


def service_of(entry: AuditEntry) -> str:
    """The service of an entry, if it has one. Source: D57"""
    parts, at = entry.object.split("/"), _SERVICE_AT.get(noun(entry))
    return parts[at] if at is not None and len(parts) > at else ""


def person_of(entry: AuditEntry) -> str:
    """The identifier of an entry's person, if it has one. Source: D57"""
    return entry.object.partition("/")[0] if noun(entry) in _PEOPLE else ""


def acting_for(entry: AuditEntry) -> str:
    """The entity for which an administrator acted.

    Empty if it is one of two, and not recorded. The roles of a third party's people are that party's, except those that
    end with an authorisation. Source: D56
    """
    by_one = not entry.other_entity_id or noun(entry) == "third_party_assignment"
    return entry.detail.get(ACTING_FOR) or (entry.entity_id if by_one else "")


def identity_of(entry: AuditEntry, names: HistoryNames) -> str:
    """The user name or the address of an entry's person.

    Empty without one. Of somebody invited the address then, which ends at the first space. Source: D68
    """
    invited, _, _ = entry.detail.get(INVITED_PERSON, "").partition(" ")
    return label_invited(invited) if invited else names.user_names.get(person_of(entry), "")


async def change(registry: Registry, actor: EntityAdministrator, number: int) -> AuditEntry | None:
    """One change that concerns the actor's entity; None if there is none.

    Raises access.Forbidden, StoreUnavailable. Source: D57, D61
    """
    query = AuditQuery(entity_id=actor.entity_id, actions=_EVERY, before=number + 1)
    found = (await audit.read_part(registry, query, limit=1, actor=actor)).entries
    return found[0] if found and found[0].number == number else None


async def names(registry: Registry, actor: EntityAdministrator, entries: Iterable[AuditEntry]) -> HistoryNames:
    """The names of what some entries of the actor's entity are about.

    People of other entities who acted stay without a name; those who acted for this one have theirs when they have left.
    Raises StoreUnavailable. Source: D61
    """
    entries = list(entries)
    directory, own = registry.directory, actor.entity_id
    former = {person_of(each) for each in entries if each.entity_id == own} - {""}
    former |= {user_id for each in entries if acting_for(each) == own for user_id in _people_acting(each)}
    outside = {person_of(each) for each in entries if each.entity_id != own} - {""}
    actors = {user_id for each in entries for user_id in _people_acting(each)}
    users, held = await read_people(registry, own, actors | former | outside)
    invited: dict[str, str] = {user_id: _SOMEBODY for user_id in outside & users.keys() if users[user_id].placeholder}
    gone = outside - users.keys()
    invited |= await _name_accepted(registry, gone, {each.entity_id for each in entries if person_of(each) in gone})
    entity_ids = {each for entry in entries for each in (entry.entity_id, entry.other_entity_id)} - {""}
    service_ids = {service_of(each) for each in entries} | {
        each for entry in entries for value in (entry.before, entry.after) for each in _listed(value.get("services"))
    }
    services = await directory.read(Service, [(each,) for each in sorted(service_ids - {""})])
    entities = await directory.read(Entity, [(each,) for each in sorted(entity_ids)])
    return HistoryNames(
        people=invited | name_people(users, held, former=former, outside=outside),
        outside=frozenset(outside - former - held.keys()),
        user_names={
            user_id: name_as_known(users[user_id], held.get(user_id)).identity
            for user_id in (former | outside) & users.keys()
            if user_id in held or not users[user_id].placeholder
        },
        services={service_id: each.name for (service_id,), each in services.items()},
        entities={entity_id: each.name_for(own) for (entity_id,), each in entities.items()},
        requests=await approvals.load_changes(
            registry, actor, {each.object for each in entries if each.action in KINDS["requests"]}
        ),
    )


async def _name_accepted(registry: Registry, invited: Collection[str], entities: Iterable[str]) -> dict[str, str]:
    """The accounts of third parties' people, by the identifier of their invitation (D60)."""
    found: dict[str, str] = {}
    for entity_id in entities:
        query = AuditQuery(entity_id=entity_id, actions=(AuditAction.MEMBERSHIP_ACCEPT,))
        for entry in await registry.audit.latest(query, limit=_ACCEPTED):
            found[entry.detail.get("invited_as", "")] = person_of(entry)
    known = {each: found[each] for each in invited if each in found}
    users = await registry.directory.read(User, sorted({(each,) for each in known.values()}))
    return {each: name_outside(users[user_id,]) for each, user_id in known.items() if (user_id,) in users}


async def names_for_operator(
    registry: Registry, actor: DeploymentOperator, entries: Iterable[AuditEntry]
) -> HistoryNames:
    """Names for entries, as the console shows them.

    People by user name, also removed ones; `user_names` has those who can be looked at. Raises StoreUnavailable.
    Source: D53, D57, D68
    """
    entries = list(entries)
    requests = await _read_requests(registry, actor, entries)
    asked = [
        each for request in requests for change in request.changes for each in (change.before, change.after) if each
    ]

    def named_in_requests(*members: str) -> set[str]:
        return {str(getattr(each, member, "")) for each in asked for member in members}

    people = await audit.read_names(registry, entries, actor=actor)
    people |= await audit.name_people(registry, named_in_requests("user_id") - people.keys(), actor=actor)
    users = await registry.directory.read(User, [(each,) for each in sorted(people)])
    entity_ids = {each for entry in entries for each in (entry.entity_id, entry.other_entity_id)}
    entity_ids |= {entry.object for entry in entries if noun(entry) == "entity"}
    entity_ids |= named_in_requests("entity_id", "client_entity_id")
    service_ids = {service_of(each) for each in entries} | {
        each for entry in entries for value in (entry.before, entry.after) for each in _listed(value.get("services"))
    }
    service_ids |= {entry.object for entry in entries if noun(entry) == "service"} | named_in_requests("service_id")
    services = await registry.directory.read(Service, [(each,) for each in sorted(service_ids - {""})])
    entities = await registry.directory.read(Entity, [(each,) for each in sorted(entity_ids - {""})])
    client_ids = sorted({each.client_id for each in entries} - {""})
    clients = [await registry.clients.get(each) for each in client_ids]
    named = RequestNames(
        people=people,
        entities={entity_id: each.name_for("") for (entity_id,), each in entities.items()},
        services={service_id: each.name for (service_id,), each in services.items()},
    )
    there = {user.user_id for user in users.values()}
    return HistoryNames(
        people=people,
        outside=frozenset(),
        user_names={user.user_id: user.user_name for user in users.values() if not user.placeholder},
        services=named.services,
        entities=named.entities,
        clients={each.client_id: each.client_id for each in clients if each is not None},
        requests=approvals.ChangesWithNames(
            changes={each.request_id: each.changes for each in requests},
            names={
                each.request_id: msgspec.structs.replace(named, people=people | read_requested_names(each, there))
                for each in requests
            },
        ),
    )


async def _read_requests(
    registry: Registry, actor: DeploymentOperator, entries: Iterable[AuditEntry]
) -> Collection[ChangeRequest]:
    """The requests of some entries, if they are kept."""
    keys = {(each.object,) for each in entries if each.action in KINDS["requests"]}
    if not keys:
        return ()
    authorise(actor, "read", Object(kind="approval"))
    return (await registry.directory.read(ChangeRequest, keys)).values()


def _people_acting(entry: AuditEntry) -> list[str]:
    acting = (entry.actor, entry.detail.get("approved_by", ""))
    return [each.removeprefix("user:") for each in acting if each.startswith("user:")]


def _listed(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
