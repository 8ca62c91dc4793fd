"""Checks of a node's own settings, engines and connections.

No public response shows that, so only a node can be asked, and only one of Linux.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid import engines
from corpid.cli.doctor.findings import Finding, ok, plain, problem, sentence, warning
from corpid.outbound.network_names import FileOfNetworks, NetworksUnreadable
from corpid.rules.authentication.rp_id import works_at
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.rules.oauth.client_registration import is_registered_at, pkce_optional
from corpid.rules.oauth.generations import GENERATIONS
from corpid.settings.checks import is_local
from corpid.settings.issuers import issuers
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME, EncryptionError
from corpid.stores.engines import engine_type, transient_engine
from corpid.stores.sql import examination as database
from corpid.stores.sql.migration_target import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpid.settings import Settings

    Address = IPv4Address | IPv6Address
    from corpid.rules.oauth.records import Client

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"


def look_at_peers(settings: Settings, tables: Iterable[Path] = _TABLES) -> Finding:
    """Check that only trusted proxies connect.

    Ask just after requests came through them (D47).
    """
    about = "callers' addresses"
    change = "Change: name the addresses from which the proxy connects in trusted_proxies."
    if not settings.trusted_proxies and settings.tls_certificate is None:
        return warning(about, "No proxy is trusted: behind a proxy, all callers have the same address.", change)
    entries = [entry for table in tables for entry in _entries(table)]
    if not settings.trusted_proxies:
        return ok(about, "CorpID serves TLS itself, and uses the addresses of its callers' connections.")
    if not any(port == settings.port and state == _LISTENS for port, _, state in entries):
        seen = f"Nothing listens on port {settings.port} of this machine, so it is unknown who connects."
        return warning(about, seen, "Change: run this on a node, with its settings.")
    peers = {peer for port, peer, state in entries if port == settings.port and state != _LISTENS}
    foreign = {peer for peer in peers if not any(peer in network for network in settings.trusted_proxies)}
    return _peer_finding(about, change, peers, foreign)


def _peer_finding(about: str, change: str, peers: set[Address], foreign: set[Address]) -> Finding:
    shown = ", ".join(sorted(map(str, foreign)))
    if not peers:
        seen = "No proxy is or was just connected, so its address is unknown."
        return warning(about, seen, "Change: run this again, or check `address` in the log: it must be the caller's.")
    if foreign == peers:
        seen = f"Connections come from {shown}, which is not trusted: all callers have that address."
        return problem(about, seen, change)
    if foreign:
        return warning(
            about, f"Connections also come from {shown}, which is not trusted.", f"{change[:-1]}, if this is a proxy."
        )
    return ok(about, "Connections come only from trusted proxies, which report callers' addresses.")


def _entries(table: Path) -> Iterator[tuple[int, Address, str]]:
    """Local port, remote address and state of each connection."""
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        _, local, remote, state, *_ = line.split()
        yield int(local.rpartition(":")[2], 16), _address(remote.partition(":")[0]), state


def _address(text: str) -> Address:
    """Words of four bytes, each in this machine's order.

    An IPv4 address inside of IPv6 is that address.
    """
    raw = bytes.fromhex(text)
    ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ip_address(ordered)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


_DAY: Final = 86_400
OLD_KEY_DAYS: Final = 400
"""a key is rotated once a year; the age at which an alert is due (CorpidSigningKeyOld)"""
LETTER_DAYS: Final = 2
"""the age at which a waiting invitation e-mail is a warning"""
UNSEALED_SECONDS: Final = 7200
"""how long an audit entry can be unsealed: twice the longest time that sealing takes"""
_OLDEST_RUN: Final = 15
"""of PostgreSQL"""


def look(settings: Settings) -> Iterator[Finding]:
    """The checks that need no request to the nodes."""
    yield from _chosen(settings)
    yield _key_encryption_key(settings)
    yield from _database(settings)
    if settings.transient_url:
        yield from _transient(settings.transient_url)


def _chosen(settings: Settings) -> Iterator[Finding]:
    parts = urlsplit(settings.base_url)
    found: list[Finding] = []
    if settings.developer_mode:
        change = "Change: turn off developer_mode wherever other people sign in."
        found.append(warning("developer_mode", "It is on: security rules are relaxed.", change))
    elif is_local(parts.hostname or ""):
        change = "Change: set base_url to the URL that callers use."
        found.append(
            warning("base_url's host", f"base_url is {settings.base_url}, which works only on this machine.", change)
        )
    elif parts.scheme != "https":
        change = "Change: let the proxy serve TLS, and begin base_url with https://."
        found.append(problem("base_url's scheme", "base_url is http: codes and tokens are sent unencrypted.", change))
    if settings.network_database is not None:
        try:
            FileOfNetworks(settings.network_database)
        except NetworksUnreadable as error:
            change = "Change: name a file in MaxMind DB format that CorpID may read, or leave network_database out."
            found.append(problem("network_database", sentence(str(error)), change))
    if settings.trusted_proxies and not settings.drain_delay_seconds:
        change = "Change: set drain_delay_seconds longer than the proxy takes to notice /readyz, such as 5."
        found.append(warning("drain_delay_seconds", "It is 0: requests can fail while a node restarts.", change))
    if settings.transient_url and settings.sqlite_path is not None:
        change = "Change: set database_url to a PostgreSQL database, or omit transient_url."
        found.append(
            warning(
                "engines",
                f"{engine_type(settings.transient_url).title} together with SQLite: further nodes cannot share the database.",
                change,
            )
        )
    if settings.metrics_address.startswith(("0.0.0.0:", "[::]:")):
        change = "Change: name the address in the network of Prometheus."
        found.append(warning("metrics_address", "Metrics are served on every address.", change))
    found += _passkeys(settings)
    yield from found or [ok("settings", "No problem found in them.")]


def _passkeys(settings: Settings) -> Iterator[Finding]:
    """Issuers where people's passkeys do not work (D62)."""
    rp_id = settings.passkey_rp_id or urlsplit(settings.base_url).hostname or ""
    outside = [name for name, issuer in issuers(settings).items() if not works_at(issuer.base_url, rp_id)]
    if outside and (settings.issuers or settings.passkey_rp_id):
        seen = f"No passkeys are offered at {', '.join(outside)}: their host is not {rp_id} or a subdomain of it."
        change = "Change: set passkey_rp_id to a parent domain of every issuer's host before people have passkeys, or keep it."
        yield warning("passkeys", seen, change)


def _key_encryption_key(settings: Settings) -> Finding:
    about = "key-encryption key"
    made = settings.data_dir / EMBEDDED_KEY_NAME
    named = settings.key_encryption_key or settings.key_encryption_key_file
    if settings.is_embedded and not named and not made.exists():
        return ok(about, f"The first start creates one, {made}.")
    try:
        engines.secret_cipher(settings)
    except (engines.StartError, EncryptionError) as error:
        return problem(
            about, sentence(error), "Change: give every node the same key, in a file that only its user can read."
        )
    if settings.key_encryption_key is not None:
        change = "Change: put it in a file (mode 0600), and name the file in key_encryption_key_file."
        return warning(about, "It is in an environment variable, which other programs may see.", change)
    return ok(about, "It is set, and only the owner can read its file.")


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        found = database.examine(settings.database_url, clock=time.time)
    except SchemaError as error:
        yield problem("database", sentence(error))
        return
    seen = f"{found.engine} {found.version} at {found.place}"
    if found.engine == "PostgreSQL" and int(found.version.split(".")[0]) < _OLDEST_RUN:
        yield warning(
            "database", f"{seen}.", f"Change: {_OLDEST_RUN} is the oldest version that CorpID is tested with."
        )
    elif found.apart > CLOCKS_APART_SECONDS:
        change = "Change: synchronise the clocks (NTP)."
        yield problem("database", f"{seen}, whose clock differs from this machine's by {found.apart:.0f} s.", change)
    else:
        yield ok("database", f"{seen}.")
    yield _schema(found.older, found.now, found.later)
    yield from _pkce(settings, found.pkce_optional)
    yield from _unknown_issuers(settings, found.issuers)
    yield _keys([(key.kid, key.active_from, key.retired_at) for key in found.keys])
    yield _seals(found.unsealed_since)
    yield _emails(*found.emails, sends=bool(settings.mail_url))


def _schema(older: str, now: tuple[str, ...], later: tuple[str, ...]) -> Finding:
    if older:
        return problem("schema", sentence(older))
    if now:
        return warning("schema", f"Not done yet: {'; '.join(now)}.", "Change: run `corpid migrate`.")
    if later:
        change = "Change: run `corpid migrate --contract` once every node has this version."
        return warning("schema", f"Waiting: {'; '.join(later)}.", change)
    return ok("schema", "It matches this version.")


def _keys(keys: list[tuple[str, int, int | None]]) -> Finding:
    now = time.time()
    signing = [(begun, kid) for kid, begun, ends in keys if begun <= now and (ends is None or ends > now)]
    if not signing:
        change = "Change: start a node, which creates the first key, or run `corpid key rotate`."
        return problem("signing keys", "No key is signing now.", change)
    since, kid = max(signing)
    days = (now - since) / _DAY
    seen = f"{kid} has signed for {days:.0f} days."
    if days > OLD_KEY_DAYS:
        return warning("signing keys", seen, "Change: run `corpid key rotate`, once a year.")
    return ok("signing keys", seen)


def _seals(unsealed_since: int | None) -> Finding:
    """Audit entries unsealed for too long (D58)."""
    waits = 0.0 if unsealed_since is None else time.time() - unsealed_since
    if waits > UNSEALED_SECONDS:
        seen = (
            f"Entries have been waiting for a seal for {waits / 3600:.0f} hours. Without a seal they are not protected."
        )
        change = "Change: look for sweep_failed in the log of a running server, or run `corpid audit seal`."
        return warning("audit seals", seen, change)
    return ok("audit seals", "No audit entry has been waiting too long for its seal.")


def _emails(waiting: int, oldest: int, *, sends: bool) -> Finding:
    """Invitation e-mails that wait too long (D60)."""
    if waiting and not sends:
        seen = f"{waiting:,} invitation e-mails are waiting, because no mail server is set."
        return warning("invitations", seen, "Change: set mail_url and mail_from.")
    days = (time.time() - oldest) / _DAY
    if waiting and days > LETTER_DAYS:
        seen = f"{waiting:,} invitation e-mails are waiting; the oldest invitation is {days:.0f} days old."
        change = "Change: look for invitations_stopped and invitation_delayed in the log of a running server."
        return warning("invitations", seen, change)
    return ok("invitations", "No invitation e-mail has been waiting too long.")


def _pkce(settings: Settings, registered: tuple[Client, ...]) -> Iterator[Finding]:
    """Clients that may omit PKCE today in a served generation."""
    today = datetime.now(settings.timezone).date().isoformat()
    allowing = [
        (issuer_id, generation)
        for issuer_id, issuer in issuers(settings).items()
        for name in issuer.generations
        if (generation := GENERATIONS[name]).pkce_optional
    ]
    found = [
        one.client_id
        for one in registered
        if any(is_registered_at(one, issuer_id) and pkce_optional(one, each, today) for issuer_id, each in allowing)
    ]
    if found:
        change = (
            "Change: register pkce required, or the last day as pkce_optional_until, as soon as they send a challenge."
        )
        clients = f"{', '.join(found)} can omit it (pkce optional)"
        seen = f"{clients}. A request with neither code_challenge nor nonce does not meet RFC 9700 2.1.1."
        yield warning("PKCE", seen, change)
    elif allowing:
        yield ok("PKCE", "No client can omit it.")


def _unknown_issuers(settings: Settings, named: tuple[tuple[str, tuple[str, ...]], ...]) -> Iterator[Finding]:
    """Clients that name an issuer absent from the settings (D62)."""
    known = issuers(settings)
    gone = [f"{client_id} ({name})" for client_id, names in named for name in names if name not in known]
    if gone:
        seen = f"Clients name issuers that this deployment does not have: {', '.join(gone)}."
        yield problem("issuers", seen, "Change: add them to [[issuers]], or update the clients.")


def _transient(url: str) -> Iterator[Finding]:
    """One finding, or one for each checked node.

    Under the name that the setting uses.
    """
    name = engine_type(url).title
    conditions = asyncio.run(transient_engine(url).describe())
    for number, condition in enumerate(conditions, start=1):
        about = name if len(conditions) == 1 else f"{name}, node {number}"
        yield Finding(
            about=about, verdict=condition.verdict, seen=plain(sentence(condition.seen)), change=plain(condition.change)
        )
