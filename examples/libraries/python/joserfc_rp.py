"""A relying party on joserfc and httpx, without an OAuth library. The argument is its registration (docs/libraries.md).

It prints the address for the browser, reads the callback, and prints what it learned.
"""

import json
import sys
import time
from hashlib import sha256
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from joserfc import jwe, jwt
from joserfc.jwk import ECKey, KeySet
from joserfc.util import urlsafe_b64encode

rp = json.loads(Path(sys.argv[1]).read_text())

# piece
SIGNING, ENCRYPTION = ECKey.import_key(rp["signing"]), ECKey.import_key(rp["encryption"])
LENIENT = jwe.JWERegistry(algorithms=[ENCRYPTION.alg, "A256CBC-HS512", "A256GCM"], strict_check_header=False)


def base64url(hashed: str, size: int = 32) -> str:
    return urlsafe_b64encode(sha256(hashed.encode()).digest()[:size]).decode()


def connect() -> dict[str, Any]:
    found = httpx.get(f"{rp['issuer']}/.well-known/openid-configuration").raise_for_status().json()
    if found["issuer"] != rp["issuer"]:
        raise ValueError("the metadata is of another provider")
    return found


def ask(method: str, url: str, key: ECKey | None, form: dict | None = None, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"{'DPoP' if key else 'Bearer'} {token}"} if token else {}
    once = {"jti": token_urlsafe(), "iat": int(time.time())}
    if form:  # who we are: private_key_jwt
        client = rp["client_id"]
        claims = {"iss": client, "sub": client, "aud": rp["issuer"], "exp": once["iat"] + 60, **once}
        form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        header = {"alg": SIGNING.alg, "kid": SIGNING.kid}
        form["client_assertion"] = jwt.encode(header, claims, SIGNING, algorithms=[SIGNING.alg])
    if key:  # DPoP: one key for each sign-in, a proof for each request
        header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": key.as_dict(private=False)}
        proof = {"htm": method, "htu": url, **once, **({"ath": base64url(token)} if token else {})}
        headers["DPoP"] = jwt.encode(header, proof, key)
    return httpx.request(method, url, headers=headers, data=form).raise_for_status()


def begin(metadata: dict[str, Any]) -> tuple[dict[str, Any], str]:
    key = ECKey.generate_key("P-256") if rp["bound"] else None
    attempt = {"state": token_urlsafe(), "nonce": token_urlsafe(), "verifier": token_urlsafe(48), "key": key}
    form = {
        **rp["parameters"],
        "response_type": "code",
        "client_id": rp["client_id"],
        "redirect_uri": rp["redirect_uri"],
        "state": attempt["state"],
        "nonce": attempt["nonce"],
        "code_challenge": base64url(attempt["verifier"]),
        "code_challenge_method": "S256",
    }
    if rp["pushed"]:
        pushed = ask("POST", metadata["pushed_authorization_request_endpoint"], key, form).json()
        form = {"client_id": rp["client_id"], "request_uri": pushed["request_uri"]}
    return attempt, f"{metadata['authorization_endpoint']}?{urlencode(form)}"


def finish(metadata: dict[str, Any], callback: str, attempt: dict[str, Any]) -> dict[str, Any]:
    given = dict(parse_qsl(urlsplit(callback).query))
    if not compare_digest(given.get("state", ""), attempt["state"]):
        raise ValueError("the callback is of another sign-in")
    if metadata.get("authorization_response_iss_parameter_supported") and given.get("iss") != rp["issuer"]:
        raise ValueError("the callback is of another provider")
    form = {"grant_type": "authorization_code", "client_id": rp["client_id"], "redirect_uri": rp["redirect_uri"]}
    form |= {"code": given["code"], "code_verifier": attempt["verifier"]}
    tokens = ask("POST", metadata["token_endpoint"], attempt["key"], form).json()
    access_token, id_token = tokens["access_token"], tokens["id_token"]
    claims = verified(
        metadata,
        decrypted(id_token) if rp["id_token_encrypted"] else id_token,
        nonce=attempt["nonce"],
        at_hash=base64url(access_token, 16),
    )
    answer = ask("GET", metadata[rp["resource"]], attempt["key"], token=access_token)
    if rp["userinfo_signed"]:
        nested = answer.text.count(".") == 4  # if the client is registered for encrypted userinfo
        userinfo = verified(metadata, decrypted(answer.text) if nested else answer.text)
    else:
        userinfo = answer.json()
    if userinfo["sub"] != claims["sub"]:
        raise ValueError("userinfo is about somebody else")
    return {"claims": claims, "userinfo": userinfo}


def decrypted(token: str) -> str:
    return jwe.decrypt_compact(token, ENCRYPTION, registry=LENIENT).plaintext.decode()


def verified(metadata: dict[str, Any], token: str, **expected: str) -> dict[str, Any]:
    """The claims of a token for us alone. Cache the keys for an hour, and fetch them again for an unknown `kid`."""
    published = KeySet.import_key_set(httpx.get(metadata["jwks_uri"]).raise_for_status().json())
    claims = jwt.decode(token, published, algorithms=["ES256"]).claims
    jwt.JWTClaimsRegistry(leeway=30, exp={"essential": True}, iat={"essential": True}).validate(claims)
    for name, value in {"iss": rp["issuer"], "aud": rp["client_id"], **expected}.items():
        if claims.get(name) != value:
            raise ValueError(f"{name} of the token is not {value}")
    return claims


# end

metadata = connect()
attempt, address = begin(metadata)
print(address, flush=True)
print(json.dumps(finish(metadata, sys.stdin.readline().strip(), attempt)))
