"""A provider of some lines that signs whatever it is told."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import httpx
from joserfc import jwe
from joserfc.jwk import ECKey

from corpid.sandbox import jwt
from corpid.sandbox.relying_party import RelyingParty
from corpid.sandbox.relying_party_keys import public

if TYPE_CHECKING:
    from collections.abc import Callable

ISSUER = "https://op.example"
CALLBACK = "https://rp.example/callback"
AUTH_INFO = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Result_Set": {
                    "Row_Count": 1,
                    "Row": [
                        {"CPEntID_SUB": "", "CPRole": "Maker", "StartDate": "2020-01-01", "EndDate": "9999-12-31",
                         "Parameter": []}
                    ],
                },
            }
        ],
    }
}  # fmt: skip


class Counterpart:
    """Answers as a provider does; `change` may alter a document before it is signed or sent."""

    def __init__(self) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": "op-1", "use": "sig", "alg": "ES256"})
        self.published = [self.key]
        self.change: dict[str, Callable[[Any], Any]] = {}
        self.rp = RelyingParty(
            client_id="rp-1",
            issuer=ISSUER,
            redirect_uri=CALLBACK,
            http=httpx.AsyncClient(transport=httpx.MockTransport(self.answer)),
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rsplit("/", 1)[-1]
        response: httpx.Response = {
            "openid-configuration": self.discovery,
            "keys": self.keys,
            "request": self.pushed,
            "token": self.token,
            "userinfo": self.userinfo,
        }[name](request)
        changed: httpx.Response = self._changed(f"{name} response", response)
        return changed

    def discovery(self, _: httpx.Request) -> httpx.Response:
        document = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "pushed_authorization_request_endpoint": f"{ISSUER}/request",
            "jwks_uri": f"{ISSUER}/keys",
            "userinfo_endpoint": f"{ISSUER}/userinfo",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "userinfo_signing_alg_values_supported": ["ES256"],
            "scopes_supported": ["openid"],
        }
        return httpx.Response(200, json=self._changed("discovery", document))

    def keys(self, _: httpx.Request) -> httpx.Response:
        document = {"keys": [public(key, "kid", "use", "alg") for key in self.published]}
        content = json.dumps(self._changed("keys", document))
        return httpx.Response(200, content=content, headers={"Content-Type": "application/jwk-set+json"})

    def pushed(self, _: httpx.Request) -> httpx.Response:
        document = {"request_uri": f"urn:ietf:params:oauth:request_uri:{'r' * 43}", "expires_in": 60}
        return self._no_store(201, json.dumps(self._changed("pushed", document)))

    def token(self, request: httpx.Request) -> httpx.Response:
        assert parse_qs(request.content.decode())["grant_type"] == ["authorization_code"]
        now = int(time.time())
        entity = {"sub": "200000001A", "sub_type": "entity"}
        shared = {"iss": ISSUER, "iat": now, "exp": now + 600, "sub": "person-1", "acr": "urn:x:2", "auth_time": now}
        scope = "openid authinfo tpauthinfo"
        access = {**shared, "aud": [f"{ISSUER}/userinfo"], "client_id": "rp-1", "scope": scope, "jti": "j",
                  "sub_type": "user", "entity": entity,
                  "cnf": {"jkt": self.rp.sign_in.dpop_key.thumbprint()}}  # fmt: skip
        access_token = self.sign("access token", access, "at+jwt")
        identity = {**shared, "aud": "rp-1", "nonce": self.rp.sign_in.nonce, "at_hash": jwt.half_digest(access_token),
                    "amr": ["pwd", "otp"], "sub_type": "user", "entity": entity}  # fmt: skip
        document = {
            "access_token": access_token,
            "id_token": self.encrypt(self.sign("id token", identity, "JWT")),
            "token_type": "DPoP",
            "expires_in": 600,
            "scope": scope,
        }
        return self._no_store(200, json.dumps(self._changed("token", document)))

    def userinfo(self, _: httpx.Request) -> httpx.Response:
        now = int(time.time())
        payload = {"iss": ISSUER, "aud": "rp-1", "sub": "person-1", "iat": now, "exp": now + 600,
                   "auth_info": AUTH_INFO}  # fmt: skip
        return self._no_store(200, self.sign("userinfo", payload, "JWT"), "application/jwt")

    def sign(self, name: str, payload: dict[str, Any], typ: str) -> str:
        header = self._changed(f"{name} header", {"alg": "ES256", "kid": self.key.kid, "typ": typ})
        key = self._changed(f"{name} key", self.key)
        return str(self._changed(f"{name} text", jwt.compact(header, self._changed(name, payload), key)))

    def encrypt(self, signed: str) -> str:
        recipient = self._changed("recipient", self.rp.keys.encryption)
        header = {"alg": "ECDH-ES+A256KW", "enc": "A256CBC-HS512", "kid": self.rp.keys.encryption.kid, "cty": "JWT"}
        header = self._changed("encryption header", header)
        return jwe.encrypt_compact(header, signed, recipient, algorithms=[header["alg"], header["enc"]])

    def run(self) -> dict[str, Any]:
        """A whole sign-in; the userinfo claims."""

        async def steps() -> dict[str, Any]:
            await self.rp.begin()
            await self.rp.redeem(self._changed("callback", f"{CALLBACK}?code=c1&state={self.rp.sign_in.state}"))
            return await self.rp.userinfo()

        return asyncio.run(steps())

    def _changed(self, name: str, value: Any) -> Any:
        return self.change.get(name, lambda same: same)(value)

    @staticmethod
    def _no_store(status: int, content: str, content_type: str = "application/json") -> httpx.Response:
        headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Pragma": "no-cache"}
        return httpx.Response(status, content=content, headers=headers)
