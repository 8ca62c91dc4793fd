"""A relying party of CorpID in one file, on the stock library requests-oauth2client.

    pip install requests-oauth2client && python rp.py

Its first run makes two key pairs and prints the command that registers it. docs/relying-parties.md is the
guide. Copy everything under "The protocol". The rest is a web page to try it with.
"""

from __future__ import annotations

import json
import os
import secrets
from functools import cache
from html import escape
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Timer

import requests
from jwskate import Jwk, SignedJwt
from requests_oauth2client import AuthorizationRequest, BearerToken, InvalidIdToken, OAuth2Client, PrivateKeyJwt

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # where `corpid demo` is
CLIENT_ID = os.environ.get("CLIENT_ID", "python-rp")
PORT = int(os.environ.get("PORT", "8411"))
KEYS = Path(os.environ.get("KEYS", "keys.json"))  # private: keep it as you keep a password
GENERATION = os.environ.get("GENERATION", "current")  # or legacy, until the client's last day
HOME = f"http://127.0.0.1:{PORT}"
CALLBACK = f"{HOME}/callback"  # registered, and compared character by character
ATTEMPT_SECONDS = 15 * 60
NOTHING = {"Result_Set": {"ESrvc_Result": []}}

# --- Keys: one signs (who we are), one decrypts (ID tokens). CorpID gets the public halves. ------------------

if not KEYS.exists():
    made = {"signing": "ES256", "encryption": "ECDH-ES+A256KW"}
    fresh = {name: Jwk.generate(alg=alg, crv="P-256").with_kid_thumbprint() for name, alg in made.items()}
    KEYS.touch(mode=0o600)
    KEYS.write_text(json.dumps({name: {**key, "use": key.use} for name, key in fresh.items()}, indent=2))
keys = {name: Jwk(members) for name, members in json.loads(KEYS.read_text()).items()}
jwks = json.dumps({"keys": [dict(key.public_jwk()) for key in keys.values()]})
Path(f"{KEYS}.public").write_text(jwks)

# --- The protocol -------------------------------------------------------------------------------------------


# All that changes between legacy and current. A client that never used legacy needs only the first row.
PUSHED, RESOURCE, PARAMETERS = {
    "current": (
        True,  # and tokens are bound to a DPoP key
        "userinfo_endpoint",
        {
            "scope": "openid authinfo tpauthinfo user.name entity.basic_profile.name",
            "authentication_context_type": "APP_AUTHENTICATION_DEFAULT",
            "authentication_context_message": "Sign in to the Python example",  # the person sees it on every page
        },
    ),
    "legacy": (
        False,  # the request is the query of the address, and tokens are bearer tokens
        "authorization-info_endpoint",
        {"scope": "openid authinfo tpauthinfo"},
    ),
}[GENERATION]


class CorpID(OAuth2Client):
    """The stock client, which expects JSON at userinfo; CorpID answers with a signed JWT."""

    def parse_userinfo_response(self, resp: requests.Response, **_: object) -> SignedJwt:
        return SignedJwt(resp.text)


@cache  # made once: it holds CorpID's metadata and keys
def connection() -> CorpID:
    metadata = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=10).json()
    return CorpID.from_discovery_document(
        {**metadata, "userinfo_endpoint": metadata[RESOURCE]},
        issuer=ISSUER,
        authorization_server_jwks=requests.get(metadata["jwks_uri"], timeout=10).json(),
        # CorpID wants its issuer as the audience; the library's default is the address of each endpoint.
        auth=PrivateKeyJwt(CLIENT_ID, keys["signing"], aud=ISSUER),
        redirect_uri=CALLBACK,
        id_token_signed_response_alg="ES256",  # and nothing else
        id_token_decryption_key=keys["encryption"],
        dpop_bound_access_tokens=PUSHED,
        testing=ISSUER.startswith("http://localhost:"),  # plain http is for a CorpID on your own machine
    )


def begin() -> tuple[AuthorizationRequest, str]:
    """Make the request. Returns what the callback needs, and the address to send the browser to."""
    client = connection()
    request = client.authorization_request(  # with a state, a nonce, a verifier and, if tokens are bound, a DPoP key
        **PARAMETERS,
        # Known from the metadata, but not passed on by the library: whether callbacks must carry `iss`.
        authorization_response_iss_parameter_supported=client.authorization_response_iss_parameter_supported,
    )
    return request, (client.pushed_authorization_request(request, {"timeout": 10}) if PUSHED else request).uri


def finish(request: AuthorizationRequest, callback: str) -> tuple[dict, dict]:
    """Redeem the code and ask what the person may do. All checks are in here; a failed one raises."""
    client = connection()
    response = request.validate_callback(callback)  # state, and no error
    tokens = client.authorization_code(response, validate=False)
    # The library's check of the ID token cannot make a new DPoP token, so a plain one carries it.
    unchecked = BearerToken(tokens.access_token, id_token=tokens.id_token)
    try:
        checked = unchecked.validate_id_token(client, response)
    except InvalidIdToken:  # CorpID may have a new signing key: fetch its keys, and try again
        client.update_authorization_server_public_keys({"timeout": 10})
        checked = unchecked.validate_id_token(client, response)
    claims = checked.id_token.claims
    if claims.get("iss") != ISSUER or claims.get("aud") != CLIENT_ID:
        raise InvalidIdToken("it comes from another provider, or is for another client", checked.id_token)
    userinfo = client.userinfo(tokens)
    its_keys = client.authorization_server_jwks
    userinfo.validate(its_keys, alg="ES256", issuer=ISSUER, audience=CLIENT_ID, sub=claims["sub"])
    return claims, userinfo.claims


def summary(claims: dict, userinfo: dict) -> list[str]:
    """`sub` names the person, and `entity` whom they act for; a client with `subject: entity` gets `sub` and `act`.

    Legacy packs the person into `sub`, and describes both in userInfo and entityInfo; the blocks are the same.
    """
    person, entity = claims.get("act", claims), claims.get("entity", claims)
    if "userInfo" in claims:
        person, entity = {"sub": claims["userInfo"]["CPUID_FullName"]}, {"sub": claims["entityInfo"]["CPEntID"]}
    own = userinfo.get("auth_info") or userinfo.get("AuthInfo", NOTHING)
    for_others = userinfo.get("tp_auth_info") or userinfo.get("TPAuthInfo", NOTHING)
    return [
        f"{person.get('sub_attributes', {}).get('name', person['sub'])} signed in",
        f"for {entity.get('sub_attributes', {}).get('entity_name', entity['sub'])} ({entity['sub']})",
        *(
            f"may act as {row['CPRole']} at {service['CPESrvcID']} until {row['EndDate']}"
            for service in own["Result_Set"]["ESrvc_Result"]
            for row in service["Auth_Result_Set"]["Row"]
        ),
        *(
            f"may act as {row['CPRole']} at {service['CPESrvcID']} for {client['CP_Clnt_ID']} until {row['EndDate']}"
            for service in for_others["Result_Set"]["ESrvc_Result"]
            for client in service["Auth_Set"]["TP_Auth"]
            for row in client["Auth_Result_Set"]["Row"]
        ),
    ]


# --- A web page to try it with ------------------------------------------------------------------------------

attempts: dict[
    str, AuthorizationRequest
] = {}  # cookie → request; with several servers, keep them where all of them can see


class Website(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        try:
            {"/login": self.login, "/callback": self.callback}.get(self.path.partition("?")[0], self.start)()
        except Exception as error:  # noqa: BLE001 - shown to the developer
            # `error` and `description` come from CorpID; what the library found is in the class.
            reason, told = getattr(error, "error", type(error).__name__), getattr(error, "description", None)
            print(f"{reason}: {told or error}", flush=True)
            self.page(403 if reason == "access_denied" else 502, [f"Not signed in ({reason})", told or ""])

    def start(self) -> None:
        self.page(200, ["Nobody is signed in"])

    def login(self) -> None:
        request, address = begin()
        cookie = secrets.token_urlsafe(32)
        attempts[cookie] = request
        forget = Timer(ATTEMPT_SECONDS, attempts.pop, (cookie, None))
        forget.daemon = True
        forget.start()
        # on https: Secure, and a name that begins with __Host-
        self.answer(303, {"Location": address, "Set-Cookie": f"python_rp={cookie}; HttpOnly; SameSite=Lax; Path=/"})

    def callback(self) -> None:
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("python_rp")
        request = attempts.pop(cookie.value, None) if cookie else None  # once
        if request is None:
            return self.page(400, ["This browser started no sign-in, or started it too long ago"])
        lines = summary(*finish(request, f"{HOME}{self.path}"))
        print("\n  ".join(lines), flush=True)  # here your own session for this person begins
        return self.page(200, lines)

    def page(self, status: int, lines: list[str]) -> None:
        items = "".join(f"<li>{escape(line)}" for line in lines)
        text = f'<!doctype html><title>Python example</title><ul>{items}</ul><p><a href="/login">Sign in</a>'
        self.answer(status, {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}, text)

    def answer(self, status: int, headers: dict[str, str], text: str = "") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing: callback addresses contain codes."""


# The same client may use both; legacy has a last day.
MARKED = " \\\n    --generation current --generation legacy --legacy-until 2099-12-31" if GENERATION == "legacy" else ""
print(f"""Register this relying party once:

  corpid client add {CLIENT_ID} --name "Python example" --service HARBOUR-PERMIT \\
    --redirect-uri {CALLBACK} --jwks {KEYS}.public{MARKED}

{jwks}

Then open {HOME}""", flush=True)  # fmt: skip
ThreadingHTTPServer(("127.0.0.1", PORT), Website).serve_forever()
