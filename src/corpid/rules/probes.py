"""Probes of `corpid doctor`: requests that a node reports back.

A probe carries a token, sealed with the key-encryption key, which only nodes and commands with their settings have. The
token is for this purpose only, and for a minute. To a request without one a node answers as if there were no probes.
Source: D47, D49
"""

from __future__ import annotations

from typing import Final

import msgspec

HEADER: Final = "CorpID-Probe"
PLACE: Final = ("doctor", "probe", "token")
"""the place for which a token is sealed: no secret at rest has it"""
FRESH_SECONDS: Final = 60
"""how far a token's time may be from the node's"""
TOKEN_CHARACTERS: Final = 512
MOST_WAIT_SECONDS: Final = 10
MOST_PADDING_BYTES: Final = 8192
PADDING: Final = "CorpID-Padding"
RETURNED: Final = (
    ("DPoP-Nonce", "corpid-doctor"),
    ("WWW-Authenticate", 'DPoP error="use_dpop_nonce", algs="ES256"'),
    ("Set-Cookie", "__Host-corpid-doctor=1; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"),
    ("Set-Cookie", "__Host-corpid-doctor-2=1; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"),
)
"""headers of the answer to a probe, as sign-ins and proofs need them"""
REPORTED: Final = ("host", "x-forwarded-for", "forwarded", "traceparent", "tracestate", "dpop", "connection")
"""the headers whose values are reported; of the others nothing is"""


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a token: its time, and the wanted answer."""

    id: str
    at: int
    """epoch seconds"""
    wait: int = 0
    """seconds before the answer"""
    padding: int = 0
    """bytes of a header that makes the answer's head long"""


class RequestReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node's report of the request that it received."""

    probe: str
    """the id of the probe"""
    path: str
    """as it was sent, undecoded"""
    query_bytes: int
    http_version: str
    peer: str
    """the other end of the connection: the proxy's address, or the caller's without one"""
    is_trusted: bool
    """whether trusted_proxies names `peer`"""
    address: str
    """the caller's, by which limits and logs go"""
    headers: dict[str, list[str]]
    """every value of each header in REPORTED"""


def read(text: str, now: float) -> Probe | None:
    """The probe of an opened token.

    None if it is not fresh, or asks for too much. Source: D49
    """
    try:
        probe = msgspec.json.decode(text, type=Probe)
    except (msgspec.DecodeError, ValueError):
        return None
    fits = 0 <= probe.wait <= MOST_WAIT_SECONDS and 0 <= probe.padding <= MOST_PADDING_BYTES
    return probe if fits and abs(now - probe.at) <= FRESH_SECONDS else None
