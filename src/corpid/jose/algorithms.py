"""The signature algorithms that exist here: ECDSA, each with its one curve.

Source: RFC 7518 §3.4, RFC 8812 §3.2
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One ECDSA algorithm; `size` is the bytes of a coordinate."""

    name: str
    curve_name: str
    curve: ec.EllipticCurve
    size: int
    ecdsa: ec.ECDSA


ALGORITHMS: Final[Mapping[str, Algorithm]] = MappingProxyType(
    {
        a.name: a
        for a in (
            Algorithm(name="ES256", curve_name="P-256", curve=ec.SECP256R1(), size=32, ecdsa=ec.ECDSA(hashes.SHA256())),
            Algorithm(
                name="ES256K", curve_name="secp256k1", curve=ec.SECP256K1(), size=32, ecdsa=ec.ECDSA(hashes.SHA256())
            ),
            Algorithm(name="ES384", curve_name="P-384", curve=ec.SECP384R1(), size=48, ecdsa=ec.ECDSA(hashes.SHA384())),
            Algorithm(name="ES512", curve_name="P-521", curve=ec.SECP521R1(), size=66, ecdsa=ec.ECDSA(hashes.SHA512())),
        )
    }
)

_TEXT: Final = b"CorpID"

BY_CURVE: Final[Mapping[str, Algorithm]] = MappingProxyType({a.curve_name: a for a in ALGORITHMS.values()})


def working(names: Sequence[str], algorithms: Mapping[str, Algorithm] = ALGORITHMS) -> tuple[str, ...]:
    """The given algorithms that the installed cryptography supports.

    In the order given. Each signs and verifies once with a fresh key. Some builds of OpenSSL leave curves out. Source:
    D42
    """
    return tuple(name for name in names if _works(algorithms[name]))


def _works(algorithm: Algorithm) -> bool:
    try:
        private = ec.generate_private_key(algorithm.curve)
        private.public_key().verify(private.sign(_TEXT, algorithm.ecdsa), _TEXT, algorithm.ecdsa)
    except (UnsupportedAlgorithm, InternalError, InvalidSignature, ValueError):
        return False
    return True
