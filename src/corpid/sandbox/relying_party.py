"""An honest, strict relying party in code.

It speaks the CURRENT generation and believes nothing: every answer is verified before it is used, every
exchange and every check is kept. Whole steps (`begin`, `redeem`, `userinfo`) are made of pieces
(`assertion`, `proof`, `push`, `token`, `resource`) that take overrides, so that a test can be dishonest
in exactly one place. An override of None leaves the member out; a list repeats it.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from joserfc.jwk import ECKey

from corpid.sandbox import answers, claims, jwt, verification
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
    """What the relying party keeps between the push and the last answer, each value used once."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    code_verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    dpop_key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    request_uri: str = ""
    code: str = ""
    tokens: TokenAnswer | None = None


@dataclass(kw_only=True)
class RelyingParty:
    """One relying party with one sign-in under way; `restart` forgets it and prepares the next.

    `issuer` is the provider's, `http` any httpx client (sockets or ASGI), `clock` gives epoch seconds.
    `parameters` are sent with every push, over the defaults.
    """

    client_id: str
    issuer: str
    http: httpx.AsyncClient
    redirect_uri: str = "https://rp.example/callback"
    scope: str = "openid authinfo tpauthinfo"
    parameters: Values = field(default_factory=dict)
    keys: RelyingPartyKeys = field(default_factory=RelyingPartyKeys.generate)
    clock: Callable[[], float] = time.time
    id_token_enc: str = "A256CBC-HS512"
    userinfo_enc: str | None = None
    """the content encryption of a userinfo answer that is nested in a JWE (D22)"""
    sign_in: SignIn = field(default_factory=SignIn)
    timeline: Timeline = field(default_factory=Timeline)
    checks: Checklist = field(default_factory=Checklist)
    metadata: dict[str, Any] = field(default_factory=dict)
    provider_keys: KeySet | None = None

    def jwks(self) -> dict[str, Any]:
        """The public key set to register for this client."""
        return self.keys.public()

    def restart(self) -> None:
        """Forget the sign-in, its timeline and checks; the next one has a new state, nonce, verifier and DPoP key."""
        self.sign_in, self.timeline, self.checks = SignIn(), Timeline(), Checklist()

    # Whole steps

    async def begin(self) -> str:
        """Push a request; the URL to send the browser to. Raises CheckFailed, ProviderError."""
        self.sign_in.request_uri = answers.pushed(self.checks, await self.push())
        return self.authorization_url()

    async def redeem(self, callback_url: str) -> TokenAnswer:
        """Check the callback, redeem its code, verify both tokens. Raises CheckFailed, ProviderError."""
        code = self.callback(callback_url)
        return await self.believe(await self.token(code))

    async def userinfo(self, method: str = "GET") -> dict[str, Any]:
        """Verified userinfo claims with the access token just redeemed. Raises CheckFailed, ProviderError."""
        if self.sign_in.tokens is None:
            raise ValueError("there is no access token yet; call redeem first")
        response = await self.resource(method)
        token = answers.resource(self.checks, "userinfo", response)
        if self.userinfo_enc is not None:
            token = self._opened("userinfo", token, self.userinfo_enc)
        _, payload = await self._signed("userinfo", token, types=("JWT",))
        tokens = self.sign_in.tokens
        claims.userinfo(self.checks, payload, self._expected(), sub=tokens.id_token["sub"], scope=tokens.scope)
        return payload

    # Pieces

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
            self.metadata = answers.metadata(self.checks, response, issuer=self.issuer)
        return self.metadata

    async def fetch_provider_keys(self, *, again: bool = False) -> KeySet:
        """The provider's public keys, verified (Spec 2.9); fetched once. Raises CheckFailed."""
        if again or self.provider_keys is None:
            url = (await self.discover())["jwks_uri"]
            response = await self.timeline.send("Keys of the provider", self.http, self.http.build_request("GET", url))
            self.provider_keys = answers.provider_keys(self.checks, response)
        return self.provider_keys

    def push_parameters(self) -> dict[str, Any]:
        """The honest form fields of a pushed authorization request (Spec 4.1)."""
        return {
            "client_id": self.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self.assertion(),
            "response_type": "code",
            "redirect_uri": self.redirect_uri,
            "scope": self.scope,
            "state": self.sign_in.state,
            "nonce": self.sign_in.nonce,
            "code_challenge": jwt.digest(self.sign_in.code_verifier),
            "code_challenge_method": "S256",
            "authentication_context_type": "APP_AUTHENTICATION_DEFAULT",
            **self.parameters,
        }

    async def push(
        self, parameters: Values | None = None, headers: Values | None = None, *, body: bytes | None = None
    ) -> httpx.Response:
        """Send a pushed authorization request; the answer as it came. `body` replaces the whole form."""
        url = (await self.discover())["pushed_authorization_request_endpoint"]
        honest = {"DPoP": self.proof("POST", url)}
        form = {**self.push_parameters(), **(parameters or {})}
        return await self._post("Pushed authorization request", url, form, {**honest, **(headers or {})}, body)

    def authorization_url(self, **overrides: str | Sequence[str] | None) -> str:
        """The URL for the browser (Spec 4.2): client_id and request_uri, nothing else."""
        query = {"client_id": self.client_id, "request_uri": self.sign_in.request_uri, **overrides}
        return f"{self.metadata['authorization_endpoint']}?{urlencode(pairs(query))}"

    def callback(self, url: str) -> str:
        """The code in a callback URL. Raises ProviderError for an error in it, CheckFailed for a foreign one."""
        returns_iss = self.metadata.get("authorization_response_iss_parameter_supported", False)
        issuer = self.issuer if returns_iss else None
        self.sign_in.code = answers.callback(
            self.checks, urlsplit(url), redirect_uri=self.redirect_uri, state=self.sign_in.state, issuer=issuer
        )
        return self.sign_in.code

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
        return await self._post("Token", url, form, {"DPoP": self.proof("POST", url), **(headers or {})}, body)

    async def believe(self, response: httpx.Response) -> TokenAnswer:
        """Verify a token answer and both its tokens. Raises CheckFailed, ProviderError."""
        document = answers.token(self.checks, response, asked=self.scope)
        what = "ID token"
        inner = self._opened(what, document["id_token"], self.id_token_enc)
        id_header, identity = await self._signed(what, inner, types=("JWT",))
        expected = self._expected()
        access = document["access_token"]
        claims.id_token(self.checks, identity, expected, nonce=self.sign_in.nonce, access_token=access)
        header, payload = await self._signed("access token", access, types=("at+jwt",))
        claims.access_token(
            self.checks,
            payload,
            expected,
            scope=document["scope"],
            jkt=self.sign_in.dpop_key.thumbprint(),
            resource=self.metadata["userinfo_endpoint"],
            identity=identity,
        )
        self.sign_in.tokens = answers.TokenAnswer(
            raw=document,
            scope=document["scope"],
            id_token_header=id_header,
            id_token=identity,
            access_token_header=header,
            access_token_claims=payload,
        )
        return self.sign_in.tokens

    async def resource(
        self,
        method: str = "GET",
        headers: Values | None = None,
        *,
        access_token: str | None = None,
        endpoint: str = "userinfo_endpoint",
    ) -> httpx.Response:
        """Ask a resource with the redeemed (or this) access token and a fresh proof; the answer as it came."""
        url = (await self.discover())[endpoint]
        token = access_token or self._access_token()
        sent: dict[str, Any] = {"Authorization": f"DPoP {token}", "DPoP": self.proof(method, url, token)}
        if method == "POST":
            sent["Content-Type"] = f"{FORM}; charset=utf-8"
        request = self.http.build_request(method, url, headers=pairs({**sent, **(headers or {})}))
        return await self.timeline.send("Userinfo", self.http, request)

    def _expected(self) -> claims.Expected:
        return claims.Expected(issuer=self.issuer, client_id=self.client_id, now=self.clock())

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

    async def _signed(self, what: str, token: str, *, types: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        keys = await self.fetch_provider_keys()
        if verification.signature_key(keys, answers.kid(token)) is None:
            keys = await self.fetch_provider_keys(again=True)
        return verification.signed(self.checks, what, token, keys, types=types)

    def _opened(self, what: str, token: str, enc: str) -> str:
        key = self.keys.encryption
        return verification.opened(self.checks, what, token, key, alg=str(key.get("alg")), enc=enc)
