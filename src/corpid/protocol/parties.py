"""The two parties of a token: the person, and the entity they act for (D1, D2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

if TYPE_CHECKING:
    from corpid.protocol.records import SubjectMode


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Both as the generation that packs its subject tells of them (R-12.2)."""

    sub: str
    """key=value, separated by commas; `uuid` is the user_id"""
    told: Mapping[str, Mapping[str, str]]
    """userInfo and entityInfo"""


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """Identifiers of both, and their attributes by granted scope."""

    user_id: str
    entity_id: str
    user_attributes: Mapping[str, str]
    entity_attributes: Mapping[str, str]
    packed: Packed | None = None


def claims(parties: Parties, mode: SubjectMode, *, attributes: bool) -> dict[str, object]:
    """sub, sub_type and the other party nested; with what is told of them where asked (D1, D2, D20)."""
    if parties.packed is not None:
        return {"sub": parties.packed.sub, **(parties.packed.told if attributes else _acting_for(parties))}
    user: dict[str, object] = {"sub": parties.user_id, "sub_type": "user"}
    entity: dict[str, object] = {"sub": parties.entity_id, "sub_type": "entity"}
    if attributes and parties.user_attributes:
        user["sub_attributes"] = dict(parties.user_attributes)
    if attributes and parties.entity_attributes:
        entity["sub_attributes"] = dict(parties.entity_attributes)
    return {**user, "entity": entity} if mode == "user" else {**entity, "act": user}


def _acting_for(parties: Parties) -> dict[str, object]:
    return {"entity": {"sub": parties.entity_id, "sub_type": "entity"}}


def _packed_user(sub: str) -> str:
    return unquote(dict(part.partition("=")[::2] for part in sub.split(",")).get("uuid", ""))


def read(claims_of_token: Mapping[str, object]) -> tuple[str, str] | None:
    """user_id and entity_id of an access token, whichever of them is its subject (D20)."""
    nested = claims_of_token.get("act") or claims_of_token.get("entity")
    sub = claims_of_token.get("sub")
    if not isinstance(nested, dict) or not isinstance(sub, str) or not isinstance(nested.get("sub"), str):
        return None
    if "sub_type" not in claims_of_token:
        return _packed_user(sub), nested["sub"]
    return (sub, nested["sub"]) if claims_of_token["sub_type"] == "user" else (nested["sub"], sub)
