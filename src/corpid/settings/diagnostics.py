"""Findings about settings, for `corpid doctor` and the overview."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from corpid.outbound.network_names import FileOfNetworks, NetworksUnreadable
from corpid.rules import audit_stream
from corpid.rules.authentication.passkeys import passkeys_work_at
from corpid.rules.diagnostics import Finding, ok, problem, sentence, warning
from corpid.settings import named_secret_files, settings_file
from corpid.settings.checks import is_local
from corpid.settings.fields import SECRETS, Settings
from corpid.settings.issuers import issuers

_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def machine_memory(limit: Path = _CGROUP_LIMIT) -> int:
    """Bytes of memory of this machine, or of its container."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(physical, int(limit.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no container, or "max"
        return physical


def examine_settings(settings: Settings, *, memory: int | None = None) -> Iterator[Finding]:
    """Findings about valid values that are unsafe, or will not work.

    `memory` is what the processes may use, in bytes; by default this machine's.
    """
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
    found += _readable_secrets()
    if settings.network_database is not None:
        try:
            FileOfNetworks(settings.network_database)
        except NetworksUnreadable as error:
            change = "Change: name a file in MaxMind DB format that CorpID may read, or leave network_database out."
            found.append(problem("network_database", sentence(str(error)), change))
    if settings.trusted_proxies and not settings.drain_delay_seconds:
        change = "Change: set drain_delay_seconds longer than the proxy takes to notice /readyz, such as 5."
        found.append(warning("drain_delay_seconds", "It is 0: requests can fail while a node restarts.", change))
    if settings.sqlite_path is not None and not settings.transient_engine.is_local:
        change = "Change: set database_url to a PostgreSQL database, or omit transient_url."
        found.append(
            warning(
                "engines",
                f"{settings.transient_engine.title} together with SQLite: further nodes cannot share the database.",
                change,
            )
        )
    if settings.metrics_address.startswith(("0.0.0.0:", "[::]:")):
        change = "Change: name the address in the network of Prometheus."
        found.append(warning("metrics_address", "Metrics are served on every address.", change))
    to = audit_stream.target(settings.audit_stream)
    if to.kind == "tcp" and not is_local(to.host):
        seen = f"audit_stream sends addresses and names of people to {to.host} unencrypted."
        change = "Change: write syslog+tls://HOST:PORT, or send to a relay on this machine."
        found.append(problem("audit_stream", seen, change))
    found += _hashing(settings, machine_memory() if memory is None else memory)
    found += _passkeys(settings)
    yield from found or [ok("settings", "No problem found in them.")]


def _hashing(settings: Settings, memory: int) -> Iterator[Finding]:
    """Password checks that together need more memory than there is."""
    most = settings.workers * settings.hashing_threads
    needed = most * settings.hash_cost.memory * 1024
    if needed > memory:
        seen = f"{most} password checks can run at a time (workers times hashing_threads) and take {needed >> 20} MiB of {memory >> 20}."
        change = "Change: fewer hashing_threads (1 for each worker is enough if there is a worker for each processor)."
        yield problem("hashing_threads", seen, change)


def _passkeys(settings: Settings) -> Iterator[Finding]:
    """Issuers where people's passkeys do not work (D62)."""
    rp_id = settings.passkey_rp_id or urlsplit(settings.base_url).hostname or ""
    outside = [name for name, issuer in issuers(settings).items() if not passkeys_work_at(issuer.base_url, rp_id)]
    if outside and (settings.issuers or settings.passkey_rp_id):
        seen = f"No passkeys are offered at {', '.join(outside)}: their host is not {rp_id} or a subdomain of it."
        change = "Change: set passkey_rp_id to a parent domain of every issuer's host before people have passkeys, or keep it."
        yield warning("passkeys", seen, change)


def _readable_secrets() -> Iterator[Finding]:
    """Files with secrets that every user can read (D43)."""
    path, written = settings_file()
    secrets = [name for name in SECRETS if _is_secret(str(written.get(name, "")))]
    files = [("settings file", path, secrets)] if secrets else []
    files += [(f"{each.secret}_file", each.path, [each.secret]) for each in named_secret_files()]
    for about, file, held in files:
        if _is_open_to_all(file):
            seen = f"Every user of this machine can read {file}, which holds secrets: {', '.join(held)}."
            change = f"Change: run `chmod o-rwx {file}` as its owner, and let its group be that of the service."
            yield problem(about, seen, change)


def _is_open_to_all(path: Path) -> bool:
    """Return whether every user can read a file, if it still exists."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXO)
    except OSError:
        return False


def _is_secret(value: str) -> bool:
    """Return whether it is a key, or a URL with a password."""
    return bool(value) and ("://" not in value or urlsplit(value).password is not None)
