"""Single sign-on: conditions for skipping authentication in a signed-in browser (D30, D40)."""

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
    """Return whether a sign-in made for the request may still answer it.

    It is always valid for the ten minutes of a page. Otherwise a person who needs that time could never meet a small
    max_age (WCAG 2.2.1). Source: OpenID Connect Core §3.1.2.1, D15, D40
    """
    return request.max_age is None or now - auth_time < max(request.max_age, INTERACTION_SECONDS)


def asks_choice(request: AuthorizationRequest) -> bool:
    """Return whether the client requests that an entity be chosen.

    The choice is then made on a page. Source: D40
    """
    return "select_account" in request.prompt


def asks_consent(request: AuthorizationRequest) -> bool:
    """Return whether the client requests consent on a page (D40)."""
    return "consent" in request.prompt


def silent(request: AuthorizationRequest) -> bool:
    """Return whether no page may be shown (D40)."""
    return "none" in request.prompt
