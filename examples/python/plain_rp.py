"""A relying party of CorpID in one file, without an OAuth library: joserfc for tokens, httpx for requests.

    pip install joserfc httpx && python plain_rp.py

Every step of the protocol is in sight: to learn it, or for a place where no OAuth library runs. Its first run makes two
key pairs and prints the command that registers it. docs/relying-parties.md is the guide.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from functools import cache
from hashlib import sha256
from html import escape
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from joserfc import jwe, jwt
from joserfc.errors import InvalidKeyIdError
from joserfc.jwk import ECKey, KeySet
from joserfc.util import urlsafe_b64encode

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # where `corpid demo` is
CLIENT_ID = os.environ.get("CLIENT_ID", "joserfc-rp")
PORT = int(os.environ.get("PORT", "8412"))
KEYS = Path(os.environ.get("KEYS", "keys.json"))  # private: keep it as you keep a password
LEGACY = os.environ.get("GENERATION", "current") == "legacy"  # until the client's last day
HOME = f"http://127.0.0.1:{PORT}"
CALLBACK = f"{HOME}/callback"  # registered, and compared character by character
# All that changes between the two: where roles are, and what is asked. `current` also pushes it, and binds tokens.
RESOURCE = "authorization-info_endpoint" if LEGACY else "userinfo_endpoint"
SCOPE = "openid authinfo tpauthinfo" + ("" if LEGACY else " user.name entity.basic_profile.name")
CONTEXT = {} if LEGACY else {"authentication_context_type": "APP_AUTHENTICATION_DEFAULT"}
jti = secrets.token_hex  # a new name for each token of ours

if not KEYS.exists():  # one signs (who we are), one decrypts (ID tokens); CorpID gets the public halves
    made = {"signing": {"use": "sig", "alg": "ES256"}, "encryption": {"use": "enc", "alg": "ECDH-ES+A256KW"}}
    fresh = {name: ECKey.generate_key("P-256", {**each, "kid": f"{name}-{jti()[:8]}"}) for name, each in made.items()}
    KEYS.touch(mode=0o600)
    KEYS.write_text(json.dumps({name: key.as_dict(private=True) for name, key in fresh.items()}, indent=2))
keys = {name: ECKey.import_key(members) for name, members in json.loads(KEYS.read_text()).items()}
jwks = json.dumps({"keys": [key.as_dict(private=False) for key in keys.values()]})
Path(f"{KEYS}.public").write_text(jwks)
ALG, JWT_BEARER = keys["signing"].alg, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Refused(Exception):
    def __init__(self, error: str, description: str = "") -> None:
        super().__init__(error, description)
        self.error, self.description = error, description


def base64url(hashed: bytes, size: int = 32) -> str:
    return urlsafe_b64encode(sha256(hashed).digest()[:size]).decode()


@cache
def metadata() -> dict[str, Any]:
    found = httpx.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).raise_for_status().json()
    if found["issuer"] != ISSUER:
        raise Refused("wrong_issuer", found["issuer"])
    return found


@cache  # until a token names a key that is not among them
def provider_keys() -> KeySet:
    return KeySet.import_key_set(httpx.get(metadata()["jwks_uri"], timeout=10).raise_for_status().json())


def verified(token: str, **expected: str) -> dict[str, Any]:
    """The claims of a token that CorpID signed for us just now."""
    try:
        claims = jwt.decode(token, provider_keys(), algorithms=["ES256"]).claims
    except InvalidKeyIdError:  # CorpID may have a new signing key
        provider_keys.cache_clear()
        claims = jwt.decode(token, provider_keys(), algorithms=["ES256"]).claims
    wanted = {"iss": ISSUER, "aud": CLIENT_ID, **expected}
    required = {name: {"essential": True, "value": value} for name, value in wanted.items()}
    jwt.JWTClaimsRegistry(leeway=30, exp={"essential": True}, iat={"essential": True}, **required).validate(claims)
    return claims


def ask(
    method: str, url: str, key: ECKey | None, form: dict[str, str] | None = None, token: str = ""
) -> httpx.Response:
    """Ask CorpID; once more if it wants its nonce in the DPoP proof."""
    nonce, now, headers = {}, int(time.time()), {}
    while True:
        if token:
            headers["Authorization"] = f"{'DPoP' if key else 'Bearer'} {token}"
        if form:  # who we are: the audience is CorpID's issuer, whatever the endpoint
            who = {"iss": CLIENT_ID, "sub": CLIENT_ID, "aud": ISSUER, "iat": now, "exp": now + 60, "jti": jti()}
            assertion = jwt.encode({"alg": ALG, "kid": keys["signing"].kid}, who, keys["signing"], algorithms=[ALG])
            form = {**form, "client_id": CLIENT_ID, "client_assertion_type": JWT_BEARER, "client_assertion": assertion}
        if key:  # one key for the whole sign-in, a proof for each request
            bound = {"ath": base64url(token.encode())} if token else {}
            claims = {"jti": jti(), "htm": method, "htu": url, "iat": now, **bound, **nonce}
            header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": key.as_dict(private=False)}
            headers["DPoP"] = jwt.encode(header, claims, key)
        response = httpx.request(method, url, headers=headers, data=form, timeout=10)
        if response.is_success:
            return response
        answer = response.json() if "json" in response.headers.get("content-type", "") else {}
        error = answer.get("error", f"HTTP {response.status_code}")
        if nonce or "use_dpop_nonce" not in response.headers.get("www-authenticate", "") + error:
            raise Refused(error, answer.get("error_description", ""))
        nonce = {"nonce": response.headers["dpop-nonce"]}


def begin() -> tuple[dict[str, Any], str]:
    """Make the request. Returns what the callback needs, and the address to send the browser to."""
    attempt = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
    key = None if LEGACY else ECKey.generate_key("P-256")
    challenge = base64url(attempt["verifier"].encode())
    request = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "scope": SCOPE, **CONTEXT,
               "state": attempt["state"], "nonce": attempt["nonce"],
               "code_challenge": challenge, "code_challenge_method": "S256"}  # fmt: skip
    if key:
        pushed = ask("POST", metadata()["pushed_authorization_request_endpoint"], key, request)
        request = {"client_id": CLIENT_ID, "request_uri": pushed.json()["request_uri"]}
    return {**attempt, "key": key}, f"{metadata()['authorization_endpoint']}?{urlencode(request)}"


def finish(attempt: dict[str, Any], callback: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Redeem the code and ask what the person may do. All checks are in here; a failed one raises."""
    if not secrets.compare_digest(callback.get("state", ""), attempt["state"]):
        raise Refused("wrong_state")
    if metadata().get("authorization_response_iss_parameter_supported") and callback.get("iss") != ISSUER:
        raise Refused("wrong_issuer")
    if "code" not in callback:
        raise Refused(callback.get("error", "no_code"), callback.get("error_description", ""))
    form = {"grant_type": "authorization_code", "code": callback["code"], "redirect_uri": CALLBACK,
            "code_verifier": attempt["verifier"]}  # fmt: skip
    tokens = ask("POST", metadata()["token_endpoint"], attempt["key"], form).json()
    allowed = [keys["encryption"].alg, "A256CBC-HS512", "A256GCM"]
    inner = jwe.decrypt_compact(tokens["id_token"], keys["encryption"], algorithms=allowed).plaintext
    at_hash = base64url(tokens["access_token"].encode(), 16)
    claims = verified(inner.decode(), nonce=attempt["nonce"], at_hash=at_hash)
    resource = ask("GET", metadata()[RESOURCE], attempt["key"], token=tokens["access_token"])
    return claims, verified(resource.text, sub=claims["sub"])


def rows(userinfo: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The services of a block, by its name in either generation."""
    return next((userinfo[name]["Result_Set"]["ESrvc_Result"] for name in names if userinfo.get(name)), [])


def summary(claims: dict[str, Any], userinfo: dict[str, Any]) -> list[str]:
    """`sub` names the person, and `entity` whom they act for; with `subject: entity` they are in `act` and `sub`."""
    person, entity = claims.get("act", claims), claims.get("entity", claims)
    if "userInfo" in claims:  # legacy
        person, entity = {"sub": claims["userInfo"]["CPUID_FullName"]}, {"sub": claims["entityInfo"]["CPEntID"]}
    told = [(each, "", each) for each in rows(userinfo, "auth_info", "AuthInfo")]
    for each in rows(userinfo, "tp_auth_info", "TPAuthInfo"):
        told += [(each, f" for {client['CP_Clnt_ID']}", client) for client in each["Auth_Set"]["TP_Auth"]]
    return [
        f"{person.get('sub_attributes', {}).get('name', person['sub'])} signed in",
        f"for {entity.get('sub_attributes', {}).get('entity_name', entity['sub'])} ({entity['sub']})",
        *(
            f"may act as {row['CPRole']} at {each['CPESrvcID']}{whom} until {row['EndDate']}"
            for each, whom, result in told
            for row in result["Auth_Result_Set"]["Row"]
        ),
    ]


# --- A web page to try it with ------------------------------------------------------------------------------

attempts: dict[str, dict[str, Any]] = {}  # cookie → attempt; with several servers, where all can see; drop old ones


class Website(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        place, lines, status, headers = urlsplit(self.path), ["Nobody is signed in"], 200, {}
        try:
            if place.path == "/login":
                attempt, headers["Location"] = begin()
                status, cookie = 303, secrets.token_urlsafe(32)
                attempts[cookie] = attempt
                headers["Set-Cookie"] = f"joserfc_rp={cookie}; HttpOnly; SameSite=Lax; Path=/"  # on https: Secure
            elif place.path == "/callback":
                found = SimpleCookie(self.headers.get("Cookie", "")).get("joserfc_rp")
                attempt = attempts.pop(found.value if found else "", None)  # once
                if attempt is None:
                    raise Refused("no_sign_in", "This browser started none, or finished it already")
                lines = summary(*finish(attempt, dict(parse_qsl(place.query))))
                print("\n  ".join(lines), flush=True)  # here your own session for this person begins
        except Exception as error:  # noqa: BLE001 - shown to the developer
            reason = getattr(error, "error", type(error).__name__)
            print(f"{reason}: {error}", flush=True)
            status = 403 if reason == "access_denied" else 502
            lines = [f"Not signed in ({reason})", getattr(error, "description", "")]
        items = "".join(f"<li>{escape(line)}" for line in lines)
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(f'<!doctype html><title>joserfc</title><ul>{items}</ul><a href="/login">Sign in</a>'.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing: callback addresses contain codes."""


more = " \\\n    --generation current --generation legacy --legacy-until 2099-12-31" if LEGACY else ""
print(f"""Register this relying party once:

  corpid client add {CLIENT_ID} --name "joserfc example" --service HARBOUR-PERMIT \\
    --redirect-uri {CALLBACK} --jwks {KEYS}.public{more}

{jwks}

Then open {HOME}""", flush=True)  # fmt: skip
ThreadingHTTPServer(("127.0.0.1", PORT), Website).serve_forever()
