"""A client of CorpID's admin API in one file, on the stock library requests-oauth2client.

    pip install requests-oauth2client && python administer.py entities/209900042K

Its first run makes a key pair and prints the command that registers it; docs/api.md tells the whole way.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import requests
from jwskate import Jwk
from requests_oauth2client import BearerToken, OAuth2Client, PrivateKeyJwt

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # CorpID's base_url
CLIENT_ID = os.environ.get("CLIENT_ID", "python-administrator")
SCOPE = os.environ.get("SCOPE", "directory.read")
KEYS = Path(os.environ.get("KEYS", "administrator.json"))  # private: keep it as you keep a password

# --- A key pair: it signs who we are. CorpID gets the public half. ------------------------------------------


def signing_key() -> Jwk:
    if KEYS.exists():
        return Jwk(json.loads(KEYS.read_text()))
    key = Jwk.generate(alg="ES256", crv="P-256").with_kid_thumbprint()
    KEYS.touch(mode=0o600)
    KEYS.write_text(json.dumps({**key, "use": "sig"}))
    public = Path(f"{KEYS}.public")
    public.write_text(json.dumps({"keys": [{**key.public_jwk(), "use": "sig"}]}))
    sys.exit(f"""Register this client once, then run it again:

  corpid client add {CLIENT_ID} --api --name "Python administrator" --scope {SCOPE} --jwks {public}""")


# --- The protocol -------------------------------------------------------------------------------------------


def metadata() -> dict:
    """The API's authorization server has its own issuer; its metadata lies between the host and the path."""
    at = urlsplit(f"{ISSUER}/api")
    url = f"{at.scheme}://{at.netloc}/.well-known/oauth-authorization-server{at.path}"
    return requests.get(url, timeout=10).json()


def fetch_token(key: Jwk) -> BearerToken:
    """Bound to a key that the library makes for it; ten minutes, and then another one."""
    server = metadata()
    client = OAuth2Client(
        server["token_endpoint"],
        auth=PrivateKeyJwt(CLIENT_ID, key, aud=server["issuer"]),
        dpop_bound_access_tokens=True,
        testing=ISSUER.startswith("http://localhost:"),  # plain http is for a CorpID on your own machine
    )
    return client.client_credentials(scope=SCOPE)


def read(path: str, token: BearerToken) -> requests.Response:
    """The library makes a proof for each request."""
    return requests.get(f"{ISSUER}/api/v1/{path}", auth=token, timeout=10)


if __name__ == "__main__":
    token = fetch_token(signing_key())
    print(f"{token.token_type} token for {token.scope}, until {token.expires_at:%H:%M} UTC", file=sys.stderr)
    answer = read(sys.argv[1] if len(sys.argv) > 1 else "entities", token)
    print(answer.text)
    sys.exit(not answer.ok)
