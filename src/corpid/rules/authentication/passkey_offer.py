"""The offer of a passkey after a sign-in with a password (D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.limits import PASSKEY_OFFER_AGAIN_SECONDS
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.rules.authentication.records import PersonFactors
    from corpid.rules.oauth.records import AuthorizationRequest


def is_due(
    request: AuthorizationRequest,
    held: PersonFactors,
    *,
    declined_at: int,
    acr_prefix: str,
    level: int,
    now: float,
) -> bool:
    """Return whether a person is offered a passkey in this sign-in.

    They have none, and have not declined one for 30 days. A client that asked for a new sign-in wants a proof of
    presence, and one whose level is not reached gets a refusal: neither waits for an offer. `declined_at` is 0 if they
    never declined. Source: D40, D46
    """
    if held.passkeys or now < declined_at + PASSKEY_OFFER_AGAIN_SECONDS:
        return False
    if "login" in request.prompt or request.max_age is not None:
        return False
    return acr.is_met(request.acr, prefix=acr_prefix, level=level)
