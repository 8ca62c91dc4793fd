"""How a client of each generation is registered, as a record or as in a directory file."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.oauth.records import Client
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.jwt import RelyingPartyKeys

if TYPE_CHECKING:
    from collections.abc import Mapping


CALLBACK: Final = "https://rp.example/callback"
FAR: Final = "2099-12-31"
"""an end date that no test reaches"""


@cache
def rp_keys(client_id: str) -> RelyingPartyKeys:
    """Keys of a relying party, the same for as long as the tests run."""
    return RelyingPartyKeys.generate()


def members(jwks: Mapping[str, Any], interface: Interface = CURRENT, /, **more: Any) -> dict[str, Any]:
    """What a directory file says of a client: by name for a generation that ends, since nobody is unless named."""
    named = {"generations": (interface.name,), "legacy_until": FAR} if interface.ends else {}
    return {"redirect_uris": (CALLBACK,), "jwks": jwks, **named, **more}


def record(
    client_id: str, *, keys: RelyingPartyKeys | None = None, interface: Interface = CURRENT, **more: Any
) -> Client:
    """A client as it is stored: of the government unless it is said otherwise, so that no consent is asked (D29)."""
    jwks = (keys or rp_keys(client_id)).public()
    given = members(jwks, interface, **{"name": f"Relying Party {client_id}", "sector": "government", **more})
    if isinstance(given["jwks"], dict):
        given["jwks"] = json.dumps(given["jwks"])
    return Client(client_id=client_id, **given)
