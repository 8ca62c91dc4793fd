"""A strict relying party in code, with changeable requests.

An override of None leaves a member out; a list repeats it. Answers are returned as they came; `relying_party`
decides whether to believe them.

It speaks one generation of the interface and believes nothing: every answer is verified before it is used,
every exchange and every check is kept. Whole steps (`begin`, `redeem`, `userinfo`) are made of pieces
(`assertion`, `proof`, `push`, `token`, `resource`) that take overrides, so that a test can be dishonest
in exactly one place. An override of None leaves the member out; a list repeats it.

Requests and responses in order, as the relying party saw them.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

from joserfc.jwk import ECKey, Key, KeySet

from corpid_dev.relying_party import jwt, verification
from corpid_dev.relying_party.interfaces import CURRENT, Interface, Reading
from corpid_dev.relying_party.jwt import RelyingPartyKeys, public_members
from corpid_dev.relying_party.verification import Callback, Checklist, TokenAnswer

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer, secrets and all."""

    title: str
    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    form: tuple[tuple[str, str], ...]
    status: int
    response_headers: tuple[tuple[str, str], ...]
    body: str
    milliseconds: float

    def tokens(self) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
        """Every JWT in it: place, header, payload; unverified, for display.

        The payload is None if it is encrypted.
        """
        places = [
            (name, value.split()[-1]) for name, value in self.request_headers if name in ("dpop", "authorization")
        ]
        places += self.form
        places += [(f"answer: {name}", value) for name, value in _members(self.body)]
        return [(place, *seen) for place, value in places if (seen := _peeked(value)) is not None]


@dataclass(slots=True)
class Timeline:
    """A sender of requests that records every exchange."""

    exchanges: list[Exchange] = field(default_factory=list)

    async def send(self, title: str, http: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """Send and record; returns the response with its body read.

        Redirects are never followed.
        """
        started = time.perf_counter()
        response = await http.send(request, follow_redirects=False)
        milliseconds = (time.perf_counter() - started) * 1000
        self.exchanges.append(
            Exchange(
                title=title,
                method=request.method,
                url=str(request.url),
                request_headers=_headers(request.headers),
                form=_form(request),
                status=response.status_code,
                response_headers=_headers(response.headers),
                body=response.text,
                milliseconds=milliseconds,
            )
        )
        return response


def _headers(headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
    return tuple((name.lower(), value) for name, value in headers.multi_items())


def _form(request: httpx.Request) -> tuple[tuple[str, str], ...]:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ()
    return tuple(parse_qsl(request.content.decode("utf-8", "replace"), keep_blank_values=True))


def _members(body: str) -> list[tuple[str, str]]:
    if not body.startswith("{"):
        return [("body", body)]
    try:
        document = json.loads(body)
    except ValueError:
        return []
    return [(name, value) for name, value in document.items() if isinstance(value, str)]


def _peeked(value: str) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
    if value.count(".") not in (2, 4):
        return None
    try:
        return jwt.peek(value)
    except ValueError:
        return None


Values: TypeAlias = Mapping[str, str | Sequence[str] | None]
"""form fields or headers: None leaves one out, a sequence repeats it"""


def changed(members: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The members with the overrides applied.

    Those that are None are left out.
    """
    return {name: value for name, value in {**members, **overrides}.items() if value is not None}


def pairs(values: Values) -> list[tuple[str, str]]:
    """Values as name and value pairs.

    None is left out, a sequence repeated.
    """
    flat: list[tuple[str, str]] = []
    for name, value in values.items():
        repeated = [value] if isinstance(value, str) else (value or [])
        flat += [(name, one) for one in repeated]
    return flat


ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS: Final = 60
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(slots=True, kw_only=True)
class SignIn:
    """The relying party's state of a sign-in, each value used once."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    code_verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    dpop_key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    request_uri: str = ""
    code: str = ""
    tokens: TokenAnswer | None = None


@dataclass(kw_only=True)
class Requests:
    """The requests of a registered client with one sign-in.

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
        """A client assertion (RFC 7523 §3, D8).

        Overrides change claims, `header` header members.
        """
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
        """A DPoP proof (RFC 9449 §4.2).

        With an access token it carries `ath`.
        """
        signer = key or self.sign_in.dpop_key
        payload = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": url, "iat": int(self.clock())}
        if access_token is not None:
            payload["ath"] = jwt.digest(access_token)
        head = {"typ": "dpop+jwt", "alg": jwt.algorithm_of(signer), "jwk": public_members(signer)}
        return jwt.compact(changed(head, header or {}), changed(payload, overrides), signer)

    async def discover(self, *, again: bool = False) -> dict[str, Any]:
        """The provider's metadata, verified (Spec 2.8); fetched once. Raises CheckFailed."""
        if again or not self.metadata:
            request = self.http.build_request("GET", f"{self.issuer}/.well-known/openid-configuration")
            response = await self.timeline.send("Discovery", self.http, request)
            self.metadata = verification.metadata(self.checks, response, issuer=self.issuer, interface=self.interface)
        return self.metadata

    async def fetch_provider_keys(self, *, again: bool = False) -> KeySet:
        """The provider's public keys, verified (Spec 2.9); fetched once. Raises CheckFailed."""
        if again or self.provider_keys is None:
            url = (await self.discover())["jwks_uri"]
            response = await self.timeline.send("Keys of the provider", self.http, self.http.build_request("GET", url))
            self.provider_keys = verification.provider_keys(
                self.checks, response, certificates=self.interface.certificates
            )
        return self.provider_keys

    def request_parameters(self) -> dict[str, Any]:
        """The parameters of a valid authorization request, pushed or as a query.

        Source: Spec 4.1, R-10.2
        """
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
        """Send a pushed authorization request.

        The answer as it came. `body` replaces the whole form.
        """
        url = (await self.discover())["pushed_authorization_request_endpoint"]
        honest = {"DPoP": self.proof("POST", url)} if self.interface.proof_at_push else {}
        form = {**self.push_parameters(), **(parameters or {})}
        return await self._post("Pushed authorization request", url, form, {**honest, **(headers or {})}, body)

    def authorization_url(self, **overrides: str | Sequence[str] | None) -> str:
        """The URL for the browser, pushed or with the whole request.

        A pushed one has client_id and request_uri only (Spec 4.2). The metadata must have been fetched; `begin` does
        that. Source: R-10.2
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
        """Send a token request; returns the response as it came."""
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
        """Request a resource with an access token, and a proof if bound.

        The token is the redeemed one by default. `endpoint` is the metadata member with its URL, by default that of
        userinfo or authorization-info.
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


__all__ = ["RelyingParty", "SignIn"]


@dataclass(kw_only=True)
class RelyingParty(Requests):
    """One relying party with one sign-in under way.

    `restart` forgets it and prepares the next.
    """

    id_token_enc: str | None = None
    """the content encryption that was registered for ID tokens; None: as the interface says"""
    userinfo_enc: str | None = None
    """the content encryption of a userinfo answer that is nested in a JWE (D22)"""
    userinfo_signed: bool = False
    """a signing algorithm was registered for userinfo; without effect if the interface always signs"""
    stringified_blocks: bool = False
    """the blocks of resources are texts that hold JSON (D22)"""

    def restart(self) -> None:
        """Forget the sign-in, its timeline and checks.

        The next one has a new state, nonce, verifier and DPoP key.
        """
        self.sign_in, self.timeline, self.checks = SignIn(), Timeline(), Checklist()

    async def begin(self) -> str:
        """The URL to send the browser to, after a push if required.

        Raises CheckFailed, ProviderError.
        """
        await self.discover()
        if self.interface.pushed:
            pushed = await self.push()
            if nonce := verification.demanded_nonce(pushed):
                url = self.metadata["pushed_authorization_request_endpoint"]
                pushed = await self.push(headers={"DPoP": self.proof("POST", url, nonce=nonce)})
            self.sign_in.request_uri = verification.pushed(self.checks, pushed)
        return self.authorization_url()

    def callback(self, url: str, form: Iterable[tuple[str, str]] | None = None) -> str:
        """The code in a callback URL or its posted form.

        Raises ProviderError for an error in it, CheckFailed for a foreign one.
        """
        returns_iss = self.metadata.get("authorization_response_iss_parameter_supported", False)
        self.sign_in.code = verification.callback(
            self.checks,
            Callback(url, form),
            mode=self.response_mode or self.interface.response_modes[0],
            redirect_uri=self.redirect_uri,
            state=self.sign_in.state,
            issuer=self.issuer if returns_iss else None,
        )
        return self.sign_in.code

    async def redeem(self, callback_url: str) -> TokenAnswer:
        """Check the callback, redeem its code, verify both tokens. Raises CheckFailed, ProviderError."""
        code = self.callback(callback_url)
        response = await self.token(code)
        if nonce := verification.demanded_nonce(response):
            proof = self.proof("POST", self.metadata["token_endpoint"], nonce=nonce)
            response = await self.token(code, headers={"DPoP": proof})
        return await self.believe(response)

    async def believe(self, response: httpx.Response) -> TokenAnswer:
        """Verify a token answer and both its tokens. Raises CheckFailed, ProviderError."""
        document = verification.token(self.checks, response, asked=self.scope, token_type=self.interface.scheme)
        id_token, what, access = document["id_token"], "ID token", document["access_token"]
        enc = self.id_token_enc or self.interface.id_token_enc
        if enc is not None:
            id_token = self._opened(what, id_token, enc)
        id_header, identity = await self._signed(what, id_token, types=("JWT",))
        expected = self._expected()
        verification.id_token(self.checks, identity, expected, nonce=self.sign_in.nonce, access_token=access)
        header, payload = await self._signed("access token", access, types=("at+jwt",))
        verification.access_token(
            self.checks,
            payload,
            expected,
            scope=document["scope"],
            jkt=self.sign_in.dpop_key.thumbprint() if self.interface.bound else None,
            resources=[self.metadata[reading.endpoint] for reading in self.interface.readings],
            identity=identity,
        )
        self.sign_in.tokens = verification.TokenAnswer(
            raw=document,
            scope=document["scope"],
            id_token_header=id_header,
            id_token=identity,
            access_token_header=header,
            access_token_claims=payload,
        )
        return self.sign_in.tokens

    async def userinfo(self, method: str | None = None) -> dict[str, Any]:
        """Verified claims of userinfo, in LEGACY of authorization-info.

        With the access token just redeemed. Blocks are objects, however they came. Raises CheckFailed, ProviderError.
        """
        tokens, reading = self._tokens(), self.interface.userinfo
        payload = await self._read(reading, method)
        return verification.userinfo(
            self.checks,
            payload,
            reading,
            sub=tokens.id_token["sub"],
            scope=tokens.scope,
            stringified=self.stringified_blocks,
        )

    async def entity_info(self, method: str | None = None) -> dict[str, Any]:
        """Verified claims of entity-info (D26), with the access token just redeemed.

        Raises CheckFailed, ProviderError; ValueError if the interface has no such resource.
        """
        tokens, reading = self._tokens(), self.interface.entity_info
        if reading is None:
            raise ValueError(f"there is no entity-info in {self.interface.name}")
        payload = await self._read(reading, method)
        verification.entity_info(self.checks, payload, reading.name, identity=tokens.id_token)
        return payload

    async def _read(self, reading: Reading, method: str | None) -> dict[str, Any]:
        response = await self.resource(method, endpoint=reading.endpoint)
        if nonce := verification.demanded_nonce(response):
            proof = self.proof(
                method or reading.method, self.metadata[reading.endpoint], self._access_token(), nonce=nonce
            )
            response = await self.resource(method, {"DPoP": proof}, endpoint=reading.endpoint)
        if not (reading.signed or self.userinfo_signed or self.userinfo_enc):
            return verification.plain_resource(self.checks, reading.name, response)
        token = verification.resource(self.checks, reading.name, response)
        if self.userinfo_enc is not None:
            token = self._opened(reading.name, token, self.userinfo_enc)
        _, payload = await self._signed(reading.name, token, types=("JWT",))
        verification.envelope(self.checks, reading.name, payload, self._expected())
        return payload

    def _tokens(self) -> TokenAnswer:
        if self.sign_in.tokens is None:
            raise ValueError("there is no access token yet; call redeem first")
        return self.sign_in.tokens

    def _expected(self) -> verification.ExpectedClaims:
        return verification.ExpectedClaims(
            issuer=self.issuer,
            client_id=self.client_id,
            now=self.clock(),
            packed_subject=self.interface.packed_subject,
        )

    async def _signed(self, what: str, token: str, *, types: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        keys = await self.fetch_provider_keys()
        if verification.signature_key(keys, verification.kid(token)) is None:
            keys = await self.fetch_provider_keys(again=True)
        return verification.signed(self.checks, what, token, keys, types=types)

    def _opened(self, what: str, token: str, enc: str) -> str:
        key = self.keys.encryption
        repeated = {"iss": self.issuer, "aud": self.client_id}
        return verification.opened(self.checks, what, token, key, alg=str(key.get("alg")), enc=enc, repeated=repeated)
