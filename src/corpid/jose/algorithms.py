"""ECDSA algorithms, and public keys that are ready to verify.

Each algorithm has one curve. AWS-LC verifies ES256, OpenSSL the others (docs/decisions/0035). Source: RFC 7518 §3.4,
RFC 8812 §3.2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpid.jose.encoding import base64url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from awscrt.crypto import EC

Accepts: TypeAlias = Callable[[bytes, bytes], bool]
"""takes a message and a signature in DER, returns whether the signature is valid"""
_P256_INFO: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
"""a SubjectPublicKeyInfo of P-256 up to the coordinates (RFC 5480 §2)"""


class Algorithm(msgspec.Struct, frozen=True, kw_only=True):
    """One ECDSA algorithm; `size` is the bytes of a coordinate (RFC 7518 §3.4)."""

    name: str
    curve_name: str
    curve: ec.EllipticCurve
    size: int
    ecdsa: ec.ECDSA
    load_verifier: Callable[[Algorithm, bytes], Accepts]

    def verifier(self, coordinates: bytes) -> Verifier:
        """The key at this point, x and y, ready to verify.

        Raises ValueError if the point is not on the curve, UnsupportedAlgorithm without the curve. Source: RFC 7518
        §6.2.1
        """
        return Verifier(algorithm=self, accepts=self.load_verifier(self, coordinates))

    def public_key(self, coordinates: bytes) -> ec.EllipticCurvePublicKey:
        """OpenSSL's key at this point.

        Raises as `verifier` does. Source: RFC 7518 §6.2.1
        """
        return ec.EllipticCurvePublicKey.from_encoded_point(self.curve, b"\x04" + coordinates)


class Verifier(msgspec.Struct, frozen=True, kw_only=True):
    """A public key with its one algorithm, ready to verify (RFC 8725 §3.1)."""

    algorithm: Algorithm
    accepts: Accepts


def _load_by_openssl(algorithm: Algorithm, coordinates: bytes) -> Accepts:
    return partial(_verified, algorithm.public_key(coordinates), algorithm.ecdsa)


def _verified(public: ec.EllipticCurvePublicKey, ecdsa: ec.ECDSA, message: bytes, signature: bytes) -> bool:
    try:
        public.verify(signature, message, ecdsa)
    except InvalidSignature:
        return False
    return True


def _load_es256_by_aws_lc(_: Algorithm, coordinates: bytes) -> Accepts:
    try:
        key = load_aws_lc().new_key_from_der_data(_P256_INFO + coordinates)
    except RuntimeError:
        raise ValueError("the point is not on P-256") from None

    def verified(message: bytes, signature: bytes) -> bool:
        return key.verify(sha256(message).digest(), signature)

    return verified


@cache
def load_aws_lc() -> type[EC]:
    """AWS-LC's class of EC keys, loaded once (RFC 7518 §3.4)."""
    from awscrt.crypto import EC  # noqa: PLC0415 - takes 40 ms to load, and most commands open no key

    return EC


ALGORITHMS: Final[Mapping[str, Algorithm]] = MappingProxyType(
    {
        name: Algorithm(
            name=name, curve_name=curve_name, curve=curve, size=size, ecdsa=ec.ECDSA(digest), load_verifier=load
        )
        for name, curve_name, curve, size, digest, load in (
            ("ES256", "P-256", ec.SECP256R1(), 32, hashes.SHA256(), _load_es256_by_aws_lc),
            ("ES256K", "secp256k1", ec.SECP256K1(), 32, hashes.SHA256(), _load_by_openssl),
            ("ES384", "P-384", ec.SECP384R1(), 48, hashes.SHA384(), _load_by_openssl),
            ("ES512", "P-521", ec.SECP521R1(), 66, hashes.SHA512(), _load_by_openssl),
        )
    }
)
BY_CURVE: Final[Mapping[str, Algorithm]] = MappingProxyType({a.curve_name: a for a in ALGORITHMS.values()})
_SELF_TEST: Final = b"CorpID"


def working_algorithms(names: Sequence[str], algorithms: Mapping[str, Algorithm] = ALGORITHMS) -> tuple[str, ...]:
    """The given algorithms that the installed libraries support.

    In the order given. With a fresh key, each accepts its own signature and no other. Some builds of OpenSSL leave
    curves out. Each is tried once in a process. Source: D42
    """
    return tuple(name for name in names if _works(algorithms[name]))


@cache
def _works(algorithm: Algorithm) -> bool:
    try:
        private = ec.generate_private_key(algorithm.curve)
        accepts = algorithm.verifier(coordinates(private.public_key())).accepts
        signature = private.sign(_SELF_TEST, algorithm.ecdsa)
        return accepts(_SELF_TEST, signature) and not accepts(_SELF_TEST[::-1], signature)
    except (UnsupportedAlgorithm, InternalError, ValueError, RuntimeError):  # AWS-LC's errors are RuntimeErrors
        return False


def coordinates(public: ec.EllipticCurvePublicKey) -> bytes:
    """x and y of a key, as `Algorithm.verifier` takes them.

    Source: RFC 7518 §6.2.1
    """
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)[1:]


def public_jwk(curve_name: str, public: ec.EllipticCurvePublicKey) -> dict[str, object]:
    """The required members of a key's JWK.

    Source: RFC 7518 §6.2.1
    """
    point = coordinates(public)
    half = len(point) // 2
    return {"kty": "EC", "crv": curve_name, "x": base64url(point[:half]), "y": base64url(point[half:])}
