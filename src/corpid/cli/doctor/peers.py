"""Which addresses CorpID sees at the other end of its connections, by what the system of this node says.

Nothing that a stranger can ask tells that, so only a node can be asked, and only one of Linux.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.cli.doctor.findings import Finding, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpid.settings import Settings

    Address = IPv4Address | IPv6Address

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"


def look(settings: Settings, tables: Iterable[Path] = _TABLES) -> Finding:
    """Whether those who connect are the proxies that are trusted; ask just after requests came through them (D47)."""
    about = "callers' addresses"
    change = "Change: name the addresses from which the proxy connects in trusted_proxies."
    if not settings.trusted_proxies and settings.tls_certificate is None:
        return warning(about, "No proxy is trusted: behind one, all callers have one address.", change)
    entries = [entry for table in tables for entry in _entries(table)]
    if not settings.trusted_proxies:
        return ok(about, "CorpID speaks TLS itself, and callers' addresses are those of their connections.")
    if not any(port == settings.port and state == _LISTENS for port, _, state in entries):
        seen = f"Nothing listens on port {settings.port} of this machine, so who connects cannot be seen."
        return warning(about, seen, "Change: run this on a node, with its settings.")
    peers = {peer for port, peer, state in entries if port == settings.port and state != _LISTENS}
    foreign = {peer for peer in peers if not any(peer in network for network in settings.trusted_proxies)}
    return _judged(about, change, peers, foreign)


def _judged(about: str, change: str, peers: set[Address], foreign: set[Address]) -> Finding:
    shown = ", ".join(sorted(map(str, foreign)))
    if not peers:
        seen = "No connection of a proxy was open or had just been, so its address cannot be seen."
        return warning(about, seen, "Change: run this again, or look at `address` in the log: it must be the caller's.")
    if foreign == peers:
        seen = f"Connections come from {shown}, which is not trusted: all callers have that one address."
        return problem(about, seen, change)
    if foreign:
        return warning(
            about, f"Connections come from {shown}, too, which is not trusted.", f"{change[:-1]}, if it is one."
        )
    return ok(about, "Connections come from trusted proxies only, whose word is taken for who calls.")


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
    """Words of four bytes, each in this machine's order; an IPv4 address inside of IPv6 is that address."""
    raw = bytes.fromhex(text)
    ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ip_address(ordered)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
