"""The provider's answers, taken apart: metadata, keys, pushed request, callback, tokens, resource.

Each function checks the envelope of one answer and returns what is in it. An OAuth error in place of
the answer raises ProviderError; an answer that is not as it should be, CheckFailed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpid.sandbox import certificates as certified
from corpid.sandbox import jwt, verification

if TYPE_CHECKING:
    import httpx
    from joserfc.jwk import KeySet

    from corpid.sandbox.callback import Callback
    from corpid.sandbox.interfaces import Interface
    from corpid.sandbox.verification import Checklist

REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"


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


def metadata(checks: Checklist, response: httpx.Response, *, issuer: str, interface: Interface) -> dict[str, Any]:
    """The discovery document, which must name what the interface uses; what else it says is not judged (Spec 2.8)."""
    what = "discovery"
    document = _public(checks, what, response, content_type="application/json")
    checks.equal(f"{what}: issuer", document.get("issuer"), issuer)
    missing = [name for name in interface.endpoints if not str(document.get(name, "")).startswith(f"{issuer}/")]
    checks.that(f"{what}: endpoints", not missing, f"not under the issuer: {', '.join(missing)}", f"{issuer}/…")
    lacking = [
        f"{name} lacks {value}" for name, value in interface.lists.items() if value not in document.get(name, [])
    ]
    checks.that(f"{what}: supports what we use", not lacking, "; ".join(lacking))
    return document


def provider_keys(checks: Checklist, response: httpx.Response, *, certificates: bool = False) -> KeySet:
    """The provider's key set (Spec 2.9); with `certificates` every key must carry its own."""
    what = "provider keys"
    document = _public(checks, what, response, content_type="application/jwk-set+json")
    entries = document.get("keys")
    listed = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    checks.that(f"{what}: list of keys", listed, "keys is not a list of objects")
    kids = [entry.get("kid") for entry in document["keys"]]
    checks.that(f"{what}: unique kids", len(set(kids)) == len(kids) and None not in kids, f"kids are {kids}", kids)
    private = [entry.get("kid") for entry in document["keys"] if {"d", "p", "q", "k"} & entry.keys()]
    checks.that(f"{what}: public members only", not private, f"private members in {private}")
    problems = [problem for entry in document["keys"] if (problem := certified.fault(entry, needed=certificates))]
    checks.that(f"{what}: certificates", not problems, "; ".join(problems))
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


def callback(
    checks: Checklist, arrived: Callback, *, mode: str, redirect_uri: str, state: str, issuer: str | None
) -> str:
    """The code of a callback that came in this response mode (Spec 4.2, D38).

    `issuer` is what `iss` must be, None where the provider sends none (RFC 9207 §2.4).
    """
    what = "callback"
    checks.equal(f"{what}: redirect_uri", arrived.address, redirect_uri.partition("?")[0])
    carried = arrived.carried()
    pairs = carried.pop(mode)
    astray = {name for others in carried.values() for name, _ in others} & {"code", "state", "error", "iss"}
    checks.that(f"{what}: response mode", not astray, f"{', '.join(sorted(astray))} did not come by {mode}", mode)
    given = dict(pairs)
    checks.that(f"{what}: nothing twice", len(pairs) == len(given), "a parameter is there twice")
    checks.equal(f"{what}: state", given.get("state"), state)
    checks.equal(f"{what}: iss", given.get("iss"), issuer)
    if "error" in given:
        raise ProviderError(what, given["error"], given.get("error_description", ""), 0)
    checks.that(f"{what}: code", bool(given.get("code")), "has neither code nor error", given.get("code"))
    return given["code"]


def token(checks: Checklist, response: httpx.Response, *, asked: str, token_type: str) -> dict[str, Any]:
    """The members of a token answer (Spec 2.4); `asked` is the scope that was requested."""
    what = "token"
    _no_error(what, response)
    verification.answer(checks, what, response, status=200, content_type="application/json")
    document = verification.json_object(checks, what, response.content)
    for name in ("access_token", "id_token", "scope"):
        text = isinstance(document.get(name), str)
        checks.that(f"{what}: {name}", text, f"expected a string, got {document.get(name)!r}", document.get(name))
    checks.equal(f"{what}: token_type", document.get("token_type"), token_type)
    checks.equal(f"{what}: expires_in", document.get("expires_in"), verification.TOKEN_SECONDS)
    beyond = set(document["scope"].split()) - set(asked.split())
    checks.that(f"{what}: no scope that was not asked for", not beyond, f"got {sorted(beyond)} as well")
    return document


def resource(checks: Checklist, what: str, response: httpx.Response) -> str:
    """The JWT that a resource answers with (Spec 2.5, D22, D24)."""
    _resource(checks, what, response, "application/jwt")
    return response.text


def plain_resource(checks: Checklist, what: str, response: httpx.Response) -> dict[str, Any]:
    """The JSON object that a resource answers with where nothing is to be signed (OpenID Connect Core §5.3.2)."""
    _resource(checks, what, response, "application/json")
    return verification.json_object(checks, what, response.content)


def kid(token: str) -> object:
    """The kid in a JWT's header, unverified; None if there is none."""
    try:
        return jwt.peek(token)[0].get("kid")
    except ValueError:
        return None


def _resource(checks: Checklist, what: str, response: httpx.Response, content_type: str) -> None:
    _no_error(what, response)
    verification.answer(checks, what, response, status=200, content_type=content_type)
    checks.that(f"{what}: no challenge", "www-authenticate" not in response.headers, "a challenge beside an answer")


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
