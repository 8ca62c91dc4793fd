"""The rules that cases of the readiness report try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A rule that a case tries."""

    name: str
    url: str = ""


def rfc(number: int, section: str) -> Source:
    return Source(
        name=f"RFC {number} §{section}", url=f"https://www.rfc-editor.org/rfc/rfc{number}.html#section-{section}"
    )


def core(section: str, anchor: str) -> Source:
    """A section of OpenID Connect Core 1.0."""
    return Source(
        name=f"OpenID Connect Core §{section}",
        url=f"https://openid.net/specs/openid-connect-core-1_0.html#{anchor}",
    )


def law(section: str) -> Source:
    """A section of the specification."""
    return Source(name=f"CorpID specification §{section}")


FAPI: Final = Source(
    name="FAPI 2.0 Security Profile §5.3.3", url="https://openid.net/specs/fapi-security-profile-2_0-final.html"
)
STATE: Final = (rfc(6749, "10.12"), rfc(9700, "2.1"))
ISS: Final = (rfc(9207, "2.4"), rfc(9700, "2.1"))
ID_TOKEN: Final = core("3.1.3.7", "IDTokenValidation")
AT_HASH: Final = core("3.1.3.8", "CodeFlowTokenValidation")
ROTATION: Final = core("10.1.1", "RotateSigKeys")
USERINFO: Final = core("5.3.4", "UserInfoResponseValidation")
SUB: Final = core("5.3.2", "UserInfoResponse")
ALG: Final = rfc(8725, "3.1")
CACHE: Final = (law("8"),)
UNKNOWN_KEY: Final = (law("4.7"), ROTATION)
