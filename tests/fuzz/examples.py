"""How many examples a property gets, and what they are made of: bytes, JSON, and tokens that are nearly right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpid.jose.compact import sign
from corpid.jose.keys import ALGORITHMS
from tests.unit.jose.signed import CURVES, b64, key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

TIERS: Final = [
    pytest.param(50, id="quick"),
    pytest.param(1500, id="long", marks=[pytest.mark.full, pytest.mark.timeout(600)]),
]


def hold(examples: int, strategy: SearchStrategy[T], check: Callable[[T], None]) -> None:
    """The check must pass for every example; a failure shows the smallest one that fails."""

    def for_one(example: T) -> None:
        check(example)

    for_one.__qualname__ = check.__qualname__  # under which a failing example is remembered
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    settings(max_examples=examples, deadline=None, suppress_health_check=slow)(given(strategy)(for_one))()


TEXT: Final = st.text(max_size=20)
"""characters of every kind; ANY_TEXT also half surrogate pairs, which only an escape in JSON can bring"""
ANY_TEXT: Final = st.text(st.characters(), max_size=20) | st.sampled_from(["\ud800", "a\udfff", "\0", "", "\u202e"])
NUMBERS: Final = st.integers() | st.floats() | st.sampled_from([2**53, 2**53 + 1, 10**400, -0.0, 1_800_000_000])
JSON: Final[SearchStrategy[Any]] = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
ODD: Final[SearchStrategy[Any]] = st.sampled_from(["\ud800", "\0", "", None, True, -1, 2**53 + 1, 1e308, [], {}])


@st.composite
def altered(draw: st.DrawFn, members: Mapping[str, object]) -> dict[str, Any]:
    """An object with up to three members dropped or replaced, by anything, by another's value, or deep inside."""
    changed: dict[str, Any] = dict(members)
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(sorted(members)) | ANY_TEXT)
        kind = draw(st.sampled_from(["drop", "any", "odd", "swap", "within"]))
        if kind == "drop":
            changed.pop(name, None)
        elif kind == "odd":
            changed[name] = draw(ODD)
        elif kind == "swap":
            changed[name] = draw(st.sampled_from([members[other] for other in sorted(members)]))
        elif kind == "within" and isinstance(changed.get(name), dict) and changed[name]:
            changed[name] = draw(altered(changed[name]))
        else:
            changed[name] = draw(JSON)
    return changed


@st.composite
def written(draw: st.DrawFn, value: Mapping[str, object]) -> bytes:
    """JSON text of an object, now and then damaged."""
    text = json.dumps(value)
    damage = draw(st.sampled_from(["no", "no", "no", "repeat", "cut", "bytes"]))
    if damage == "repeat":
        return (text[:-1] + ("," if len(text) > 2 else "") + text[1:]).encode()
    if damage == "cut":
        return text.encode()[: draw(st.integers(0, len(text)))]
    if damage == "bytes":
        place = draw(st.integers(0, len(text)))
        return text.encode()[:place] + draw(st.binary(max_size=4)) + text.encode()[place:]
    return text.encode()


@st.composite
def tokens(draw: st.DrawFn, header: Mapping[str, object], claims: Mapping[str, object], own: Any = None) -> str:
    """A compact JWS like this one, with altered members, mostly with a signature that verifies; `own` signs ES256."""
    name = draw(st.sampled_from(["ES256", "ES256", "ES256", *CURVES]))
    first = b64(draw(written(draw(altered({**header, "alg": name}))))).encode()
    private: Any = own if own is not None and name == "ES256" else key(CURVES[name]).raw_value
    text = sign(first, draw(written(draw(altered(claims)))), private, ALGORITHMS[name])
    if draw(st.integers(0, 4)):
        return text
    place, length = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
    return text[:place] + draw(TEXT) + text[place + length :]
