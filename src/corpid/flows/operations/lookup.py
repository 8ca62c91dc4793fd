"""Look-up by reference, and search in the console (D82)."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.actors import is_allowed
from corpid.flows.directory.lists import list_records
from corpid.flows.operations import audit, signing_keys
from corpid.rules.audit import AuditAction, AuditEntry
from corpid.rules.directory.access import DeploymentOperator, Object, authorise
from corpid.rules.directory.lists import CLIENTS, ENTITIES, MOST_COUNTED, SERVICES, USERS, ListTotal, RecordList
from corpid.rules.directory.names import is_storable
from corpid.rules.hourly_counts import COMPLETED
from corpid.rules.limits import HOUR
from corpid.rules.oauth.records import Client
from corpid.rules.oauth.refusals import ClientRefusal
from corpid.rules.references import moment_of
from corpid.rules.signing_keys import ProviderKey

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry

_BEFORE_SECONDS: Final = 60
"""how far before its reference a request may have been recorded: clocks of servers differ"""
_AFTER_SECONDS: Final = 300
"""the same after it: requests take time"""
_MOST: Final = 200
"""records of one request, which may be a bulk load"""
_REASONS: Final = 10
_SHORTEST_KEY_ID: Final = 4
"""characters of a key identifier that is searched among the keys of clients"""
_MENTIONING: Final = 20
"""clients that are looked at because they mention it"""
ENDINGS: Final = frozenset({AuditAction.SIGN_IN_COMPLETE, AuditAction.SIGN_IN_REFUSE})
"""actions with which a sign-in ends"""


class RefusalCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of refusals for one reason, in one hour."""

    reason: str
    count: int


class ReferenceRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a request, as the actor may read them."""

    reference: str
    at: int
    """when the request came, in epoch seconds; 0: its reference does not say"""
    refusals: tuple[ClientRefusal, ...] = ()
    entries: tuple[AuditEntry, ...] = ()
    counts: tuple[RefusalCount, ...] = ()
    """if nothing else is kept: the refusals of its hour by reason, the most frequent first"""


async def look_up(registry: Registry, reference: str, *, actor: DeploymentOperator, now: float) -> ReferenceRecords:
    """Find the records of a request.

    `reference` has the form of one. Refusals of the last seconds may be missing. Nothing is written. Raises
    access.Forbidden, StoreUnavailable. Source: D28, D57, D82
    """
    authorise(actor, "read", Object(kind="client"))
    at = moment_of(reference, now=now)
    since, until = (at - _BEFORE_SECONDS, at + _AFTER_SECONDS) if at else (0, now)
    refusals = await registry.client_refusals.list_by_reference(reference, since=since, until=until + 1, limit=_MOST)
    entries: list[AuditEntry] = []
    if at:
        after = await audit.first_after(registry, since - 1) - 1
        last = await audit.first_after(registry, until)
        found = await registry.audit.list_by_request(reference, after=max(after, 0), last=last, limit=_MOST)
        entries = await audit.leave_readable(registry, actor, found)
    counts = await _count_refusals(registry, actor, at) if at and not refusals and not entries else ()
    return ReferenceRecords(
        reference=reference, at=at, refusals=tuple(refusals), entries=tuple(entries), counts=tuple(counts)
    )


async def _count_refusals(registry: Registry, actor: DeploymentOperator, at: int) -> list[RefusalCount]:
    """Refusals by reason in the hour of a moment.

    The most frequent first.
    """
    authorise(actor, "read", Object(kind="deployment"))
    hour = at // HOUR * HOUR
    sums: Counter[str] = Counter()
    for each in await registry.hourly_counts.by_client_and_reason(since=hour, until=hour + HOUR):
        sums[each.reason] += each.count
    del sums[COMPLETED]
    return [RefusalCount(reason=reason, count=count) for reason, count in sums.most_common(_REASONS)]


class SearchGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one kind that are found, at most so many."""

    listed: RecordList
    found: tuple[Any, ...]
    total: ListTotal


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The records that a text finds, as the actor may read."""

    groups: tuple[SearchGroup, ...]
    """those in which something is found"""
    keys: tuple[ProviderKey, ...] = ()
    key_clients: tuple[Client, ...] = ()
    """clients that have a key of this identifier"""


_SEARCHED: Final[tuple[tuple[RecordList, dict[str, str | bool]], ...]] = (
    (ENTITIES, {}),
    (USERS, {"placeholder": False}),
    (SERVICES, {}),
    (CLIENTS, {}),
)


async def search(registry: Registry, text: str, *, actor: DeploymentOperator, limit: int) -> SearchResult:
    """Search organisations, people, services, clients and keys.

    `limit` is that of each kind. Raises access.Forbidden, StoreUnavailable. Source: D53, D82, D83
    """
    if not is_storable(text) or not any(each.isalnum() for each in text):
        return SearchResult(groups=())
    groups = []
    for listed, where in _SEARCHED:
        page = await list_records(registry, actor, listed, where, search=text, limit=limit, count_to=MOST_COUNTED)
        if page.found and page.total:
            groups.append(SearchGroup(listed=listed, found=page.found, total=page.total))
    return SearchResult(
        groups=tuple(groups),
        keys=tuple(each for each in await signing_keys.list_keys(registry, actor) if each.kid == text),
        key_clients=await _clients_with_key(registry, actor, text),
    )


async def _clients_with_key(registry: Registry, actor: DeploymentOperator, key_id: str) -> tuple[Client, ...]:
    """Clients that have a key of this identifier, registered or fetched."""
    if not len(key_id) >= _SHORTEST_KEY_ID or not is_allowed(actor, "read", Object(kind="client")):
        return ()
    found = []
    for client_id in await registry.clients.list_mentioning(key_id, limit=_MENTIONING):
        client = await registry.clients.get(client_id)
        fetched = await registry.clients.fetched_key_set(client_id)
        if client is not None and any(
            key_id in _key_ids(each) for each in (client.jwks, fetched.jwks if fetched else None) if each
        ):
            found.append(client)
    return tuple(found)


def _key_ids(jwks: str) -> set[str]:
    keys = json.loads(jwks)["keys"]
    return {str(key["kid"]) for key in keys if isinstance(key, dict) and "kid" in key}
