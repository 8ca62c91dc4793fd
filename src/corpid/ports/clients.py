"""Clients as they are registered, and the key sets fetched from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.ports.audit import AuditEvent
    from corpid.ports.records import FetchedKeySet
    from corpid.rules.oauth.api_client import RegisteredApiClient
    from corpid.rules.oauth.records import Client


class FetchedKeySets(Protocol):
    """Key sets that were fetched from clients of one kind (D27)."""

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None: ...
    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None: ...
    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None: ...


class Clients(FetchedKeySets, Protocol):
    """Relying parties."""

    async def get(self, client_id: str) -> Client | None: ...
    async def list_all(self) -> list[Client]: ...
    async def named(self, *, first: str, until: str, limit: int) -> list[Client]:
        """Clients by identifier: from `first`, before `until`."""


class ApiClients(FetchedKeySets, Protocol):
    """Clients of the admin API (D59); they are written through Directory.write."""

    async def get(self, client_id: str) -> RegisteredApiClient | None: ...
    async def list_all(self) -> list[RegisteredApiClient]: ...
