"""The generations of the interface as a relying party sees them: what it sends, and what it has to receive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A protected endpoint, read with the access token."""

    name: str
    metadata_name: str
    """the member of the discovery document with its URL"""
    block: str
    """the member of its answer that has to be there"""
    services: bool = True
    """the block lists entity services with roles"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation with the least that its relying party may do."""

    name: str
    scope: str
    resources: tuple[Resource, ...]
    pushed: bool = True
    """the request goes to PAR; else it is the query of the authorization URL"""
    bound: bool = True
    """tokens are bound to a key by DPoP; else they are Bearer tokens"""
    iss_in_callback: bool = False
    id_token_encrypted: bool = True
    resources_signed: bool = True

    @property
    def token_type(self) -> str:
        return "DPoP" if self.bound else "Bearer"

    @property
    def client_requests(self) -> int:
        """Requests of a flow that carry a client assertion."""
        return 2 if self.pushed else 1

    @property
    def proofs(self) -> int:
        """Requests of a flow that carry a DPoP proof."""
        return self.client_requests + len(self.resources) if self.bound else 0

    @property
    def signatures(self) -> int:
        """The signatures that the provider makes for a flow."""
        return 2 + (len(self.resources) if self.resources_signed else 0)


CURRENT: Final = Generation(
    name="current",
    scope="openid authinfo",
    resources=(Resource(name="userinfo", metadata_name="userinfo_endpoint", block="auth_info"),),
)
INTERMEDIATE: Final = replace(
    CURRENT,
    name="intermediate",
    scope="openid authinfo entity.identity entity.basic_profile.name",
    resources=(
        *CURRENT.resources,
        Resource(name="entity-info", metadata_name="entityinfo_endpoint", block="entity_info", services=False),
    ),
)
FAPI2: Final = replace(
    CURRENT,
    name="fapi2",
    iss_in_callback=True,
    id_token_encrypted=False,
    resources_signed=False,
)
LEGACY: Final = replace(
    CURRENT,
    name="legacy",
    resources=(Resource(name="authorization-info", metadata_name="authorization-info_endpoint", block="AuthInfo"),),
    pushed=False,
    bound=False,
    iss_in_callback=True,
)

GENERATIONS: Final = {each.name: each for each in (CURRENT, INTERMEDIATE, FAPI2, LEGACY)}
"""by name, the default first"""
