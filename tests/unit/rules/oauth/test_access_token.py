"""The access token: what goes in, and how it is read back (RFC 9068, D6, D18, D20, D25)."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from corpid.jose import compact, key_ring
from corpid.jose.keys import ALGORITHMS
from corpid.rules.oauth import tokens
from corpid.rules.oauth.errors import InvalidToken
from corpid.rules.oauth.tokens import AccessToken, Parties, validate_binding, verify
from tests.unit.jose.signed import b64, sign, tuple_of, unsigned
from tests.unit.rules.oauth.given import CHALLENGE, ISSUER, JKT, NOW, grant

if TYPE_CHECKING:
    from corpid.jose.key_ring import KeyRing
    from corpid.rules.oauth.records import SubjectMode

USERINFO = ISSUER + "/userinfo"
PARTIES = Parties(
    user_id="user-1",
    entity_id="200000001A",
    user_attributes={"name": "Rina"},
    entity_attributes={"entity_name": "Harbour Works"},
)


@cache
def ring() -> KeyRing:
    key = key_ring.open_signing_key(key_ring.generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None)
    return key_ring.build([key], now=NOW, kept_seconds=1)


def claims(mode: SubjectMode = "user", **members: Any) -> dict[str, Any]:
    return tokens.access_token_claims(
        grant(**members), PARTIES, mode, issuer=ISSUER, audience=[USERINFO], token_id="the-jti", now=int(NOW)
    )


def signed(changes: dict[str, Any] | None = None, typ: str = "at+jwt", mode: SubjectMode = "user") -> str:
    """A token of ours with these changes; None leaves a claim out."""
    changed = {**claims(mode), **(changes or {})}
    return ring().sign(json.dumps({name: v for name, v in changed.items() if v is not None}).encode(), typ)


def verified(text: str, now: float = NOW) -> AccessToken:
    return verify(text, ring(), issuer=ISSUER, resource_url=USERINFO, now=now)


def test_the_claims_are_those_of_d20_and_tell_nothing_of_person_or_entity_but_who_they_are() -> None:
    assert claims() == {
        "iss": ISSUER,
        "aud": [USERINFO],
        "sub": "user-1",
        "sub_type": "user",
        "entity": {"sub": "200000001A", "sub_type": "entity"},
        "client_id": "rp-1",
        "scope": "openid authinfo",
        "iat": int(NOW),
        "exp": int(NOW) + 600,
        "jti": "the-jti",
        "auth_time": int(NOW) - 60,
        "acr": "urn:idp:authentication:loa:2",
        "cnf": {"jkt": JKT},
    }
    assert "cnf" not in claims(jkt=None)


@pytest.mark.parametrize(("mode", "subject"), [("user", "user-1"), ("entity", "200000001A")])
def test_a_token_is_read_back_whoever_is_its_subject(mode: SubjectMode, subject: str) -> None:
    """D1."""
    assert verified(signed(mode=mode)) == AccessToken(
        client_id="rp-1",
        subject=subject,
        user_id="user-1",
        entity_id="200000001A",
        scopes=("openid", "authinfo"),
        jti="the-jti",
        issued_at=NOW,
        jkt=JKT,
    )


def test_the_jti_is_the_hash_of_what_the_code_was_redeemed_with() -> None:
    """D18: known to whoever presents the same code again, and to nobody else."""
    written = tuple_of("at", ISSUER, "rp-1", "the code", CHALLENGE)

    def made(**changes: str) -> str:
        given = {"issuer": ISSUER, "client_id": "rp-1", "code": "the code", "challenge": CHALLENGE, **changes}
        return tokens.identifier(**given)

    assert made() == b64(hashlib.sha256(written).digest())
    others = [made(client_id="rp-2"), made(code="x"), made(challenge="x"), made(issuer="x"), made(client_id="rp-1t", code="he code")]  # fmt: skip
    assert len({made(), *others}) == 6


@pytest.mark.parametrize(("typ", "accepted"), [("at+jwt", True), ("application/at+jwt", True), ("JWT", False), ("AT+JWT", False)])  # fmt: skip
def test_the_type_tells_an_access_token_from_our_other_tokens(typ: str, accepted: bool) -> None:
    """RFC 9068 §4: an ID token or a userinfo answer is no access token."""
    key = ring().active
    header = {"alg": "ES256", "kid": key.kid, "typ": typ}
    text = compact.sign(b64(header).encode(), json.dumps(claims()).encode(), key.private, ALGORITHMS["ES256"])
    if accepted:
        verified(text)
        return
    with pytest.raises(InvalidToken, match="not an access token of this provider"):
        verified(text)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"iss": "https://other.example"}, "issued by another provider"),
    "no issuer": ({"iss": None}, "issued by another provider"),
    "another resource": ({"aud": [ISSUER + "/entity-info"]}, "not for this resource"),
    "the resource's beginning": ({"aud": [ISSUER]}, "not for this resource"),
    "the resource as text": ({"aud": USERINFO}, "not for this resource"),
    "no audience": ({"aud": None}, "not for this resource"),
    "expired this moment": ({"exp": NOW}, "expired 0 s ago"),
    "expired": ({"exp": NOW - 7}, "expired 7 s ago"),
    "no exp": ({"exp": None}, "not an access token"),
    "exp as text": ({"exp": "never"}, "exp must be a number"),
    "no iat": ({"iat": None}, "not an access token"),
    "no jti": ({"jti": None}, "not an access token"),
    "no sub": ({"sub": None}, "not an access token"),
    "no other party": ({"entity": None}, "not an access token"),
    "another party without sub": ({"entity": {}}, "not an access token"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_token_that_does_not_hold_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        verified(signed(changes))
    assert refused.value.description.startswith("access token: ")
    assert reason in refused.value.description


def test_a_token_ends_after_ten_minutes() -> None:
    """Spec 8."""
    text = signed()
    verified(text, NOW + 599.9)
    with pytest.raises(InvalidToken, match="expired 0 s ago"):
        verified(text, NOW + 600)


def test_what_nobody_here_signed_is_refused() -> None:
    kid = ring().active.kid
    real = signed()
    forged = {
        "no token": "opaque",
        "too long": real + "x" * 8192,
        "no key": sign(claims(), typ="at+jwt"),
        "another key": sign(claims(), typ="at+jwt", kid=kid),
        "unsecured": unsigned({"alg": "none", "typ": "at+jwt", "kid": kid}, claims()),
        "symmetric": unsigned({"alg": "HS256", "typ": "at+jwt", "kid": kid}, claims()),
        "another curve": sign(claims(), alg="ES384", typ="at+jwt", kid=kid),
        "other claims": f"{real.partition('.')[0]}.{b64({**claims(), 'sub': 'x'})}.{real.rpartition('.')[2]}",
        "crit": unsigned({"alg": "ES256", "typ": "at+jwt", "kid": kid, "crit": ["exp"]}, claims()),
    }
    for text in forged.values():
        with pytest.raises(InvalidToken, match="access token: "):
            verified(text)


def test_a_token_is_used_with_the_key_that_it_is_bound_to() -> None:
    """D6, D25: an unbound token is no token under DPoP."""
    validate_binding(verified(signed()), JKT)
    for changes, jkt in (({}, JKT[:-1] + "M"), ({"cnf": None}, JKT), ({"cnf": {}}, JKT), ({"cnf": {"jkt": 1}}, "1")):
        with pytest.raises(InvalidToken, match="not bound to the key of the DPoP proof"):
            validate_binding(verified(signed(changes)), jkt)
