"""What Spec "Generations" says of each, where one test serves several of them and only a constant differs.

Written from the table there, apart from `corpid.rules.oauth.generations`, which these tests examine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY: Final = ("legacy", "intermediate", "current", "fapi2")
PUSHED: Final = ("intermediate", "current", "fapi2")
"""those with PAR, which are those with DPoP"""
ANOTHER: Final = {"legacy": "current", "intermediate": "legacy", "current": "fapi2", "fapi2": "current"}
"""for each, one that it is not"""
SIGNED: Final = ("intermediate", "current")
"""those whose ID token is always encrypted and whose userinfo is always signed, with the claims of D2"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The constants of one generation; times in seconds."""

    code: str
    """first character of a code"""
    iss: bool
    """whether callbacks carry it"""
    required: tuple[str, ...] = ()
    """at PAR, beyond RFC 9126"""
    bad_verifier: str = "invalid_request"
    bad_proof_status: int = 401
    """of invalid_dpop_proof at PAR and token"""
    algorithms: tuple[str, ...] = ("ES256", "ES256K", "ES384", "ES512")
    """of assertions and proofs"""
    assertion_seconds: int = 120
    assertion_claims: tuple[str, ...] = ("iss", "sub", "aud", "exp", "iat", "jti")
    """that must be there"""
    challenge: str = 'DPoP algs="ES256 ES256K ES384 ES512"'
    """how the one challenge of a resource begins (D24)"""


_CURRENT: Final = Expected(code="c", iss=False, required=("state", "nonce", "authentication_context_type"))
EXPECTED: Final[Mapping[str, Expected]] = MappingProxyType(
    {
        "legacy": Expected(
            code="l",
            iss=True,
            assertion_seconds=600,
            assertion_claims=("iss", "sub", "aud", "exp", "iat"),
            challenge=f'Bearer realm="{ISSUER}"',
        ),
        "intermediate": replace(_CURRENT, code="i"),
        "current": _CURRENT,
        "fapi2": Expected(
            code="f",
            iss=True,
            bad_verifier="invalid_grant",
            bad_proof_status=400,
            algorithms=("ES256",),
            assertion_seconds=600,
            assertion_claims=("iss", "sub", "aud", "exp", "jti"),
            challenge='DPoP algs="ES256"',
        ),
    }
)
