"""Whether what a flow was given is true: opened and verified with joserfc, none of the provider's own code."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from joserfc import jwe, jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from benchmarks.relying_party import CLIENT_ID, Endpoints, Flow, Keys, base64url, digest, thumbprint
from benchmarks.steps import Wrong, require

if TYPE_CHECKING:
    from collections.abc import Sequence

ENCRYPTION = ["ECDH-ES+A256KW", "A256CBC-HS512"]


class Verifier:
    """Has the keys of both sides."""

    def __init__(self, keys: Keys, endpoints: Endpoints, provider_keys: dict[str, Any]) -> None:
        self._encryption = ECKey.import_key(keys.encryption)
        self._endpoints = endpoints
        self._provider_keys = KeySet.import_key_set({"keys": list(provider_keys["keys"])})

    def verify(self, flow: Flow) -> None:
        """Decrypt and verify the ID token, verify access token and userinfo, compare them. Raises Wrong."""
        try:
            opened = jwe.decrypt_compact(flow.id_token, self._encryption, ENCRYPTION)
            require("ID token", opened.headers().get("kid") == "enc", "encrypted to another key")
            inner = (opened.plaintext or b"").decode()
            identity = self._signed("ID token", inner, "JWT")
            access = self._signed("access token", flow.access_token, "at+jwt")
            userinfo = self._signed("userinfo", flow.userinfo, "JWT")
            _agree(flow, identity, access, userinfo, self._endpoints)
        except (JoseError, ValueError, KeyError) as error:
            raise Wrong(f"verification: {type(error).__name__} {error}") from error

    def _signed(self, what: str, token: str, typ: str) -> dict[str, Any]:
        """Claims of a JWS by a published key, in time and by this issuer."""
        verified = jws.deserialize_compact(token, self._provider_keys, ["ES256"])
        require(what, verified.headers().get("typ") == typ, f"typ is not {typ}")
        claims: dict[str, Any] = json.loads(verified.payload)
        require(what, claims["iss"] == self._endpoints.issuer, "another iss")
        require(what, claims["iat"] - 5 <= time.time() < claims["exp"], "not valid now")
        return claims


def _agree(
    flow: Flow, identity: dict[str, Any], access: dict[str, Any], userinfo: dict[str, Any], endpoints: Endpoints
) -> None:
    half = base64url(hashlib.sha256(flow.access_token.encode()).digest()[:16])
    require("ID token", identity["aud"] == CLIENT_ID, "another aud")
    require("ID token", identity["nonce"] == flow.nonce, "another nonce")
    require("ID token", identity["at_hash"] == half, "another at_hash")
    require("access token", access["aud"] == [endpoints.userinfo], "another aud")
    require("access token", access["client_id"] == CLIENT_ID, "another client_id")
    require("access token", access["cnf"]["jkt"] == thumbprint(flow.proof_jwk), "bound to another key")
    require("userinfo", userinfo["aud"] == CLIENT_ID, "another aud")
    require("userinfo", userinfo["sub"] == identity["sub"] == access["sub"], "another sub")
    require("userinfo", userinfo["auth_info"]["Result_Set"]["ESrvc_Row_Count"] == 1, "not the one entity service")


def all_differ(flows: Sequence[Flow]) -> None:
    """No request URI, code or token was given twice. Raises Wrong."""
    for what in ("request_uri", "code", "access_token", "id_token", "userinfo"):
        given = [digest(getattr(flow, what)) for flow in flows]
        require(what, len(set(given)) == len(given), "given to two flows")
