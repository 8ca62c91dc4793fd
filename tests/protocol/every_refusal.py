"""A request for every refusal of the protocol's endpoints, and what its answer tells its caller."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

from corpid_dev.relying_party.jwt import digest
from tests.protocol import directory
from tests.protocol.deployment import other_key
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.test_codes import off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from tests.protocol.provider import World

Provoke: TypeAlias = "Callable[[World], httpx.Response]"
QUERY: Final = ("legacy",)
BOUND: Final = ("intermediate", "current")
"""those whose pushed requests need a key"""
NAMING_ENDPOINT: Final = ("legacy", "intermediate", "current")
_REFERENCE: Final = re.compile(r"\b[0-9a-f]{16}\b")
_HASH: Final = re.compile(r"\b[A-Za-z0-9_-]{43}\b")


@dataclass(frozen=True, slots=True)
class Case:
    """A request that is refused for `reason`, in each of these generations."""

    reason: str
    provoke: Provoke
    generations: tuple[str, ...] = EVERY


def told(answer: httpx.Response, issuer: str) -> dict[str, Any]:
    """All that a caller gets of a refusal, without what is new each time."""
    location = answer.headers.get("location", "")
    found: dict[str, Any] = {"status": answer.status_code}
    if "www-authenticate" in answer.headers:
        found["challenge"] = answer.headers.get_list("www-authenticate")
    if "link" in answer.headers:
        found["link"] = answer.headers.get_list("link")
    if location:
        found["callback"] = dict(parse_qsl(urlsplit(location).query))
    elif answer.headers.get("content-type", "").startswith("text/html"):
        found["page"] = text_of(answer.text)
    elif answer.content:
        found["body"] = answer.json()
    return dict(_plain(found, issuer))


def text_of(page: str) -> str:
    """The text of a page's content."""
    content = page.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", content).split())


def _plain(value: Any, issuer: str) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each, issuer) for name, each in value.items() if name not in {"state", "iss"}}
    if isinstance(value, list):
        return [_plain(each, issuer) for each in value]
    if isinstance(value, str):
        return _HASH.sub("HASH", _REFERENCE.sub("REFERENCE", value.replace(issuer, "ISSUER")))
    return value


def _at(path: str, method: str = "GET", **options: Any) -> Provoke:
    return lambda w: w.run(w.http.request(method, w.issuer + path, **options))


def _raw(body: bytes, content_type: str = "application/x-www-form-urlencoded") -> Provoke:
    return _at("/mga/sps/oauth/oauth20/token", "POST", content=body, headers={"content-type": content_type})


def _assertion(**changes: Any) -> Provoke:
    """A token request whose assertion is changed."""

    def provoke(w: World) -> httpx.Response:
        made = {name: value(w) if callable(value) else value for name, value in changes.items()}
        return w.redeem("c" * 43, client_assertion=w.rp.assertion(**made))

    return provoke


def _token(**form: Any) -> Provoke:
    return lambda w: w.redeem("c" * 43, **form)


def _redeemed(**form: Any) -> Provoke:
    """A good code with a changed form."""
    return lambda w: w.redeem(w.code(), **form)


def _pushed(**form: Any) -> Provoke:
    return lambda w: w.push(**{"state": "s", **form})


def _proof(method: str = "POST", path: str = "/request", **changes: Any) -> Provoke:
    """A push whose proof is changed."""

    def provoke(w: World) -> httpx.Response:
        made = {name: value(w) if callable(value) else value for name, value in changes.items()}
        return w.push(state="s", headers={"DPoP": w.rp.proof(method, w.issuer + path, **made)})

    return provoke


def _authorize(**query: str) -> Provoke:
    return lambda w: w.get(f"{w.issuer}/mga/sps/oauth/oauth20/authorize?{urlencode(query)}")


def _asked(**parameters: Any) -> Provoke:
    """A query request that is changed."""
    return lambda w: w.get(w.asked(**parameters))


def _full(w: World) -> httpx.Response:
    """The whole request in the query, of a client that has to push it."""
    query = {"client_id": "rp-1", **w.rp.request_parameters()}
    return w.get(f"{w.issuer}/mga/sps/oauth/oauth20/authorize?{urlencode(query)}")


def _late(w: World) -> httpx.Response:
    url = w.asked()
    w.clock.now += 61
    return w.get(url)


def _forgotten(w: World) -> httpx.Response:
    url = w.asked()
    w.clock.now += 3600
    return w.get(url)


def _completed(w: World) -> httpx.Response:
    w.sign_in()
    w.rp.restart()
    url = w.asked()
    assert w.get(url).status_code == 302
    return w.get(url)


def _of_another(w: World) -> httpx.Response:
    url = w.asked(w.party("rp-2"))
    return w.get(url.replace("rp-2", "rp-1"))


def _unregistered_since(w: World) -> httpx.Response:
    url = w.asked()
    w.registers(redirect_uris=("https://rp.example/new",))
    return w.get(url)


def _after(change: Callable[[World], object], then: Provoke) -> Provoke:
    def provoke(w: World) -> httpx.Response:
        change(w)
        return then(w)

    return provoke


def _code_after(change: Callable[[World], object]) -> Provoke:
    """A good code, redeemed after a change."""

    def provoke(w: World) -> httpx.Response:
        code = w.code()
        change(w)
        return w.redeem(code)

    return provoke


def _passed(seconds: int) -> Callable[[World], object]:
    def passed(w: World) -> None:
        w.clock.now += seconds

    return passed


def _twice(w: World) -> httpx.Response:
    code = w.code()
    assert w.redeem(code).status_code == 200
    return w.redeem(code)


def _by_another(w: World) -> httpx.Response:
    code, verifier = w.code(), w.rp.sign_in.code_verifier
    return w.redeem(code, w.party("rp-2"), code_verifier=verifier)


def _same_assertion(w: World) -> httpx.Response:
    assertion = w.rp.assertion(jti="the only one")
    w.redeem("c" * 43, client_assertion=assertion)
    return w.redeem("c" * 43, client_assertion=assertion)


def _same_proof(w: World) -> httpx.Response:
    proof = w.rp.proof("POST", f"{w.issuer}/request", jti="the only one")
    w.push(state="s", headers={"DPoP": proof})
    return w.push(state="s", headers={"DPoP": proof})


def _other_proof(w: World) -> httpx.Response:
    url = f"{w.issuer}/mga/sps/oauth/oauth20/token"
    return w.redeem(w.code(), headers={"DPoP": w.rp.proof("POST", url, key=other_key())})


def _resource(change: Callable[[World], object] | None = None, *, sent: str | None = None, **headers: Any) -> Provoke:
    """A request at userinfo, or authorization-info, with a good token."""

    def provoke(w: World) -> httpx.Response:
        token = w.tokens().access_token
        if change is not None:
            change(w)
        made = {name: value(w, token) if callable(value) else value for name, value in headers.items()}
        return w.userinfo(token=sent or token, **made)

    return provoke


def _resource_proof(**changes: Any) -> Provoke:
    def proof(w: World, token: str) -> str:
        made = {name: value(w) if callable(value) else value for name, value in changes.items()}
        return w.rp.proof(made.pop("method", "GET"), f"{w.issuer}/userinfo", token, **made)

    return _resource(DPoP=proof)


def _revoked(w: World) -> httpx.Response:
    code = w.code()
    w.run(w.rp.believe(w.redeem(code)))
    w.redeem(code)
    return w.userinfo()


def _identity(w: World) -> httpx.Response:
    tokens = w.tokens()
    signed = tokens.access_token.split(".")
    return w.userinfo(token=".".join((signed[0], signed[1], digest("x"))))


def _signed_by_another(w: World) -> httpx.Response:
    return w.redeem("c" * 43, client_assertion=w.rp.assertion(key=other_key()))


def _unknown(w: World) -> httpx.Response:
    return w.redeem("c" * 43, w.party("nobody", keys=w.rp.keys))


def _disabled(w: World) -> httpx.Response:
    w.writes(w.client(enabled=False))
    return w.redeem("c" * 43)


def _elsewhere(w: World) -> httpx.Response:
    w.writes(w.client(issuers=("elsewhere",)))
    return w.redeem("c" * 43)


def _endpoint(w: World) -> str:
    return f"{w.issuer}/mga/sps/oauth/oauth20/token"


def _moved(seconds: int) -> Callable[[World], int]:
    return lambda w: int(w.clock.now) + seconds


CASES: Final[Mapping[str, Case]] = {
    "no such path": Case("path_unknown", _at("/nothing")),
    "no such page": Case("path_unknown", _at("/nothing", headers={"accept": "text/html"})),
    "guessed path": Case("path_unknown", _at("/token", "POST")),
    "other method": Case("method_not_allowed", _at("/mga/sps/oauth/oauth20/token", "PUT")),
    "body in JSON": Case("body_not_a_form", _raw(b"{}", "application/json")),
    "many parameters": Case("parameters_too_many", _raw(b"a=1&" * 200)),
    "not UTF-8": Case("parameters_not_utf_8", _raw(b"code=%ff")),
    "bad encoding": Case("parameters_badly_encoded", _raw(b"code=%zz")),
    "repeated": Case("parameter_repeated", _raw(b"code=a&code=b")),
    "missing": Case("parameter_missing", _raw(b"client_id=rp-1")),
    # client authentication
    "secret, too": Case("client_authentication_twice", _token(client_secret="x")),
    "assertion type": Case("assertion_type", _token(client_assertion_type="x")),
    "no assertion": Case("assertion_missing", _token(client_assertion=None)),
    "assertion: no JWS": Case("assertion_malformed", _token(client_assertion="x.y")),
    "assertion: jti": Case("assertion_malformed", _assertion(jti=7)),
    "assertion: typ": Case("assertion_jwt_type", _assertion(header={"typ": "at+jwt"})),
    "assertion: alg": Case("assertion_algorithm", _assertion(header={"alg": "RS256"})),
    "assertion: iss": Case("assertion_issuer", _assertion(iss="rp-2")),
    "assertion: aud": Case("assertion_audience", _assertion(aud="https://other.example")),
    "assertion: endpoint": Case("assertion_audience_endpoint", _assertion(aud=_endpoint), NAMING_ENDPOINT),
    "assertion: no jti": Case("assertion_jti_missing", _assertion(jti=None), PUSHED),
    "assertion: no exp": Case("assertion_exp_missing", _assertion(exp=None)),
    "assertion: no iat": Case("assertion_iat_missing", _assertion(iat=None), NAMING_ENDPOINT),
    "assertion: late": Case("assertion_expired", _assertion(iat=_moved(-90), exp=_moved(-1))),
    "assertion: early": Case("assertion_in_the_future", _assertion(iat=_moved(45))),
    "assertion: long": Case("assertion_lifetime", _assertion(exp=_moved(3600))),
    "assertion: other sub": Case("assertion_client_id", _assertion(iss="nobody", sub="nobody")),
    "assertion: kid": Case("assertion_key", _assertion(header={"kid": "none"})),
    "assertion: signature": Case("assertion_signature", _signed_by_another),
    "assertion: replayed": Case("assertion_replayed", _same_assertion),
    "client unknown": Case("client_unknown", _unknown),
    "client disabled": Case("client_disabled", _disabled),
    "client elsewhere": Case("client_of_another_issuer", _elsewhere),
    # DPoP
    "no proof": Case("proof_missing", _pushed(headers={"DPoP": None}), BOUND),
    "proofs": Case("proof_repeated_header", lambda w: w.push(state="s", headers={"DPoP": ["x", "y"]}), PUSHED),
    "proof: no JWS": Case("proof_malformed", lambda w: w.push(state="s", headers={"DPoP": "x"}), PUSHED),
    "proof: typ": Case("proof_jwt_type", _proof(header={"typ": "JWT"}), PUSHED),
    "proof: alg": Case("proof_algorithm", _proof(header={"alg": "RS256"}), PUSHED),
    "proof: no jwk": Case("proof_key", _proof(header={"jwk": None}), PUSHED),
    "proof: signature": Case("proof_signature", _proof(header={"jwk": other_key().as_dict(private=False)}), PUSHED),
    "proof: no jti": Case("proof_jti_missing", _proof(jti=None), PUSHED),
    "proof: htm": Case("proof_method", _proof("GET"), PUSHED),
    "proof: htu": Case("proof_url", _proof(path="/mga/sps/oauth/oauth20/token"), PUSHED),
    "proof: no iat": Case("proof_iat_missing", _proof(iat=None), PUSHED),
    "proof: late": Case("proof_too_old", _proof(iat=_moved(-150)), PUSHED),
    "proof: early": Case("proof_in_the_future", _proof(iat=_moved(45)), PUSHED),
    "proof: replayed": Case("proof_replayed", _same_proof, PUSHED),
    "dpop_jkt": Case("jkt_malformed", _pushed(dpop_jkt="x"), PUSHED),
    "other dpop_jkt": Case("jkt_of_another_key", _pushed(dpop_jkt="x" * 43), BOUND),
    # the content
    "generation": Case(
        "generation_not_registered", _after(lambda w: w.registers(generations=("legacy",), legacy_until="2099-12-31"), _pushed()), PUSHED
    ),
    "redirect_uri": Case("redirect_uri_not_registered", _pushed(redirect_uri="https://rp.example/callback/?secret=1"), PUSHED),
    "redirect_uri in the query": Case("redirect_uri_not_registered", _asked(redirect_uri="http://rp.example/callback"), QUERY),
    "request": Case("request_object", _pushed(request="x"), PUSHED),
    "request in the query": Case("request_object", _asked(request="x"), QUERY),
    "request_uri": Case("request_object_by_reference", _pushed(request_uri="urn:x"), PUSHED),
    "request_uri in the query": Case("request_object_by_reference", _asked(request_uri="urn:x"), QUERY),
    "response_type": Case("response_type", _pushed(response_type="token"), PUSHED),
    "response_mode": Case("response_mode", _pushed(response_mode="x"), PUSHED),
    "scope: spaces": Case("scope_malformed", _pushed(scope="openid  authinfo"), PUSHED),
    "scope: openid": Case("scope_without_openid", _pushed(scope="authinfo"), PUSHED),
    "scope: unknown": Case("scope_unknown", _pushed(scope="openid x"), PUSHED),
    "scope: not registered": Case(
        "scope_not_registered", _after(lambda w: w.registers(scopes=("openid",)), _pushed(scope="openid authinfo")), PUSHED
    ),
    "challenge method": Case("challenge_method", _pushed(code_challenge_method="plain"), PUSHED),
    "challenge": Case("challenge_malformed", _pushed(code_challenge="x"), PUSHED),
    "nonce": Case("parameter_not_printable", _pushed(nonce="\x00"), PUSHED),
    "acr_values": Case("acr_values", _pushed(acr_values="x"), BOUND),
    "no context type": Case("context_type_missing", _pushed(authentication_context_type=None), BOUND),
    "context type refused": Case(
        "context_type_refused",
        _after(lambda w: w.registers(context_type_rule="refused"), _pushed(authentication_context_type="APP_PAYMENT_DEFAULT")),
        PUSHED,
    ),
    "context type": Case("context_type_unknown", _pushed(authentication_context_type="X"), PUSHED),
    "context message": Case("context_message", _pushed(authentication_context_message="x" * 101), PUSHED),
    "prompt": Case("prompt_unknown", _pushed(prompt="x"), PUSHED),
    "prompt none login": Case("prompt_none_with_another", _pushed(prompt="none login"), PUSHED),
    "max_age": Case("max_age", _pushed(max_age="x"), PUSHED),
    "ui_locales": Case("ui_locales", _pushed(ui_locales="en " * 200), PUSHED),
    # the authorization endpoint
    "authorize: long": Case(
        "query_too_long",
        _at("/mga/sps/oauth/oauth20/authorize", "POST", data={"client_id": "rp-1", "request_uri": "x" * 20_000}),
    ),
    "authorize: empty": Case("query_empty", _at("/mga/sps/oauth/oauth20/authorize", "POST", data={"x": "1"})),
    "authorize: no client_id": Case("parameter_missing", _authorize(request_uri="x")),
    "authorize: client_id": Case("client_id_unknown", _authorize(client_id="nobody", request_uri="x")),
    "authorize: not pushed": Case("request_not_pushed", _full, PUSHED),
    "authorize: nothing": Case("parameter_missing", _authorize(client_id="rp-1"), PUSHED),
    "authorize: foreign": Case("request_uri_foreign", _authorize(client_id="rp-1", request_uri="https://rp.example/x"), PUSHED),
    "authorize: unknown": Case(
        "request_uri_unknown",
        _authorize(client_id="rp-1", request_uri="urn:ietf:params:oauth:request_uri:" + "x" * 43),
        PUSHED,
    ),
    "authorize: another's": Case("request_uri_of_another_client", _of_another, PUSHED),
    "authorize: forgotten": Case("request_uri_unknown", _forgotten, PUSHED),
    "authorize: expired": Case("request_uri_expired", _late, PUSHED),
    "authorize: completed": Case("request_already_completed", _completed, PUSHED),
    "authorize: redirect_uri": Case("redirect_uri_not_registered", _unregistered_since, PUSHED),
    "authorize: silent": Case("login_required", _asked(prompt="none"), EVERY),
    # the token endpoint
    "grant_type": Case("grant_type", _token(grant_type="password")),
    "verifier": Case("verifier_malformed", _token(code_verifier="x")),
    "code: long": Case("code_malformed", lambda w: w.redeem("x" * 513)),
    "code: unknown": Case("code_unknown", _token()),
    "code: late": Case("code_expired", _code_after(_passed(61))),
    "code: twice": Case("code_redeemed", _twice),
    "code: another's": Case("code_of_another_client", _by_another),
    "code: verifier": Case("code_verifier", _redeemed(code_verifier="y" * 43)),
    "code: redirect_uri": Case("code_redirect_uri", _redeemed(redirect_uri="https://rp.example/other?kept=1")),
    "code: key": Case("code_key", _other_proof, BOUND),
    "code: person": Case("person_may_not_act", _code_after(lambda w: w.writes(off(directory.ALICE)))),
    "code: scope": Case("scope_withdrawn", _code_after(lambda w: w.registers(scopes=("openid",)))),
    "code: redirect_uri gone": Case(
        "redirect_uri_not_registered", _code_after(lambda w: w.registers(redirect_uris=("https://rp.example/new",)))
    ),
    # the resources
    "no credentials": Case("credentials_missing", _resource(Authorization=None)),
    "Basic": Case("credentials_scheme", _resource(Authorization="Basic x")),
    "Bearer": Case("credentials_scheme", _resource(Authorization=lambda _, token: f"Bearer {token}"), PUSHED),
    "twice": Case("credentials_repeated", _resource(Authorization=["DPoP x", "DPoP y"])),
    "no token": Case("access_token_malformed", _resource(sent="?")),
    "signature": Case("access_token_foreign", _identity),
    "late": Case("access_token_expired", _resource(_passed(601))),
    "revoked": Case("access_token_revoked", _revoked),
    "client off": Case("access_token_client", _resource(lambda w: w.writes(w.client(enabled=False)))),
    "person off": Case("person_may_not_act", _resource(lambda w: w.writes(off(directory.ALICE)))),
    "no proof there": Case("proof_missing", _resource(DPoP=None), PUSHED),
    "ath": Case("proof_token_hash", _resource_proof(ath="x"), PUSHED),
    "htm there": Case("proof_method", _resource_proof(method="POST"), PUSHED),
    "other key": Case("access_token_key", _resource_proof(key=lambda _: other_key()), PUSHED),
}  # fmt: skip
"""by name"""
