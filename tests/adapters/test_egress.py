"""Outgoing HTTP in developer mode: the authority of our own certificate is trusted, too (D27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.outbound.client_keys import Egress
from corpid.outbound.destinations import DEVELOPER, INTERNET, HttpClientError

if TYPE_CHECKING:
    from pathlib import Path

OWN = "https://localhost:8400"


async def test_a_chain_that_is_gone_is_named(tmp_path: Path) -> None:
    egress = Egress(own_url=OWN, rules=DEVELOPER, own_chain=tmp_path / "gone.pem")
    with pytest.raises(HttpClientError, match=r"the authorities in .*/gone\.pem cannot be read"):
        await egress.fetch("https://localhost:1/jwks")


async def test_for_the_internet_our_own_authority_counts_for_nothing(tmp_path: Path) -> None:
    """Nobody reads the file: the rules are those of every server."""
    egress = Egress(own_url=OWN, rules=INTERNET, own_chain=tmp_path / "gone.pem")
    with pytest.raises(HttpClientError, match="the port is 443"):
        await egress.fetch("https://localhost:1/jwks")
