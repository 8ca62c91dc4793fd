"""What the discovery document says to a relying party of LEGACY, as docs/legacy.md tells it (Spec 2.8, Spec "Generations")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid_dev.relying_party.interfaces import LEGACY
from tests.protocol.deployment import ISSUER
from tests.world.clients import FAR

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations("legacy")
PAGE: Final = (Path(__file__).parents[2] / "docs" / "legacy.md").read_text(encoding="utf-8")
NEVER_ISSUED: Final = ("rt_hash", "email", "email_verified", "EntityInfo")


def document(world: World) -> dict[str, Any]:
    return dict(world.get(f"{ISSUER}/.well-known/openid-configuration").json())


def test_the_shared_document_says_of_legacy_what_the_page_tells(worlds: Worlds) -> None:
    """Spec "Side by side": discovery is CURRENT's document plus authorization-info_endpoint."""
    world = worlds.fresh(generations=("current", "legacy"))
    published = document(world)
    assert published["userinfo_endpoint"] == f"{ISSUER}/userinfo"
    assert published["authorization-info_endpoint"] == f"{ISSUER}/authorization-info"
    assert published["authorization_response_iss_parameter_supported"] is False
    assert published["response_modes_supported"] == ["query"]
    assert published["pushed_authorization_request_endpoint"] == f"{ISSUER}/request"
    for member in ("userinfo_endpoint", "authorization_response_iss_parameter_supported", "response_modes_supported"):
        assert f"| `{member}` |" in PAGE


def test_what_the_shared_document_does_not_say_holds_for_legacy_all_the_same(worlds: Worlds) -> None:
    """Spec "Generations": fragment is served, userinfo is not for Bearer, and callbacks carry no iss."""
    world = worlds.fresh(generations=("current", "legacy"))
    world.registers(generations=("legacy", "current"), legacy_until=FAR)
    world.sign_in()
    rp = world.party(interface=LEGACY, response_mode="fragment")
    location = world.get(world.asked(rp)).headers["location"]
    assert "#code=" in location
    assert "iss=" not in location
    token = world.run(rp.believe(world.redeem(world.run(_code(rp, location)), rp))).access_token
    refused = world.get(f"{ISSUER}/userinfo", None, Authorization=f"Bearer {token}")
    assert (refused.status_code, refused.content) == (401, b"")
    assert world.userinfo(rp).status_code == 200


async def _code(rp: Any, location: str) -> str:
    return str(rp.callback(location))


def test_claims_that_are_published_for_the_specification_are_never_issued(worlds: Worlds) -> None:
    """Spec 2.8: claims_supported as it lists them."""
    world = worlds.fresh(generations=("legacy",))
    assert set(NEVER_ISSUED) <= set(document(world)["claims_supported"])
    tokens = world.tokens(scope="openid authinfo tpauthinfo")
    said = json.dumps([tokens.id_token, tokens.access_token_claims, world.run(world.rp.userinfo())])
    for claim in NEVER_ISSUED:
        assert f'"{claim}"' not in said
        assert f"`{claim}`" in PAGE
