"""A relying party on Authlib. The argument is its registration (docs/libraries.md).

It prints the address for the browser, reads the callback, and prints what it learned.
"""

import json
import sys
import time
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlsplit

from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2 import ClientAuth
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign
from authlib.oidc.core import CodeIDToken
from joserfc import jwe, jwt
from joserfc.jwk import ECKey, KeySet
from joserfc.util import urlsafe_b64encode
from requests import PreparedRequest, Response

rp = json.loads(Path(sys.argv[1]).read_text())

# piece
SIGNING, ENCRYPTION = ECKey.import_key(rp["signing"]), ECKey.import_key(rp["encryption"])
LENIENT = jwe.JWERegistry(algorithms=[ENCRYPTION.alg, "A256CBC-HS512", "A256GCM"], strict_check_header=False)


class Assertion(PrivateKeyJWT):
    """Authlib's own lives an hour, which is too long, and names the endpoint as `aud`."""

    def sign(self, auth: ClientAuth, _: str) -> str:
        header = {"kid": SIGNING.kid}
        return private_key_jwt_sign(SIGNING, auth.client_id, rp["issuer"], SIGNING.alg, header=header, expires_in=60)


class Session(OAuth2Session):
    """Authlib's session with DPoP: one key for each sign-in, a proof for each request."""

    dpop: ECKey | None = None

    def send(self, request: PreparedRequest, **kwargs: object) -> Response:
        if self.dpop:
            claims = {"jti": token_urlsafe(), "iat": int(time.time()), "htm": request.method, "htu": request.url}
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme == "DPoP":
                claims["ath"] = urlsafe_b64encode(sha256(token.encode()).digest()).decode()
            header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": self.dpop.as_dict(private=False)}
            request.headers["DPoP"] = jwt.encode(header, claims, self.dpop)
        return super().send(request, **kwargs)


def connect() -> Session:
    session = Session(
        rp["client_id"],
        SIGNING,
        token_endpoint_auth_method="private_key_jwt",
        redirect_uri=rp["redirect_uri"],
        code_challenge_method="S256",
        default_timeout=10,
    )
    session.register_client_auth_method(Assertion())
    found = session.get(f"{rp['issuer']}/.well-known/openid-configuration", withhold_token=True).json()
    if found["issuer"] != rp["issuer"]:
        raise ValueError("the metadata is of another provider")
    session.metadata.update(found)
    return session


def begin(session: Session) -> tuple[dict[str, str], str]:
    attempt = {"nonce": token_urlsafe(), "verifier": token_urlsafe(48)}
    session.dpop = ECKey.generate_key("P-256") if rp["bound"] else None  # one for this sign-in
    address, attempt["state"] = session.create_authorization_url(
        session.metadata["authorization_endpoint"],
        code_verifier=attempt["verifier"],
        nonce=attempt["nonce"],
        **rp["parameters"],
    )
    if rp["pushed"]:
        answer = session.post(
            session.metadata["pushed_authorization_request_endpoint"],
            data=parse_qs(urlsplit(address).query),
            withhold_token=True,
            auth=session.client_auth("private_key_jwt"),
        )
        answer.raise_for_status()
        address = session.metadata["authorization_endpoint"]
        address += f"?client_id={rp['client_id']}&request_uri={answer.json()['request_uri']}"
    return attempt, address


def finish(session: Session, callback: str, attempt: dict[str, str]) -> dict[str, Any]:
    given = {name: value for name, [value] in parse_qs(urlsplit(callback).query).items()}
    if session.metadata.get("authorization_response_iss_parameter_supported") and given.get("iss") != rp["issuer"]:
        raise ValueError("the callback is of another provider")
    tokens = session.fetch_token(
        session.metadata["token_endpoint"],
        authorization_response=callback,  # refused if its state is another
        state=attempt["state"],
        code_verifier=attempt["verifier"],
    )
    access_token, id_token = tokens["access_token"], tokens["id_token"]
    claims = verified(
        session,
        decrypted(id_token) if rp["id_token_encrypted"] else id_token,
        nonce=attempt["nonce"],
        access_token=access_token,
    )
    scheme = "DPoP" if rp["bound"] else "Bearer"
    answer = session.get(
        session.metadata[rp["resource"]], withhold_token=True, headers={"Authorization": f"{scheme} {access_token}"}
    )
    answer.raise_for_status()
    if rp["userinfo_signed"]:
        nested = answer.text.count(".") == 4  # if the client is registered for encrypted userinfo
        userinfo = verified(session, decrypted(answer.text) if nested else answer.text)
    else:
        userinfo = answer.json()
    if userinfo["sub"] != claims["sub"]:
        raise ValueError("userinfo is about somebody else")
    return {"claims": claims, "userinfo": userinfo}


def decrypted(token: str) -> str:
    return jwe.decrypt_compact(token, ENCRYPTION, registry=LENIENT).plaintext.decode()


def verified(session: Session, token: str, **expected: str) -> dict[str, Any]:
    """The claims of a token for us alone. Cache the keys for an hour, and fetch them again for an unknown `kid`."""
    published = KeySet.import_key_set(session.get(session.metadata["jwks_uri"], withhold_token=True).json())
    decoded = jwt.decode(token, published, algorithms=["ES256"])
    ours = {"iss": {"value": rp["issuer"]}, "aud": {"value": rp["client_id"]}}
    CodeIDToken(decoded.claims, decoded.header, ours, {"client_id": rp["client_id"], **expected}).validate(leeway=30)
    return decoded.claims


# end

session = connect()
attempt, address = begin(session)
print(address, flush=True)
print(json.dumps(finish(session, sys.stdin.readline().strip(), attempt)))
