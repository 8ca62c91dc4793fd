"""Who the two parties of a sign-in are, as far as the granted scopes tell (R-4.1, R-12.4)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from corpid.directory.records import Entity, User

_ENTITY_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "entity.identity": {
            "entity_type": "type",
            "entity_reg_number": "registration_number",
            "entity_coi": "country",
        },
        "entity.basic_profile.name": {"entity_name": "name"},
        "entity.basic_profile.uen_status": {"entity_uen_status": "status"},
    }
)
"""scope → name of the attribute → member of the record"""

_USER_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "user.identity": {
            "account_type": "account_type",
            "identity_number": "identity_number",
            "identity_coi": "identity_country",
        },
        "user.name": {"name": "name"},
    }
)

_TELLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "entity.identity": "The organisation's type, registration number and country",
        "entity.basic_profile.name": "The organisation's name",
        "entity.basic_profile.uen_status": "The organisation's registration status",
        "user.identity": "Your account type, identity number and the country that issued it",
        "user.name": "Your name",
    }
)

IDENTITY_SCOPES: Final[tuple[str, ...]] = tuple(_TELLS)
"""the scopes that tell something of a person or an entity; consent concerns these (D29)"""


def entity_attributes(entity: Entity, scopes: Collection[str]) -> dict[str, str]:
    """The attributes of an entity that the scopes grant; what the directory does not know is left out.

    The registration status is told of UEN entities only. R-12.4.
    """
    granted = _attributes(entity, _ENTITY_MEMBERS, scopes)
    if entity.type != "UEN":
        granted.pop("entity_uen_status", None)
    return granted


def user_attributes(user: User, scopes: Collection[str]) -> dict[str, str]:
    """The attributes of a person that the scopes grant; what the directory does not know is left out. R-12.4."""
    return _attributes(user, _USER_MEMBERS, scopes)


def what_a_scope_tells(scope: str) -> str:
    """What a scope of IDENTITY_SCOPES tells the relying party, in words for the consent page (D29)."""
    return _TELLS[scope]


def _attributes(
    record: Entity | User, members: Mapping[str, Mapping[str, str]], scopes: Collection[str]
) -> dict[str, str]:
    values = {
        attribute: str(getattr(record, member))
        for scope, attributes in members.items()
        if scope in scopes
        for attribute, member in attributes.items()
    }
    return {attribute: value for attribute, value in values.items() if value}
