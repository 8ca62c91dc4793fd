"""What a relying party sends: assertions, proofs and requests, each a piece that can be changed in one place.

An override of None leaves a member out; a list repeats it. Answers are returned as they came; `relying_party`
decides whether to believe them.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from joserfc.jwk import ECKey

from corpid.sandbox import answers, jwt
from corpid.sandbox.interfaces import CURRENT, Interface
from corpid.sandbox.overrides import changed, pairs
from corpid.sandbox.relying_party_keys import RelyingPartyKeys, public
from corpid.sandbox.timeline import Timeline
from corpid.sandbox.verification import Checklist

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx
    from joserfc.jwk import Key, KeySet

    from corpid.sandbox.answers import TokenAnswer
    from corpid.sandbox.overrides import Values

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS: Final = 60
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(slots=True, kw_only=True)
class SignIn:
    """What the relying party keeps between the request and the last answer, each value used once."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    code_verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    dpop_key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    request_uri: str = ""
    code: str = ""
    tokens: TokenAnswer | None = None


@dataclass(kw_only=True)
class Requests:
    """A registered client with one sign-in under way, and what it sends.

    `issuer` is the provider's, `http` any httpx client (sockets or ASGI), `clock` gives epoch seconds.
    `interface` is the generation it speaks. `parameters` are sent with every request, over the defaults.
    """

    client_id: str
    issuer: str
    http: httpx.AsyncClient
    interface: Interface = CURRENT
    redirect_uri: str = "https://rp.example/callback"
    scope: str = "openid authinfo tpauthinfo"
    response_mode: str | None = None
    """how the callback is to come; None: not asked for, so the interface's first"""
    parameters: Values = field(default_factory=dict)
    keys: RelyingPartyKeys = field(default_factory=RelyingPartyKeys.generate)
    clock: Callable[[], float] = time.time
    sign_in: SignIn = field(default_factory=SignIn)
    timeline: Timeline = field(default_factory=Timeline)
    checks: Checklist = field(default_factory=Checklist)
    metadata: dict[str, Any] = field(default_factory=dict)
    provider_keys: KeySet | None = None

    def jwks(self) -> dict[str, Any]:
        """The public key set to register for this client."""
        return self.keys.public()

    def assertion(self, *, header: Mapping[str, Any] | None = None, key: Key | None = None, **overrides: Any) -> str:
        """A client assertion (RFC 7523 §3, D8); overrides change claims, `header` header members."""
        now = int(self.clock())
        payload = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": self.issuer,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
            "jti": secrets.token_urlsafe(16),
        }
        own = self.keys.signing
        head = {"typ": "JWT", "alg": jwt.algorithm_of(own), "kid": own.get("kid")}
        return jwt.compact(changed(head, header or {}), changed(payload, overrides), key or own)

    def proof(
        self,
        method: str,
        url: str,
        access_token: str | None = None,
        *,
        header: Mapping[str, Any] | None = None,
        key: ECKey | None = None,
        **overrides: Any,
    ) -> str:
        """A DPoP proof (RFC 9449 §4.2); with an access token it carries `ath`."""
        signer = key or self.sign_in.dpop_key
        payload = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": url, "iat": int(self.clock())}
        if access_token is not None:
            payload["ath"] = jwt.digest(access_token)
        head = {"typ": "dpop+jwt", "alg": jwt.algorithm_of(signer), "jwk": public(signer)}
        return jwt.compact(changed(head, header or {}), changed(payload, overrides), signer)

    async def discover(self, *, again: bool = False) -> dict[str, Any]:
        """The provider's metadata, verified (Spec 2.8); fetched once. Raises CheckFailed."""
        if again or not self.metadata:
            request = self.http.build_request("GET", f"{self.issuer}/.well-known/openid-configuration")
            response = await self.timeline.send("Discovery", self.http, request)
            self.metadata = answers.metadata(self.checks, response, issuer=self.issuer, interface=self.interface)
        return self.metadata

    async def fetch_provider_keys(self, *, again: bool = False) -> KeySet:
        """The provider's public keys, verified (Spec 2.9); fetched once. Raises CheckFailed."""
        if again or self.provider_keys is None:
            url = (await self.discover())["jwks_uri"]
            response = await self.timeline.send("Keys of the provider", self.http, self.http.build_request("GET", url))
            self.provider_keys = answers.provider_keys(self.checks, response, certificates=self.interface.certificates)
        return self.provider_keys

    def request_parameters(self) -> dict[str, Any]:
        """What an honest authorization request carries, pushed or as a query (Spec 4.1, R-10.2)."""
        mode = {} if self.response_mode is None else {"response_mode": self.response_mode}
        return {
            "response_type": "code",
            "redirect_uri": self.redirect_uri,
            "scope": self.scope,
            "state": self.sign_in.state,
            "nonce": self.sign_in.nonce,
            "code_challenge": jwt.digest(self.sign_in.code_verifier),
            "code_challenge_method": "S256",
            **mode,
            **self.interface.parameters,
            **self.parameters,
        }

    def push_parameters(self) -> dict[str, Any]:
        """The honest form fields of a pushed authorization request (Spec 4.1)."""
        return {
            "client_id": self.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self.assertion(),
            **self.request_parameters(),
        }

    async def push(
        self, parameters: Values | None = None, headers: Values | None = None, *, body: bytes | None = None
    ) -> httpx.Response:
        """Send a pushed authorization request; the answer as it came. `body` replaces the whole form."""
        url = (await self.discover())["pushed_authorization_request_endpoint"]
        honest = {"DPoP": self.proof("POST", url)} if self.interface.proof_at_push else {}
        form = {**self.push_parameters(), **(parameters or {})}
        return await self._post("Pushed authorization request", url, form, {**honest, **(headers or {})}, body)

    def authorization_url(self, **overrides: str | Sequence[str] | None) -> str:
        """The URL for the browser: client_id and request_uri, nothing else (Spec 4.2), or the whole request (R-10.2).

        The metadata must have been fetched; `begin` does that.
        """
        asked = {"request_uri": self.sign_in.request_uri} if self.interface.pushed else self.request_parameters()
        query = {"client_id": self.client_id, **asked, **overrides}
        return f"{self.metadata['authorization_endpoint']}?{urlencode(pairs(query))}"

    async def token(
        self,
        code: str,
        parameters: Values | None = None,
        headers: Values | None = None,
        *,
        body: bytes | None = None,
    ) -> httpx.Response:
        """Send a token request; the answer as it came."""
        url = (await self.discover())["token_endpoint"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self.assertion(),
            "code_verifier": self.sign_in.code_verifier,
            **(parameters or {}),
        }
        honest = {"DPoP": self.proof("POST", url)} if self.interface.bound else {}
        return await self._post("Token", url, form, {**honest, **(headers or {})}, body)

    async def resource(
        self,
        method: str | None = None,
        headers: Values | None = None,
        *,
        access_token: str | None = None,
        endpoint: str | None = None,
    ) -> httpx.Response:
        """Ask a resource with the redeemed (or this) access token, and a fresh proof where one belongs to it.

        `endpoint` is the metadata member with its URL, by default that of userinfo or authorization-info.
        """
        reading = self.interface.userinfo
        asked = next((each for each in self.interface.readings if each.endpoint == endpoint), reading)
        verb = method or asked.method
        url = (await self.discover())[endpoint or asked.endpoint]
        token = access_token or self._access_token()
        sent: dict[str, Any] = {"Authorization": f"{self.interface.scheme} {token}"}
        if self.interface.bound:
            sent["DPoP"] = self.proof(verb, url, token)
        if verb == "POST":
            sent["Content-Type"] = f"{FORM}; charset=utf-8"
        request = self.http.build_request(verb, url, headers=pairs({**sent, **(headers or {})}))
        return await self.timeline.send(asked.title, self.http, request)

    def _access_token(self) -> str:
        if self.sign_in.tokens is None:
            raise ValueError("there is no access token yet; call redeem first or pass access_token")
        return self.sign_in.tokens.access_token

    async def _post(self, title: str, url: str, form: Values, headers: Values, body: bytes | None) -> httpx.Response:
        content = urlencode(pairs(form)).encode() if body is None else body
        sent = pairs({"Content-Type": FORM, "Accept": "application/json", **headers})
        return await self.timeline.send(
            title, self.http, self.http.build_request("POST", url, content=content, headers=sent)
        )
