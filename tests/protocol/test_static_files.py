"""Static files on the wire: compressed for who takes that, never the pages (D31)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from corpid.web.pages.rendering import packaged_static_files
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from tests.protocol.provider import World


def sheet(world: World) -> str:
    page = world.get(f"{ISSUER}/", accept="text/html").text
    found = re.search(r"/static/style\.[0-9a-f]{16}\.css", page)
    assert found is not None
    return f"{ISSUER}{found[0]}"


@pytest.mark.parametrize("accepted", ["gzip", "br, GZIP;q=0.5, *", "deflate,gzip ; q=1.000"])
def test_a_static_file_is_compressed_for_who_takes_gzip(world: World, accepted: str) -> None:
    """RFC 9110 §12.5.3."""
    answer = world.get(sheet(world), accept_encoding=accepted)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.content == packaged_static_files()["style.css"]
    assert int(answer.headers["content-length"]) < len(answer.content) / 3


@pytest.mark.parametrize("accepted", ["identity", "gzip;q=0", "gzip; q=0.000, br", "xgzip", "*"])
def test_a_static_file_comes_as_it_is_for_everybody_else(world: World, accepted: str) -> None:
    """RFC 9110 §12.5.3; caches are told in both cases."""
    answer = world.get(sheet(world), accept_encoding=accepted)
    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.content == packaged_static_files()["style.css"]


def test_a_page_is_never_compressed(world: World) -> None:
    """Its length would tell what it holds, where an attacker writes part of it (BREACH)."""
    answer = world.get(f"{ISSUER}/", accept="text/html", accept_encoding="gzip")
    assert "content-encoding" not in answer.headers
