"""Verification of a flow's tokens with joserfc, without the provider's own code."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from joserfc import jwe, jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from benchmarks.generations import CURRENT, Generation, Resource
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
        """Decrypt and verify the ID token, verify access token and resources, compare them. Raises Wrong."""
        try:
            encrypted = self._endpoints.generation.id_token_encrypted
            inner = self._decrypted(flow.id_token) if encrypted else flow.id_token
            identity = self._signed("ID token", inner, "JWT")
            access = self._signed("access token", flow.access_token, "at+jwt")
            _agree(flow, identity, access, self._endpoints)
            for resource in self._endpoints.generation.resources:
                _agrees(resource, self._read(resource.name, flow.answers[resource.name]), access)
        except (JoseError, ValueError, KeyError) as error:
            raise Wrong(f"verification: {type(error).__name__} {error}") from error

    def _decrypted(self, id_token: str) -> str:
        opened = jwe.decrypt_compact(id_token, self._encryption, ENCRYPTION)
        require("ID token", opened.headers().get("kid") == "enc", "encrypted to another key")
        return (opened.plaintext or b"").decode()

    def _read(self, what: str, answer: str) -> dict[str, Any]:
        if self._endpoints.generation.resources_signed:
            return self._signed(what, answer, "JWT")
        claims: dict[str, Any] = json.loads(answer)
        self._current(what, claims)
        return claims

    def _signed(self, what: str, token: str, typ: str) -> dict[str, Any]:
        """Claims of a JWS by a published key, in time and by this issuer."""
        verified = jws.deserialize_compact(token, self._provider_keys, ["ES256"])
        require(what, verified.headers().get("typ") == typ, f"typ is not {typ}")
        claims: dict[str, Any] = json.loads(verified.payload)
        self._current(what, claims)
        return claims

    def _current(self, what: str, claims: dict[str, Any]) -> None:
        require(what, claims["iss"] == self._endpoints.issuer, "another iss")
        require(what, claims["iat"] - 5 <= time.time() < claims["exp"], "not valid now")


def _agree(flow: Flow, identity: dict[str, Any], access: dict[str, Any], endpoints: Endpoints) -> None:
    half = base64url(hashlib.sha256(flow.access_token.encode()).digest()[:16])
    require("ID token", identity["aud"] == CLIENT_ID, "another aud")
    require("ID token", identity["nonce"] == flow.nonce, "another nonce")
    require("ID token", identity["at_hash"] == half, "another at_hash")
    require("access token", access["aud"] == list(endpoints.resources), "another aud")
    require("access token", access["client_id"] == CLIENT_ID, "another client_id")
    bound_to = {"jkt": thumbprint(flow.proof_jwk)} if endpoints.generation.bound else None
    require("access token", access.get("cnf") == bound_to, "bound to another key")
    require("access token", access["sub"] == identity["sub"], "another sub")


def _agrees(resource: Resource, claims: dict[str, Any], access: dict[str, Any]) -> None:
    require(resource.name, claims["aud"] == CLIENT_ID, "another aud")
    require(resource.name, claims["sub"] == access["sub"], "another sub")
    block = claims[resource.block]
    require(resource.name, block, f"{resource.block} is empty")
    if resource.services:
        require(resource.name, block["Result_Set"]["ESrvc_Row_Count"] == 1, "not the one entity service")


def all_differ(flows: Sequence[Flow], generation: Generation = CURRENT) -> None:
    """No request URI, code, token or signed response was given twice. Raises Wrong."""
    given = {
        "request_uri": [flow.request_uri for flow in flows] if generation.pushed else [],
        "code": [flow.code for flow in flows],
        "access_token": [flow.access_token for flow in flows],
        "id_token": [flow.id_token for flow in flows],
    }
    for resource in generation.resources if generation.resources_signed else ():
        given[resource.name] = [flow.answers[resource.name] for flow in flows]
    for what, values in given.items():
        require(what, len(set(map(digest, values))) == len(values), "given to two flows")
