"""Which DPoP proofs are taken: form, claims, window, replay (RFC 9449 §4.3; Spec 7.1; D5, D7, D33, D49).

Asked at PAR. A refused proof leaves the assertion beside it unspent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import OctKey, RSAKey

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.jwt import public_members
from tests.protocol.deployment import ISSUER, PAR, TOKEN, other_key
from tests.protocol.expectations import PUSHED
from tests.protocol.provider import World
from tests.protocol.refusals import json_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.generations(*PUSHED)


def refuse(world: World, proof: Any, *events: str) -> str:
    """invalid_dpop_proof, nothing spent; then the same assertion with an honest proof."""
    honest = {"client_assertion": world.rp.assertion(), "state": "s"}
    with world.nothing_spent(*events):
        answer = world.push(headers={"DPoP": proof}, **honest)
        sentence = json_refusal(answer, world.expected.bad_proof_status, "invalid_dpop_proof", state="s")
    again = world.rp.proof("POST", f"{world.issuer}/request")
    assert world.push(headers={"DPoP": again}, **honest).status_code == 201
    return sentence


def accept(world: World, proof: str) -> None:
    answer = world.push(headers={"DPoP": proof})
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("claim", ["jti", "htm", "htu", "iat"])
@pytest.mark.parametrize("value", [None, "", [], {}, True, [PAR], ["POST"]])
def test_every_claim_is_required_and_of_its_type(shared: World, claim: str, value: Any) -> None:
    """RFC 9449 §4.2, §4.3; D33."""
    refuse(shared, shared.rp.proof("POST", PAR, **{claim: value}))


@pytest.mark.parametrize("method", ["GET", "post", "PUT", "POST "])
def test_the_method_is_this_requests(shared: World, method: str) -> None:
    """RFC 9449 §4.3 (8)."""
    refuse(shared, shared.rp.proof(method, PAR))


@pytest.mark.parametrize(
    "url",
    [
        f"{PAR}?x=1", f"{PAR}#frag", f"{PAR}?a=b#c", "https://OP.EXAMPLE/request", "HTTPS://op.example/request",
        "https://op.example:443/request", "https://Op.Example:443/request?q",
    ],
)  # fmt: skip
def test_a_url_that_means_the_same_is_taken(shared: World, url: str) -> None:
    """D7: query and fragment dropped, case and default port normalised."""
    accept(shared, shared.rp.proof("POST", url))


@pytest.mark.parametrize(
    "url",
    [
        TOKEN, ISSUER, f"{ISSUER}/", f"{PAR}/", f"{ISSUER}//request", f"{ISSUER}/Request", f"{ISSUER}/%72equest", "/request",
        "http://op.example/request", "https://op.example:8443/request", "https://op.example:0/request", "https://evil.example/request",
        "https://op.example.evil.example/request", "https://x@op.example/request", "https://op.example:x/request",
        "https://op.example./request", "//op.example/request", "request", f"{PAR}\n", f" {PAR}", "https://op.example/req\tuest",
        f"{ISSUER}/x/../request", "https://[::1/request",
    ],
)  # fmt: skip
def test_any_other_url_is_refused(shared: World, url: str) -> None:
    """D7: compared against base_url and path."""
    assert refuse(shared, shared.rp.proof("POST", url)).startswith("DPoP proof: htu must be https://op.example/request")


@pytest.mark.parametrize("seconds", [-120, -119.5, -1, 0, 1, 29.5, 30])
def test_a_proof_inside_the_window_is_taken(shared: World, seconds: float) -> None:
    """D7: iat from 120 s ago to 30 s ahead."""
    accept(shared, shared.rp.proof("POST", PAR, iat=shared.clock.now + seconds))


@pytest.mark.parametrize("seconds", [-121, -120.5, 30.5, 31, 3600, -86400])
def test_a_proof_outside_the_window_is_refused_with_the_difference(shared: World, seconds: float) -> None:
    """D7; D28: for clocks the measured difference."""
    sentence = refuse(shared, shared.rp.proof("POST", PAR, iat=shared.clock.now + seconds))
    assert "this server's clock" in sentence
    assert f" {abs(seconds):.0f} s " in sentence


@pytest.mark.parametrize("claims", [{"exp": 1}, {"exp": 0.25}, {"nbf": 30}, {"nbf": -9999}, {"exp": 9999}])
def test_expiry_and_not_before_are_honoured_if_present(shared: World, claims: dict[str, Any]) -> None:
    """D7: never required."""
    accept(shared, shared.rp.proof("POST", PAR, **{name: shared.clock.now + value for name, value in claims.items()}))


@pytest.mark.parametrize("claims", [{"exp": 0}, {"exp": -1}, {"nbf": 31}, {"nbf": 30.5}])
def test_a_proof_that_is_expired_or_not_yet_valid_is_refused(shared: World, claims: dict[str, Any]) -> None:
    """D7."""
    refuse(shared, shared.rp.proof("POST", PAR, **{name: shared.clock.now + value for name, value in claims.items()}))


@pytest.mark.parametrize(
    "claims", [{"exp": "soon"}, {"exp": True}, {"nbf": []}, {"iat": "now"}, {"iat": -1}, {"iat": 2**53 + 2}]
)
def test_a_time_is_a_number(shared: World, claims: dict[str, Any]) -> None:
    """D33: NumericDate, no boolean, 0..2^53."""
    refuse(shared, shared.rp.proof("POST", PAR, **claims))


@pytest.mark.parametrize(("length", "taken"), [(1, True), (256, True), (257, False)])
def test_a_jti_has_1_to_256_characters(shared: World, length: int, taken: bool) -> None:
    """D33."""
    (accept if taken else refuse)(shared, shared.rp.proof("POST", PAR, jti="j" * length))


@pytest.mark.parametrize("more", [{"nonce": "anything"}, {"nonce": 5}, {"ath": "x"}, {"x": {"y": []}}, {"cnf": None}])
def test_unknown_members_and_a_nonce_nobody_asked_for_are_ignored(shared: World, more: dict[str, Any]) -> None:
    """D7: nonce ignored while nonces are off."""
    accept(shared, shared.rp.proof("POST", PAR, **more))


HEADERS: list[dict[str, Any]] = [
    {"typ": None}, {"typ": "JWT"}, {"typ": "DPOP+JWT"}, {"typ": "application/dpop+jwt"}, {"typ": 1},
    {"alg": None}, {"alg": "none"}, {"alg": "HS256"}, {"alg": "RS256"}, {"alg": "PS256"}, {"alg": "EdDSA"}, {"alg": "ES384"},
    {"alg": "ES256K"}, {"alg": ["ES256"]}, {"jwk": None}, {"jwk": []}, {"jwk": "x"}, {"jwk": {}}, {"jwk": {"kty": "EC"}},
    {"crit": ["b64"]}, {"zip": "DEF"}, {"b64": False}, {"jku": "https://evil.example"}, {"x5u": "https://evil.example"},
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_that_is_not_as_it_should_be_is_refused(shared: World, header: dict[str, Any]) -> None:
    """RFC 9449 §4.3 (4)-(7), D7, D8's refused members."""
    refuse(shared, shared.rp.proof("POST", PAR, header=header))


@pytest.mark.generations(*PUSHED, differ=True)
@pytest.mark.parametrize(
    ("algorithm", "curve"), [("ES256", "P-256"), ("ES256K", "secp256k1"), ("ES384", "P-384"), ("ES512", "P-521")]
)
def test_every_published_algorithm_is_taken(shared: World, algorithm: str, curve: str) -> None:
    """Spec "Generations": the four; in FAPI2 those of assertions."""
    taken = accept if algorithm in shared.expected.algorithms else refuse
    taken(shared, shared.rp.proof("POST", PAR, key=other_key(curve)))


@pytest.mark.parametrize("value", ["AA", "", 1])
def test_a_key_with_its_private_member_is_refused(shared: World, value: object) -> None:
    """D7: public only."""
    jwk = {**public_members(shared.rp.sign_in.dpop_key), "d": value}
    sentence = refuse(shared, shared.rp.proof("POST", PAR, header={"jwk": jwk}))
    assert sentence == "DPoP proof: jwk must be a public key but has d"


@pytest.mark.parametrize("more", [{"d": None}, {"k": "AA"}, {"p": "AA"}, {"alg": None, "kid": None}])
def test_a_public_key_is_not_called_private_for_a_name(shared: World, more: dict[str, Any]) -> None:
    """D85: a member that is null, and those that are private in other kinds of keys."""
    accept(shared, shared.rp.proof("POST", PAR, header={"jwk": {**public_members(shared.rp.sign_in.dpop_key), **more}}))


def test_a_key_of_another_kind_is_refused(shared: World) -> None:
    """D7: EC keys on the curves of the published algorithms."""
    rsa = RSAKey.generate_key(2048, private=True)
    symmetric = OctKey.generate_key(256)
    okp = {"kty": "OKP", "crv": "Ed25519", "x": jwt.base64url(b"x" * 32)}
    for jwk in (rsa.as_dict(private=False), symmetric.as_dict(private=False), okp):
        refuse(shared, shared.rp.proof("POST", PAR, header={"jwk": jwk}))


@pytest.mark.parametrize(
    "change",
    [
        {"x": None},
        {"y": ""},
        {"crv": "P-384"},
        {"crv": None},
        {"kty": "RSA"},
        {"x": "AA"},
        {"x": 1},
        {"y": "A" * 43},
        {"x": "+" * 43},
    ],
)
def test_a_key_that_is_no_point_of_its_curve_is_refused(shared: World, change: dict[str, Any]) -> None:
    """RFC 7518 §6.2; an invalid point must never reach the arithmetic."""
    jwk = {**public_members(shared.rp.sign_in.dpop_key), **change}
    refuse(shared, shared.rp.proof("POST", PAR, header={"jwk": {k: v for k, v in jwk.items() if v is not None}}))


def test_extra_public_members_of_the_key_do_not_change_its_thumbprint(shared: World) -> None:
    """D7: jkt from the required members only; RFC 7638."""
    key = shared.rp.sign_in.dpop_key
    jwk = {**public_members(key), "kid": "x", "use": "sig", "alg": "ES256", "unknown": 1}
    answer = shared.push(headers={"DPoP": shared.rp.proof("POST", PAR, header={"jwk": jwk})}, dpop_jkt=key.thumbprint())
    assert answer.status_code == 201


def test_the_signature_is_checked_with_the_key_in_the_header(shared: World) -> None:
    """RFC 9449 §4.3 (7)."""
    refuse(shared, shared.rp.proof("POST", PAR, header={"jwk": public_members(other_key())}))
    proof = shared.rp.proof("POST", PAR)
    head, payload, signature = proof.split(".")
    refuse(shared, f"{head}.{payload}.{signature[:-4]}{'AAAA' if signature[-4:] != 'AAAA' else 'BBBB'}")
    changed = jwt.base64url(json.dumps({**(jwt.peek(proof)[1] or {}), "x": 1}).encode())
    refuse(shared, f"{head}.{changed}.{signature}")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: [p, p],
        lambda p: f"{p}, {p}",
        lambda p: f"{p} {p}",
        lambda _: "x",
        lambda _: "",
        lambda p: p + "=",
        lambda p: [p.encode() + b"\xe9"],
    ],
)
def test_the_header_is_there_once_and_holds_one_jws(shared: World, spoil: Callable[[str], Any]) -> None:
    """RFC 9449 §4.3 (1), D7: exactly one header."""
    refuse(shared, spoil(shared.rp.proof("POST", PAR)))


def test_a_proof_is_used_once_and_a_replayed_one_leaves_the_assertion_unspent(world: World) -> None:
    """D7, D9: a refused or replayed proof leaves the assertion jti unspent."""
    proof = world.rp.proof("POST", PAR)
    accept(world, proof)
    sentence = refuse(world, proof, "proof.replay")
    assert "already used" in sentence


def test_the_same_jti_under_another_key_is_another_proof(shared: World) -> None:
    """D7: single use per key thumbprint."""
    accept(shared, shared.rp.proof("POST", PAR, jti="shared"))
    accept(shared, shared.rp.proof("POST", PAR, jti="shared", key=other_key()))


@pytest.mark.parametrize("ahead", [0, 30])
def test_a_jti_is_remembered_until_nobody_could_use_it_again(world: World, ahead: int) -> None:
    """D7, D49: until iat + 120 s plus 300."""
    now = world.clock.now
    proof = world.rp.proof("POST", PAR, iat=now + ahead)
    accept(world, proof)
    world.clock.now = now + ahead + 120
    assert "already used" in refuse(world, proof, "proof.replay")
    world.clock.now = now + ahead + 121
    assert "behind" in refuse(world, proof)
    (kept,) = [row[4] for row in world.stored() if row[0] == "proof" and row[4] <= (now + ahead + 420) * 1000]
    assert kept == (now + ahead + 420) * 1000


@pytest.mark.parametrize("base", ["https://op.example/corp/id", "https://op.example:8443"])
def test_under_any_base_url_a_proof_is_for_that_url(base: str, speaking: str) -> None:
    """D7, D32: base_url and path."""
    with World(base_url=base, generations=(speaking,)) as world:
        accept(world, world.rp.proof("POST", f"{base}/request"))
        refuse(world, world.rp.proof("POST", PAR))
