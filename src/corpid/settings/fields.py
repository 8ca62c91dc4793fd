"""The settings, contradictions between them, and presets.

A preset is the lowest layer: whatever the environment, corpid.toml or an override says wins over it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal, Self, TypeVar, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpid.rules.authentication.passwords import HashCost, parse_hash_cost
from corpid.rules.networks import Network
from corpid.rules.oauth.records import ALG_OF_KEY
from corpid.settings import checks
from corpid.stores.transient import EngineType, engine_type, transient_urls
from corpid.web.http.addresses import ForwardingHeader, bracket_host


class Secret:
    """Marks a setting that can hold a key or a password."""


def contradictions(settings: Settings) -> Iterator[tuple[bool, str]]:
    """Pairs: whether a contradiction exists, and how to fix it.

    Source: D43, D52
    """
    parts = urlsplit(settings.base_url)
    local, secure = checks.is_local(parts.hostname or ""), parts.scheme == "https"
    own_tls, behind_proxy = settings.tls_certificate is not None, bool(settings.trusted_proxies)
    yield (
        own_tls != (settings.tls_key is not None),
        "tls_certificate and tls_key belong together: set both or neither",
    )
    yield own_tls and not secure, "base_url must begin with https:// when tls_certificate is set"
    yield (
        not secure and not local and not behind_proxy,
        f"base_url {settings.base_url} is http outside localhost: use https, or name your proxy in trusted_proxies",
    )
    yield (
        secure and not own_tls and not behind_proxy and not (settings.makes_certificate and local),
        (
            f"base_url {settings.base_url} is https, but nothing here serves TLS: set tls_certificate and tls_key, "
            f"or name the proxy that does in trusted_proxies"
        ),
    )
    yield (
        settings.developer_mode and not local and not settings.demo_on_network,
        f"developer_mode is for your own machine: turn it off, or use a base_url on localhost, not {settings.base_url}",
    )
    yield (
        bool(settings.mail_url) != bool(settings.mail_from),
        "mail_url and mail_from belong together: set both or neither",
    )
    yield (
        settings.transient_engine.is_local and settings.sqlite_path is None,
        (
            "transient_url is a directory of this machine, and database_url is shared with others: name a Redis or Valkey "
            "in transient_url, or omit it"
        ),
    )
    yield (
        settings.audit_stream_ca is not None and not settings.audit_stream.startswith("syslog+tls://"),
        "audit_stream_ca is for TLS: let audit_stream begin with syslog+tls://, or leave audit_stream_ca out",
    )
    yield (
        settings.key_encryption_key is not None and settings.key_encryption_key_file is not None,
        "key_encryption_key and key_encryption_key_file are both set: keep one of them",
    )


PREFIX: Final = "CORPID_"

T = TypeVar("T")


class SettingsError(Exception):
    """A setting that CorpID cannot start with.

    The message is one sentence for the operator.
    """


_MINUTE: Final = ", per minute; 0: no limit. In developer mode loopback addresses are not counted."

List = Annotated[tuple[T, ...], BeforeValidator(checks.split_list)]
BaseUrl = Annotated[str, AfterValidator(checks.base_url)]


class IssuerSettings(BaseModel):
    """The settings that each issuer may have of its own (D62)."""

    # Building a validator is slow, and this class is only a base: build none for it.
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    base_url: BaseUrl = Field(
        default="http://localhost:8080",
        description="Public address of CorpID, and its issuer. https, or http on localhost (elsewhere only behind a "
        "proxy named in trusted_proxies). Can have a path, but no query.",
    )
    preset: Literal["", "public-service"] = Field(
        default="", description="A group of settings, see below. A setting that you set yourself overrides it."
    )
    generations: Annotated[List[str], AfterValidator(checks.generations)] = Field(
        default=("current",),
        description="Generations of the interface to serve, separated by commas: legacy, intermediate, current, "
        "fapi2. At most one with pushed requests; legacy with it or alone; fapi2 only alone at an issuer.",
    )
    return_iss: bool | None = Field(
        default=None,
        description="Whether callbacks carry iss (RFC 9207), in every generation. Empty: the default of the "
        "generation in the discovery document (of two, the one with pushed requests).",
    )
    acr_prefix: str = Field(
        default="urn:idp:authentication:loa:",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Prefix of the assurance level in acr.",
    )
    dpop_mismatch_error: Literal["invalid_grant", "invalid_dpop_proof"] = Field(
        default="invalid_grant",
        description="Error for a code redeemed with a DPoP key other than the one bound to it: invalid_grant or "
        "invalid_dpop_proof.",
    )
    context_message_punctuation: bool = Field(
        default=True,
        description="Whether authentication_context_message can contain . , - @ ' ! ( ) in addition to ASCII "
        "letters, digits and spaces.",
    )
    jwe_header_claims: bool = Field(
        default=False,
        description="Whether the header of an encrypted ID token or resource response repeats its iss and aud (RFC 7519 5.3).",
    )
    consent_days: int = Field(
        default=365,
        ge=0,
        le=3650,
        description="Days to remember a person's consent to share data with a relying party; 0: ask at every "
        "sign-in. A change applies to consent given afterwards; 0 applies at once.",
    )
    timezone: Annotated[ZoneInfo, BeforeValidator(checks.zone)] = Field(
        default=ZoneInfo("UTC"), validate_default=True, description="Time zone of the dates of roles."
    )


class Issuer(IssuerSettings):
    """A further issuer: one table of `[[issuers]]`.

    A setting that it leaves out has its preset's value, otherwise that of the top level (`issuers.issuers`). Source:
    D62
    """

    id: Annotated[str, AfterValidator(checks.issuer_id)]
    base_url: BaseUrl


_MAY_DIFFER: Final = tuple(name for name in IssuerSettings.model_fields if name not in {"base_url", "generations"})


class Settings(IssuerSettings):
    """Everything an operator decides. Made by `load`."""

    model_config = ConfigDict(validate_default=True)
    demo_on_network: ClassVar[bool] = False
    """whether developer mode may be on for other machines: in a demo with `--host`, and by no setting (D66)"""

    host: Annotated[List[str], AfterValidator(checks.hosts)] = Field(
        default=("127.0.0.1",),
        description="Addresses or names to listen on, separated by commas; 0.0.0.0 for every IPv4 address, :: for every IPv6 "
        "and IPv4 address.",
    )
    ipv6_only: bool = Field(default=False, description="Whether :: in host and metrics_address leaves out IPv4.")
    port: Annotated[int, BeforeValidator(checks.port)] = Field(
        default=8080, ge=1, le=65535, description="Port to listen on."
    )
    name: str = Field(
        default="CorpID", min_length=1, max_length=60, description="Name of this provider on pages and in e-mails."
    )
    theme: Path | None = Field(
        default=None,
        description="Directory with theme.toml, the look of the pages (docs/theming.md). Empty: CorpID's own look.",
    )
    network_database: Path | None = Field(
        default=None,
        description="File in MaxMind DB format with the networks of addresses (ASN), by whose names the account shows where a "
        "person signed in from. Read at start. Empty: no names.",
    )
    data_dir: Path = Field(
        default=Path("data"),
        description="Directory of the embedded database and its key; created if missing.",
    )
    database_url: Annotated[str, Secret()] = Field(
        default="",
        repr=False,
        description="postgresql://USER:PASSWORD@HOST/NAME or sqlite:///PATH. Empty: corpid.sqlite in data_dir.",
    )
    migrate_on_start: bool = Field(
        default=False,
        description="Whether `corpid serve` migrates a PostgreSQL database when it starts; if several start at once, "
        "one migrates. Otherwise run `corpid migrate`.",
    )
    database_connections: int = Field(
        default=10, ge=1, le=500, description="Most connections to PostgreSQL that one process opens."
    )
    transient_url: Annotated[str, AfterValidator(checks.transient_url), Secret()] = Field(
        default="",
        repr=False,
        description=f"{transient_urls()}, for short-lived data. For a cluster, one node, or several separated by "
        f"commas. Empty: LMDB in data_dir if database_url is empty, too; else the database.",
    )
    issuers: Annotated[tuple[Issuer, ...], BeforeValidator(checks.tables)] = Field(
        default=(),
        description="Further issuers of this deployment (docs/operate.md), each a table `[[issuers]]` with `id`, `base_url`, "
        f"`generations`, and where they differ {', '.join(f'`{name}`' for name in _MAY_DIFFER)}. In the environment: a JSON "
        "array of them.",
    )
    passkey_rp_id: Annotated[str, AfterValidator(checks.domain)] = Field(
        default="",
        description="Domain of passkeys: the host of an issuer, or a parent domain; issuers outside it offer no "
        "passkeys. Empty: the host of base_url. If you change it, existing passkeys stop working.",
    )
    session_seconds: Annotated[int, AfterValidator(checks.session)] = Field(
        default=0,
        ge=0,
        le=604800,
        description="Seconds that a sign-in is valid for further relying parties, 600 or more; 0: single sign-on is off.",
    )
    email_codes: bool = Field(
        default=True,
        description="Whether a person with a known e-mail address can get a code by e-mail as second factor, if "
        "CorpID sends mail.",
    )
    mail_url: Annotated[str, AfterValidator(checks.mail_url), Secret()] = Field(
        default="",
        repr=False,
        description="smtp://USER:PASSWORD@HOST:587 (with STARTTLS, except for a server on this machine) or "
        "smtps://USER:PASSWORD@HOST:465. Empty: CorpID sends no mail.",
    )
    mail_from: Annotated[str, AfterValidator(checks.mail_address)] = Field(
        default="", description="Sender address of e-mails, such as sign-in@example.org; required with mail_url."
    )
    mail_reply_to: Annotated[str, AfterValidator(checks.mail_address)] = Field(
        default="", description="Address that answers to e-mails go to, such as a help desk. Empty: mail_from."
    )
    notices_enabled: bool = Field(
        default=True,
        description="Whether people get e-mails about changes and ends of their access, and administrators about what "
        "they have to do, if CorpID sends mail.",
    )
    security_contact: List[Annotated[str, AfterValidator(checks.contact)]] = Field(
        default=(),
        description="Where to report a vulnerability of this deployment, as mailto:, https: or tel: URIs separated by "
        "commas; published in /.well-known/security.txt (RFC 9116). Empty: there is no such file.",
    )
    api_enabled: bool = Field(default=True, description="Whether the admin API and its token endpoint are served.")
    api_networks: List[Annotated[Network, BeforeValidator(checks.network)]] = Field(
        default=(),
        description="Addresses or networks that may call the admin API and its token endpoint, separated by commas; for "
        "all others these paths do not exist. Empty: every address.",
    )
    scim_enabled: bool = Field(default=True, description="Whether SCIM is served.")
    manage_enabled: bool = Field(
        default=True, description="Whether the portal for administrators of entities, /manage, is served."
    )
    console_enabled: bool = Field(default=True, description="Whether the console for operators, /console, is served.")
    console_networks: List[Annotated[Network, BeforeValidator(checks.network)]] = Field(
        default=(),
        description="Addresses or networks that may open the console, separated by commas; for all others it does not "
        "exist. Empty: every address.",
    )
    operators_need_passkey: bool = Field(
        default=True, description="Whether the console admits only operators who have signed in with a passkey."
    )
    dpop_nonces: bool = Field(default=False, description="Whether DPoP proofs must contain a nonce of this server.")
    trusted_proxies: List[Annotated[Network, BeforeValidator(checks.proxies)]] = Field(
        default=(),
        description="Addresses or networks of your proxies, separated by commas. CorpID believes only their "
        "forwarded_header for the caller's address.",
    )
    forwarded_header: ForwardingHeader = Field(
        default=ForwardingHeader.X_FORWARDED_FOR,
        description="Header in which trusted_proxies report the caller's address: X-Forwarded-For or Forwarded. "
        "CorpID ignores the other header, because callers can set it.",
    )
    allowed_hosts: List[str] = Field(
        default=(), description="Further accepted Host headers, as name (any port) or name:port."
    )
    tls_certificate: Path | None = Field(
        default=None,
        description="PEM file with the certificate chain, for own TLS. Renewed files are reloaded within a minute.",
    )
    tls_key: Path | None = Field(
        default=None, description="PEM file with its key, without password. Empty in developer mode: both are made."
    )
    key_encryption_key: Annotated[SecretStr | None, Secret()] = Field(
        default=None,
        description="32 bytes in base64 that encrypt secrets at rest. With the default database and neither this nor "
        "the file, CorpID creates a key in data_dir.",
    )
    key_encryption_key_file: Path | None = Field(
        default=None, description="File with the value of key_encryption_key; readable only by its owner (mode 0600)."
    )
    old_key_encryption_key_files: List[Path] = Field(
        default=(),
        description="Files with earlier key-encryption keys, separated by commas, to decrypt what `corpid key "
        "rewrap` has not encrypted again yet.",
    )
    developer_mode: bool = Field(
        default=False,
        description="Allows http on localhost, and refusals name their cause; pages say that it is on. With corpid-dev also "
        "the catalogue of errors and the schemas under `/developer`. Only on localhost.",
    )
    password_hash: Annotated[str, AfterValidator(checks.password_hash)] = Field(
        default="rfc9106",
        description="Cost of a password's argon2id hash: `rfc9106` (64 MiB, 3 passes), `owasp` (19 MiB, 2 passes, an "
        "eighth of the time), or numbers such as `m=65536,t=3,p=4`. A cheaper hash is raised at the next sign-in, none is "
        "lowered; until then the time of a wrong password can tell that an account exists (docs/capacity.md).",
    )
    hashing_threads: int = Field(
        default_factory=lambda: os.cpu_count() or 1,
        ge=1,
        le=256,
        description="Threads that check passwords; one check takes about 0.2 s and 64 MiB, with `owasp` as password_hash "
        "0.02 s and 19 MiB. Default: one per processor.",
    )
    hashing_queue: int = Field(default=64, ge=4, description="Most password checks that can wait; networks take turns.")
    connections: int = Field(
        default=4000,
        ge=16,
        le=100_000,
        description="Most callers' connections that one process holds; fewer if the system limits open files. Beyond "
        "the limit, the connection idle longest is closed.",
    )
    concurrent_requests: int = Field(
        default=1000,
        ge=1,
        description="Most requests that one process handles at the same time; further requests get 503 at once.",
    )
    workers: int = Field(
        default=1, ge=1, le=64, description="Processes of `corpid serve` on this machine, all on the same port."
    )
    keepalive_seconds: float = Field(
        default=75,
        gt=0,
        le=3600,
        description="Seconds that an idle connection stays open; longer than the proxy's own timeout.",
    )
    par_per_client: int = Field(default=300_000, ge=0, description=f"Pushed requests of one client{_MINUTE}")
    par_per_address: int = Field(default=300_000, ge=0, description=f"Pushed requests from one address{_MINUTE}")
    token_per_client: int = Field(default=300_000, ge=0, description=f"Token requests of one client{_MINUTE}")
    token_per_address: int = Field(default=300_000, ge=0, description=f"Token requests from one address{_MINUTE}")
    sign_in_per_address: int = Field(
        default=30_000, ge=0, description=f"Browsers that start to sign in from one address{_MINUTE}"
    )
    account_per_address: int = Field(
        default=600,
        ge=0,
        description=f"Browsers that open the account, or the page for a forgotten password, from one address{_MINUTE}",
    )
    arrivals_per_network: int = Field(
        default=1200,
        ge=0,
        description=f"Sign-ins without a pushed request that new browsers start in one network (IPv4 /24, IPv6 /48){_MINUTE}",
    )
    arrivals_in_all: int = Field(default=12_000, ge=0, description=f"The same from all networks together{_MINUTE}")
    api_per_client: int = Field(default=30_000, ge=0, description=f"Calls of the admin API by one client{_MINUTE}")
    api_per_address: int = Field(default=30_000, ge=0, description=f"Calls of the admin API from one address{_MINUTE}")
    scim_per_client: int = Field(default=6_000, ge=0, description=f"Requests of SCIM with one token{_MINUTE}")
    scim_per_address: int = Field(default=30_000, ge=0, description=f"Requests of SCIM from one address{_MINUTE}")
    drain_delay_seconds: float = Field(
        default=0,
        ge=0,
        le=600,
        description="Seconds that CorpID continues to serve after a signal to stop, while /readyz already fails; "
        "longer than the load balancer takes to notice.",
    )
    drain_seconds: float = Field(
        default=10, ge=0, le=600, description="Seconds that requests in flight have to finish when CorpID stops."
    )
    metrics_address: Annotated[str, AfterValidator(checks.metrics_address)] = Field(
        default="",
        description="HOST:PORT of the Prometheus metrics, at this HOST, its address or one of allowed_hosts. Empty: "
        "no metrics. Keep it private.",
    )
    audit_stream: Annotated[str, AfterValidator(checks.audit_stream)] = Field(
        default="",
        description="Where every audit entry is also written, as a line of JSON, for a SIEM (docs/audit.md): the path of a file, "
        "syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT or syslog+unix:///dev/log. Empty: nowhere.",
    )
    audit_stream_ca: Path | None = Field(
        default=None,
        description="PEM file with the certificate authorities that audit_stream's TLS server may have its certificate "
        "from. Read at start. Empty: those that the system trusts.",
    )
    audit_days: int = Field(
        default=0, ge=0, description="Days that `corpid maintenance prune` keeps audit entries; 0: for ever."
    )
    sign_in_days: int = Field(
        default=0, ge=0, description="Days that `corpid maintenance prune` keeps entries of sign-ins; 0: for ever."
    )
    audit_detail_days: int = Field(
        default=0,
        ge=0,
        description="Days that `corpid maintenance prune` keeps details of audit entries (addresses, names, e-mail "
        "addresses), if the entries are kept longer; 0: as long as the entries.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level of log lines: debug, info, warning, error."
    )

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _or_embedded(cls, value: str, others: ValidationInfo) -> str:
        return checks.sql_url(value) or _embedded_url(others.data.get("data_dir", Path()))

    @field_validator("transient_url")
    @classmethod
    def _or_lmdb(cls, value: str, others: ValidationInfo) -> str:
        data_dir = others.data.get("data_dir", Path())
        is_embedded = others.data.get("database_url") == _embedded_url(data_dir)
        return value or (f"lmdb://{(data_dir / 'short-lived').absolute()}" if is_embedded else "")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        for broken, sentence in contradictions(self):
            if broken:
                raise ValueError(sentence)
        return self

    @property
    def fetches_anywhere(self) -> bool:
        """True if clients' keys may be fetched from any address.

        That is in developer mode, unless other machines reach it. Source: D27, D66
        """
        host = urlsplit(self.base_url).hostname or ""
        return self.developer_mode and not self.demo_on_network and checks.is_local(host)

    @property
    def makes_certificate(self) -> bool:
        """True if `corpid serve` makes the certificate that it serves (D52)."""
        secured = self.tls_certificate or self.trusted_proxies
        return self.developer_mode and self.base_url.startswith("https:") and not secured

    @property
    def addresses(self) -> tuple[str, ...]:
        """HOST:PORT of each host (D76)."""
        return tuple(f"{bracket_host(host)}:{self.port}" for host in self.host)

    @property
    def sqlite_path(self) -> Path | None:
        """The SQLite file that database_url names; None for another engine."""
        path = self.database_url.removeprefix(checks.SQLITE)
        return None if path == self.database_url else Path(path)

    @property
    def hash_cost(self) -> HashCost:
        """The cost of a password's hash (D44)."""
        return parse_hash_cost(self.password_hash)

    @property
    def transient_engine(self) -> EngineType:
        """The engine of short-lived data."""
        return engine_type(self.transient_url or self.database_url)

    @property
    def is_embedded(self) -> bool:
        """True if the database is the default one, SQLite in data_dir."""
        return self.database_url == _embedded_url(self.data_dir)


def _embedded_url(data_dir: Path) -> str:
    return f"sqlite:///{data_dir / 'corpid.sqlite'}"


SECRETS: Final = tuple(
    name for name, field in Settings.model_fields.items() if any(isinstance(mark, Secret) for mark in field.metadata)
)
"""the settings that can hold a password or a key; each has a `NAME_file` (`settings.named_secret_files`)"""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment of one kind."""

    purpose: str
    """one sentence for docs/settings.md"""
    settings: Mapping[str, object]
    new_client: Mapping[str, object]
    """member of a client's record → the defaults of a new client"""

    @property
    def generations(self) -> tuple[str, ...]:
        """The generations that it serves."""
        return cast("tuple[str, ...]", self.settings["generations"])


PUBLIC_SERVICE: Final = Preset(
    purpose="The requests and responses of the public service from which the specification was written, so that you can "
    "test a relying party of that service by changing one URL. One was run in this way, unchanged: the npm package "
    "`@govtechsg/singpass-myinfo-oidc-helper` 8.4.6, with legacy. Tests also send the requests of that service's demo "
    "relying parties for Node and Java, with current. No other relying party has been run. "
    "[Step by step](coming-from-a-mock.md#the-public-samples-step-by-step) has the commands; "
    "`corpid demo --preset public-service` serves each generation at an issuer of its own.",
    settings=MappingProxyType(
        {
            "generations": ("current", "legacy"),
            "return_iss": True,
            "acr_prefix": "urn:singpass:authentication:loa:",  # D10, R-0.12
            "dpop_mismatch_error": "invalid_dpop_proof",  # D6, R-0.13
            "context_message_punctuation": False,  # D12, R-5.1
            "jwe_header_claims": True,  # D21, R-12.1
            "consent_days": 0,  # D29
            "timezone": "Asia/Singapore",
        }
    ),
    new_client=MappingProxyType(
        {
            "subject": "entity",  # D1, R-12.4
            "id_token_encryption_alg": ALG_OF_KEY,  # D21: in FAPI2, too
            "userinfo_encryption_enc": "A256GCM",  # D22, R-0.11
            "stringified_blocks": True,
            "pkce": "optional",  # Spec "LEGACY without PKCE"
            "scopes": (
                "openid",
                "authinfo",
                "tpauthinfo",
                "entity.identity",
                "entity.basic_profile.name",
                "entity.basic_profile.uen_status",
                "user.identity",
                "user.name",
            ),
        }
    ),
)
PRESETS: Final[Mapping[str, Preset]] = MappingProxyType({"public-service": PUBLIC_SERVICE})
