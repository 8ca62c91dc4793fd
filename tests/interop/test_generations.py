"""Each generation, driven by stock libraries over real sockets with their strict checks on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERFACES, INTERMEDIATE, LEGACY, Interface
from corpid_dev.relying_party.verification import Callback
from tests.interop.dishonest import forged_payload
from tests.interop.libraries import (
    FAR_AWAY,
    LANGUAGES,
    ROLES,
    client_of,
    connected,
    entity_of,
    in_both_languages,
    roles,
    sign_in,
)
from tests.interop.stock_clients import Refused, Registered, public_keys, write_keys
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.interop.running import Provider

    Serving = Callable[..., Provider]

pytestmark = pytest.mark.full


@pytest.mark.parametrize("language", first_or_full(LANGUAGES))
@pytest.mark.parametrize(
    "interface", first_or_full(INTERFACES.values(), first=INTERFACES["current"]), ids=list(INTERFACES)
)
def test_a_person_signs_in_and_their_roles_are_read(
    serving: Serving, tmp_path: Path, language: str, interface: Interface
) -> None:
    """Spec "Generations": the library is told the generation's data, and nothing else is special."""
    running = serving(interface)
    with client_of(running, tmp_path, language, interface) as client:
        tokens = sign_in(running, client)
        assert tokens.answer["token_type"].lower() == interface.scheme.lower()
        assert tokens.answer["id_token"].count(".") == (4 if interface.id_token_enc else 2)
        assert entity_of(tokens.claims) == "209900042K"
        userinfo = client.userinfo()
        assert userinfo["sub"] == tokens.claims["sub"]
        assert roles(userinfo, interface) == ROLES


@in_both_languages
def test_entity_info_is_read_with_the_same_key_and_verified(serving: Serving, tmp_path: Path, language: str) -> None:
    """D26: by GET and POST; the signature is that of a published key."""
    running = serving(INTERMEDIATE)
    with client_of(running, tmp_path, language, INTERMEDIATE) as client:
        sign_in(running, client, scope="openid authinfo entity.basic_profile.name")
        for method in ("GET", "POST"):
            answer = client.read("entityinfo_endpoint", method)
            assert answer["entity_info"] == {"entity_name": "Example Harbour"}


@in_both_languages
def test_the_plain_profile_asks_for_nothing_of_ours(serving: Serving, tmp_path: Path, language: str) -> None:
    """RFC 9126, 9449, 7636, 7523 and OpenID Connect: no state, no nonce, no context; JSON, and an ID token that is signed."""
    running = serving(FAPI2)
    with client_of(running, tmp_path, language, FAPI2) as client:
        tokens = sign_in(running, client, bare=True)
        assert "nonce" not in tokens.claims
        assert client.userinfo()["sub"] == tokens.claims["sub"]


@in_both_languages
def test_the_plain_profile_gives_what_a_client_registered_for(serving: Serving, tmp_path: Path, language: str) -> None:
    """id_token_encrypted_response_alg and userinfo_signed_response_alg (OpenID Connect Registration §2)."""
    running = serving(FAPI2)
    wanted = {"id_token_encryption_alg": "ECDH-ES+A256KW", "userinfo_signing_alg": "ES256"}
    with client_of(running, tmp_path, language, FAPI2, **wanted) as client:
        tokens = sign_in(running, client)
        assert tokens.answer["id_token"].count(".") == 4
        assert roles(client.userinfo(), FAPI2) == ROLES


@in_both_languages
@pytest.mark.parametrize("mode", LEGACY.response_modes)
def test_every_response_mode_reaches_the_library(serving: Serving, tmp_path: Path, language: str, mode: str) -> None:
    """D38, OAuth 2.0 Multiple Response Types §2.1, Form Post Response Mode §2."""
    running = serving(LEGACY)
    with client_of(running, tmp_path, language, LEGACY) as client:
        callback = running.visited(client.begin(response_mode=mode), running.newcomer())
        assert [used for used, pairs in callback.carried().items() if pairs] == [mode]
        assert client.finish(callback).claims["userInfo"]["CPAccType"]


@in_both_languages
def test_authorization_info_answers_get_and_post(serving: Serving, tmp_path: Path, language: str) -> None:
    """Spec 4.5, D25: signed for this client, about whom the ID token names."""
    running = serving(LEGACY)
    with client_of(running, tmp_path, language, LEGACY) as client:
        sign_in(running, client)
        for method in ("POST", "GET"):
            assert roles(client.read("authorization-info_endpoint", method), LEGACY) == ROLES


@pytest.mark.parametrize(("language", "words"), [("node", "OAUTH_INVALID_RESPONSE"), ("python", "InvalidSignature")])
@pytest.mark.parametrize(
    ("interface", "endpoint"),
    [(INTERMEDIATE, "entityinfo_endpoint"), (LEGACY, "authorization-info_endpoint")],
    ids=["entity-info", "authorization-info"],
)
def test_a_resource_that_says_something_else_than_was_signed_is_refused(
    serving: Serving, tmp_path: Path, interface: Interface, endpoint: str, language: str, words: str
) -> None:
    """Spec 4.5, D26: what the two tests above read is really compared with the published keys."""
    running = serving(interface)
    with client_of(running, tmp_path, language, interface) as client:
        sign_in(running, client, scope=f"openid {'entity.basic_profile.name' if interface.entity_info else 'authinfo'}")
        running.wire.responses |= {"entity-info": forged_payload, "authorization-info": forged_payload}
        with pytest.raises(Refused, match=words):
            client.read(endpoint, "POST")


def another_issuer(callback: Callback, issuer: str) -> Callback:
    return Callback(callback.replace(f"iss={issuer}", "iss=https%3A%2F%2Fother.example"))


def no_issuer(callback: Callback, issuer: str) -> Callback:
    return Callback(callback.replace(f"&iss={issuer}", ""))


@pytest.mark.parametrize(
    ("language", "change", "words"),
    [
        ("node", another_issuer, "OAUTH_INVALID_RESPONSE"),
        ("node", no_issuer, "OAUTH_INVALID_RESPONSE"),
        ("python", another_issuer, "MismatchingIssuer"),
        ("python", no_issuer, "MissingIssuer"),
    ],
)
@pytest.mark.parametrize("interface", first_or_full([FAPI2, LEGACY]), ids=["fapi2", "legacy"])
def test_a_callback_of_another_provider_is_refused(
    serving: Serving, tmp_path: Path, interface: Interface, language: str, change: Callable[..., Callback], words: str
) -> None:
    """RFC 9207 §2.4: the metadata promises iss, so the library insists on it."""
    running = serving(interface)
    with client_of(running, tmp_path, language, interface) as client:
        callback = running.visited(client.begin(), running.newcomer())
        changed = change(callback, running.issuer.replace(":", "%3A").replace("/", "%2F"))
        assert changed != callback
        with pytest.raises(Refused, match=words):
            client.finish(changed)


@in_both_languages
def test_one_client_uses_both_generations_side_by_side(serving: Serving, tmp_path: Path, language: str) -> None:
    """R-1: the generation is chosen per flow, by the same client_id; each code yields its own tokens."""
    running = serving(CURRENT, LEGACY)
    keys = write_keys(tmp_path / "keys.json")
    old, new = (
        Registered(issuer=running.issuer, client_id=f"{language}-mover", keys=keys, interface=each)
        for each in (LEGACY, CURRENT)
    )
    both = {"generations": ["current", "legacy"], "legacy_until": FAR_AWAY}
    running.register(new.client_id, new.redirect_uri, public_keys(keys), **both)
    with connected(language, old) as leaving, connected(language, new) as moved:
        callbacks = [running.visited(client.begin(), running.newcomer()) for client in (leaving, moved)]
        assert not any("iss=" in callback for callback in callbacks)  # one flag for both (RFC 9207 §2.4)
        before, after = (client.finish(callback) for client, callback in zip((leaving, moved), callbacks, strict=True))
        assert (before.answer["token_type"].lower(), after.answer["token_type"].lower()) == ("bearer", "dpop")
        assert entity_of(before.claims) == entity_of(after.claims)
        assert packed(before.claims).keys() == {"s", "uuid", "u", "c"}
        assert roles(leaving.read("authorization-info_endpoint", "POST"), LEGACY) == ROLES
        assert roles(moved.userinfo(), CURRENT) == ROLES


def packed(claims: Mapping[str, Any]) -> dict[str, str]:
    """What a packed subject holds (R-12.2)."""
    return dict(part.strip().split("=", 1) for part in claims["sub"].split(","))
