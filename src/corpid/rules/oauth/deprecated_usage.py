"""Deprecated usage, which the next generation or an exception's end refuses.

Rules of this file: a habit is an identifier that is stored and a sentence that is shown; whether a request
shows one follows from the successor's fields alone, except for the audience of assertions, which is an exception.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from corpid.rules.fields import CLIENT, KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.rules.oauth.generations import Generation

SIGN_IN: Final = ""
"""counted for every sign-in, whatever its habits"""
PAR_ENDPOINT_AUDIENCE: Final = "par_endpoint_audience"
TOKEN_ENDPOINT_AUDIENCE: Final = "token_endpoint_audience"
AUDIENCES: Final = frozenset({PAR_ENDPOINT_AUDIENCE, TOKEN_ENDPOINT_AUDIENCE})
"""use of the exception `endpoint_audience_until` (D64)"""

_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assertion_lifetime": "client assertions live longer than {generation.assertion_seconds} s",
        "assertion_without_jti": "client assertions have no jti",
        PAR_ENDPOINT_AUDIENCE: "client assertions name the PAR endpoint as aud; the issuer is expected",
        TOKEN_ENDPOINT_AUDIENCE: "client assertions name the token endpoint as aud; the issuer is expected",
        "response_mode": "response_mode is not {modes}",
        "without_state": "requests have no state",
        "without_nonce": "requests have no nonce",
        "without_challenge": "requests have no code_challenge (PKCE)",
        "without_challenge_and_nonce": "requests have neither code_challenge nor nonce (RFC 9700 2.1.1)",
    }
)


def of_request(request: AuthorizationRequest, successor: Generation) -> tuple[str, ...]:
    """The habits of an authorization request that the successor would refuse.

    Source: Spec "Generations"
    """
    unchallenged = not request.code_challenge and not successor.pkce_optional
    shown = {
        "response_mode": request.response_mode not in successor.response_modes,
        "without_state": request.state is None and "state" in successor.required_parameters,
        "without_nonce": request.nonce is None and "nonce" in successor.required_parameters,
        "without_challenge": unchallenged,
        "without_challenge_and_nonce": unchallenged and request.nonce is None,
    }
    return tuple(habit for habit, is_shown in shown.items() if is_shown)


def of_assertion(
    *, lifetime: float, has_jti: bool, names_endpoint: bool, successor: Generation | None
) -> tuple[str, ...]:
    """The habits of a client assertion at the token endpoint.

    `lifetime` in seconds, no `successor` refuses nothing.

    Source: D8, D64
    """
    shown = {
        "assertion_lifetime": successor is not None and lifetime > successor.assertion_seconds,
        "assertion_without_jti": successor is not None and successor.assertion_jti_required and not has_jti,
        TOKEN_ENDPOINT_AUDIENCE: names_endpoint,
    }
    return tuple(habit for habit, is_shown in shown.items() if is_shown)


def sentence(habit: str, successor: Generation) -> str:
    """A sentence on a deprecated usage, for operators.

    A habit that this version does not know, counted by another one, is its own sentence. Source: D8, D13, D64
    """
    if habit not in _SENTENCES:
        return habit
    return _SENTENCES[habit].format(generation=successor, modes=" or ".join(successor.response_modes))


class UseCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count of a client's uses of a generation or deprecation."""

    client_id: Annotated[str, CLIENT]
    generation: Annotated[str, KEY]
    habit: Annotated[str, KEY]
    """an identifier of `deprecated_usage`; the empty one counts every sign-in"""
    count: int
    last_at: int
