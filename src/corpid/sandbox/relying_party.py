"""An honest, strict relying party in code.

It speaks one generation of the interface and believes nothing: every answer is verified before it is used,
every exchange and every check is kept. Whole steps (`begin`, `redeem`, `userinfo`) are made of pieces
(`assertion`, `proof`, `push`, `token`, `resource`) that take overrides, so that a test can be dishonest
in exactly one place. An override of None leaves the member out; a list repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpid.sandbox import answers, claims, verification
from corpid.sandbox.callback import Callback
from corpid.sandbox.requests import Requests, SignIn
from corpid.sandbox.timeline import Timeline
from corpid.sandbox.verification import Checklist

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from corpid.sandbox.answers import TokenAnswer
    from corpid.sandbox.interfaces import Reading

__all__ = ["RelyingParty", "SignIn"]


@dataclass(kw_only=True)
class RelyingParty(Requests):
    """One relying party with one sign-in under way; `restart` forgets it and prepares the next."""

    id_token_enc: str | None = None
    """the content encryption that was registered for ID tokens; None: as the interface says"""
    userinfo_enc: str | None = None
    """the content encryption of a userinfo answer that is nested in a JWE (D22)"""
    userinfo_signed: bool = False
    """a signing algorithm was registered for userinfo; where the interface always signs, that changes nothing"""
    stringified_blocks: bool = False
    """the blocks of resources are texts that hold JSON (D22)"""

    def restart(self) -> None:
        """Forget the sign-in, its timeline and checks; the next one has a new state, nonce, verifier and DPoP key."""
        self.sign_in, self.timeline, self.checks = SignIn(), Timeline(), Checklist()

    async def begin(self) -> str:
        """The URL to send the browser to, after a push where there is one. Raises CheckFailed, ProviderError."""
        await self.discover()
        if self.interface.pushed:
            self.sign_in.request_uri = answers.pushed(self.checks, await self.push())
        return self.authorization_url()

    def callback(self, url: str, form: Iterable[tuple[str, str]] | None = None) -> str:
        """The code in a callback: its URL, and the fields if a form was posted.

        Raises ProviderError for an error in it, CheckFailed for a foreign one.
        """
        returns_iss = self.metadata.get("authorization_response_iss_parameter_supported", False)
        self.sign_in.code = answers.callback(
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
        return await self.believe(await self.token(code))

    async def believe(self, response: httpx.Response) -> TokenAnswer:
        """Verify a token answer and both its tokens. Raises CheckFailed, ProviderError."""
        document = answers.token(self.checks, response, asked=self.scope, token_type=self.interface.scheme)
        id_token, what, access = document["id_token"], "ID token", document["access_token"]
        enc = self.id_token_enc or self.interface.id_token_enc
        if enc is not None:
            id_token = self._opened(what, id_token, enc)
        id_header, identity = await self._signed(what, id_token, types=("JWT",))
        expected = self._expected()
        claims.id_token(self.checks, identity, expected, nonce=self.sign_in.nonce, access_token=access)
        header, payload = await self._signed("access token", access, types=("at+jwt",))
        claims.access_token(
            self.checks,
            payload,
            expected,
            scope=document["scope"],
            jkt=self.sign_in.dpop_key.thumbprint() if self.interface.bound else None,
            resources=[self.metadata[reading.endpoint] for reading in self.interface.readings],
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

    async def userinfo(self, method: str | None = None) -> dict[str, Any]:
        """Verified claims of userinfo, in LEGACY of authorization-info, with the access token just redeemed.

        Blocks are objects, however they came. Raises CheckFailed, ProviderError.
        """
        tokens, reading = self._tokens(), self.interface.userinfo
        payload = await self._read(reading, method)
        return claims.userinfo(
            self.checks,
            payload,
            reading,
            sub=tokens.id_token["sub"],
            scope=tokens.scope,
            stringified=self.stringified_blocks,
        )

    async def entity_info(self, method: str | None = None) -> dict[str, Any]:
        """Verified claims of entity-info (D26), with the access token just redeemed.

        Raises CheckFailed, ProviderError; ValueError where the interface has no such resource.
        """
        tokens, reading = self._tokens(), self.interface.entity_info
        if reading is None:
            raise ValueError(f"there is no entity-info in {self.interface.name}")
        payload = await self._read(reading, method)
        claims.entity_info(self.checks, payload, reading.name, identity=tokens.id_token)
        return payload

    async def _read(self, reading: Reading, method: str | None) -> dict[str, Any]:
        response = await self.resource(method, endpoint=reading.endpoint)
        if not (reading.signed or self.userinfo_signed):
            return answers.plain_resource(self.checks, reading.name, response)
        token = answers.resource(self.checks, reading.name, response)
        if self.userinfo_enc is not None:
            token = self._opened(reading.name, token, self.userinfo_enc)
        _, payload = await self._signed(reading.name, token, types=("JWT",))
        claims.envelope(self.checks, reading.name, payload, self._expected())
        return payload

    def _tokens(self) -> TokenAnswer:
        if self.sign_in.tokens is None:
            raise ValueError("there is no access token yet; call redeem first")
        return self.sign_in.tokens

    def _expected(self) -> claims.Expected:
        return claims.Expected(
            issuer=self.issuer,
            client_id=self.client_id,
            now=self.clock(),
            packed_subject=self.interface.packed_subject,
        )

    async def _signed(self, what: str, token: str, *, types: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        keys = await self.fetch_provider_keys()
        if verification.signature_key(keys, answers.kid(token)) is None:
            keys = await self.fetch_provider_keys(again=True)
        return verification.signed(self.checks, what, token, keys, types=types)

    def _opened(self, what: str, token: str, enc: str) -> str:
        key = self.keys.encryption
        repeated = {"iss": self.issuer, "aud": self.client_id}
        return verification.opened(self.checks, what, token, key, alg=str(key.get("alg")), enc=enc, repeated=repeated)
