"""Presets: settings that belong together, below everything that is set itself, and what new clients get."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from corpid.rules.oauth.generations import CURRENT, FAPI2
from corpid.rules.oauth.records import Client
from corpid.settings import Settings, documentation, load
from corpid.settings.fields import PRESETS
from corpid.settings.issuers import client_rules


@pytest.fixture(autouse=True)
def _somewhere_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPID_CONFIG", raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CORPID_{name.upper()}", raising=False)


def test_public_service_sets_the_wire_shape_of_that_service() -> None:
    """D6, D10, D12, D21, D29, R-0.10, R-0.12, R-0.13, R-5.1, R-12.1."""
    settings = load(preset="public-service")
    assert settings.generations == ("current", "legacy")
    assert settings.return_iss is True
    assert settings.acr_prefix == "urn:singpass:authentication:loa:"
    assert settings.dpop_mismatch_error == "invalid_dpop_proof"
    assert settings.timezone.key == "Asia/Singapore"
    assert settings.context_message_punctuation is False
    assert settings.jwe_header_claims is True
    assert settings.consent_days == 0
    assert (load().context_message_punctuation, load().jwe_header_claims) == (True, False)


def test_a_preset_may_be_named_in_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('preset = "public-service"\n')
    assert load().return_iss is True
    assert load(preset="").return_iss is None
    Path("corpid.toml").unlink()
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    assert load().return_iss is True


def test_whatever_is_set_itself_wins_over_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('preset = "public-service"\ntimezone = "UTC"\n')
    monkeypatch.setenv("CORPID_RETURN_ISS", "false")
    settings = load(generations="fapi2")
    assert (settings.timezone.key, settings.return_iss, settings.generations) == ("UTC", False, ("fapi2",))
    assert settings.dpop_mismatch_error == "invalid_dpop_proof"


def test_the_environment_may_take_the_preset_of_the_file_away(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('preset = "public-service"\n')
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    monkeypatch.setenv("CORPID_ACR_PREFIX", "urn:own:")
    assert load().acr_prefix == "urn:own:"


def test_the_rules_of_clients_follow_from_the_settings() -> None:
    """D1, D22, R-0.6, R-4.2, R-12.4; Spec "Generations"."""
    rules = client_rules(load(preset="public-service", developer_mode=True))
    first = rules.issuers["first"]
    assert (rules.developer_mode, first.pushed) == (True, CURRENT)
    assert first.own_url == load().base_url
    assert first.new_client == {
        "subject": "entity",
        "id_token_encryption_alg": "key",
        "userinfo_encryption_enc": "A256GCM",
        "stringified_blocks": True,
        "pkce": "optional",
        "scopes": (
            "openid", "authinfo", "tpauthinfo", "entity.identity", "entity.basic_profile.name",
            "entity.basic_profile.uen_status", "user.identity", "user.name",
        ),
    }  # fmt: skip
    assert client_rules(load(generations="fapi2")).issuers["first"].pushed == FAPI2
    assert client_rules(load(generations="legacy")).issuers["first"].pushed is None
    assert client_rules(load()).issuers["first"].new_client == {}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_can_be_named_holds_settings_and_members_that_exist_and_is_documented(name: str) -> None:
    assert set(get_args(Settings.model_fields["preset"].annotation)) == {"", *PRESETS}
    assert PRESETS[name].settings.keys() <= Settings.model_fields.keys()
    assert PRESETS[name].new_client.keys() <= set(Client.__struct_fields__)
    load(preset=name)
    assert f"## The preset `{name}`" in documentation()
    assert all(f"| `{key}` |" in documentation() for key in (*PRESETS[name].settings, *PRESETS[name].new_client))
