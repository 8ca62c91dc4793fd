"""Assurance levels and their URNs (Spec 4.1, D10)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.oauth.acr import PASSKEY, PASSWORD_AND_CODE, PASSWORD_AND_PASSKEY, choose, is_met, urn
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.generations import CURRENT
from tests.unit.rules.oauth.given import PREFIX

LENIENT = replace(CURRENT, unknown_acr_refused=False)


def chosen(asked: str | None) -> str:
    return choose(asked, prefix=PREFIX, client_level=2, generation=CURRENT)


@pytest.mark.parametrize("asked", [None, "", "   ", PREFIX + "2", f"other {PREFIX}3 {PREFIX}2", f"{PREFIX}2 {PREFIX}2"])
def test_the_first_supported_value_wins_and_without_any_the_level_of_the_client(asked: str | None) -> None:
    assert chosen(asked) == "urn:idp:authentication:loa:2"


@pytest.mark.parametrize("asked", [PREFIX + "3", PREFIX + "22", "2", PREFIX.upper() + "2"])
def test_no_supported_value_is_refused_with_those_that_are(asked: str) -> None:
    with pytest.raises(InvalidRequest, match="supported: urn:idp:authentication:loa:2"):
        chosen(asked)


def test_a_generation_may_answer_with_the_level_of_the_client_instead() -> None:
    """Spec "Generations", FAPI2."""
    assert choose("other", prefix=PREFIX, client_level=2, generation=LENIENT) == PREFIX + "2"


def test_the_prefix_is_a_setting() -> None:
    assert urn("urn:example:", 2) == "urn:example:2"


@pytest.mark.parametrize(
    ("acr", "level", "expected"),
    [
        ("2", 2, True),
        ("2", 3, True),
        ("2", 1, False),
        ("2", 0, False),
        ("3", 2, False),
        ("", 2, False),
        ("x2", 2, False),
    ],
)
def test_a_level_is_met_by_itself_and_by_those_above_it(acr: str, level: int, *, expected: bool) -> None:
    """D10: never lowered in silence."""
    assert is_met(PREFIX + acr, prefix=PREFIX, level=level) is expected


@pytest.mark.parametrize("amr", [PASSWORD_AND_CODE, PASSWORD_AND_PASSKEY, PASSKEY])
def test_what_was_used_has_names_that_others_know(amr: tuple[str, ...]) -> None:
    """RFC 8176 §2."""
    registered = {
        "face", "fpt", "geo", "hwk", "iris", "kba", "mca", "mfa", "otp", "pin", "pop", "pwd", "rba", "retina", "sc",
        "sms", "swk", "tel", "user", "vbm", "wia",
    }  # fmt: skip
    assert set(amr) <= registered
    assert "mfa" in amr
