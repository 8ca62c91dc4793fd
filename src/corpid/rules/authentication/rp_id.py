"""The domain of passkeys, and the issuers at which they work.

Apart from `passkeys`, whose library takes long to load: settings ask here.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec


class RelyingParty(msgspec.Struct, frozen=True, kw_only=True):
    """The relying party of passkeys: the provider's own pages."""

    rp_id: str
    origin: str
    name: str


def works_at(base_url: str, rp_id: str = "") -> bool:
    """Return whether passkeys of `rp_id` work at an issuer.

    They do if the issuer's host is that domain or a subdomain of it, and no IP address. Without an rp_id the passkeys
    belong to the issuer's own host. Source: WebAuthn §5.1.2, §5.1.3, D34, D46, D62
    """
    host = urlsplit(base_url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return not rp_id or host == rp_id or host.endswith(f".{rp_id}")
    return False


@lru_cache(maxsize=64)
def relying_party(base_url: str, name: str, rp_id: str = "") -> RelyingParty:
    """Return the origin and rpId of an issuer.

    Without an rp_id, the host of its base_url is used. Source: WebAuthn §5.1.2, D46, D62
    """
    parts = urlsplit(base_url)
    return RelyingParty(rp_id=rp_id or parts.hostname or "", origin=f"{parts.scheme}://{parts.netloc}", name=name)
