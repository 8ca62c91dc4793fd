"""Challenges for passkeys: never stored, good for one purpose, spent once (D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import passkey_challenges
from corpid.jose.encoding import from_base64url
from tests.unit.flows.opened import NOW, with_provider

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.provider import Provider


def test_a_challenge_is_known_again_for_its_purpose_and_subject_only(tmp_path: Path) -> None:
    """What was made for a sign-in registers nothing, and the other way round."""

    async def story(provider: Provider) -> None:
        await provider.own_keys.ring(NOW)
        challenge = passkey_challenges.make(provider, "sign-in", "a")
        assert passkey_challenges.is_own(provider, challenge, "sign-in", "a")
        nonce, _, mac = challenge.partition(b".")
        for other in (b"", b".", b"x", challenge + b"x", b"x" + challenge, nonce, b"." + mac, nonce + b"\xff." + mac):
            assert not passkey_challenges.is_own(provider, other, "sign-in", "a")
        assert not passkey_challenges.is_own(provider, challenge, "registration", "a")
        assert not passkey_challenges.is_own(provider, challenge, "sign-in", "b")

    with_provider(tmp_path, story)


def test_a_challenge_cannot_be_guessed(tmp_path: Path) -> None:
    """WebAuthn §13.4.3: at least 16 random bytes, D46; each page has its own."""

    async def story(provider: Provider) -> None:
        await provider.own_keys.ring(NOW)
        made = {passkey_challenges.make(provider, "sign-in", "a") for _ in range(20)}
        assert len(made) == 20
        assert all(len(from_base64url(each.partition(b".")[0])) == 32 for each in made)

    with_provider(tmp_path, story)


def test_a_challenge_is_spent_once(tmp_path: Path) -> None:
    """D46."""

    async def story(provider: Provider) -> list[bool]:
        await provider.own_keys.ring(NOW)
        one, other = (passkey_challenges.make(provider, "sign-in", "a") for _ in range(2))
        async with provider.transient.unit(NOW) as unit:
            return [await passkey_challenges.spend(provider, unit, each) for each in (one, one, other, b"\xff\xfe")]

    assert with_provider(tmp_path, story) == [True, False, True, True]
