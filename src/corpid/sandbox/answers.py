"""The provider's answers, taken apart: metadata, keys, pushed request, callback, tokens, resource.

Each function checks the envelope of one answer and returns what is in it. An OAuth error in place of
the answer raises ProviderError; an answer that is not as it should be, CheckFailed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from corpid.sandbox import jwt, verification

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    import httpx
    from joserfc.jwk import KeySet

    from corpid.sandbox.verification import Checklist

REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"
ENDPOINTS: Final = (
    "authorization_endpoint",
    "token_endpoint",
    "pushed_authorization_request_endpoint",
    "jwks_uri",
    "userinfo_endpoint",
)
NEEDED: Final = {
    "response_types_supported": "code",
    "grant_types_supported": "authorization_code",
    "code_challenge_methods_supported": "S256",
    "token_endpoint_auth_methods_supported": "private_key_jwt",
    "token_endpoint_auth_signing_alg_values_supported": "ES256",
    "dpop_signing_alg_values_supported": "ES256",
    "id_token_signing_alg_values_supported": "ES256",
    "userinfo_signing_alg_values_supported": "ES256",
    "scopes_supported": "openid",
}
"""what the metadata must list, since this relying party uses it (Spec 2.8, D41)"""


class ProviderError(Exception):
    """The provider refused with an OAuth error; `status` is 0 for an error in the callback."""

    def __init__(self, where: str, error: str, description: str, status: int) -> None:
        super().__init__(f"{where}: {error}{f' ({status})' if status else ''}: {description}")
        self.where = where
        self.error = error
        self.description = description
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """A verified token answer."""

    raw: dict[str, Any]
    scope: str
    id_token_header: dict[str, Any]
    id_token: dict[str, Any]
    access_token_header: dict[str, Any]
    access_token_claims: dict[str, Any]

    @property
    def access_token(self) -> str:
        """The access token as it is sent to resources."""
        return str(self.raw["access_token"])


def metadata(checks: Checklist, response: httpx.Response, *, issuer: str) -> dict[str, Any]:
    """The discovery document (Spec 2.8)."""
    what = "discovery"
    document = _public(checks, what, response, content_type="application/json")
    checks.equal(f"{what}: issuer", document.get("issuer"), issuer)
    missing = [name for name in ENDPOINTS if not str(document.get(name, "")).startswith(f"{issuer}/")]
    checks.that(f"{what}: endpoints", not missing, f"not under the issuer: {', '.join(missing)}", f"{issuer}/…")
    lacking = [f"{name} lacks {value}" for name, value in NEEDED.items() if value not in document.get(name, [])]
    checks.that(f"{what}: supports what we use", not lacking, "; ".join(lacking))
    return document


def provider_keys(checks: Checklist, response: httpx.Response) -> KeySet:
    """The provider's key set (Spec 2.9)."""
    what = "provider keys"
    document = _public(checks, what, response, content_type="application/jwk-set+json")
    entries = document.get("keys")
    listed = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    checks.that(f"{what}: list of keys", listed, "keys is not a list of objects")
    kids = [entry.get("kid") for entry in document["keys"]]
    checks.that(f"{what}: unique kids", len(set(kids)) == len(kids) and None not in kids, f"kids are {kids}", kids)
    private = [entry.get("kid") for entry in document["keys"] if {"d", "p", "q", "k"} & entry.keys()]
    checks.that(f"{what}: public members only", not private, f"private members in {private}")
    return jwt.key_set(document)


def pushed(checks: Checklist, response: httpx.Response) -> str:
    """The request_uri of a pushed authorization request (D3)."""
    what = "pushed request"
    _no_error(what, response)
    verification.answer(checks, what, response, status=201, content_type="application/json")
    document = verification.json_object(checks, what, response.content)
    request_uri = str(document.get("request_uri"))
    fits = request_uri.startswith(REQUEST_URI_PREFIX) and len(request_uri) >= len(REQUEST_URI_PREFIX) + 43
    checks.that(f"{what}: request_uri", fits, f"got {request_uri}", request_uri)
    checks.equal(f"{what}: expires_in", document.get("expires_in"), 60)
    return request_uri


def callback(checks: Checklist, url: SplitResult, *, redirect_uri: str, state: str, issuer: str | None) -> str:
    """The code of a callback. `issuer` is what `iss` must be, None where the provider sends none (RFC 9207 §2.4)."""
    what = "callback"
    arrived = f"{url.scheme}://{url.netloc}{url.path}"
    checks.equal(f"{what}: redirect_uri", arrived, redirect_uri.partition("?")[0])
    pairs = parse_qsl(url.query, keep_blank_values=True)
    query = dict(pairs)
    checks.that(f"{what}: nothing twice", len(pairs) == len(query), "a parameter is there twice")
    checks.equal(f"{what}: state", query.get("state"), state)
    checks.equal(f"{what}: iss", query.get("iss"), issuer)
    if "error" in query:
        raise ProviderError(what, query["error"], query.get("error_description", ""), 0)
    checks.that(f"{what}: code", bool(query.get("code")), "has neither code nor error", query.get("code"))
    return query["code"]


def token(checks: Checklist, response: httpx.Response, *, asked: str) -> dict[str, Any]:
    """The members of a token answer (Spec 2.4); `asked` is the scope that was requested."""
    what = "token"
    _no_error(what, response)
    verification.answer(checks, what, response, status=200, content_type="application/json")
    document = verification.json_object(checks, what, response.content)
    for name in ("access_token", "id_token", "scope"):
        text = isinstance(document.get(name), str)
        checks.that(f"{what}: {name}", text, f"expected a string, got {document.get(name)!r}", document.get(name))
    checks.equal(f"{what}: token_type", document.get("token_type"), "DPoP")
    checks.equal(f"{what}: expires_in", document.get("expires_in"), verification.TOKEN_SECONDS)
    beyond = set(document["scope"].split()) - set(asked.split())
    checks.that(f"{what}: no scope that was not asked for", not beyond, f"got {sorted(beyond)} as well")
    return document


def resource(checks: Checklist, what: str, response: httpx.Response) -> str:
    """The JWT that a resource answers with (Spec 2.5, D22, D24)."""
    _no_error(what, response)
    verification.answer(checks, what, response, status=200, content_type="application/jwt")
    checks.that(f"{what}: no challenge", "www-authenticate" not in response.headers, "a challenge beside an answer")
    return response.text


def kid(token: str) -> object:
    """The kid in a JWT's header, unverified; None if there is none."""
    try:
        return jwt.peek(token)[0].get("kid")
    except ValueError:
        return None


def _public(checks: Checklist, what: str, response: httpx.Response, *, content_type: str) -> dict[str, Any]:
    checks.equal(f"{what}: status", response.status_code, 200)
    got = response.headers.get("content-type", "").split(";")[0].strip()
    checks.equal(f"{what}: content type", got, content_type)
    return verification.json_object(checks, what, response.content)


def _no_error(where: str, response: httpx.Response) -> None:
    if response.status_code < 400:
        return
    try:
        document = json.loads(response.content)
    except ValueError:
        document = {}
    error = document.get("error", "") if isinstance(document, dict) else ""
    challenge = response.headers.get("www-authenticate", "")
    description = (
        document.get("error_description", challenge) if error else f"answered without an error code {challenge}"
    )
    raise ProviderError(where, error or "(no error code)", description, response.status_code)
