"""The composition root: settings → stores, outbound → Provider → ASGI application.

Only here and in `engines` are stores and outbound chosen. `create` does it all in its order; what follows are the parts
that it makes: the provider of each issuer, then the ASGI application, then what observes both.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from corpid import __version__, engines, periodic_tasks
from corpid.engines import Engines, StartError, new_id, new_user_id
from corpid.flows import rate_limits
from corpid.flows.background_tasks import BackgroundTasks
from corpid.flows.oauth.client_clocks import ClockSkews
from corpid.flows.oauth.recently_issued import RecentlyIssued
from corpid.flows.operations.audit_stream import AuditStream
from corpid.flows.operations.buffers import DeprecatedUsage, HourlyCounters, RecentRefusals
from corpid.flows.operations.jobs import Jobs
from corpid.flows.operations.readiness import Readiness, recovering_until
from corpid.flows.rate_limits import RateLimit, RateLimits
from corpid.flows.request_context import Policy, Provider, ServerNode
from corpid.jose.keys import ALGORITHMS, load_aws_lc, working_algorithms
from corpid.outbound.audit_targets import UnusableAuthorities, audit_target
from corpid.outbound.client_keys import Egress, FetchedClientKeys
from corpid.outbound.destinations import DEVELOPER, INTERNET
from corpid.outbound.network_names import FileOfNetworks, NetworkNames, NetworksUnreadable, NoNetworks
from corpid.outbound.passwords import Argon2Passwords, Passwords, parameters
from corpid.rules import audit_stream
from corpid.rules.authentication.passkeys import passkeys_work_at
from corpid.rules.directory.names import user_name_profile
from corpid.rules.oauth import api_client
from corpid.rules.oauth.generations import GENERATIONS, AuthenticationRules
from corpid.rules.oauth.records import FIRST_ISSUER, Client
from corpid.rules.server_processes import ServerProcess
from corpid.settings import Settings, diagnostics
from corpid.settings.issuers import client_rules, issuers
from corpid.stores.sql.registry import Registry, load_stores
from corpid.stores.transient import engine_type
from corpid.web.context import Access, WebContext
from corpid.web.http.addresses import ClientAddresses
from corpid.web.http.middleware import Issuers, Middleware, Probes
from corpid.web.pages.rendering import shared_renderer
from corpid.web.routes import Extension, Router, at_root, bodiless, forms, hidden_paths, streamed
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

    from starlette.types import ASGIApp

    from corpid.flows.operations.signing_keys import SigningKeys
    from corpid.outbound.mail import Mail
    from corpid.web.pages.theme import Theme
    from corpid.web.telemetry.metrics import GaugeSources, Metrics
    from corpid.web.telemetry.spans import Spans

    Fetch = Callable[[str], Awaitable[bytes]]

# A command loads only what it uses; a server loads everything before it forks its workers.
load_stores()
user_name_profile()
load_aws_lc()

A = TypeVar("A", bound=AuthenticationRules)

_OWN_ALGORITHM: Final = "ES256"
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
    forms: tuple[str, ...]
    """the beginnings of the paths of pages with forms"""


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
    extension: Extension | None = None,
) -> AsyncIterator[Application]:
    """A provider on its stores, until the context ends. Raises StartError.

    `extension` is that of a demo; without one, developer mode has the one that is installed (D66). `passwords` replaces
    the hashing of the settings, for tests that must not be slow, `mail` its mail server, `opened` its stores, which
    then stay open; events are reported to `metrics` and `spans`.
    """
    hashing = passwords or Argon2Passwords(
        threads=settings.hashing_threads, waiting=settings.hashing_queue, profile=parameters(settings.hash_cost)
    )
    added = extension or (extension_of_developer_mode() if settings.developer_mode else Extension())
    every = issuers(settings)
    urls = [chosen.base_url for chosen in every.values()]
    rules = DEVELOPER if settings.fetches_anywhere else INTERNET
    egress = Egress(own_url=urls[0], further_urls=urls[1:], rules=rules, own_chain=settings.tls_certificate)
    opening = engines.open_stores(settings, clock) if opened is None else nullcontext(opened)
    async with opening as found, engines.open_mail(settings, clock=clock) as own_mail:
        for part in found.registry.part_names():  # made here, so that no request waits for one
            getattr(found.registry, part)
        await engines.require_kind(settings, found.registry, demo=added.is_demo)
        stores = found
        checking: Passwords = hashing
        fetch: Fetch = egress.fetch
        if spans is not None:
            stores = msgspec.structs.replace(
                found,
                registry=spans.registry(found.registry, engine_type(settings.database_url).telemetry_name),
                transient=spans.transient(found.transient, settings.transient_engine.telemetry_name),
            )
            checking, fetch = spans.passwords(hashing), spans.fetch(fetch)
        if metrics is not None:
            fetch = metrics.counting(fetch)
        client_keys = FetchedClientKeys(stores.registry.clients, fetch)
        api_client_keys = FetchedClientKeys(stores.registry.api_clients, fetch)
        clients, api_clients = await stores.registry.clients.list_all(), await stores.registry.api_clients.list_all()
        _tell_of_unknown_issuers(clients, every)
        if any(each.jwks_uri for each in clients) or any(each.jwks_uri for each in api_clients):
            await egress.load()

        provider = _provider(settings, stores, client_keys, api_client_keys, checking, mail or own_mail, clock, added)
        providers = {
            name: provider if name == FIRST_ISSUER else _further(name, chosen, settings, provider, added)
            for name, chosen in every.items()
        }
        policies = [each.policy for each in providers.values()]
        for hidden in hidden_paths(policies, added.routes):
            raise StartError(hidden)

        readiness = Readiness(provider, periodic_tasks.report_part)
        asgi = _asgi(settings, providers, readiness, spans, added, Probes(stores.open_probe, clock=clock))
        stream = _audit_stream(settings, provider)
        if metrics is not None:
            metrics.watched = _watched(settings, provider, hashing, stores, readiness, stream)
            asgi.observe(metrics.request)
        keys = [each.signing_keys for each in providers.values()]
        try:
            async with periodic_tasks.run_tasks(
                provider, metrics, readiness, keys=keys, notices=settings.notices_enabled, stream=stream
            ):
                yield Application(
                    asgi=asgi,
                    provider=provider,
                    bodiless=frozenset().union(
                        *(bodiless(policy.served, urlsplit(policy.base_url).path) for policy in policies)
                    ),
                    streamed=streamed(urlsplit(settings.base_url).path),
                    forms=tuple(
                        frozenset().union(
                            *(
                                forms(each.served, urlsplit(each.base_url).path, added.routes(each.base_url))
                                for each in policies
                            )
                        )
                    ),
                )
        finally:
            await provider.background_tasks.settle()
            await client_keys.close()
            await api_client_keys.close()
            hashing.close()


@cache
def extension_of_developer_mode() -> Extension:
    """The extension of the developer kit, if it is installed (D66). Raises StartError.

    Never a demo's, which would mark the store for ever.
    """
    from corpid import developer_kit  # noqa: PLC0415 - for developers alone

    advice = f"reinstall or remove the package {developer_kit.DISTRIBUTION}, or turn developer_mode off"
    try:
        extension = next((found() for found in developer_kit.load("corpid.developer_mode")), Extension())
    except developer_kit.KitUnusable as error:
        raise StartError(f"the developer kit cannot be used: {error}, or turn developer_mode off") from error
    except Exception as error:  # its code runs, and may raise anything
        raise StartError(f"the developer kit cannot be used ({type(error).__name__}: {error}): {advice}") from error
    if not isinstance(extension, Extension) or extension.is_demo:
        kind = "a demo's extension" if isinstance(extension, Extension) else "no extension"
        raise StartError(f"the developer kit cannot be used (it has {kind} for developer mode): {advice}")
    return extension


def _provider(
    settings: Settings,
    stores: Engines,
    client_keys: FetchedClientKeys,
    api_client_keys: FetchedClientKeys,
    passwords: Passwords,
    mail: Mail,
    clock: Callable[[], float],
    extension: Extension,
) -> Provider:
    policy = _policy(FIRST_ISSUER, settings, settings, extension)
    callers = [each.name for each in fields(RateLimit)]
    rates = {
        counted: RateLimit(**{caller: getattr(settings, f"{counted}_{caller}", 0) for caller in callers})
        for counted in rate_limits.COUNTED
    }
    node = _node(settings, int(clock()), stores.key_encryption_key)
    return Provider(
        policy=policy,
        node=node,
        registry=stores.registry,
        transient=stores.transient,
        client_keys=client_keys,
        api_client_keys=api_client_keys,
        passwords=passwords,
        mail=mail,
        signing_keys=_signing_keys(policy, stores.registry, extension),
        registry_cache=extension.registry_cache(stores.registry),
        client_clocks=ClockSkews(stores.registry, __version__),
        usage=DeprecatedUsage(),
        refusals=RecentRefusals(),
        issued=RecentlyIssued(),
        counters=HourlyCounters(),
        rate_limits=RateLimits(stores.transient, settings.base_url, rates, spare_loopback=settings.developer_mode),
        background_tasks=BackgroundTasks(_warn),
        jobs=Jobs(stores.registry, node.process.process_id, clock=clock, new_id=new_id, log=_warn),
        networks=_networks(settings),
        clock=clock,
        new_id=new_id,
    )


def _further(
    issuer_id: str, settings: Settings, deployment: Settings, first: Provider, extension: Extension
) -> Provider:
    """Build a further issuer of the deployment from the first one.

    Everything is the first one's except policy, clients and server secret.
    """
    policy = _policy(issuer_id, settings, deployment, extension)
    return replace(
        first,
        policy=policy,
        signing_keys=_signing_keys(policy, first.registry, extension),
        registry_cache=first.registry_cache.of_issuer(issuer_id),
    )


def _signing_keys(policy: Policy, registry: Registry, extension: Extension) -> SigningKeys:
    certificates = any(each.certificates for each in policy.served)
    issuer = "" if policy.is_first else policy.base_url
    return extension.signing_keys(registry, certificates=certificates, issuer=issuer)


def _policy(issuer_id: str, settings: Settings, deployment: Settings, extension: Extension) -> Policy:
    served = sorted(
        (_with_tested_algorithms(GENERATIONS[name]) for name in settings.generations), key=lambda each: not each.pushed
    )
    pushed = next((generation for generation in served if generation.pushed), None)
    query = next((generation for generation in served if not generation.pushed), None)
    rp_id = deployment.passkey_rp_id or urlsplit(deployment.base_url).hostname or ""
    return Policy(
        issuer_id=issuer_id,
        base_url=settings.base_url,
        deployment_url=deployment.base_url,
        passkey_rp_id=rp_id,
        takes_passkeys=passkeys_work_at(settings.base_url, rp_id),
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
        catalogue_path=extension.catalogue_path,
        api=_with_tested_algorithms(api_client.RULES),
    )


def _with_tested_algorithms(rules: A) -> A:
    """The rules with the algorithms that pass their self-test.

    Raises StartError if ours does not. Source: D42
    """
    working = working_algorithms(tuple(ALGORITHMS))
    lacking = sorted(set(ALGORITHMS).difference(working))
    if _OWN_ALGORITHM in lacking:
        raise StartError(
            f"{_OWN_ALGORITHM} does not work with the installed cryptography and awscrt: install other builds"
        )
    if lacking:
        access_log.log().warning("algorithm_not_working", detail=", ".join(lacking))
    return msgspec.structs.replace(
        rules,
        assertion_algorithms=tuple(name for name in rules.assertion_algorithms if name in working),
        proof_algorithms=tuple(name for name in rules.proof_algorithms if name in working),
    )


def _node(settings: Settings, now: int, key_encryption_key: str) -> ServerNode:
    """This process as it registers itself, without secrets (D43, D49)."""
    shared = {"key_encryption_key": key_encryption_key}
    generations = {}
    for issuer_id, chosen in issuers(settings).items():
        name = "" if issuer_id == FIRST_ISSUER else f"issuers.{issuer_id}."
        shared |= {f"{name}base_url": chosen.base_url, f"{name}generations": ", ".join(sorted(chosen.generations))}
        generations[issuer_id] = chosen.generations
    process = ServerProcess(
        process_id=new_id(),
        host=socket.gethostname(),
        number=os.getpid(),
        address=", ".join(settings.addresses),
        version=__version__,
        started_at=now,
        seen_at=now,
        settings=shared,
    )
    return ServerNode(
        version=process.version,
        host=process.host,
        started_at=process.started_at,
        workers=settings.workers,
        database=engine_type(settings.database_url).title,
        transient=settings.transient_engine.title,
        sends_mail=bool(settings.mail_url),
        generations=generations,
        findings=tuple(diagnostics.examine_settings(settings)),
        process=process,
    )


def _networks(settings: Settings) -> NetworkNames:
    try:
        return FileOfNetworks(settings.network_database) if settings.network_database is not None else NoNetworks()
    except NetworksUnreadable as error:
        raise StartError(str(error)) from error


def _tell_of_unknown_issuers(clients: Iterable[Client], known: Collection[str]) -> None:
    for client in clients:
        for name in client.issuers:
            if name not in known:
                detail = f"{client.client_id} names the issuer {name}, which this deployment does not have: add it to "
                _warn("unknown_issuer", f"{detail}[[issuers]], or update the client")


def _asgi(
    settings: Settings,
    providers: Mapping[str, Provider],
    readiness: Readiness,
    spans: Spans | None,
    extension: Extension,
    probes: Probes,
) -> Middleware:
    look, trusts = engines.read_theme(settings), ClientAddresses(settings.trusted_proxies).trusts
    for warning in look.warnings:
        _warn("theme", warning)
    routers = {}
    for issuer_id, provider in providers.items():
        router = _router(settings, provider, look, extension)
        router = extension.application(router, provider.policy, provider.clock)
        url = provider.policy.base_url
        routers[issuer_id, url] = router if spans is None else spans.requests(router, base_url=url, trusts=trusts)
    [first, *further] = routers
    return Middleware(
        Issuers(routers, of_first=at_root()) if further else routers[first],
        base_url=settings.base_url,
        further_urls=[url for _, url in further],
        ready=readiness.check,
        suspect=readiness.suspect,
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
        forwarded_header=settings.forwarded_header,
        keeps_https=not settings.developer_mode,
        probes=probes,
        clock=next(iter(providers.values())).clock,
    )


def _router(settings: Settings, provider: Provider, look: Theme, extension: Extension) -> ASGIApp:
    base_path = urlsplit(provider.policy.base_url).path
    account_base = base_path if provider.policy.is_first else provider.policy.deployment_url
    renderer = shared_renderer(
        name=settings.name,
        base_path=base_path,
        account_base=account_base,
        developer_mode=settings.developer_mode,
        on_network=settings.demo_on_network,
        catalogue_path=extension.catalogue_path,
        added=extension.package,
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
            developer=extension.mode(provider.policy.base_url),
        ),
        extension.routes(provider.policy.base_url),
    )


def _audit_stream(settings: Settings, provider: Provider) -> AuditStream | None:
    """The stream of the audit; None without a target."""
    if not settings.audit_stream:
        return None
    try:
        to = audit_target(
            audit_stream.target(settings.audit_stream),
            host=provider.node.process.host,
            authorities=settings.audit_stream_ca,
        )
    except UnusableAuthorities as error:
        raise StartError(str(error)) from error
    return AuditStream(
        provider.registry,
        to,
        process=provider.node.process.process_id,
        clock=provider.clock,
        report=lambda event, detail: access_log.log().info(event, detail=detail),
        warn=lambda event, detail: access_log.log().warning(event, detail=detail),
    )


def _watched(
    settings: Settings,
    provider: Provider,
    hashing: Argon2Passwords,
    stores: Engines,
    readiness: Readiness,
    stream: AuditStream | None,
) -> GaugeSources:
    """The sources of gauges for the metrics."""
    # Where several processes answer as one, a folder must be named before this is loaded.
    from corpid.web.telemetry.metrics import GaugeSources  # noqa: PLC0415

    return GaugeSources(
        clock=provider.clock,
        signing_keys=provider.signing_keys,
        hashing=lambda: hashing.pending,
        hashing_limit=settings.hashing_threads + settings.hashing_queue,
        pool=stores.connections_in_use,
        recovering_until=lambda: recovering_until(provider),
        audit_stream_lag=lambda: 0.0 if stream is None else stream.lag,
        pool_limit=settings.database_connections if engine_type(settings.database_url).has_pool else 0,
        parts=readiness.parts,
    )


def _warn(event: str, detail: str) -> None:
    access_log.log().warning(event, detail=detail)
