"""Codes of an authenticator app (RFC 6238, D45).

SHA-1, six digits and 30 seconds, since these are what every app supports.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

import pyotp

STEP_SECONDS: Final = 30
STEPS_ASIDE: Final = 1
DIGITS: Final = 6
SECRET_BYTES: Final = 20  # 160 bits


class WrongCode(Exception):
    """No step of the allowed ones has this code, or it is no code at all."""


class UnusableSecret(ValueError):
    """Not the base32 form of at least 160 bits."""


def secret_from(random: bytes) -> str:
    """The base32 form of 20 random bytes, as apps and records keep it. Raises UnusableSecret if there are fewer (D45)."""
    return parse_secret(base64.b32encode(random).decode("ascii"))


def parse_secret(text: str) -> str:
    """A secret in its usual form: base32 in upper case, without spaces and padding.

    Raises UnusableSecret when it is not base32 or has fewer than 160 bits. Source: RFC 4648 §6, D45
    """
    secret = "".join(text.split()).upper().rstrip("=")
    try:
        octets = base64.b32decode(secret + "=" * (-len(secret) % 8))
    except (binascii.Error, ValueError):
        raise UnusableSecret("a TOTP secret is base32: the letters A to Z and the digits 2 to 7") from None
    if len(octets) < SECRET_BYTES:
        raise UnusableSecret(f"a TOTP secret has 160 bits (32 characters of base32); this one has {len(octets) * 8}")
    return secret


def code_at(secret: str, now: float) -> str:
    """The six digits that an app shows at `now` (epoch seconds). Raises UnusableSecret (RFC 6238 §4.2)."""
    return _code(parse_secret(secret), _step(now))


def matching_step(secret: str, code: str, now: float) -> int:
    """The code's step (30 seconds, since the epoch): that of `now`, or a neighbour.

    `now` is in epoch seconds; spaces in the code are ignored. A step works once, which the caller sees to
    by raising the last accepted step. All steps are compared, each in constant time.
    Raises WrongCode, and UnusableSecret for a secret that never was one. Source: RFC 6238 §5.2, D45
    """
    usual, typed, current = parse_secret(secret), _digits(code), _step(now)
    matching = [
        step
        for step in range(max(0, current - STEPS_ASIDE), current + STEPS_ASIDE + 1)
        if hmac.compare_digest(_code(usual, step), typed)
    ]
    if not matching:
        raise WrongCode("the code is none of this minute")
    return max(matching)


def otpauth_uri(secret: str, *, account: str, issuer: str) -> str:
    """The URI that an app reads from a QR code. Raises UnusableSecret (Key URI format of authenticator apps, D45)."""
    uri: str = pyotp.TOTP(parse_secret(secret), name=account, issuer=issuer).provisioning_uri()
    return uri


def _step(now: float) -> int:
    return int(now // STEP_SECONDS)


def _code(secret: str, step: int) -> str:
    code: str = pyotp.TOTP(secret, digits=DIGITS, interval=STEP_SECONDS).generate_otp(step)
    return code


def _digits(code: str) -> str:
    digits = "".join(code.split())
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise WrongCode("a code has six digits, 0 to 9")
    return digits
