"""The Provider, and the context of a request: what flows are given.

`app` puts the Provider together, once; a context is made at the edge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from corpid.flows.rate_limits import LimitCounts, RateLimits
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import devices
from corpid.rules.oauth.records import FIRST_ISSUER, Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from zoneinfo import ZoneInfo

    from corpid.flows.background_tasks import BackgroundTasks
    from corpid.flows.namespaces import Entry
    from corpid.flows.oauth.client_clocks import ClockSkews
    from corpid.flows.oauth.recently_issued import RecentlyIssued
    from corpid.flows.operations.buffers import DeprecatedUsage, HourlyCounters, RecentRefusals
    from corpid.flows.operations.jobs import Jobs
    from corpid.flows.operations.signing_keys import ServerKeys, SigningKeys
    from corpid.flows.registry_cache import RegistryCache
    from corpid.outbound.client_keys import ClientKeys
    from corpid.outbound.mail import Mail
    from corpid.outbound.network_names import NetworkNames
    from corpid.outbound.passwords import Passwords
    from corpid.rules.diagnostics import Finding
    from corpid.rules.directory.access import Actor
    from corpid.rules.oauth.generations import AuthenticationRules, Generation
    from corpid.rules.server_processes import ServerProcess
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore

_VALUE: Final = itemgetter(1)


class Calendar:
    """The day in a time zone, converted once a minute.

    The offsets of time zones are whole minutes, so a day begins with one.
    """

    __slots__ = ("_day", "_minute", "_text", "_timezone")

    def __init__(self, timezone: ZoneInfo) -> None:
        self._timezone = timezone
        self._minute = -1
        self._day = date.min
        self._text = ""

    def day(self, now: float) -> date:
        """The day at `now`, epoch seconds. Source: D23"""
        self._turn(now)
        return self._day

    def today(self, now: float) -> str:
        """As `day`, YYYY-MM-DD."""
        self._turn(now)
        return self._text

    def _turn(self, now: float) -> None:
        minute = int(now // 60)
        if minute != self._minute:
            self._day = datetime.fromtimestamp(now, self._timezone).date()
            self._text = self._day.isoformat()
            self._minute = minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy of an issuer, set by the operator.

    `base_url` has no trailing slash and is the issuer.
    """

    issuer_id: str
    """its name for clients, cookies and logs"""
    base_url: str
    deployment_url: str
    """base_url of the first issuer: the account and links are there, and what people do is counted there (D62)"""
    passkey_rp_id: str
    """the domain that passkeys belong to (WebAuthn §5.1.2)"""
    takes_passkeys: bool
    """whether passkeys work here: they belong to a domain, never to an IP address (WebAuthn §5.1.3, D34, D46)"""
    name: str
    pushed: Generation | None
    """the generation that PAR serves, with the algorithms that work here (D42)"""
    query: Generation | None
    """the generation whose requests come as query parameters; one of the two is always served"""
    returns_iss: bool
    """whether callbacks carry `iss`; discovery says the same (RFC 9207)"""
    session_seconds: int
    """absolute lifetime of single sign-on; 0 turns it off (D30)"""
    email_codes: bool
    """whether a code by e-mail is a second factor, if mail is sent (D45)"""
    consent_days: int
    """how long consent is remembered; 0: it is asked for every time (D29)"""
    timezone: ZoneInfo
    acr_prefix: str
    """acr is this and the level, e.g. `urn:idp:authentication:loa:2` (D10)"""
    dpop_nonces: bool
    """whether proofs must carry a server nonce (RFC 9449 §8, D7)"""
    dpop_mismatch_code: str
    """error of a code that is redeemed with another key than the one bound to it (D6)"""
    context_message_punctuation: bool
    """whether authentication_context_message may hold more than letters, digits and spaces (D12)"""
    jwe_header_claims: bool
    """whether the header of a JWE repeats iss and aud of its content (RFC 7519 §5.3, D21)"""
    developer_mode: bool
    catalogue_path: str
    """of the catalogue of reasons, under base_url; empty: there is none (D28)"""
    api: AuthenticationRules
    """of the admin API, with the algorithms that work here (D42, D59)"""

    is_first: bool = field(init=False)
    """true for the deployment's first issuer, which hosts the account (D62)"""
    served: tuple[Generation, ...] = field(init=False)
    """the generations of this deployment; the first one's document is published"""
    calendar: Calendar = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Fields, since every request asks several times.
        object.__setattr__(self, "is_first", self.issuer_id == FIRST_ISSUER)
        served = tuple(generation for generation in (self.pushed, self.query) if generation is not None)
        object.__setattr__(self, "served", served)
        object.__setattr__(self, "calendar", Calendar(self.timezone))

    @property
    def error_catalogue(self) -> str | None:
        """The address of the catalogue of reasons in developer mode.

        Empty: there is no catalogue. None: this is not developer mode, and causes are not named. Source: D28
        """
        if not self.developer_mode:
            return None
        return self.catalogue_path and self.base_url + self.catalogue_path

    @property
    def iss_of_callback(self) -> str | None:
        """The `iss` of a callback, None if callbacks carry none.

        Source: RFC 9207 §2
        """
        return self.base_url if self.returns_iss else None

    def replicated_claims(self, client: Client) -> dict[str, str]:
        """The claims that the header of a JWE for this client repeats.

        Source: RFC 7519 §5.3, D21, D71
        """
        wanted = self.jwe_header_claims if client.jwe_header_claims is None else client.jwe_header_claims
        return {"iss": self.base_url, "aud": client.client_id} if wanted else {}

    def generation_of_code(self, code: str) -> Generation:
        """The served generation named by a code's first character.

        Otherwise the first one. Source: Spec "Generations"
        """
        prefix = code[:1]
        for each in self.served:
            if each.code_prefix == prefix:
                return each
        return self.served[0]

    def serving(self, name: str) -> Generation | None:
        """The served generation of this name; None if not served.

        Source: Spec "Generations"
        """
        for each in (self.pushed, self.query):
            if each is not None and each.name == name:
                return each
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNode:
    """This process and its engines, for operators."""

    version: str
    host: str
    started_at: int
    """epoch seconds"""
    workers: int
    """processes that serve together on this host"""
    database: str
    """the engine of what lasts"""
    transient: str
    """the engine of what lives for minutes"""
    sends_mail: bool
    generations: Mapping[str, Sequence[str]]
    """id of each issuer → the names of the generations that it serves"""
    findings: tuple[Finding, ...]
    """about the settings, with which this process started"""
    process: ServerProcess
    """as it registers itself"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Policy, stores, other systems, and state that a process keeps in memory."""

    policy: Policy
    node: ServerNode
    registry: Registry
    transient: TransientStore
    client_keys: ClientKeys
    api_client_keys: ClientKeys
    passwords: Passwords
    mail: Mail
    signing_keys: SigningKeys
    registry_cache: RegistryCache
    client_clocks: ClockSkews
    usage: DeprecatedUsage
    refusals: RecentRefusals
    issued: RecentlyIssued
    counters: HourlyCounters
    rate_limits: RateLimits
    background_tasks: BackgroundTasks
    jobs: Jobs
    networks: NetworkNames
    """names of networks, looked up when a person reads where they signed in from"""
    clock: Callable[[], float]
    new_id: Callable[[], str]
    """32 random bytes, base64url without padding"""


@dataclass(slots=True, kw_only=True, eq=False)
class RequestContext:
    """The provider, the moment, and the origin of one request.

    Nothing changes it, except `counts`; it is not frozen, because every request makes one and that would triple the
    cost.

    `now` is the request's one reading of the clock, in epoch seconds (D49); `keys` are the keys of that
    moment; `request_id` is the reference in errors (D28).
    """

    provider: Provider
    keys: ServerKeys
    now: float
    request_id: str
    address: str
    user_agent: str = ""
    """of a page's reader; empty for a request of a client"""
    counts: LimitCounts = field(default_factory=LimitCounts)
    """what the request has counted at limits so far"""

    @property
    def device(self) -> str:
        """Browser and system of a page's reader, empty if unknown.

        Source: RFC 9110 §10.1.5
        """
        return devices.device(self.user_agent) if self.user_agent else ""

    @property
    def day(self) -> date:
        """The day in the deployment's time zone (D23)."""
        return self.provider.policy.calendar.day(self.now)

    @property
    def today(self) -> str:
        """The day in the deployment's time zone, YYYY-MM-DD (D23)."""
        return self.provider.policy.calendar.today(self.now)

    async def count(self, entry: Entry[Any]) -> int:
        """Raise the counter of a limit, in a batch of its own.

        Raises StoreUnavailable. Source: D47
        """
        async with self.provider.transient.batch(self.now) as batch:
            return await self.counts.count(batch, entry)

    def event(
        self,
        actor: Actor,
        action: AuditAction,
        *,
        subject: str = "",
        client_id: str = "",
        entity_id: str = "",
        outcome: Literal["ok", "refused"] = "ok",
        **detail: str,
    ) -> AuditEvent:
        """An audit event of this request, with address and device.

        A further issuer is named, too. `subject` is what the action was done to. Empty details are omitted. Source:
        SECURITY.md, D62
        """
        policy = self.provider.policy
        issuer = "" if policy.is_first else policy.issuer_id
        known = {"address": self.address, "device": self.device, "issuer": issuer, **detail}
        return AuditEvent(
            actor=actor.name,
            action=action,
            object=subject,
            client_id=client_id,
            entity_id=entity_id,
            outcome=outcome,
            request_id=self.request_id,
            detail=dict(filter(_VALUE, known.items())),
        )


async def request_context(
    provider: Provider, *, request_id: str, address: str, user_agent: str = "", counts: LimitCounts | None = None
) -> RequestContext:
    """A new request's context: the clock, and the keys of that moment.

    `counts` are those of the request, if its endpoint has begun one before. Raises StoreUnavailable; ValueError if no
    key may sign. Source: D42, D49
    """
    now = provider.clock()
    return RequestContext(
        provider=provider,
        keys=provider.signing_keys.fresh(now) or await provider.signing_keys.keys_at(now),
        now=now,
        request_id=request_id,
        address=address,
        user_agent=user_agent,
        counts=counts or LimitCounts(),
    )
