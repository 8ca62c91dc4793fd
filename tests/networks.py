"""A file in MaxMind DB format (version 2.0), as small as a test needs it."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TYPES: Final = {"uint16": 5, "uint32": 6, "uint64": 9}
_V4_BITS: Final = 96
"""bits before an IPv4 address in a tree of IPv6"""


def written(path: Path, networks: Mapping[str, Any]) -> Path:
    """A database in which each of these networks has this entry."""
    nodes: list[list[int | None]] = [[None, None]]
    data, places = b"", {}
    for network, entry in networks.items():
        parsed = ip_network(network)
        before = _V4_BITS if parsed.version == 4 else 0
        bits = f"{int(parsed.network_address):0128b}"[: before + parsed.prefixlen]
        places[bits] = len(data)
        data += encoded(entry)
    for bits, place in places.items():
        node = 0
        for bit in map(int, bits[:-1]):
            if nodes[node][bit] is None:
                nodes.append([None, None])
                nodes[node][bit] = len(nodes) - 1
            node = nodes[node][bit] or 0
        nodes[node][int(bits[-1])] = -1 - place
    count = len(nodes)

    def record(value: int | None) -> bytes:
        found = count if value is None else value if value >= 0 else count + 16 + (-1 - value)
        return found.to_bytes(3)

    tree = b"".join(record(value) for node in nodes for value in node)
    about = {
        "node_count": ("uint32", count), "record_size": ("uint16", 24), "ip_version": ("uint16", 6),
        "database_type": "Test-ASN", "languages": [], "binary_format_major_version": ("uint16", 2),
        "binary_format_minor_version": ("uint16", 0), "build_epoch": ("uint64", 1), "description": {"en": "Test"},
    }  # fmt: skip
    path.write_bytes(tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + encoded(about))
    return path


def encoded(value: Any) -> bytes:
    """A value of the data section."""
    match value:
        case str():
            return _control(2, len(value.encode())) + value.encode()
        case dict():
            return _control(7, len(value)) + b"".join(encoded(name) + encoded(each) for name, each in value.items())
        case list():
            return _control(11, len(value)) + b"".join(map(encoded, value))
        case (kind, number):
            octets: bytes = number.to_bytes((number.bit_length() + 7) // 8)
            return _control(_TYPES[kind], len(octets)) + octets
    raise TypeError(value)


def _control(kind: int, size: int) -> bytes:
    first, further = (kind << 5, b"") if kind < 8 else (0, bytes([kind - 7]))
    if size < 29:
        return bytes([first | size]) + further
    return bytes([first | 29]) + further + bytes([size - 29])
