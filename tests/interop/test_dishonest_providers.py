"""The examples against a provider that is dishonest once, so that each of their strict checks is shown to run.

Each library has its own words for what it found, which the page shows.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.interop.dishonest import decrypted, forged_payload, member, other_key, other_token, pushed_with
from tests.interop.examples import COMMANDS, Example, example, of_kind
from tests.interop.running import PATIENCE, Provider
from tests.interop.stock_clients import write_keys

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = [pytest.mark.full, pytest.mark.usefixtures("honest")]


def in_words_of(**words: str) -> pytest.MarkDecorator:
    """Each example, and what it says."""
    return pytest.mark.parametrize(("language", "words"), [of_kind(*each) for each in words.items()])


@pytest.fixture
def settled(settled_client: Callable[[str], Example], language: str) -> Example:
    """Before the provider is dishonest, it has signed somebody in."""
    return settled_client(language)


def names(running: Provider) -> list[str]:
    return [name for name, _ in running.wire.exchanges]


@in_words_of(
    node="OAUTH_JWT_CLAIM_COMPARISON_FAILED",
    python="MismatchingIdTokenNonce",
    joserfc="nonce of the token is not",
    go="the nonce is of another sign-in",
    java="Unexpected JWT nonce",
)
def test_a_nonce_that_is_not_ours_is_refused(running: Provider, settled: Example, words: str) -> None:
    """OpenID Connect Core §3.1.3.7, 11."""
    running.wire.requests["request"] = pushed_with("nonce", "another-sign-in")
    assert words in settled.sign_in(running.newcomer()).text


@in_words_of(
    node='unexpected "state" response parameter value',
    python="MismatchingState",
    joserfc="this browser started no sign-in, another",
    go="the callback is of another sign-in",
    java="this browser started another sign-in",
)
def test_a_state_that_is_not_ours_is_refused_before_the_code_is_used(
    running: Provider, settled: Example, words: str
) -> None:
    """RFC 6749 §10.12."""
    shown = settled.sign_in(running.newcomer(), change_callback=lambda url: url.replace("state=", "state=x"))
    assert shown.status == 403
    assert words in shown.text
    assert "token" not in names(running)


@in_words_of(
    node="signature verification failed",
    python="InvalidSignature",
    joserfc="BadSignatureError",
    go="failed to verify signature",
    java="Signed JWT rejected: Invalid signature",
)
def test_an_id_token_signed_with_another_key_is_refused(
    running: Provider, tmp_path: Path, language: str, words: str
) -> None:
    """Spec 2.4, 4.7: the signature is verified with the provider's published key."""
    with example(language, running.issuer, tmp_path / "keys.json", f"{language}-other-key") as client:
        running.register(client.client_id, client.redirect_uri, client.jwks)
        running.wire.responses["keys"] = member("keys", other_key)
        shown = client.sign_in(running.newcomer())
        assert shown.status == 403
        assert words in shown.text
        assert "userinfo" not in names(running)


@in_words_of(
    node="signature verification failed",
    python="InvalidSignature",
    joserfc="BadSignatureError",
    go="failed to verify signature",
    java="Signed JWT rejected: Invalid signature",
)
def test_userinfo_that_says_something_else_than_was_signed_is_refused(
    running: Provider, settled: Example, words: str
) -> None:
    """Spec 2.5."""
    running.wire.responses["userinfo"] = forged_payload
    shown = settled.sign_in(running.newcomer())
    assert shown.status == 403
    assert words in shown.text


@in_words_of(
    node="userinfo is about somebody else",
    python="InvalidClaim",
    joserfc="sub of the token is not",
    go="userinfo is about somebody else",
    java="other userinfo",
)
def test_userinfo_of_another_person_is_refused(running: Provider, settled: Example, words: str) -> None:
    """OpenID Connect Core §5.3.2: properly signed, but not about whom the ID token names."""
    answers: list[bytes] = []

    def first(body: bytes) -> bytes:
        answers.append(body)
        return answers[0]

    running.wire.responses["userinfo"] = first
    assert settled.sign_in(running.newcomer()).status == 200
    assert words in settled.sign_in(running.newcomer()).text


@in_words_of(
    node="discovered metadata issuer does not match",
    python="InvalidParam",
    joserfc="says that it is",
)
def test_a_provider_of_another_name_is_refused(running: Provider, tmp_path: Path, language: str, words: str) -> None:
    """OpenID Connect Discovery §4.3."""
    running.wire.responses["openid-configuration"] = member("issuer", lambda issuer: f"{issuer}/other")
    with example(language, running.issuer, tmp_path / "keys.json", "other-issuer") as client:
        shown = client.sign_in(running.newcomer())
        assert shown.status == 403
        assert words in shown.text


@in_words_of(go="did not match the issuer", java="issuer doesn't match the expected")
def test_nothing_starts_with_a_provider_of_another_name(
    running: Provider, tmp_path: Path, language: str, words: str
) -> None:
    """OpenID Connect Discovery §4.3: these look at the metadata when they start."""
    running.wire.responses["openid-configuration"] = member("issuer", lambda issuer: f"{issuer}/other")
    environment = {**os.environ, "ISSUER": running.issuer, "PORT": "1", "KEYS": str(write_keys(tmp_path / "keys.json"))}
    ended = subprocess.run(
        COMMANDS[language](), env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode != 0
    assert words in ended.stdout + ended.stderr


@in_words_of(
    node="the ID token is of another access token",
    python="InvalidIdToken",
    joserfc="at_hash of the token is not",
    go="access token hash does not match value in ID token",
    java="Access token hash (at_hash) mismatch",
)
def test_an_exchanged_access_token_signs_nobody_in(running: Provider, settled: Example, words: str) -> None:
    """OpenID Connect Core §3.1.3.6: the access token is that of the ID token."""
    running.wire.responses["token"] = member("access_token", other_token)
    assert words in settled.sign_in(running.newcomer()).text
    assert ("userinfo", 200) not in running.wire.exchanges


@in_words_of(
    node="Invalid Compact JWE",
    python="token is clear-text",
    joserfc="Invalid JSON Web Encryption",
    go="compact JWE format must have five parts",
    java="the ID token is not encrypted",
)
def test_an_id_token_that_was_not_encrypted_is_refused(running: Provider, settled: Example, words: str) -> None:
    """Spec 2.4."""
    running.wire.responses["token"] = member("id_token", lambda token: decrypted(token, settled.keys))
    shown = settled.sign_in(running.newcomer())
    assert shown.status == 403
    assert words in shown.text
    assert "userinfo" not in names(running)


def test_a_new_signing_key_is_fetched_when_it_is_first_seen(running: Provider, tmp_path: Path) -> None:
    """Spec 4.7, 9: the client looked at the keys before there was this one, and looks again."""
    with example("python", running.issuer, tmp_path / "keys.json", "rotation") as client:
        running.register(client.client_id, client.redirect_uri, client.jwks)
        running.wire.responses["keys"] = member("keys", lambda keys: [{**key, "kid": "older"} for key in keys])

        def rotated(callback: str) -> str:
            running.wire.honest()
            return callback

        assert client.sign_in(running.newcomer(), change_callback=rotated).status == 200
        # the example connects again, since its library drops no key that was retired
        assert names(running) == ["token", "openid-configuration", "keys", "userinfo"]


@pytest.mark.parametrize("language", [of_kind("joserfc"), of_kind("go")])
def test_keys_that_lack_a_signing_key_are_fetched_again(running: Provider, tmp_path: Path, language: str) -> None:
    """Spec 4.7, 9: clients that look at the keys with the first token only; Nimbus does so at most twice in 30 seconds."""
    with example(language, running.issuer, tmp_path / "keys.json", f"{language}-rotation") as client:
        running.register(client.client_id, client.redirect_uri, client.jwks)
        running.wire.responses["keys"] = member("keys", lambda keys: [{**key, "kid": "older"} for key in keys])
        assert client.sign_in(running.newcomer()).status == 403
        running.wire.honest()
        assert client.sign_in(running.newcomer()).status == 200
        assert names(running)[-3:] == ["token", "keys", "userinfo"]
