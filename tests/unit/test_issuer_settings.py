"""`[[issuers]]` in the settings: what holds at each issuer, and the sentence that a bad one is refused with (D62)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from corpid.rules.oauth.client_registration import RegistrationError, new_client, register, used_generations
from corpid.rules.oauth.generations import CURRENT, FAPI2, LEGACY
from corpid.rules.oauth.records import Client
from corpid.settings import Settings, SettingsError, load
from corpid.settings.fields import PRESETS, IssuerSettings
from corpid.settings.issuers import client_rules, issuers

FIRST: Final = "https://login.example.org"
HERE: Final[dict[str, Any]] = {"base_url": FIRST, "trusted_proxies": "10.0.0.1"}
LEGACY_URL: Final = "https://legacy.example.org"
TABLE: Final = {"id": "legacy", "base_url": LEGACY_URL, "generations": ["legacy"]}
WRITTEN: Final = f"""
base_url = "{FIRST}"
trusted_proxies = ["10.0.0.1"]
generations = ["fapi2"]
timezone = "Europe/Paris"
return_iss = false

[[issuers]]
id = "legacy"
base_url = "{LEGACY_URL}"
generations = ["legacy"]

[[issuers]]
id = "public"
base_url = "{FIRST}/public"
preset = "public-service"
generations = ["current"]
dpop_mismatch_error = "invalid_grant"
"""


@pytest.fixture(autouse=True)
def _somewhere_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPID_CONFIG", raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CORPID_{name.upper()}", raising=False)


def refusal(*tables: dict[str, Any], **overrides: Any) -> str:
    with pytest.raises(SettingsError) as refused:
        load(**{**HERE, "issuers": tables, **overrides})
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "validation error" not in sentence
    return sentence


def test_without_further_issuers_the_settings_are_those_of_the_one_issuer() -> None:
    """D62: settings of today work unchanged."""
    chosen = load()
    assert issuers(chosen) == {"first": chosen}


def test_each_issuer_has_what_it_sets_then_its_presets_values_then_the_top_levels() -> None:
    """D62: but whether callbacks carry iss is as its own generation says, unless it says otherwise."""
    Path("corpid.toml").write_text(WRITTEN)
    first, legacy, public = issuers(load()).values()
    assert (first.generations, legacy.generations, public.generations) == (("fapi2",), ("legacy",), ("current",))
    assert (first.return_iss, legacy.return_iss, public.return_iss) == (False, None, True)
    assert [each.timezone.key for each in (first, legacy, public)] == ["Europe/Paris", "Europe/Paris", "Asia/Singapore"]
    assert (legacy.acr_prefix, public.acr_prefix) == (first.acr_prefix, "urn:singpass:authentication:loa:")
    assert public.dpop_mismatch_error == "invalid_grant"
    assert legacy.database_url == first.database_url


@pytest.mark.parametrize("preset", PRESETS)
def test_whatever_a_preset_sets_an_issuer_may_set(preset: str) -> None:
    """D62: else a preset named in a table would change what is common."""
    assert PRESETS[preset].settings.keys() <= IssuerSettings.model_fields.keys()


def test_the_environment_takes_them_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """D62: as every setting has a variable."""
    monkeypatch.setenv(
        "CORPID_ISSUERS", '[{"id": "b", "base_url": "http://localhost:8080/b", "generations": "legacy"}]'
    )
    assert issuers(load())["b"].generations == ("legacy",)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ([{**TABLE, "base_url": FIRST}], f"first and legacy have one base_url, {FIRST}: give each its own"),
        ([TABLE, {**TABLE, "id": "other"}], "legacy and other have one base_url"),
        ([TABLE, {**TABLE, "base_url": f"{FIRST}/x"}], "legacy is the id of more than one issuer: give each its own"),
        ([{**TABLE, "id": "first"}], "first is the issuer of the top-level settings: choose another id"),
        ([{**TABLE, "id": "Legacy"}], "'Legacy' is not an id: write up to 32 lower-case letters"),
        ([{**TABLE, "id": "a_b"}], "is not an id"),
        ([{**TABLE, "id": "a; Path=/"}], "is not an id"),
        ([{**TABLE, "id": "a" * 33}], "is not an id"),
        (
            [{**TABLE, "generations": ["fapi2", "legacy"]}],
            "fapi2 must be the only generation of an issuer, not together with legacy",
        ),
        ([{**TABLE, "generations": []}], "no generation is named"),
        ([{"id": "b", "base_url": LEGACY_URL}], 'b names no generations: write for example generations = ["legacy"]'),
        ([{"base_url": LEGACY_URL}], "number 1, id: it is missing, and every issuer needs it"),
        ([{"id": "b", "generations": ["legacy"]}], "number 1, base_url: it is missing"),
        ([{**TABLE, "base_url": "https://LEGACY.example.org"}], "must be plain"),
        ([{**TABLE, "base_url": "https://legacy.example.org/?x"}], "must be plain"),
        (
            [{**TABLE, "base_url": "https://legacy.example.org/readyz"}],
            "number 1, base_url: https://legacy.example.org/readyz cannot be reached",
        ),
        ([{**TABLE, "base_url": "http://legacy.example.org"}], "use https for all of them"),
        ([{**TABLE, "timezone": "Mars/Base"}], "Mars/Base is not a time zone"),
        ([{**TABLE, "port": 80}], "number 1, port: an issuer has no such setting; it may have id, base_url"),
        ([{**TABLE, "preset": "public"}], "number 1, preset: 'public' cannot be used"),
        ([{**TABLE, "acr_prefix": "a b"}], "number 1, acr_prefix: "),
    ],
)
def test_what_cannot_be_an_issuer_is_refused_with_what_to_do(tables: list[dict[str, Any]], says: str) -> None:
    """D62."""
    sentence = refusal(*tables)
    assert "issuers" in sentence
    assert says in sentence


@pytest.mark.parametrize("tables", [["legacy"], "legacy", "[{", "{}", "[1]", "1", "[" * 100_000, {"id": "b"}, 1, None])
def test_what_is_no_list_of_tables_is_refused(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """D62: also in the environment, which holds JSON."""
    says = "write tables [[issuers]] in corpid.toml, or in the environment a JSON array of objects."
    sentence = refusal(issuers=tables)
    assert sentence.startswith("issuers: this is not ")
    assert sentence.endswith(says)
    if isinstance(tables, str):
        monkeypatch.setenv("CORPID_ISSUERS", tables)
        with pytest.raises(SettingsError) as refused:
            load()
        assert str(refused.value) == sentence.replace("issuers:", "CORPID_ISSUERS:", 1)


def test_the_rules_of_base_url_hold_for_every_issuer() -> None:
    """D52, D62: https needs TLS or a proxy, and developer mode is for one's own machine."""
    local = {**TABLE, "base_url": "http://elsewhere.example"}
    sentence = refusal(local, base_url="http://localhost:8080", trusted_proxies="")
    assert sentence.startswith("issuers: legacy: base_url http://elsewhere.example is http outside localhost")
    remote = refusal(local, base_url="http://localhost:8080", trusted_proxies="10.0.0.1", developer_mode=True)
    assert remote.startswith("issuers: legacy: developer_mode is for your own machine")


@pytest.mark.parametrize(
    ("rp_id", "says"),
    [
        ("elsewhere.example", "passkey_rp_id elsewhere.example is not the domain of any issuer"),
        ("gin.example.org", "is not the domain of any issuer"),
        ("org", "org is not a domain"),
        ("10.0.0.1", "10.0.0.1 is not a domain"),
        ("https://example.org", "is not a domain"),
    ],
)
def test_a_domain_of_passkeys_outside_every_issuers_is_refused(rp_id: str, says: str) -> None:
    """WebAuthn §5.1.2, D62."""
    assert says in refusal(TABLE, passkey_rp_id=rp_id)


@pytest.mark.parametrize("rp_id", ["example.org", "login.example.org", "legacy.example.org", ""])
def test_the_host_of_an_issuer_or_a_domain_above_it_may_be_that_of_passkeys(rp_id: str) -> None:
    assert load(**HERE, issuers=[TABLE], passkey_rp_id=rp_id).passkey_rp_id == rp_id


def a_client(**changes: Any) -> Client:
    return Client(
        client_id="c", name="C", redirect_uris=("https://rp.example/cb",), jwks_uri="https://rp.example/j", **changes
    )


def test_what_a_client_uses_that_names_no_generation_is_pushed_at_its_issuers() -> None:
    """D62; Spec "No downgrade": LEGACY is named per client."""
    rules = client_rules(
        load(
            **HERE,
            issuers=[{**TABLE, "id": "b"}, {**TABLE, "id": "f", "base_url": f"{FIRST}/f", "generations": ["fapi2"]}],
        )
    )
    assert used_generations(a_client(), rules) == (CURRENT,)
    assert used_generations(a_client(issuers=("f",)), rules) == (FAPI2,)
    assert used_generations(a_client(issuers=("f", "first")), rules) == (CURRENT, FAPI2)
    assert used_generations(a_client(issuers=("b",)), rules) == ()
    assert used_generations(a_client(issuers=("b", "first"), generations=("legacy", "current")), rules) == (
        LEGACY,
        CURRENT,
    )


@pytest.mark.parametrize(
    ("named", "fault"),
    [
        (("gone",), "'gone' is no issuer of this deployment: choose from first, legacy"),
        (("legacy", "legacy"), "legacy is named more than once: once is enough"),
    ],
)
def test_a_client_that_names_an_issuer_that_is_not_there_is_refused(named: tuple[str, ...], fault: str) -> None:
    """D62."""
    with pytest.raises(RegistrationError) as refused:
        register(a_client(issuers=named), client_rules(load(**HERE, issuers=[TABLE])))
    assert [(each.member, each.reason) for each in refused.value.faults] == [("issuers", fault)]


def test_no_client_may_redirect_to_any_issuer() -> None:
    """D35, D38, D62: a page that posts an answer there would be taken for a form of our own."""
    rules = client_rules(load(**HERE, issuers=[TABLE]))
    for url in (FIRST, LEGACY_URL):
        client = Client(client_id="c", name="C", redirect_uris=(f"{url}/cb",), jwks_uri="https://rp.example/j")
        with pytest.raises(RegistrationError) as refused:
            register(client, rules)
        assert "this is the address of the provider itself" in str(refused.value)


def test_a_new_client_gets_what_the_preset_of_its_first_issuer_gives() -> None:
    """D62: presets are an issuer's own."""
    rules = client_rules(load(**HERE, issuers=[{**TABLE, "preset": "public-service"}]))
    assert new_client(rules, {}) == {}
    given = new_client(rules, {"issuers": ("legacy",), "generations": ("legacy", "current")})
    assert given.items() >= PRESETS["public-service"].new_client.items()
