"""A relying party on PyPI's requests-oauth2client, in this process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jwskate import JweCompact, Jwk, SignedJwt
from requests_oauth2client import (
    AuthorizationRequest,
    AuthorizationResponse,
    BearerToken,
    DPoPKey,
    IdToken,
    OAuth2Client,
    PrivateKeyJwt,
)
from requests_oauth2client.exceptions import EndpointError

from tests.interop.stock_clients import Refused, Registered, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.relying_party.verification import Callback


class _AnyUserinfo(OAuth2Client):
    """The stock client, which expects JSON at userinfo; a JWT is verified below."""

    def parse_userinfo_response(self, resp: Any, **_: Any) -> Any:
        return resp


class PythonClient:
    """See `stock_clients.StockClient`."""

    def __init__(self, registered: Registered) -> None:
        self.registered = registered
        keys = json.loads(registered.keys.read_text())
        self.decryption = Jwk(keys["encryption"])
        self.library = _AnyUserinfo.from_discovery_endpoint(
            issuer=registered.issuer,
            auth=PrivateKeyJwt(registered.client_id, Jwk(keys["signing"]), aud=registered.issuer),
            redirect_uri=registered.redirect_uri,
            id_token_signed_response_alg="ES256",
            id_token_decryption_key=self.decryption if registered.id_token_encrypted else None,
            dpop_bound_access_tokens=registered.interface.bound,
            testing=True,
        )
        self.request: AuthorizationRequest
        self.tokens: BearerToken
        self.subject: str

    def begin(self, *, bare: bool = False, **parameters: str) -> str:
        sent: dict[str, Any] = {**self.registered.request, **parameters}
        if bare:
            sent |= {"state": None, "nonce": None}
        # It knows from the metadata whether callbacks carry iss, and has to be told here again.
        promised = self.library.authorization_response_iss_parameter_supported
        self.request = self.library.authorization_request(
            **sent, authorization_response_iss_parameter_supported=promised
        )
        if not self.registered.interface.pushed:
            return str(self.request.uri)
        with _refusals():
            return str(self.library.pushed_authorization_request(self.request).uri)

    def finish(self, callback: Callback, *, with_another_key: bool = False) -> Tokens:
        # It reads queries alone: what was posted or stood behind the # is handed over as one.
        carried = urlencode([pair for pairs in callback.carried().values() for pair in pairs])
        with _refusals():
            response = self.request.validate_callback(f"{callback.address}?{carried}")
            if with_another_key:
                self._redeem_with(DPoPKey.generate(), response)
            self.tokens = self.library.authorization_code(response, validate=False)
            # Its check of the ID token cannot make a new DPoP token, so a plain one carries it.
            unchecked = BearerToken(self.tokens.access_token, id_token=self.tokens.id_token)
            checked = unchecked.validate_id_token(self.library, response).id_token
        assert isinstance(checked, IdToken)
        claims = checked.claims
        # It knows these two, and does not compare them.
        assert (claims["iss"], claims["aud"]) == (self.registered.issuer, self.registered.client_id)
        self.subject = claims["sub"]
        answer = {
            "token_type": self.tokens.token_type,
            "scope": self.tokens.scope,
            "id_token": str(self.tokens.id_token),
        }
        return Tokens(claims=claims, answer=answer)

    def _redeem_with(self, key: DPoPKey, response: AuthorizationResponse) -> None:
        self.library.authorization_code(
            response.code, dpop_key=key, code_verifier=response.code_verifier, redirect_uri=response.redirect_uri
        )

    def userinfo(self) -> dict[str, Any]:
        with _refusals():
            return self._verified(self.library.userinfo(self.tokens))

    def read(self, endpoint: str, method: str) -> dict[str, Any]:
        session = self.library.session
        metadata = session.get(f"{self.registered.issuer}/.well-known/openid-configuration").json()
        with _refusals():
            response = session.request(method, metadata[endpoint], auth=self.tokens)
            response.raise_for_status()
            return self._verified(response)

    def _verified(self, response: Any) -> dict[str, Any]:
        known = self.registered
        if not known.userinfo_signed and not known.userinfo_encrypted:
            assert response.headers["content-type"] == "application/json"
            plain: dict[str, Any] = response.json()
            assert plain["sub"] == self.subject
            return plain
        assert response.headers["content-type"] == "application/jwt"
        text = JweCompact(response.text).decrypt(self.decryption) if known.userinfo_encrypted else response.text
        answer = SignedJwt(text)
        keys = self.library.authorization_server_jwks
        answer.validate(keys, alg="ES256", issuer=known.issuer, audience=known.client_id, sub=self.subject)
        return dict(answer.claims)


@contextmanager
def _refusals() -> Iterator[None]:
    """The provider's refusals by their code, the library's own by their class."""
    try:
        yield
    except EndpointError as error:
        raise Refused(error.error, error.response.status_code) from error
    except ValueError as error:
        raise Refused(type(error).__name__, None) from error


@contextmanager
def connected(registered: Registered) -> Iterator[PythonClient]:
    """A client that has read the provider's metadata and keys."""
    client = PythonClient(registered)
    with client.library.session:
        yield client
