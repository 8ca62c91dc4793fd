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
    found = list(_find(settings, machine_memory() if memory is None else memory))
    yield from found or [ok("No problem found in them.", about="settings")]


def _find(settings: Settings, memory: int) -> Iterator[Finding]:
    parts = urlsplit(settings.base_url)
    if settings.developer_mode:
        yield warning(
            "It is on: security rules are relaxed.",
            "turn off developer_mode wherever other people sign in",
            about="developer_mode",
        )
    elif is_local(parts.hostname or ""):
        yield warning(
            f"base_url is {settings.base_url}, which works only on this machine.",
            "set base_url to the URL that callers use",
            about="base_url's host",
        )
    elif parts.scheme != "https":
        yield problem(
            "base_url is http: codes and tokens are sent unencrypted.",
            "let the proxy serve TLS, and begin base_url with https://",
            about="base_url's scheme",
        )
    yield from _readable_secrets()
    if settings.network_database is not None:
        try:
            FileOfNetworks(settings.network_database)
        except NetworksUnreadable as error:
            yield problem(
                sentence(str(error)),
                "name a file in MaxMind DB format that CorpID may read, or leave network_database out",
                about="network_database",
            )
    if settings.trusted_proxies and not settings.drain_delay_seconds:
        yield warning(
            "It is 0: requests can fail while a node restarts.",
            "set drain_delay_seconds longer than the proxy takes to notice /readyz, such as 5",
            about="drain_delay_seconds",
        )
    if settings.sqlite_path is not None and not settings.transient_engine.is_local:
        yield warning(
            f"{settings.transient_engine.title} together with SQLite: further nodes cannot share the database.",
            "set database_url to a PostgreSQL database, or omit transient_url",
            about="engines",
        )
    if settings.metrics_address.startswith(("0.0.0.0:", "[::]:")):
        yield warning(
            "Metrics are served on every address.",
            "name the address in the network of Prometheus",
            about="metrics_address",
        )
    to = audit_stream.target(settings.audit_stream)
    if to.kind == "tcp" and not is_local(to.host):
        yield problem(
            f"audit_stream sends addresses and names of people to {to.host} unencrypted.",
            "write syslog+tls://HOST:PORT, or send to a relay on this machine",
            about="audit_stream",
        )
    yield from _hashing(settings, memory)
    yield from _passkeys(settings)


def _hashing(settings: Settings, memory: int) -> Iterator[Finding]:
    """Password checks that together need more memory than there is."""
    most = settings.workers * settings.hashing_threads
    needed = most * settings.hash_cost.memory * 1024
    if needed > memory:
        yield problem(
            f"{most} password checks can run at a time (workers times hashing_threads) and take {needed >> 20} MiB of {memory >> 20}.",
            "fewer hashing_threads (1 for each worker is enough if there is a worker for each processor)",
            about="hashing_threads",
        )


def _passkeys(settings: Settings) -> Iterator[Finding]:
    """Issuers where people's passkeys do not work (D62)."""
    rp_id = settings.passkey_rp_id or urlsplit(settings.base_url).hostname or ""
    outside = [name for name, issuer in issuers(settings).items() if not passkeys_work_at(issuer.base_url, rp_id)]
    if outside and (settings.issuers or settings.passkey_rp_id):
        yield warning(
            f"No passkeys are offered at {', '.join(outside)}: their host is not {rp_id} or a subdomain of it.",
            "set passkey_rp_id to a parent domain of every issuer's host before people have passkeys, or keep it",
            about="passkeys",
        )


def _readable_secrets() -> Iterator[Finding]:
    """Files with secrets that every user can read (D43)."""
    path, written = settings_file()
    secrets = [name for name in SECRETS if _is_secret(str(written.get(name, "")))]
    files = [("settings file", path, secrets)] if secrets else []
    files += [(f"{each.secret}_file", each.path, [each.secret]) for each in named_secret_files()]
    for about, file, held in files:
        if _is_open_to_all(file):
            yield problem(
                f"Every user of this machine can read {file}, which holds secrets: {', '.join(held)}.",
                f"run `chmod o-rwx {file}` as its owner, and let its group be that of the service",
                about=about,
            )


def _is_open_to_all(path: Path) -> bool:
    """Return whether every user can read a file, if it still exists."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXO)
    except OSError:
        return False


def _is_secret(value: str) -> bool:
    """Return whether it is a key, or a URL with a password."""
    return bool(value) and ("://" not in value or urlsplit(value).password is not None)
