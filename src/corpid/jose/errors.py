"""Errors of tokens and keys.

Their texts may be shown to the sender.
"""

from __future__ import annotations


class JoseError(Exception):
    """The input is malformed or refused.

    The text is public (D28).
    """


class MalformedToken(JoseError):
    """Not a compact JWS of the closed form (D33)."""


class UnusableKey(JoseError):
    """A JWK that cannot serve its purpose."""


class UnfitKid(UnusableKey):
    """A JWK whose kid cannot be logged or printed as it is."""


class KeySetError(JoseError):
    """Not a JSON Web Key Set."""


class BadSignature(JoseError):
    """The signature does not fit the key."""
