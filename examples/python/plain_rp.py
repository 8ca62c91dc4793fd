"""A relying party of CorpID in one file, without an OAuth library: every step of the protocol is in sight.

pip install joserfc httpx starlette uvicorn && python plain_rp.py      (docs/relying-parties.md is the guide)
"""

import json
import os
import time
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import urlencode

import httpx
import uvicorn
from joserfc import jwe, jwt
from joserfc.errors import InvalidKeyIdError
from joserfc.jwk import ECKey, KeySet
from joserfc.util import urlsafe_b64encode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # where `corpid demo` is
CLIENT_ID = os.environ.get("CLIENT_ID", "joserfc-rp")
PORT = int(os.environ.get("PORT", "8412"))
CALLBACK = f"http://127.0.0.1:{PORT}/callback"  # registered, and compared character by character
LEGACY = os.environ.get("GENERATION", "current") == "legacy"  # until the client's last day
# All that changes between the two. `current` also pushes the request, and binds tokens to a DPoP key.
RESOURCE = "authorization-info_endpoint" if LEGACY else "userinfo_endpoint"
SCOPE = "openid authinfo tpauthinfo" if LEGACY else "openid authinfo tpauthinfo user.name"
CONTEXT = {} if LEGACY else {"authentication_context_type": "APP_AUTHENTICATION_DEFAULT"}

# One key says who we are, one decrypts ID tokens. Keep the file as you keep a password.
KEYS = json.loads(Path(os.environ.get("KEYS", "keys.json")).read_text())
SIGNING, ENCRYPTION = ECKey.import_key(KEYS["signing"]), ECKey.import_key(KEYS["encryption"])
attempts: dict[str, dict[str, Any]] = {}  # cookie → attempt; drop old ones, and keep them where all servers can see


def base64url(hashed: str, size: int = 32) -> str:
    return urlsafe_b64encode(sha256(hashed.encode()).digest()[:size]).decode()


@cache
def metadata() -> dict[str, Any]:
    found = httpx.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).raise_for_status().json()
    if found["issuer"] != ISSUER:
        raise ValueError(f"{ISSUER} says that it is {found['issuer']}")
    return found


@cache  # until a token names a key that is not among them
def provider_keys() -> KeySet:
    return KeySet.import_key_set(httpx.get(metadata()["jwks_uri"], timeout=10).raise_for_status().json())


def verified(token: str, **expected: str) -> dict[str, Any]:
    """The claims of a token that CorpID signed for us alone, just now."""
    try:
        claims = jwt.decode(token, provider_keys(), algorithms=["ES256"]).claims
    except InvalidKeyIdError:  # CorpID may have a new signing key
        provider_keys.cache_clear()
        claims = jwt.decode(token, provider_keys(), algorithms=["ES256"]).claims
    jwt.JWTClaimsRegistry(leeway=30, exp={"essential": True}, iat={"essential": True}).validate(claims)
    for name, value in {"iss": ISSUER, "aud": CLIENT_ID, **expected}.items():
        if claims.get(name) != value:
            raise ValueError(f"{name} of the token is not {value}")
    return claims


def ask(method: str, url: str, key: ECKey | None, form: dict | None = None, token: str = "") -> httpx.Response:
    """Ask CorpID; once more if it wants its nonce in the DPoP proof."""
    nonce, headers = {}, {"Authorization": f"{'DPoP' if key else 'Bearer'} {token}"} if token else {}
    while True:
        once = {"jti": token_urlsafe(), "iat": int(time.time())}
        if form:  # who we are: the audience is CorpID's issuer, whatever the endpoint
            claims = {"iss": CLIENT_ID, "sub": CLIENT_ID, "aud": ISSUER, "exp": once["iat"] + 60, **once}
            header = {"alg": SIGNING.alg, "kid": SIGNING.kid}
            form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            form["client_assertion"] = jwt.encode(header, claims, SIGNING, algorithms=[SIGNING.alg])
        if key:  # one key for the whole sign-in, a proof for each request
            bound = {"ath": base64url(token)} if token else {}
            header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": key.as_dict(private=False)}
            headers["DPoP"] = jwt.encode(header, {"htm": method, "htu": url, **once, **bound, **nonce}, key)
        response = httpx.request(method, url, headers=headers, data=form, timeout=10)
        if response.is_success:
            return response
        if nonce or "dpop-nonce" not in response.headers:
            raise ValueError(response.text or response.headers.get("www-authenticate", response.status_code))
        nonce = {"nonce": response.headers["dpop-nonce"]}


def login(_: Request) -> Response:
    """Make the request, keep what the callback needs, and send the browser to CorpID."""
    cookie, state, nonce, verifier = (token_urlsafe() for _ in range(4))
    key = None if LEGACY else ECKey.generate_key("P-256")
    form = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "scope": SCOPE, **CONTEXT}
    form |= {"state": state, "nonce": nonce, "code_challenge": base64url(verifier), "code_challenge_method": "S256"}
    if key:
        pushed = ask("POST", metadata()["pushed_authorization_request_endpoint"], key, form).json()
        form = {"client_id": CLIENT_ID, "request_uri": pushed["request_uri"]}
    attempts[cookie] = {"state": state, "nonce": nonce, "verifier": verifier, "key": key}
    response = RedirectResponse(f"{metadata()['authorization_endpoint']}?{urlencode(form)}", 303)
    response.set_cookie("joserfc_rp", cookie, httponly=True, samesite="lax")  # on https: secure=True
    return response


def callback(request: Request) -> Response:
    """Redeem the code and ask what the person may do. All checks are in here; a failed one raises."""
    attempt, given = attempts.pop(request.cookies.get("joserfc_rp", ""), None), request.query_params  # once
    if attempt is None or not compare_digest(given.get("state", ""), attempt["state"]):
        raise ValueError("this browser started no sign-in, another, or finished it already")
    if metadata().get("authorization_response_iss_parameter_supported") and given.get("iss") != ISSUER:
        raise ValueError("the callback is of another provider")
    if "code" not in given:
        raise ValueError(f"{given.get('error')}: {given.get('error_description')}")
    form = {"grant_type": "authorization_code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK}
    form |= {"code": given["code"], "code_verifier": attempt["verifier"]}
    tokens = ask("POST", metadata()["token_endpoint"], attempt["key"], form).json()
    if tokens["token_type"] != ("Bearer" if LEGACY else "DPoP"):
        raise ValueError("the access token is of another type")
    lenient = jwe.JWERegistry(algorithms=[ENCRYPTION.alg, "A256CBC-HS512", "A256GCM"], strict_check_header=False)
    signed = jwe.decrypt_compact(tokens["id_token"], ENCRYPTION, registry=lenient).plaintext.decode()  # RFC 7519 §5.3
    claims = verified(signed, nonce=attempt["nonce"], at_hash=base64url(tokens["access_token"], 16))
    answer = ask("GET", metadata()[RESOURCE], attempt["key"], token=tokens["access_token"])
    userinfo = verified(answer.text, sub=claims["sub"])
    return page(claims, userinfo)  # here your own session for this person begins


def page(claims: dict[str, Any], userinfo: dict[str, Any]) -> Response:
    """Who signed in, and what they may do for the entity that they act for."""
    services = (userinfo.get("auth_info") or userinfo.get("AuthInfo") or {}).get("Result_Set", {})
    lines = ["Signed in", json.dumps(claims, indent=2), json.dumps(userinfo, indent=2)]
    for service in services.get("ESrvc_Result", []):
        for row in service["Auth_Result_Set"]["Row"]:
            lines.insert(1, f"may act as {row['CPRole']} at {service['CPESrvcID']}")
    return PlainTextResponse("\n".join(lines))


def refused(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"Refused: {type(error).__name__}: {error}", 403)


app = Starlette(routes=[Route("/login", login), Route("/callback", callback)], exception_handlers={Exception: refused})
print(f"Open http://127.0.0.1:{PORT}/login", flush=True)
uvicorn.run(app, host="127.0.0.1", port=PORT, access_log=False, log_level="error")  # addresses contain codes
