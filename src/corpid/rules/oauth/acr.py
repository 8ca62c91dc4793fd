"""Assurance levels and their URNs (Spec 4.1, D10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.errors import InvalidRequest, shorten_value
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.generations import Generation

TWO_FACTORS: Final = 2
"""the level that a password and a one-time code reach, and a passkey that verified its user"""
LEVELS: Final = (TWO_FACTORS,)
"""the level that a sign-in can reach"""

PASSWORD_AND_CODE: Final = ("pwd", "otp", "mfa")
"""amr of a password and a code: of an app, by mail, or one kept for recovery"""
PASSWORD_AND_PASSKEY: Final = ("pwd", "pop", "user", "mfa")
"""amr of a password, and a passkey as the second factor"""
PASSKEY: Final = ("pop", "user", "mfa")
"""amr of a passkey: a key was proved, its user present and verified; the key's storage is unknown (RFC 8176)"""


SIMULATED: Final[Mapping[str, tuple[str, ...]]] = {
    "password-and-code": PASSWORD_AND_CODE,
    "passkey": PASSKEY,
    "password-and-passkey": PASSWORD_AND_PASSKEY,
}
"""amr of the ways to sign in that developer mode simulates, by name; the first is the default (D66)"""

BY_PASSKEY: Final = (PASSKEY, PASSWORD_AND_PASSKEY)
"""amr of sign-ins that proved a passkey, which verifies its user in both"""


def urn(prefix: str, level: int) -> str:
    """The acr of a level (D10)."""
    return f"{prefix}{level}"


def is_met(acr: str, *, prefix: str, level: int) -> bool:
    """Return whether a reached level satisfies the required acr.

    Source: D10
    """
    return acr in {urn(prefix, each) for each in LEVELS if each <= level}


def choose(acr_values: str | None, *, prefix: str, client_level: int, generation: Generation) -> str:
    """The acr to reach: the first supported of acr_values.

    Otherwise the client's level. Raises InvalidRequest if values were requested, none is supported and the generation
    refuses that. Source: OpenID Connect Core §3.1.2.1, D10
    """
    supported = [urn(prefix, level) for level in LEVELS]
    asked = acr_values.split() if acr_values else []
    for value in asked:
        if value in supported:
            return value
    if asked and generation.unknown_acr_refused:
        raise InvalidRequest(
            Reason.ACR_VALUES, f"acr_values contains no supported value; supported: {' '.join(supported)}"
        ).with_cause(received=shorten_value(acr_values))
    return urn(prefix, client_level)
