"""Errors of tokens and keys; their texts may be shown to the sender."""

from __future__ import annotations


class JoseError(Exception):
    """The input is not what it must be; the text is public (D28)."""


class MalformedToken(JoseError):
    """Not a compact JWS of the closed form (D33)."""


class UnusableKey(JoseError):
    """A JWK that cannot serve its purpose."""


class UnfitKid(UnusableKey):
    """A JWK whose kid cannot stand in a log or on a terminal as it is."""


class KeySetError(JoseError):
    """Not a JSON Web Key Set."""


class BadSignature(JoseError):
    """The signature does not fit the key."""
