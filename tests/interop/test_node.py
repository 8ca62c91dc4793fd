"""The Node example on npm's openid-client, as it stands in `examples/`, against a provider on real sockets.

Its strict checks are on (`enableNonRepudiationChecks`); each is shown to run by a provider that is dishonest once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.running import ROLES, Example, Provider, example, provider
from tests.interop.stock_clients import (
    forged_payload,
    member,
    other_key,
    other_token,
    pushed_with,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("honest")


@pytest.fixture(scope="module")
def settled(settled_client: Callable[[str], Example]) -> Example:
    return settled_client("node")


def test_nonces_of_the_server_are_taken_up_without_help(tmp_path: Path) -> None:
    """RFC 9449 §8, §9; D7: refused once, and then the client sends what it was told."""
    (tmp_path / "rp").mkdir()
    with (
        provider(tmp_path / "provider", dpop_nonces=True) as demanding,
        example("node", demanding.issuer, tmp_path / "rp" / "keys.json", "nonces") as client,
    ):
        demanding.register(client.client_id, client.redirect_uri, client.jwks)
        assert client.sign_in(demanding.newcomer()).lines[-2:] == ROLES
        pushes = [status for name, status in demanding.wire.exchanges if name == "request"]
        assert pushes == [400, 201]
        assert demanding.wire.exchanges[-1] == ("userinfo", 200)


def test_a_nonce_that_is_not_ours_is_refused(running: Provider, settled: Example) -> None:
    """OpenID Connect Core §3.1.3.7, 11."""
    running.wire.requests["request"] = pushed_with("nonce", "another-sign-in")
    assert settled.sign_in(running.newcomer()).lines[0] == "Not signed in (OAUTH_JWT_CLAIM_COMPARISON_FAILED)"
    settled.wait_for('unexpected ID Token "nonce" claim value')


def test_a_state_that_is_not_ours_is_refused_before_the_code_is_used(running: Provider, settled: Example) -> None:
    """RFC 6749 §10.12."""
    shown = settled.sign_in(running.newcomer(), change_callback=lambda url: url.replace("state=", "state=x"))
    assert shown.status == 502
    settled.wait_for('unexpected "state" response parameter value')
    assert "token" not in [name for name, _ in running.wire.exchanges]


def test_an_id_token_signed_with_another_key_is_refused(running: Provider, tmp_path: Path) -> None:
    """Spec 2.4, 4.7: the signature is verified with the provider's published key."""
    with example("node", running.issuer, tmp_path / "keys.json", "other-key") as client:
        running.register(client.client_id, client.redirect_uri, client.jwks)
        running.wire.responses["keys"] = member("keys", other_key)
        assert client.sign_in(running.newcomer()).status == 502
        client.wait_for("JWT signature verification failed")


def test_an_exchanged_access_token_signs_nobody_in(running: Provider, settled: Example) -> None:
    running.wire.responses["token"] = member("access_token", other_token)
    assert settled.sign_in(running.newcomer()).lines[0] == "Not signed in (invalid_token)"
    assert running.wire.exchanges[-1] == ("userinfo", 401)


def test_userinfo_that_says_something_else_than_was_signed_is_refused(running: Provider, settled: Example) -> None:
    """Spec 2.5."""
    running.wire.responses["userinfo"] = forged_payload
    assert settled.sign_in(running.newcomer()).status == 502
    settled.wait_for("JWT signature verification failed")


def test_userinfo_of_another_person_is_refused(running: Provider, settled: Example) -> None:
    """OpenID Connect Core §5.3.2: properly signed, but not about whom the ID token names."""
    answers: list[bytes] = []

    def first(body: bytes) -> bytes:
        answers.append(body)
        return answers[0]

    running.wire.responses["userinfo"] = first
    assert settled.sign_in(running.newcomer()).status == 200
    assert settled.sign_in(running.newcomer()).lines[0] == "Not signed in (OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED)"


def test_a_provider_of_another_name_is_refused(running: Provider, tmp_path: Path) -> None:
    """OpenID Connect Discovery §4.3."""
    running.wire.responses["openid-configuration"] = member("issuer", lambda issuer: f"{issuer}/other")
    with example("node", running.issuer, tmp_path / "keys.json", "other-issuer") as client:
        assert client.sign_in(running.newcomer()).status == 502
        client.wait_for("discovered metadata issuer does not match")
