"""Grants to third parties: offered, accepted, declined, narrowed and ended (D56, D61).

For the administrators of either entity changes are planned here, and `write.write_changes` writes or requests them.
Operators' commands write at once (`offer_grant`, `decide_grant`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.apply import SETS, ApplyResult, carry_out, prepare_entry
from corpid.flows.directory.lists import (
    ListPage,
    RowFilter,
    find_entity,
    find_service,
    format_place,
    list_records,
    parse_place,
    pick_one,
    search_page,
)
from corpid.flows.directory.person_names import name_subjects
from corpid.flows.directory.write import Refused, check_changes, decide_for, read_grants, require_reason, write_changes
from corpid.rules.audit import AuditAction
from corpid.rules.directory import memberships
from corpid.rules.directory.access import Actor, EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.differences import difference
from corpid.rules.directory.entity_choice import search_words
from corpid.rules.directory.lists import ENTITIES, GRANTS, INDEXED_CHARACTERS, SERVICES
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.plan import with_stored_values
from corpid.rules.directory.records import (
    Change,
    Entity,
    GrantState,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.third_parties import AuthorisationSide, AuthorisationState, narrows, state_of, without_grant
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from corpid.outbound.passwords import Passwords
    from corpid.stores.sql.registry import Registry

MOST_FOUND: Final = 8
"""organisations of one name"""
_MOST_SERVICES: Final = 1000
_SIGN_INS: Final = 50
"""of a person that are looked through for the last one for a client entity"""
_AT_ONCE: Final = 200
_MOST: Final = 1000
"""grants between two entities for one service that are looked through, and roles under them that are shown"""


class NoGrant(Refused):
    """No such grant or role, or none the actor may see."""


class Authorisation(msgspec.Struct, frozen=True, kw_only=True):
    """A grant with the records that it names."""

    grant: ThirdPartyGrant
    client_entity: Entity
    third_party: Entity
    service: Service


class ThirdPartyRole(msgspec.Struct, frozen=True, kw_only=True):
    """A third party's role as either entity sees it (D61)."""

    row: ThirdPartyAssignment
    name: str
    """for the client entity the person's own name; empty if it may not know it"""
    signed_in_at: int
    """when the person last signed in to the service for the third party, in epoch seconds; 0: not known"""


class RoleOfGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A role of a third party's person, with what it rests on."""

    given: ThirdPartyRole
    client_entity: Entity
    service: Service
    under: Authorisation | None
    """an accepted grant that it fits"""


class GrantFilter(RowFilter, frozen=True, kw_only=True):
    """A grant by its key, as far as it is known."""

    client_entity: str
    third_party: str
    service: str


async def find_organisations(registry: Registry, actor: Actor, text: str) -> list[Entity]:
    """Return the enabled entities of exactly this number or name.

    Letters count alike in either case. Nobody can list entities with it. Raises access.Forbidden, StoreUnavailable.
    Source: D56
    """
    authorise(actor, "read", Object(kind="grant", entity_id=actor.entity_id))
    wanted = text.strip()
    if not wanted or not is_storable(wanted):
        return []
    keys = {(wanted,), (wanted.upper(),)}
    found = {each.key: each for each in (await registry.directory.read(Entity, keys)).values()}
    first = " ".join(search_words(wanted)) + "\n"
    named = await registry.lists.find(ENTITIES, order="name", beginning=first[:INDEXED_CHARACTERS], limit=MOST_FOUND)
    found |= {each.key: each for each in named if " ".join(search_words(each.name)) + "\n" == first}
    return [each for each in found.values() if each.enabled]


async def list_services(registry: Registry, actor: Actor) -> list[Service]:
    """Return the enabled services that allow third parties, by name.

    Raises access.Forbidden, StoreUnavailable. Source: R-14.1, R-21
    """
    authorise(actor, "read", Object(kind="service"))
    found = await registry.lists.find(SERVICES, limit=_MOST_SERVICES)
    return sorted((each for each in found if each.enabled and each.third_parties), key=lambda each: each.name)


async def list_authorisations(
    registry: Registry,
    actor: Actor,
    *,
    given: bool,
    other: str = "",
    state: GrantState | None = None,
    after: str = "",
    limit: int,
) -> ListPage[Authorisation]:
    """List what the actor's entity has granted (`given`), or was granted.

    `other` narrows to the other side, `state` to grants in it. Raises Refused, access.Forbidden, StoreUnavailable.
    Source: D56, D61
    """
    own = actor.entity_id
    sides = ("client_entity_id", "entity_id") if given else ("entity_id", "client_entity_id")
    narrowed = {sides[0]: own, sides[1]: other, "state": state or ""}
    where = {name: value for name, value in narrowed.items() if value}
    page = await list_records(registry, actor, GRANTS, where, after=after, limit=limit)
    return msgspec.structs.replace(page, found=tuple(await _with_names(registry, page.found)))


async def find_authorisation(registry: Registry, actor: Actor, key: tuple[str, ...]) -> Authorisation:
    """Return one grant. Raises NoGrant, StoreUnavailable. Source: D56, D61"""
    try:
        authorise(actor, "read", Object(kind="grant", entity_id=key[0], other_entity_id=key[1]))
    except Forbidden:
        raise NoGrant(phrase("there is no such authorisation")) from None
    found = await _with_names(registry, (await registry.directory.read(ThirdPartyGrant, [key])).values())
    if not found:
        raise NoGrant(phrase("there is no such authorisation"))
    return found[0]


async def plan_terms(
    registry: Registry,
    actor: Actor,
    was: ThirdPartyGrant | ThirdPartyAssignment | None,
    wanted: ThirdPartyGrant | ThirdPartyAssignment,
) -> tuple[Change, ...]:
    """Plan a grant or a role under one, or other terms.

    No change if nothing differs. Terms of a grant within the accepted ones are effective at once; others make it an
    offer again. Raises Refused with every fault, access.Forbidden, StoreUnavailable. Source: D56, D75, R-21
    """
    service = await registry.directory.find(Service, wanted.service_id)
    becomes = wanted if service is None else with_stored_values(wanted, service)
    if isinstance(becomes, ThirdPartyGrant):
        becomes = msgspec.structs.replace(becomes, state="offered")
    change = narrow_or_offer(Change(was, becomes))
    if change is None or becomes == was:
        return ()
    await check_changes(registry, actor, [change])
    return (change,)


async def count_roles_ending(registry: Registry, actor: Actor, grant: ThirdPartyGrant) -> int:
    """Return how many roles end with a grant, at most a thousand.

    Raises access.Forbidden, StoreUnavailable. Source: D56
    """
    authorise(actor, "read", Object(kind="grant", entity_id=grant.client_entity_id, other_entity_id=grant.entity_id))
    return len(await list_roles_ending(registry, grant))


async def list_roles(
    registry: Registry, actor: Actor, grant: ThirdPartyGrant, *, after: str, limit: int
) -> ListPage[ThirdPartyRole]:
    """List the roles of the third party's people under a grant.

    There may be fewer than `limit` although more follow. Raises Refused, access.Forbidden, StoreUnavailable. Source:
    D56, D61
    """
    _authorise_reading(actor, grant.entity_id, grant.client_entity_id)
    where = dict(zip(("client_entity_id", "entity_id", "service_id"), grant.key[:3], strict=True))
    page = await search_page(
        lambda start, limit: registry.directory.page(ThirdPartyAssignment, where, after=parse_place(start, 7), limit=limit),
        lambda row: format_place(row.key), grant.fits, after=after, at_once=_AT_ONCE, limit=limit,
    )  # fmt: skip
    return ListPage(found=tuple(await _with_people(registry, actor, page.found)), after=page.after)


async def list_held_roles(
    registry: Registry, actor: EntityAdministrator, client_entity_id: str, people: Collection[str], *, today: str
) -> list[tuple[ThirdPartyAssignment, Service]]:
    """List the present roles of the actor's people for a client entity.

    Those that have not ended; `today` as in a record. Raises access.Forbidden, StoreUnavailable. Source: D54, D56
    """
    _authorise_reading(actor, actor.entity_id, client_entity_id)
    rows = await registry.directory.third_party_roles(actor.entity_id, client_entity_id, people)
    held = [row for row in rows if row.end_date >= today]
    services = await registry.directory.read(Service, {(row.service_id,) for row in held})
    return [(row, services[row.service_id,]) for row in held if (row.service_id,) in services]


async def find_role(registry: Registry, actor: Actor, key: tuple[str, ...]) -> RoleOfGrant:
    """Return a role of a third party's person.

    Raises NoGrant, StoreUnavailable. Source: D56, D61
    """
    try:
        _authorise_reading(actor, key[1], key[2])
    except Forbidden:
        raise NoGrant(phrase("there is no such role")) from None
    directory = registry.directory
    row = await directory.find(ThirdPartyAssignment, *key)
    if row is None:
        raise NoGrant(phrase("there is no such role"))
    held = await read_grants(directory, (row.client_entity_id, row.entity_id, row.service_id))
    allowing = sorted((each for each in held if each.allows(row)), key=lambda each: not each.covers(row))
    under = await _with_names(registry, allowing[:1])
    clients, of = (row.client_entity_id,), (row.service_id,)
    return RoleOfGrant(
        given=(await _with_people(registry, actor, [row]))[0],
        client_entity=(await directory.read(Entity, [clients]))[clients],
        service=(await directory.read(Service, [of]))[of],
        under=under[0] if under else None,
    )


async def offer_grant(
    registry: Registry,
    passwords: Passwords,
    wanted: GrantFilter,
    terms: Mapping[str, object],
    *,
    actor: Actor,
    accepted: bool = False,
    dry_run: bool = False,
) -> ApplyResult:
    """Offer a grant, or other terms of one.

    `terms` as in a directory file, None for those not given; `accepted` speaks for the third party, too. Terms within
    the accepted ones are effective at once; others make it an offer again, with a remark. Raises Refused with every
    fault, access.Forbidden, Conflict, StoreUnavailable. Source: D56, R-21
    """
    await _check_names(registry, wanted, actor)
    row = {**msgspec.structs.asdict(wanted), **terms, "state": "accepted" if accepted else "offered"}
    prepared = await prepare_entry(registry, passwords, "third_party.grants", None, row)
    changes = [
        made for change in prepared.changes for made in [change if accepted else narrow_or_offer(change)] if made
    ]
    remarks = list(prepared.warnings)
    for change in changes:
        if (getattr(change.before, "state", ""), getattr(change.after, "state", "")) == ("accepted", "offered"):
            remark = (
                f"{change.key[1]} has accepted less than this, so nothing of it is effective until it accepts again: "
                "offer it under another ref to keep what was accepted"
            )
            remarks.append(FileProblem(0, remark))
    if not accepted:
        changes = [decide_for(each, actor, AuthorisationSide.CLIENT_ENTITY) for each in changes]
    made = msgspec.structs.replace(prepared, changes=tuple(changes), warnings=tuple(remarks))
    return await carry_out(registry, made, actor=actor, verbs=SETS, dry_run=dry_run)


def narrow_or_offer(change: Change) -> Change | None:
    """Turn wider terms into an offer.

    Those within the accepted ones are effective at once.

    None if nothing changes. Source: D56
    """
    was, becomes = change.before, change.after
    if not isinstance(was, ThirdPartyGrant) or not isinstance(becomes, ThirdPartyGrant):
        return change
    kept = msgspec.structs.replace(becomes, state=was.state)
    if kept == was:
        return None
    return Change(was, kept) if narrows(was, kept) else change


async def decide_grant(
    registry: Registry,
    wanted: GrantFilter,
    decision: Literal["accept", "decline", "end"],
    *,
    actor: Actor,
    dry_run: bool = False,
) -> ApplyResult:
    """Accept or decline an offer, or end a grant or offer.

    The third party accepts and declines; it is effective from now. The roles of the third party's people end with a
    grant, except those that another accepted grant allows. Raises Refused if there is none or more than one, or a
    command that ends one gives no reason, access.Forbidden, Conflict, StoreUnavailable. Source: D54, D56
    """
    accepts, ends = decision == "accept", decision == "end"
    if not accepts and not dry_run:
        require_reason(actor)
    grant = await find_grant(registry, wanted, actor, offered_only=not ends)
    change = Change(grant, msgspec.structs.replace(grant, state="accepted") if accepts else None)
    ended = [] if accepts else await list_roles_ending(registry, grant)
    if not dry_run:
        side = AuthorisationSide.CLIENT_ENTITY if ends else AuthorisationSide.THIRD_PARTY
        await write_changes(registry, actor, [decide_for(change, actor, side)], planned=True)
    names = await name_subjects(registry, ended)
    shown = tuple(difference(each, names) for each in (*(Change(row, None) for row in ended), change))
    return ApplyResult(differences=shown, warnings=(), written=not dry_run)


async def list_roles_ending(registry: Registry, grant: ThirdPartyGrant) -> list[ThirdPartyAssignment]:
    """The roles that end with a grant, of the first thousand.

    Raises StoreUnavailable. Source: D56
    """
    where = dict(zip(("client_entity_id", "entity_id", "service_id"), grant.key[:3], strict=True))
    others = await read_grants(registry.directory, grant.key[:3])
    rows = await registry.directory.page(ThirdPartyAssignment, where, limit=_MOST)
    return without_grant(grant, others, rows)


async def _with_names(registry: Registry, grants: Iterable[ThirdPartyGrant]) -> list[Authorisation]:
    found = list(grants)
    ids = {(each.client_entity_id,) for each in found} | {(each.entity_id,) for each in found}
    entities = await registry.directory.read(Entity, ids)
    of = await registry.directory.read(Service, {(each.service_id,) for each in found})
    return [
        Authorisation(
            grant=each,
            client_entity=entities[each.client_entity_id,],
            third_party=entities[each.entity_id,],
            service=of[each.service_id,],
        )
        for each in found
        if (each.client_entity_id,) in entities and (each.entity_id,) in entities and (each.service_id,) in of
    ]


def _authorise_reading(actor: Actor, third_party: str, client_entity: str) -> None:
    authorise(actor, "read", Object(kind="third-party row", entity_id=third_party, other_entity_id=client_entity))


async def _with_people(registry: Registry, actor: Actor, rows: Sequence[ThirdPartyAssignment]) -> list[ThirdPartyRole]:
    """Roles with their people; to the client entity only their names (D61)."""
    own = actor.entity_id
    held = await registry.directory.read(Membership, {row.key[:2] for row in rows if row.entity_id == own})
    users = await registry.directory.read(User, {(row.user_id,) for row in rows})
    last = {
        key: await _last_sign_in(registry, *key)
        for key in {(row.user_id, row.entity_id, row.service_id) for row in rows}
    }
    found = []
    for row in rows:
        user, membership = users.get((row.user_id,)), held.get(row.key[:2])
        name = ""
        if user is not None:
            name = memberships.shown_name(membership, user) if membership else memberships.name_outside(user)
        at = last[row.user_id, row.entity_id, row.service_id]
        found.append(ThirdPartyRole(row=row, name=name, signed_in_at=at))
    return found


async def _last_sign_in(registry: Registry, user_id: str, entity_id: str, service_id: str) -> int:
    """Return a person's last sign-in for an entity at a service.

    0 if it is not known.
    """
    for entry in await registry.audit.sign_ins_of(user_id, limit=_SIGN_INS):
        if entry.entity_id != entity_id or entry.action != AuditAction.SIGN_IN_COMPLETE or not entry.client_id:
            continue
        client = await registry.clients.get(entry.client_id)
        if client is not None and service_id in client.services:
            return entry.at
    return 0


async def find_grant(
    registry: Registry, wanted: GrantFilter, actor: Actor, *, offered_only: bool = False
) -> ThirdPartyGrant:
    """The one grant that is meant.

    Raises Refused if there is none or more than one, access.Forbidden, StoreUnavailable. Source: D56
    """
    thing = Object(kind="grant", entity_id=wanted.client_entity, other_entity_id=wanted.third_party)
    authorise(actor, "read", thing)
    await _check_names(registry, wanted, actor)
    held = await read_grants(registry.directory, (wanted.client_entity, wanted.third_party, wanted.service))
    found = [row for row in held if wanted.fits(row)]
    if offered_only:
        found = [row for row in found if state_of(row) is AuthorisationState.OFFERED]
    between = f"{wanted.client_entity} to {wanted.third_party} at {wanted.service}"
    none = f"there is no {'offer' if offered_only else 'grant'} of {between}"
    return pick_one(found, none=none, several="several are meant", note=lambda grant: grant.state, among=held)


async def _check_names(registry: Registry, wanted: GrantFilter, actor: Actor) -> None:
    """Refuse unknown names, if the actor may know of them."""
    for entity_id in (wanted.client_entity, wanted.third_party):
        with suppress(Forbidden):
            await find_entity(registry, entity_id, actor=actor)
    with suppress(Forbidden):
        await find_service(registry, wanted.service, actor=actor)
