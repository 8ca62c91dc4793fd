"""Checks of a published key's certificate: key and thumbprints match (Spec 2.9)."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from corpid.sandbox.jwt import base64url, from_base64url

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMBERS = frozenset({"x5c", "x5t", "x5t#S256"})


def fault(entry: Mapping[str, Any], *, needed: bool) -> str:
    """The fault of a published JWK's certificate.

    Empty if right, or absent and not needed.
    """
    kid, present = entry.get("kid"), MEMBERS & entry.keys()
    if not present and not needed:
        return ""
    if present != MEMBERS:
        return f"{kid} lacks {', '.join(sorted(MEMBERS - present))}"
    try:
        encoded = b64decode(entry["x5c"][0], validate=True)
        key = x509.load_der_x509_certificate(encoded).public_key()
    except (ValueError, TypeError, LookupError) as error:
        return f"{kid}: x5c holds no certificate ({error})"
    thumbprints = (base64url(hashlib.sha1(encoded, usedforsecurity=False).digest()), _sha256(encoded))
    if (entry["x5t"], entry["x5t#S256"]) != thumbprints:
        return f"{kid}: x5t or x5t#S256 is not the certificate's"
    return "" if _is_key_of(entry, key) else f"{kid}: the certificate is for another key"


def _sha256(encoded: bytes) -> str:
    return base64url(hashlib.sha256(encoded).digest())


def _is_key_of(entry: Mapping[str, Any], key: object) -> bool:
    if not isinstance(key, EllipticCurvePublicKey):
        return False
    point = key.public_numbers()
    return (point.x, point.y) == tuple(int.from_bytes(from_base64url(str(entry.get(name)))) for name in ("x", "y"))
