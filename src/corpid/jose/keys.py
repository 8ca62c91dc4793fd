"""Public keys of clients, alone and in sets, and their algorithms.

Those that verify signatures are EC, those that encrypt EC or RSA. Each ECDSA algorithm has one curve; AWS-LC verifies
ES256, OpenSSL the others (docs/decisions/0035). Source: RFC 7517, RFC 7518 §3.4, §6, RFC 8812 §3.2, D27
"""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpid.jose.encoding import JoseError, base64url, from_base64url, json_object, without_null

if TYPE_CHECKING:
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


K = TypeVar("K")


class UnusableKey(JoseError):
    """A JWK that cannot serve its purpose."""


class InvalidKid(UnusableKey):
    """A JWK whose kid cannot be logged or printed as it is."""


class KeySetError(JoseError):
    """Not a JSON Web Key Set."""


MAX_KEYS: Final = 20  # D27
KID_CHARACTERS: Final = 256
_KID: Final = re.compile(rf"[\x20-\x7e]{{0,{KID_CHARACTERS}}}")
_PRIVATE_MEMBERS: Final = {
    "EC": frozenset({"d"}),
    "OKP": frozenset({"d"}),
    "RSA": frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"}),
    "oct": frozenset({"k"}),
}
_ALL_PRIVATE_MEMBERS: Final = frozenset[str]().union(*_PRIVATE_MEMBERS.values())
WRAPS: Final = ("ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW")
"""how a content key is wrapped (the JWE alg), weakest first; a key without alg takes the strongest (D21)"""
AGREEMENT: Final = "ECDH-ES"
"""the JWE alg that wraps nothing: the agreed key is the content key"""
RSA: Final = ("RSA-OAEP", "RSA-OAEP-256")
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"EC": (*WRAPS, AGREEMENT), "RSA": RSA})
"""kty → the JWE algs that such a key can be used with"""
_ENCRYPTION_CURVES: Final[Mapping[str, int]] = MappingProxyType({"P-256": 1, "P-384": 2, "P-521": 3})


class VerificationKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public key with the one algorithm that it verifies."""

    kid: str | None
    verifier: Verifier


class EncryptionKey(msgspec.Struct, frozen=True, kw_only=True):
    """A client's key for encryption to it.

    `wrap` is the JWE alg that it is used with (D21).
    """

    kid: str
    wrap: str
    curve_name: str
    """empty: an RSA key"""
    public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class ClientKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """A client's key set, prepared.

    `problems` says what was left out and why.
    """

    signing: tuple[VerificationKey, ...]
    encryption: EncryptionKey | None
    """the one to use if nothing else was registered; its alg is one of WRAPS"""
    by_wrap: Mapping[str, EncryptionKey]
    """JWE alg → the strongest key that may be used with it; a key without alg is under each"""
    problems: tuple[str, ...]
    faults: tuple[str, ...] = ()
    """those of `problems` for which a set that is written out in a registration is refused"""

    def encryption_for(self, alg: str | None) -> EncryptionKey | None:
        """The key for a registered JWE alg, None for the default choice.

        None when there is no such key (D21).
        """
        return self.encryption if alg is None else self.by_wrap.get(alg)

    def why_no_encryption(self) -> str:
        """The reasons for which `encryption_for` finds no key.

        Each with what to do. Source: D21, D28
        """
        others = {key.kid: alg for alg, key in self.by_wrap.items()}
        unused = [f"{kid} is for {alg}: leave its alg out, or have that registered" for kid, alg in others.items()]
        return "; ".join([*self.problems, *unused]) or "no key has use enc"


def _coordinate(jwk: dict[str, object], name: str, size: int) -> bytes:
    text = jwk.get(name)
    if not isinstance(text, str):
        raise UnusableKey(f"the key has no {name}")
    value = from_base64url(text)
    if len(value) != size:
        remedy = "pad it with zero bytes on the left" if len(value) < size else "leave out zero bytes on the left"
        raise UnusableKey(f"{name} is not {size} bytes long but {len(value)}: {remedy}")
    return value


def import_verifier(jwk: dict[str, object]) -> Verifier:
    """The key of an EC JWK, ready to verify.

    Raises UnusableKey (RFC 7518 §6.2).
    """
    return _imported(jwk, Algorithm.verifier)


def import_public_key(jwk: dict[str, object]) -> tuple[ec.EllipticCurvePublicKey, Algorithm]:
    """The public key of an EC JWK, with its algorithm.

    An OpenSSL key, for encryption. Raises UnusableKey (RFC 7518 §6.2).
    """
    return _imported(jwk, lambda algorithm, coordinates: (algorithm.public_key(coordinates), algorithm))


def _imported(jwk: dict[str, object], load: Callable[[Algorithm, bytes], K]) -> K:
    curve = jwk.get("crv")
    algorithm = BY_CURVE.get(curve) if isinstance(curve, str) else None
    if jwk.get("kty") != "EC" or algorithm is None:
        raise UnusableKey(f"not an EC key on one of {', '.join(BY_CURVE)}")
    x, y = _coordinate(jwk, "x", algorithm.size), _coordinate(jwk, "y", algorithm.size)
    try:
        return load(algorithm, x + y)
    except ValueError:
        raise UnusableKey("x and y are no point on the curve") from None
    except UnsupportedAlgorithm:
        raise UnusableKey(f"the curve {algorithm.curve_name} is not available here") from None


def private_members(jwk: dict[str, object]) -> frozenset[str]:
    """The private or symmetric members of a JWK that have a value.

    Those of its own kind; of an unknown kind, those of any. A public key has none (RFC 7517 §9.3, RFC 7518 §6, D7,
    D85).
    """
    kind = jwk.get("kty")
    names = _PRIVATE_MEMBERS.get(kind, _ALL_PRIVATE_MEMBERS) if isinstance(kind, str) else _ALL_PRIVATE_MEMBERS
    return frozenset(name for name in names if jwk.get(name) is not None)


def thumbprint(jwk: dict[str, object]) -> str:
    """SHA-256 thumbprint of an imported key, base64url, from its required members.

    Source: RFC 7638 §3
    """
    if jwk["kty"] == "RSA":
        text = f'{{"e":"{jwk["e"]}","kty":"RSA","n":"{jwk["n"]}"}}'
    else:
        text = f'{{"crv":"{jwk["crv"]}","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'
    return base64url(hashlib.sha256(text.encode("ascii")).digest())


def _verification_key(jwk: dict[str, object], kid: str | None) -> VerificationKey:
    verifier = import_verifier(jwk)
    algorithm = verifier.algorithm
    if jwk.get("alg", algorithm.name) != algorithm.name:
        raise UnusableKey(f"alg does not fit the curve {algorithm.curve_name}: {algorithm.name} is expected")
    return VerificationKey(kid=kid, verifier=verifier)


def _encryption_keys(jwk: dict[str, object], kid: str | None) -> list[EncryptionKey]:
    """The key once for each JWE alg it may be used with.

    For its own, without one for all of its kind.
    """
    if kid is None:
        raise UnusableKey("an encryption key needs a kid: give it one, which the encrypted token then names")
    possible = _ALGORITHMS["RSA" if jwk.get("kty") == "RSA" else "EC"]
    wraps = [wrap for wrap in possible if jwk.get("alg", wrap) == wrap]
    if not wraps:
        raise UnusableKey(f"alg is not one of {', '.join(possible)}: leave it out, or take one of these")
    curve_name, public = _encryption_key(jwk)
    return [EncryptionKey(kid=kid, wrap=wrap, curve_name=curve_name, public=public) for wrap in wraps]


def _encryption_key(jwk: dict[str, object]) -> tuple[str, ec.EllipticCurvePublicKey | rsa.RSAPublicKey]:
    if jwk.get("kty") == "RSA":
        return "", import_rsa_key(jwk)
    public, algorithm = import_public_key(jwk)
    if algorithm.curve_name not in _ENCRYPTION_CURVES:
        raise UnusableKey(f"an encryption key is on one of {', '.join(_ENCRYPTION_CURVES)}: make it on one of them")
    return algorithm.curve_name, public


def _strength(key: EncryptionKey) -> tuple[int, int]:
    """Sort key among keys of one kind: curve or bits, then wrap."""
    wrap = WRAPS.index(key.wrap) if key.wrap in WRAPS else 0
    return _ENCRYPTION_CURVES.get(key.curve_name, key.public.key_size), wrap


def _strongest(keys: list[EncryptionKey], wraps: tuple[str, ...] = WRAPS) -> EncryptionKey | None:
    return max((key for key in keys if key.wrap in wraps), key=_strength, default=None)


def _sort_key(
    jwk: object, signing: list[VerificationKey], encryption: list[EncryptionKey], problems: list[str]
) -> None:
    if not isinstance(jwk, dict):
        raise UnusableKey("not a JSON object")
    jwk = without_null(jwk)
    kid = jwk.get("kid")
    if kid is not None and not (isinstance(kid, str) and _KID.fullmatch(kid)):
        raise InvalidKid(f"kid is not a string of printable ASCII characters, {KID_CHARACTERS} at most")
    private = private_members(jwk)
    if private:
        problems.append(f"{kid or 'a key without kid'}: private member {min(private)} was dropped; replace this key")
    use = jwk.get("use")
    if use == "sig":
        signing.append(_verification_key(jwk, kid))
    elif use == "enc":
        encryption += _encryption_keys(jwk, kid)
    else:
        raise UnusableKey("use is neither sig nor enc")


def key_set_members(text: str | bytes) -> dict[str, object]:
    """The members of a key set.

    A byte order mark before its JSON is ignored. Raises MalformedToken. Source: RFC 7517 §5, RFC 8259 §8.1
    """
    return json_object(text.removeprefix(BOM_UTF8) if isinstance(text, bytes) else text.removeprefix("\ufeff"))


def parse_client_key_set(text: str | bytes) -> ClientKeySet:
    """Parse a client's key set: usable keys, and the `problems` of others.

    The encryption key is the one with the strongest curve, then the strongest wrap, then the first.
    Raises KeySetError when this is no key set or holds more than 20 keys. Source: RFC 7517 §5, D8, D21, D27
    """
    try:
        keys = key_set_members(text).get("keys")
    except JoseError as error:
        raise KeySetError(f"the key set is {error}") from None
    if not isinstance(keys, list):
        raise KeySetError('the key set has no array named keys: write {"keys": [ ]} around the keys')
    if len(keys) > MAX_KEYS:
        raise KeySetError(f"the key set holds {len(keys)} keys, more than {MAX_KEYS}")
    signing: list[VerificationKey] = []
    encryption: list[EncryptionKey] = []
    problems: list[str] = []
    faults: list[str] = []
    for position, jwk in enumerate(keys, start=1):
        try:
            _sort_key(jwk, signing, encryption, problems)
        except JoseError as error:
            problems.append(f"key {position}: {error}")
            if isinstance(error, InvalidKid):
                faults.append(problems[-1])
    return ClientKeySet(
        signing=tuple(signing),
        encryption=_strongest(encryption),
        by_wrap=MappingProxyType(
            {wrap: key for wraps in _ALGORITHMS.values() for wrap in wraps if (key := _strongest(encryption, (wrap,)))}
        ),
        problems=tuple(problems),
        faults=tuple(faults),
    )


SMALLEST_BITS: Final = 2048  # RFC 7518 §4.3
LARGEST_BITS: Final = 8192
_EXPONENT_BITS: Final = 32
"""larger ones add no security, and make encryption slow"""


def import_rsa_key(jwk: dict[str, object]) -> rsa.RSAPublicKey:
    """The public RSA key of a JWK.

    Raises UnusableKey (RFC 7518 §6.3.1, §4.3).
    """
    modulus, exponent = _number(jwk, "n"), _number(jwk, "e")
    bits = modulus.bit_length()
    if not SMALLEST_BITS <= bits <= LARGEST_BITS:
        raise UnusableKey(f"an RSA key has {SMALLEST_BITS} to {LARGEST_BITS} bits, and this one {bits}")
    if modulus % 2 == 0 or exponent % 2 == 0 or not 3 <= exponent < 1 << _EXPONENT_BITS:
        raise UnusableKey("n and e are no RSA key")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _number(jwk: dict[str, object], name: str) -> int:
    text = jwk.get(name)
    if not isinstance(text, str):
        raise UnusableKey(f"the key has no {name}")
    return int.from_bytes(from_base64url(text), "big")
