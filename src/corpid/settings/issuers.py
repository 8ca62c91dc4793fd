"""The issuers of a deployment: settings, contradictions, rules of registration (D62)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from urllib.parse import urlsplit

from corpid.rules.authentication.passkeys import passkeys_work_at
from corpid.rules.oauth.client_registration import IssuerRules, RegistrationRules
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import FIRST_ISSUER
from corpid.settings import checks
from corpid.settings.fields import PRESETS, Issuer, Settings


def issuers(settings: Settings) -> dict[str, Settings]:
    """Return the settings of each issuer by id, the first one's first.

    Source: D62
    """
    return {FIRST_ISSUER: settings, **{issuer.id: _settings_of(issuer, settings) for issuer in settings.issuers}}


def _settings_of(issuer: Issuer, settings: Settings) -> Settings:
    preset = PRESETS[issuer.preset].settings if issuer.preset else {}
    own = {name: getattr(issuer, name) for name in issuer.model_fields_set if name != "id"}
    values = {"generations": (), "return_iss": None, **preset, **own}
    return settings.model_copy(update={**values, "timezone": checks.zone(values.get("timezone", settings.timezone))})


def contradictions(settings: Settings) -> Iterator[tuple[bool, str]]:
    """Yield each possible contradiction: whether it applies, and its sentence.

    The sentence says how to resolve it. Source: D62
    """
    ids = [issuer.id for issuer in settings.issuers]
    for name in ids:
        yield ids.count(name) > 1, f"issuers: {name} is the id of more than one issuer: give each its own"
    every = issuers(settings)
    for name, chosen in every.items():
        yield (
            not chosen.generations,
            f'issuers: {name} names no generations: write for example generations = ["legacy"]',
        )
    for (one, first), (other, second) in combinations(every.items(), 2):
        yield (
            first.base_url == second.base_url,
            f"issuers: {one} and {other} have one base_url, {first.base_url}: give each its own host or path",
        )
        yield (
            urlsplit(first.base_url).scheme != urlsplit(second.base_url).scheme,
            f"issuers: base_url of {one} is {first.base_url} and of {other} {second.base_url}: use https for all of them",
        )
    rp_id, urls = settings.passkey_rp_id, [chosen.base_url for chosen in every.values()]
    hosts = ", ".join(dict.fromkeys(urlsplit(url).hostname or "" for url in urls))
    yield (
        bool(rp_id) and not any(passkeys_work_at(url, rp_id) for url in urls),
        f"passkey_rp_id {rp_id} is not the domain of any issuer: write the host of one, or a domain above it ({hosts})",
    )


def client_rules(settings: Settings) -> RegistrationRules:
    """The rules of registration that follow from the settings.

    Source: D27, D38, D62; Spec "Generations"
    """
    return RegistrationRules(
        developer_mode=settings.developer_mode,
        any_key_url=settings.fetches_anywhere,
        issuers={issuer_id: _rules_of(chosen) for issuer_id, chosen in issuers(settings).items()},
    )


def _rules_of(chosen: Settings) -> IssuerRules:
    preset = PRESETS.get(chosen.preset)
    return IssuerRules(
        served=tuple(GENERATIONS[name] for name in chosen.generations),
        own_url=chosen.base_url,
        new_client=preset.new_client if preset else {},
    )
