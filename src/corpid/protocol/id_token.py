"""The claims of an ID token (OpenID Connect Core §2, D2)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from corpid.jose.encoding import base64url
from corpid.protocol import parties
from corpid.protocol.limits import ID_TOKEN_SECONDS

if TYPE_CHECKING:
    from corpid.protocol.generations import Generation
    from corpid.protocol.records import Client, Grant, SubjectMode


ALG_OF_KEY: Final = "key"
"""registered in the place of an alg: the ID token is always encrypted, with the alg of the client's key"""


def registered_wrap(client: Client) -> str | None:
    """The JWE alg that a client registered for its ID tokens; None: the one of its encryption key (D21)."""
    return None if client.id_token_encryption_alg == ALG_OF_KEY else client.id_token_encryption_alg


def at_hash(access_token: str) -> str:
    """Left half of the SHA-256 of an access token, base64url (OpenID Connect Core §3.1.3.6)."""
    return base64url(hashlib.sha256(access_token.encode("ascii")).digest()[:16])


def claims(
    grant: Grant,
    subject: parties.Parties,
    mode: SubjectMode,
    generation: Generation,
    *,
    issuer: str,
    access_token: str,
    now: int,
) -> dict[str, object]:
    """The claims of a new ID token; nonce only if one was sent, sid only if a session is told (D2, R-12.2)."""
    token: dict[str, object] = {
        "iss": issuer,
        "aud": grant.client_id,
        "iat": now,
        "exp": now + ID_TOKEN_SECONDS,
        "at_hash": at_hash(access_token),
        "auth_time": grant.auth_time,
        "amr": list(grant.amr),
        **parties.claims(subject, mode, attributes=True),
    }
    if generation.acr_told:
        token["acr"] = grant.acr
    if grant.nonce is not None:
        token["nonce"] = grant.nonce
    if grant.sid:
        token["sid"] = grant.sid
    return token
