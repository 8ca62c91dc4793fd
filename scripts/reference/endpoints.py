"""Declarations of the protocol endpoints: methods, headers, parameters, limits, answers and errors.

docs/reference/endpoints.md, openapi-*.json and the Bruno collections are made from them; tests hold them against a running
provider.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from corpid.jose.compact import MAX_BYTES
from corpid.rules.limits import (
    BODY_BYTES,
    BODY_SECONDS,
    CODE_SECONDS,
    FORM_PAIRS,
    HEAD_BYTES,
    HEAD_SECONDS,
    METADATA_CACHE_SECONDS,
    REQUEST_URI_SECONDS,
)
from corpid.rules.oauth.authorization_request import PARAMETERS, Documented
from corpid.rules.oauth.discovery import AUTHORIZATION_PATH, DISCOVERY_PATH, JWKS_PATH, PAR_PATH, TOKEN_PATH
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.addresses import HEALTH_PATHS
from corpid.web.pages.errors import RESOURCE_STATUS
from scripts.reference import answers
from scripts.reference.error_classes import CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.generations import Generation, ProtectedResource
    from scripts.reference.shapes import Record

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
JWT: Final = "application/jwt"
EVERY: Final = (
    f"Request line and headers {HEAD_BYTES // 1024} KiB, within {HEAD_SECONDS} s; body {BODY_BYTES // 1024} KiB and {FORM_PAIRS} parameters, "
    f"within {BODY_SECONDS} s; a JWT {MAX_BYTES // 1024} KiB"
)
_STARTS: Final[Mapping[str, Reason]] = {
    "http": Reason.HTTP_MALFORMED,
    "client authentication": Reason.CLIENT_AUTHENTICATION_TWICE,
    "dpop": Reason.PROOF_MISSING,
    "request": Reason.REDIRECT_URI_NOT_REGISTERED,
    "authorize": Reason.QUERY_TOO_LONG,
    "sign-in": Reason.CLIENT_GONE,
    "token": Reason.GRANT_TYPE,
    "resource": Reason.CREDENTIALS_MISSING,
}
"""part of the catalogue → its first reason; the parts stand one after the other there"""
_NOT_OF_RELYING_PARTIES: Final = frozenset({Reason.API_CLIENT_ENTITY, Reason.PROVISIONING_TOKEN})
_LIVE: Final = (Reason.GENERATION_WITHDRAWN, Reason.SCOPE_WITHDRAWN, Reason.PERSON_MAY_NOT_ACT)
"""what is looked at again at token and resources (D50)"""
_ANYWHERE: Final = ("invalid_request", "misdirected_request", "server_error", "temporarily_unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter or header of a request."""

    name: str
    required: bool
    value: str
    meaning: str
    condition: str = ""
    """when it is required or refused otherwise"""
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """A successful answer."""

    status: int
    content_type: str
    record: Record | None
    headers: Mapping[str, str]
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint of one generation."""

    name: str
    title: str
    path: str
    methods: tuple[str, ...]
    metadata: str
    """its member of the discovery document"""
    authentication: str
    limit: str
    headers: tuple[Parameter, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    success: Success
    error: Record
    """the form of an error"""
    codes: tuple[str, ...]
    """error codes, without those of every endpoint"""
    reasons: tuple[Reason, ...]
    statuses: Mapping[str, int]
    """error code → status if it is not the usual one"""
    decided: Mapping[Reason, str] = field(default_factory=dict)
    """reason → its error here, if it has another one elsewhere and the codes do not tell"""
    examples: tuple[str, ...]
    """names of recorded exchanges"""

    def errors(self) -> dict[str, tuple[Reason, ...]]:
        """Error code → its reasons here."""
        codes = tuple(dict.fromkeys((*self.codes, *_ANYWHERE)))
        found = {
            code: tuple(
                each for each in self.reasons if code in each.value.errors and self.decided.get(each, code) == code
            )
            for code in codes
        }
        return {code: reasons for code, reasons in found.items() if reasons}

    def status(self, code: str) -> int:
        """The HTTP status of an error here."""
        if code in self.statuses:
            return self.statuses[code]
        return CLASSES[code].status if code in CLASSES else 421


@cache
def _part(*names: str) -> tuple[Reason, ...]:
    every, starts = list(Reason), [*_STARTS.values(), None]
    found: list[Reason] = []
    for name, (first, following) in zip(_STARTS, pairwise(starts), strict=True):
        if name in names and first is not None:
            end = every.index(following) if following is not None else len(every)
            found += [each for each in every[every.index(first) : end] if each not in _NOT_OF_RELYING_PARTIES]
    return tuple(found)


def _content(generation: Generation) -> tuple[Reason, ...]:
    """The reasons that concern the content of a generation's authorization request."""
    possible = {reason for each in PARAMETERS if generation.pushed or not each.pushed_only for reason in each.reasons}
    never = {reason for each in PARAMETERS for reason in each.reasons} - possible
    if "authentication_context_type" not in generation.required_parameters:
        never.add(Reason.CONTEXT_TYPE_MISSING)
    if not generation.unknown_acr_refused:
        never.add(Reason.ACR_VALUES)
    return _without(_part("request"), *never)


def _without(reasons: tuple[Reason, ...], *never: Reason) -> tuple[Reason, ...]:
    return tuple(each for each in reasons if each not in never)


_OF_CLIENT: Final = (Reason.CLIENT_DISABLED, Reason.CLIENT_OF_ANOTHER_ISSUER)
"""of a client that is known and not served: no authentication fails at authorize"""


def _decided(endpoint: str, generation: Generation) -> dict[Reason, str]:
    """The error of each reason that has several, at one endpoint."""
    found = dict.fromkeys(_OF_CLIENT, "invalid_request" if endpoint == "authorize" else "invalid_client")
    found[Reason.CLIENT_ENCRYPTION_KEY_MISSING] = (
        "invalid_request" if endpoint in {"par", "authorize"} else "server_error"
    )
    if endpoint == "token":
        found[Reason.REDIRECT_URI_NOT_REGISTERED] = "invalid_grant"
        found[Reason.VERIFIER_MALFORMED] = generation.bad_verifier_code
    if endpoint == "authorize":
        found[Reason.SIGN_IN_ENDED] = "invalid_request_uri" if generation.pushed else "access_denied"
        found[Reason.REQUEST_OBJECT] = "request_not_supported"
        found[Reason.REQUEST_OBJECT_BY_REFERENCE] = "request_uri_not_supported"
    return found


_OF_JKT: Final = (Reason.JKT_MALFORMED, Reason.JKT_OF_ANOTHER_KEY)
"""of the parameter dpop_jkt"""


def _client_authentication(*, client_id: bool) -> tuple[Parameter, ...]:
    return (
        Parameter(
            name="client_id",
            required=client_id,
            value="your `client_id`",
            meaning="The client; equals `iss` and `sub` of the assertion.",
        ),
        Parameter(
            name="client_assertion_type", required=True, value=f"`{ASSERTION_TYPE}`", meaning="Kind of the assertion."
        ),
        Parameter(
            name="client_assertion",
            required=True,
            value="signed JWT",
            meaning="Proves the client; see [client assertion](#client-assertion).",
        ),
        Parameter(
            name="client_secret",
            required=False,
            refused=True,
            value="",
            meaning="Another method of client authentication in addition to the assertion is refused.",
        ),
    )


def _request(generation: Generation, *, pushed_only: bool = False) -> tuple[Parameter, ...]:
    """The parameters of an authorization request, pushed or in the query; or those that are only pushed."""
    return tuple(
        Parameter(
            name=each.name,
            required=each.is_required(generation),
            refused=each.refused,
            value=_said(each.value, generation)
            or (f"1 to {each.limit} printable ASCII characters" if each.limit else ""),
            meaning=_said(each.meaning, generation),
            condition=_said(each.condition, generation),
        )
        for each in PARAMETERS
        if each.pushed_only == pushed_only
    )


def _said(documented: Documented, generation: Generation) -> str:
    return documented(generation) if callable(documented) else documented


CONTENT_TYPE: Final = Parameter(
    name="Content-Type", required=True, value=f"`{FORM}`", meaning="A `charset` is accepted."
)


def _dpop(generation: Generation, *, required: bool, condition: str = "", ath: bool = False) -> tuple[Parameter, ...]:
    if not generation.sender_constrained:
        return ()
    return (
        Parameter(
            name="DPoP",
            required=required,
            condition=condition,
            value="signed JWT",
            meaning=f"[DPoP proof](#dpop-proof){' with `ath`' if ath else ''}; one key from PAR to userinfo.",
        ),
    )


_NOT_CACHED: Final[Mapping[str, str]] = {"cache-control": "no-store", "pragma": "no-cache"}
_CACHED: Final[Mapping[str, str]] = {
    "cache-control": f"public, max-age={METADATA_CACHE_SECONDS}", "access-control-allow-origin": "*",
}  # fmt: skip


def par(generation: Generation) -> Endpoint:
    """The PAR endpoint (Spec 4.1)."""
    condition = "or the parameter `dpop_jkt`" if generation.key_binding_required else ""
    return Endpoint(
        name="par",
        title="Pushed authorization request",
        path=PAR_PATH,
        methods=("POST",),
        metadata="pushed_authorization_request_endpoint",
        authentication="`private_key_jwt`",
        limit="settings `par_per_client` and `par_per_address`, per minute",
        headers=(CONTENT_TYPE, *_dpop(generation, required=generation.key_binding_required, condition=condition)),
        parameters=(
            *_client_authentication(client_id=True),
            *_request(generation),
            *_request(generation, pushed_only=True),
        ),
        success=Success(
            status=201,
            content_type=JSON,
            record=answers.PAR,
            headers=_NOT_CACHED,
            about="Send the browser to the authorization endpoint.",
        ),
        error=answers.PAR_ERROR,
        codes=(
            "invalid_request",
            "invalid_client",
            "unauthorized_client",
            "invalid_scope",
            "invalid_dpop_proof",
            "use_dpop_nonce",
        ),
        reasons=(
            *_part("http", "client authentication"),
            *_without(_part("dpop"), Reason.PROOF_TOKEN_HASH),
            *_content(generation),
        ),
        statuses=generation.statuses,
        decided=_decided("par", generation),
        examples=("par", "par error"),
    )


def authorization(generation: Generation) -> Endpoint:
    """The authorization endpoint (Spec 4.2)."""
    client_id = Parameter(
        name="client_id", required=True, value="your `client_id`", meaning="The client. Unknown: an error page."
    )
    reference = Parameter(
        name="request_uri",
        required=True,
        value="as PAR returned it",
        meaning=f"The pushed request; the browser must arrive within {REQUEST_URI_SECONDS} seconds.",
    )
    own = (client_id, reference) if generation.pushed else (client_id, *_request(generation))
    objects = () if generation.pushed else ("request_not_supported", "request_uri_not_supported", "invalid_scope")
    content = () if generation.pushed else _content(generation)
    posts = "form_post" in generation.response_modes
    posted = " With `response_mode=form_post` a page (200) posts them as a form." if posts else ""
    return Endpoint(
        name="authorize",
        title="Authorization",
        path=AUTHORIZATION_PATH,
        methods=("GET", "POST"),
        metadata="authorization_endpoint",
        authentication="the person signs in; the browser's cookies",
        limit="setting `sign_in_per_address`, per minute",
        parameters=own,
        success=Success(
            status=302,
            content_type="",
            record=answers.callback(generation),
            headers={"cache-control": "no-store"},
            about="After the sign-in's pages (first a 303 to them), the browser is sent to your redirect URI with these parameters. "
            f"A POST is sent on to the GET.{posted}",
        ),
        error=answers.callback_error(generation),
        codes=(
            "invalid_request", "invalid_request_uri", *objects, "access_denied", "login_required", "consent_required",
            "interaction_required",
        ),
        reasons=(
            *_part("http", "authorize", "sign-in"),
            *_OF_CLIENT,
            *content,
            *((Reason.REDIRECT_URI_NOT_REGISTERED,) if generation.pushed else (Reason.CLIENT_KEYS_UNAVAILABLE, Reason.CLIENT_ENCRYPTION_KEY_MISSING)),
        ),
        statuses={},
        decided=_decided("authorize", generation),
        examples=("callback", "callback error"),
    )  # fmt: skip


def token(generation: Generation) -> Endpoint:
    """The token endpoint (Spec 4.3)."""
    pkce = not generation.pkce_optional
    return Endpoint(
        name="token",
        title="Token",
        path=TOKEN_PATH,
        methods=("POST",),
        metadata="token_endpoint",
        authentication="`private_key_jwt`",
        limit="settings `token_per_client` and `token_per_address`, per minute",
        headers=(CONTENT_TYPE, *_dpop(generation, required=True)),
        parameters=(
            Parameter(name="grant_type", required=True, value="`authorization_code`", meaning="The only grant."),
            Parameter(
                name="code",
                required=True,
                value="as the callback had it",
                meaning=f"The code: within {CODE_SECONDS} seconds, once. A second use revokes the first one's token.",
            ),
            Parameter(name="redirect_uri", required=True, value="URL", meaning="That of the authorization request."),
            Parameter(
                name="code_verifier",
                required=pkce,
                condition="" if pkce else "required if the request had a `code_challenge`",
                value="43 to 128 letters, digits and `- . _ ~`",
                meaning="Its SHA-256 is the `code_challenge`."
                 f" Missing or malformed: `{generation.bad_verifier_code}`.",
            ),
            *_client_authentication(client_id=False),
        ),
        success=Success(
            status=200, content_type=JSON, record=answers.token(generation), headers=_NOT_CACHED, about="Decrypt and verify the ID token before you use it."
        ),
        error=answers.ERROR,
        codes=(
            "invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type",
            *(("invalid_dpop_proof", "use_dpop_nonce") if generation.sender_constrained else ()),
        ),
        reasons=(
            *_part("http", "client authentication", "token"),
            *(_without(_part("dpop"), *_OF_JKT, Reason.PROOF_TOKEN_HASH) if generation.sender_constrained else ()),
            Reason.REDIRECT_URI_NOT_REGISTERED,
            *_LIVE,
        ),
        statuses=generation.statuses,
        decided=_decided("token", generation),
        examples=("token", "token error"),
    )  # fmt: skip


def resource(generation: Generation, which: ProtectedResource) -> Endpoint:
    """A protected resource (Spec 4.4, 4.5, D26)."""
    dpop = _dpop(generation, required=True, ath=True)
    scoped = ("insufficient_scope",) if which.entity_member else ()
    proofs = ("invalid_dpop_proof", "use_dpop_nonce") if generation.sender_constrained else ()
    unmet = Reason.ACCESS_TOKEN_IS_BOUND if generation.sender_constrained else Reason.ACCESS_TOKEN_KEY
    never = (unmet,) if scoped else (unmet, Reason.ACCESS_TOKEN_SCOPE)
    plain = "" if generation.userinfo_signed else " JSON instead, unless the client registered `userinfo_signing_alg`."
    return Endpoint(
        name=which.name,
        title=which.name,
        path=which.path,
        methods=("GET", "POST"),
        metadata=which.metadata_names[0],
        authentication=f"access token, scheme `{generation.scheme}`" + (", and a DPoP proof" if dpop else ""),
        limit="none of its own",
        headers=(
            Parameter(
                name="Authorization",
                required=True,
                value=f"`{generation.scheme}` and the access token",
                meaning="The scheme is the `token_type`; compared without case.",
            ),
            *dpop,
        ),
        success=Success(
            status=200,
            content_type=JWT if generation.userinfo_signed else JSON,
            record=answers.resource(generation, which),
            headers=_NOT_CACHED,
            about="A signed JWT: verify it. Nested in a JWE if the client registered `userinfo_encryption_enc`."
            f"{plain} The body of a POST is not read.",
        ),
        error=answers.ERROR,
        codes=("credentials_required", "invalid_request", "invalid_token", *proofs, *scoped),
        reasons=(
            *_part("http"),
            *(_without(_part("dpop"), *_OF_JKT) if generation.sender_constrained else ()),
            *_without(_part("resource"), *never),
            *_LIVE,
            Reason.CLIENT_KEYS_UNAVAILABLE,
            Reason.CLIENT_ENCRYPTION_KEY_MISSING,
        ),
        statuses=RESOURCE_STATUS,
        decided=_decided(which.name, generation),
        examples=(which.name, "resource error", "resource without credentials"),
    )


def _public(
    name: str, title: str, path: str, metadata: str, success: Success, *, examples: tuple[str, ...]
) -> Endpoint:
    return Endpoint(
        name=name,
        title=title,
        path=path,
        methods=("GET",),
        metadata=metadata,
        authentication="none",
        limit="none of its own",
        success=success,
        error=answers.ERROR,
        codes=(),
        reasons=_part("http"),
        statuses={},
        examples=examples,
    )


def endpoints(generation: Generation) -> tuple[Endpoint, ...]:
    """Every endpoint of a generation that is served alone, in the order of a sign-in."""
    healthy = Success(
        status=200, content_type=JSON, record=answers.HEALTH, headers={"cache-control": "no-store"}, about=""
    )
    return (
        _public(
            "discovery", "Discovery", DISCOVERY_PATH, "",
            Success(
                status=200, content_type=f"{JSON}; charset=utf-8", record=answers.metadata(generation), headers=_CACHED,
                about="Keep it for an hour.",
            ),
            examples=("discovery",),
        ),
        *((par(generation),) if generation.pushed else ()),
        authorization(generation),
        token(generation),
        *(resource(generation, each) for each in generation.resources),
        _public(
            "keys", "Signing keys", JWKS_PATH, "jwks_uri",
            Success(
                status=200, content_type="application/jwk-set+json; charset=utf-8", record=answers.keys(generation),
                headers=_CACHED, about="Keep it for an hour; fetch it again at once for an unknown `kid`.",
            ),
            examples=("keys",),
        ),
        *(
            _public(path.removeprefix("/"), f"Health: {path}", path, "", healthy, examples=(path,))
            for path in HEALTH_PATHS
        ),
    )  # fmt: skip
