"""The claims of an ID token (OpenID Connect Core §2, §3.1.3.6, Spec 2.4, D2)."""

from __future__ import annotations

from corpid.rules.oauth.generations import CURRENT, LEGACY
from corpid.rules.oauth.tokens import Parties, at_hash, id_token_claims
from tests.unit.rules.oauth.given import ISSUER, NOW, grant

PARTIES = Parties(
    user_id="user-1",
    entity_id="200000001A",
    user_attributes={"name": "Rina"},
    entity_attributes={"entity_name": "Harbour Works"},
)


def test_the_hash_of_an_access_token_is_the_one_that_openssl_computes() -> None:
    """printf an.access.token | openssl dgst -sha256 -binary | head -c 16 | openssl base64."""
    assert at_hash("an.access.token") == "UkM2b42E54u4hWzuKV_B3w"


def test_the_claims_are_those_of_d2() -> None:
    token = id_token_claims(
        grant(), PARTIES, "user", CURRENT, issuer=ISSUER, access_token="an.access.token", now=int(NOW)
    )
    assert token == {
        "iss": ISSUER,
        "aud": "rp-1",
        "iat": int(NOW),
        "exp": int(NOW) + 600,
        "nonce": "the nonce",
        "at_hash": "UkM2b42E54u4hWzuKV_B3w",
        "auth_time": int(NOW) - 60,
        "amr": ["pwd", "otp"],
        "acr": "urn:idp:authentication:loa:2",
        "sub": "user-1",
        "sub_type": "user",
        "sub_attributes": {"name": "Rina"},
        "entity": {"sub": "200000001A", "sub_type": "entity", "sub_attributes": {"entity_name": "Harbour Works"}},
    }


def test_a_nonce_is_returned_only_if_one_was_sent() -> None:
    token = id_token_claims(
        grant(nonce=None), PARTIES, "entity", CURRENT, issuer=ISSUER, access_token="t", now=int(NOW)
    )
    assert "nonce" not in token


def test_the_claims_of_legacy_have_no_acr() -> None:
    """R-12.2."""
    token = id_token_claims(grant(), PARTIES, "user", LEGACY, issuer=ISSUER, access_token="t", now=int(NOW))
    assert "acr" not in token
    assert token["auth_time"] == int(NOW) - 60


def test_a_session_is_named_only_if_the_grant_names_one() -> None:
    """Spec 2.8 lists sid; OpenID Connect Front-Channel Logout §3."""
    told = [
        id_token_claims(grant(sid=sid), PARTIES, "user", LEGACY, issuer=ISSUER, access_token="t", now=int(NOW))
        for sid in ("", "a-session")
    ]
    assert ["sid" in token for token in told] == [False, True]
    assert told[1]["sid"] == "a-session"
