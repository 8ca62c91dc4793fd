"""The checks of each endpoint, in order, with their reasons.

The inspector of developer mode shows which of them a request passed, which one refused it, and which were not reached.
Each reason that an endpoint can end with stands in exactly one of its checks. Source: Spec "The order of a request",
D28, D66
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from corpid.rules.limits import CLOCK_AHEAD_SECONDS, CODE_SECONDS, PROOF_AGE_SECONDS, REQUEST_URI_SECONDS
from corpid.rules.oauth.authorization_request import PARAMETERS, RequestParameter
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Reason


class CheckState(StrEnum):
    """The state of a check after a request."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not reached"
    NOT_NEEDED = "not needed"
    """the request has nothing that it could check"""
    UNKNOWN = "not known"
    """something failed at the provider, or an order answered in its place"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of a request.

    `source` names what is looked at: `parameter.scope`, `assertion.aud`, `proof.header.typ`, `access_token.exp`,
    `header.authorization`. `expected` may name {method}, {url}, {issuer} and {client_id}.
    """

    name: str
    reasons: tuple[Reason, ...]
    source: str = ""
    expected: str = ""
    only_with: str = ""
    """a source without which there is nothing to check"""
    parameters: frozenset[str] = frozenset()
    """the parameters whose absence it finds; empty: of all that no other check of the endpoint names"""
    anywhere: bool = False
    """whether it may fail at any time, so that it says nothing of other checks"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroup:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


def _check(
    name: str,
    *reasons: Reason,
    source: str = "",
    expected: str = "",
    only_with: str = "",
    parameters: Collection[str] = (),
) -> Check:
    return Check(
        name=name,
        reasons=reasons,
        source=source,
        expected=expected,
        only_with=only_with,
        parameters=frozenset(parameters),
    )


def _parameters_by_reasons() -> list[list[RequestParameter]]:
    """Parameters with a reader; texts share a reason, and so a check."""
    found: dict[tuple[Reason, ...], list[RequestParameter]] = {}
    for each in PARAMETERS:
        if each.read is not None:
            found.setdefault(each.reasons, []).append(each)
    return list(found.values())


def _check_of(first: RequestParameter, *others: RequestParameter) -> Check:
    """The check of a parameter, or of all texts together."""
    names = [each.name for each in (first, *others)]
    may_be_required = any(first.is_required(generation) for generation in GENERATIONS.values())
    return _check(
        f"{', '.join(names[:-1])} and {names[-1]} are short and printable" if others else first.check or first.name,
        *first.reasons,
        source=", ".join(f"parameter.{name}" for name in names),
        expected=first.expected,
        only_with="" if may_be_required else f"parameter.{first.name}",
    )


_R = Reason
_DPOP: Final = "header.dpop"
# fmt: off
_HTTP: Final = (
    _check("A valid HTTP/1.1 request, in time and not too long", _R.HTTP_MALFORMED, _R.HTTP_NOT_SUPPORTED,
           _R.HTTP_TOO_SLOW, _R.HTTP_HEAD_TOO_LARGE, _R.HTTP_BODY_TOO_LARGE),
    _check("One Host header, with the name of the issuer", _R.HOST_NOT_EXACTLY_ONE, _R.HOST_UNKNOWN,
           source="header.host", expected="{host}"),
    _check("Path and method", _R.PATH_UNKNOWN, _R.METHOD_NOT_ALLOWED, source="method"),
)
_AVAILABLE: Final = _check("The provider takes requests", _R.BUSY, _R.MAINTENANCE)
_FORM: Final = _check("The body is a whole form", _R.BODY_NOT_A_FORM, _R.BODY_ENCODED, _R.BODY_INCOMPLETE,
                      source="header.content-type", expected="application/x-www-form-urlencoded")
_ENCODING: Final = _check("Not too many parameters, encoded in UTF-8", _R.PARAMETERS_TOO_MANY,
                          _R.PARAMETERS_NOT_UTF_8, _R.PARAMETERS_BADLY_ENCODED)
_ONCE: Final = _check("Each parameter once", _R.PARAMETER_REPEATED)
_FAILURES: Final = CheckGroup(title="The provider itself", checks=(
    Check(name="Nothing failed at the provider", reasons=(_R.STORE_UNAVAILABLE, _R.DATA_LOST, _R.UNFORESEEN), anywhere=True),
))

_AUTHENTICATION: Final = CheckGroup(title="Client authentication", checks=(
    _check("Requests of this address are within the limit", _R.RATE_LIMIT_OF_ADDRESS),
    _check("One way to authenticate", _R.CLIENT_AUTHENTICATION_TWICE),
    _check("client_assertion_type", _R.ASSERTION_TYPE, source="parameter.client_assertion_type",
           expected="urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
    _check("client_assertion is there", _R.ASSERTION_MISSING),
    _check("The assertion is a JWT whose members have the right types", _R.ASSERTION_MALFORMED),
    _check("typ of the assertion", _R.ASSERTION_JWT_TYPE, source="assertion.header.typ",
           expected="JWT, client-authentication+jwt, or none"),
    _check("alg of the assertion", _R.ASSERTION_ALGORITHM, source="assertion.header.alg",
           expected="one of token_endpoint_auth_signing_alg_values_supported"),
    _check("iss and sub of the assertion are the client_id", _R.ASSERTION_ISSUER, source="assertion.iss, assertion.sub"),
    _check("aud of the assertion is the issuer", _R.ASSERTION_AUDIENCE, source="assertion.aud", expected="{issuer}"),
    _check("The assertion has a jti", _R.ASSERTION_JTI_MISSING, source="assertion.jti"),
    _check("The assertion has an exp", _R.ASSERTION_EXP_MISSING, source="assertion.exp"),
    _check("The assertion has an iat", _R.ASSERTION_IAT_MISSING, source="assertion.iat"),
    _check("The assertion has not expired", _R.ASSERTION_EXPIRED, source="assertion.exp", expected="after {now}"),
    _check("The assertion is not from the future", _R.ASSERTION_IN_THE_FUTURE, source="assertion.iat",
           expected=f"at most {CLOCK_AHEAD_SECONDS} s after {{now}}"),
    _check("The assertion lives briefly", _R.ASSERTION_LIFETIME, source="assertion.iat, assertion.exp"),
    _check("client_id is the sub of the assertion", _R.ASSERTION_CLIENT_ID, source="parameter.client_id",
           expected="{assertion.sub}", only_with="parameter.client_id"),
    _check("The client is registered here, and enabled", _R.CLIENT_UNKNOWN, _R.CLIENT_DISABLED,
           _R.CLIENT_OF_ANOTHER_ISSUER, source="client_id"),
    _check("The client may name this audience", _R.ASSERTION_AUDIENCE_ENDPOINT, source="assertion.aud",
           expected="{issuer}"),
    _check("The key set of the client can be used", _R.CLIENT_KEYS_UNAVAILABLE, _R.CLIENT_SIGNING_KEY_MISSING),
    _check("A registered key has the kid and alg of the assertion", _R.ASSERTION_KEY,
           source="assertion.header.kid, assertion.header.alg"),
    _check("The registered key verifies the signature", _R.ASSERTION_SIGNATURE, source="assertion.header.kid"),
    _check("Requests of this client are within the limit", _R.RATE_LIMIT_OF_CLIENT),
))

_PROOF: Final = (
    _check("One DPoP header", _R.PROOF_REPEATED_HEADER, only_with=_DPOP),
    _check("The proof is a JWT whose members have the right types", _R.PROOF_MALFORMED, only_with=_DPOP),
    _check("typ of the proof", _R.PROOF_JWT_TYPE, source="proof.header.typ", expected="dpop+jwt", only_with=_DPOP),
    _check("alg of the proof", _R.PROOF_ALGORITHM, source="proof.header.alg",
           expected="one of dpop_signing_alg_values_supported", only_with=_DPOP),
    _check("jwk of the proof is a public key", _R.PROOF_KEY, source="proof.header.jwk", only_with=_DPOP),
    _check("The proof has a jti", _R.PROOF_JTI_MISSING, source="proof.jti", only_with=_DPOP),
    _check("htm of the proof is the method", _R.PROOF_METHOD, source="proof.htm", expected="{method}",
           only_with=_DPOP),
    _check("htu of the proof is the URL", _R.PROOF_URL, source="proof.htu", expected="{url}", only_with=_DPOP),
    _check("The proof has an iat", _R.PROOF_IAT_MISSING, source="proof.iat", only_with=_DPOP),
    _check("The proof is not old", _R.PROOF_TOO_OLD, source="proof.iat",
           expected=f"at most {PROOF_AGE_SECONDS} s before {{now}}", only_with=_DPOP),
    _check("The proof is not from the future", _R.PROOF_IN_THE_FUTURE, source="proof.iat",
           expected=f"at most {CLOCK_AHEAD_SECONDS} s after {{now}}", only_with=_DPOP),
)
_PROOF_END: Final = (
    _check("The key of the proof verifies its signature", _R.PROOF_SIGNATURE, only_with=_DPOP),
    _check("The proof has the server's nonce", _R.PROOF_NONCE, source="proof.nonce", only_with=_DPOP),
)
_PROOF_MISSING: Final = _check("A DPoP proof is there, if the interface needs one", _R.PROOF_MISSING, source=_DPOP)
_ONE_TIME: Final = CheckGroup(title="What works once", checks=(
    _check("The proof was not used before", _R.PROOF_REPLAYED, source="proof.jti", only_with=_DPOP),
    _check("The assertion was not used before", _R.ASSERTION_REPLAYED, source="assertion.jti"),
))

_OBJECTS: Final = (
    _check("response_mode", _R.RESPONSE_MODE, source="parameter.response_mode",
           expected="one of response_modes_supported", only_with="parameter.response_mode"),
    _check("No request object", _R.REQUEST_OBJECT, source="parameter.request", expected="none"),
)
_OBJECT_BY_REFERENCE: Final = _check("No request object by reference", _R.REQUEST_OBJECT_BY_REFERENCE)
_SCOPES: Final = (
    _check("scope is a list of names", _R.SCOPE_MALFORMED, source="parameter.scope"),
    _check("scope contains openid", _R.SCOPE_WITHOUT_OPENID, source="parameter.scope", expected="openid ..."),
    _check("The scopes are known here", _R.SCOPE_UNKNOWN, source="parameter.scope",
           expected="of scopes_supported"),
    _check("The client is registered for the scopes", _R.SCOPE_NOT_REGISTERED, source="parameter.scope"),
)
_REDIRECT_URI: Final = _check("redirect_uri is registered, character by character", _R.REDIRECT_URI_NOT_REGISTERED,
                              source="parameter.redirect_uri")
_CONTENT: Final = (
    _check("response_type", _R.RESPONSE_TYPE, source="parameter.response_type", expected="code"),
    _check("code_challenge_method", _R.CHALLENGE_METHOD, source="parameter.code_challenge_method", expected="S256"),
    _check("code_challenge", _R.CHALLENGE_MALFORMED, source="parameter.code_challenge",
           expected="43 characters of base64url"),
    *(_check_of(*group) for group in _parameters_by_reasons()),
)
_ENCRYPTION_KEY: Final = _check("The client has a key to encrypt for, if it needs one",
                                _R.CLIENT_ENCRYPTION_KEY_MISSING)

PAR: Final = (
    CheckGroup(title="Request", checks=(*_HTTP, _FORM, _AVAILABLE, _ENCODING, _ONCE)),
    _AUTHENTICATION,
    CheckGroup(title="Client", checks=(
        _check("The client is registered for this interface", _R.GENERATION_NOT_REGISTERED),
        _check("client_id is there", _R.PARAMETER_MISSING, source="parameter.client_id", parameters={"client_id"}),
    )),
    CheckGroup(title="DPoP", checks=(
        *_PROOF, *_PROOF_END,
        _check("dpop_jkt is a thumbprint", _R.JKT_MALFORMED, source="parameter.dpop_jkt",
               only_with="parameter.dpop_jkt"),
        _check("dpop_jkt is the thumbprint of the proof's key", _R.JKT_OF_ANOTHER_KEY, source="parameter.dpop_jkt",
               only_with="parameter.dpop_jkt"),
        _PROOF_MISSING,
    )),
    CheckGroup(title="Authorization request", checks=(
        *_OBJECTS, _OBJECT_BY_REFERENCE, _check("Every required parameter is there", _R.PARAMETER_MISSING), *_SCOPES,
        _REDIRECT_URI, *_CONTENT, _ENCRYPTION_KEY,
    )),
    _ONE_TIME,
    _FAILURES,
)
_QUERY: Final = "parameter.response_type"
_IN_QUERY: Final = tuple(
    _check(each.name, *each.reasons, source=each.source, expected=each.expected, only_with=each.only_with or _QUERY)
    for each in (*_OBJECTS, _OBJECT_BY_REFERENCE, *_SCOPES, *_CONTENT)
)
SIGN_IN: Final = CheckGroup(title="Sign-in", checks=(
    _check("The second factor is right", _R.SECOND_FACTOR_FAILED),
    _check("The person goes on", _R.CANCELLED),
    _check("The person can act for an entity that the client accepts", _R.NO_ENTITY),
    _check("The sign-in has not ended before", _R.SIGN_IN_ENDED, _R.SIGN_IN_REFUSED),
    _check("The client is still registered", _R.CLIENT_GONE),
    _check("The client may still use the interface", _R.GENERATION_WITHDRAWN),
    _check("The client may still ask for the scopes", _R.SCOPE_WITHDRAWN),
    _check("The sign-in reached the assurance level", _R.ASSURANCE_LEVEL),
    _check("The person may act for the entity", _R.PERSON_MAY_NOT_ACT),
))
"""what is known once the person has signed in"""
AUTHORIZE: Final = (
    CheckGroup(title="Request", checks=(
        *_HTTP, _AVAILABLE,
        _check("Sign-ins from here are within the limit", _R.RATE_LIMIT_OF_ADDRESS, _R.RATE_LIMIT_OF_NETWORK,
               _R.RATE_LIMIT_OF_ALL),
        _check("A form holds the parameters of a request", _R.BODY_NOT_A_FORM, _R.BODY_ENCODED, _R.BODY_INCOMPLETE,
               _R.QUERY_TOO_LONG, _R.QUERY_EMPTY, only_with="header.content-type"),
        _ENCODING, _ONCE,
        _check("client_id is there", _R.PARAMETER_MISSING, source="parameter.client_id", parameters={"client_id"}),
        _check("The client is registered here, and enabled", _R.CLIENT_ID_UNKNOWN, _R.CLIENT_DISABLED,
               _R.CLIENT_OF_ANOTHER_ISSUER, source="parameter.client_id"),
    )),
    CheckGroup(title="Authorization request", checks=(
        _check("The client may send the request in the query, if it does", _R.QUERY_NOT_REGISTERED, only_with=_QUERY),
        _check("The request was pushed, if it must be", _R.REQUEST_NOT_PUSHED, source="parameter.request_uri"),
        _check("Every required parameter is there", _R.PARAMETER_MISSING),
        _check("request_uri is one of this provider", _R.REQUEST_URI_FOREIGN, source="parameter.request_uri",
               expected="urn:ietf:params:oauth:request_uri:...", only_with="parameter.request_uri"),
        _check("request_uri was pushed by this client", _R.REQUEST_URI_OF_ANOTHER_CLIENT, source="parameter.client_id",
               only_with="parameter.request_uri"),
        _check("request_uri is stored", _R.REQUEST_URI_UNKNOWN, only_with="parameter.request_uri"),
        _REDIRECT_URI, *_IN_QUERY,
        _check("The key set of the client can be used", _R.CLIENT_KEYS_UNAVAILABLE, only_with=_QUERY),
        _check(_ENCRYPTION_KEY.name, *_ENCRYPTION_KEY.reasons, only_with=_QUERY),
        _check("The request was not completed before", _R.REQUEST_ALREADY_COMPLETED),
        _check("request_uri has not expired", _R.REQUEST_URI_EXPIRED, expected=f"within {REQUEST_URI_SECONDS} s",
               only_with="parameter.request_uri"),
        _check("With prompt=none: nothing has to be asked", _R.LOGIN_REQUIRED, _R.CONSENT_REQUIRED,
               _R.ENTITY_CHOICE_REQUIRED, _R.PAGE_REQUIRED),
        _check("Not in too many browsers", _R.REQUEST_IN_TOO_MANY_BROWSERS, _R.SIGN_INS_AT_ONCE,
               _R.SIGN_IN_IN_ANOTHER_BROWSER),
    )),
    SIGN_IN,
    _FAILURES,
)
TOKEN: Final = (
    CheckGroup(title="Request", checks=(
        *_HTTP, _AVAILABLE, _FORM, _ENCODING, _ONCE,
        _check("Every required parameter is there", _R.PARAMETER_MISSING),
        _check("grant_type", _R.GRANT_TYPE, source="parameter.grant_type", expected="authorization_code"),
        _check("code_verifier", _R.VERIFIER_MALFORMED, source="parameter.code_verifier",
               expected="43 to 128 unreserved characters"),
        _check("The code is no longer than one of ours", _R.CODE_MALFORMED),
    )),
    _AUTHENTICATION,
    CheckGroup(title="DPoP", checks=(*_PROOF, *_PROOF_END, _PROOF_MISSING)),
    CheckGroup(title="Client", checks=(_ENCRYPTION_KEY,)),
    _ONE_TIME,
    CheckGroup(title="Code", checks=(
        _check("The code was issued to this client", _R.CODE_OF_ANOTHER_CLIENT, source="client_id"),
        _check("The code was not presented before", _R.CODE_REDEEMED),
        _check("The code has not expired", _R.CODE_EXPIRED, expected=f"within {CODE_SECONDS} s"),
        _check("code_verifier is that of the code_challenge", _R.CODE_VERIFIER),
        _check("The code is stored", _R.CODE_UNKNOWN),
        _check("redirect_uri is that of the request", _R.CODE_REDIRECT_URI, source="parameter.redirect_uri"),
        _check("The key of the proof is that of the request", _R.CODE_KEY, source="proof.header.jwk",
               only_with=_DPOP),
        _check("The client may still use the interface", _R.GENERATION_WITHDRAWN),
        _check("redirect_uri is still registered", _R.REDIRECT_URI_NOT_REGISTERED, source="parameter.redirect_uri"),
        _check("The client may still ask for the scopes", _R.SCOPE_WITHDRAWN),
        _check("The person may act for the entity", _R.PERSON_MAY_NOT_ACT),
    )),
    _FAILURES,
)
RESOURCE: Final = (
    CheckGroup(title="Request", checks=(
        *_HTTP,
        _check("An Authorization header is there", _R.CREDENTIALS_MISSING, source="header.authorization"),
        _check("The scheme is the token_type", _R.CREDENTIALS_SCHEME, source="scheme"),
        _AVAILABLE,
        _check("One Authorization header", _R.CREDENTIALS_REPEATED),
    )),
    CheckGroup(title="Access token", checks=(
        _check("The access token is a JWT", _R.ACCESS_TOKEN_MALFORMED),
        _check("The access token is this provider's", _R.ACCESS_TOKEN_FOREIGN,
               source="access_token.header.typ, access_token.iss", expected="at+jwt, {issuer}"),
        _check("aud of the access token contains this resource", _R.ACCESS_TOKEN_AUDIENCE, source="access_token.aud",
               expected="{url}"),
        _check("The access token has not expired", _R.ACCESS_TOKEN_EXPIRED, source="access_token.exp",
               expected="after {now}"),
    )),
    CheckGroup(title="DPoP", checks=(
        *_PROOF,
        _check("ath of the proof is the hash of the access token", _R.PROOF_TOKEN_HASH, source="proof.ath",
               only_with=_DPOP),
        *_PROOF_END, _PROOF_MISSING,
        _check("A bound access token comes with its proof", _R.ACCESS_TOKEN_IS_BOUND, source="access_token.cnf"),
        _check("The access token is bound to the key of the proof", _R.ACCESS_TOKEN_KEY, source="access_token.cnf",
               only_with=_DPOP),
    )),
    CheckGroup(title="What the token allows", checks=(
        _check("The access token has a scope for this resource", _R.ACCESS_TOKEN_SCOPE, source="access_token.scope"),
        _check("The access token is younger than the last loss of data", _R.ACCESS_TOKEN_BEFORE_RESTART),
            _check("The proof was not used before", _R.PROOF_REPLAYED, source="proof.jti", only_with=_DPOP),
        _check("The access token is not revoked", _R.ACCESS_TOKEN_REVOKED),
        _check("The client is registered, and enabled", _R.ACCESS_TOKEN_CLIENT, source="access_token.client_id"),
        _check("The client may still use the interface", _R.GENERATION_WITHDRAWN),
        _check("The client may still ask for the scopes", _R.SCOPE_WITHDRAWN, source="access_token.scope"),
        _check("The person may act for the entity", _R.PERSON_MAY_NOT_ACT),
        _check("The key set of the client can be used", _R.CLIENT_KEYS_UNAVAILABLE),
        _ENCRYPTION_KEY,
    )),
    _FAILURES,
)
_DOCUMENT: Final = (CheckGroup(title="Request", checks=(*_HTTP, _AVAILABLE)), _FAILURES)
# fmt: on

CHECKS: Final[Mapping[str, tuple[CheckGroup, ...]]] = MappingProxyType(
    {
        "discovery": _DOCUMENT,
        "metadata": _DOCUMENT,
        "jwks": _DOCUMENT,
        "par": PAR,
        "authorize": AUTHORIZE,
        "callback": AUTHORIZE,
        "token": TOKEN,
        "userinfo": RESOURCE,
        "authorization-info": RESOURCE,
        "entity-info": RESOURCE,
    }
)
"""endpoint → its checks"""
_MISSING: Final = re.compile(r"parameter ([A-Za-z_]+) is missing")


def failed_check(endpoint: str, reason: str, detail: str = "") -> Check | None:
    """The check of an endpoint that ends with a reason.

    None if there is none. `detail` names the parameter that is missing. Source: D28
    """
    every = [each for part in CHECKS[endpoint] for each in part.checks]
    found = [each for each in every if reason in {one.code for one in each.reasons}]
    missing = _MISSING.search(detail)
    named = [each for each in found if missing and missing[1] in each.parameters]
    return next(iter(named or [each for each in found if not each.parameters] or found), None)


def states(
    endpoint: str, reason: str, *, present: Collection[str], detail: str = "", known: bool = True, pending: bool = False
) -> list[tuple[CheckGroup, list[tuple[Check, CheckState]]]]:
    """The state of each check after a request.

    `reason` is that of its refusal, empty without one; `present` are the sources that the request has; `known` is false
    if an order answered; `pending` if the person has still to sign in. Source: Spec "The order of a request", D66
    """
    failed = failed_check(endpoint, reason, detail) if reason else None
    if (reason and (failed is None or failed.anywhere)) or not known:
        rest, after = CheckState.UNKNOWN, CheckState.UNKNOWN
    else:
        rest, after = CheckState.PASSED, CheckState.NOT_REACHED
    found: list[tuple[CheckGroup, list[tuple[Check, CheckState]]]] = []
    reached = True
    for part in CHECKS[endpoint]:
        later = pending and part is SIGN_IN
        judged = []
        for check in part.checks:
            state = rest if reached and not later else after
            if check is failed:
                state, reached = CheckState.FAILED, False
            elif state is CheckState.PASSED and check.only_with and check.only_with not in present:
                state = CheckState.NOT_NEEDED
            judged.append((check, state))
        found.append((part, judged))
    return found
