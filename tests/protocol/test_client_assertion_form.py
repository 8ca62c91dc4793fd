"""Client assertions that are no proper JWT, or could be read in two ways (Spec 7.1; RFC 7515 §5.2; D8, D33)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from corpid_dev.relying_party import jwt
from tests.protocol.expectations import EVERY
from tests.protocol.test_client_assertion import accept, refuse
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*EVERY)


def _parts(assertion: str) -> list[str]:
    return assertion.split(".")


SPOILED: list[Callable[[str], str]] = [
    lambda a: ".".join(_parts(a)[:2]),
    lambda a: f"{a}.x",
    lambda a: f"{_parts(a)[0]}.{_parts(a)[1]}.",
    lambda a: a[:-2] + ("AA" if not a.endswith("AA") else "BB"),
    lambda a: a + "=",
    lambda a: a + "==",
    lambda a: f" {a}",
    lambda a: a.replace(".", ". ", 1),
    lambda a: f"{_parts(a)[0]}.{_parts(a)[1]}.{_parts(a)[2][:-1]}" + chr(ord(_parts(a)[2][-1]) + 1),
    lambda a: f"{_parts(a)[0]}.{jwt.base64url(b'[]')}.{_parts(a)[2]}",
    lambda a: f"{jwt.base64url(b'null')}.{_parts(a)[1]}.{_parts(a)[2]}",
    lambda _: "a.b.c",
    lambda _: "..",
    lambda _: "x",
    lambda _: "\u00e9.\u00e9.\u00e9",
]


@pytest.mark.parametrize("spoil", SPOILED)
def test_what_is_no_compact_jws_is_refused(shared: World, spoil: Callable[[str], str]) -> None:
    """Spec 7.1: badly formed; D33: canonical base64url."""
    refuse(shared, spoil(shared.rp.assertion()))


@pytest.mark.parametrize(
    "text",
    [
        '{"iss":"rp-1","iss":"rp-1"}',
        '{"exp":NaN}',
        '{"exp":Infinity}',
        '{"exp":1e999}',
        "\ufeff{}",
        "{'a':1}",
        "{} x",
        "[" * 3000,
    ],
)
def test_json_that_could_be_read_in_two_ways_is_refused(shared: World, text: str) -> None:
    """D33: repeated member, NaN, Infinity refused."""
    header = {"typ": "JWT", "alg": "ES256", "kid": rp_keys("rp-1").signing.get("kid")}
    refuse(shared, jwt.compact(header, text.encode(), rp_keys("rp-1").signing))


def test_a_member_that_is_repeated_beside_honest_ones_is_refused(shared: World) -> None:
    """D33: which of the two would count?"""
    header, payload = jwt.peek(shared.rp.assertion())
    text = json.dumps(payload)[:-1] + ',"sub":"rp-1"}'
    refuse(shared, jwt.compact(header, text.encode(), rp_keys("rp-1").signing))


def test_an_assertion_has_at_most_8192_bytes(shared: World) -> None:
    """D33."""
    room = 8192 - len(shared.rp.assertion(jti="j", pad=""))
    pad = room * 3 // 4 // 2 * 2
    longest = next(a for a in (shared.rp.assertion(jti="j", pad="x" * (pad - n)) for n in range(8)) if len(a) <= 8192)
    assert len(longest) > 8185
    accept(shared, longest)
    refuse(shared, shared.rp.assertion(pad="x" * (pad + 16)))
