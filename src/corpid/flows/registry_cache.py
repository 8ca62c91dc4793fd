"""A cache of registry records, at most five seconds old (D50)."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from corpid.rules.directory.records import ActingPerson, Assignment, Entity, Service, ThirdPartyRow
from corpid.rules.limits import LIVE_STATE_SECONDS
from corpid.rules.oauth.client_registration import is_registered_at
from corpid.rules.oauth.errors import TemporarilyUnavailable
from corpid.rules.oauth.records import FIRST_ISSUER, Client
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from corpid.rules.directory.entity_choice import Form
    from corpid.rules.oauth.api_client import RegisteredApiClient
    from corpid.stores.sql.registry import Registry

V = TypeVar("V")

_ENTRIES: Final = 4096


class _Cache(Generic[V]):
    """Cached registry answers by key, each with its expiry; oldest first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        self.cleared = 0

    async def get(
        self, key: Hashable, now: float, read: Callable[[], Awaitable[V]], keep: Callable[[V], bool] | None = None
    ) -> V:
        entry = self._entries.get(key)
        if entry is not None and entry[0] > now >= entry[0] - LIVE_STATE_SECONDS:
            return entry[1]
        cleared = self.cleared
        value = await read()
        if keep is None or keep(value):
            self.note(key, now, value, cleared)
        return value

    def note(self, key: Hashable, now: float, value: V, cleared: int) -> None:
        """Cache a value unless the cache was cleared since it was read.

        `cleared` is the number of clearings when the value was read, so nothing read before a change is cached.
        """
        if cleared != self.cleared:
            return
        self._entries.pop(key, None)
        if len(self._entries) >= _ENTRIES:
            self._entries.popitem(last=False)
        self._entries[key] = (now + LIVE_STATE_SECONDS, value)

    def clear(self) -> None:
        self.cleared += 1
        self._entries.clear()


class RegistryCache:
    """Reads of the registry through caches of five seconds.

    Deny entries, codes and jti never pass here. `client` and `admit_client` go by one issuer: the deployment's first,
    or that of `of_issuer`; all other reads are the same for each.
    """

    def __init__(self, registry: Registry) -> None:
        self.issuer_id = FIRST_ISSUER
        self._registry = registry
        self._clients: _Cache[Client | None] = _Cache()
        self._api_clients: _Cache[RegisteredApiClient | None] = _Cache()
        self._entities: _Cache[Entity | None] = _Cache()
        self._acting: _Cache[ActingPerson | None] = _Cache()
        self._usable: _Cache[list[ActingPerson]] = _Cache()
        self._services: _Cache[list[Service]] = _Cache()
        self._assignments: _Cache[list[Assignment]] = _Cache()
        self._third_parties: _Cache[list[ThirdPartyRow]] = _Cache()
        self._maintenance: _Cache[bool] = _Cache()

    def of_issuer(self, issuer_id: str) -> RegistryCache:
        """The same cache, as another issuer of the deployment reads it (D62)."""
        other = copy.copy(self)
        other.issuer_id = issuer_id
        return other

    async def client(self, client_id: str, now: float) -> Client | None:
        """Return an enabled client of this issuer.

        The result is None if the client is unknown or disabled. Unknown clients are not cached: invented client_ids
        would push the known ones out of the cache, and each new one would reach the registry all the same. Such a
        lookup is one read on an index. Source: D50, D62
        """
        return self.admit_client(await self.known_client(client_id, now))

    def known_client(self, client_id: str, now: float) -> Awaitable[Client | None]:
        """A client, enabled or not, of any issuer.

        None if there is none. It tells what `client` refuses apart, for the log. Source: D28
        """
        return self._clients.get(
            client_id, now, lambda: self._registry.clients.get(client_id), keep=lambda found: found is not None
        )

    def admit_client(self, client: Client | None) -> Client | None:
        """The client, if it is enabled and of this issuer. Source: D50, D62"""
        if client is None or not client.enabled or not is_registered_at(client, self.issuer_id):
            return None
        return client

    async def api_client(self, client_id: str, now: float) -> RegisteredApiClient | None:
        """Return an enabled client of the admin API.

        The result is None if it is unknown or disabled. Unknown ones are not cached, as in `client`. Source: D50, D59
        """
        client = await self._api_clients.get(
            client_id, now, lambda: self._registry.api_clients.get(client_id), keep=lambda found: found is not None
        )
        return client if client is not None and client.enabled else None

    async def entity(self, entity_id: str, now: float) -> Entity | None:
        """An entity, enabled or not; None if there is none."""
        return await self._entities.get(entity_id, now, lambda: self._registry.directory.find(Entity, entity_id))

    async def acting(self, user_id: str, entity_id: str, now: float) -> ActingPerson | None:
        """A person acting for an entity, if everything is enabled.

        None if a link of the chain is missing or disabled.
        """
        acting = await self._acting.get(
            (user_id, entity_id), now, lambda: self._registry.directory.acting(user_id, entity_id)
        )
        return acting if acting is not None and acting.allowed else None

    async def find_obstacle(self, user_id: str, entity_id: str, now: float) -> str:
        """The obstacle to acting for an entity, in words for the log.

        Source: D28, D50
        """
        acting = await self.membership(user_id, entity_id, now)
        return "the person is no member of the entity" if acting is None else acting.obstacle

    async def membership(self, user_id: str, entity_id: str, now: float) -> ActingPerson | None:
        """A person and one of their entities, enabled or not.

        None if the person is no member.
        """
        return await self._acting.get(
            (user_id, entity_id), now, lambda: self._registry.directory.acting(user_id, entity_id)
        )

    async def usable(self, user_id: str, accepted: frozenset[Form], now: float) -> list[ActingPerson]:
        """Return at most two usable entities of a person.

        They are of these types and statuses.
        """

        async def read() -> list[ActingPerson]:
            cleared = self._acting.cleared
            found = await self._registry.directory.usable(user_id, accepted)
            for each in found:
                self._acting.note((user_id, each.entity.entity_id), now, each, cleared)
            return found

        return await self._usable.get((user_id, accepted), now, read)

    async def services(self, service_ids: tuple[str, ...], now: float) -> list[Service]:
        """Those of these services that exist, enabled or not.

        The rules that read them leave out the disabled ones (`rules.directory.roles`).
        """
        return await self._services.get(service_ids, now, lambda: self._registry.directory.services(service_ids))

    async def assignments(
        self, user_id: str, entity_id: str, service_ids: tuple[str, ...], now: float
    ) -> list[Assignment]:
        """The roles of a person for an entity at these services."""
        return await self._assignments.get(
            (user_id, entity_id, service_ids),
            now,
            lambda: self._registry.directory.assignments(user_id, entity_id, service_ids),
        )

    async def third_party_rows(
        self, user_id: str, entity_id: str, service_ids: tuple[str, ...], now: float
    ) -> list[ThirdPartyRow]:
        """A person's third-party rows at these services."""
        return await self._third_parties.get(
            (user_id, entity_id, service_ids),
            now,
            lambda: self._registry.directory.third_party_rows(user_id, entity_id, service_ids),
        )

    async def maintenance(self, now: float) -> bool:
        """Return whether an operator has switched maintenance on. Source: D50"""
        return await self._maintenance.get("", now, self._registry.deployment.maintenance)

    async def refuse_maintenance(self, now: float, *, in_maintenance: bool = False) -> None:
        """Refuse a request while an operator has switched maintenance on.

        `in_maintenance` says that its endpoint goes on; such endpoints ask too, so that developer mode can refuse at
        every one (D66). Raises TemporarilyUnavailable. Source: Spec 7.1, 7.2, 7.3, D72
        """
        if not in_maintenance and await self._maintenance.get("", now, self._registry.deployment.maintenance):
            raise TemporarilyUnavailable(
                Reason.MAINTENANCE, "the provider is under maintenance: try again later", retry_after=60
            )

    def drop(self) -> None:
        """Forget everything, for a process that serves and changes.

        What others change is seen within 5 s (D50).
        """
        for cache in (
            self._clients, self._api_clients, self._entities, self._acting, self._usable, self._services,
            self._assignments, self._third_parties, self._maintenance,
        ):  # fmt: skip
            cache.clear()
