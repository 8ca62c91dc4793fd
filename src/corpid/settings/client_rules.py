"""The rules of registration that follow from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.oauth.client_registration import IssuerRules, Rules
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import FIRST_ISSUER
from corpid.settings.issuers import issuers
from corpid.settings.presets import PRESETS

if TYPE_CHECKING:
    from corpid.settings.fields import Settings


def client_rules(settings: Settings) -> Rules:
    """The rules of registration that follow from the settings (D27, D38, D62; decisions.md, "Generations")."""
    rules = {issuer_id: _rules_of(chosen) for issuer_id, chosen in issuers(settings).items()}
    first = rules.pop(FIRST_ISSUER)
    return Rules(
        developer_mode=settings.developer_mode,
        pushed=first.pushed,
        own_url=first.own_url,
        new_client=first.new_client,
        further=rules,
    )


def _rules_of(chosen: Settings) -> IssuerRules:
    served = (GENERATIONS[name] for name in chosen.generations)
    preset = PRESETS.get(chosen.preset)
    return IssuerRules(
        pushed=next((generation for generation in served if generation.pushed), None),
        own_url=chosen.base_url,
        new_client=preset.new_client if preset else {},
    )
