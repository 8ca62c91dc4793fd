"""The cryptographic floor of a flow: what any provider that checks everything spends at least, on `cryptography`."""

from __future__ import annotations

import hashlib
import hmac
import os
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

from benchmarks.generations import CURRENT, Generation
from benchmarks.relying_party import ES256, public_jwk, thumbprint

if TYPE_CHECKING:
    from collections.abc import Callable


P256 = ec.SECP256R1()
ROUNDS = 7
SIGNED_BYTES = 600
"""about what an assertion, a proof or a token has under its signature"""
ID_TOKEN_BYTES = 1024


class Item(NamedTuple):
    """One operation of the floor."""

    what: str
    times: int
    microseconds: float


def measure(generation: Generation = CURRENT, seconds: float = 0.05) -> list[Item]:
    """CPU time of each operation of a flow, the median of rounds of about so many seconds."""
    return [
        Item(what, times, round(_microseconds(operation, seconds), 2))
        for what, times, operation in _operations(generation)
        if times
    ]


def milliseconds(items: list[Item]) -> float:
    """The floor of a whole flow."""
    return sum(item.times * item.microseconds for item in items) / 1000


def _operations(generation: Generation) -> list[tuple[str, int, Callable[[], object]]]:
    key, recipient = ec.generate_private_key(P256), ec.generate_private_key(P256).public_key()
    public, jwk = key.public_key(), public_jwk(key)
    point = public.public_numbers()
    encoded_point = b"\x04" + point.x.to_bytes(32) + point.y.to_bytes(32)
    message = os.urandom(SIGNED_BYTES)

    def sign() -> bytes:
        r, s = decode_dss_signature(key.sign(message, ES256))
        return r.to_bytes(32) + s.to_bytes(32)

    signature = sign()

    def verify(by: ec.EllipticCurvePublicKey = public) -> None:
        half = len(signature) // 2
        der = encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
        by.verify(der, message, ES256)

    def agree() -> bytes:
        return ec.generate_private_key(P256).exchange(ec.ECDH(), recipient)

    agreed = agree()
    read = ", ".join(resource.name for resource in generation.resources)
    authenticated = "PAR, token" if generation.pushed else "token"
    signed = f"access token, ID token{f', {read}' if generation.resources_signed else ''}"
    encryptions = int(generation.id_token_encrypted)
    return [
        (f"client assertion verified, its key ready ({authenticated})", generation.client_requests, verify),
        (
            f"DPoP proof: its key loaded, the proof verified ({authenticated}, {read})",
            generation.proofs,
            lambda: verify(ec.EllipticCurvePublicKey.from_encoded_point(P256, encoded_point)),
        ),
        ("thumbprint of a proof's key", generation.proofs, lambda: thumbprint(jwk)),
        (f"access token verified, its key ready ({read})", len(generation.resources), verify),
        (f"signature ({signed})", generation.signatures, sign),
        ("ECDH-ES agreement, ephemeral key included", encryptions, agree),
        ("Concat KDF", encryptions, lambda: _concat_kdf(agreed)),
        ("key wrap and content encryption of the ID token", encryptions, lambda: _encrypt(agreed)),
    ]


def _concat_kdf(agreed: bytes) -> bytes:
    """RFC 7518 section 4.6.2, one round of SHA-256."""
    algorithm = b"ECDH-ES+A256KW"
    fields = (algorithm, b"", b"")
    described = b"".join(len(field).to_bytes(4) + field for field in fields)
    return hashlib.sha256((1).to_bytes(4) + agreed + described + (256).to_bytes(4)).digest()


def _encrypt(wrapping_key: bytes) -> bytes:
    """A256KW and A256CBC-HS512 (RFC 7518 sections 4.4 and 5.2)."""
    content_key, vector, header = os.urandom(64), os.urandom(16), b"h" * 250
    wrapped = aes_key_wrap(wrapping_key, content_key)
    padder = padding.PKCS7(128).padder()
    padded = padder.update(b"t" * ID_TOKEN_BYTES) + padder.finalize()
    cipher = Cipher(algorithms.AES(content_key[32:]), modes.CBC(vector)).encryptor()
    text = cipher.update(padded) + cipher.finalize()
    authenticated = header + vector + text + (len(header) * 8).to_bytes(8)
    return wrapped + text + hmac.digest(content_key[:32], authenticated, "sha512")[:32]


def _microseconds(operation: Callable[[], object], seconds: float) -> float:
    count = 1
    while (spent := _spent(operation, count)) < seconds / 4:
        count *= 2
    count = max(1, int(count * seconds / spent))
    return statistics.median(1e6 * _spent(operation, count) / count for _ in range(ROUNDS))


def _spent(operation: Callable[[], object], count: int) -> float:
    begun = time.process_time()
    for _ in range(count):
        operation()
    return time.process_time() - begun
