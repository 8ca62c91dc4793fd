"""The claims of a userinfo answer (Spec 2.5, D22)."""

from __future__ import annotations

import json

import msgspec

from corpid.rules.oauth.tokens import AccessToken, userinfo_claims
from tests.unit.rules.oauth.given import CLIENT, ISSUER, NOW

TOKEN = AccessToken(
    client_id="rp-1", subject="user-1", user_id="user-1", entity_id="e", scopes=(), jti="j", issued_at=NOW, jkt=None
)
BLOCK: dict[str, object] = {"Result_Set": {"ESrvc_Row_Count": 0, "ESrvc_Result": []}}


def test_the_answer_names_issuer_client_subject_and_times() -> None:
    answer = {"iss": ISSUER, "aud": "rp-1", "sub": "user-1", "iat": int(NOW), "exp": int(NOW) + 600}
    assert userinfo_claims(TOKEN, CLIENT, {}, issuer=ISSUER, now=int(NOW)) == answer


def test_blocks_are_objects_or_text_as_the_client_registered() -> None:
    """D22."""
    blocks = {"auth_info": BLOCK}
    assert userinfo_claims(TOKEN, CLIENT, blocks, issuer=ISSUER, now=int(NOW))["auth_info"] == BLOCK
    as_text = msgspec.structs.replace(CLIENT, stringified_blocks=True)
    text = userinfo_claims(TOKEN, as_text, blocks, issuer=ISSUER, now=int(NOW))["auth_info"]
    assert isinstance(text, str)
    assert json.loads(text) == BLOCK
