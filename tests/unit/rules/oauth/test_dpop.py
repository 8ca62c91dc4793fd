"""DPoP proofs: verified together with what they are for (RFC 9449 §4.3, D6, D7, D33)."""

from __future__ import annotations

from typing import Any

import pytest

from corpid.jose import compact
from corpid.rules.oauth import dpop
from corpid.rules.oauth.dpop import Proof, ProofTarget
from corpid.rules.oauth.errors import InvalidDPoPProof, InvalidRequest
from corpid.rules.oauth.generations import CURRENT
from tests.unit.jose.signed import CURVES, b64, key, private_jwk, public_jwk, sign, unsigned
from tests.unit.rules.oauth.given import JKT, NOW

URL = "https://op.example/userinfo"
TARGET = ProofTarget(method="POST", url=URL)
CLAIMS = {"jti": "one", "htm": "POST", "htu": URL, "iat": int(NOW)}
TOKEN = "an.access.token"
ATH = "UkM2b42E54u4hWzuKV_B3zyulUA6vtNYjJUv_ru2Qck"


def proof(header: dict[str, Any] | None = None, alg: str = "ES256", **changes: Any) -> str:
    """A proof with these changes, signed by the key in it; None leaves a member out."""
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    members = {"typ": "dpop+jwt", "jwk": public_jwk(key(CURVES[alg])), **(header or {})}
    return sign(claims, alg=alg, **{name: value for name, value in members.items() if value is not None})


def verified(text: str, access_token: str | None = None, target: ProofTarget = TARGET) -> Proof:
    return dpop.verify(text, target, algorithms=CURRENT.proof_algorithms, now=NOW, access_token=access_token)


@pytest.mark.parametrize(("alg", "curve"), CURVES.items())
def test_a_proof_by_another_library_yields_the_thumbprint_of_its_key(alg: str, curve: str) -> None:
    """A spent jti is remembered for the 120 s and the margin of D49."""
    assert verified(proof(alg=alg)) == Proof(
        jkt=key(curve).thumbprint(), jti="one", issued_at=NOW, nonce=None, remember_seconds=120 + 300
    )


def test_members_that_nobody_knows_are_ignored_and_do_not_change_the_thumbprint() -> None:
    """D7."""
    jwk = public_jwk(key(), use="sig", kid="any", alg="any", x5c=["any"])
    assert verified(proof({"jwk": jwk, "kid": "k", "other": 1}, ath="unasked", more={})).jkt == key().thumbprint()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no jti": ({"jti": None}, "jti is missing"),
    "a jti that is a number": ({"jti": 1}, "jti must be a string of 1 to 256 characters"),
    "an empty jti": ({"jti": ""}, "jti must be a string of 1 to 256 characters"),
    "no htm": ({"htm": None}, "htm must be POST"),
    "another method": ({"htm": "GET"}, "htm must be POST"),
    "a method in lower case": ({"htm": "post"}, "htm must be POST"),
    "no htu": ({"htu": None}, f"htu must be {URL}"),
    "htu that is a list": ({"htu": [URL]}, f"htu must be {URL}"),
    "no iat": ({"iat": None}, "iat is missing"),
    "iat as text": ({"iat": "now"}, "iat must be a number of seconds"),
    "iat as boolean": ({"iat": True}, "iat must be a number of seconds"),
    "too old": ({"iat": NOW - 121}, "iat is 121 s behind this server's clock; 120 s are allowed"),
    "too new": ({"iat": NOW + 31}, "iat is 31 s ahead of this server's clock; 30 s are allowed"),
    "not yet": ({"nbf": NOW + 31}, "nbf is 31 s ahead of this server's clock; 30 s are allowed"),
    "expired": ({"exp": NOW - 5}, "expired 5 s ago by this server's clock"),
    "expired this moment": ({"exp": NOW}, "expired 0 s ago by this server's clock"),
    "exp as text": ({"exp": "never"}, "exp must be a number of seconds"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_claim_that_does_not_hold_is_refused_with_what_was_expected(changes: dict[str, Any], reason: str) -> None:
    """D7, D28: for clocks the measured difference."""
    with pytest.raises(InvalidDPoPProof) as refused:
        verified(proof(**changes))
    assert refused.value.description == f"DPoP proof: {reason}"
    assert refused.value.status == 401


@pytest.mark.parametrize(
    "changes", [{"iat": NOW - 120}, {"iat": NOW + 30, "nbf": NOW + 30}, {"exp": NOW + 0.1}, {"jti": "x" * 256}]
)
def test_the_edges_of_what_holds(changes: dict[str, Any]) -> None:
    """D7: nbf and exp are honoured if present, never required."""
    verified(proof(**changes))


def test_a_spent_jti_is_remembered_for_as_long_as_its_proof_would_hold() -> None:
    assert verified(proof(iat=NOW - 120)).remember_seconds == 300
    assert verified(proof(iat=NOW + 30)).remember_seconds == 450


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "no typ": ({"typ": None}, "typ must be dpop\\+jwt"),
    "JWT": ({"typ": "JWT"}, "typ must be dpop\\+jwt"),
    "typ in capitals": ({"typ": "DPOP+JWT"}, "typ must be dpop\\+jwt"),
    "no jwk": ({"jwk": None}, "the header has no jwk"),
    "jwk as text": ({"jwk": "{}"}, "the header has no jwk"),
    "an empty jwk": ({"jwk": {}}, "not an EC key"),
    "an RSA key": ({"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}}, "not an EC key"),
    "a private key": ({"jwk": private_jwk(key())}, "jwk must be a public key but has d"),
    "a secret key": ({"jwk": {"kty": "oct", "k": "AQAB"}}, "jwk must be a public key but has k"),
    "a point off the curve": ({"jwk": public_jwk(key()) | {"x": b64(bytes(32))}}, "no point on the curve"),
    "another key": ({"jwk": public_jwk(key(number=1))}, "the signature is not valid"),
    "a key of another curve": ({"jwk": public_jwk(key("secp256k1"))}, "does not fit the algorithm of the key"),
    "a larger key": ({"jwk": public_jwk(key("P-384"))}, "does not fit the algorithm of the key"),
    "a key at a URL": ({"jku": "https://evil.example"}, "header member jku is not accepted"),
    "crit": ({"crit": ["exp"]}, "header member crit is not accepted"),
}


@pytest.mark.parametrize(("header", "reason"), HEADERS.values(), ids=HEADERS.keys())
def test_a_header_that_is_not_a_proofs_is_refused(header: dict[str, Any], reason: str) -> None:
    members = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public_jwk(key()), **header}
    written = {name: value for name, value in members.items() if value is not None}
    text = unsigned(written, CLAIMS)
    with pytest.raises(InvalidDPoPProof, match=reason):
        verified(text)


@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "ES256 ", "EdDSA"])
def test_an_algorithm_outside_the_list_is_refused(alg: str) -> None:
    text = unsigned({"alg": alg, "typ": "dpop+jwt", "jwk": public_jwk(key())}, CLAIMS)
    with pytest.raises(InvalidDPoPProof, match="alg must be one of ES256, ES256K, ES384, ES512"):
        verified(text)


@pytest.mark.parametrize(
    "htu",
    [
        URL,
        "HTTPS://OP.Example/userinfo",
        "https://op.example:443/userinfo",
        "https://op.example:/userinfo",
        URL + "?a=b",
        URL + "#part",
        URL + "?#",
    ],
)
def test_the_same_url_is_recognised_in_its_other_spellings(htu: str) -> None:
    """D7: query and fragment are dropped, case and default port normalised."""
    verified(proof(htu=htu))


@pytest.mark.parametrize(
    "htu",
    [
        "",
        "/userinfo",
        "https://op.example",
        URL + "/",
        "https://op.example//userinfo",
        "https://op.example/Userinfo",
        "https://op.example/userinf%6f",
        "https://op.example/x/../userinfo",
        "http://op.example/userinfo",
        "http://op.example:443/userinfo",
        "https://op.example:80/userinfo",
        "https://op.example:0/userinfo",
        "https://op.example:99999/userinfo",
        "https://op.example:x/userinfo",
        "https://op.example./userinfo",
        "https://op.example.evil/userinfo",
        "https://user@op.example/userinfo",
        "https://evil.example\\@op.example/userinfo",
        "https://op.example/userinfo;a",
        "https://op.example/user\tinfo",
        "https://op.example/user\ninfo",
        " https://op.example/userinfo",
        "https://op.example/userinfo ",
        "https://[op.example]/userinfo",
        "https://\uff4fp.example/userinfo",
        "\0" + URL,
    ],
)
def test_another_url_is_refused_with_the_right_one(htu: str) -> None:
    with pytest.raises(InvalidDPoPProof) as refused:
        verified(proof(htu=htu))
    assert refused.value.description == f"DPoP proof: htu must be {URL}"


@pytest.mark.parametrize(("path", "htu"), [("https://op.example/", "https://op.example"), ("http://localhost:8080/a", "http://LOCALHOST:8080/a?b")])  # fmt: skip
def test_an_empty_path_is_the_root_and_a_port_that_is_no_default_is_kept(path: str, htu: str) -> None:
    verified(proof(htu=htu), target=ProofTarget(method="POST", url=path))


def test_a_proof_for_a_resource_holds_the_hash_of_its_access_token() -> None:
    """RFC 9449 §4.3 (11), D6; ATH was computed with openssl."""
    assert verified(proof(ath=ATH), TOKEN).jti == "one"
    for wrong in (None, "", ATH + "=", ATH[:-1], TOKEN, 1, [ATH]):
        with pytest.raises(InvalidDPoPProof, match="ath must be the SHA-256 of the access token, base64url"):
            verified(proof(ath=wrong), TOKEN)
    with pytest.raises(InvalidDPoPProof, match="ath must be"):
        verified(proof(ath=ATH), TOKEN + "x")


@pytest.mark.parametrize(("sent", "read"), [("a nonce", "a nonce"), (None, None), (1, None), (["a"], None)])
def test_a_nonce_is_handed_on_if_it_is_text(sent: object, read: str | None) -> None:
    assert verified(proof(nonce=sent)).nonce == read


def test_a_request_has_one_dpop_header_or_none() -> None:
    """RFC 9449 §4.3 (1)."""
    assert dpop.header([]) is None
    assert dpop.header([b" a.b.c "]) == "a.b.c"
    with pytest.raises(InvalidDPoPProof, match="more than one DPoP header"):
        dpop.header([b"a.b.c", b"a.b.c"])
    for wrong in (b"", b"a.b.c, a.b.c", b"DPoP a.b.c"):
        with pytest.raises(InvalidDPoPProof):
            verified(dpop.header([wrong]) or "")
    with pytest.raises(InvalidDPoPProof, match="not a compact JWS"):
        dpop.header([b"\xff"])


def test_a_thumbprint_has_43_characters() -> None:
    """D6."""
    assert dpop.validate_jkt(JKT) == JKT
    for wrong in (JKT[:-1], JKT + "A", JKT + "=", JKT[:-1] + "+", JKT + "\n", "ü" * 43):
        with pytest.raises(InvalidRequest, match="dpop_jkt must be the 43 base64url characters"):
            dpop.validate_jkt(wrong)


def test_of_a_header_that_came_before_everything_is_checked_again() -> None:
    """D7: kept is what its bytes say, not what was found about a proof."""
    text = proof()
    assert verified(text).jkt == key().thumbprint()
    with pytest.raises(InvalidDPoPProof, match="alg must be one of ES384"):
        dpop.verify(text, TARGET, algorithms=("ES384",), now=NOW)
    header, _, signature = text.split(".")
    _, claims, _ = proof(jti="another").split(".")
    with pytest.raises(InvalidDPoPProof, match="signature"):
        verified(f"{header}.{claims}.{signature}")


def test_a_header_too_long_to_keep_is_read_as_any_other() -> None:
    """RFC 9449 §4.3."""
    text = proof({"more": "x" * compact.CACHED_HEADER_BYTES})
    assert verified(text) == verified(text)
