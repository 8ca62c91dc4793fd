"""Times and identifiers inside JWTs (RFC 7519 §4.1, D33)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.limits import CLOCK_AHEAD_SECONDS, JTI_CHARACTERS, NUMERIC_DATE_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.refusals import Reason


class BadClaim(Exception):
    """An invalid claim or header member; the text is public.

    `reason` is that of the refusal; None: the token is malformed. `received` is the value, `advice` what to do, both
    for the log and for developer mode.
    """

    def __init__(self, text: str, reason: Reason | None = None, *, received: str = "", advice: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.received = received
        self.advice = advice


def numeric_date(claims: Mapping[str, object], name: str) -> float | None:
    """A NumericDate claim, None if it is absent.

    Raises BadClaim (RFC 7519 §2, D33).
    """
    value = claims.get(name)
    if type(value) is int and 0 <= value <= NUMERIC_DATE_MAX:  # which nearly all are
        return value
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMERIC_DATE_MAX:
        raise BadClaim(f"{name} must be a number of seconds")
    return value


def jti(claims: Mapping[str, object]) -> str | None:
    """The jti claim, 1 to 256 characters, None if it is absent.

    Raises BadClaim (RFC 7519 §4.1.7, D33).
    """
    value = claims.get("jti")
    if value is None and "jti" not in claims:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= JTI_CHARACTERS:
        raise BadClaim(f"jti must be a string of 1 to {JTI_CHARACTERS} characters")
    return value


def seconds(difference: float) -> str:
    """A clock difference for people (D28)."""
    return f"{difference:.0f} s"


CHECK_CLOCK: Final = "check the clock of the machine that made it, and synchronise it with NTP"
_YEAR: Final = 365 * 86400.0


def ahead(name: str, at: float, now: float) -> str:
    """The fault of an instant too far ahead of this server's clock.

    Source: RFC 7519 §2, D28
    """
    if are_milliseconds(at, now):
        return f"{name} looks like milliseconds: a NumericDate is in seconds"
    return f"{name} is {seconds(at - now)} ahead of this server's clock; {CLOCK_AHEAD_SECONDS} s are allowed"


def are_milliseconds(at: float, now: float) -> bool:
    """Return whether an instant is near now in milliseconds. Source: RFC 7519 §2"""
    return abs(at / 1000 - now) < _YEAR
