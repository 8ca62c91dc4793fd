"""What lives in the transient store: its lifetimes, and how its keys are made (D15, D18, D49, DESIGN "One-time")."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.flows import namespaces
from corpid.flows.namespaces import Namespace
from corpid.rules import limits
from tests.unit.jose.signed import tuple_of

EVERY = [one for one in vars(namespaces).values() if isinstance(one, Namespace)]
PARTS = st.lists(st.text(max_size=5), max_size=4).map(tuple)


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in EVERY}) == len(EVERY) >= 15


def test_a_key_is_the_hash_of_a_length_prefixed_tuple() -> None:
    written = tuple_of("code", "https://op", "rp", "ü", "x" * 43)
    assert namespaces.key(namespaces.CODE, "https://op", "rp", "ü", "x" * 43) == hashlib.sha256(written).digest()


@given(PARTS, PARTS)
def test_different_parts_have_different_keys(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Whatever moves from one part to its neighbour: ("ab", "c") is not ("a", "bc")."""
    same = namespaces.key(namespaces.PROOF, "issuer", *one) == namespaces.key(namespaces.PROOF, "issuer", *other)
    assert same == (one == other)


def test_nothing_of_one_kind_or_issuer_stands_for_anothers() -> None:
    keys = {namespaces.key(kind, issuer, "x") for kind in EVERY for issuer in ("a", "b")}
    assert len(keys) == 2 * len(EVERY)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        (namespaces.PUSHED_REQUEST, 720),
        (namespaces.CODE, 60),
        (namespaces.DENIED_TOKEN, 660),
        (namespaces.CLAIM, 7200 + 300),
        (namespaces.COMPLETED, 7200 + 300),
    ],
)
def test_the_lifetimes_are_those_of_the_decisions(kind: Namespace, seconds: int) -> None:
    """D15, D18, D49: codes and pushed requests end exactly, what was spent outlives its end by 300 s."""
    assert kind.seconds == seconds


def test_claims_and_completions_outlive_every_extension_of_an_interaction() -> None:
    """D15."""
    longest = limits.REQUEST_URI_SECONDS + limits.INTERACTION_SECONDS * (1 + limits.INTERACTION_EXTENSIONS)
    for kind in (
        namespaces.CLAIM,
        namespaces.COMPLETED,
        namespaces.INTERACTION,
        namespaces.ARRIVAL,
        namespaces.SECOND_FACTOR_MISSES,
    ):
        assert kind.seconds >= longest
    assert limits.DENY_ENTRY_SECONDS >= limits.ACCESS_TOKEN_SECONDS + limits.CODE_SECONDS
