"""What a client of a generation that ends does, and the next generation would refuse.

Rules of this file: a habit is an identifier that is stored and a sentence that is shown; whether a request
shows one follows from the successor's fields alone.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.protocol.generations import Generation
    from corpid.protocol.records import AuthorizationRequest

SIGN_IN: Final = ""
"""counted for every sign-in, whatever its habits"""

_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assertion_lifetime": "client assertions live longer than {generation.assertion_seconds} s",
        "assertion_without_jti": "client assertions have no jti",
        "token_endpoint_audience": "client assertions name the token endpoint as aud; the issuer is expected",
        "response_mode": "response_mode is not {modes}",
        "without_state": "requests have no state",
        "without_nonce": "requests have no nonce",
    }
)


def of_request(request: AuthorizationRequest, successor: Generation) -> tuple[str, ...]:
    """The habits of an authorization request that the successor would refuse (decisions.md "Generations")."""
    shown = {
        "response_mode": request.response_mode not in successor.response_modes,
        "without_state": request.state is None and "state" in successor.required_parameters,
        "without_nonce": request.nonce is None and "nonce" in successor.required_parameters,
    }
    return tuple(habit for habit, is_shown in shown.items() if is_shown)


def of_assertion(
    *, lifetime: float, has_jti: bool, names_token_endpoint: bool, successor: Generation
) -> tuple[str, ...]:
    """The habits of a client assertion that the successor would refuse; `lifetime` in seconds (D8)."""
    shown = {
        "assertion_lifetime": lifetime > successor.assertion_seconds,
        "assertion_without_jti": successor.assertion_jti_required and not has_jti,
        "token_endpoint_audience": names_token_endpoint and not successor.token_endpoint_audience,
    }
    return tuple(habit for habit, is_shown in shown.items() if is_shown)


def sentence(habit: str, successor: Generation) -> str:
    """What a client with this habit does that the successor refuses, for an operator to read.

    A habit that this version does not know, counted by another one, is its own sentence. Source: D8, D13
    """
    if habit not in _SENTENCES:
        return habit
    return _SENTENCES[habit].format(generation=successor, modes=" or ".join(successor.response_modes))
