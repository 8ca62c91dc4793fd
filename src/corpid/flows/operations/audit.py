"""Reading, exporting and erasing audit entries (D53, D57, D58)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.actors import is_allowed
from corpid.flows.directory.lists import authorise_list
from corpid.flows.directory.person_names import read_names as read_known_names
from corpid.flows.directory.write import Refused, audit_event
from corpid.flows.operations import audit_seals
from corpid.rules.audit import (
    INVITED_PERSON,
    OF_ENTITY,
    PERSONAL_DETAILS,
    AuditAction,
    AuditEntry,
    AuditPart,
    AuditQuery,
)
from corpid.rules.directory.access import Actor, DeploymentOperator, EntityAdministrator, Object, authorise
from corpid.rules.directory.names import canonical, is_user_id, label_invited
from corpid.rules.directory.names import user_name as mapped
from corpid.rules.directory.records import Entity, Operator, User
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.rules.readers import suggestion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.flows.operations.audit_seals import SealVerification
    from corpid.flows.operations.jobs import JobProgress
    from corpid.flows.request_context import Provider
    from corpid.rules.jobs import Job
    from corpid.stores.sql.registry import Registry

_EXAMINED: Final = 2000
"""entries that one query of a program reads, whether they match or not"""
_NOBODY: Final = "-"
"""nobody's identifier"""
_ACCEPTED: Final = 10_000
"""invitations that one person has accepted, at most"""
_REMOVED_PEOPLE: Final = 10_000
"""how far back a removed person is looked for by name"""
_WHERE: Final = frozenset({"address", "device"})
"""details that say where somebody was"""
EXPORTED_AT_MOST: Final = 100_000
"""entries of one file"""
_EXPORTED_AT_ONCE: Final = 500


async def read_names(registry: Registry, entries: Iterable[AuditEntry], *, actor: Actor) -> dict[str, str]:
    """The user names of the people in some entries, by identifier.

    Of removed people those that the audit still has; of operators none for those who may read nothing about them. Who
    acts for one entity gets the names that it knows. Raises StoreUnavailable. Source: D53, D57, D61, D68
    """
    entries = list(entries)
    people = {part for entry in entries for part in _parts_of(entry)}
    if not actor.entity_id:
        return await name_people(registry, people, actor=actor)
    own, others = (
        {part for entry in entries if (entry.entity_id == actor.entity_id) is own for part in entry.object.split("/")}
        for own in (True, False)
    )
    return await read_known_names(registry, actor.entity_id, people, former=own, outside=others)


def people_of(entry: AuditEntry, names: Mapping[str, str]) -> dict[str, str]:
    """The names of the people in an entry, by identifier.

    Somebody invited is named as they were then. Source: D68
    """
    found = {part: str(names[part]) for part in _parts_of(entry) if part in names}
    invited = entry.detail.get(INVITED_PERSON)
    return found | ({entry.object.partition("/")[0]: str(label_invited(invited))} if invited else {})


async def name_people(registry: Registry, identifiers: Iterable[str], *, actor: Actor) -> dict[str, str]:
    """The user names of people, by identifier, as `read_names`. Source: D53, D57"""
    keys = [(each,) for each in sorted(identifiers) if each]
    hidden = set() if _reads_operators(actor) else (await registry.directory.read(Operator, keys)).keys()
    users = await registry.directory.read(User, keys)
    known = {
        user.user_id: canonical(user.user_name)
        for key, user in users.items()
        if key not in hidden and not user.placeholder
    }
    for (user_id,) in keys:
        if (user_id,) not in users and is_user_id(user_id):
            query = AuditQuery(object=user_id, actions=(AuditAction.USER_REMOVE,))
            for entry in await registry.audit.latest(query, limit=1):
                known |= {key: canonical(name) for key, name in _removed(entry).items()}
    return known


async def identify_person(registry: Registry, named: str) -> str:
    """The identifier of a person, also of a removed one.

    `named` is an identifier or a user name. Raises Refused if the audit cannot know whom that means. Source: D57
    """
    if is_user_id(named):
        return named
    user = await registry.directory.user_by_name(named)
    if user is not None:
        return user.user_id
    query = AuditQuery(actions=(AuditAction.USER_REMOVE,))
    removed: dict[str, str] = {}
    for entry in await registry.audit.latest(query, limit=_REMOVED_PEOPLE):
        removed |= _removed(entry)
    found = [user_id for user_id, name in removed.items() if _is_same_name(name, named)]
    if not found:
        raise Refused(
            f"there is no user {named!r}, and the audit has no removed one of that name: a removed one is found by "
            "identifier, too"
        )
    if len(found) > 1:
        raise Refused(f"{len(found)} removed people had the name {named!r}: name one by identifier: {', '.join(found)}")
    return found[0]


async def known_person(registry: Registry, named: str) -> str:
    """The identifier of a person, by identifier or user name.

    For programs: an unknown name costs the same look-up, and the result then names nobody. Raises
    StoreUnavailable. Source: D57, D59
    """
    if is_user_id(named):
        return named
    user = await registry.directory.user_by_name(named)
    return user.user_id if user is not None else _NOBODY


async def warn_of_unknown(registry: Registry, query: AuditQuery) -> tuple[str, ...]:
    """Sentences about entity and client of a query that do not exist.

    They may have existed before. Source: D57
    """
    warnings = []
    key = (query.entity_id,)
    if query.entity_id and not await registry.directory.read(Entity, [key]):
        warnings.append(f"There is no entity {query.entity_id!r} in the directory.")
    clients = registry.clients, registry.api_clients
    if query.client_id and not any([await kind.get(query.client_id) for kind in clients]):
        known = [client.client_id for kind in clients for client in await kind.list_all()]
        warnings.append(f"There is no client {query.client_id!r}{suggestion(query.client_id, known) or '.'}")
    return tuple(warnings)


async def read_part(registry: Registry, query: AuditQuery, *, limit: int, actor: Actor, until: float = 0) -> AuditPart:
    """The last entries that fit, the latest first.

    None is later than `until`, in epoch seconds, unless that is 0. No call looks at more than some thousand entries, so
    there may be fewer than `limit` although more follow. Of an actor who acts for one entity only what concerns it;
    addresses and devices are left out then. Of one who may read nothing about operators what concerns nobody of them.
    Raises access.Forbidden, StoreUnavailable. Source: D53, D57, D59, D61
    """
    authorise_list(actor, Object(kind="audit", entity_id=query.entity_id))
    if until and not query.before:
        query = msgspec.structs.replace(query, before=await first_after(registry, until))
    found = await registry.audit.part(query, limit=limit, examined=_EXAMINED)
    entries = [entry for entry in found.entries if not until or entry.at <= until]
    if actor.entity_id:
        entries = [_as_entity_reads(entry, query.entity_id) for entry in entries]
    return msgspec.structs.replace(found, entries=await leave_readable(registry, actor, entries))


async def read_entry(registry: Registry, number: int, *, actor: Actor) -> AuditEntry | None:
    """One entry, None if there is none that the actor may read.

    Raises access.Forbidden, StoreUnavailable. Source: D53, D57
    """
    found = (await read_part(registry, AuditQuery(before=number + 1), limit=1, actor=actor)).entries
    return found[0] if found and found[0].number == number else None


async def leave_readable(registry: Registry, actor: Actor, entries: list[AuditEntry]) -> list[AuditEntry]:
    """The entries that an actor may read.

    Who reads nothing about operators sees of an entry that one of them wrote neither address nor device. Raises
    StoreUnavailable. Source: D53, D82
    """
    if _reads_operators(actor):
        return entries
    people = {(part,) for entry in entries for part in _parts_of(entry)} - {("",)}
    operators = {key[0] for key in await registry.directory.read(Operator, sorted(people))}
    found = []
    for entry in entries:
        kind, _, author = entry.actor.partition(":")
        about = {*entry.object.split("/"), *([author] if kind == "user" else [])}
        operates = entry.action.startswith("operator.") or not operators.isdisjoint(about)
        if is_allowed(actor, "read", Object(kind="audit", entity_id=entry.entity_id, operates=operates)):
            found.append(_without(entry, _WHERE) if kind == "operator" else entry)
    return found


def _reads_operators(actor: Actor) -> bool:
    """Return whether an actor reads of operators what it reads of others."""
    return not isinstance(actor, DeploymentOperator) or is_allowed(actor, "read", Object(kind="audit", operates=True))


def _parts_of(entry: AuditEntry) -> tuple[str, ...]:
    """Everything in an entry that may identify a person."""
    actors = (entry.actor, entry.detail.get("approved_by", ""))
    return (*(each.partition(":")[2] for each in actors), *entry.object.split("/"))


async def read_latest(
    registry: Registry, actions: Sequence[AuditAction], objects: Sequence[str], *, actor: EntityAdministrator
) -> dict[str, AuditEntry]:
    """The last entries of objects with these actions, by object.

    Only what concerns the actor's entity. Raises access.Forbidden, StoreUnavailable. Source: D57, D61
    """
    own = actor.entity_id
    authorise(actor, "read", Object(kind="audit", entity_id=own))
    found = await registry.audit.latest_of(objects, actions)
    return {each.object: _as_entity_reads(each, own) for each in found if own in (each.entity_id, each.other_entity_id)}


def _as_entity_reads(entry: AuditEntry, entity_id: str) -> AuditEntry:
    """An entry without where a person was, and whom another entity invited (D61, D68)."""
    own = OF_ENTITY if entry.entity_id == entity_id else frozenset[str]()
    return _without(entry, frozenset(PERSONAL_DETAILS) - own)


def _without(entry: AuditEntry, hidden: frozenset[str]) -> AuditEntry:
    kept = {name: value for name, value in entry.detail.items() if name not in hidden}
    return msgspec.structs.replace(entry, detail=kept)


async def erase_person(registry: Registry, named: str, *, actor: Actor, now: float) -> tuple[str, int]:
    """Erase the details of every entry of a removed person.

    What they did, and what was done to them. Their identifier, and how many entries lost their details. Raises Refused
    while the person exists, access.Forbidden, StoreUnavailable. Source: D57, docs/decisions/0015
    """
    authorise(actor, "write", Object(kind="deployment"))
    user_id = await identify_person(registry, named)
    if await registry.directory.user(user_id) is not None:
        raise Refused(f"{named} is in the directory: remove them first, since their changes go on being recorded")
    return user_id, await erase_details(registry, user_id, actor=actor, now=now)


async def erase_details(registry: Registry, user_id: str, *, actor: Actor, now: float) -> int:
    """Erase the details of a removed person's entries.

    Also those of invitations that they accepted, which had identifiers of their own until then. The number of entries.
    Raises access.Forbidden, StoreUnavailable. Source: D57, D60, docs/decisions/0015
    """
    authorise(actor, "write", Object(kind="deployment"))
    accepted = await registry.audit.latest(
        AuditQuery(user_id=user_id, actions=(AuditAction.MEMBERSHIP_ACCEPT,)), limit=_ACCEPTED
    )
    invited = {entry.detail.get("invited_as", "") for entry in accepted if entry.object.startswith(f"{user_id}/")}
    erased = 0
    for each in (*sorted(invited - {""}), user_id):
        event = audit_event(actor, AuditAction.AUDIT_ERASE, each)
        erased += await registry.retention.erase(event, AuditQuery(user_id=each), now=now)
    return erased


def _removed(entry: AuditEntry) -> dict[str, str]:
    name = entry.before.get("user_name")
    return {entry.object: name} if isinstance(name, str) else {}


def _is_same_name(name: str, typed: str) -> bool:
    try:
        return mapped(name) == mapped(typed)
    except ValueError:
        return False


async def start_verification(provider: Provider, actor: Actor) -> Job:
    """Start a comparison of the audit with its seals.

    Its result is a SealVerification. Raises access.Forbidden, StoreUnavailable. Source: D58
    """
    registry = provider.registry

    async def verify(progress: JobProgress) -> str:
        last = await registry.seals.last()
        progress.total = 0 if last is None else last.number

        def note(seal: int) -> None:
            progress.done = seal

        found = await audit_seals.verify(registry, actor, now=provider.clock(), verified=note)
        return msgspec.json.encode(found).decode()

    return await provider.jobs.start(actor, "audit verification", verify)


class ExportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that are exported: those that fit `query`, until a moment."""

    query: AuditQuery
    until: int
    """epoch seconds"""
    at: float
    """when they were asked for"""
    filters: dict[str, str]
    """time range and filters as they were typed, for the record"""


async def record_export(registry: Registry, actor: DeploymentOperator, wanted: ExportQuery) -> None:
    """Record an export, before it is made. Raises access.Forbidden, StoreUnavailable. Source: D53, D57"""
    authorise(actor, "read", Object(kind="audit export"))
    filters = "; ".join(f"{name} {value}" for name, value in wanted.filters.items()) or "none"
    event = audit_event(actor, AuditAction.AUDIT_EXPORT, "", filters=filters)
    await registry.audit.write(event, now=wanted.at)


async def export_entries(registry: Registry, actor: DeploymentOperator, wanted: ExportQuery) -> AsyncIterator[bytes]:
    """Return a recorded export as JSON lines.

    The first line has the range, the filters and the result of comparing its entries with their seals; then come the
    entries, the latest first; the last line has their number, and where the next export goes on if there are more than
    EXPORTED_AT_MOST. Memory holds some hundred entries. Raises access.Forbidden, StoreUnavailable. Source: D53, D57,
    D58
    """
    authorise(actor, "read", Object(kind="audit export"))
    verified, is_partial = await _verify_range(registry, actor, wanted)
    first = {
        "export": "corpid audit entries",
        "version": 1,
        "at": int(wanted.at),
        "filters": wanted.filters,
        "verification": {
            "found": verified.found,
            "findings": [each.text for each in verified.findings],
            "seals": verified.seals,
            "entries": verified.entries,
            "sealed_to": verified.sealed_to,
            "partial": is_partial,
        },
    }
    return _export_lines(registry, actor, wanted, first)


async def _export_lines(
    registry: Registry, actor: DeploymentOperator, wanted: ExportQuery, first: dict[str, Any]
) -> AsyncIterator[bytes]:
    yield _export_line(first)
    count, before = 0, 0
    while count < EXPORTED_AT_MOST:
        query = msgspec.structs.replace(wanted.query, before=before)
        limit = min(_EXPORTED_AT_ONCE, EXPORTED_AT_MOST - count)
        part = await read_part(registry, query, limit=limit, actor=actor, until=wanted.until)
        names = await read_names(registry, part.entries, actor=actor)
        yield b"".join(
            _export_line({"entry": msgspec.structs.asdict(entry), "people": people_of(entry, names)})
            for entry in part.entries
        )
        count, before = count + len(part.entries), part.before
        if not before:
            break
        await asyncio.sleep(0)
    yield _export_line({"end": count, "next": before or None})


def _export_line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


async def first_after(registry: Registry, until: float) -> int:
    """The number before which entries are not later than a moment.

    Some of them are a little later, as clocks of servers differ. Raises StoreUnavailable.
    """

    async def at(number: int) -> float | None:
        found = await registry.audit.between(after=number, limit=1)
        return found[0].at if found else None

    return await _find_last_before(at, until + CLOCKS_APART_SECONDS) + 1


async def _verify_range(
    registry: Registry, actor: DeploymentOperator, wanted: ExportQuery
) -> tuple[SealVerification, bool]:
    """The comparison with the range's seals, and whether it is partial."""

    async def at(number: int) -> float | None:
        found = await registry.seals.page(after=number, limit=1)
        return found[0].at if found else None

    # A seal is made after its entries: the one that covers the last moment may be the first after it.
    after = await _find_last_before(at, wanted.query.since - 1) if wanted.query.since else 0
    last = await _find_last_before(at, wanted.until) + 1
    most = max(min(last - after, audit_seals.VERIFIED_AT_ONCE), 1)
    return await audit_seals.verify(
        registry, actor, now=wanted.at, after=after, most=most
    ), last - after > audit_seals.VERIFIED_AT_ONCE


async def _find_last_before(at: Callable[[int], Awaitable[float | None]], moment: float) -> int:
    """The lowest number after which every row is later.

    Rows are numbered in the order of time. Some dozens of reads.
    """
    high = 1
    while (found := await at(high)) is not None and found <= moment:
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        found = await at(middle)
        if found is not None and found <= moment:
            low = middle + 1
        else:
            high = middle
    return low
