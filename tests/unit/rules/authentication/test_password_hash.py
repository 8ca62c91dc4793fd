"""The cost of password hashes: what may be chosen, and which stored ones are raised (D44)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.passwords import PROFILES, HashCost, is_safe_cost, parse_hash_cost, read_hash_cost

COSTS = st.builds(HashCost, st.integers(0, 300_000), st.integers(0, 12), st.integers(0, 20))


def test_the_profiles_are_those_of_rfc_9106_and_owasp() -> None:
    """D44: 64 MiB, 3 passes and 4 lanes; 19 MiB, 2 passes and 1 lane."""
    assert (parse_hash_cost("rfc9106"), parse_hash_cost("owasp")) == ((65_536, 3, 4), (19_456, 2, 1))
    assert all(map(is_safe_cost, PROFILES.values()))


@pytest.mark.parametrize("text", ["m=65536,t=3,p=4", "m=47104,t=1,p=1", "m=7168,t=5,p=1", "m=262144,t=10,p=16"])
def test_numbers_within_the_bounds_may_be_chosen(text: str) -> None:
    """D44: and are written as argon2 writes them."""
    assert str(parse_hash_cost(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "m=47103,t=1,p=1", "m=19455,t=2,p=1", "m=12287,t=3,p=1", "m=9215,t=4,p=1", "m=7167,t=10,p=1", "m=65536,t=3,p=0",
        "m=65536,t=0,p=1", "m=262145,t=3,p=1", "m=65536,t=11,p=1", "m=65536,t=3,p=17", "m=9999999,t=3,p=4",
    ],
)  # fmt: skip
def test_numbers_outside_the_bounds_are_refused_with_the_bounds(text: str) -> None:
    """D44: nothing weaker; nothing that one sign-in cannot bear."""
    with pytest.raises(ValueError, match="outside the safe bounds: at least m=19456,t=2,p=1 or an equivalent"):
        parse_hash_cost(text)


@pytest.mark.parametrize(
    "text",
    ["", "RFC9106", "argon2id", "m=65536", "m=65536,t=3", "t=3,m=65536,p=4", "m=65536,t=3,p=4 ", "m=٦٥٥٣٦,t=3,p=4x"],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write rfc9106, owasp, or numbers such as m=65536,t=3,p=4"):
        parse_hash_cost(text)


@given(COSTS, COSTS)
def test_a_hash_is_raised_in_memory_or_work_and_lowered_in_neither(setting: HashCost, stored: HashCost) -> None:
    """D44: never both ways, so two settings in turn do not hash for ever."""
    if setting.exceeds(stored):
        assert setting.memory >= stored.memory
        assert setting.memory * setting.passes >= stored.memory * stored.passes
        assert not stored.exceeds(setting)
    assert not setting.exceeds(setting)


@pytest.mark.parametrize(
    ("setting", "stored", "raised"),
    [
        ("rfc9106", "owasp", True),
        ("owasp", "rfc9106", False),
        ("rfc9106", "m=7168,t=5,p=1", True),
        ("owasp", "m=7168,t=5,p=1", True),
        ("owasp", "m=47104,t=1,p=1", False),
        ("m=47104,t=1,p=1", "owasp", True),
        ("m=65536,t=3,p=1", "rfc9106", False),
    ],
)
def test_each_profile_is_raised_to_the_dearer_one_only(setting: str, stored: str, *, raised: bool) -> None:
    """D44, decision 0031: m=7168,t=5 is what Keycloak makes; lanes do not count."""
    assert parse_hash_cost(setting).exceeds(parse_hash_cost(stored)) is raised


@given(st.text(max_size=120))
def test_text_that_is_no_hash_has_no_cost(text: str) -> None:
    assert text.startswith("$argon2id$v=19$m=") or read_hash_cost(text) is None
