"""Single sign-on: may a signed-in browser skip signing in (D30, D40)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.limits import INTERACTION_SECONDS
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.rules.oauth.records import AuthorizationRequest


def suffices(request: AuthorizationRequest, *, auth_time: int, level: int, acr_prefix: str, now: float) -> bool:
    """Return whether a sign-in of this age and level answers the request (OpenID Connect Core §3.1.2.1, D40)."""
    if "login" in request.prompt or acr.urn(acr_prefix, level) != request.acr:
        return False
    return request.max_age is None or now - auth_time < request.max_age


def still_suffices(request: AuthorizationRequest, *, auth_time: int, now: float) -> bool:
    """Return whether a sign-in that was made for the request may still answer it (OpenID Connect Core §3.1.2.1, D15, D40).

    It always has the ten minutes of a page, or a small max_age could not be met by who needs them (WCAG 2.2.1).
    """
    return request.max_age is None or now - auth_time < max(request.max_age, INTERACTION_SECONDS)


def asks_choice(request: AuthorizationRequest) -> bool:
    """Return whether the client wants the entity to be chosen on a page (D40)."""
    return "select_account" in request.prompt


def asks_consent(request: AuthorizationRequest) -> bool:
    """Return whether the client wants consent to be asked on a page (D40)."""
    return "consent" in request.prompt


def silent(request: AuthorizationRequest) -> bool:
    """Return whether no page may be shown (D40)."""
    return "none" in request.prompt
