"""The simulator against the real provider, without sockets: what the protocol tests build on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import people, verification
from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERFACES, INTERMEDIATE, LEGACY, Interface
from corpid_dev.relying_party.verification import ProviderError
from tests.tiers import first_or_full
from tests.world.clients import FAR
from tests.world.example import PERSON_ADDRESS, example_provider

if TYPE_CHECKING:
    from pathlib import Path

ENCRYPTED: dict[str, Any] = {"id_token_encryption_alg": "ECDH-ES+A256KW"}
NESTED: dict[str, Any] = {"userinfo_signing_alg": "ES256", "userinfo_encryption_enc": "A256GCM"}


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"subject": "entity"},
        pytest.param({"id_token_encryption_enc": "A256GCM"}, marks=pytest.mark.full),
        pytest.param({"userinfo_encryption_enc": "A256GCM"}, marks=pytest.mark.full),
        {"userinfo_encryption_enc": "A256CBC-HS512"},
        pytest.param({"sector": "government"}, marks=pytest.mark.full),
    ],
    ids=["default", "entity", "gcm", "nested-gcm", "nested-cbc", "government"],
)
async def test_a_sign_in_checks_out_however_the_client_is_registered(tmp_path: Path, members: dict[str, Any]) -> None:
    """D1, D2, D21, D22, D29."""
    async with example_provider(tmp_path) as op:
        rp = await op.register("rp-1", **members)
        rp.scope = "openid authinfo tpauthinfo user.name"
        tokens = await rp.redeem(await op.sign_in(rp, "rina"))
        claims = await rp.userinfo()
        assert claims["sub"] == tokens.id_token["sub"]
        assert tokens.id_token["sub_type"] == members.get("subject", "user")
        assert "auth_info" in await rp.userinfo("POST")


@pytest.mark.parametrize(
    ("interface", "members"),
    [
        (LEGACY, {}),
        pytest.param(LEGACY, {"id_token_encryption_enc": "A256GCM", "stringified_blocks": True}, marks=pytest.mark.full),
        pytest.param(LEGACY, {"subject": "entity", "sector": "government"}, marks=pytest.mark.full),
        (INTERMEDIATE, {}),
        pytest.param(INTERMEDIATE, {"subject": "entity", "stringified_blocks": True}, marks=pytest.mark.full),
        (FAPI2, {}),
        pytest.param(FAPI2, {"subject": "entity", "stringified_blocks": True}, marks=pytest.mark.full),
        pytest.param(FAPI2, ENCRYPTED, marks=pytest.mark.full),
        (FAPI2, {**ENCRYPTED, **NESTED, "id_token_encryption_enc": "A256GCM"}),
    ],
)  # fmt: skip
async def test_a_sign_in_of_every_generation_checks_out(
    tmp_path: Path, interface: Interface, members: dict[str, Any]
) -> None:
    """Spec "Generations"; D1, D22, D26, R-12.2."""
    async with example_provider(tmp_path, generations=(interface.name,)) as op:
        rp = await op.register("rp-1", interface, **members)
        rp.scope = " ".join(["openid", *interface.scopes])
        tokens = await rp.redeem(await op.sign_in(rp, "rina"))
        assert "PERMIT" in str(await rp.userinfo())
        if interface.entity_info:
            assert (await rp.entity_info())["entity_info"]["entity_name"] == "Example Harbour Pte. Ltd."
        if interface.packed_subject:
            assert verification.members(tokens.id_token["sub"])["s"] == "S0000001X"


@pytest.mark.parametrize("mode", first_or_full(LEGACY.response_modes))
async def test_answers_come_in_every_response_mode(tmp_path: Path, mode: str) -> None:
    """D37, D38: a code and a refusal alike."""
    async with example_provider(tmp_path, generations=("legacy",)) as op:
        rp = await op.register("rp-1", LEGACY)
        rp.response_mode = mode
        browser = op.new_browser(PERSON_ADDRESS)
        await browser.open(await rp.begin())
        with pytest.raises(ProviderError, match="access_denied"):
            rp.callback(await people.cancel(browser))
        rp.restart()
        assert (await rp.redeem(await op.sign_in(rp, "rina"))).scope == rp.scope


async def test_two_generations_stand_side_by_side(tmp_path: Path) -> None:
    """Spec "Side by side": one document, one iss flag, one directory, two kinds of token."""
    async with example_provider(tmp_path, generations=("current", "legacy")) as op:
        rp = await op.register("rp-1", generations=[CURRENT.name, LEGACY.name], legacy_until=FAR)
        for interface, person in ((CURRENT, "rina"), (LEGACY, "nadia")):
            rp.restart()
            rp.interface = interface
            tokens = await rp.redeem(await op.sign_in(rp, person, "209900042K"))
            assert tokens.raw["token_type"] == interface.scheme
            assert interface.userinfo.blocks["authinfo"] in await rp.userinfo()
        assert rp.metadata["authorization_response_iss_parameter_supported"] is False
        assert rp.metadata["require_pushed_authorization_requests"] is False


@pytest.mark.full
@pytest.mark.parametrize("name", INTERFACES)
async def test_what_a_generation_promises_alone_is_what_it_publishes(tmp_path: Path, name: str) -> None:
    """Spec 2.8, D41, as the relying party's side has read them."""
    async with example_provider(tmp_path, generations=(name,)) as op:
        rp = await op.register("rp-1", INTERFACES[name])
        published = await rp.discover()
        told = {
            member: sorted(value) if isinstance(value, list) else value
            for member, value in published.items()
            if member in rp.interface.alone
        }
        expected = {
            member: sorted(value) if isinstance(value, tuple) else value
            for member, value in rp.interface.alone.items()
            if value is not None
        }
        assert told == expected


async def test_one_dishonest_value_is_enough_to_be_refused(tmp_path: Path) -> None:
    """Spec 7.1: the pieces take overrides, and the provider notices."""
    async with example_provider(tmp_path) as op:
        rp = await op.register("rp-1")
        wrong_audience = await rp.push({"client_assertion": rp.assertion(aud="https://other.example")})
        assert (wrong_audience.status_code, wrong_audience.json()["error"]) == (401, "invalid_client")
        no_proof = await rp.push(headers={"DPoP": None})
        assert (no_proof.status_code, no_proof.json()["error"]) == (400, "invalid_request")
        twice = await rp.push({"scope": ["openid", "openid"]})
        assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request")
        assert (await rp.push()).status_code == 201


async def test_refusing_consent_and_time_that_has_passed_arrive_as_errors(tmp_path: Path) -> None:
    """D17, Spec 2.3: access_denied on the callback; a code ends after 60 seconds."""
    async with example_provider(tmp_path) as op:
        rp = await op.register("rp-1")
        rp.scope = "openid user.name"
        url = await rp.begin()
        browser = op.new_browser(PERSON_ADDRESS)
        callback = await people.sign_in(browser, url, op.persons["rina"], agree=False, now=op.clock)
        with pytest.raises(ProviderError) as denied:
            rp.callback(callback)
        assert denied.value.error == "access_denied"
        rp.restart()
        too_late = await op.sign_in(rp, "rina")
        op.clock.pass_(61)
        with pytest.raises(ProviderError) as late:
            await rp.redeem(too_late)
        assert (late.value.error, late.value.status) == ("invalid_grant", 400)
