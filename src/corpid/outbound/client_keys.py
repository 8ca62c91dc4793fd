"""Key sets of clients, inline or fetched from jwks_uri, cached (D27).

What a request meets, in this order: the set in memory, looked at no longer than five seconds ago;
the one in the registry, which shows fetches of other processes and an operator's removal; the
relying party itself. Each of these happens once at a time per client, for all that wait. `Egress`
fetches, by an HTTP client that is loaded when it is needed: many providers fetch nothing, since
their clients' keys are registered inline.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from corpid.event_log import log
from corpid.jose.keys import ClientKeySet, KeySetError, parse_client_key_set
from corpid.outbound.destinations import INTERNET, EgressRules, HttpClientError
from corpid.rules.failures import KeySetUnavailable, StoreUnavailable
from corpid.rules.limits import DESCRIPTION_CHARACTERS, LIVE_STATE_SECONDS
from corpid.rules.oauth.client_registration import public_key_set
from corpid.rules.oauth.records import FetchedKeySet, HasKeys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from corpid.outbound.http_client import HttpClient
    from corpid.rules.audit import AuditEvent

FRESH_SECONDS: Final = 3600
GOOD_SECONDS: Final = 86400
REFETCH_SECONDS: Final = 60
BACK_OFF_SECONDS: Final = 10
LOGGED_EVERY_SECONDS: Final = 600
"""between two lines that one client's key set cannot be fetched"""
WAITING: Final = 32
"""requests that may wait for one client's fetch: those of one whose server hangs must not fill the process"""


class FetchedKeySets(Protocol):
    """Key sets that were fetched from clients of one kind (D27)."""

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None: ...
    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None: ...
    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None: ...


class ClientKeys(Protocol):
    """Key sets of clients, inline or by URL, prepared for use (D27)."""

    async def current(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The set to use now.

        Raises KeySetUnavailable, and StoreUnavailable if no set is in memory and the registry cannot be asked.
        """

    async def refetch(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The set after an unknown kid or a bad signature.

        It is fetched again, at most once a minute. An inline set is returned as it is. Raises as `current`.
        """

    async def fetch_published(self, url: str) -> bytes:
        """The content published at a URL, which is kept nowhere.

        Raises KeySetUnavailable if nothing was fetched. Source: D27
        """

    async def keep(self, client: HasKeys, content: bytes, *, now: float) -> None:
        """Keep the content that was published at the client's jwks_uri."""


class _Inline:
    """A key set in the client's record."""

    __slots__ = ("ready", "ready_until", "source")

    def __init__(self, source: str, ready: ClientKeySet) -> None:
        self.source = source
        self.ready = ready
        self.ready_until = float("inf")

    async def current(self, now: float) -> ClientKeySet:  # noqa: ARG002
        return self.ready

    async def refetch(self, now: float) -> ClientKeySet:  # noqa: ARG002
        return self.ready

    def tasks(self) -> list[asyncio.Task[ClientKeySet]]:
        return []


class _Remote:
    """The key set at one jwks_uri of one client."""

    __slots__ = (
        "_clients", "_fetch", "_fetched_at", "_fetching", "_id", "_key_set", "_logged_at", "_looking",
        "_missing", "_quiet_until", "_reason", "_refetch_from", "_seen_at", "_waiting", "ready", "ready_until", "source",
    )  # fmt: skip

    def __init__(
        self, source: str, client_id: str, clients: FetchedKeySets, fetch: Callable[[str], Awaitable[bytes]]
    ) -> None:
        self.source = source
        self.ready: ClientKeySet | None = None
        self.ready_until = 0.0
        self._id = client_id
        self._clients = clients
        self._fetch = fetch
        self._key_set: ClientKeySet | None = None
        self._fetched_at = 0.0
        self._seen_at = 0
        """`fetched_at` of the last stored key set"""
        self._refetch_from = 0.0
        self._quiet_until = 0.0
        self._reason = ""
        self._missing = False
        """it was logged that the key set cannot be fetched, and not yet that it can"""
        self._logged_at = float("-inf")
        self._waiting = 0
        self._looking: asyncio.Task[ClientKeySet] | None = None
        self._fetching: asyncio.Task[ClientKeySet] | None = None

    async def current(self, now: float) -> ClientKeySet:
        if self._fetching is not None and self._key_set is None and self._waiting >= WAITING:
            raise KeySetUnavailable(f"{self.source} has not answered yet, and {WAITING} other requests wait for it")
        if self._looking is None:
            self._looking = _started(self._look(now))
            self._looking.add_done_callback(self._looked)
        return await self._waited(self._looking)

    async def refetch(self, now: float) -> ClientKeySet:
        if self._fetching is None and now >= max(self._refetch_from, self._quiet_until):
            self._refetch_from = now + REFETCH_SECONDS
            self._start_fetch(now)
        if self._fetching is not None and self._waiting < WAITING:
            with suppress(KeySetUnavailable):
                return await self._waited(self._fetching)
        return await self.current(now)

    async def _waited(self, task: asyncio.Task[ClientKeySet]) -> ClientKeySet:
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    def tasks(self) -> list[asyncio.Task[ClientKeySet]]:
        return [task for task in (self._looking, self._fetching) if task is not None]

    def _looked(self, _: object) -> None:
        self._looking = None

    def _fetch_ended(self, _: object) -> None:
        self._fetching = None

    async def _look(self, now: float) -> ClientKeySet:
        try:
            self._compare(await self._clients.fetched_key_set(self._id), now)
        except StoreUnavailable:
            if self._key_set is None:
                raise
        age = now - self._fetched_at
        if self._key_set is None or age >= GOOD_SECONDS:
            self._start_fetch(now)
            if self._fetching is None:
                raise KeySetUnavailable(self._reason)
            return await asyncio.shield(self._fetching)
        if age >= FRESH_SECONDS:
            self._start_fetch(now)
        return self._held(self._key_set, now)

    def _compare(self, stored: FetchedKeySet | None, now: float) -> None:
        if stored is None or stored.jwks_uri != self.source:
            self._key_set = self.ready = None
            return
        if self._key_set is not None and stored.fetched_at == self._seen_at:
            return
        self._seen_at = stored.fetched_at
        if self._key_set is not None and stored.fetched_at < self._fetched_at:
            return
        with suppress(KeySetError):
            self._key_set = parse_client_key_set(stored.jwks)
            self._fetched_at = min(stored.fetched_at, now)

    def _held(self, key_set: ClientKeySet, now: float) -> ClientKeySet:
        self.ready = key_set
        self.ready_until = min(now + LIVE_STATE_SECONDS, self._fetched_at + GOOD_SECONDS)
        return key_set

    def _start_fetch(self, now: float) -> None:
        """Unless one is under way, or one failed a moment ago."""
        if self._fetching is None and now >= self._quiet_until:
            self._fetching = _started(self._fetch_and_keep(now))
            self._fetching.add_done_callback(self._fetch_ended)

    async def _fetch_and_keep(self, now: float) -> ClientKeySet:
        try:
            text = await self._fetch(self.source)
            key_set = parse_client_key_set(text)
        except (HttpClientError, KeySetError) as error:
            self._quiet_until = now + BACK_OFF_SECONDS
            self._reason = _cut(f"no key set at {self.source}: {error}")
            # Log a failure that has just begun, and a longer one again. Not more often, however often the key set
            # comes and goes.
            if not 0 <= now - self._logged_at < LOGGED_EVERY_SECONDS:
                self._logged_at, self._missing = now, True
                log().warning("key_set_not_fetched", client_id=self._id, detail=self._reason)
            raise KeySetUnavailable(self._reason) from error
        return await self.keep(text, key_set, now)

    async def keep(self, text: bytes, key_set: ClientKeySet, now: float) -> ClientKeySet:
        """Use a key set that was fetched just now, in every process."""
        self._key_set, self._fetched_at, self._seen_at = key_set, now, int(now)
        log().info("key_set_fetched", client_id=self._id, detail=_cut("; ".join(key_set.problems)))
        if self._missing:
            self._missing = False
            log().warning("key_set_fetched_again", client_id=self._id, detail=_cut(self.source))
        try:
            await self._clients.keep_fetched_key_set(
                self._id, FetchedKeySet(jwks_uri=self.source, jwks=public_key_set(text.decode()), fetched_at=int(now))
            )
        except StoreUnavailable as error:
            log().warning("key_set_not_kept", client_id=self._id, detail=str(error))
        return self._held(key_set, now)


class FetchedClientKeys:
    """Key sets that are fetched, and stored in the registry.

    `clients` stores those of one kind of client, `fetch` returns the bytes at a URL within its own bounds of time and
    size, or raises HttpClientError. Source: D27
    """

    def __init__(self, clients: FetchedKeySets, fetch: Callable[[str], Awaitable[bytes]]) -> None:
        self._clients = clients
        self._fetch = fetch
        self._sources: dict[str, _Inline | _Remote] = {}

    async def current(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The key set to use now (epoch seconds).

        It comes from memory if that was read within 5 seconds. A set older than an hour is still the answer, up to 24
        hours, while it is fetched again in the background. Raises KeySetUnavailable when there is none, and
        StoreUnavailable when there is none in memory and the registry cannot be asked. Source: D27
        """
        source = self._source(client)
        if now < source.ready_until and source.ready is not None:
            return source.ready
        return await source.current(now)

    async def refetch(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The key set after an unknown kid or a bad signature.

        It is fetched again at once, at most once a minute. Within that minute, and when the fetch fails, the answer is
        that of `current`; so is it for an inline set. Raises KeySetUnavailable and StoreUnavailable like `current`.
        Source: D27
        """
        return await self._source(client).refetch(now)

    async def fetch_published(self, url: str) -> bytes:
        """The content published at a URL, which is kept nowhere.

        Raises KeySetUnavailable if nothing was fetched. Source: D27
        """
        try:
            return await self._fetch(url)
        except HttpClientError as error:
            raise KeySetUnavailable(_cut(str(error))) from error

    async def keep(self, client: HasKeys, content: bytes, *, now: float) -> None:
        """Keep the content that was published at the client's jwks_uri.

        What is no key set is not kept. Source: D27
        """
        source = self._source(client)
        if isinstance(source, _Remote):
            with suppress(KeySetError):
                await source.keep(content, parse_client_key_set(content), now)

    async def close(self) -> None:
        """End the fetches that are under way (graceful stop)."""
        tasks = [task for source in self._sources.values() for task in source.tasks()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _source(self, client: HasKeys) -> _Inline | _Remote:
        source = self._sources.get(client.client_id)
        if source is None or source.source != (client.jwks_uri or client.jwks):
            source = self._sources[client.client_id] = self._opened(client)
        return source

    def _opened(self, client: HasKeys) -> _Inline | _Remote:
        if client.jwks_uri:
            return _Remote(client.jwks_uri, client.client_id, self._clients, self._fetch)
        try:
            key_set = parse_client_key_set(client.jwks or "")
        except KeySetError as error:
            raise KeySetUnavailable(f"the key set in the record of {client.client_id}: {error}") from None
        return _Inline(client.jwks or "", key_set)


def _started(work: Coroutine[None, None, ClientKeySet]) -> asyncio.Task[ClientKeySet]:
    """A task that outlives the cancellation of its starter.

    Its failure is retrieved.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task


def _cut(text: str) -> str:
    return text[:DESCRIPTION_CHARACTERS]


class Egress:
    """Fetches over the open internet, by an `HttpClient` made on demand.

    httpx and the trusted authorities take long to load.
    """

    def __init__(
        self,
        *,
        own_url: str,
        further_urls: Sequence[str] = (),
        rules: EgressRules = INTERNET,
        own_chain: Path | None = None,
    ) -> None:
        """`own_chain` is our own certificate chain.

        If the rules are lifted its authority is trusted, too: developers' websites may be certified by it.
        """
        self._own_url = own_url
        self._further_urls = further_urls
        self._rules = rules
        self._authorities = None if rules is INTERNET else own_chain
        self._making = asyncio.Lock()
        self._client: HttpClient | None = None
        if rules is not INTERNET:
            log().warning(
                "egress_rules_lifted", detail=f"key sets are fetched by {', '.join(rules.schemes)} from any address"
            )

    async def load(self) -> HttpClient:
        """The client, made in a thread if there is none yet."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._made)
        return self._client

    async def fetch(self, url: str) -> bytes:
        """The body of the 200 response at `url`.

        Raises HttpClientError. Source: D27
        """
        client = self._client or await self.load()
        return await client.fetch(url)

    def _made(self) -> HttpClient:
        from corpid.outbound.http_client import HttpClient, trusting  # noqa: PLC0415 - see above

        return HttpClient(
            own_url=self._own_url,
            further_urls=self._further_urls,
            rules=self._rules,
            ssl_context=trusting(self._authorities) if self._authorities else None,
        )
