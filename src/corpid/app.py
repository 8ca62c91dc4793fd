"""The composition root: settings → adapters → Provider → ASGI application.

Only here and in `engines` are adapters chosen. While the application runs, expired entries are removed and the audit is
sealed here, too.
"""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from corpid import __version__, engines
from corpid.engines import StartError, new_id, new_user_id
from corpid.flows.account import own_email
from corpid.flows.background_tasks import BackgroundTasks
from corpid.flows.directory.access_review import ReviewDates
from corpid.flows.directory.approvals import expire
from corpid.flows.directory.invitation_emails import InvitationEmails
from corpid.flows.directory.notice_emails import NoticeEmails
from corpid.flows.directory.notices import Notices
from corpid.flows.oauth import rate_limits
from corpid.flows.oauth.deprecated_usage import DeprecatedUsage
from corpid.flows.oauth.rate_limits import RateLimit, RateLimits
from corpid.flows.oauth.recent_refusals import RecentRefusals
from corpid.flows.oauth.recently_issued import RecentlyIssued
from corpid.flows.operations.audit_seals import Sealer
from corpid.flows.operations.hourly_counters import HourlyCounters, remove_old
from corpid.flows.operations.readiness import Readiness
from corpid.flows.operations.signing_keys import SigningKeys
from corpid.flows.provider import Node, Policy, Provider
from corpid.flows.registry_cache import RegistryCache
from corpid.jose import keys
from corpid.outbound.client_keys import FetchedClientKeys
from corpid.outbound.http_client import DEVELOPER, INTERNET, HttpClient
from corpid.outbound.network_names import FileOfNetworks, NetworksUnreadable, NoNetworks
from corpid.outbound.passwords import Argon2Passwords
from corpid.ports import StoreUnavailable
from corpid.rules.authentication.rp_id import works_at
from corpid.rules.oauth import api_server
from corpid.rules.oauth.generations import GENERATIONS, AuthenticationRules
from corpid.rules.oauth.records import FIRST_ISSUER
from corpid.settings import diagnostics
from corpid.settings.issuers import client_rules, issuers
from corpid.stores.engines import engine_type
from corpid.web.context import Access, WebContext
from corpid.web.http.addresses import ClientAddresses
from corpid.web.http.issuers import Issuers
from corpid.web.http.middleware import Middleware
from corpid.web.pages.rendering import Renderer
from corpid.web.routes import Router, at_root, bodiless, hidden_paths, streamed
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

    from starlette.types import ASGIApp

    from corpid.engines import Engines
    from corpid.ports import Mail, NetworkNames, Passwords, Registry, TransientStore
    from corpid.settings import Settings
    from corpid.web.pages.theme import Theme
    from corpid.web.telemetry.metrics import Metrics, Watched
    from corpid.web.telemetry.spans import Spans

    Fetch = Callable[[str], Awaitable[bytes]]
    from collections.abc import Awaitable

A = TypeVar("A", bound=AuthenticationRules)

OWN_ALGORITHM: Final = "ES256"
"""the provider's signing algorithms (D20, D21)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A provider, ready to be served."""

    asgi: Middleware
    provider: Provider
    bodiless: frozenset[str]
    """the paths at which a request's body is not read (Spec 4.4)"""
    streamed: frozenset[str]
    """the paths at which a large body is read of known callers (D59)"""


def tested(rules: A) -> A:
    """The rules with the algorithms that pass their self-test.

    Raises StartError if ours does not. Source: D42
    """
    working = keys.working_algorithms(tuple(keys.ALGORITHMS))
    lacking = sorted(set(keys.ALGORITHMS).difference(working))
    if OWN_ALGORITHM in lacking:
        raise StartError(
            f"{OWN_ALGORITHM} does not work with the installed cryptography library: install another build"
        )
    if lacking:
        access_log.log().warning("algorithm_not_working", detail=", ".join(lacking))
    return replace(
        rules,
        assertion_algorithms=tuple(name for name in rules.assertion_algorithms if name in working),
        proof_algorithms=tuple(name for name in rules.proof_algorithms if name in working),
    )


def _policy(issuer_id: str, settings: Settings, deployment: Settings) -> Policy:
    served = sorted((tested(GENERATIONS[name]) for name in settings.generations), key=lambda each: not each.pushed)
    pushed = next((generation for generation in served if generation.pushed), None)
    query = next((generation for generation in served if not generation.pushed), None)
    rp_id = deployment.passkey_rp_id or urlsplit(deployment.base_url).hostname or ""
    return Policy(
        issuer_id=issuer_id,
        base_url=settings.base_url,
        deployment_url=deployment.base_url,
        passkey_rp_id=rp_id,
        takes_passkeys=works_at(settings.base_url, rp_id),
        name=settings.name,
        pushed=pushed,
        query=query,
        returns_iss=served[0].returns_iss if settings.return_iss is None else settings.return_iss,
        session_seconds=settings.session_seconds,
        email_codes=settings.email_codes,
        consent_days=settings.consent_days,
        timezone=settings.timezone,
        acr_prefix=settings.acr_prefix,
        dpop_nonces=settings.dpop_nonces,
        dpop_mismatch_code=settings.dpop_mismatch_error,
        context_message_punctuation=settings.context_message_punctuation,
        jwe_header_claims=settings.jwe_header_claims,
        developer_mode=settings.developer_mode,
        api=tested(api_server.RULES),
    )


def _rates(settings: Settings, transient: TransientStore) -> RateLimits:
    callers = [each.name for each in fields(RateLimit)]
    limits = {
        counted: RateLimit(**{caller: getattr(settings, f"{counted}_{caller}", 0) for caller in callers})
        for counted in rate_limits.COUNTED
    }
    return RateLimits(transient, settings.base_url, limits, spare_loopback=settings.developer_mode)


def _provider(
    settings: Settings,
    stores: Engines,
    client_keys: FetchedClientKeys,
    api_client_keys: FetchedClientKeys,
    passwords: Passwords,
    mail: Mail,
    clock: Callable[[], float],
) -> Provider:
    policy = _policy(FIRST_ISSUER, settings, settings)
    return Provider(
        policy=policy,
        node=_node(settings, clock),
        registry=stores.registry,
        transient=stores.transient,
        client_keys=client_keys,
        api_client_keys=api_client_keys,
        passwords=passwords,
        mail=mail,
        signing_keys=_signing_keys(policy, stores.registry),
        registry_cache=RegistryCache(stores.registry),
        usage=DeprecatedUsage(),
        refusals=RecentRefusals(),
        issued=RecentlyIssued(),
        counters=HourlyCounters(),
        rate_limits=_rates(settings, stores.transient),
        background_tasks=BackgroundTasks(_warn),
        networks=_networks(settings),
        erase_details=stores.erase,
        clock=clock,
        new_id=new_id,
    )


def _node(settings: Settings, clock: Callable[[], float]) -> Node:
    return Node(
        version=__version__,
        host=socket.gethostname(),
        started_at=int(clock()),
        workers=settings.workers,
        database=engine_type(settings.database_url).title,
        transient=engine_type(settings.transient_url or settings.database_url).title,
        sends_mail=bool(settings.mail_url),
        generations={name: issuer.generations for name, issuer in issuers(settings).items()},
        findings=tuple(diagnostics.examined(settings)),
    )


def _signing_keys(policy: Policy, registry: Registry) -> SigningKeys:
    certificates = any(each.certificates for each in policy.served)
    return SigningKeys(registry, certificates=certificates, issuer="" if policy.is_first else policy.base_url)


def _further(issuer_id: str, settings: Settings, deployment: Settings, first: Provider) -> Provider:
    """Build a further issuer of the deployment from the first one.

    Everything is the first one's except policy, clients and server secret. Source: D62
    """
    policy = _policy(issuer_id, settings, deployment)
    return replace(
        first,
        policy=policy,
        signing_keys=_signing_keys(policy, first.registry),
        registry_cache=first.registry_cache.of_issuer(issuer_id),
    )


async def _tell_of_unknown_issuers(registry: Registry, known: Collection[str]) -> None:
    for client in await registry.clients.all():
        for name in client.issuers:
            if name not in known:
                detail = f"{client.client_id} names the issuer {name}, which this deployment does not have: add it to "
                _warn("unknown_issuer", f"{detail}[[issuers]], or update the client")


@asynccontextmanager
async def create(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    passwords: Argon2Passwords | None = None,
    mail: Mail | None = None,
    metrics: Metrics | None = None,
    spans: Spans | None = None,
    opened: Engines | None = None,
) -> AsyncIterator[Application]:
    """A provider on its stores, until the context ends. Raises StartError.

    `passwords` replaces the hashing of the settings, for tests that must not be slow, `mail` its mail server, `opened`
    its stores, which then stay open; events are reported to `metrics` and `spans`.
    """
    hashing = passwords or Argon2Passwords(threads=settings.hashing_threads, waiting=settings.hashing_queue)
    every = issuers(settings)
    urls = [chosen.base_url for chosen in every.values()]
    rules = DEVELOPER if settings.developer_mode else INTERNET
    egress = HttpClient(own_url=urls[0], further_urls=urls[1:], rules=rules)
    opening = engines.opened(settings, clock) if opened is None else nullcontext(opened)
    async with opening as found, engines.open_mail(settings, clock=clock) as own_mail:
        stores, checking, fetch = _traced(spans, settings, found, hashing, egress.fetch)
        counted = metrics.counting(fetch) if metrics else fetch
        client_keys = FetchedClientKeys(stores.registry.clients, counted)
        api_client_keys = FetchedClientKeys(stores.registry.api_clients, counted)
        provider = _provider(settings, stores, client_keys, api_client_keys, checking, mail or own_mail, clock)
        await _tell_of_unknown_issuers(stores.registry, every)
        providers = {
            name: provider if name == FIRST_ISSUER else _further(name, chosen, settings, provider)
            for name, chosen in every.items()
        }
        for hidden in hidden_paths([each.policy for each in providers.values()]):
            raise StartError(hidden)
        asgi = _asgi(settings, providers, spans)
        if metrics is not None:
            metrics.watched = _watched(settings, provider, hashing, stores)
            asgi.observe(metrics.request)
        try:
            async with _cleaning_up(provider, metrics, notices=settings.notices_enabled):
                yield Application(
                    asgi=asgi,
                    provider=provider,
                    bodiless=_bodiless(providers.values()),
                    streamed=streamed(urlsplit(settings.base_url).path),
                )
        finally:
            await provider.background_tasks.settle()
            await client_keys.close()
            await api_client_keys.close()
            hashing.close()


def _watched(settings: Settings, provider: Provider, hashing: Argon2Passwords, stores: Engines) -> Watched:
    """The sources of gauges for the metrics."""
    # Where several processes answer as one, a folder must be named before this is loaded.
    from corpid.web.telemetry.metrics import Watched  # noqa: PLC0415

    return Watched(
        clock=provider.clock,
        signing_keys=provider.signing_keys,
        hashing=lambda: hashing.pending,
        hashing_limit=settings.hashing_threads + settings.hashing_queue,
        pool=stores.connections_in_use,
        pool_limit=settings.database_connections if engine_type(settings.database_url).has_pool else 0,
    )


def _traced(
    spans: Spans | None, settings: Settings, stores: Engines, passwords: Passwords, fetch: Fetch
) -> tuple[Engines, Passwords, Fetch]:
    """The same parts, with a span for each call if traced."""
    if spans is None:
        return stores, passwords, fetch
    with_spans = replace(
        stores,
        registry=spans.registry(stores.registry, engine_type(settings.database_url).telemetry_name),
        transient=spans.transient(
            stores.transient, engine_type(settings.transient_url or settings.database_url).telemetry_name
        ),
    )
    return with_spans, spans.passwords(passwords), spans.fetch(fetch)


_SWEEP_SECONDS: Final = 1.0
"""between two rounds"""
_EMAILS_SECONDS: Final = 5.0
"""between two looks for invitations and notices to be sent"""
_EXPIRE_SECONDS: Final = 60.0
"""between two searches for expired change requests"""
_COUNTERS_SECONDS: Final = 10.0
"""between two writes of the hourly counters, of which those of a process that dies are lost"""


@asynccontextmanager
async def _cleaning_up(provider: Provider, metrics: Metrics | None, *, notices: bool) -> AsyncIterator[None]:
    """Run the periodic tasks: clean-up, audit seals, usage counts, invitations, notices.

    When the context ends, what was counted is written once more.
    """
    work = _Cleanup(provider, metrics)
    # A mail server may take minutes to answer, for which nothing else must wait.
    tasks = [asyncio.create_task(work.rounds()), asyncio.create_task(work.invitations())]
    if notices and provider.mail.works:
        tasks.append(asyncio.create_task(work.notices()))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await work.flush()


class _Cleanup:
    """Periodic tasks; one that fails is logged, and tried again next round."""

    def __init__(self, provider: Provider, metrics: Metrics | None) -> None:
        self._provider: Final = provider
        self._expire_at = 0.0
        self._count_at = 0.0
        self._emails: Final = InvitationEmails(provider, _warn, metrics.invitation if metrics else lambda _: None)
        self._notices: Final = Notices(provider)
        self._notice_emails: Final = NoticeEmails(provider, _warn, metrics.notice if metrics else lambda _: None)
        self._review_dates: Final = ReviewDates(provider.registry)
        self._sealer: Final = Sealer(
            provider.registry,
            lambda detail: access_log.log().info("audit_sealed", detail=detail),
            lambda detail: access_log.log().error("audit_seals_changed", detail=detail),
        )
        self._failing: Final[dict[str, str]] = {}
        """the logged error of each part that fails, so that it is logged once"""

    async def rounds(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = self._provider.clock()
            await self._tried("short-lived state", self._provider.transient.sweep(now=now))
            await self._tried("sessions", self._provider.registry.sessions.sweep(now=now))
            await self._tried("consents", self._provider.registry.consents.sweep(now=now))
            await self._tried("e-mail addresses", own_email.finish_due(self._provider, now=now))
            if now >= self._expire_at:
                self._expire_at = now + _EXPIRE_SECONDS
                await self._tried("change requests", expire(self._provider.registry, now=now))
            await self._tried("dates of access reviews", self._review_dates.round(now=now))
            await self._tried("seals of the audit", self._sealer.round(now=now))
            await self._flush_records()
            if now >= self._count_at:
                self._count_at = now + _COUNTERS_SECONDS
                await self._flush_counters()
                await self._tried("old counters", remove_old(self._provider.registry, now=now))

    async def invitations(self) -> None:
        while True:
            await asyncio.sleep(_EMAILS_SECONDS)
            await self._tried("invitations", self._emails.round())

    async def notices(self) -> None:
        while True:
            await asyncio.sleep(_EMAILS_SECONDS)
            await self._tried("making of notices", self._notices.round())
            await self._tried("sending of notices", self._notice_emails.round())

    async def flush(self) -> None:
        await self._flush_records()
        await self._flush_counters()

    async def _flush_records(self) -> None:
        await self._tried("usage counts", self._provider.usage.flush(self._provider.registry))
        await self._tried("refusals of clients", self._provider.refusals.flush(self._provider.registry))

    async def _flush_counters(self) -> None:
        await self._tried("hourly counters", self._provider.counters.flush(self._provider.registry))

    async def _tried(self, part: str, work: Awaitable[object]) -> None:
        try:
            await work
        except StoreUnavailable as error:
            self._log_failure(part, str(error), None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round must come
            self._log_failure(part, type(error).__name__, error)
        else:
            self._failing.pop(part, None)

    def _log_failure(self, part: str, reason: str, error: Exception | None) -> None:
        if self._failing.get(part) != reason:
            access_log.log().error("sweep_failed", detail=f"{part}: {reason}", exc_info=error)
        self._failing[part] = reason


def _bodiless(providers: Iterable[Provider]) -> frozenset[str]:
    policies = [provider.policy for provider in providers]
    return frozenset().union(*(bodiless(policy.served, urlsplit(policy.base_url).path) for policy in policies))


def _warn(event: str, detail: str) -> None:
    access_log.log().warning(event, detail=detail)


def _networks(settings: Settings) -> NetworkNames:
    try:
        return FileOfNetworks(settings.network_database) if settings.network_database is not None else NoNetworks()
    except NetworksUnreadable as error:
        raise StartError(str(error)) from error


def _theme(settings: Settings) -> Theme:
    found = engines.read_theme(settings)
    for warning in found.warnings:
        access_log.log().warning("theme", detail=warning)
    return found


def _asgi(settings: Settings, providers: Mapping[str, Provider], spans: Spans | None) -> Middleware:
    look, trusts = _theme(settings), ClientAddresses(settings.trusted_proxies).trusts
    routers = {}
    for issuer_id, provider in providers.items():
        router = _router(settings, provider, look)
        url = provider.policy.base_url
        routers[issuer_id, url] = router if spans is None else spans.requests(router, base_url=url, trusts=trusts)
    [first, *further] = routers
    return Middleware(
        Issuers(routers, of_first=at_root()) if further else routers[first],
        base_url=settings.base_url,
        further_urls=[url for _, url in further],
        ready=Readiness(providers[FIRST_ISSUER]).check,
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
        forwarded_header=settings.forwarded_header,
    )


def _router(settings: Settings, provider: Provider, look: Theme) -> ASGIApp:
    base_path = urlsplit(provider.policy.base_url).path
    account_base = base_path if provider.policy.is_first else provider.policy.deployment_url
    renderer = Renderer(
        name=settings.name,
        base_path=base_path,
        account_base=account_base,
        developer_mode=settings.developer_mode,
        theme=look,
    )
    return Router(
        WebContext(
            provider=provider,
            renderer=renderer,
            base_path=base_path,
            account_base=account_base,
            client_rules=client_rules(settings),
            new_user_id=new_user_id,
            security_contact=settings.security_contact,
            access={
                "api": Access(enabled=settings.api_enabled, networks=settings.api_networks),
                "scim": Access(enabled=settings.scim_enabled),
                "manage": Access(enabled=settings.manage_enabled),
                "console": Access(enabled=settings.console_enabled, networks=settings.console_networks),
            },
            operators_need_passkey=settings.operators_need_passkey,
        )
    )
