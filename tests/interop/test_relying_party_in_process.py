"""The simulator against the real provider, without sockets: what the protocol tests build on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.sandbox import walk
from corpid.sandbox.answers import ProviderError
from tests.relying_party import OpenedProvider, with_provider

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"subject": "entity"},
        {"id_token_encryption_enc": "A256GCM"},
        {"userinfo_encryption_enc": "A256GCM"},
        {"userinfo_encryption_enc": "A256CBC-HS512"},
        {"sector": "government"},
    ],
    ids=["default", "entity", "gcm", "nested-gcm", "nested-cbc", "government"],
)
def test_a_sign_in_checks_out_however_the_client_is_registered(tmp_path: Path, members: dict[str, str]) -> None:
    """D1, D2, D21, D22, D29."""

    async def story(op: OpenedProvider) -> None:
        rp = await op.register("rp-1", **members)
        rp.scope = "openid authinfo tpauthinfo user.name"
        tokens = await rp.redeem(await op.sign_in(rp, "rina"))
        claims = await rp.userinfo()
        assert claims["sub"] == tokens.id_token["sub"]
        assert tokens.id_token["sub_type"] == members.get("subject", "user")
        assert "auth_info" in await rp.userinfo("POST")

    with_provider(tmp_path, story)


def test_one_dishonest_value_is_enough_to_be_refused(tmp_path: Path) -> None:
    """Spec 7.1: the pieces take overrides, and the provider notices."""

    async def story(op: OpenedProvider) -> None:
        rp = await op.register("rp-1")
        wrong_audience = await rp.push({"client_assertion": rp.assertion(aud="https://other.example")})
        assert (wrong_audience.status_code, wrong_audience.json()["error"]) == (401, "invalid_client")
        no_proof = await rp.push(headers={"DPoP": None})
        assert (no_proof.status_code, no_proof.json()["error"]) == (400, "invalid_request")
        twice = await rp.push({"scope": ["openid", "openid"]})
        assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request")
        assert (await rp.push()).status_code == 201

    with_provider(tmp_path, story)


def test_refusing_consent_and_time_that_has_passed_arrive_as_errors(tmp_path: Path) -> None:
    """D17, Spec 2.3: access_denied on the callback; a code ends after 60 seconds."""

    async def story(op: OpenedProvider) -> None:
        rp = await op.register("rp-1")
        rp.scope = "openid user.name"
        url = await rp.begin()
        async with op.browser() as browser:
            callback = await walk.sign_in(browser, url, op.persons["rina"], agree=False, now=op.clock)
        with pytest.raises(ProviderError) as denied:
            rp.callback(callback)
        assert denied.value.error == "access_denied"
        rp.restart()
        callback = await op.sign_in(rp, "rina")
        op.clock.advance(61)
        with pytest.raises(ProviderError) as late:
            await rp.redeem(callback)
        assert (late.value.error, late.value.status) == ("invalid_grant", 400)

    with_provider(tmp_path, story)
