"""Checks of a node's own settings, engines and connections.

No public response shows that, so only a node can be asked, and only one of Linux.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid import engines
from corpid.cli.doctor import deployment, request_checks
from corpid.cli.doctor.deployment import NoResponse, Origin
from corpid.rules import diagnostics, probes
from corpid.rules.diagnostics import Finding, not_looked_at, ok, plain, problem, sentence, warning
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.settings.diagnostics import examine_settings
from corpid.settings.issuers import issuers
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME, EncryptionError
from corpid.stores.engines import engine_type, transient_engine
from corpid.stores.sql import examination as database
from corpid.stores.sql.migration import SchemaError
from corpid.web.http.addresses import bracket_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from corpid.rules.diagnostics import Reported
    from corpid.settings import Settings

    Address = IPv4Address | IPv6Address

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"


class NoKey(Exception):
    """No probe can be made; the message says why."""


def create_probe_seal(settings: Settings) -> Callable[[str], str]:
    """The cipher of a probe's token, as nodes open it.

    Creates nothing. Raises NoKey.
    """
    if _has_no_key_yet(settings):
        raise NoKey("a probe needs the key-encryption key, which the first start creates")
    try:
        cipher = engines.secret_cipher(settings)
    except (engines.StartError, EncryptionError):
        raise NoKey("a probe needs the key-encryption key, which cannot be read") from None
    return partial(cipher.seal, *probes.PLACE)


def _has_no_key_yet(settings: Settings) -> bool:
    named = settings.key_encryption_key or settings.key_encryption_key_file
    return settings.is_embedded and not named and not (settings.data_dir / EMBEDDED_KEY_NAME).exists()


def check_peers(settings: Settings, tables: Iterable[Path] = _TABLES) -> Iterator[Reported]:
    """Check that only trusted proxies connect.

    Ask just after requests came through them (D47).
    """
    about = "connecting addresses"
    if not settings.trusted_proxies:
        return
    entries = [entry for table in tables for entry in _read_connections(table)]
    if not any(port == settings.port and state == _LISTENS for port, _, state in entries):
        reason = f"Nothing listens on port {settings.port} of this machine: run this on a node, with its settings."
        yield not_looked_at(about, reason)
        return
    peers = {peer for port, peer, state in entries if port == settings.port and state != _LISTENS}
    foreign = {peer for peer in peers if not any(peer in network for network in settings.trusted_proxies)}
    yield _judge_peers(about, peers, foreign)


def _judge_peers(about: str, peers: set[Address], foreign: set[Address]) -> Reported:
    shown = ", ".join(sorted(map(str, foreign)))
    change = "Change: name the addresses from which the proxy connects in trusted_proxies"
    if not peers:
        return not_looked_at(about, "Nothing is or was just connected to this node: run this again.")
    if foreign == peers:
        seen = f"Connections come from {shown}, which is not trusted: all callers have that address."
        return problem(about, seen, f"{change}.")
    if foreign:
        seen = f"Connections also come from {shown}, which is not trusted."
        return warning(about, seen, f"{change}, if this is a proxy.")
    return ok(about, "Connections come only from trusted proxies.")


def _read_connections(table: Path) -> Iterator[tuple[int, Address, str]]:
    """Local port, remote address and state of each connection."""
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        _, local, remote, state, *_ = line.split()
        yield int(local.rpartition(":")[2], 16), _parse_address(remote.partition(":")[0]), state


def _parse_address(text: str) -> Address:
    """Words of four bytes, each in this machine's order.

    An IPv4 address inside of IPv6 is that address.
    """
    raw = bytes.fromhex(text)
    ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ip_address(ordered)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


_EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared only
"""and one of them"""


def check_this_node(settings: Settings) -> Reported:
    """Check that this node is ready, without a proxy in between (D49, D67).

    A proxy asks another node, or passes on no /readyz. Ask after `check_peers`, which would see this connection.
    """
    about = "this node"
    host = _EVERY_ADDRESS.get(settings.host[0], settings.host[0])
    own_tls = settings.tls_certificate is not None or settings.makes_certificate
    scheme = "https" if own_tls else "http"
    try:
        origin = Origin(f"{scheme}://{bracket_host(host)}:{settings.port}", deployment.create_unchecked_context())
    except ValueError:
        return not_looked_at(about, f"host is {settings.host[0]}, which is no address.")
    try:
        answer = origin.ask("GET", request_checks.READY, server_closes=False)
    except NoResponse as error:
        return not_looked_at(
            about, f"It does not answer at {origin.url}: {error}. Run this on a node, with its settings."
        )
    return request_checks.judge_readiness(about, answer) or not_looked_at(about, f"{origin.url} is another program.")


_OLDEST_RUN: Final = 15
"""of PostgreSQL"""


def check_node(settings: Settings) -> Iterator[Finding]:
    """The checks that need no request to the nodes."""
    yield from examine_settings(settings)
    yield _check_key_encryption_key(settings)
    yield from _check_database(settings)
    if settings.transient_url:
        yield from _check_transient_engine(settings.transient_url)


def _check_key_encryption_key(settings: Settings) -> Finding:
    about = "key-encryption key"
    if _has_no_key_yet(settings):
        return ok(about, f"The first start creates one, {settings.data_dir / EMBEDDED_KEY_NAME}.")
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


def _check_database(settings: Settings) -> Iterator[Finding]:
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
    if found.is_pooled:
        yield _judge_pooler(found.statement_milliseconds)
    yield _judge_schema(found.older, found.now, found.later)
    if found.unconfirmed_restore:
        yield problem("restore", sentence(found.unconfirmed_restore))
    now, today = time.time(), datetime.now(settings.timezone).date().isoformat()
    generations = {name: issuer.generations for name, issuer in issuers(settings).items()}
    yield from diagnostics.pkce(found.pkce_optional, generations, today=today)
    yield from diagnostics.unknown_issuers(found.issuers, generations)
    yield diagnostics.signing_keys([(key.kid, key.active_from, key.retired_at) for key in found.keys], now=now)
    yield diagnostics.audit_seals(found.unsealed_since, now=now)
    yield diagnostics.invitation_emails(*found.emails, sends=bool(settings.mail_url), now=now)
    yield from diagnostics.processes(found.processes, now=now)


def _judge_pooler(milliseconds: int) -> Finding:
    """The role's time limit for statements: a pooler passes on no other."""
    if milliseconds:
        return ok("pooler", f"A pooler answers at database_url, and the role's statement_timeout is {milliseconds} ms.")
    seen = "A pooler answers at database_url, and the role has no statement_timeout: a statement of a node that died may run forever."
    change = "Run ALTER ROLE corpid SET statement_timeout = '5s' with the name of your role, then RECONNECT in the pooler's console."
    return warning("pooler", seen, change)


def _judge_schema(older: str, now: tuple[str, ...], later: tuple[str, ...]) -> Finding:
    if older:
        return problem("schema", sentence(older))
    if now:
        return warning("schema", f"Not done yet: {'; '.join(now)}.", "Change: run `corpid migrate`.")
    if later:
        change = "Change: run `corpid migrate --contract` once every node has this version."
        return warning("schema", f"Waiting: {'; '.join(later)}.", change)
    return ok("schema", "It matches this version.")


def _check_transient_engine(url: str) -> Iterator[Finding]:
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
