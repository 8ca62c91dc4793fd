"""A provider of a few lines with keys of its own, which says whatever a test wants it to say.

It has no sign-in pages: a test takes the callback from it. It judges only what a relying party with a defect gets wrong.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwe, jws
from joserfc.jwk import ECKey
from joserfc.util import urlsafe_b64encode
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

SUB: Final = "person-1"


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode()


def encoded_object(members: dict[str, Any]) -> str:
    return encoded(json.dumps(members).encode())


def new_key() -> ECKey:
    return ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256", "kid": secrets.token_hex(8)})


def signed(claims: dict[str, Any], key: ECKey) -> str:
    header = {"alg": "ES256", "typ": "JWT", "kid": key.kid}
    return jws.serialize_compact(header, json.dumps(claims).encode(), key, algorithms=["ES256"])


def unsigned(claims: dict[str, Any], _: ECKey) -> str:
    return ".".join((encoded_object({"alg": "none"}), encoded_object(claims), ""))


def signed_with_public_key(claims: dict[str, Any], key: ECKey) -> str:
    content = f"{encoded_object({'alg': 'HS256'})}.{encoded_object(claims)}"
    return f"{content}.{encoded(hmac.digest(key.as_pem(private=False), content.encode(), 'sha256'))}"


def signed_by_another(claims: dict[str, Any], key: ECKey) -> str:
    """Under the kid of this key, which did not sign it."""
    return signed(claims, ECKey.import_key({**new_key().as_dict(private=True), "kid": str(key.kid)}))


def encrypted(token: str, key: ECKey) -> str:
    header = {"alg": "ECDH-ES+A256KW", "enc": "A256CBC-HS512", "cty": "JWT", "kid": str(key.kid)}
    return jwe.encrypt_compact(header, token.encode(), key, algorithms=[header["alg"], header["enc"]])


def encrypted_to_another(token: str, key: ECKey) -> str:
    return encrypted(token, ECKey.import_key({**new_key().as_dict(private=True), "kid": str(key.kid), "use": "enc"}))


def rows(*roles: str) -> dict[str, Any]:
    """`auth_info` with these roles at one service (Spec 2.5); without roles an empty Result_Set."""
    row = {"CPEntID_SUB": "", "StartDate": "2020-01-01", "EndDate": "9999-12-31", "Parameter": []}
    listed = {"Row_Count": len(roles), "Row": [{**row, "CPRole": role} for role in roles]}
    services = [{"CPESrvcID": "HARBOUR-PERMIT", "Auth_Result_Set": listed}] if roles else []
    return {"Result_Set": {"ESrvc_Row_Count": len(services), "ESrvc_Result": services}}


@dataclass
class SmallProvider:
    """What it says can be changed until the next `SmallProvider`; what it was asked is kept."""

    issuer: str
    key: ECKey = field(default_factory=new_key)
    published: list[ECKey] = field(default_factory=list)
    encryption: ECKey | None = None
    id_token: dict[str, Any] = field(default_factory=dict)
    """changed claims; None leaves one out"""
    userinfo: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[dict[str, Any], ECKey], str] = signed
    sign_userinfo: Callable[[dict[str, Any], ECKey], str] = signed
    encrypt: Callable[[str, ECKey], str] = encrypted
    answers: dict[str, Response] = field(default_factory=dict)
    """endpoint → what it answers instead, each time"""
    token_type: str = "DPoP"
    token_seconds: float = 0
    wants_nonce: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    """requests by endpoint"""
    pushed: list[dict[str, str]] = field(default_factory=list)
    assertions: list[dict[str, Any]] = field(default_factory=list)
    proof_keys: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.published.append(self.key)
        endpoints: dict[str, tuple[Callable[..., Any], str]] = {
            "/.well-known/openid-configuration": (self._discovery, "discovery"), "/keys": (self._keys, "keys"),
            "/par": (self._par, "par"), "/token": (self._token, "token"), "/userinfo": (self._userinfo, "userinfo"),
        }  # fmt: skip
        self.asgi = Starlette(
            routes=[
                Route(path, self._answered(name, endpoint), methods=["GET", "POST"])
                for path, (endpoint, name) in endpoints.items()
            ]
        )

    def rotate(self) -> ECKey:
        """Sign with a new key, which alone is published; the one before."""
        before, self.key = self.key, new_key()
        self.published = [self.key]
        return before

    def callback(self, authorization_url: str, **changes: str | None) -> str:
        """What the browser would bring back; None leaves a parameter out."""
        request = dict(parse_qsl(urlsplit(authorization_url).query))
        pushed = self.pushed[int(request["request_uri"])]
        given = {"code": request["request_uri"], "state": pushed["state"], "iss": self.issuer, **changes}
        return f"{pushed['redirect_uri']}?{urlencode({k: v for k, v in given.items() if v is not None})}"

    def _answered(self, name: str, endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            self.asked[name] += 1
            found = self.answers.get(name) or await endpoint(request)
            assert isinstance(found, Response)
            return found

        return answer

    async def _discovery(self, _: Request) -> Response:
        metadata = {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_endpoint": f"{self.issuer}/authorize",
            "pushed_authorization_request_endpoint": f"{self.issuer}/par",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse(metadata)

    async def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.published]})

    async def _par(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.pushed.append(form)
        self.assertions.append(_claims(form["client_assertion"]))
        proof = jws.extract_compact(request.headers["dpop"].encode())
        self.proof_keys.append(proof.headers()["jwk"])
        return JSONResponse({"request_uri": str(len(self.pushed) - 1), "expires_in": 60}, 201)

    async def _token(self, request: Request) -> Response:
        await asyncio.sleep(self.token_seconds)
        form = dict(parse_qsl((await request.body()).decode()))
        if self.wants_nonce and _claims(request.headers["dpop"]).get("nonce") != "fresh":
            return JSONResponse({"error": "use_dpop_nonce"}, 400, {"DPoP-Nonce": "fresh"})
        if not form.get("code", "").isdigit():
            return JSONResponse({"error": "invalid_grant"}, 400)
        pushed = self.pushed[int(form["code"])]
        if form["redirect_uri"] != pushed["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access_token = f"access-{form['code']}"
        at_hash = encoded(sha256(access_token.encode()).digest()[:16])
        claims = self._changed({**self._about(pushed["client_id"]), "nonce": pushed["nonce"], "at_hash": at_hash,
                                "sub_attributes": {"name": "Mei Example"}}, self.id_token)  # fmt: skip
        assert self.encryption is not None
        id_token = self.encrypt(self.sign(claims, self.key), self.encryption)
        return JSONResponse({"access_token": access_token, "token_type": self.token_type, "id_token": id_token})

    async def _userinfo(self, request: Request) -> Response:
        pushed = self.pushed[int(request.headers["authorization"].rpartition("-")[2])]
        claims = {**self._about(pushed["client_id"]), "auth_info": rows("Applicant")}
        return Response(
            self.sign_userinfo(self._changed(claims, self.userinfo), self.key), media_type="application/jwt"
        )

    def _about(self, client_id: str) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.issuer, "aud": client_id, "sub": SUB, "iat": now, "exp": now + 600}

    def _changed(self, claims: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in {**claims, **changes}.items() if value is not None}


def _claims(token: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jws.extract_compact(token.encode()).payload)
    return found
