"""Challenges: never stored, good for one purpose, spent once (D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.flows.authentication import passkeys
from corpid.flows.authentication.passkeys import ForeignChallenge
from corpid.jose.encoding import from_base64url
from corpid.rules.authentication.sign_in import StaleStep
from tests.contexts import context
from tests.unit.flows.opened import NOW, provider_at

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.request_context import Provider


async def redeem(provider: Provider, challenge: bytes, purpose: str = "sign-in", subject: str = "a") -> None:
    await passkeys.redeem(await context(provider, now=NOW), challenge, purpose, subject)


async def test_a_challenge_is_known_again_for_its_purpose_and_subject_only(tmp_path: Path) -> None:
    """What was made for a sign-in registers nothing, and the other way round; and nothing is spent by that."""
    async with provider_at(tmp_path) as provider:
        request = await context(provider, now=NOW)
        challenge = passkeys.make_challenge(request, "sign-in", "a")
        nonce, _, mac = challenge.partition(b".")
        for other in (b"", b".", b"x", challenge + b"x", b"x" + challenge, nonce, b"." + mac, nonce + b"\xff." + mac):
            with pytest.raises(ForeignChallenge):
                await redeem(provider, other)
        with pytest.raises(ForeignChallenge):
            await redeem(provider, challenge, "registration")
        with pytest.raises(ForeignChallenge):
            await redeem(provider, challenge, "sign-in", "b")
        await redeem(provider, challenge)


async def test_a_challenge_cannot_be_guessed(tmp_path: Path) -> None:
    """WebAuthn §13.4.3: at least 16 random bytes, D46; each page has its own."""
    async with provider_at(tmp_path) as provider:
        request = await context(provider, now=NOW)
        made = {passkeys.make_challenge(request, "sign-in", "a") for _ in range(20)}
        assert len(made) == 20
        assert all(len(from_base64url(each.partition(b".")[0])) == 32 for each in made)


async def test_a_challenge_is_spent_once(tmp_path: Path) -> None:
    """D46: by itself alone."""
    async with provider_at(tmp_path) as provider:
        request = await context(provider, now=NOW)
        one, other = (passkeys.make_challenge(request, "sign-in", "a") for _ in range(2))
        await redeem(provider, one)
        with pytest.raises(StaleStep) as again:
            await redeem(provider, one)
        assert not isinstance(again.value, ForeignChallenge)
        await redeem(provider, other)
