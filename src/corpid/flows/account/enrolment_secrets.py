"""Secrets offered at enrolment: derived, and not stored before confirmation (D45).

`purpose` and `subject` say for what and for whom; the same ones give the same offer. Without the server secret
nobody can compute it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from corpid.rules.authentication import person_factors, totp

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext


def app_secret(context: RequestContext, purpose: str, subject: str) -> str:
    """The secret (base32) for an authenticator app (D45)."""
    return totp.secret_from(_bytes(context.keys.mac(f"{purpose}-app", subject))[: totp.SECRET_BYTES])


def codes(context: RequestContext, purpose: str, subject: str) -> tuple[str, ...]:
    """Ten recovery codes (D45)."""
    return tuple(
        person_factors.code_from(
            _bytes(context.keys.mac(f"{purpose}-code", subject, str(number)))[: person_factors.BYTES]
        )
        for number in range(person_factors.HOW_MANY)
    )


def _bytes(mac: str) -> bytes:
    return urlsafe_b64decode(mac + "=")
