"""Consent to share data with a client: need, extent, end (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from corpid.rules.fields import CLIENT, KEY
from corpid.rules.limits import DAY
from corpid.rules.oauth.generations import GENERATIONS, IDENTITY_SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.rules.oauth.records import Client


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """A remembered consent; moments in epoch seconds.

    There is one for each set of scopes that a person agreed to, so that each keeps the end that was shown. Source: D29,
    D62
    """

    user_id: Annotated[str, KEY]
    entity_id: Annotated[str, KEY]
    client_id: Annotated[str, CLIENT]
    issuer_id: Annotated[str, KEY]
    """the issuer where it was given; each remembers its own"""
    scopes: Annotated[tuple[str, ...], KEY]
    """the shared scopes (`shared_scopes`), in order"""
    given_at: int
    expires_at: int


def needs_consent(client: Client, requested: Iterable[str]) -> bool:
    """Return whether the person has to consent.

    For a private client that requests facts about person or entity. Source: D29
    """
    return client.sector == "private" and not set(IDENTITY_SCOPES).isdisjoint(requested)


def shared_scopes(request: AuthorizationRequest) -> tuple[str, ...]:
    """Return the scopes of everything that the client receives, sorted.

    A generation may share more than was requested; a packed subject contains all facts. Source: D29, R-12.2
    """
    generation = GENERATIONS[request.generation]
    parties = IDENTITY_SCOPES if generation.packed_subject else ()
    return tuple(sorted({*request.scopes, *generation.unasked_scopes, *parties}))


def is_covered(request: AuthorizationRequest, remembered: Iterable[tuple[str, ...]]) -> bool:
    """Return whether one of the remembered sets of scopes is enough.

    The sets are not added up: together they may reveal more than each. Source: D29
    """
    shared = set(shared_scopes(request))
    return any(shared.issubset(each) for each in remembered)


def expiry(now: float, days: int) -> int:
    """Return the end of a new consent, in epoch seconds (D29)."""
    return int(now) + days * DAY
