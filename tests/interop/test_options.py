"""What clients and deployments can choose, each with a stock library whose strict checks are on (D1, D6, D10, D22)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERMEDIATE, LEGACY, Interface
from tests.interop.libraries import FAR_AWAY, ROLES, client_of, connected, in_both_languages, roles, sign_in
from tests.interop.stock_clients import Refused, Registered, public_keys, write_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.interop.running import Provider

    Serving = Callable[..., Provider]

pytestmark = pytest.mark.full

PUBLIC_ACR = "urn:singpass:authentication:loa:2"


def overheard(running: Provider, name: str) -> list[str]:
    """What the provider answers from now on at the path with this end."""
    heard: list[str] = []

    def listen(body: bytes) -> bytes:
        heard.append(body.decode())
        return body

    running.wire.responses[name] = listen
    return heard


def opened(blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Userinfo whose blocks were strings that hold JSON (R-0.6)."""
    return {**blocks, **{name: json.loads(blocks[name]) for name in CURRENT.userinfo.blocks.values()}}


@in_both_languages
@pytest.mark.parametrize(("subject", "other"), [("user", "entity"), ("entity", "act")])
def test_both_tokens_of_a_sign_in_have_the_subject_that_was_chosen(
    serving: Serving, tmp_path: Path, language: str, subject: str, other: str
) -> None:
    """D1, OpenID Connect Core §5.3.2."""
    running = serving(CURRENT)
    with client_of(running, tmp_path, language, CURRENT, subject=subject) as client:
        claims = sign_in(running, client).claims
        assert claims["sub_type"] == subject
        assert other in claims
        assert client.userinfo()["sub"] == claims["sub"]


@in_both_languages
@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_encrypted_userinfo_is_opened_and_verified(serving: Serving, tmp_path: Path, language: str, enc: str) -> None:
    """D22: a signed JWT nested in a JWE."""
    running = serving(CURRENT)
    with client_of(running, tmp_path, language, CURRENT, userinfo_encryption_enc=enc) as client:
        sign_in(running, client)
        heard = overheard(running, "userinfo")
        assert roles(client.userinfo(), CURRENT) == ROLES
        assert jwt.peek(heard[0])[0]["enc"] == enc


def test_entity_info_is_encrypted_with_userinfo(serving: Serving, tmp_path: Path) -> None:
    """D22, D26; openid-client opens nothing but ID tokens and userinfo."""
    running = serving(INTERMEDIATE)
    with client_of(running, tmp_path, "python", INTERMEDIATE, userinfo_encryption_enc="A256GCM") as client:
        sign_in(running, client, scope="openid entity.basic_profile.name")
        heard = overheard(running, "entity-info")
        assert client.read("entityinfo_endpoint", "GET")["entity_info"] == {"entity_name": "Example Harbour"}
        assert jwt.peek(heard[0])[0]["enc"] == "A256GCM"


@in_both_languages
def test_blocks_can_be_strings_that_hold_json(serving: Serving, tmp_path: Path, language: str) -> None:
    """D22, R-0.6."""
    running = serving(CURRENT)
    with client_of(running, tmp_path, language, CURRENT, stringified_blocks=True) as client:
        sign_in(running, client)
        assert roles(opened(client.userinfo()), CURRENT) == ROLES


@in_both_languages
def test_the_level_of_assurance_has_the_prefix_of_the_deployment(
    serving: Serving, tmp_path: Path, language: str
) -> None:
    """D10: asked for by that name, and told by it; one library compares both."""
    running = serving(CURRENT, acr_prefix="urn:example:level:")
    with client_of(running, tmp_path, language, CURRENT) as client:
        assert sign_in(running, client, acr_values="urn:example:level:2").claims["acr"] == "urn:example:level:2"


@in_both_languages
@pytest.mark.parametrize(("code", "status"), [("invalid_grant", 400), ("invalid_dpop_proof", 401)])
def test_a_code_that_is_redeemed_with_another_key_is_refused_as_the_deployment_says(
    serving: Serving, tmp_path: Path, language: str, code: str, status: int
) -> None:
    """D6, R-0.13."""
    running = serving(CURRENT, dpop_mismatch_error=code)
    with client_of(running, tmp_path, language, CURRENT) as client:
        callback = running.visited(client.begin(), running.newcomer())
        with pytest.raises(Refused) as refused:
            client.finish(callback, with_another_key=True)
        assert (refused.value.code, refused.value.status) == (code, status)


@pytest.fixture
def of_public_service(serving: Serving, tmp_path: Path, language: str) -> Callable[[Interface], Registered]:
    """A client that was registered with a name, an address, keys and services under the preset; nothing else."""
    running = serving(preset="public-service")
    keys = write_keys(tmp_path / "keys.json")
    client_id = f"{language}-{tmp_path.name}"

    def speaking(interface: Interface) -> Registered:
        what_follows = {} if interface is LEGACY else {"userinfo_encryption_enc": "A256GCM"}
        registered = Registered(
            issuer=running.issuer, client_id=client_id, keys=keys, interface=interface, members=what_follows
        )
        bare = {
            "name": "Interop",
            "redirect_uris": [registered.redirect_uri],
            "jwks": public_keys(keys),
            "services": ["HARBOUR-PERMIT"],
        }
        marked = {"generations": ["current", "legacy"], "legacy_until": FAR_AWAY} if interface.ends else {}
        running.apply({"clients": {client_id: {**bare, **marked}}})
        return registered

    return speaking


@in_both_languages
def test_a_relying_party_of_the_public_service_changes_one_url(
    serving: Serving, of_public_service: Callable[[Interface], Registered], language: str
) -> None:
    """The preset as a whole: R-0.4, R-0.6, R-0.10, R-0.11, R-0.12, R-4.2, R-12.4."""
    running = serving(preset="public-service")
    registered = of_public_service(CURRENT)
    with connected(language, registered) as client:
        address = client.begin(scope=" ".join(("openid", *CURRENT.scopes)), acr_values=PUBLIC_ACR)
        callback = running.visited(address, running.newcomer())
        assert ("iss", running.issuer) in callback.carried()["query"]
        claims = client.finish(callback).claims
        assert (claims["sub"], claims["sub_type"], claims["acr"]) == ("209900042K", "entity", PUBLIC_ACR)
        assert claims["sub_attributes"]["entity_name"] == "Example Harbour"
        assert claims["act"]["sub_attributes"]["name"].startswith("Person Nr")
        heard = overheard(running, "userinfo")
        assert roles(opened(client.userinfo()), CURRENT) == ROLES
        assert jwt.peek(heard[0])[0]["enc"] == "A256GCM"


@in_both_languages
@pytest.mark.parametrize("wrap", ["ECDH-ES+A128KW", "ECDH-ES+A256KW"])
def test_with_fapi2_the_preset_encrypts_the_id_token_and_userinfo(
    serving: Serving, tmp_path: Path, language: str, wrap: str
) -> None:
    """D21, D22; Spec "Generations": both are registered, and both headers repeat iss and aud (RFC 7519 §5.3)."""
    running = serving(FAPI2, preset="public-service")
    keys = write_keys(tmp_path / "keys.json", encryption_alg=wrap)
    client_id = f"{language}-{tmp_path.name}"
    what_follows = {"id_token_encryption_alg": wrap, "userinfo_encryption_enc": "A256GCM"}
    registered = Registered(
        issuer=running.issuer, client_id=client_id, keys=keys, interface=FAPI2, members=what_follows
    )
    said = {"name": "Interop", "redirect_uris": [registered.redirect_uri], "jwks": public_keys(keys)}
    running.apply({"clients": {client_id: {**said, "services": ["HARBOUR-PERMIT"]}}})
    with connected(language, registered) as client:
        id_token = sign_in(running, client).answer["id_token"]
        heard = overheard(running, "userinfo")
        assert roles(opened(client.userinfo()), FAPI2) == ROLES
    for token, enc in ((id_token, "A256CBC-HS512"), (heard[0], "A256GCM")):
        header, _ = jwt.peek(token)
        assert (header["alg"], header["enc"]) == (wrap, enc)
        assert (header["iss"], header["aud"]) == (running.issuer, client_id)


@in_both_languages
def test_a_relying_party_of_the_public_service_can_still_be_on_legacy(
    serving: Serving, of_public_service: Callable[[Interface], Registered], language: str
) -> None:
    """R-1: served beside; authorization-info is signed, and never encrypted (R-15)."""
    running = serving(preset="public-service")
    registered = of_public_service(LEGACY)
    with connected(language, registered) as client:
        sign_in(running, client)
        answer = client.read("authorization-info_endpoint", "POST")
        blocks = {name: json.loads(answer[name]) for name in LEGACY.userinfo.blocks.values()}
        assert roles(blocks, LEGACY) == ROLES


@in_both_languages
def test_another_key_is_a_bad_proof_at_the_public_service(
    serving: Serving, of_public_service: Callable[[Interface], Registered], language: str
) -> None:
    """D6, R-0.13."""
    running = serving(preset="public-service")
    with connected(language, of_public_service(CURRENT)) as client:
        callback = running.visited(client.begin(), running.newcomer())
        with pytest.raises(Refused) as refused:
            client.finish(callback, with_another_key=True)
        assert (refused.value.code, refused.value.status) == ("invalid_dpop_proof", 401)
