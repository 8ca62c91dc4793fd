"""Parts of the provider that the operator switches off, or limits to networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

METADATA: Final = f"{ISSUER}/.well-known/oauth-authorization-server/api"
API: Final = (METADATA, f"{ISSUER}/api/token", f"{ISSUER}/api/v1/entities", f"{ISSUER}/api/v1/audit/keys")
SCIM: Final = (f"{ISSUER}/scim/v2/ServiceProviderConfig", f"{ISSUER}/scim/v2/Users")


def found(world: World, url: str, **headers: str) -> bool:
    """Whether there is anything at an address: a path that does not exist is 404, with every method."""
    return world.get(url, **headers).status_code != 404


@pytest.mark.parametrize(("option", "gone", "left"), [("api_enabled", API, SCIM), ("scim_enabled", SCIM, API)])
def test_a_part_that_is_switched_off_has_no_paths(
    worlds: Worlds, option: str, gone: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """docs/settings.md; the other part, and signing in, stay."""
    world = worlds.fresh(**{option: False})
    assert [url for url in gone if found(world, url)] == []
    assert [url for url in left if not found(world, url)] == []
    assert found(world, f"{ISSUER}/.well-known/openid-configuration")


def test_the_api_exists_only_for_the_networks_it_is_limited_to(worlds: Worlds) -> None:
    """docs/settings.md; an IPv6 address that stands for an IPv4 address counts as that (RFC 4291 §2.5.5.2)."""
    world = worlds.fresh(api_networks=("192.0.2.0/24", "2001:db8::/32"))
    for inside in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"):
        assert [url for url in API if not found(world, url, x_forwarded_for=inside)] == []
    for outside in ("198.51.100.7", "2001:db9::1", "::ffff:198.51.100.7"):
        assert [url for url in API if found(world, url, x_forwarded_for=outside)] == []
        assert [url for url in SCIM if not found(world, url, x_forwarded_for=outside)] == []


def test_an_address_that_a_caller_invents_does_not_open_the_api(worlds: Worlds) -> None:
    """D47: only a declared proxy says who calls."""
    world = worlds.fresh(api_networks="192.0.2.0/24", trusted_proxies=("203.0.113.9",))
    assert [url for url in API if found(world, url, x_forwarded_for="192.0.2.7")] == []
