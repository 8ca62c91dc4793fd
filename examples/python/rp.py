"""A relying party of CorpID in one file, on the stock library requests-oauth2client.

pip install requests-oauth2client starlette uvicorn && python rp.py      (docs/relying-parties.md is the guide)
"""

import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import requests
import uvicorn
from jwskate import Jwk, SignedJwt
from requests_oauth2client import (
    AuthorizationRequest,
    BearerToken,
    DPoPKey,
    InvalidIdToken,
    OAuth2Client,
    PrivateKeyJwt,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # where `corpid demo` is
CLIENT_ID = os.environ.get("CLIENT_ID", "python-rp")
PORT = int(os.environ.get("PORT", "8411"))
CALLBACK = f"http://127.0.0.1:{PORT}/callback"  # registered, and compared character by character
LEGACY = os.environ.get("GENERATION", "current") == "legacy"  # until the client's last day
# All that changes between the two. `current` also pushes the request, and binds tokens to a DPoP key.
RESOURCE = "authorization-info_endpoint" if LEGACY else "userinfo_endpoint"
SCOPE = "openid authinfo tpauthinfo" if LEGACY else "openid authinfo tpauthinfo user.name"
CONTEXT = {} if LEGACY else {"authentication_context_type": "APP_AUTHENTICATION_DEFAULT"}

# One key says who we are, one decrypts ID tokens. Keep the file as you keep a password.
KEYS = {name: Jwk(key) for name, key in json.loads(Path(os.environ.get("KEYS", "keys.json")).read_text()).items()}
# cookie → request; drop old ones, and keep them where all your servers can see them
attempts: dict[str, AuthorizationRequest] = {}


class CorpID(OAuth2Client):
    """The stock client, which takes any type of token, and expects JSON at userinfo: CorpID's is a signed JWT."""

    def parse_token_response(self, response: requests.Response, *, dpop_key: DPoPKey | None = None) -> BearerToken:
        if response.json()["token_type"] != ("Bearer" if LEGACY else "DPoP"):
            raise ValueError("the access token is of another type")
        return super().parse_token_response(response, dpop_key=dpop_key)

    def parse_userinfo_response(self, resp: requests.Response, **_: object) -> SignedJwt:
        return SignedJwt(resp.text, max_size=4_000_000)  # of a person with thousands of roles


@cache  # made once: it holds CorpID's metadata and keys
def connection() -> CorpID:
    metadata = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
    return CorpID.from_discovery_document(
        {**metadata, "userinfo_endpoint": metadata[RESOURCE]},
        issuer=ISSUER,
        authorization_server_jwks=requests.get(metadata["jwks_uri"], timeout=10).json(),
        # CorpID wants its issuer as the audience; the library's default is the address of each endpoint.
        auth=PrivateKeyJwt(CLIENT_ID, KEYS["signing"], aud=ISSUER),
        redirect_uri=CALLBACK,
        id_token_signed_response_alg="ES256",  # and nothing else
        id_token_decryption_key=KEYS["encryption"],
        dpop_bound_access_tokens=not LEGACY,
        testing=ISSUER.startswith("http://localhost:"),  # plain http is for a CorpID on your own machine
    )


def login(_: Request) -> Response:
    """Make the request, keep what the callback needs, and send the browser to CorpID."""
    client = connection()
    request = client.authorization_request(  # with a state, a nonce, a verifier and, if tokens are bound, a DPoP key
        scope=SCOPE,
        **CONTEXT,
        # Known from the metadata, but not passed on by the library: whether callbacks must carry `iss`.
        authorization_response_iss_parameter_supported=client.authorization_response_iss_parameter_supported,
    )
    address = request.uri if LEGACY else client.pushed_authorization_request(request, {"timeout": 10}).uri
    response, cookie = RedirectResponse(address, 303), token_urlsafe()
    attempts[cookie] = request
    response.set_cookie("python_rp", cookie, httponly=True, samesite="lax")  # on https: secure=True
    return response


def callback(request: Request) -> Response:
    """Redeem the code and ask what the person may do. All checks are in here; a failed one raises."""
    attempt = attempts.pop(request.cookies.get("python_rp", ""), None)  # once
    if attempt is None:
        raise ValueError("this browser started no sign-in, or finished it already")
    client = connection()
    answer = attempt.validate_callback(str(request.url))  # state, iss, and no error
    tokens = client.authorization_code(answer, validate=False, requests_kwargs={"timeout": 10})
    # The library's check of the ID token cannot make a new DPoP token, so a plain one carries it.
    unchecked = BearerToken(tokens.access_token, id_token=tokens.id_token)
    try:
        id_token = unchecked.validate_id_token(client, answer).id_token
    except InvalidIdToken:  # CorpID may have a new signing key: fetch its keys, and try again
        connection.cache_clear()  # the library's own update would go on to trust keys that are gone
        client = connection()
        id_token = unchecked.validate_id_token(client, answer).id_token
    userinfo, published = client.userinfo(tokens), client.authorization_server_jwks
    for token in (id_token, userinfo):  # for us alone, and made just now
        token.validate(published, alg="ES256", iss=ISSUER, aud=CLIENT_ID, sub=id_token.sub, iat=is_past)
    return page(id_token.claims, userinfo.claims)  # here your own session for this person begins


def is_past(moment: object) -> bool:
    return isinstance(moment, int) and moment <= time.time() + 30


def page(claims: dict[str, Any], userinfo: dict[str, Any]) -> Response:
    """Who signed in, and what they may do for the entity that they act for."""
    services = (userinfo.get("auth_info") or userinfo.get("AuthInfo") or {}).get("Result_Set", {})
    lines = ["Signed in", json.dumps(claims, indent=2), json.dumps(userinfo, indent=2)]
    for service in services.get("ESrvc_Result", []):
        for row in service["Auth_Result_Set"]["Row"]:
            lines.insert(1, f"may act as {row['CPRole']} at {service['CPESrvcID']}")
    return PlainTextResponse("\n".join(lines))


def answered(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The endpoint, or a page that says why not; Starlette's own handler would also log a traceback."""

    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except Exception as error:  # CorpID's words, or what the library found
            told = [getattr(error, name, None) for name in ("error", "description")]
            text = f"Refused: {type(error).__name__}: {' '.join(filter(None, told)) or error}"
            print(text, flush=True)
            return PlainTextResponse(text, 403)

    return answer


app = Starlette(routes=[Route("/login", answered(login)), Route("/callback", answered(callback))])
print(f"Open http://127.0.0.1:{PORT}/login", flush=True)
uvicorn.run(app, host="127.0.0.1", port=PORT, access_log=False, log_level="error")  # addresses contain codes
