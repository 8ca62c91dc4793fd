"""What a client does that the next generation would refuse (D8, D13; Spec "Generations")."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.oauth import deprecated_usage
from corpid.rules.oauth.generations import CURRENT, FAPI2, GENERATIONS, LEGACY
from tests.unit.rules.oauth.given import request

PLAIN = {"state": "s", "nonce": "n", "response_mode": "query"}


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, ()),
        ({"response_mode": "fragment"}, ("response_mode",)),
        ({"response_mode": "form_post"}, ("response_mode",)),
        ({"state": None}, ("without_state",)),
        ({"nonce": None}, ("without_nonce",)),
        ({"code_challenge": ""}, ("without_challenge",)),
        ({"code_challenge": "", "nonce": None}, ("without_nonce", "without_challenge", "without_challenge_and_nonce")),
        (
            {"response_mode": "form_post", "state": None, "nonce": None},
            ("response_mode", "without_state", "without_nonce"),
        ),
    ],
)
def test_a_requests_habits_are_what_the_successor_does_not_accept(
    members: dict[str, str | None], shown: tuple[str, ...]
) -> None:
    made = request(**(PLAIN | members))
    assert deprecated_usage.of_request(made, CURRENT) == shown
    assert deprecated_usage.of_request(made, LEGACY) == ()


def test_a_successor_that_asks_for_less_finds_fewer_habits() -> None:
    """Only fields decide: FAPI2 needs neither state nor nonce."""
    bare = request(state=None, nonce=None)
    assert deprecated_usage.of_request(bare, FAPI2) == ()
    only_state = replace(CURRENT, required_parameters=frozenset({"state"}))
    assert deprecated_usage.of_request(bare, only_state) == ("without_state",)


@pytest.mark.parametrize(
    ("lifetime", "has_jti", "names_endpoint", "shown"),
    [
        (120, True, False, ()),
        (120.5, True, False, ("assertion_lifetime",)),
        (60, False, False, ("assertion_without_jti",)),
        (60, True, True, ("token_endpoint_audience",)),
        (600, False, True, ("assertion_lifetime", "assertion_without_jti", "token_endpoint_audience")),
    ],
)
def test_an_assertions_habits_are_what_the_successor_does_not_accept(
    lifetime: float, *, has_jti: bool, names_endpoint: bool, shown: tuple[str, ...]
) -> None:
    """D8, D64: the audience is counted whatever follows; a lifetime of exactly what is allowed is none."""

    def of(successor: str | None) -> tuple[str, ...]:
        return deprecated_usage.of_assertion(
            lifetime=lifetime,
            has_jti=has_jti,
            names_endpoint=names_endpoint,
            successor=GENERATIONS[successor] if successor else None,
        )

    assert of("current") == shown
    for successor in ("legacy", None):
        assert of(successor) == (("token_endpoint_audience",) if names_endpoint else ())


def test_every_habit_has_a_sentence_that_says_what_the_successor_expects() -> None:
    """Every habit that a request or an assertion can show."""
    bare = request(state=None, nonce=None, response_mode="fragment", code_challenge="")
    found = deprecated_usage.of_request(bare, CURRENT) + deprecated_usage.of_assertion(
        lifetime=601, has_jti=False, names_endpoint=True, successor=CURRENT
    )
    found += (deprecated_usage.PAR_ENDPOINT_AUDIENCE,)
    assert deprecated_usage.SIGN_IN not in found
    assert sorted(deprecated_usage.sentence(habit, CURRENT) for habit in found) == [
        "client assertions have no jti",
        "client assertions live longer than 120 s",
        "client assertions name the PAR endpoint as aud; the issuer is expected",
        "client assertions name the token endpoint as aud; the issuer is expected",
        "requests have neither code_challenge nor nonce (RFC 9700 2.1.1)",
        "requests have no code_challenge (PKCE)",
        "requests have no nonce",
        "requests have no state",
        "response_mode is not query",
    ]


def test_a_habit_that_another_version_counted_is_shown_as_it_is() -> None:
    assert deprecated_usage.sentence("of_tomorrow {x}", CURRENT) == "of_tomorrow {x}"
