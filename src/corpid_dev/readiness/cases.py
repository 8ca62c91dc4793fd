"""The cases of the readiness report, declared once.

The driver, the judging, the report, the table in docs/readiness.md and the relying parties that are broken on purpose
take their cases from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from corpid_dev.readiness.case import (
    ALG,
    ASSERTION_SECONDS,
    AT_HASH,
    CACHE,
    FAPI,
    ID_TOKEN,
    ISS,
    RESOURCE,
    STATE,
    SUB,
    TOKEN_REQUESTS,
    UNKNOWN_KEY,
    USERINFO,
    Case,
    OpenedIn,
    Source,
    assertions_short,
    at_most,
    code_sent_once,
    core,
    fresh,
    law,
    no_crash,
    no_roles,
    no_token_request,
    proof_keys_fresh,
    refused,
    rfc,
    s256,
    session_begins,
    stays_here,
)

if TYPE_CHECKING:
    from corpid_dev.readiness.observation import Expectation

_CLIENT: Final = "compare it with your client_id"


def _order(name: str, **members: object) -> Mapping[str, Any]:
    return MappingProxyType({"order": name, **members})


def _callback(
    case_id: str,
    title: str,
    fix: str,
    sources: tuple[Source, ...],
    *orders: Mapping[str, Any],
    **more: Any,
) -> Case:
    """A case in which the callback is not what the provider sent."""
    expects = (refused, no_token_request)
    return Case(id=case_id, title=title, expects=expects, fix=fix, sources=sources, orders=orders, **more)


def _id_token(case_id: str, title: str, fix: str, *sources: Source, advice: bool = False) -> Case:
    """A case in which the ID token is wrong in one way."""
    order = _order("token", token="id_token", fault=case_id.removeprefix("id-token-"))
    return Case(id=case_id, title=title, expects=(refused,), fix=fix, sources=sources, orders=(order,), advice=advice)


def _userinfo(
    case_id: str, fault: str, title: str, expects: tuple[Expectation, ...], fix: str, *sources: Source
) -> Case:
    """A case in which the answer of userinfo is unusual or wrong."""
    order = _order("token", token="userinfo", fault=fault)
    signed = fault in ("signature", "aud", "iss")
    return Case(
        id=case_id, title=title, expects=expects, fix=fix, sources=sources, orders=(order,), needs_signed=signed
    )


_SIGN_IN: Final = (
    Case(
        id="baseline",
        title="An ordinary sign-in: a session begins",
        expects=(session_begins,),
        fix="Nothing else can be judged until this works: /developer/traffic at the provider shows each request.",
        sources=(law("3"),),
    ),
    Case(
        id="pkce-fresh",
        title="Two sign-ins have two different code_challenge values, with S256",
        expects=(fresh("code_challenge"), s256),
        fix="Make a new code_verifier with a secure random generator for each request, and send its SHA-256.",
        sources=(rfc(7636, "4.1"), rfc(9700, "2.1.1"), FAPI),
        sign_ins=2,
    ),
    Case(
        id="state-fresh",
        title="Two sign-ins have different values of state and nonce, of 128 bits or more",
        expects=(fresh("state", "nonce"),),
        fix="Make state and nonce with a secure random generator for each request: 16 bytes or more.",
        sources=(rfc(6749, "10.10"), core("15.5.2", "NonceNotes")),
        sign_ins=2,
    ),
    Case(
        id="proof-key-fresh",
        title="Two sign-ins use two different DPoP keys",
        expects=(proof_keys_fresh,),
        fix="Make a DPoP key for each sign-in, so that what is bound to one user's key is of no use with another's.",
        sources=(rfc(9449, "11.1"),),
        sign_ins=2,
        advice=True,
    ),
    Case(
        id="assertions-short",
        title=f"Client assertions live {ASSERTION_SECONDS} seconds at most",
        expects=(assertions_short,),
        fix="Set exp of the client assertion to a minute after iat, and make a new one for each request.",
        sources=(rfc(7523, "3"), law("8")),
    ),
)

_CALLBACKS: Final = (
    _callback(
        "state-altered",
        "A callback with another state is refused",
        "Compare state with the value that you stored for this browser, before anything else.",
        STATE,
        _order("callback", fault="state"),
    ),
    _callback(
        "state-missing",
        "A callback without state is refused",
        "Treat a missing state as a wrong one.",
        STATE,
        _order("callback", fault="state-missing"),
    ),
    _callback(
        "iss-altered",
        "A callback that names another issuer is refused",
        "Compare iss of the callback with the issuer to which this browser was sent.",
        ISS,
        _order("callback", fault="iss"),
        needs_iss=True,
    ),
    _callback(
        "iss-missing",
        "A callback without iss is refused if the metadata promises it",
        "If authorization_response_iss_parameter_supported is true, refuse a callback without iss.",
        ISS,
        _order("callback", fault="iss-missing"),
        needs_iss=True,
    ),
    _callback(
        "error-callback",
        "A sign-in that the person cancelled ends at a page",
        "Look for error in the callback, and show a page that offers to try again.",
        (rfc(6749, "4.1.2.1"), law("4.2")),
        _order("callback", fault="error", error="access_denied"),
    ),
    _callback(
        "error-callback-state",
        "An error with another state is refused, too",
        "Check state before error, so that no other site can end somebody's sign-in.",
        STATE,
        _order("callback", fault="error-state", error="access_denied"),
    ),
    _callback(
        "other-browser",
        "A callback opened in another browser is refused (login CSRF)",
        "Keep state in a cookie, or in a session that a cookie names, and compare it with the callback's.",
        (rfc(9700, "4.7"), rfc(6749, "10.12")),
        opened_in=OpenedIn.OTHER,
    ),
    Case(
        id="callback-repeated",
        title="A callback that was used is refused in another browser",
        expects=(refused,),
        fix="Accept each state once and only in its browser; answer anything else with a page.",
        sources=(rfc(6749, "4.1.2"), rfc(9700, "4.7")),
        opened_in=OpenedIn.SAME_THEN_OTHER,
    ),
    Case(
        id="code-unknown",
        title="A code that the provider never issued ends at a page",
        expects=(refused,),
        fix="Treat invalid_grant of the token endpoint as a failed sign-in, and show a page.",
        sources=(rfc(6749, "5.2"),),
        orders=(_order("callback", fault="code"),),
    ),
)

_ID_TOKENS: Final = (
    _id_token(
        "id-token-signature",
        "An ID token with a wrong signature is refused",
        "Verify the signature with the key of the provider's set that kid names.",
        ID_TOKEN,
        law("4.7"),
    ),
    _id_token("id-token-alg-none", "An ID token without a signature is refused", "Allow ES256 and nothing else.", ALG),
    _id_token(
        "id-token-alg-hs256",
        "An ID token signed with the public key as a shared secret is refused",
        "Allow ES256 and nothing else; never take the algorithm from the token.",
        ALG,
    ),
    _id_token(
        "id-token-iss",
        "An ID token of another issuer is refused",
        "Compare iss with the provider's issuer, as a whole string.",
        ID_TOKEN,
    ),
    _id_token("id-token-aud", "An ID token for another client is refused", f"Check aud: {_CLIENT}.", ID_TOKEN),
    _id_token(
        "id-token-aud-further",
        "An ID token with a second, unknown audience is refused",
        "Accept aud only if it is your client_id alone.",
        ID_TOKEN,
        FAPI,
    ),
    _id_token(
        "id-token-nonce",
        "An ID token with another nonce is refused",
        "Compare nonce with the value that you stored for this browser.",
        ID_TOKEN,
    ),
    _id_token(
        "id-token-nonce-missing",
        "An ID token without a nonce is refused",
        "You sent a nonce: treat a missing one as a wrong one.",
        ID_TOKEN,
    ),
    _id_token(
        "id-token-at-hash",
        "An ID token with an at_hash of another access token is refused",
        "If at_hash is there, compare it with the left half of the access token's SHA-256.",
        AT_HASH,
        advice=True,
    ),
    _id_token(
        "id-token-exp", "An expired ID token is refused", "Check exp, with a minute of leeway at most.", ID_TOKEN
    ),
    _id_token(
        "id-token-iat",
        "An ID token issued an hour in the future is refused",
        "Refuse an iat that is more than a minute ahead of your clock.",
        ID_TOKEN,
        advice=True,
    ),
    Case(
        id="id-token-sub-missing",
        title="An ID token without sub is refused",
        expects=(refused,),
        fix="Require sub: without it nobody is named.",
        sources=(core("2", "IDToken"),),
        orders=(_order("token", token="id_token", fault="missing-claim", claim="sub"),),
    ),
    Case(
        id="id-token-other-key",
        title="An ID token encrypted to another key ends at a page",
        expects=(refused,),
        fix="Treat what cannot be decrypted as a failed sign-in, and show a page.",
        sources=(ID_TOKEN,),
        orders=(_order("token", token="id_token", fault="other-encryption-key"),),
    ),
    Case(
        id="id-token-not-encrypted",
        title="An ID token that is only signed is refused, since encryption was agreed",
        expects=(refused,),
        fix="If your client registered an encryption, refuse an ID token that is not a JWE.",
        sources=(ID_TOKEN,),
        orders=(_order("token", token="id_token", fault="not-encrypted"),),
    ),
)

_KEYS: Final = (
    Case(
        id="keys-cached",
        title="Two sign-ins in a row fetch the key set once at most",
        expects=(session_begins, at_most(1, "jwks")),
        fix="Keep the key set for an hour, in the process or in a cache that all processes share.",
        sources=CACHE,
        sign_ins=2,
    ),
    Case(
        id="discovery-cached",
        title="Two sign-ins in a row fetch the metadata once at most",
        expects=(session_begins, at_most(1, "discovery")),
        fix="Keep the metadata for an hour, in the process or in a cache that all processes share.",
        sources=CACHE,
        sign_ins=2,
    ),
    Case(
        id="key-rotated",
        title="A new, published key signs: the key set is fetched again, and a session begins",
        expects=(session_begins,),
        fix="If kid is not in your copy of the key set, fetch the set again and try once more.",
        sources=UNKNOWN_KEY,
        orders=(_order("rotate-key"),),
        new_key=True,
    ),
    Case(
        id="key-unknown",
        title="A key that no set has is refused, after two further fetches at most",
        expects=(refused, at_most(2, "jwks")),
        fix="Fetch the key set once for an unknown kid, then refuse: else anybody can make you flood the provider.",
        sources=UNKNOWN_KEY,
        orders=(_order("signing-key", which="unknown", token="id_token"),),
    ),
    Case(
        id="key-retired",
        title="A key that the provider took out of its set is refused",
        expects=(refused,),
        fix="When you fetch the key set, replace the whole copy: a key that is gone is no longer trusted.",
        sources=UNKNOWN_KEY,
        prepared=(_order("rotate-key", withdraw=True),),
        orders=(_order("signing-key", which="retired", token="id_token"),),
    ),
    Case(
        id="keys-unavailable",
        title="The key set cannot be fetched after a rotation: refused, at a page",
        expects=(refused,),
        fix="Catch errors of the key set's fetch, show a page, and keep the copy that you have.",
        sources=UNKNOWN_KEY,
        orders=(_order("rotate-key"), _order("error", endpoint="jwks", error="server_error", status=500)),
        new_key=True,
    ),
)

_USERINFOS: Final = (
    _userinfo(
        "userinfo-signature",
        "signature",
        "A userinfo answer with a wrong signature is refused",
        (refused,),
        "Verify the signature of userinfo as you do for the ID token.",
        USERINFO,
        law("4.7"),
    ),
    _userinfo(
        "userinfo-sub",
        "sub",
        "A userinfo answer about somebody else is refused",
        (refused,),
        "Compare sub of userinfo with sub of the ID token, as whole strings.",
        SUB,
    ),
    _userinfo(
        "userinfo-aud",
        "aud",
        "A userinfo answer for another client is refused",
        (refused,),
        f"Check aud of a signed userinfo answer: {_CLIENT}.",
        SUB,
    ),
    _userinfo(
        "userinfo-iss",
        "iss",
        "A userinfo answer of another issuer is refused",
        (refused,),
        "Check iss of a signed userinfo answer: compare it with the provider's issuer.",
        SUB,
    ),
    _userinfo(
        "userinfo-extra-roles",
        "extra-roles",
        "Roles that the relying party does not know are ignored, and a session begins",
        (session_begins,),
        "Ignore services and roles that you do not know: an administrator may add some at any time.",
        law("2.5"),
    ),
    _userinfo(
        "userinfo-empty",
        "empty-result-set",
        "A person without any role is no crash",
        (no_crash,),
        "Expect an empty Result_Set: show a page that says that nothing was assigned.",
        law("2.5"),
    ),
    _userinfo(
        "userinfo-many",
        "many-rows",
        "A person with 500 rows of roles is signed in",
        (session_begins,),
        "Keep roles on the server, not in a cookie, and allow answers of some hundred kilobytes.",
        law("2.5"),
    ),
    Case(
        id="userinfo-error",
        title="An error of userinfo is no crash, and gives no roles",
        expects=(no_crash, no_roles),
        fix="Catch errors of userinfo; without its answer nobody has a role.",
        sources=(law("7.4"),),
        orders=(_order("error", endpoint=RESOURCE, error="server_error", status=500),),
    ),
    Case(
        id="userinfo-unauthorized",
        title="A refused access token at userinfo is no crash, and gives no roles",
        expects=(no_crash, no_roles),
        fix="Treat 401 of userinfo as a failed sign-in, and show a page.",
        sources=(law("7.4"), rfc(9449, "7.1")),
        orders=(_order("error", endpoint=RESOURCE, error="invalid_token", status=401),),
    ),
)

_ENDPOINTS: Final = (
    Case(
        id="token-error",
        title="invalid_grant of the token endpoint ends at a page, and the code is not sent again",
        expects=(refused, code_sent_once),
        fix="A code is good once: after an error begin a new sign-in, and do not retry.",
        sources=(rfc(6749, "5.2"), law("7.3")),
        orders=(_order("error", endpoint="token", error="invalid_grant"),),
    ),
    Case(
        id="token-unavailable",
        title=f"503 of the token endpoint ends at a page, after {TOKEN_REQUESTS} requests at most",
        expects=(refused, at_most(TOKEN_REQUESTS, "token")),
        fix="Wait as long as Retry-After says, or show a page at once; never retry in a loop.",
        sources=(rfc(9110, "10.2.3"), law("7.3")),
        orders=(_order("error", endpoint="token", error="temporarily_unavailable", status=503, retry_after=5),),
    ),
    Case(
        id="token-slow",
        title="An answer of the token endpoint after five seconds is no crash",
        expects=(no_crash,),
        fix="Allow ten seconds, and show a page when they have passed.",
        sources=(law("7.3"),),
        orders=(_order("latency", endpoint="token", seconds=5),),
    ),
    Case(
        id="token-type",
        title="An access token that is not bound to a key (token_type Bearer) is refused",
        expects=(refused,),
        fix="Compare token_type with DPoP: otherwise a stolen token works without your key.",
        sources=(rfc(9449, "5"), law("2.4")),
        orders=(_order("token-type", value="Bearer"),),
        needs_push=True,
    ),
    Case(
        id="dpop-nonce",
        title="A demand for a server nonce is met: the token request is repeated, and a session begins",
        expects=(session_begins,),
        fix="On use_dpop_nonce repeat the request once, with the value of the header DPoP-Nonce in the proof.",
        sources=(rfc(9449, "8"),),
        orders=(_order("dpop-nonce", endpoint="token"),),
        needs_push=True,
    ),
    Case(
        id="par-error",
        title="A refused pushed request ends at a page",
        expects=(stays_here, no_crash),
        fix="Send the browser to the provider only after 201; show a page for anything else.",
        sources=(rfc(9126, "2.3"), law("7.1")),
        orders=(_order("error", endpoint="par", error="invalid_request"),),
        needs_push=True,
    ),
    Case(
        id="par-unavailable",
        title="A provider in maintenance ends at a page",
        expects=(stays_here, no_crash),
        fix="Send the browser to the provider only after 201; on 503 show a page that asks to come back later.",
        sources=(rfc(9126, "2.3"), law("7.1")),
        orders=(_order("maintenance"),),
        needs_push=True,
    ),
)

CASES: Final[Mapping[str, Case]] = MappingProxyType(
    {case.id: case for case in (*_SIGN_IN, *_CALLBACKS, *_ID_TOKENS, *_KEYS, *_USERINFOS, *_ENDPOINTS)}
)
"""by id, in the order in which they are tried"""
BASELINE: Final = CASES["baseline"]
