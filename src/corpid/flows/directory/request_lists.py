"""Change requests of an entity, as its administrators see them (D55)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.approvals import NoRequest, object_of_request
from corpid.flows.directory.lists import ListPage, as_place, cut_page, place
from corpid.flows.directory.person_names import NameChanges, as_requested, name_changes, names_of
from corpid.flows.directory.write import Refused, authorise_changes
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.approvals import LIFETIME_SECONDS, ApprovalState, change_of, state_at
from corpid.rules.directory.invitations import shown_invitation
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Administrator, ChangeRequest, Entity, Membership, Service
from corpid.rules.oauth.api_client import RegisteredApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.stores.sql.registry import Registry

ENDED: Final = (ApprovalState.APPROVED, ApprovalState.DECLINED, ApprovalState.WITHDRAWN, ApprovalState.EXPIRED)
_AT_ONCE: Final = 100
_ROUNDS: Final = 20
"""how often so many requests are read for one page of those that a person may see"""
_GONE: Final = "there is no such request"
_NO_NAMES: Final[Mapping[str, str]] = {}


class RequestNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of what changes are about, by identifier."""

    people: Mapping[str, str]
    entities: Mapping[str, str]
    services: Mapping[str, str]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request as an administrator sees it."""

    record: ChangeRequest
    state: ApprovalState
    changes: tuple[Change, ...]
    names: RequestNames
    requester: str
    """the name of a person or an API client; empty if the entity may not know it"""
    decided_by: str
    own: bool
    why_not: str
    """why this administrator cannot decide on it, a sentence; empty if they can"""
    can_withdraw: bool
    why_no_approval: str = ""
    """why they can only decline it, a sentence; empty if they can approve it. Of a request on its own"""
    nobody_approves: bool = False
    """whether no administrator can approve it at present. Of a request on its own"""
    name_changes: NameChanges | None = None
    """how names differ from when it was made (D68); of a request that waits, on its own"""

    @property
    def expires_at(self) -> int:
        """When it ends without a decision, in epoch seconds."""
        return self.record.created_at + LIFETIME_SECONDS


async def list_waiting(
    registry: Registry, actor: EntityAdministrator, *, own: bool, now: float, after: str, limit: int
) -> ListPage[Request]:
    """List requests that wait, the oldest first.

    Own ones, or others that the actor can decide on. There may be fewer than `limit` although more follow. Raises
    Refused, StoreUnavailable. Source: D55
    """

    def fits(row: ChangeRequest) -> bool:
        fitting = state_at(row, now) is ApprovalState.PENDING and _is_own(row, actor) is own
        return fitting and (own or not _why_not(row, actor))

    found, stopped = await _pending(registry, actor, fits, after=after, limit=limit)
    return await _shown(registry, actor, found, now=now, limit=limit, stopped=stopped)


async def on_person(
    registry: Registry, actor: EntityAdministrator, user_id: str, *, now: float, limit: int
) -> list[Request]:
    """List waiting requests on a person, the oldest first.

    Those that the actor may read. Raises StoreUnavailable. Source: D55
    """

    def fits(row: ChangeRequest) -> bool:
        concerned = any(each.key[0] == user_id for each in row.changes)
        return concerned and state_at(row, now) is ApprovalState.PENDING and _may_read(row, actor)

    found, _ = await _pending(registry, actor, fits, after="", limit=limit)
    return list((await _shown(registry, actor, found, now=now, limit=limit)).found) if found else []


async def _pending(
    registry: Registry, actor: EntityAdministrator, fits: Callable[[ChangeRequest], bool], *, after: str, limit: int
) -> tuple[list[ChangeRequest], str]:
    """Fitting requests that are stored as pending.

    More than `limit` if there are, and where the search stopped before the last one; empty if it did not.
    """
    found: list[ChangeRequest] = []
    start = place(after, 1)
    where = {"entity_id": actor.entity_id, "state": ApprovalState.PENDING.value}
    stopped = ""
    for _ in range(_ROUNDS):
        rows = await registry.directory.page(ChangeRequest, where, after=start, limit=_AT_ONCE)
        found += [row for row in rows if fits(row)]
        if len(rows) < _AT_ONCE or len(found) > limit:
            break
        start = rows[-1].key
    else:
        stopped = as_place(start)
    return found, stopped


async def list_ended(
    registry: Registry,
    actor: EntityAdministrator,
    *,
    states: Sequence[ApprovalState],
    now: float,
    before: str,
    limit: int,
) -> ListPage[Request]:
    """List requests that have ended, the latest first.

    Of a sub-administrator those at the listed services, and own ones. There may be fewer than `limit` although more
    follow. Raises StoreUnavailable. Source: D55
    """
    found: list[ChangeRequest] = []
    start = before if before and is_storable(before) else _LAST
    stopped = ""
    for _ in range(_ROUNDS):
        rows: list[ChangeRequest] = []
        for each in states:
            rows += await registry.directory.latest_requests(actor.entity_id, each.value, before=start, limit=_AT_ONCE)
        rows = sorted(rows, key=attrgetter("request_id"), reverse=True)[:_AT_ONCE]
        found += [row for row in rows if _may_read(row, actor)]
        if len(rows) < _AT_ONCE or len(found) > limit:
            break
        start = rows[-1].request_id
    else:
        stopped = start
    return await _shown(registry, actor, found, now=now, limit=limit, stopped=stopped)


_LAST: Final = "\U0010ffff"


class ChangesWithNames(msgspec.Struct, frozen=True, kw_only=True):
    changes: Mapping[str, tuple[Change, ...]]
    """by the identifier of the request"""
    names: Mapping[str, RequestNames]
    """by the identifier of the request; people as they were when it was made"""


NOTHING: Final = ChangesWithNames(changes={}, names={})


async def load_changes(registry: Registry, actor: EntityAdministrator, request_ids: Iterable[str]) -> ChangesWithNames:
    """Return the changes of requests of the actor's entity that are kept.

    Raises access.Forbidden, StoreUnavailable. Source: D55, D57
    """
    keys = {(each,) for each in request_ids}
    if not keys:
        return NOTHING
    authorise(actor, "read", Object(kind="approval", entity_id=actor.entity_id))
    found = (await registry.directory.read(ChangeRequest, keys)).values()
    own = [each for each in found if each.entity_id == actor.entity_id]
    changes = {each.request_id: tuple(map(change_of, each.changes)) for each in own}
    names = await load_names(registry, actor.entity_id, [each for some in changes.values() for each in some])
    return ChangesWithNames(changes=changes, names={each.request_id: _as_requested(each, names) for each in own})


def _as_requested(request: ChangeRequest, names: RequestNames) -> RequestNames:
    """Names, those of the entity's people as in the request.

    Third parties' people keep the name that the entity may see.
    """
    records = (each.becomes or each.was for each in map(change_of, request.changes))
    own = {getattr(each, "user_id", "") for each in records if getattr(each, "entity_id", "") == request.entity_id}
    then = {user_id: name for user_id, name in as_requested(request).items() if user_id in own}
    return msgspec.structs.replace(names, people={**names.people, **then})


async def request(registry: Registry, actor: EntityAdministrator, request_id: str, *, now: float) -> Request:
    """Return one request.

    Own ones are shown even if their service is no longer in the actor's list.

    Raises NoRequest if there is none of this entity, access.Forbidden, StoreUnavailable. Source: D55
    """
    key = (request_id,)
    found = (await registry.directory.read(ChangeRequest, [key])).get(key) if is_storable(request_id) else None
    if found is None or found.entity_id != actor.entity_id:
        raise NoRequest(_GONE)
    if not _is_own(found, actor):
        authorise(actor, "read", object_of_request(found, "approval"))
    pending = state_at(found, now) is ApprovalState.PENDING
    differing = await name_changes(registry, found) if pending else None
    names_read = differing.people if differing is not None else {}  # what is shown is what an approver signs
    shown = (await _shown(registry, actor, [found], now=now, limit=1, names_read=names_read)).found[0]
    if not pending:
        return shown
    shown = msgspec.structs.replace(shown, name_changes=differing)
    if not shown.why_not:
        shown = msgspec.structs.replace(shown, why_no_approval=await _why_no_approval(registry, found, actor))
        if not shown.why_no_approval:
            return shown
    return msgspec.structs.replace(shown, nobody_approves=await _nobody_approves(registry, found, actor))


async def _nobody_approves(registry: Registry, found: ChangeRequest, actor: EntityAdministrator) -> bool:
    """Return whether nobody can approve a request as the entity's administrators are."""
    for each in await registry.directory.administrators(found.entity_id):
        held = each.record
        other = msgspec.structs.replace(
            actor, user_id=held.user_id, level=held.level, services=held.services, alone=False
        )
        able = each.enabled and not _is_own(found, other) and not _why_not(found, other)
        if able and not await _why_no_approval(registry, found, other):
            return False
    return True


def _is_own(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    return found.requester == actor.name


def _may_read(found: ChangeRequest, actor: EntityAdministrator) -> bool:
    return _is_own(found, actor) or _allowed(lambda: authorise(actor, "read", object_of_request(found, "approval")))


def _allowed(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except Forbidden:
        return False
    return True


def _why_not(found: ChangeRequest, actor: EntityAdministrator) -> str:
    """Return why the actor, signed in recently, cannot decide on a request."""
    try:
        authorise(_recent(actor), "write", object_of_request(found, "approval"))
    except Forbidden as error:
        return error.reason
    return ""


async def _why_no_approval(registry: Registry, found: ChangeRequest, actor: EntityAdministrator) -> str:
    """Return why the actor can only decline.

    Approval takes the right to make the changes.
    """
    try:
        await authorise_changes(registry, _recent(actor), [change_of(each) for each in found.changes])
    except Forbidden as error:
        return error.reason
    except Refused as error:
        return str(error)
    return ""


def _recent(actor: EntityAdministrator) -> EntityAdministrator:
    return msgspec.structs.replace(actor, auth_time=actor.now)


async def _shown(
    registry: Registry,
    actor: EntityAdministrator,
    found: Sequence[ChangeRequest],
    *,
    now: float,
    limit: int,
    stopped: str = "",
    names_read: Mapping[str, str] = _NO_NAMES,
) -> ListPage[Request]:
    """A page of requests.

    `stopped` is the place at which the search ended before the list did; `names_read` as in `load_names`.
    """
    page = cut_page(found, limit, [each.request_id for each in found])
    changes = {each.request_id: tuple(map(change_of, each.changes)) for each in page.found}
    actors = {name for each in page.found for name in (each.requester, each.decided_by) if name}
    people = [identifier for kind, _, identifier in (name.partition(":") for name in actors) if kind == "user"]
    names = await load_names(
        registry, actor.entity_id, [each for some in changes.values() for each in some], people, names_read
    )
    called = {name: await _called(registry, name, names) for name in actors}
    shown = []
    for each in page.found:
        state, own = state_at(each, now), _is_own(each, actor)
        shown.append(
            Request(
                record=each,
                state=state,
                changes=changes[each.request_id],
                names=names if state is ApprovalState.PENDING else _as_requested(each, names),
                requester=called[each.requester],
                decided_by=called.get(each.decided_by, ""),
                own=own,
                why_not=_why_not(each, actor) if state is ApprovalState.PENDING else "",
                can_withdraw=own and state is ApprovalState.PENDING,
            )
        )
    return ListPage(found=tuple(shown), after=page.after or stopped)


async def _called(registry: Registry, name: str, names: RequestNames) -> str:
    kind, _, identifier = name.partition(":")
    if kind == "client":
        client = await registry.api_clients.get(identifier)
        return client.name if isinstance(client, RegisteredApiClient) else identifier
    return names.people.get(identifier, "") if kind == "user" else name


async def load_names(
    registry: Registry,
    entity_id: str,
    changes: Iterable[Change],
    people: Iterable[str] = (),
    names_read: Mapping[str, str] = _NO_NAMES,
) -> RequestNames:
    """Return the names of people, entities and services in changes.

    People are named as the entity of the changes knows them, and whom it invites by their address; who acted on them,
    in `people`, only if they belong to it. `names_read` are names of the entity's people that were read before, and
    hold. Raises StoreUnavailable. Source: D55, D60, D61, D68
    """
    former, outside, entities, services = set[str](), set[str](), set[str](), set[str]()
    typed: dict[str, str] = {}
    for change in changes:
        for record in filter(None, (change.was, change.becomes)):
            own = getattr(record, "entity_id", "") == entity_id
            (former if own else outside).add(str(getattr(record, "user_id", "")))
            entities |= {str(getattr(record, "entity_id", "")), str(getattr(record, "client_entity_id", ""))}
            services.add(str(getattr(record, "service_id", "")))
            if isinstance(record, Administrator) and isinstance(record.services, tuple):
                services |= set(record.services)
            if isinstance(record, Membership) and record.invited and own:
                typed[record.user_id] = shown_invitation(record)
    directory = registry.directory
    known = await directory.read(Entity, {(each,) for each in entities if each})
    of = await directory.read(Service, {(each,) for each in services if each})
    members = set(people)
    found = typed | await names_of(registry, entity_id, members, former=former, outside=outside)
    own = {*former, *members, *typed}
    return RequestNames(
        people={each: names_read.get(each, name) if each in own else name for each, name in found.items()},
        entities={each.entity_id: each.name for each in known.values()},
        services={each.service_id: each.name for each in of.values()},
    )
