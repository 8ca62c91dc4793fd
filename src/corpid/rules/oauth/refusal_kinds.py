"""The form of a declared refusal."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

ErrorCode: TypeAlias = Literal[
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope",
    "unsupported_grant_type", "invalid_dpop_proof", "use_dpop_nonce", "invalid_request_uri", "request_not_supported",
    "request_uri_not_supported", "access_denied", "login_required", "interaction_required", "consent_required",
    "invalid_token", "insufficient_scope", "credentials_required", "server_error", "temporarily_unavailable",
    "misdirected_request",
]  # fmt: skip
"""what the log calls `error`; of these the wire never shows `credentials_required` and `misdirected_request`"""


class Acts(StrEnum):
    """The party that must act on a refusal."""

    RP_DEVELOPER = "RP developer"
    PERSON = "person"
    OPERATOR = "operator"
    ENTITY_ADMINISTRATOR = "entity administrator"


class Refusal(msgspec.Struct, frozen=True):
    """The declaration of a reason.

    A second or third error is that of another generation or endpoint.
    """

    errors: tuple[ErrorCode, ...]
    acts: Acts
    cause: str
    remedy: str


def refusal(errors: ErrorCode | tuple[ErrorCode, ...], acts: Acts, cause: str, remedy: str) -> Refusal:
    """Declare a reason. Source: D28"""
    return Refusal((errors,) if isinstance(errors, str) else errors, acts, cause, remedy)
