"""The two parties of a token: the person, and the entity they act for (D1, D2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from corpid.protocol.records import SubjectMode


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """Identifiers of both, and their attributes by granted scope."""

    user_id: str
    entity_id: str
    user_attributes: Mapping[str, str]
    entity_attributes: Mapping[str, str]


def subject(parties: Parties, mode: SubjectMode) -> str:
    """The `sub` that ID token, access token and userinfo carry alike (OpenID Connect Core §5.3.2, D1)."""
    return parties.user_id if mode == "user" else parties.entity_id


def claims(parties: Parties, mode: SubjectMode, *, attributes: bool) -> dict[str, object]:
    """sub, sub_type and the other party nested; with their attributes where asked (D2, D20)."""
    user: dict[str, object] = {"sub": parties.user_id, "sub_type": "user"}
    entity: dict[str, object] = {"sub": parties.entity_id, "sub_type": "entity"}
    if attributes and parties.user_attributes:
        user["sub_attributes"] = dict(parties.user_attributes)
    if attributes and parties.entity_attributes:
        entity["sub_attributes"] = dict(parties.entity_attributes)
    return {**user, "entity": entity} if mode == "user" else {**entity, "act": user}


def read(claims_of_token: Mapping[str, object]) -> tuple[str, str] | None:
    """user_id and entity_id of an access token, whichever of them is its subject (D20)."""
    nested = claims_of_token.get("act") or claims_of_token.get("entity")
    sub = claims_of_token.get("sub")
    if not isinstance(nested, dict) or not isinstance(sub, str) or not isinstance(nested.get("sub"), str):
        return None
    return (sub, nested["sub"]) if claims_of_token.get("sub_type") == "user" else (nested["sub"], sub)
