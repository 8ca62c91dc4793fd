"""Codes of an authenticator app (RFC 6238, D45).

SHA-1, six digits and 30 seconds, since these are what every app supports.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import math
from typing import Final

import pyotp

from corpid.rules.characters import typed_code

STEP_SECONDS: Final = 30
STEPS_ASIDE: Final = 1
DIGITS: Final = 6
SECRET_BYTES: Final = 20  # 160 bits


class WrongCode(Exception):
    """The error for a code that matches no allowed step.

    It is also raised for text that is no code at all.
    """


class UnusableSecret(ValueError):
    """The error for a text that is not a TOTP secret.

    A secret is base32 of at least 160 bits.
    """


def secret_from(random: bytes) -> str:
    """Return 20 random bytes in base32, as apps and records store them.

    Raises UnusableSecret if there are fewer bytes. Source: D45
    """
    return parse_secret(base64.b32encode(random).decode("ascii"))


def parse_secret(text: str) -> str:
    """Return a secret in its usual form.

    This is base32 in upper case, without spaces and padding. Raises UnusableSecret if the text is not base32 or has
    fewer than 160 bits. Source: RFC 4648 §6, D45
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
    """Return the six digits that an app shows at `now`.

    `now` is in epoch seconds. Raises UnusableSecret. Source: RFC 6238 §4.2
    """
    return _app(parse_secret(secret)).generate_otp(_step(now))


def matching_step(secret: str, code: str, now: float) -> int:
    """Return the code's step: that of `now`, or a neighbouring one.

    A step is a number of 30-second periods since the epoch; `now` is in epoch seconds. The code may
    have digits of any script, spaces and hyphens. A step works only once, which the caller ensures by raising the last
    accepted step. All steps are compared, each in constant time. Raises WrongCode, and UnusableSecret for an invalid
    secret. Source: RFC 6238 §5.2, D45, D75
    """
    app, typed, current = _app(parse_secret(secret)), _digits(code), _step(now)
    matching = None
    for step in range(max(0, current - STEPS_ASIDE), current + STEPS_ASIDE + 1):
        if hmac.compare_digest(app.generate_otp(step), typed):
            matching = step
    if matching is None:
        raise WrongCode("the code is none of this minute")
    return matching


def last_step_spent(lost_at: float) -> int:
    """Return the last step whose code counts as used after a loss.

    `lost_at` is the moment before which a code may have been used without a trace, in epoch seconds. Source: D45, D67
    """
    return _step(lost_at) + STEPS_ASIDE


def wait_after_loss(step: int, lost_at: float, now: float) -> int:
    """Return the seconds until an app shows a usable code.

    `lost_at` is as of `last_step_spent`. The result is 0 for a step that the loss does not concern. Times are in epoch
    seconds. Source: D45, D67
    """
    last = last_step_spent(lost_at)
    return 0 if step > last else max(1, math.ceil((last + 1) * STEP_SECONDS - now))


def refuses_codes(lost_at: float, now: float) -> bool:
    """Return whether apps have no usable code yet, after a loss.

    Times are in epoch seconds. Source: D45, D67
    """
    return _step(now) <= last_step_spent(lost_at)


def otpauth_uri(secret: str, *, account: str, issuer: str) -> str:
    """Return the URI that an app reads from a QR code.

    Raises UnusableSecret. Source: Key URI format of authenticator apps, D45
    """
    uri: str = pyotp.TOTP(parse_secret(secret), name=account, issuer=issuer).provisioning_uri()
    return uri


def _step(now: float) -> int:
    return int(now // STEP_SECONDS)


def _app(secret: str) -> pyotp.TOTP:
    return pyotp.TOTP(secret, digits=DIGITS, interval=STEP_SECONDS)


def _digits(code: str) -> str:
    digits = code if code.isascii() and code.isdecimal() else typed_code(code)
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise WrongCode("a code has six digits")
    return digits
