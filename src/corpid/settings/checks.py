"""Checks of setting values, with messages that name valid ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.errors import HeaderParseError
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from corpid.outbound.mail import mail_server
from corpid.rules.audit_stream import target
from corpid.rules.authentication.passwords import parse_hash_cost
from corpid.rules.limits import INTERACTION_SECONDS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import FIRST_ISSUER
from corpid.rules.oauth.urls import DEFAULT_PORTS, ascii_domain
from corpid.stores import transient
from corpid.web.http.addresses import HEALTH_PATHS

if TYPE_CHECKING:
    from corpid.rules.networks import Network

DOMAIN: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
PLAIN: Final = re.compile(r"https?://[a-z0-9.:\[\]-]+(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*")


def split_list(value: object) -> object:
    """The parts of a comma-separated text; anything else unchanged."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def network(value: object) -> Network:
    """An address or network."""
    try:
        return ip_network(str(value))
    except ValueError as error:
        raise ValueError(f"{value} is not an address or network ({error}): write 10.0.0.7 or 10.0.0.0/8") from error


def proxies(value: object) -> Network:
    """An address or network of proxies (D47)."""
    found = network(value)
    if found.prefixlen == 0:
        raise ValueError(f"{value} would trust everybody's forwarding headers: name only your proxies' addresses")
    return found


def zone(value: object) -> ZoneInfo:
    """A time zone by its IANA name (D23)."""
    try:
        return value if isinstance(value, ZoneInfo) else ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{value} is not a time zone: write a name such as Asia/Singapore or UTC") from error


def is_local(host: str) -> bool:
    """Return whether a host is this machine itself (D52)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def base_url(value: str) -> str:
    """The issuer in its only spelling; absolute URLs start with it.

    Source: D32, D52
    """
    value = value.removesuffix("/")
    try:
        parts = urlsplit(value)
        own_port = parts.port
    except ValueError as error:
        raise ValueError(f"{value} is not a URL ({error}): write for example https://login.example.org") from error
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError(f"{value} must begin with https:// and a host name, such as https://login.example.org")
    host = f"[{host}]" if ":" in host else host
    shown = "" if own_port in {None, DEFAULT_PORTS[parts.scheme]} else f":{own_port}"
    canonical = f"{parts.scheme}://{host}{shown}{parts.path}"
    if value != canonical or not PLAIN.fullmatch(canonical):
        raise ValueError(
            f"{value} must be plain: lower-case host, no default port, user, query, fragment or escapes, "
            f"such as {parts.scheme}://{ascii_domain(host) or 'login.example.org'}{shown}"
        )
    if parts.path in HEALTH_PATHS:
        raise ValueError(
            f"{value} cannot be reached: {' and '.join(HEALTH_PATHS)} say whether this process runs; choose another path"
        )
    return value


ISSUER_ID: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


def issuer_id(value: str) -> str:
    """Check the name of a further issuer for clients, cookies and logs (D62)."""
    if value == FIRST_ISSUER:
        raise ValueError(f"{value} is the issuer of the top-level settings: choose another id")
    if not ISSUER_ID.fullmatch(value):
        raise ValueError(
            f"{value[:40]!r} is not an id: write up to 32 lower-case letters, digits and hyphens, such as legacy"
        )
    return value


def tables(value: object) -> object:
    """Tables of corpid.toml, or a JSON array of objects from the environment."""
    form = "write tables [[issuers]] in corpid.toml, or in the environment a JSON array of objects"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not JSON ({error}): {form}") from error
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError(f"this is not a list of tables: {form}")
    return value


def domain(value: str) -> str:
    """A domain of passkeys (WebAuthn §5.1.2)."""
    if value and not (value == "localhost" or DOMAIN.fullmatch(value)):
        raise ValueError(f"{value} is not a domain: write the host of base_url or a parent domain, such as example.org")
    return value


def generations(value: tuple[str, ...]) -> tuple[str, ...]:
    """A valid combination of served generations.

    One that pushes, one that does not, or one of each.
    """
    for name in value:
        if name not in GENERATIONS:
            raise ValueError(f"{name} is not a generation that CorpID serves: choose from {', '.join(GENERATIONS)}")
    if not value:
        raise ValueError(f"no generation is named: write at least one of {', '.join(GENERATIONS)}")
    twice = [name for name in dict.fromkeys(value) if value.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]} is named more than once: write it once")
    alone = [name for name in value if GENERATIONS[name].stands_alone]
    others = ",".join(name for name in value if name not in alone)
    if alone and others:
        raise ValueError(
            f"{alone[0]} must be the only generation of an issuer, not together with {others}: write {alone[0]} or {others}, or serve one at a further issuer ([[issuers]])"
        )
    pushed = [name for name in value if GENERATIONS[name].pushed]
    for way, alike in (
        ("pushed requests", pushed),
        ("query parameters", [name for name in value if name not in pushed]),
    ):
        if len(alike) > 1:
            raise ValueError(f"{' and '.join(alike)} both take {way}, and only one of them can be served: choose one")
    return value


def hosts(value: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses to listen on, of IPv6 without brackets (D76)."""
    if not value:
        raise ValueError("no address is named: write at least one, such as 127.0.0.1")
    return tuple(host[1:-1] if host.startswith("[") and host.endswith("]") else host for host in value)


def port(value: object) -> object:
    """A port; refuses the variable of a Kubernetes service."""
    if isinstance(value, str) and value.startswith("tcp://"):
        raise ValueError(
            f"{value} is what Kubernetes sets for a service named corpid: set enableServiceLinks: false in the pod"
        )
    return value


def session(seconds: int) -> int:
    """Refuse a session shorter than its own sign-in's pages promise.

    Source: D15, D30
    """
    if 0 < seconds < INTERACTION_SECONDS:
        raise ValueError(
            f"{seconds} is shorter than a sign-in can take: write {INTERACTION_SECONDS} or more, or 0 to turn it off"
        )
    return seconds


SQLITE: Final = "sqlite:///"


def sql_url(value: str) -> str:
    """A database that CorpID can use.

    The value is not repeated, since it may hold a password.
    """
    if value and not transient.find_engine(value, transient.databases()):
        examples = ", ".join(each.url for each in transient.databases())
        raise ValueError(f"{_scheme(value)} is not a database that CorpID can use: write {examples} or omit it")
    return value


def transient_url(value: str) -> str:
    """A URL of an engine for short-lived entries.

    Messages do not repeat the value, since it may contain a password.
    """
    if value and not transient.find_engine(value, transient.transient_engines()):
        raise ValueError(
            f"{_scheme(value)} cannot store short-lived data: write {transient.transient_urls()}, or omit it"
        )
    return value


def password_hash(value: str) -> str:
    """A profile of argon2id, or numbers within safe bounds (D44)."""
    parse_hash_cost(value)
    return value


def mail_url(value: str) -> str:
    """A mail server.

    The value is not repeated, since it may hold a password.
    """
    if value:
        mail_server(value)
    return value


def mail_address(value: str) -> str:
    """A sender address without a display name."""
    if not value:
        return value
    from email.headerregistry import Address  # noqa: PLC0415 - without a sender, commands do without

    try:
        parsed = Address(addr_spec=value)
    except (ValueError, IndexError, HeaderParseError):
        parsed = None
    if parsed is None or "." not in parsed.domain or not value.isascii():
        raise ValueError(f"{value!r} is not a plain e-mail address: write for example sign-in@example.org")
    return value


CONTACT: Final = re.compile(r"(?:mailto:[^\s@,]+@[^\s@,]+|https://[^\s,]+|tel:\+?[0-9][0-9.-]*)", re.ASCII)


def contact(value: str) -> str:
    """A URI for vulnerability reports. Source: RFC 9116 §2.5.3"""
    if not (value.isascii() and value.isprintable() and CONTACT.fullmatch(value)):
        raise ValueError(
            f"{value[:80]!r} is not a contact: write for example mailto:security@example.org or https://example.org/security"
        )
    return value


def metrics_address(value: str) -> str:
    """A separate address for metrics."""
    host, _, number = value.rpartition(":")
    if value and not (host and number.isdecimal() and 0 < int(number) < 1 << 16):
        raise ValueError(f"{value} is not HOST:PORT: write for example 127.0.0.1:9464")
    return value


def audit_stream(value: str) -> str:
    """A target of the audit's stream (docs/decisions/0030)."""
    if value:
        target(value)
    return value


def _scheme(url: str) -> str:
    """The scheme of a URL; of what has none, nothing is repeated."""
    scheme, separator, _ = url.partition("://")
    return scheme[:20] if separator else "a value without ://"
