"""Claims that the header of a JWE repeats, where the deployment wants it (RFC 7519 §5.3, D21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.verification import CheckFailed
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations("intermediate")


def headers(world: World, **members: Any) -> dict[str, dict[str, Any]]:
    """The header of each JWE that one sign-in yields; what is inside was verified."""
    world.registers(userinfo_encryption_enc="A256GCM", **members)
    rp = world.party(userinfo_enc="A256GCM", scope="openid authinfo entity.basic_profile.name")
    tokens = world.tokens(rp)
    assert (tokens.id_token["iss"], tokens.id_token["aud"]) == (ISSUER, "rp-1")
    for claims in (world.run(rp.userinfo()), world.run(rp.entity_info())):
        assert (claims["iss"], claims["aud"]) == (ISSUER, "rp-1")
    answers = {name: world.run(rp.resource(endpoint=f"{name}_endpoint")).text for name in ("userinfo", "entityinfo")}
    return {name: jwt.peek(token)[0] for name, token in {"ID token": tokens.raw["id_token"], **answers}.items()}


def test_the_header_of_every_jwe_repeats_iss_and_aud(worlds: Worlds) -> None:
    """D21: those of the JWT inside, so that the relying party knows before it decrypts."""
    found = headers(worlds.fresh(jwe_header_claims=True))
    assert found.keys() == {"ID token", "userinfo", "entityinfo"}
    assert {(header["iss"], header["aud"]) for header in found.values()} == {(ISSUER, "rp-1")}


def test_by_default_no_header_does(worlds: Worlds) -> None:
    """D21: libraries that know no such members of a header refuse them."""
    assert not [header for header in headers(worlds.fresh()).values() if header.keys() & {"iss", "aud"}]


@pytest.mark.parametrize("change", [lambda rp: setattr(rp, "client_id", "rp-3"), lambda rp: setattr(rp, "issuer", "x")])
def test_the_simulated_relying_party_compares_them(worlds: Worlds, change: Callable[[Any], None]) -> None:
    """RFC 7519 §5.3: the application verifies that the values are identical."""
    world = worlds.fresh(jwe_header_claims=True)
    answer = world.redeem(world.code())
    change(world.rp)
    with pytest.raises(CheckFailed, match="of the encryption's header"):
        world.run(world.rp.believe(answer))


@pytest.mark.parametrize("setting", [True, False])
def test_a_client_can_differ_from_the_deployment(worlds: Worlds, *, setting: bool) -> None:
    """D71: it depends on the library of the relying party."""
    found = headers(worlds.fresh(jwe_header_claims=setting), jwe_header_claims=not setting)
    assert {header.keys() >= {"iss", "aud"} for header in found.values()} == {not setting}
