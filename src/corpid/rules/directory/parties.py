"""Attributes of person and entity by granted scope (R-4.1, R-12.4)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from corpid.rules.directory.records import Administrator, AdministratorLevel, Entity, User

ENTITY_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
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

USER_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "user.identity": {
            "account_type": "account_type",
            "identity_number": "identity_number",
            "identity_coi": "identity_country",
        },
        "user.name": {"name": "name"},
    }
)
"""the same of a person"""

_CONSENT_ITEMS: Final[Mapping[str, Phrase]] = MappingProxyType(
    {
        "openid": phrase("That you signed in, and which organisation you act for"),
        "entity.identity": phrase("The organisation's type, registration number and country"),
        "entity.basic_profile.name": phrase("The organisation's name"),
        "entity.basic_profile.uen_status": phrase("The organisation's registration status"),
        "user.identity": phrase("Your account type, identity number and the country that issued it"),
        "user.name": phrase("Your name"),
        "authinfo": phrase("Your roles for the organisation, service by service"),
        "tpauthinfo": phrase("Other organisations that the organisation may act for, and your roles for each of them"),
    }
)
"""in the order in which a person reads it"""
_CONSENT_SUMMARY: Final[Mapping[Phrase, Mapping[str, Phrase]]] = MappingProxyType(
    {
        phrase("Who you are"): {
            "user.name": phrase("your name"),
            "user.identity": phrase("your identity number and account type"),
        },
        phrase("The organisation"): {
            "entity.basic_profile.name": phrase("its name"),
            "entity.identity": phrase("its registration number and type"),
            "entity.basic_profile.uen_status": phrase("its registration status"),
        },
        phrase("What you may do"): {
            "authinfo": phrase("your roles there"),
            "tpauthinfo": phrase("your roles in other organisations that it may act for"),
        },
    }
)
"""the same in short: subject → scope → words"""
_SIGN_IN_ALONE: Final = phrase("Your sign-in"), phrase("that you signed in, and for which organisation")
"""if nothing else is shared"""

_ACCOUNT_TYPES: Final[Mapping[AdministratorLevel, str]] = MappingProxyType(
    {"owner": "Admin", "administrator": "Admin", "sub_administrator": "Sub-Admin"}
)
"""level at the entity → CPAccType; without a level it is `User` (D53)"""
_PACKED_STATUS: Final[Mapping[str, str]] = MappingProxyType({"Deregistered": "De-Registered"})
_UNPACKED: Final = "!#$&'()*+/:;?@[]"
"""characters not escaped in a packed subject, in addition to letters, digits and - . _ ~"""

IDENTITY_SCOPES: Final[tuple[str, ...]] = (*ENTITY_MEMBERS, *USER_MEMBERS)
"""the scopes of facts about a person or an entity; consent concerns these (D29)"""


def entity_attributes(entity: Entity, scopes: Collection[str]) -> dict[str, str]:
    """The attributes of an entity that the scopes grant.

    What the directory does not know is left out.

    Only UEN entities have a registration status. R-12.4.
    """
    granted = _attributes(entity, ENTITY_MEMBERS, scopes)
    if entity.type != "UEN":
        granted.pop("entity_uen_status", None)
    return granted


def user_attributes(user: User, scopes: Collection[str]) -> dict[str, str]:
    """The attributes of a person that the scopes grant.

    What the directory does not know is left out. Source: R-12.4.
    """
    return _attributes(user, USER_MEMBERS, scopes)


def packed_subject(user: User, entity: Entity) -> str:
    """A person's account for an entity as one text.

    `s` identity number, `uuid`, `u` account, `c` country. A value never contains a comma, an equals sign or a space, so
    that nobody's number can pose as another member. Source: R-12.2, docs/decisions/0007
    """
    members = {
        "s": user.identity_number,
        "uuid": user.user_id,
        "u": entity.entity_id + user.identity_number,
        "c": user.identity_country,
    }
    return ",".join(f"{name}={quote(value, safe=_UNPACKED)}" for name, value in members.items())


def packed_parties(user: User, entity: Entity, administrator: Administrator | None) -> dict[str, dict[str, str]]:
    """userInfo and entityInfo, with every member; blank if not applicable.

    `administrator` is the person's level at this entity. Source: R-12.2, D53
    """
    foreign = entity.type != "UEN"
    return {
        "userInfo": {
            "CPAccType": "User" if administrator is None else _ACCOUNT_TYPES[administrator.level],
            "CPUID_FullName": user.name,
            "ISSPHOLDER": "YES" if user.account_type == "standard" else "NO",
        },
        "entityInfo": {
            "CPEntID": entity.entity_id,
            "CPEnt_TYPE": entity.type,
            "CPEnt_Status": "" if entity.type == "NON-UEN" else _PACKED_STATUS.get(entity.status, entity.status),
            "CPNonUEN_Country": entity.country if foreign else "",
            "CPNonUEN_RegNo": entity.registration_number if foreign else "",
            "CPNonUEN_Name": entity.name if foreign else "",
        },
    }


def consent_items(scopes: Collection[str]) -> tuple[Phrase, ...]:
    """The consent page's items: one phrase for each scope (Spec 4.9, D29)."""
    return tuple(words for scope, words in _CONSENT_ITEMS.items() if scope in scopes)


def consent_summary(scopes: Collection[str]) -> tuple[tuple[Phrase, Phrase], ...]:
    """Return the items in short, by subject.

    They are pairs of a subject and what is shared about it. Source: Spec 4.9, D29
    """
    found = (
        (subject, tuple(words for scope, words in of.items() if scope in scopes))
        for subject, of in _CONSENT_SUMMARY.items()
    )
    shared = tuple((subject, phrase("{items}", items=words)) for subject, words in found if words)
    return shared or (_SIGN_IN_ALONE,)


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
