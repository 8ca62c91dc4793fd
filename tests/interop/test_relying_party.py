"""The relying-party simulator refuses every answer that is wrong in one place.

Its counterpart here is a provider of some lines that signs whatever it is told, so that each test can be
honest everywhere but in one spot. The simulator is what the protocol tests trust: a check that could not
fail would make them blind.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.verification import CheckFailed, ProviderError
from tests.interop.counterpart import AUTH_INFO, CALLBACK, ISSUER, Counterpart, header, put, swap

if TYPE_CHECKING:
    from collections.abc import Callable


def spoilt(token: str) -> str:
    return token[:-8] + ("A" if token[-8] != "A" else "B") + token[-7:]


def past(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "iat": document["iat"] - 700, "exp": document["exp"] - 700}


def future(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "iat": document["iat"] + 60, "exp": document["exp"] + 60}


def longer(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "exp": document["exp"] + 1}


def miscounted(count: str) -> Any:
    text = json.dumps(AUTH_INFO)
    assert text.count(count) == 1
    return json.loads(text.replace(count, count[:-1] + "2"))


STRANGER = ECKey.generate_key("P-256", {"kid": "op-1", "use": "sig", "alg": "ES256"})

TAMPERED: list[tuple[str, Callable[[Any], Any], str]] = [
    ("discovery", put(issuer="https://other.example"), "discovery: issuer"),
    ("discovery", put(token_endpoint="https://other.example/token"), "discovery: endpoints"),
    ("discovery", put(code_challenge_methods_supported=["plain"]), "discovery: supports what we use"),
    ("openid-configuration response", header("content-type", "text/html"), "discovery: content type"),
    ("keys response", header("content-type", "application/json"), "provider keys: content type"),
    ("keys", lambda document: {"keys": document["keys"] * 2}, "provider keys: unique kids"),
    ("keys", lambda document: {"keys": [{**document["keys"][0], "d": "AA"}]}, "provider keys: public members only"),
    ("keys", put(keys={}), "provider keys: list of keys"),
    ("pushed", put(request_uri="urn:short"), "pushed request: request_uri"),
    ("pushed", put(expires_in=61), "pushed request: expires_in"),
    ("request response", header("cache-control", "max-age=60"), "pushed request: not cached"),
    ("callback", swap("state=", "state=x"), "callback: state"),
    ("callback", swap("/callback", "/elsewhere"), "callback: redirect_uri"),
    ("callback", lambda url: f"{url}&code=c2", "callback: nothing twice"),
    ("callback", lambda url: f"{url}&iss=https://op.example", "callback: iss"),
    ("callback", swap("code=c1&", ""), "callback: code"),
    ("token", put(token_type="Bearer"), "token: token_type"),
    ("token", put(expires_in="600"), "token: expires_in"),
    ("token", put(scope="openid authinfo tpauthinfo admin"), "token: no scope that was not asked for"),
    ("token", put(id_token=None), "token: id_token"),
    ("token response", header("cache-control", "private"), "token: not cached"),
    ("token response", header("pragma", "cache"), "token: not cached (HTTP/1.0)"),
    ("token response", header("content-type", "text/plain"), "token: content type"),
    ("encryption header", put(alg="ECDH-ES+A128KW"), "ID token: encryption alg"),
    ("encryption header", put(enc="A256GCM"), "ID token: encryption enc"),
    ("encryption header", put(kid="another"), "ID token: encrypted to our kid"),
    ("encryption header", put(cty=None), "ID token: cty"),
    ("recipient", lambda _: ECKey.generate_key("P-256"), "ID token: decryption"),
    ("id token header", put(alg="none"), "ID token: alg"),
    ("id token header", put(typ="at+jwt"), "ID token: typ"),
    ("id token header", put(kid="unknown"), "ID token: kid"),
    ("id token header", put(jku="https://evil.example"), "ID token: no dangerous header member"),
    ("id token header", put(crit=["exp"]), "ID token: no dangerous header member"),
    ("id token key", lambda _: STRANGER, "ID token: signature"),
    ("id token text", spoilt, "ID token: signature"),
    ("id token", put(iss="https://other.example"), "ID token: iss"),
    ("id token", put(aud="rp-2"), "ID token: aud"),
    ("id token", put(aud=["rp-1", "rp-2"]), "ID token: aud"),
    ("id token", put(nonce="another"), "ID token: nonce"),
    ("id token", put(nonce=None), "ID token: nonce"),
    ("id token", put(at_hash="AAAA"), "ID token: at_hash"),
    ("id token", put(at_hash=None), "ID token: at_hash"),
    ("id token", past, "ID token: exp"),
    ("id token", future, "ID token: iat"),
    ("id token", longer, "ID token: lives ten minutes"),
    ("id token", put(exp="soon"), "ID token: iat and exp are whole numbers"),
    ("id token", put(amr=[]), "ID token: amr"),
    ("id token", put(acr=None), "ID token: acr"),
    ("id token", put(auth_time=True), "ID token: auth_time"),
    ("id token", put(sub=""), "ID token: sub"),
    ("id token", put(sub_type="robot"), "ID token: sub_type"),
    ("id token", put(entity=None), "ID token: entity"),
    ("id token", put(entity={"sub": "1", "sub_type": "user"}), "ID token: entity"),
    ("access token header", put(typ="JWT"), "access token: typ"),
    ("access token header", put(alg="ES384"), "access token: alg"),
    ("access token key", lambda _: STRANGER, "access token: signature"),
    ("access token", put(iss="https://other.example"), "access token: iss"),
    ("access token", put(aud="https://op.example/userinfo"), "access token: aud"),
    ("access token", put(aud=["https://op.example/other"]), "access token: aud"),
    ("access token", put(client_id="rp-2"), "access token: client_id"),
    ("access token", put(scope="openid"), "access token: scope"),
    ("access token", put(cnf={"jkt": "another"}), "access token: cnf.jkt"),
    ("access token", put(cnf=None), "access token: cnf.jkt"),
    ("access token", put(jti=None), "access token: jti"),
    ("access token", put(sub="person-2"), "access token: sub as in the ID token"),
    ("access token", put(entity={"sub": "2", "sub_type": "entity"}), "access token: entity as in the ID token"),
    ("access token", past, "access token: exp"),
    ("access token", longer, "access token: lives ten minutes"),
    ("userinfo response", header("content-type", "application/json"), "userinfo: content type"),
    ("userinfo response", header("cache-control", "public"), "userinfo: not cached"),
    ("userinfo response", header("www-authenticate", "DPoP"), "userinfo: no challenge"),
    ("userinfo key", lambda _: STRANGER, "userinfo: signature"),
    ("userinfo header", put(typ="at+jwt"), "userinfo: typ"),
    ("userinfo", put(iss="https://other.example"), "userinfo: iss"),
    ("userinfo", put(aud=["rp-1"]), "userinfo: aud"),
    ("userinfo", put(sub="person-2"), "userinfo: sub as in the ID token"),
    ("userinfo", past, "userinfo: exp"),
    ("userinfo", put(auth_info=None), "userinfo: auth_info: shape"),
    ("userinfo", put(auth_info=miscounted('"ESrvc_Row_Count": 1')), "userinfo: auth_info: shape and counts"),
    ("userinfo", put(auth_info=miscounted('{"Row_Count": 1')), "userinfo: auth_info: shape and counts"),
    ("userinfo", put(tp_auth_info=AUTH_INFO), "userinfo: tp_auth_info: shape"),
]  # fmt: skip


def test_an_honest_provider_is_believed() -> None:
    """Otherwise the refusals below would prove nothing."""
    counterpart = Counterpart()
    assert counterpart.run()["auth_info"] == AUTH_INFO
    assert all(check.passed for check in counterpart.rp.checks.checks)
    assert [exchange.title for exchange in counterpart.rp.timeline.exchanges] == [
        "Discovery", "Pushed authorization request", "Token", "Keys of the provider", "Userinfo",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "change", "check"), TAMPERED, ids=[f"{number}-{check}" for number, (_, _, check) in enumerate(TAMPERED)]
)
def test_an_answer_that_is_wrong_in_one_place_is_refused(where: str, change: Callable[[Any], Any], check: str) -> None:
    """Spec 2.4, 2.5, 4.7; D2, D3, D20-D24; OpenID Connect Core §3.1.3.7."""
    counterpart = Counterpart()
    counterpart.change[where] = change
    with pytest.raises(CheckFailed) as refused:
        counterpart.run()
    assert refused.value.check == check
    assert [one.name for one in counterpart.rp.checks.checks if not one.passed] == [check]


def test_a_block_that_was_not_asked_for_is_refused() -> None:
    """Spec 2.5: auth_info only with the scope authinfo."""
    counterpart = Counterpart()
    counterpart.change["token"] = put(scope="openid")
    counterpart.change["access token"] = put(scope="openid")
    with pytest.raises(CheckFailed) as refused:
        counterpart.run()
    assert refused.value.check == "userinfo: no auth_info without authinfo"


def test_an_error_instead_of_an_answer_is_told_apart_from_a_wrong_answer() -> None:
    """Spec 7: the error's code, description and status reach the caller."""
    counterpart = Counterpart()
    counterpart.change["request response"] = lambda _: httpx.Response(
        401, json={"error": "invalid_client", "error_description": "who are you?"}
    )
    with pytest.raises(ProviderError) as refused:
        counterpart.run()
    assert (refused.value.error, refused.value.description, refused.value.status) == (
        "invalid_client", "who are you?", 401,
    )  # fmt: skip


def test_an_error_in_the_callback_counts_only_with_the_right_state() -> None:
    """Spec 4.2: state comes back with errors too, and is checked first."""
    counterpart = Counterpart()
    counterpart.change["callback"] = lambda url: url.replace("code=c1", "error=access_denied")
    with pytest.raises(ProviderError, match="access_denied"):
        counterpart.run()
    counterpart.change["callback"] = lambda _: f"{CALLBACK}?error=access_denied&state=x"
    with pytest.raises(CheckFailed, match="state"):
        counterpart.run()


def test_iss_in_the_callback_is_required_where_the_metadata_promises_it() -> None:
    """RFC 9207 §2.4."""
    counterpart = Counterpart()
    counterpart.change["discovery"] = put(authorization_response_iss_parameter_supported=True)
    with pytest.raises(CheckFailed, match="callback: iss"):
        counterpart.run()
    counterpart.change["callback"] = lambda url: f"{url}&iss={ISSUER}"
    assert counterpart.run()["sub"] == "person-1"


def test_a_key_that_was_rotated_in_is_fetched_once_when_it_is_met() -> None:
    """Spec 4.7: an unknown kid refreshes the key set at once."""
    counterpart = Counterpart()
    counterpart.run()
    counterpart.key = ECKey.generate_key("P-256", {"kid": "op-2", "use": "sig", "alg": "ES256"})
    counterpart.published.append(counterpart.key)
    counterpart.rp.restart()
    assert counterpart.run()["sub"] == "person-1"
    assert [exchange.title for exchange in counterpart.rp.timeline.exchanges].count("Keys of the provider") == 1


def test_assertions_and_proofs_take_overrides_in_claims_header_and_key() -> None:
    """The protocol tests are dishonest in exactly one place."""
    rp = Counterpart().rp
    head, payload = jwt.peek(rp.assertion(aud="https://op.example/token", exp=None, header={"kid": None}))
    assert payload is not None
    assert payload["aud"] == "https://op.example/token"
    assert "exp" not in payload
    assert head == {"typ": "JWT", "alg": "ES256"}
    stranger = ECKey.generate_key("P-384")
    head, payload = jwt.peek(rp.proof("GET", "https://op.example/userinfo", "token", key=stranger, jti="again"))
    assert payload is not None
    assert head["alg"] == "ES384"
    assert set(head["jwk"]) == {"kty", "crv", "x", "y"}
    assert payload["jti"] == "again"
    assert payload["ath"] == jwt.digest("token")
