"""docs/reference/claims.md: what a scope grants, held against a running provider scope by scope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.oauth.generations import GENERATIONS
from corpid_dev.relying_party.interfaces import INTERFACES
from scripts import tables
from scripts.reference import claims
from tests.reference import recording
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

SOMETIMES = {"sid"}
"""of a person who stays signed in, which this provider does not offer"""
OPENED = {"sub_attributes", "entity", "entity_info"}


async def received(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Scope → what came for it, and for openid alone."""
    async with recording.recorder(INTERFACES[name]) as recorder:
        return {
            scope: await recorder.received(scope if scope == "openid" else f"openid {scope}")
            for scope in GENERATIONS[name].scopes
        }


def paths(value: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, inner in value.items():
        if name in OPENED:
            yield from paths(inner, f"{before}{name}.")
        else:
            yield before + name


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
def test_each_scope_grants_what_the_table_says_and_nothing_else(name: str) -> None:
    """Spec 4.9, R-4.1, D2, D23, D26."""
    generation, came = GENERATIONS[name], asyncio.run(received(name))
    always = {where: set(found) - SOMETIMES for where, found in claims.unasked(generation).items()}
    if "entity" in always["ID token"]:
        always["ID token"] = always["ID token"] - {"entity"} | {"entity.sub", "entity.sub_type"}
    for scope, found in came.items():
        adds = claims.granted(generation, scope)
        for where, payload in found.items():
            assert set(paths(payload)) - set(adds.get(where, ())) == always[where] - {"entity_info"}, (scope, where)
            assert set(adds.get(where, ())) <= set(paths(payload)), (scope, where)
        for resource in generation.resources:
            refused = resource.entity_member is not None and not adds.get(resource.name)
            assert (resource.name in found) != refused, scope


def test_the_pages_are_as_the_declarations_and_recordings_have_them() -> None:
    """`make tables` writes them."""
    stale = [path.name for path, made in tables.WHOLE.items() if made() != path.read_text(encoding="utf-8")]
    assert not stale, f"{stale}: run `make tables`"
