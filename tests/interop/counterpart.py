"""A provider of some lines that signs whatever it is told, in any generation."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from joserfc import jwe
from joserfc.jwk import ECKey

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.jwt import public_members
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.relying_party.verification import Callback

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


THIRD_PARTIES = {
    "Result_Set": {
        "ESrvc_Row_Count": 1,
        "ESrvc_Result": [
            {
                "CPESrvcID": "PERMITS",
                "Auth_Set": {
                    "ENT_ROW_COUNT": 1,
                    "TP_Auth": [
                        {
                            "CP_Clnt_ID": "200000002B",
                            "CP_ClntEnt_TYPE": "UEN",
                            "Auth_Result_Set": {
                                "Row_Count": 1,
                                "Row": [
                                    {"CP_ClntEnt_SUB": "", "CPRole": "", "StartDate": "2020-01-01",
                                     "EndDate": "9999-12-31", "Parameter": []}
                                ],
                            },
                        }
                    ],
                },
            }
        ],
    }
}  # fmt: skip
ATTRIBUTES = {"entity_name": "Example Harbour"}
PACKED: dict[str, Any] = {
    "sub": "s=S0000001X,uuid=person-1,u=200000001AS0000001X,c=SG",
    "userInfo": {"CPAccType": "User", "CPUID_FullName": "Rina Example", "ISSPHOLDER": "YES"},
    "entityInfo": {"CPEntID": "200000001A", "CPEnt_TYPE": "UEN", "CPEnt_Status": "Registered",
                   "CPNonUEN_Country": "", "CPNonUEN_RegNo": "", "CPNonUEN_Name": ""},
}  # fmt: skip
SCOPE = "openid authinfo tpauthinfo"


def put(**members: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {name: value for name, value in {**document, **members}.items() if value is not None}


def within(name: str, **members: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Like `put`, in a member that is an object itself."""
    return lambda document: {**document, name: put(**members)(document[name])}


def swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def header(name: str, value: str) -> Callable[[httpx.Response], httpx.Response]:
    def set_header(response: httpx.Response) -> httpx.Response:
        response.headers[name] = value
        return response

    return set_header


def certified(key: ECKey) -> dict[str, Any]:
    """x5c, x5t and x5t#S256 of a certificate that the key signs itself."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "op")])
    now = datetime.now(UTC)
    public_key: Any = key.public_key
    private_key: Any = key.private_key
    certificate = (
        x509.CertificateBuilder(name, name, public_key, x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(private_key, hashes.SHA256())
    )
    encoded = certificate.public_bytes(serialization.Encoding.DER)
    return {
        "x5c": [b64encode(encoded).decode()],
        "x5t": jwt.base64url(hashlib.sha1(encoded).digest()),
        "x5t#S256": jwt.base64url(hashlib.sha256(encoded).digest()),
    }


class Counterpart:
    """Answers as a provider does; `change` may alter a document before it is signed or sent."""

    def __init__(self, interface: Interface = CURRENT, **options: Any) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": "op-1", "use": "sig", "alg": "ES256"})
        self.published = [self.key]
        self.change: dict[str, Callable[[Any], Any]] = {}
        self.interface = interface
        self.stringified = options.get("stringified_blocks", False)
        self.rp = RelyingParty(
            client_id="rp-1",
            issuer=ISSUER,
            interface=interface,
            redirect_uri=CALLBACK,
            http=httpx.AsyncClient(transport=httpx.MockTransport(self.answer)),
            **options,
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rsplit("/", 1)[-1]
        response: httpx.Response = {
            "openid-configuration": self.discovery,
            "keys": self.keys,
            "request": self.pushed,
            "token": self.token,
            "userinfo": self.userinfo,
            "authorization-info": self.userinfo,
            "entity-info": self.entity_info,
        }[name](request)
        changed: httpx.Response = self._changed(f"{name} response", response)
        return changed

    def discovery(self, _: httpx.Request) -> httpx.Response:
        document: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
            **{reading.endpoint: f"{ISSUER}/{reading.name}" for reading in self.interface.readings},
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "userinfo_signing_alg_values_supported": ["ES256"],
            "scopes_supported": ["openid"],
        }
        if self.interface.pushed:
            document["pushed_authorization_request_endpoint"] = f"{ISSUER}/request"
            document["dpop_signing_alg_values_supported"] = ["ES256"]
        if self.interface.entity_info:
            document["entityinfo_signing_alg_values_supported"] = ["ES256"]
        return httpx.Response(200, json=self._changed("discovery", document))

    def keys(self, _: httpx.Request) -> httpx.Response:
        entries = [public_members(key, "kid", "use", "alg") for key in self.published]
        if self.interface.certificates:
            entries = [{**entry, **certified(key)} for entry, key in zip(entries, self.published, strict=True)]
        content = json.dumps(self._changed("keys", {"keys": entries}))
        return httpx.Response(200, content=content, headers={"Content-Type": "application/jwk-set+json"})

    def pushed(self, _: httpx.Request) -> httpx.Response:
        document = {"request_uri": f"urn:ietf:params:oauth:request_uri:{'r' * 43}", "expires_in": 60}
        return self._no_store(201, json.dumps(self._changed("pushed", document)))

    def token(self, request: httpx.Request) -> httpx.Response:
        assert parse_qs(request.content.decode())["grant_type"] == ["authorization_code"]
        now = int(time.time())
        shared = {"iss": ISSUER, "iat": now, "exp": now + 600, "auth_time": now}
        told, parties = self._parties()
        access = {**shared, **parties, "acr": "urn:x:2", "client_id": "rp-1", "scope": SCOPE, "jti": "j",
                  "aud": [f"{ISSUER}/{reading.name}" for reading in self.interface.readings]}  # fmt: skip
        if self.interface.bound:
            access["cnf"] = {"jkt": self.rp.sign_in.dpop_key.thumbprint()}
        access_token = self.sign("access token", access, "at+jwt")
        identity = {**shared, "aud": "rp-1", "nonce": self.rp.sign_in.nonce, "at_hash": jwt.half_digest(access_token),
                    "amr": ["pwd", "otp"], **told}  # fmt: skip
        id_token = self.sign("id token", identity, "JWT")
        encrypted = self.interface.id_token_enc or self.rp.id_token_enc
        document = {
            "access_token": access_token,
            "id_token": self.encrypt(id_token) if encrypted else id_token,
            "token_type": self.interface.scheme,
            "expires_in": 600,
            "scope": SCOPE,
        }
        return self._no_store(200, json.dumps(self._changed("token", document)))

    def _parties(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the ID token tells of both parties, and what the access token does."""
        entity: dict[str, Any] = {"sub": "200000001A", "sub_type": "entity"}
        if self.interface.packed_subject:
            return PACKED, {"sub": PACKED["sub"], "entity": entity}
        user = {"sub": "person-1", "sub_type": "user"}
        attributes = {"sub_attributes": ATTRIBUTES} if self.interface.entity_info else {}
        return {**user, "acr": "urn:x:2", "entity": {**entity, **attributes}}, {**user, "entity": entity}

    def userinfo(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"].split()[0] == self.interface.scheme
        reading = self.interface.userinfo
        assert request.method == reading.method
        told: dict[str, Any] = {reading.blocks["authinfo"]: AUTH_INFO, reading.blocks["tpauthinfo"]: THIRD_PARTIES}
        if self.stringified:
            told = {name: json.dumps(block) for name, block in told.items()}
        if reading.signed or self.rp.userinfo_signed:
            return self._resource(reading.name, told)
        payload = self._changed(reading.name, {"sub": self._parties()[0]["sub"], **told})
        return self._no_store(200, json.dumps(payload))

    def entity_info(self, _: httpx.Request) -> httpx.Response:
        return self._resource("entity-info", {"entity_info": ATTRIBUTES})

    def _resource(self, name: str, told: dict[str, Any]) -> httpx.Response:
        now = int(time.time())
        payload = {"iss": ISSUER, "aud": "rp-1", "sub": self._parties()[0]["sub"], "iat": now, "exp": now + 600, **told}
        return self._no_store(200, self.sign(name, payload, "JWT"), "application/jwt")

    def sign(self, name: str, payload: dict[str, Any], typ: str) -> str:
        header = self._changed(f"{name} header", {"alg": "ES256", "kid": self.key.kid, "typ": typ})
        key = self._changed(f"{name} key", self.key)
        return str(self._changed(f"{name} text", jwt.compact(header, self._changed(name, payload), key)))

    def encrypt(self, signed: str) -> str:
        recipient = self._changed("recipient", self.rp.keys.encryption)
        header = {"alg": "ECDH-ES+A256KW", "enc": "A256CBC-HS512", "kid": self.rp.keys.encryption.kid, "cty": "JWT"}
        header = self._changed("encryption header", header)
        return jwe.encrypt_compact(header, signed, recipient, algorithms=[header["alg"], header["enc"]])

    def callback(self, **said: str) -> Callback:
        """An answer the way that was asked for: honest, but for what is said otherwise."""
        answer = {"code": "c1", "state": self.rp.sign_in.state, **said}
        match self.rp.response_mode:
            case "fragment":
                return Callback(f"{CALLBACK}#{urlencode(answer)}")
            case "form_post":
                return Callback(CALLBACK, answer.items())
            case _:
                return Callback(f"{CALLBACK}?{urlencode(answer)}")

    def run(self) -> dict[str, Any]:
        """A whole sign-in; the userinfo claims."""

        async def steps() -> dict[str, Any]:
            await self.rp.begin()
            await self.rp.redeem(self._changed("callback", self.callback()))
            if self.interface.entity_info:
                await self.rp.entity_info()
            return await self.rp.userinfo()

        return asyncio.run(steps())

    def _changed(self, name: str, value: Any) -> Any:
        return self.change.get(name, lambda same: same)(value)

    @staticmethod
    def _no_store(status: int, content: str, content_type: str = "application/json") -> httpx.Response:
        headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Pragma": "no-cache"}
        return httpx.Response(status, content=content, headers=headers)
