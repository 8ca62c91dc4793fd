"""Bundled presets, as data: settings, and members of new clients.

A preset is the lowest layer: whatever the environment, corpid.toml or an override says wins over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

import msgspec

from corpid.rules.oauth.records import ALG_OF_KEY


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment of one kind."""

    purpose: str
    """one sentence for docs/settings.md"""
    settings: Mapping[str, object]
    new_client: Mapping[str, object]
    """member of a client's record → the defaults of a new client"""

    @property
    def generations(self) -> tuple[str, ...]:
        """The generations that it serves."""
        return cast("tuple[str, ...]", self.settings["generations"])


PUBLIC_SERVICE: Final = Preset(
    purpose="The requests and responses of the public service from which the specification was written, so that you can "
    "test a relying party of that service by changing one URL. One was run in this way, unchanged: the npm package "
    "`@govtechsg/singpass-myinfo-oidc-helper` 8.4.6, with legacy. Tests also send the requests of that service's demo "
    "relying parties for Node and Java, with current. No other relying party has been run. "
    "[Step by step](coming-from-a-mock.md#the-public-samples-step-by-step) has the commands; "
    "`corpid demo --preset public-service` serves each generation at an issuer of its own.",
    settings=MappingProxyType(
        {
            "generations": ("current", "legacy"),
            "return_iss": True,
            "acr_prefix": "urn:singpass:authentication:loa:",  # D10, R-0.12
            "dpop_mismatch_error": "invalid_dpop_proof",  # D6, R-0.13
            "context_message_punctuation": False,  # D12, R-5.1
            "jwe_header_claims": True,  # D21, R-12.1
            "consent_days": 0,  # D29
            "timezone": "Asia/Singapore",
        }
    ),
    new_client=MappingProxyType(
        {
            "subject": "entity",  # D1, R-12.4
            "id_token_encryption_alg": ALG_OF_KEY,  # D21: in FAPI2, too
            "userinfo_encryption_enc": "A256GCM",  # D22, R-0.11
            "stringified_blocks": True,
            "pkce": "optional",  # Spec "LEGACY without PKCE"
            "scopes": (
                "openid",
                "authinfo",
                "tpauthinfo",
                "entity.identity",
                "entity.basic_profile.name",
                "entity.basic_profile.uen_status",
                "user.identity",
                "user.name",
            ),
        }
    ),
)
PRESETS: Final[Mapping[str, Preset]] = MappingProxyType({"public-service": PUBLIC_SERVICE})
