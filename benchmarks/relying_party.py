"""The relying party of the benchmarks, and what it makes before the clock starts: assertions, proofs, requests."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from benchmarks.generations import CURRENT, Generation
from benchmarks.http_client import encode

CLIENT_ID = "bench"
REDIRECT_URI = "https://rp.example/callback"
ASSERTION_SECONDS = 120
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FORM_HEADER = "Content-Type: application/x-www-form-urlencoded\r\n"
ES256 = ec.ECDSA(hashes.SHA256())


def base64url(content: bytes) -> str:
    """RFC 7515 section 2."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def digest(text: str) -> str:
    """The S256 challenge of a verifier, the `ath` of a token."""
    return base64url(hashlib.sha256(text.encode()).digest())


def generate_key() -> bytes:
    """A P-256 private key, as DER, in which form it goes to other processes."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def open_key(der: bytes) -> ec.EllipticCurvePrivateKey:
    """The other way round."""
    key = load_der_private_key(der, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """The required members only."""
    numbers = key.public_key().public_numbers()
    x, y = (base64url(number.to_bytes(32)) for number in (numbers.x, numbers.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def thumbprint(jwk: dict[str, str]) -> str:
    """RFC 7638."""
    return digest(f'{{"crv":"{jwk["crv"]}","kty":"{jwk["kty"]}","x":"{jwk["x"]}","y":"{jwk["y"]}"}}')


def sign(key: ec.EllipticCurvePrivateKey, header: dict[str, Any], claims: dict[str, Any]) -> str:
    """A compact JWS under ES256."""
    message = ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    r, s = decode_dss_signature(key.sign(message.encode(), ES256))
    return f"{message}.{base64url(r.to_bytes(32) + s.to_bytes(32))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The relying party's private keys, as DER."""

    signing: bytes
    encryption: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The URLs in the provider's metadata, and the generation in which they are used."""

    issuer: str
    par: str
    """empty if the generation has no pushed requests"""
    authorize: str
    token: str
    resources: tuple[str, ...]
    """as in the generation"""
    jwks: str
    generation: Generation = CURRENT

    @classmethod
    def read(cls, metadata: dict[str, Any], generation: Generation = CURRENT) -> Endpoints:
        return cls(
            issuer=metadata["issuer"],
            par=metadata["pushed_authorization_request_endpoint"] if generation.pushed else "",
            authorize=metadata["authorization_endpoint"],
            token=metadata["token_endpoint"],
            resources=tuple(metadata[resource.metadata_name] for resource in generation.resources),
            jwks=metadata["jwks_uri"],
            generation=generation,
        )


def registration(keys: Keys, issuer: str, generation: Generation = CURRENT) -> dict[str, Any]:
    """What serve.py reads from BENCH_CLIENT_FILE."""
    purposes = ((keys.signing, "sig", "ES256"), (keys.encryption, "enc", "ECDH-ES+A256KW"))
    return {
        "issuer": issuer,
        "client_id": CLIENT_ID,
        "redirect_uris": [REDIRECT_URI],
        "scope": generation.scope,
        "generation": generation.name,
        "jwks": {
            "keys": [{**public_jwk(open_key(der)), "use": use, "alg": alg, "kid": use} for der, use, alg in purposes]
        },
    }


@dataclass(slots=True, kw_only=True)
class Flow:
    """One sign-in of the relying party: what was made beforehand, and what came back."""

    state: str
    nonce: str
    proof_key: bytes
    proof_jwk: dict[str, str]
    query: str
    """the authorization request, if it is not pushed"""
    push_request: bytes
    """the authorization request, if it is pushed"""
    token_head: str
    token_body: str
    """all but the code"""
    iss: str
    """of the callback; empty if it carries none"""
    resource_requests: tuple[bytes, ...] = ()
    """as in the generation"""
    cookie: str = ""
    request_uri: str = ""
    code: str = ""
    access_token: str = ""
    id_token: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    """by the name of the resource"""
    page_url: str = ""
    page: str = ""
    signer: ec.EllipticCurvePrivateKey | None = None
    """the proof key, open, if the load itself makes the requests to resources"""
    failed: bool = False


class Maker:
    """Makes flows; has the keys open."""

    def __init__(self, keys: Keys, endpoints: Endpoints) -> None:
        self.endpoints = endpoints
        self._signing = open_key(keys.signing)

    def flow(self) -> Flow:
        """A flow with its own key, its authorization request, and its token request except for the code."""
        key = ec.generate_private_key(ec.SECP256R1())
        der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        jwk = public_jwk(key)
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        endpoints, generation = self.endpoints, self.endpoints.generation
        requested = {
            "response_type": "code",
            "redirect_uri": REDIRECT_URI,
            "scope": generation.scope,
            "state": state,
            "nonce": nonce,
            "code_challenge": digest(verifier),
            "code_challenge_method": "S256",
            "authentication_context_type": "APP_AUTHENTICATION_DEFAULT",
        }
        redeemed = {
            **self._authentication(),
            "grant_type": "authorization_code",
            "redirect_uri": REDIRECT_URI,
            "code_verifier": verifier,
        }
        return Flow(
            state=state,
            nonce=nonce,
            proof_key=der,
            proof_jwk=jwk,
            query="" if generation.pushed else urlencode({"client_id": CLIENT_ID, **requested}),
            push_request=self._pushed(key, jwk, requested) if generation.pushed else b"",
            token_head=self._head(key, jwk, endpoints.token),
            token_body=urlencode(redeemed),
            iss=endpoints.issuer if generation.iss_in_callback else "",
        )

    def resource_request(
        self, number: int, signer: ec.EllipticCurvePrivateKey, jwk: dict[str, str], access_token: str
    ) -> bytes:
        """The request for a resource, which needs the access token; `number` counts from 0."""
        url = self.endpoints.resources[number]
        is_bound = self.endpoints.generation.bound
        head = bound(signer, jwk, "GET", url, access_token) if is_bound else f"Authorization: Bearer {access_token}\r\n"
        return encode("GET", url, head)

    def _pushed(self, key: ec.EllipticCurvePrivateKey, jwk: dict[str, str], requested: dict[str, str]) -> bytes:
        url = self.endpoints.par
        body = urlencode({**self._authentication(), **requested}).encode()
        return encode("POST", url, self._head(key, jwk, url), body)

    def _authentication(self) -> dict[str, str]:
        return authentication(self._signing, CLIENT_ID, self.endpoints.issuer)

    def _head(self, key: ec.EllipticCurvePrivateKey, jwk: dict[str, str], url: str) -> str:
        if not self.endpoints.generation.bound:
            return FORM_HEADER
        return f"{FORM_HEADER}DPoP: {proof(key, jwk, 'POST', url)}\r\n"


def authentication(key: ec.EllipticCurvePrivateKey, client_id: str, audience: str) -> dict[str, str]:
    """The parameters of private_key_jwt, with a new assertion."""
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "jti": secrets.token_urlsafe(16),
        "iat": now,
        "exp": now + ASSERTION_SECONDS,
    }
    return {
        "client_id": client_id,
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": sign(key, {"alg": "ES256", "kid": "sig", "typ": "JWT"}, claims),
    }


def bound(key: ec.EllipticCurvePrivateKey, jwk: dict[str, str], method: str, url: str, access_token: str) -> str:
    """The header lines of a request with an access token that is bound to this key; the proof is new."""
    made = proof(key, jwk, method, url.partition("?")[0], ath=digest(access_token))
    return f"Authorization: DPoP {access_token}\r\nDPoP: {made}\r\n"


def proof(key: ec.EllipticCurvePrivateKey, jwk: dict[str, str], method: str, url: str, **more: str) -> str:
    """A DPoP proof (RFC 9449 section 4.2)."""
    claims = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": url, "iat": int(time.time()), **more}
    return sign(key, {"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk}, claims)
