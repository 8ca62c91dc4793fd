"""What a relying party with one defect asks the provider, and what it believes of the answers."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from joserfc.util import urlsafe_b64encode

if TYPE_CHECKING:
    import httpx

DEFECTS: Final = (
    "baseline", "state-altered", "state-missing", "iss-altered", "iss-missing", "error-callback",
    "error-callback-state", "other-browser", "callback-repeated", "code-unknown", "id-token-signature",
    "id-token-alg-none", "id-token-alg-hs256", "id-token-iss", "id-token-aud", "id-token-aud-further",
    "id-token-nonce", "id-token-nonce-missing", "id-token-at-hash", "id-token-exp", "id-token-iat",
    "id-token-sub-missing", "id-token-other-key", "id-token-not-encrypted", "key-rotated", "key-unknown",
    "key-retired", "keys-cached", "discovery-cached", "keys-unavailable", "userinfo-signature", "userinfo-sub",
    "userinfo-aud", "userinfo-iss", "userinfo-extra-roles", "userinfo-empty", "userinfo-many", "userinfo-error",
    "userinfo-unauthorized", "token-error", "token-unavailable", "token-slow", "token-type", "dpop-nonce",
    "par-error", "par-unavailable", "pkce-fresh", "state-fresh", "proof-key-fresh", "assertions-short",
)  # fmt: skip
"""one for each readiness case, in its order"""

JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ENCRYPTION: Final = ("ECDH-ES+A256KW", "A256CBC-HS512", "A256GCM")
LEEWAY_SECONDS: Final = 30
CACHED_SECONDS: Final = 3600
TIMEOUT_SECONDS: Final = 20
MANY_BYTES: Final = 20_000
HASTY_REQUESTS: Final = 6


class Refused(Exception):
    """Nobody is signed in, and a page says so."""


class Crash(Exception):
    """What a defect lets through, so that the person reads an internal server error."""


@dataclass
class Cached:
    """A document of the provider, and when it was fetched."""

    content: dict[str, Any] = field(default_factory=dict)
    at: float = float("-inf")

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.at < CACHED_SECONDS


def base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).decode()


def from_base64url(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def key_pair(use: str, alg: str) -> ECKey:
    return ECKey.generate_key("P-256", {"use": use, "alg": alg, "kid": f"{use}-{secrets.token_hex(4)}"})


class Trust:
    """The provider as one client sees it: its metadata, its keys, its answers."""

    def __init__(self, *, issuer: str, client_id: str) -> None:
        self.issuer, self.client_id = issuer, client_id
        self.signing, self.encryption = key_pair("sig", "ES256"), key_pair("enc", ENCRYPTION[0])
        self.http: httpx.AsyncClient
        self.become("")

    def become(self, defect: str) -> None:
        """Have this defect ("" for none), and nothing cached."""
        assert defect in {"", *DEFECTS}, defect
        self.defect = defect
        self.known_metadata, self.known_keys = Cached(), Cached()

    def jwks(self) -> dict[str, Any]:
        return {"keys": [key.as_dict(private=False) for key in (self.signing, self.encryption)]}

    # --- tokens -----------------------------------------------------------------------------------------------

    async def verified(self, token: str, what: str) -> dict[str, Any]:
        """The claims of a token that the provider signed for us just now."""
        if len(token) > MANY_BYTES and self.defect == "userinfo-many" and what == "userinfo":
            raise Refused("more than we read")
        try:
            header = json_object(from_base64url(token.split(".", 1)[0]))
            content = await self._signed(token, header, what)
            claims = json_object(content)
        except (JoseError, ValueError, IndexError) as malformed:
            raise Refused(f"{what}: {malformed}") from malformed
        if claims.get("iss") != self.issuer and self.defect != f"{what}-iss":
            raise Refused(f"{what}: of another provider")
        self._check_audience(claims.get("aud"), what)
        now, iat, exp = time.time(), claims.get("iat"), claims.get("exp")
        if not isinstance(iat, int) or (iat > now + LEEWAY_SECONDS and self.defect != f"{what}-iat"):
            raise Refused(f"{what}: from the future")
        if not isinstance(exp, int) or (exp <= now - LEEWAY_SECONDS and self.defect != f"{what}-exp"):
            raise Refused(f"{what}: expired")
        return claims

    def _check_audience(self, audience: object, what: str) -> None:
        if audience in (self.client_id, [self.client_id]):
            return
        further = isinstance(audience, list) and self.client_id in audience
        if self.defect != (f"{what}-aud-further" if further else f"{what}-aud"):
            raise Refused(f"{what}: for another client")

    async def _signed(self, token: str, header: dict[str, Any], what: str) -> bytes:
        payload = from_base64url(token.split(".")[1])
        if header.get("alg") == "none" and self.defect == "id-token-alg-none":
            return payload
        if header.get("alg") == "HS256" and self.defect == "id-token-alg-hs256":
            return await self._signed_with_secret(token)
        if header.get("alg") != "ES256":
            raise Refused(f"{what}: signed with {header.get('alg')}")
        key = await self._key(header.get("kid"))
        if self.defect == f"{what}-signature":
            return payload
        registry = jws.JWSRegistry(algorithms=["ES256"])
        registry.max_payload_length = 4 * 1024 * 1024  # of a person with thousands of roles
        return jws.deserialize_compact(token, key, registry=registry).payload

    async def _signed_with_secret(self, token: str) -> bytes:
        """The payload if one of the public keys, in any spelling, is the secret: the confusion of RFC 8725 §2.1."""
        signed, signature = token.rsplit(".", 1)
        for members in (await self._keys())["keys"]:
            key = ECKey.import_key(members)
            public = [key.as_pem(private=False), key.as_der(private=False), from_base64url(members["x"])]
            public += [
                public[0].strip(),
                json.dumps(members).encode(),
                json.dumps(members, separators=(",", ":")).encode(),
            ]
            made = [hmac.digest(each, signed.encode(), "sha256") for each in public]
            if from_base64url(signature) in made:
                return from_base64url(signed.split(".")[1])
        raise Refused("signed with an unknown secret")

    async def _key(self, kid: object) -> ECKey:
        """The provider's key with this kid; an unknown one fetches the key set again, once."""
        keys = await self._keys()
        again = {"key-rotated": 0, "key-unknown": HASTY_REQUESTS}.get(self.defect, 1)
        while (key := signature_key(keys, kid)) is None:
            if not again:
                raise Refused("the signing key is unknown")
            again -= 1
            keys = await self._fetch_keys()
        return key

    async def _keys(self) -> dict[str, Any]:
        if not self.known_keys.is_fresh or self.defect == "keys-cached":
            await self._fetch_keys()
        return self.known_keys.content

    async def _fetch_keys(self) -> dict[str, Any]:
        answer = await self.http.get((await self.metadata())["jwks_uri"])
        if not answer.is_success and self.defect == "keys-unavailable":
            raise Crash("no keys")
        found = document(answer)
        if self.defect == "key-retired":
            found = {"keys": [*found["keys"], *self.known_keys.content.get("keys", [])]}
        self.known_keys = Cached(found, time.monotonic())
        return self.known_keys.content

    async def metadata(self, *, for_login: bool = False) -> dict[str, Any]:
        if not self.known_metadata.is_fresh or (for_login and self.defect == "discovery-cached"):
            found = document(await self.http.get(f"{self.issuer}/.well-known/openid-configuration"))
            if found["issuer"] != self.issuer:
                raise Refused("the metadata is of another provider")
            self.known_metadata = Cached(found, time.monotonic())
        return self.known_metadata.content

    # --- requests ---------------------------------------------------------------------------------------------

    async def ask(
        self,
        method: str,
        url: str,
        key: ECKey,
        *,
        form: dict[str, str] | None = None,
        token: str = "",
        timeout: float = TIMEOUT_SECONDS,  # noqa: ASYNC109 - httpx holds it
    ) -> httpx.Response:
        """Ask the provider; once more if it wants its nonce in the proof (RFC 9449 §8)."""
        nonce: dict[str, str] = {}
        while True:
            headers = {"DPoP": self._proof(method, url, key, token, nonce)}
            if token:
                headers["Authorization"] = f"DPoP {token}"
            data = {**form, **self._client_authentication()} if form else None
            answer = await self.http.request(method, url, headers=headers, data=data, timeout=timeout)
            wanted = "use_dpop_nonce" in answer.headers.get("www-authenticate", "") + error_of(answer)
            if nonce or not wanted or self.defect == "dpop-nonce":
                return answer
            nonce = {"nonce": answer.headers["dpop-nonce"]}

    def _client_authentication(self) -> dict[str, str]:
        now = int(time.time())
        seconds = 300 if self.defect == "assertions-short" else 60
        claims = {"iss": self.client_id, "sub": self.client_id, "aud": self.issuer, "iat": now, "exp": now + seconds,
                  "jti": secrets.token_hex(16)}  # fmt: skip
        assertion = jwt.encode({"alg": "ES256", "kid": self.signing.kid}, claims, self.signing)
        return {"client_id": self.client_id, "client_assertion_type": JWT_BEARER, "client_assertion": assertion}

    def _proof(self, method: str, url: str, key: ECKey, token: str, nonce: dict[str, str]) -> str:
        bound = {"ath": base64url(sha256(token.encode()).digest())} if token else {}
        claims = {"jti": secrets.token_hex(16), "htm": method, "htu": url, "iat": int(time.time()), **bound, **nonce}
        header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": key.as_dict(private=False)}
        return jwt.encode(header, claims, key)


def signature_key(keys: dict[str, Any], kid: object) -> ECKey | None:
    """The ES256 key with this kid, if the set has one (Spec 4.7)."""
    found = [each for each in keys["keys"] if each.get("kid") == kid and each.get("use") == "sig"]
    return ECKey.import_key(found[0]) if found else None


def error_of(answer: httpx.Response) -> str:
    """The error code of an answer, or its status."""
    with suppress(ValueError):
        if not answer.is_success:
            return str(json_object(answer.content).get("error", answer.status_code))
    return f"HTTP {answer.status_code}"


def succeeded(answer: httpx.Response) -> httpx.Response:
    """The answer if it is one; else Refused, with when to come back."""
    if answer.is_success:
        return answer
    later = answer.headers.get("retry-after")
    raise Refused(f"the provider answered {error_of(answer)}" + (f"; try again in {later} s" if later else ""))


def document(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object that the provider answered with; else Refused."""
    try:
        return json_object(succeeded(answer).content)
    except ValueError as malformed:
        raise Refused("the provider answered something else") from malformed


def json_object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found
