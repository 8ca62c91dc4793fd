"""Descriptions of a service's roles, for people who give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.rules.directory.nodes import quote_value
from corpid.rules.directory.records import Service
from corpid.rules.directory.values import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator


def undescribable(service: Service) -> Iterator[str]:
    """The reasons why described roles are wrong: the service lacks them.

    Source: docs/directory.md
    """
    roles = f"its roles are {', '.join(service.roles)}" if service.roles else "it has no roles"
    for described in service.role_descriptions:
        if described.name not in service.roles:
            hint = suggestion(described.name, service.roles)
            yield f"role_descriptions: {quote_value(described.name)} is no role of {service.service_id}; {roles}{hint}"


def without_gone_roles(existing: msgspec.Struct, record: msgspec.Struct) -> msgspec.Struct:
    """Return a service without descriptions of roles that it no longer has.

    `existing` is the service before. Any other record is returned as it is. Source: docs/directory.md
    """
    if not isinstance(existing, Service) or not isinstance(record, Service) or not record.role_descriptions:
        return record
    gone = set(existing.roles) - set(record.roles)
    left = tuple(each for each in record.role_descriptions if each.name not in gone)
    return msgspec.structs.replace(record, role_descriptions=left)
