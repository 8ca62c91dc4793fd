"""A client of CorpID's admin API in one file, on the stock library requests-oauth2client.

    pip install requests-oauth2client
    python administer.py entities/209900042K
    python administer.py give rina 209900042K CUSTOMS-DECLARE Submitter 2027-12-31

Its first run makes a key pair and prints the command that registers it; docs/api.md tells the whole way.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import requests
from jwskate import Jwk
from requests_oauth2client import BearerToken, OAuth2Client, PrivateKeyJwt

ISSUER = os.environ.get("ISSUER", "http://localhost:8400")  # CorpID's base_url
CLIENT_ID = os.environ.get("CLIENT_ID", "python-administrator")
SCOPE = os.environ.get("SCOPE", "directory.read directory.write")
ROLES = f"{ISSUER}/api/v1/assignments"
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
    scopes = " ".join(f"--scope {scope}" for scope in SCOPE.split())
    sys.exit(f"""Register this client once, then run it again:

  corpid client add {CLIENT_ID} --api --name "Python administrator" {scopes} --jwks {public}""")


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


# --- What it is for -----------------------------------------------------------------------------------------


def give(token: BearerToken, user: str, entity: str, service: str, role: str, last_day: str = "9999-12-31") -> None:
    """Give a colleague a role, or move the last day of one that they have."""
    wanted = {"user": user, "entity": entity, "service": service, "role": role}
    new = {**wanted, "end_date": last_day}
    # With the same key the request can be sent again, whatever became of the connection.
    why = {"Change-Reason": "A role for a colleague"}
    key = {"Idempotency-Key": str(uuid4()), **why}
    try:
        answer = requests.post(ROLES, json=new, headers=key, auth=token, timeout=10)
    except requests.ConnectionError:
        answer = requests.post(ROLES, json=new, headers=key, auth=token, timeout=10)
    if answer.status_code == 409:  # they have it
        answer = requests.get(
            ROLES, params={"user": user, "entity": entity, "service": service}, auth=token, timeout=10
        )
        held = next(each for each in answer.json()["items"] if each["role"] == role)
        change, tag = {"end_date": last_day}, {"If-Match": held["etag"], **why}  # 412 if somebody was quicker
        answer = requests.patch(f"{ROLES}/{held['id']}", json=change, headers=tag, auth=token, timeout=10)
    if not answer.ok:
        problem = answer.json()
        sys.exit(
            "\n".join(
                [problem["detail"], *(f"{each['pointer']}: {each['detail']}" for each in problem.get("errors", []))]
            )
        )
    if answer.status_code == 202:
        print(f"This waits for approval: {answer.headers['Location']}")
        return
    print(f"{user} is {role} at {service} for {entity}, until {answer.json()['end_date']}")


if __name__ == "__main__":
    token = fetch_token(signing_key())
    print(f"{token.token_type} token for {token.scope}, until {token.expires_at:%H:%M} UTC", file=sys.stderr)
    if sys.argv[1:2] == ["give"]:
        give(token, *sys.argv[2:])
    else:
        answer = read(sys.argv[1] if len(sys.argv) > 1 else "entities", token)
        print(answer.text)
        sys.exit(not answer.ok)
