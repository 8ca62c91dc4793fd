"""A relying party on requests-oauth2client. The argument is its registration (docs/libraries.md).

It prints the address for the browser, reads the callback, and prints what it learned.
"""

import json
import sys
from pathlib import Path
from typing import Any

import requests
from jwskate import JweCompact, Jwk, SignedJwt
from requests_oauth2client import AuthorizationRequest, BearerToken, OAuth2Client, PrivateKeyJwt

rp = json.loads(Path(sys.argv[1]).read_text())


# piece
class Client(OAuth2Client):
    """The library expects JSON at userinfo; this provider's is a signed JWT."""

    def parse_userinfo_response(self, resp: requests.Response, **_: object) -> requests.Response:
        return resp


def connect() -> Client:
    metadata = requests.get(f"{rp['issuer']}/.well-known/openid-configuration", timeout=10).json()
    return Client.from_discovery_document(
        {**metadata, "userinfo_endpoint": metadata[rp["resource"]]},  # legacy: its resource instead of userinfo
        issuer=rp["issuer"],
        authorization_server_jwks=requests.get(metadata["jwks_uri"], timeout=10).json(),
        auth=PrivateKeyJwt(rp["client_id"], Jwk(rp["signing"]), aud=rp["issuer"]),  # otherwise the endpoint
        redirect_uri=rp["redirect_uri"],
        id_token_signed_response_alg="ES256",
        id_token_decryption_key=Jwk(rp["encryption"]) if rp["id_token_encrypted"] else None,
        dpop_bound_access_tokens=rp["bound"],
        testing=rp["issuer"].startswith("http://localhost:"),
    )


def begin(client: Client) -> tuple[AuthorizationRequest, str]:
    promised = client.authorization_response_iss_parameter_supported  # known, but not passed on
    request = client.authorization_request(**rp["parameters"], authorization_response_iss_parameter_supported=promised)
    return request, client.pushed_authorization_request(request).uri if rp["pushed"] else request.uri


def finish(client: Client, callback: str, attempt: AuthorizationRequest) -> dict[str, Any]:
    answer = attempt.validate_callback(callback)  # state and iss
    tokens = client.authorization_code(answer, validate=False)
    # Its check of the ID token cannot make a new DPoP token, so a plain one carries it.
    unchecked = BearerToken(tokens.access_token, id_token=tokens.id_token)
    id_token = unchecked.validate_id_token(client, answer).id_token
    expected = {"alg": "ES256", "iss": rp["issuer"], "aud": rp["client_id"], "sub": id_token.sub}
    id_token.validate(client.authorization_server_jwks, **expected)  # iss and aud, which it did not compare
    response = client.userinfo(tokens)
    if not rp["userinfo_signed"]:
        if response.json()["sub"] != id_token.sub:
            raise ValueError("userinfo is about somebody else")
        return {"claims": id_token.claims, "userinfo": response.json()}
    token = response.text
    if token.count(".") == 4:  # if the client is registered for encrypted userinfo
        token = JweCompact(token, max_size=4_000_000).decrypt(Jwk(rp["encryption"]))
    userinfo = SignedJwt(token, max_size=4_000_000)  # of a person with thousands of roles
    userinfo.validate(client.authorization_server_jwks, **expected)
    return {"claims": id_token.claims, "userinfo": userinfo.claims}


# end

client = connect()
attempt, address = begin(client)
print(address, flush=True)
print(json.dumps(finish(client, sys.stdin.readline().strip(), attempt)))
