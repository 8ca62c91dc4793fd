"""Checks of a node and of the configuration of its proxy.

No public response shows that. Only a node can be asked, and for its connections only one of Linux; a proxy's
configuration is a file that is named: failover, access log, idle connections. Source: D47, D48
"""

from __future__ import annotations

import asyncio
import re
import time
from datetime import datetime
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from corpid import engines
from corpid.cli.doctor import deployment, request_checks
from corpid.cli.doctor.deployment import NoResponse, Origin
from corpid.rules import diagnostics, probes
from corpid.rules.diagnostics import Finding, Reported, named, not_looked_at, ok, plain, problem, sentence, warning
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.settings import Settings
from corpid.settings.diagnostics import examine_settings
from corpid.settings.issuers import issuers
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME, EncryptionError
from corpid.stores.sql import examination as database
from corpid.stores.sql.migration import SchemaError
from corpid.stores.transient import engine_type, transient_engine
from corpid.web.http.addresses import bracket_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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


def check_peers(settings: Settings, tables: Iterable[Path] = _TABLES) -> Reported | None:
    """Check that only trusted proxies connect.

    Ask just after requests came through them (D47).
    """
    if not settings.trusted_proxies:
        return None
    entries = [entry for table in tables for entry in _read_connections(table)]
    if not any(port == settings.port and state == _LISTENS for port, _, state in entries):
        return not_looked_at(
            f"Nothing listens on port {settings.port} of this machine: run this on a node, with its settings."
        )
    peers = {peer for port, peer, state in entries if port == settings.port and state != _LISTENS}
    foreign = {peer for peer in peers if not any(peer in network for network in settings.trusted_proxies)}
    shown = ", ".join(sorted(map(str, foreign)))
    remedy = "name the addresses from which the proxy connects in trusted_proxies"
    if not peers:
        return not_looked_at("Nothing is or was just connected to this node: run this again.")
    if foreign == peers:
        return problem(f"Connections come from {shown}, which is not trusted: all callers have that address.", remedy)
    if foreign:
        return warning(f"Connections also come from {shown}, which is not trusted.", f"{remedy}, if this is a proxy")
    return ok("Connections come only from trusted proxies.")


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
    host = _EVERY_ADDRESS.get(settings.host[0], settings.host[0])
    own_tls = settings.tls_certificate is not None or settings.makes_certificate
    scheme = "https" if own_tls else "http"
    try:
        origin = Origin(f"{scheme}://{bracket_host(host)}:{settings.port}", deployment.create_unchecked_context())
    except ValueError:
        return not_looked_at(f"host is {settings.host[0]}, which is no address.")
    try:
        answer = origin.ask("GET", request_checks.READY, server_closes=False)
    except NoResponse as error:
        return not_looked_at(f"It does not answer at {origin.url}: {error}. Run this on a node, with its settings.")
    return request_checks.judge_readiness(answer) or not_looked_at(f"{origin.url} is another program.")


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
        return ok(f"The first start creates one, {settings.data_dir / EMBEDDED_KEY_NAME}.", about=about)
    try:
        engines.secret_cipher(settings)
    except (engines.StartError, EncryptionError) as error:
        return problem(
            sentence(error), "give every node the same key, in a file that only its user can read", about=about
        )
    if settings.key_encryption_key is not None:
        return warning(
            "It is in an environment variable, which other programs may see.",
            "put it in a file (mode 0600), and name the file in key_encryption_key_file",
            about=about,
        )
    return ok("It is set, and only the owner can read its file.", about=about)


def _check_database(settings: Settings) -> Iterator[Finding]:
    try:
        found = database.examine(settings.database_url, clock=time.time)
    except SchemaError as error:
        yield problem(sentence(error), about="database")
        return
    seen = f"{found.engine} {found.version} at {found.place}"
    if found.engine == "PostgreSQL" and int(found.version.split(".")[0]) < _OLDEST_RUN:
        yield warning(f"{seen}.", f"{_OLDEST_RUN} is the oldest version that CorpID is tested with", about="database")
    elif found.apart > CLOCKS_APART_SECONDS:
        yield problem(
            f"{seen}, whose clock differs from this machine's by {found.apart:.0f} s.",
            "synchronise the clocks (NTP)",
            about="database",
        )
    else:
        yield ok(f"{seen}.", about="database")
    # A pooler passes on no other time limit for statements than that of the role.
    if found.is_pooled and found.statement_milliseconds:
        yield ok(
            f"A pooler answers at database_url, and the role's statement_timeout is {found.statement_milliseconds} ms.",
            about="pooler",
        )
    elif found.is_pooled:
        yield Finding(
            about="pooler",
            verdict="warning",
            seen="A pooler answers at database_url, and the role has no statement_timeout: a statement of a node that died may run forever.",
            change="Run ALTER ROLE corpid SET statement_timeout = '5s' with the name of your role, then RECONNECT in the pooler's console.",
        )
    if found.older:
        yield problem(sentence(found.older), about="schema")
    elif found.now:
        yield warning(f"Not done yet: {'; '.join(found.now)}.", "run `corpid migrate`", about="schema")
    elif found.later:
        yield warning(
            f"Waiting: {'; '.join(found.later)}.",
            "run `corpid migrate --contract` once every node has this version",
            about="schema",
        )
    else:
        yield ok("It matches this version.", about="schema")
    if found.unconfirmed_restore:
        yield problem(sentence(found.unconfirmed_restore), about="restore")
    now, today = time.time(), datetime.now(settings.timezone).date().isoformat()
    generations = {name: issuer.generations for name, issuer in issuers(settings).items()}
    yield from diagnostics.pkce(found.pkce_optional, generations, today=today)
    yield from diagnostics.unknown_issuers(found.issuers, generations)
    yield diagnostics.signing_keys([(key.kid, key.active_from, key.retired_at) for key in found.keys], now=now)
    yield diagnostics.audit_seals(found.unsealed_since, now=now)
    yield diagnostics.invitation_emails(*found.emails, sends=bool(settings.mail_url), now=now)
    yield from diagnostics.processes(found.processes, now=now)


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


# --- the configuration of a proxy


_TOKEN: Final = re.compile(
    r"""#[^\n]*|(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<mark>[;{}])|(?P<word>(?:\\.|\$\{\w+\}|[^\s;{}])+)""",
    re.DOTALL,
)


class Directive(NamedTuple):
    """`words` are its name and parameters, without quotes.

    `block` is None if it ends with a semicolon.
    """

    words: tuple[str, ...]
    block: list[Directive] | None

    @property
    def name(self) -> str:
        """The first word; empty if there is none."""
        return self.words[0] if self.words else ""


def parse_directives(text: str) -> list[Directive]:
    """The directives of a file.

    What cannot be understood is passed over, since nginx itself will say so.
    """
    levels: list[list[Directive]] = [[]]
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        separator = token["mark"]
        if token["quoted"] is not None:
            words.append(token["quoted"][1:-1])
        elif token["word"] is not None:
            words.append(token["word"])
        elif separator == ";":
            levels[-1].append(Directive(tuple(words), None))
        elif separator == "{":
            block: list[Directive] = []
            levels[-1].append(Directive(tuple(words), block))
            levels.append(block)
        elif separator == "}" and len(levels) > 1:
            levels.pop()
        if separator is not None:
            words = []
    return levels[0]


def walk_directives(directives: list[Directive]) -> Iterator[Directive]:
    """The directives and all within them."""
    waiting = list(reversed(directives))
    while waiting:
        directive = waiting.pop()
        yield directive
        waiting.extend(reversed(directive.block or []))


_ABOUT: Final = "access log"
_MASKED: Final = "enrol"
"""part of any pattern that masks links in paths"""
_QUERY: Final = "query"
_PATH: Final = "path"
_UNKNOWN: Final = "unknown"

_VARIABLE: Final = re.compile(r"\$\{?(\w+)")
_VARIABLES: Final = {
    **dict.fromkeys(("request", "request_uri", "args", "query_string", "http_referer"), _QUERY),
    **dict.fromkeys(("uri", "document_uri", "request_filename"), _PATH),
}
_COMBINED: Final = "$request $http_referer"
"""the relevant part of nginx's default format"""

_COMMENT: Final = re.compile(r"(?<!\S)#.*")
_HAPROXY: Final = re.compile(r"^\s*(?:frontend|listen|defaults|backend)\b", re.MULTILINE)
_FORMAT: Final = re.compile(r"^\s*(?:error-)?log-format(?:-sd)?\s+(.+)$", re.MULTILINE)
_STANDARD: Final = re.compile(r"^\s*option\s+https?log\b", re.MULTILINE)
_TAG: Final = re.compile(r"%(?:\{[^}]*\})?(\[[^\]]*\]|[A-Za-z]+)")
_TAGS: Final = {"r": _QUERY, "HU": _QUERY, "HQ": _QUERY, "HP": _PATH, "HPO": _PATH}
_SET: Final = re.compile(r"\bset-var\(([\w.]+)[^)]*\)\s+(.+)$", re.MULTILINE)
_VAR: Final = re.compile(r"\bvar\(([\w.]+)")
_EXPRESSIONS: Final = {
    _QUERY: re.compile(r"\b(?:query|url|url_param|urlp|pathq|baseq|capture\.req\.uri|referer)\b", re.IGNORECASE),
    _PATH: re.compile(r"\b(?:path|base)\b"),
}


def check_access_log(text: str) -> Finding:
    """Check that the log has no queries and no links' secrets.

    The former links had theirs in the path. Source: D48
    """
    directives = parse_directives(text)
    servers = list(_list_servers(directives, []))
    example = "deploy/nginx/corpid.conf"
    if servers:
        found = _classify_nginx_log(directives, servers)
    elif _HAPROXY.search(text):
        example, found = "deploy/haproxy/haproxy.cfg", _classify_haproxy_log(_COMMENT.sub("", text))
    else:
        found = {_UNKNOWN}
    if _QUERY in found:
        return problem(
            "Query strings or referrers are logged: they contain requests of relying parties, and who signs in where.",
            f"log only the path, on port 80 too, as {example} does",
        )
    if _PATH in found:
        return warning(
            "Whole paths are logged, with the secrets of older links (newer links have their secret in the fragment).",
            f"mask the part of the path after /enrol/, as {example} does",
        )
    if _UNKNOWN in found:
        return warning(
            "This file contains no log format, or not all of them.",
            f"check whether it contains query strings. {example} shows a format without them",
        )
    return ok("Neither query strings nor secrets in paths are logged.")


def _list_servers(
    directives: list[Directive], inherited: list[Directive]
) -> Iterator[tuple[Directive, list[Directive]]]:
    """Every server with an upstream, and its own or inherited logs."""
    logs = [each for each in directives if each.name == "access_log"] or inherited
    for each in directives:
        if each.block is None:
            continue
        if each.name != "server":
            yield from _list_servers(each.block, logs)
            continue
        within = list(walk_directives(each.block))
        if any(one.name in ("proxy_pass", "return", "rewrite") for one in within):
            own = [one for one in each.block if one.name == "access_log"] or logs
            yield each, own + [one for one in within if one.name == "access_log" and one not in own]


def _classify_nginx_log(directives: list[Directive], servers: list[tuple[Directive, list[Directive]]]) -> set[str]:
    everything = list(walk_directives(directives))
    formats = {
        each.words[1]: "".join(each.words[2:])
        for each in everything
        if each.name == "log_format" and len(each.words) > 2
    }
    maps = {each.words[2].lstrip("$"): each for each in everything if each.name == "map" and len(each.words) == 3}
    found: set[str] = set()
    for _, logs in servers:
        for words in [each.words for each in logs] or [("access_log", "")]:
            if words[1:2] == ("off",):
                continue
            name = words[2] if len(words) > 2 and "=" not in words[2] else "combined"
            text = formats.get(name, _COMBINED if name == "combined" else "")
            found |= _classify_variables(text, maps, frozenset()) if text else {_UNKNOWN}
    return found


def _classify_variables(text: str, maps: Mapping[str, Directive], met: frozenset[str]) -> set[str]:
    found: set[str] = set()
    for name in set(_VARIABLE.findall(text)) - met:
        if name in maps:
            entries = maps[name].block or []
            values = " ".join(word for entry in entries for word in entry.words[1:])
            within = _classify_variables(values, maps, met | {name})
            masked = any(_MASKED in entry.name.lower() for entry in entries)
            found |= within - {_PATH} if masked else within
        elif name in _VARIABLES or name.startswith("arg_"):
            found.add(_VARIABLES.get(name, _QUERY))
    return found


def _classify_haproxy_log(text: str) -> set[str]:
    found = {_QUERY} if _STANDARD.search(text) else set()
    variables: dict[str, str] = {}
    for name, expression in _SET.findall(text):
        variables[name] = f"{variables.get(name, '')} {expression}"
    for written in _FORMAT.findall(text):
        for tag in _TAG.findall(written):
            found |= _classify_expression(tag, variables) if tag.startswith("[") else {_TAGS.get(tag, "")} - {""}
    return found


def _classify_expression(expression: str, variables: Mapping[str, str]) -> set[str]:
    whole = " ".join([expression, *(variables.get(name, "") for name in _VAR.findall(expression))])
    found = {kind for kind, pattern in _EXPRESSIONS.items() if pattern.search(_VAR.sub("", whole))}
    return found - {_PATH} if _MASKED in whole.lower() else found


_NGINX: Final = re.compile(r"\bproxy_next_upstream\s[^;]*\bnon_idempotent\b")
_HAPROXY_DIRECTIVE: Final = re.compile(r"^\s*retry-on\s+(.+)$", re.MULTILINE)
_NO_POST: Final = re.compile(r"\bdisable-l7-retry\b.*\bMETH_POST\b")
_NEVER_SENT: Final = frozenset({"none", "conn-failure"})
_TRAILING_COMMENT: Final = re.compile(r"#.*")


def check_failover(text: str) -> Finding:
    """Check that a request is never sent twice.

    What it carries is spent by the first. Source: RFC 9449 §11.1, D7, D8
    """
    configuration = _TRAILING_COMMENT.sub("", text)
    if _NGINX.search(configuration):
        return problem(
            "proxy_next_upstream has non_idempotent: a POST is sent again, with a used proof and code.",
            "remove non_idempotent",
        )
    reasons = {reason for line in _HAPROXY_DIRECTIVE.findall(configuration) for reason in line.split()}
    if reasons - _NEVER_SENT and not _NO_POST.search(configuration):
        return problem(
            f"retry-on has {', '.join(sorted(reasons - _NEVER_SENT))}: a POST is sent again, with a used proof and code.",
            "write retry-on conn-failure",
        )
    return ok("A request that reached a node is not sent again.")


_NGINX_IDLE: Final = re.compile(r"\bupstream\b[^{]*\{[^}]*\bkeepalive_timeout\s+(\d+)(ms|s|m|h)?")
_HAPROXY_IDLE: Final = re.compile(r"\bpool-purge-delay\s+(\d+)(us|ms|s|m|h)?")
_UNITS: Final = {"us": 0.000001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def check_idle_connections(text: str, keepalive_seconds: float) -> Finding:
    """Check that the proxy closes idle connections before CorpID does.

    A request that meets a closing connection gets 502. Source: D47
    """
    configuration = _TRAILING_COMMENT.sub("", text)
    kept = [(float(number) * _UNITS[unit or "s"]) for number, unit in _NGINX_IDLE.findall(configuration)]
    kept += [(float(number) * _UNITS[unit or "ms"]) for number, unit in _HAPROXY_IDLE.findall(configuration)]
    longest = max(kept, default=0.0)
    if longest >= keepalive_seconds:
        return warning(
            f"The proxy keeps them for {longest:g} seconds, and CorpID for {keepalive_seconds:g}: a request can meet a "
            "connection that CorpID closes.",
            "let the proxy close them earlier (nginx: keepalive_timeout 60s in upstream; HAProxy: pool-purge-delay 60s)",
        )
    return ok("The proxy closes them before CorpID does.")


_NOT_NAMED: Final = "Requests do not show it: name the proxy's configuration with --proxy."
_IDLE: Final = "idle connections"
CHECKS: Final = (("retries", check_failover), (_ABOUT, check_access_log), (_IDLE, check_idle_connections))


def check_proxy_configuration(text: str | None, settings: Settings | None) -> Iterator[Reported]:
    """Every check of a proxy's configuration; None if none was named."""
    if text is None:
        if settings is None or settings.trusted_proxies:
            yield from (not_looked_at(_NOT_NAMED, about=about) for about, _ in CHECKS)
        return
    keepalive = settings.keepalive_seconds if settings else Settings.model_fields["keepalive_seconds"].default
    found = (check_failover(text), check_access_log(text), check_idle_connections(text, keepalive))
    for (about, _), each in zip(CHECKS, found, strict=True):
        yield from named(about, each)
